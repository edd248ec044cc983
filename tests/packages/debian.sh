#!/bin/sh
# debian.sh SUITE SOURCE WHEELS: on a fresh Debian of this suite, with Python and nothing else, installs the wheel of WHEELS in a
# virtual environment and reads the digits, to 99 % and with the hash that the docs name.
#
# The machine is a directory that debootstrap fills from the mirror of this system, or from TRIREME_DEBIAN_MIRROR; it goes when
# the test ends. It needs root. pip asks the index that it is told to ask here (PIP_INDEX_URL, PIP_CERT, proxies).
set -eu
suite=$1 source=$2 wheels=$3
[ "$(id -u)" = 0 ] || { echo "skipped: only root can make a fresh machine" && exit 77; }
command -v debootstrap >/dev/null || { echo "skipped: debootstrap is not installed" && exit 77; }
wheel=$(find "$wheels" -name '*.whl' 2>/dev/null | head -n 1)
[ -n "$wheel" ] || { echo "skipped: no wheel was built" && exit 77; }

mirror=${TRIREME_DEBIAN_MIRROR:-$(cat /etc/apt/sources.list /etc/apt/sources.list.d/* 2>/dev/null |
  sed -n 's/^URIs: *\([^ ]*\).*/\1/p; s/^deb *\(\[[^]]*\] *\)\{0,1\}\([^ ]*\).*/\2/p' | head -n 1)}
place=$(mktemp -d)
machine=$place/machine
leave() {
  for mounted in proc dev/shm dev; do umount -l "$machine/$mounted" 2>/dev/null || true; done
  rm -rf --one-file-system "$place"
}
trap leave EXIT
trap 'exit 1' INT TERM

echo "== Debian $suite from ${mirror:-its own mirror}"
debootstrap --variant=minbase --include=python3,python3-venv,ca-certificates "$suite" "$machine" ${mirror:+"$mirror"} >"$place/log" 2>&1 ||
  { tail -n 5 "$place/log" && exit 1; }
cp -L /etc/resolv.conf /etc/hosts "$machine/etc/"
for bundle in /etc/ssl/certs/ca-certificates.crt "${PIP_CERT:-}"; do
  [ ! -f "$bundle" ] || { mkdir -p "$machine$(dirname "$bundle")" && cp -L "$bundle" "$machine$bundle"; }
done
mount -t proc proc "$machine/proc"
mount --rbind /dev "$machine/dev" 2>/dev/null || mount --bind /dev "$machine/dev"

# there COMMAND...: there, with the network's settings of here and nothing else
there() {
  env -i HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin LANG=C.UTF-8 \
    $(env | grep -iE '^((https?|no)_proxy|PIP_(CERT|INDEX_URL|DEFAULT_TIMEOUT))=' || true) chroot "$machine" "$@" </dev/null
}

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
grep "$(grep -o '^hash [0-9a-f]\{64\}$' "$source/docs/python.md")" "$place/said"

echo "== two workers, and the command"
there /root/venv/bin/python -c '
import numpy, trireme
x = numpy.random.default_rng(0).normal(size=(200, 4)).astype("f4")
model = "layers: [{dense: 2}]\noptimizer: {rule: sgd, rate: 1e-2}\ntrain: {batch: 20, microbatches: 2, steps: 20}"
runs = [trireme.train(model, x, numpy.arange(200) % 2, workers=workers) for workers in (1, 2)]
assert runs[0].hash == runs[1].hash, runs'
there /root/venv/bin/trireme train penguins --steps 5 --quiet --out /root/birds
echo "all is well on $suite"
