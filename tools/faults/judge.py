"""Runs tests against planted faults: which tests come by a fault, and whether one of them notices it."""

import itertools
import json
import os
import pathlib
import signal
import subprocess
import threading
import time

# They read the sources or build them anew, so that planted faults say nothing there, or take long.
LEFT_OUT = "^(architecture|docs|build|install|packages|fuzz)\\."
LABELS_LEFT_OUT = "long|living|interop"
SANITIZED_LEFT_OUT = "^(long|slow|program|living|interop|cli)$"  # as .ci/run does

# A run in the background ignores some, and what it starts would, too.
ALL_SIGNALS = ["env", "--default-signal=INT,QUIT,HUP"]

numbers = itertools.count()


def left_over(mark):
    """Processes that have the mark in their environment, and have not ended."""
    for place in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            if mark in (place / "environ").read_bytes().split(b"\0"):
                yield int(place.name)
        except OSError:
            pass  # it has ended, or belongs to somebody else


def kill_left_over(mark):
    """Ends what a test left behind, in whatever session. Looks again: one may have started another meanwhile, and in the
    middle of exec() a process has no environment."""
    looks = 2
    while looks > 0:
        found = list(left_over(mark))
        for process in found:
            try:
                os.kill(process, signal.SIGKILL)
            except OSError:
                pass  # it has ended
        looks = 2 if found else looks - 1
        time.sleep(0.02)


class Tests:
    """The tests of a build whose names match `chosen` and whose labels do not match `left_out`, as CTest lists them."""

    def __init__(self, build, chosen, left_out=LABELS_LEFT_OUT):
        self.build = build
        listed = subprocess.run(
            ["ctest", "--show-only=json-v1", "-R", chosen or ".", "-LE", left_out, "-E", LEFT_OUT],
            cwd=build, capture_output=True, text=True, check=True,
        )  # fmt: skip
        self.tests = {}
        for test in json.loads(listed.stdout)["tests"]:
            test.update({p["name"]: p["value"] for p in test.pop("properties")})
            if "command" in test and not test.get("DISABLED"):
                self.tests[test["name"]] = test
        if not self.tests:
            raise SystemExit(f"no test in {build} has a name like {chosen or 'any'}")
        self.seconds, self.met, self.sound = {}, {}, {}

    def run(self, name, environment, limit):
        """(whether it passes or skips itself, seconds)."""
        test, begun, number = self.tests[name], time.monotonic(), f"{os.getpid()}.{next(numbers)}"
        variables = dict(x.split("=", 1) for x in test.get("ENVIRONMENT", []))
        variables |= {**environment, "TR_FAULT_RUN": number}
        child = subprocess.Popen(
            [*ALL_SIGNALS, *test["command"]], cwd=test.get("WORKING_DIRECTORY", self.build), env={**os.environ, **variables},
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
        )  # fmt: skip
        try:
            status = child.wait(limit)
        except subprocess.TimeoutExpired:
            status = None
        child.kill()
        kill_left_over(f"TR_FAULT_RUN={number}".encode())
        child.wait()
        passes = status is not None and status in (0, test.get("SKIP_RETURN_CODE"))
        return passes, time.monotonic() - begun

    def is_sound(self, name, environment=None):
        """Whether it passes without a fault: it runs once to tell."""
        if name not in self.sound:
            limit = self.tests[name].get("TIMEOUT", 600)
            self.sound[name], self.seconds[name] = self.run(name, environment or {}, limit)
            if not self.sound[name]:
                print(f"{name} in {self.build.name} fails without a fault, and is left out", flush=True)
        return self.sound[name]

    def follow(self, other):
        """In place of a survey: the tests come by the faults that they come by in another build of the same sources."""
        self.met = {name: met for name, met in other.met.items() if name in self.tests}
        self.seconds = {name: other.seconds[name] for name in self.met}

    def survey(self, logs, jobs):
        """Runs all tests without a fault, and keeps the faults that each comes by. Tests that fail are left out."""
        os.makedirs(logs, exist_ok=True)

        def one(name):
            log = f"{logs}/{name}"
            if os.path.exists(log):
                os.unlink(log)
            if self.is_sound(name, {"TR_FAULT_LOG": log}) and os.path.exists(log):
                self.met[name] = open(log, "rb").read()

        alone = [name for name, test in self.tests.items() if test.get("RUN_SERIAL") or test.get("FIXTURES_REQUIRED")]
        each(one, [name for name in self.tests if name not in alone], jobs)
        each(one, alone, 1)

    def judge(self, fault, budget):
        """(the test that notices the fault or None, how many come by it, how many were tried). Tests of the same part
        come first, and fast ones; they stop when `budget` seconds are used up."""
        part = fault.file.split("/")[1] + "." if fault.file.startswith("src/") else "cli."
        reach = [name for name, met in self.met.items() if fault.number < len(met) and met[fault.number]]
        reach.sort(key=lambda name: self.seconds[name] * (1 if name.startswith(part) else 2.5))
        tried = 0
        for name in reach:
            if tried and self.seconds[name] > budget or not self.is_sound(name):
                continue
            passes, took = self.run(name, {"TR_FAULT": str(fault.number)}, max(20, 10 * self.seconds[name]))
            tried += 1
            budget -= took
            if not passes:
                return name, len(reach), tried
            if budget <= 0:
                break
        return None, len(reach), tried


def each(function, items, jobs):
    """Calls it for all items, in threads."""
    items, lock = iter(items), threading.Lock()

    def work():
        while True:
            with lock:
                item = next(items, None)
            if item is None:
                return
            function(item)

    threads = [threading.Thread(target=work) for _ in range(jobs)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
