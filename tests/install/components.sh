#!/bin/sh
# components.sh BUILD CMAKE: each component can be installed alone and has only its own files; together they are complete; and
# each can be removed alone, until nothing is left.
set -eu
build=$1 cmake=$2
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT

# files FOLDER: the files in it, by their paths from there
files() {
  (cd "$1" && find . ! -type d | sort)
}
# quietly COMMAND...: its output only if it fails
quietly() {
  "$@" >"$place/log" 2>&1 || { cat "$place/log" && exit 1; }
}
# add [COMPONENT], remove [COMPONENT]: to and from the prefix
add() {
  quietly "$cmake" --install "$build" --prefix "$place/prefix" ${1:+--component "$1"}
}
remove() {
  quietly "$cmake" --build "$build" --target "uninstall${1:+-$1}"
}
# expect COMPONENT FILE...: this component, installed alone, has these files
expect() {
  component=$1
  shift
  echo "== $component"
  add "$component"
  for file in "$@"; do
    [ -n "$(find "$place/prefix" -path "$place/prefix/$file" ! -type d)" ] || { echo "$component has no $file" && exit 1; }
  done
  files "$place/prefix" >"$place/$component.files"
  cat "$place/$component.files" >>"$place/all"
  remove "$component"
  [ -z "$(files "$place/prefix")" ] || { echo "left of $component:" && files "$place/prefix" && exit 1; }
}

expect command bin/trireme 'share/man/man1/trireme.1' 'share/man/man1/trireme-train.1' 'share/man/man5/trireme-model.5' 'share/man/man7/trireme.7' \
  'lib*/trireme/check-device' share/trireme/gpu-check share/bash-completion/completions/trireme share/zsh/site-functions/_trireme share/fish/vendor_completions.d/trireme.fish
expect library 'lib*/libtrireme.so.*'
expect headers include/trireme/trireme.h 'lib*/libtrireme.so' 'lib*/libtrireme.a' 'lib*/pkgconfig/trireme.pc' 'lib*/cmake/trireme/trireme-config.cmake'
expect downloads 'lib*/trireme/trireme-fetch.so'
[ ! -e "$build/modules/trireme-mpi.so" ] || expect mpi 'lib*/trireme/trireme-mpi.so'
expect data share/trireme/models/mnist-quick.yaml share/trireme/data/mnist/train-images-idx3-ubyte.gz share/trireme/data/README.md
if grep -q '^TRIREME_PYTHON_DIR:' "$build/CMakeCache.txt"; then expect python '*/trireme/__init__.py' '*/trireme/_native/lib/libtrireme.so*'; fi

echo "== no file is in two, and together they are all"
[ -z "$(sort "$place/all" | uniq -d)" ]
add
files "$place/prefix" >"$place/whole"
sort "$place/all" | diff - "$place/whole"

echo "== one goes, the others stay; what others put there stays, too"
remove command
sort "$place/all" "$place/command.files" | uniq -u | grep -vxF -f "$place/command.files" >"$place/rest"
files "$place/prefix" | diff "$place/rest" -
echo mine >"$place/prefix/share/trireme/models/mine.yaml"
remove
[ "$(files "$place/prefix")" = ./share/trireme/models/mine.yaml ]
rm "$place/prefix/share/trireme/models/mine.yaml"
add
remove
[ -z "$(ls -A "$place/prefix")" ]

echo "== below another root, as packages are made"
DESTDIR=$place/root quietly "$cmake" --install "$build" --prefix /usr --component data
[ -e "$place/root/usr/share/trireme/models/mnist-quick.yaml" ]
DESTDIR=$place/root remove data
[ -z "$(find "$place/root" ! -type d)" ]
[ ! -e "$place/root/usr/share/trireme" ]
echo "each alone, and nothing left"
