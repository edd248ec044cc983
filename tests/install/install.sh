#!/bin/sh
# install.sh BUILD SOURCE CMAKE CC: installs a build into an empty folder and uses the command like a new user, also after the
# folder was moved; checks the headers, each alone in C99, and the exports of the library.
set -eu
build=$1 source=$2 cmake=$3 cc=$4
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
prefix=$place/prefix
cd "$place"

echo "== installing"
"$cmake" --install "$build" --prefix "$prefix" >install.log || { cat install.log; exit 1; }
library=$(dirname "$(find "$prefix" -name libtrireme.so)")

echo "== no file knows where it was built"
if grep -rlF -e "$build" -e "$source" "$prefix"; then exit 1; fi

echo "== the command, with the job and the data that were installed"
"$prefix/bin/trireme" version
"$prefix/bin/trireme" train "$prefix/share/trireme/models/mnist-quick.yaml" --steps 2 --quiet --out run
"$prefix/bin/trireme" data verify --dir "$prefix/share/trireme/data" >/dev/null

echo "== the data of every model, as far as they ship"
models=$("$prefix/bin/trireme" models --json | sed 's/.*"path":"\([^"]*\)".*/\1/')
[ "$(echo "$models" | wc -l)" -eq "$(find "$source/models" -name '*.yaml' | wc -l)" ]
found=0
for path in $(echo "$models" | xargs grep -oh '\.\./data/[^] ,}]*' | sed 's|^\.\./||' | sort -u); do
  [ -e "$source/$path" ] || continue
  [ -e "$prefix/share/trireme/$path" ] || { echo "$path is not installed"; exit 1; }
  found=$((found + 1))
done
[ "$found" -ge 9 ]
"$prefix/bin/trireme" train penguins --steps 2 --quiet --out birds
"$prefix/bin/trireme" eval birds --set-name validation >/dev/null

echo "== both by name, also after a move"
"$prefix/bin/trireme" models | grep "^mnist-quick  *[A-Z]"
mv "$prefix" "$place/moved"
"$place/moved/bin/trireme" train mnist-quick --steps 2 --quiet --out named
"$place/moved/bin/trireme" inspect mnist-quick | grep "$place/moved/share/trireme/models/mnist-quick.yaml"
"$place/moved/bin/trireme" data verify sst2 | grep "$place/moved/share/trireme/data/sst2"
if command -v man >/dev/null; then
  [ "$(MANPATH=$place/moved/share/man man -w trireme-train)" = "$place/moved/share/man/man1/trireme-train.1" ]
else
  echo "skipped: there is no man"
fi
bash -c '. "$1" && complete -p trireme' bash "$place/moved/share/bash-completion/completions/trireme"
mv "$place/moved" "$prefix"

echo "== its module for downloads: found and run, though it gets nowhere"
proxy=http://127.0.0.1:9
said=$(http_proxy=$proxy https_proxy=$proxy no_proxy='' "$prefix/bin/trireme" data fetch fashion-mnist 2>&1) && exit 1
case $said in
  *"fetch http"*) ;;
  *) echo "$said"; exit 1 ;;
esac

echo "== headers, each alone"
for header in "$prefix"/include/trireme/*.h; do
  echo "#include <trireme/$(basename "$header")>" >header.c
  "$cc" -std=c99 -pedantic -Wall -Wextra -Werror -fsyntax-only -I "$prefix/include" header.c
  if command -v c++ >/dev/null; then
    c++ -x c++ -std=c++11 -pedantic -Wall -Wextra -Werror -fsyntax-only -I "$prefix/include" header.c
  fi
done

echo "== only our own names are exported"
# Every name is one of ours and has a version; the names of versions are not functions.
if nm -D --defined-only --with-symbol-versions "$library/libtrireme.so" | awk '$2 != "A" { print $NF }' |
  grep -Ev '^tr_[a-z0-9_]*@@TRIREME_[0-9.]*$'; then exit 1; fi
echo "installed and used"
