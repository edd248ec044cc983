"""The CPU program of llm.c (Karpathy, train_gpt2.c) as a rival in speed: llm_c.py DIRECTORY JOB THREADS

DIRECTORY is a checkout of llm.c. gpt and gpt-large are networks of the sizes of models/shakespeare-gpt.yaml and bench/jobs/gpt-large.yaml
with what llm.c's have besides (biases, weights shared by the embedding and the scores, gelu by tanh) and without dropout, which it does not
have; with random weights, in its file formats. Prints one line: windows of text per second of the best half of the steps, and the peak
memory in MiB.
"""
import os
import re
import resource
import subprocess
import sys
import tempfile

import numpy as np

SIZES = {
    "gpt": {"layers": 4, "heads": 4, "width": 128, "window": 64, "batch": 12, "steps": 40},
    "gpt-large": {"layers": 6, "heads": 6, "width": 384, "window": 256, "batch": 16, "steps": 4},
}
CHARACTERS, PADDED = 66, 128


def header(*numbers):
    return np.array(list(numbers) + [0] * (256 - len(numbers)), np.int32).tobytes()


def write_network(path, size, random):
    c, layers = size["width"], size["layers"]
    counts = [(PADDED * c, 0.02), (size["window"] * c, 0.02)]
    for count, spread in ((c, None), (c, 0), (3 * c * c, 0.02), (3 * c, 0), (c * c, 0.02), (c, 0), (c, None), (c, 0), (4 * c * c, 0.02), (4 * c, 0), (4 * c * c, 0.02), (c, 0)):
        counts.append((layers * count, spread))
    counts += [(c, None), (c, 0)]
    with open(path, "wb") as file:
        file.write(header(20240326, 3, size["window"], CHARACTERS, layers, size["heads"], c, PADDED))
        for count, spread in counts:
            numbers = np.ones(count) if spread is None else random.normal(0, 1, count) * spread
            file.write(numbers.astype(np.float32).tobytes())


def write_tokens(path, count, random):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as file:
        file.write(header(20240520, 1, count))
        file.write(random.integers(0, CHARACTERS, count).astype(np.uint16).tobytes())


def program(directory, place, size):
    """Its main() with our sizes, and nothing between the steps."""
    with open(os.path.join(directory, "train_gpt2.c"), encoding="utf-8") as file:
        text = file.read()
    for old, new in (
        ("int B = 4;", f"int B = {size['batch']};"),
        ("int T = 64;", f"int T = {size['window']};"),
        ("step <= 40", f"step < {size['steps']}"),
        ("if (step % 10 == 0)", "if (0)"),
        ("if (step > 0 && step % 20 == 0)", "if (0)"),
    ):
        if text.count(old) != 1:
            sys.exit(f"train_gpt2.c has {text.count(old)} of {old!r}, not one: another version than this script knows")
        text = text.replace(old, new)
    source, binary = os.path.join(place, "train.c"), os.path.join(place, "train")
    with open(source, "w", encoding="utf-8") as file:
        file.write(text)
    # The flags of its Makefile.
    flags = ["-Ofast", "-march=native", "-fopenmp", "-DOMP", "-w", "-I", directory]
    subprocess.run(["cc", *flags, source, "-o", binary, "-lm"], check=True)
    return binary


def main():
    directory, job, threads = sys.argv[1:4]
    size, random = SIZES[job], np.random.default_rng(1)
    with tempfile.TemporaryDirectory() as place:
        write_network(os.path.join(place, "gpt2_124M.bin"), size, random)
        tokens = size["batch"] * size["window"] * (size["steps"] + 2)
        for part in ("train", "val"):
            write_tokens(os.path.join(place, f"dev/data/tinyshakespeare/tiny_shakespeare_{part}.bin"), tokens, random)
        command = [program(os.path.abspath(directory), place, size)]
        done = subprocess.run(command, cwd=place, env={**os.environ, "OMP_NUM_THREADS": threads}, capture_output=True, text=True, check=True)
        memory = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    times = sorted(float(ms) for ms in re.findall(r"took ([0-9.]+) ms", done.stdout))
    best = times[: max(1, len(times) // 2)]
    print(size["batch"] * len(best) / (sum(best) / 1000), memory)


if __name__ == "__main__":
    main()
