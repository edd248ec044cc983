"""What the scripts share: the program, a scratch directory, real data, and comparing."""

import atexit
import gzip
import json
import math
import os
import shutil
import subprocess
import sys
import tempfile

TRIREME, SOURCE = sys.argv[1], sys.argv[2]
PLACE = tempfile.mkdtemp(prefix="trireme-interop-")
atexit.register(shutil.rmtree, PLACE, ignore_errors=True)


def data(name):
    """The path of a file that ships in data/."""
    return os.path.join(SOURCE, "data", name)


def place(name):
    """A path in a directory that goes when the script ends."""
    return os.path.join(PLACE, name)


def write(name, text):
    path = place(name)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    return path


def trireme(*arguments, code=0):
    """Runs the program in the scratch directory, demands the exit code, returns what it printed; of a failure, its message."""
    done = subprocess.run([TRIREME, *arguments], cwd=PLACE, text=True, capture_output=True, check=False)
    if done.returncode != code:
        command = " ".join(["trireme", *arguments])
        raise AssertionError(f"{command} ended with {done.returncode}, not {code}:\n{done.stdout}{done.stderr}")
    return done.stderr if code else done.stdout


def mnist(part="t10k", count=100):
    """The first digits: images as bytes [28 * 28] each, and their labels."""
    with gzip.open(data(f"mnist/{part}-images-idx3-ubyte.gz")) as file:
        pixels = file.read(16 + count * 784)[16:]
    with gzip.open(data(f"mnist/{part}-labels-idx1-ubyte.gz")) as file:
        labels = file.read(8 + count)[8:]
    return [pixels[784 * i : 784 * (i + 1)] for i in range(count)], list(labels)


def predict(checkpoint, count, *arguments):
    """What the program predicts for the first examples of the job's test data: probabilities or values, a list for each."""
    rows = []
    for first in range(0, count, 64):  # as many as an option takes
        indices = ",".join(str(i) for i in range(first, min(first + 64, count)))
        out = trireme("predict", checkpoint, "--set-name", "test", "--index", indices, "--json", *arguments)
        rows += [json.loads(line)["output"] for line in out.splitlines()]
    return rows


def log(rows):
    """Logarithms of probabilities: logits, up to a constant in each row."""
    return [[math.log(p) if p > 0 else -math.inf for p in row] for row in rows]


def close(what, ours, theirs, tolerance=1e-5):
    """Fails unless two lists of lists of numbers are equal within the tolerance, which is relative for numbers above 1."""
    assert len(ours) == len(theirs) > 0, f"{what}: {len(ours)} rows of ours, {len(theirs)} of theirs"
    worst = 0.0
    for mine, other in zip(ours, theirs):
        assert len(mine) == len(other), f"{what}: {len(mine)} values of ours, {len(other)} of theirs"
        for a, b in zip(mine, other):
            if a == b:
                continue
            worst = max(worst, abs(a - b) / max(1.0, abs(a), abs(b)))
            assert worst <= tolerance, f"{what}: {a} of ours, {b} of theirs"
    print(f"{what}: {len(ours)} x {len(ours[0])} values, largest difference {worst:.1e}")
