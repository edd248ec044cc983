"""The pairs of bench/guard: two programs train each job in turn, and every pair gives a ratio.

Neighbours on a shared machine, the clock and the memory change within seconds, but hardly within a pair. The two take
turns in being first, so that after-effects of a run (caches, heat) meet both alike.
"""
import argparse
import datetime
import json
import os
import platform
import subprocess
import sys
import tempfile

from pairs import median

COUNTERS = ["instructions", "cache-misses"]
NAMES = {"time": "time of an example", "processor": "processor time", "instructions": "instructions", "cache-misses": "cache misses"}


def counters_work():
    try:
        said = subprocess.run(["perf", "stat", "-x,", "-e", ",".join(COUNTERS), "true"], capture_output=True, text=True)
    except FileNotFoundError:
        return False
    return said.returncode == 0 and "not supported" not in said.stderr and "not counted" not in said.stderr


def measure(program, job, choice, count):
    """Trains the job once: its hash, and the figures by name."""
    words = [program, "train", *job, "--threads", str(choice.threads), "--out", f"{choice.out}/run"]
    with tempfile.NamedTemporaryFile("r") as counted, tempfile.TemporaryFile("w+") as said:
        if count:
            words = ["perf", "stat", "-x,", "-o", counted.name, "-e", ",".join(COUNTERS), *words]
        child = subprocess.Popen(words, stdout=said, stderr=subprocess.STDOUT)
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        said.seek(0)
        lines = said.read().splitlines()
        if child.returncode != 0:
            sys.exit("\n".join([f"{' '.join(words)} ended with {child.returncode}:", *lines[-10:]]))
        events = [json.loads(line) for line in lines if line.startswith("{")]
        rates = [event["examples_per_second"] for event in events if event.get("event") == "step"]
        figures = {"time": 1 / max(rates), "processor": usage.ru_utime + usage.ru_stime}
        for line in counted:
            fields = line.split(",")
            if len(fields) > 2 and fields[2].split(":")[0] in COUNTERS:
                figures[fields[2].split(":")[0]] = float(fields[0])
        return next(event["hash"] for event in reversed(events) if "hash" in event), figures


def verdict(low, high):
    return "faster" if high < 1 else "slower" if low > 1 else "cannot be told"


def processor():
    with open("/proc/cpuinfo") as file:
        return next((line.split(": ")[1].strip() for line in file if line.startswith("model name")), platform.machine())


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("base_program")
    parser.add_argument("program")
    parser.add_argument("--base", required=True)
    parser.add_argument("--pairs", type=int, required=True)
    parser.add_argument("--threads", type=int, required=True)
    parser.add_argument("--isa")
    parser.add_argument("--note")
    parser.add_argument("--out", required=True)
    choice = parser.parse_args()
    if choice.isa:
        os.environ["TRIREME_ISA"] = choice.isa
    count = counters_work()
    if not count:
        print("no counters of the processor here (perf): times alone")
    rows, failed = [], False
    with open(f"{choice.out}/list") as file:
        jobs = [line.split() for line in file]
    for name, *job in jobs:
        ratios = {}
        for number in range(choice.pairs):
            order = [choice.base_program, choice.program] if number % 2 == 0 else [choice.program, choice.base_program]
            found = {program: measure(program, job, choice, count) for program in order}
            (base_hash, base), (own_hash, own) = found[choice.base_program], found[choice.program]
            for figure in own:
                ratios.setdefault(figure, []).append(own[figure] / base[figure])
        if base_hash != own_hash:
            print(f"{name}: the hashes differ: {base_hash} at {choice.base}, {own_hash} here")
            failed = True
        for figure, values in ratios.items():
            middle, low, high, sure = median(values)
            rows.append((name, NAMES[figure], middle, low, high, verdict(low, high)))
            print(f"{name:9} {NAMES[figure]:18} {middle:.3f} [{low:.3f}, {high:.3f}] with {sure:.0f} %: {verdict(low, high)}", flush=True)
        failed = failed or rows[-len(ratios)][5] == "slower"
    if choice.note:
        with open(choice.note, "a") as file:
            print(f"\n{datetime.date.today()}, {processor()}, {choice.threads} threads{', ' + choice.isa if choice.isa else ''}; this tree over "
                  f"{choice.base}, medians of {choice.pairs} pairs with intervals.\n\n| job | figure | ratio | verdict |\n|---|---|---|---|", file=file)
            for name, figure, middle, low, high, said in rows:
                print(f"| {name} | {figure} | {middle:.3f} [{low:.3f}, {high:.3f}] | {said} |", file=file)
    sys.exit(1 if failed else 0)


main()
