"""tools/faults finds places for faults, plants them, and each is on when its number is: test_faults.py SOURCE COMPILER."""

import os
import pathlib
import subprocess
import sys
import tempfile

source, compiler = pathlib.Path(sys.argv[1]), sys.argv[2]
sys.path.insert(0, str(source / "tools" / "faults"))
try:
    from places import faults_of
except ImportError:
    print("skipped: Python has no module clang (Debian: python3-clang)")
    sys.exit(77)
from judge import Tests  # noqa: E402
from plant import plant  # noqa: E402

SAMPLE = """#include <stdbool.h>
#include <stdio.h>
typedef int tr_status;
enum { TR_OK, TR_EINVAL, LENGTH = 4 };
#define TR_TRY(e) do { tr_status s_ = (e); if (s_ != TR_OK) return s_; } while (0)
static const int table[2] = {5, 6};
static tr_status tr_fail(void) { return TR_EINVAL; }
static tr_status check(int i)
{
    if (i > LENGTH) return tr_fail();
    return TR_OK;
}
static bool is_even(int i) { return i % 2 == 0; }
static tr_status count(int n, int *sum)
{
    int room[3];
    if (is_even(n))
        TR_TRY(check(n));
    else
        TR_TRY(check(n - 1));
    for (int i = 0; i < n && table[0]; i++) room[i % 3] = i, *sum += table[i % 2];
    switch (n) {
    case 200: {
        puts("many");
    }
    }
    return TR_OK;
}
int main(void)
{
    int sum = 0;
    tr_status four = count(4, &sum), five = count(5, &sum), six = count(6, &sum);
    printf("%d %d %d %d\\n", four, five, six, sum);
    return 0;
}
"""

UNREACHED = 'puts("many")'
WHOLE = "0 0 1 49\n"  # what is printed without a fault, and with each
EXPECTED = {
    ("i > LENGTH", "i >= LENGTH"): "1 1 1 0\n",
    ("i > LENGTH", "0"): "0 0 0 82\n",
    ("i < n", "i <= n"): "0 0 1 60\n",
    ("tr_fail()", "TR_OK"): "0 0 0 82\n",
    ("TR_TRY(check(n))", ""): "0 0 0 82\n",
    ("i % 2 == 0", "i % 2 != 0"): "0 1 1 22\n",
    ("i % 2 == 0", "!(i % 2 == 0)"): "0 1 1 22\n",
    (UNREACHED, ""): WHOLE,
}


def run(program, **environment):
    return subprocess.run([program], env={**os.environ, **environment}, capture_output=True, text=True, timeout=60).stdout


with tempfile.TemporaryDirectory() as place:
    for folder in ("plain/src", "tree/src", "support"):
        os.makedirs(f"{place}/{folder}")
    pathlib.Path(f"{place}/plain/src/sample.c").write_text(SAMPLE)
    builtin = subprocess.run([compiler, "-print-file-name=include"], capture_output=True, text=True).stdout.strip()
    found = faults_of(("src/sample.c", f"{place}/plain/src/sample.c", ["-isystem", builtin]))
    texts = {(fault.old, fault.text) for fault in found}
    missing = set(EXPECTED) - texts
    assert not missing, f"not found: {missing}"
    lines = SAMPLE.splitlines()
    for fault in found:  # nothing where the language asks for a constant, and nothing of a macro's own text
        assert not lines[fault.line - 1].lstrip().startswith(("enum", "#define", "static const", "int room", "case")), fault

    for number, (old, text) in enumerate(EXPECTED, 1):
        fault = next(f for f in found if (f.old, f.text) == (old, text))
        fault.number = number
        plant(f"{place}/plain", f"{place}/tree", ["src/sample.c"], [fault], f"{place}/support")
        command = [compiler, "-include", f"{place}/support/fault.h", f"{place}/tree/src/sample.c", f"{place}/support/switch.c"]
        built = subprocess.run([*command, "-o", f"{place}/sample"], capture_output=True, text=True)
        assert built.returncode == 0, built.stderr
        log = f"{place}/log.{number}"
        assert run(f"{place}/sample", TR_FAULT_LOG=log) == WHOLE, f"{old}: planting it changed the program"
        met = pathlib.Path(log).read_bytes()
        assert len(met) == number + 1 and met[number] == (old != UNREACHED), f"{old}: met is {met}"
        assert run(f"{place}/sample", TR_FAULT=str(number)) == EXPECTED[old, text], f"{old} -> {text}"
        assert run(f"{place}/sample", TR_FAULT=str(number + 1)) == WHOLE
    plant(f"{place}/plain", f"{place}/tree", ["src/sample.c"], [], f"{place}/support")
    assert pathlib.Path(f"{place}/tree/src/sample.c").read_text() == SAMPLE, "a fault that was taken back is still there"


# Which tests notice: one that fails or hangs, not one that skips itself; and what they leave behind ends with them.
def tests_of(scripts):
    made = Tests.__new__(Tests)
    made.build = pathlib.Path("/")
    made.tests = {name: {"command": ["sh", "-c", script], "SKIP_RETURN_CODE": 77} for name, script in scripts.items()}
    made.seconds, made.met, made.sound = {}, {}, {}
    return made


SCRIPTS = {"passes": "true", "skips": "exit 77", "fails": "exit 1", "hangs": "sleep 4321", "strays": "setsid sleep 4321 &"}
judge = tests_of(SCRIPTS)
judge.tests["hangs"].pop("SKIP_RETURN_CODE")
passing = {name for name in SCRIPTS if judge.run(name, {"TR_FAULT": "1"}, 2 if name == "hangs" else 60)[0]}
assert passing == {"passes", "skips", "strays"}, passing
for command in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
    try:
        assert command.read_bytes() != b"sleep\0" + b"4321\0", "a process outlives its test"
    except OSError:
        pass  # it has ended

# Another build of the same sources, as one with sanitizers: the tests that come by the fault are known, and which of
# them fail without one is not.
fault = next(f for f in found if f.line > 1)
fault.number = 7
plain = tests_of({name: "true" for name in ("x.blind", "x.sees", "x.broken", "x.elsewhere")})
plain.met = {name: bytes(7) + bytes([name != "x.elsewhere"]) for name in plain.tests}
plain.seconds = dict.fromkeys(plain.tests, 0.5)
assert plain.judge(fault, 60) == (None, 3, 3)
stricter = tests_of({"x.blind": "true", "x.sees": 'test "$TR_FAULT" != 7', "x.broken": "false", "x.elsewhere": "false"})
stricter.follow(plain)
assert set(stricter.seconds) == set(plain.tests)
stricter.seconds = {"x.broken": 0.1, "x.blind": 0.2, "x.sees": 0.3}
assert stricter.judge(fault, 60)[:2] == ("x.sees", 3), stricter.judge(fault, 60)
assert stricter.sound["x.broken"] is False and "x.elsewhere" not in stricter.sound
