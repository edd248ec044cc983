"""The pairs of bench/python: python_pairs.py TRIREME ROUNDS.

Both sides train mnist-mlp for 1,000 steps without evaluation. Compared are the time of the steps by the engine's clock,
which Python could only lengthen, and the whole time of both programs, which differ in how they get their data.
"""

import gzip
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np
from pairs import median

program, rounds = sys.argv[1], int(sys.argv[2])
place = tempfile.mkdtemp(prefix="trireme-bench-")
mnist = pathlib.Path(os.environ["TRIREME_SHIPPED"]) / "data" / "mnist"
CHANGES = ["train.epochs=0", "train.steps=1000", "train.log_every=100", "data.test="]
FILES = f"data.train={{idx: {{images: {mnist}/train-images-idx3-ubyte.gz, labels: {mnist}/train-labels-idx1-ubyte.gz}}}}"
MODEL = os.environ["TRIREME_SHIPPED"] + "/models/mnist-mlp.yaml"
SCRIPT = f"""
import json, sys, time
import numpy as np
import trireme
x, y = np.load({place!r} + "/x.npy", mmap_mode="r"), np.load({place!r} + "/y.npy")
last = []
begin = time.perf_counter()
run = trireme.train({MODEL!r}, x, y, set={CHANGES!r}, callbacks=[lambda event: last.append(event.seconds)])
print(json.dumps([run.hash, max(second for second in last if second == second), time.perf_counter() - begin]))
"""


def by_command():
    begin = time.perf_counter()
    words = [program, "train", MODEL, "--overwrite", "--out", f"{place}/run", "--log", "json"]
    said = subprocess.run(words + [f"--set={change}" for change in (*CHANGES, FILES)], check=True, capture_output=True, text=True)
    events = [json.loads(line) for line in said.stdout.splitlines() if line.startswith("{")]
    digest = next(event["hash"] for event in reversed(events) if "hash" in event)
    seconds = max(event["seconds"] for event in events if "seconds" in event)
    return digest, seconds, time.perf_counter() - begin


def by_python():
    begin = time.perf_counter()
    said = subprocess.run([sys.executable, "-c", SCRIPT], check=True, capture_output=True, text=True).stdout
    digest, seconds, _ = json.loads(said.splitlines()[-1])
    return digest, seconds, time.perf_counter() - begin


def seconds_of(code):
    begin = time.perf_counter()
    subprocess.run([sys.executable, "-c", code], check=True)
    return time.perf_counter() - begin


def tell(what, values, scale, unit, most):
    middle, low, high, sure = median([scale * value for value in values])
    verdict = "reached" if high <= most else "missed" if low > most else "open: take more rounds, or a quieter machine"
    print(f"{what}: {middle:.3f}{unit} [{low:.3f}, {high:.3f}] with {sure:.0f} %; to reach: {most}{unit}: {verdict}")


np.save(f"{place}/x.npy", np.frombuffer(gzip.open(mnist / "train-images-idx3-ubyte.gz").read(), np.uint8, offset=16).reshape(-1, 28, 28))
np.save(f"{place}/y.npy", np.frombuffer(gzip.open(mnist / "train-labels-idx1-ubyte.gz").read(), np.uint8, offset=8).astype(np.int32))
steps, whole, imports, uses = [], [], [], []
for number in range(rounds):
    pair = [by_command, by_python] if number % 2 == 0 else [by_python, by_command]
    found = {side: side() for side in pair}
    command, python = found[by_command], found[by_python]
    if command[0] != python[0]:
        sys.exit(f"the hashes differ: {command[0]} by the command, {python[0]} by Python")
    steps.append(python[1] / command[1])
    whole.append(python[2] / command[2])
    imports.append(seconds_of("import trireme") - seconds_of("pass"))
    uses.append(seconds_of("import numpy, trireme; trireme.train") - seconds_of("import numpy"))
print(f"hash {command[0]}; {rounds} pairs, median [interval]")
tell("seconds of the steps, Python / command", steps, 1, "", 1.02)
tell("import trireme, beside Python alone", imports, 1e3, " ms", 50)
tell("the same up to trireme.train, beside NumPy", uses, 1e3, " ms", 50)
print(f"whole programs, Python / command: {statistics.median(whole):.3f}")
