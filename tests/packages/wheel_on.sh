#!/bin/sh
# wheel_on.sh SUITE SOURCE WHEELS: on a fresh Debian of this suite, with only Python, installs the wheel of WHEELS in a virtual
# environment and reads the digits, to 99 % and with the hash that the docs name.
#
# The machine is a directory (tools/machine.sh), which is removed when the test ends. pip uses the index of this environment
# (PIP_INDEX_URL, PIP_CERT, proxies).
set -eu
suite=$1 source=$2 wheels=$3
. "$source/tools/machine.sh"
why=$(machine_why)
[ -z "$why" ] || { echo "skipped: $why" && exit 77; }
wheel=$(find "$wheels" -name '*.whl' 2>/dev/null | head -n 1)
[ -n "$wheel" ] || { echo "skipped: no wheel was built" && exit 77; }

place=$(mktemp -d)
machine=$place/machine
trap 'rm -rf --one-file-system "$place"' EXIT
trap 'exit 1' INT TERM

echo "== Debian $suite"
machine_make "$suite" "$machine" python3,python3-venv
there() { machine_run "$machine" "$@"; }

for compiler in cc gcc clang cmake; do
  if there sh -c "command -v $compiler"; then echo "a machine with $compiler is not the one that was asked for" && exit 1; fi
done
cp "$wheel" "$source/examples/python/digits.py" "$machine/root/"

echo "== pip install"
there python3 --version
there python3 -m venv /root/venv
there /root/venv/bin/pip install --quiet --disable-pip-version-check --only-binary :all: "/root/$(basename "$wheel")"

echo "== the digits"
there /root/venv/bin/python /root/digits.py | tee "$place/said"
grep -E '^accuracy (99\.|100)' "$place/said"
grep "$(grep -o '^hash [0-9a-f]\{64\}$' "$source/docs/how-to/python.md")" "$place/said"

echo "== two workers, and the command"
there /root/venv/bin/python -c '
import numpy, trireme
x = numpy.random.default_rng(0).normal(size=(200, 4)).astype("f4")
model = "layers: [{dense: 2}]\noptimizer: {rule: sgd, rate: 1e-2}\ntrain: {batch: 20, microbatches: 2, steps: 20}"
runs = [trireme.train(model, x, numpy.arange(200) % 2, workers=workers) for workers in (1, 2)]
assert runs[0].hash == runs[1].hash, runs'

echo "== the module for downloads: found beside the library, though curl is not here"
there /root/venv/bin/python -c '
from trireme._library import lib
lib.tr_data_set_fetch(b"fashion-mnist", b"https://127.0.0.1:9/nothing", b"/root/none", lib.tr_data_set_fetch.argtypes[3](), lib.tr_data_set_fetch.argtypes[4](), None)
said = lib.tr_error_message().decode()
assert "libcurl.so" in said or "127.0.0.1" in said, said'
there /root/venv/bin/trireme train penguins --steps 5 --quiet --out /root/birds

echo "== pip uninstall"
there /root/venv/bin/pip uninstall --quiet --disable-pip-version-check -y trireme
left=$(find "$machine/root/venv" -name '*trireme*')
[ -z "$left" ] || { echo "left: $left" && exit 1; }
echo "all is well on $suite"
