#!/bin/sh
# install.sh BUILD SOURCE CMAKE CC: installs a build into an empty folder and uses it as a stranger would: the command, a
# program found through pkg-config, one found through CMake, the headers each alone in C99.
set -eu
build=$1 source=$2 cmake=$3 cc=$4
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
prefix=$place/prefix
cd "$place"

echo "== installing"
"$cmake" --install "$build" --prefix "$prefix" >install.log || { cat install.log; exit 1; }
library=$(dirname "$(find "$prefix" -name libtrireme.so)")
LD_LIBRARY_PATH=$library
PKG_CONFIG_PATH=$library/pkgconfig
export LD_LIBRARY_PATH PKG_CONFIG_PATH

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
# Every name is one of ours and has a version, whose own names are no functions.
if nm -D --defined-only --with-symbol-versions "$library/libtrireme.so" | awk '$2 != "A" { print $NF }' |
  grep -Ev '^tr_[a-z0-9_]*@@TRIREME_[0-9.]*$'; then exit 1; fi

echo "== pkg-config"
[ "$(pkg-config --modversion trireme)" = "$("$prefix/bin/trireme" version | sed 's/^trireme //')" ]
# shellcheck disable=SC2046 # a list of words
"$cc" -std=c99 "$source/examples/01-train.c" -o train $(pkg-config --cflags --libs trireme)
./train "$prefix/share/trireme/models/mnist-quick.yaml" example train.epochs=0 train.steps=2

echo "== find_package"
mkdir project
cat >project/CMakeLists.txt <<END
cmake_minimum_required(VERSION 3.25)
project(stranger C)
find_package(trireme 0.1 REQUIRED)
add_executable(predict $source/examples/02-predict.c)
target_link_libraries(predict PRIVATE trireme::trireme)
END
{
  "$cmake" -S project -B project/build -DCMAKE_C_COMPILER="$cc" -DCMAKE_PREFIX_PATH="$prefix"
  "$cmake" --build project/build
} >project.log 2>&1 || { cat project.log; exit 1; }
project/build/predict example 1
echo "installed and used"
