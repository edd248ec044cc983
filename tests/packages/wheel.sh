#!/bin/sh
# wheel.sh SOURCE FOLDER: builds the source distribution and the wheel into FOLDER, and checks their contents.
set -eu
source=$1 folder=$2
why=$(python3 -c 'import venv, ensurepip' 2>&1) || { echo "skipped: python3 without venv: $why" && exit 77; }

rm -rf "$folder"
"$source/tools/package" wheel "$folder"
python3 - "$folder" <<'END'
import pathlib
import sys
import tarfile
import zipfile

(wheel,) = pathlib.Path(sys.argv[1]).glob("*.whl")
# It fits every Python 3, and names the oldest C library that it supports.
assert "-py3-none-manylinux" in wheel.name, wheel.name
files = zipfile.ZipFile(wheel)
names = files.namelist()
for wanted in ("trireme/py.typed", "trireme/layers.py", "trireme/_native/bin/trireme", "trireme/_native/share/trireme/models/mnist-quick.yaml"):
    assert wanted in names, wanted
libraries = [name.rsplit("/", 1)[1] for name in names if ".so" in name]
assert any(name.startswith("libtrireme") for name in libraries), libraries
assert not any(name.startswith(("libmpi", "libcurl", "libc.", "libc-")) for name in libraries), libraries
# Each wheel is made in a folder with a random name, which must not be in any of its files.
for name in names:
    assert b"/wheel/platlib" not in files.read(name), name
meta = files.read(next(name for name in names if name.endswith("METADATA"))).decode()
for wanted in ("Requires-Python: >=3.9", "Programming Language :: Python :: 3.14", "Requires-Dist: numpy"):
    assert wanted in meta, wanted
(source,) = pathlib.Path(sys.argv[1]).glob("*.tar.gz")
members = [name.split("/", 1)[1] for name in tarfile.open(source).getnames() if "/" in name]
for wanted in ("pyproject.toml", "PKG-INFO", "CMakeLists.txt", "LICENSE", "src/CMakeLists.txt", "python/trireme/layers.py"):
    assert wanted in members, wanted
folders = {name.split("/")[0] for name in members if "/" in name}
assert folders <= set("cli cmake data docs examples include models python src".split()), folders
print(wheel.name, wheel.stat().st_size >> 20, "MiB,", len(names), "files")
END
