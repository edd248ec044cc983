"""Draws small faults at random, anywhere in src and cli, and says which of them no test notices.

    python3 tools/faults SEED COUNT [PREFIX...]     faults of files that begin with one of the prefixes, or of all

A fault is another comparison, operator or number, a condition that is always true or false, a statement left out, a
failure that is not returned. All are planted in one copy of the tree, build/faults/tree, each behind a number that an
environment variable switches on, so that they are built once. The tests run once without a fault, to learn which come
by each. Then each fault meets those tests, fast ones first, for --budget seconds; with --sanitize, those that are left
meet them once more in a build with sanitizers, as in continuous integration. What survives is one of three: a fault
that slower tests notice, a program that does the same, or something that no test asks for.

Needs libclang and its module for Python (Debian: python3-clang). Exits with 1 if a fault survives.
"""

import argparse
import concurrent.futures
import json
import os
import pathlib
import random
import re
import shlex
import shutil
import subprocess
import sys

from judge import SANITIZED_LEFT_OUT, Tests, each
from places import faults_of
from plant import plant

ROOT = pathlib.Path(__file__).resolve().parents[2]
PLACE = ROOT / "build" / "faults"


def command(*words, **options):
    done = subprocess.run(words, capture_output=True, text=True, **options)
    return done.returncode, done.stdout + done.stderr


def must(*words):
    status, said = command(*words)
    if status:
        sys.exit(said[-3000:])


def copy_tree(tree):
    """The tree's files as they are, new ones included. Those with the same content keep their dates."""
    files = set(command("git", "ls-files", "-co", "--exclude-standard", cwd=ROOT)[1].splitlines())
    for path in tree.rglob("*"):
        if path.is_file() and str(path.relative_to(tree)) not in files:
            path.unlink()
    for file in files:
        source, target = ROOT / file, tree / file
        if source.is_file() and not (target.is_file() and target.read_bytes() == source.read_bytes()):
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(source, target)


def configure(tree, build, *choices):
    (PLACE / "fault.h").touch()
    must(
        "cmake", "-S", tree, "-B", build, "-DCMAKE_BUILD_TYPE=Release", "-DTRIREME_BUILD_TESTS=ON",
        "-DCMAKE_EXPORT_COMPILE_COMMANDS=ON", f"-DCMAKE_C_FLAGS=-w -include {PLACE}/fault.h",
        f"-DCMAKE_C_STANDARD_LIBRARIES={PLACE}/libfault.a", *choices,
    )  # fmt: skip


def arguments_of(command):
    """What the preprocessor has to know of a compiler's command."""
    words = shlex.split(command)
    places = [i for i, word in enumerate(words) if word == "-isystem"]
    return [w for w in words if w.startswith(("-I", "-D", "-std"))] + [w for i in places for w in words[i : i + 2]]


def find(tree, build, prefixes):
    """All faults of the files with these prefixes."""
    headers = []  # of the compiler itself: a libclang of Debian's finds them, one of PyPI's has none
    if shutil.which("clang"):
        headers = ["-isystem", command("clang", "-print-resource-dir")[1].strip() + "/include"]
    jobs = {}
    for entry in json.loads((build / "compile_commands.json").read_text()):
        file = os.path.relpath(entry["file"], tree)
        if file.startswith(("src/", "cli/")) and file.startswith(tuple(prefixes or [""])):
            jobs[file] = (file, entry["file"], [*arguments_of(entry["command"]), *headers])
    with concurrent.futures.ProcessPoolExecutor() as pool:
        return [fault for found in pool.map(faults_of, jobs.values(), chunksize=8) for fault in found]


def draw(faults, seed, count):
    """`count` of them that do not overlap, numbered in the order of their places."""
    random.Random(seed).shuffle(faults)
    drawn = []
    for fault in faults:
        beside = [f for f in drawn if f.file == fault.file]
        if len(drawn) < count and all(fault.end <= f.begin or f.end <= fault.begin for f in beside):
            drawn.append(fault)
    drawn.sort(key=lambda f: (f.file, f.begin))
    for number, fault in enumerate(drawn, 1):
        fault.number = number
    return drawn


def building(build):
    """The command that builds all that can be built."""
    return "cmake", "--build", build, "-j", str(os.cpu_count()), "--", "-k"


def build_with(faults, tree, build):
    """Plants and builds; returns the faults that compile."""
    files = {fault.file for fault in faults}
    while True:
        plant(ROOT, tree, files, faults, PLACE)
        command("cc", "-O2", "-fPIC", "-c", "switch.c", "-o", "switch.o", cwd=PLACE)
        command("ar", "rcs", "libfault.a", "switch.o", cwd=PLACE)
        status, said = command(*building(build))
        if status == 0:
            return faults
        broken = set()
        for file, line in re.findall(r"^(\S+?):(\d+):\d+: error", said, re.M):
            near = (pathlib.Path(file).read_text().splitlines())[max(0, int(line) - 4) : int(line) + 2]
            broken |= {int(number) for number in re.findall(r"TR_FAULT\((\d+)\)", "\n".join(near))}
        compiles = [f for f in faults if f.number not in broken]
        if len(compiles) == len(faults):
            sys.exit(said[-3000:])
        faults = compiles


def survivors(tests, faults, options):
    """The faults that no test notices; each is printed when it is known."""
    left = []

    def one(fault):
        notices, reach, tried = tests.judge(fault, options.budget)
        if notices is None:
            left.append(fault)
            old, new = (" ".join(text.split()) for text in (fault.old, fault.text or "left out"))
            print(f"{fault.file}:{fault.line} {fault.function}(): {old} -> {new}  ({tried} of {reach} tests tried)", flush=True)

    each(one, faults, options.jobs)
    return left


def main():
    parser = argparse.ArgumentParser(prog="tools/faults", description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("seed", type=int)
    parser.add_argument("count", type=int)
    parser.add_argument("prefix", nargs="*")
    parser.add_argument("--budget", type=float, default=60, help="seconds of tests for each fault (default 60)")
    parser.add_argument("--sanitize", action="store_true", help="survivors meet the tests under the sanitizers, too")
    parser.add_argument("--tests", default="", help="only tests whose names match this regular expression")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="tests at the same time (default: processors)")
    options = parser.parse_args()
    tree, build = PLACE / "tree", PLACE / "build"
    tree.mkdir(parents=True, exist_ok=True)
    copy_tree(tree)
    configure(tree, build)
    must("cmake", "--build", build, "--target", "trireme_messages")  # whose headers the sources include
    faults = build_with(draw(find(tree, build, options.prefix), options.seed, options.count), tree, build)
    print(f"{len(faults)} faults are planted; the tests run without them", flush=True)
    tests = Tests(build, options.tests)
    tests.survey(PLACE / "met", options.jobs)
    left = survivors(tests, faults, options)
    if options.sanitize and left:
        print(f"{len(left)} survive; the tests are built with the sanitizers of addresses and undefined behaviour", flush=True)
        sanitized = PLACE / "sanitized"
        configure(tree, sanitized, "-DTRIREME_SANITIZE=address")
        must(*building(sanitized))
        os.environ["LSAN_OPTIONS"] = f"suppressions={ROOT}/tests/suppressions/leaks"
        stricter = Tests(sanitized, options.tests, SANITIZED_LEFT_OUT)
        stricter.follow(tests)
        left = survivors(stricter, left, options)
    print(f"{len(left)} of {len(faults)} survive.")
    sys.exit(1 if left else 0)


main()
