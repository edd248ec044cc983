"""Intel's OpenCL for processors, from PyPI: another compiler with other functions gives the same bytes, or is refused.

The programs of our own tests run with a folder of vendors that names nothing but Intel's library.
"""

import glob
import os
import re
import subprocess
import sys
import tempfile

TRIREME, PROGRAMS = sys.argv[1], sys.argv[3]
EXACT = (
    ("test_device_opencl", "every operation, in every case"),
    ("test_device_opencl_functions", "exp, log, tanh, sigmoid, erf"),
    ("test_device_opencl_rounding", "quotients, roots and multiply-adds of the kernels' own"),
    ("test_train_opencl_models", "short trainings of the shipped models"),
)


def skip(why):
    print(f"skipped: {why}")
    sys.exit(77)


def environment(library, place):
    """Variables with which the loader knows Intel's library alone."""
    with open(os.path.join(place, "intel.icd"), "w", encoding="utf-8") as file:
        file.write(library + "\n")
    paths = [os.environ.get("LD_LIBRARY_PATH", ""), os.path.dirname(library)]
    return {**os.environ, "OCL_ICD_VENDORS": place + "/", "LD_LIBRARY_PATH": ":".join(path for path in paths if path)}


def main():
    found = sorted(glob.glob(os.path.join(sys.prefix, "lib", "libintelocl.so*")))
    if not found:
        skip("there is no libintelocl.so in the environment; pip install intel-opencl-rt intel-cmplr-lib-rt")
    with tempfile.TemporaryDirectory(prefix="trireme-opencl-") as place:
        variables = environment(found[0], place)
        text = subprocess.run([TRIREME, "devices"], env=variables, capture_output=True, text=True, check=True).stdout
        lines = [line for line in text.splitlines() if "opencl" in line]
        print("\n".join(lines))
        if "none" in lines[0].split():
            skip(lines[0])
        assert len(lines) == 1 and "Intel" in lines[0], text
        assert re.search(r"  exact(, slow)?$", lines[0]), "refused, though it has been exact"
        for program, what in EXACT:
            done = subprocess.run([os.path.join(PROGRAMS, program)], env=variables, capture_output=True, text=True, check=False)
            out = done.stdout + done.stderr
            assert done.returncode == 0 and "skipped:" not in out, f"{program} ended with {done.returncode}:\n{out[-4000:]}"
            print(f"{what}: {re.search(r'PASSED +. ([0-9]+) test', out).group(1)} tests passed")


main()
