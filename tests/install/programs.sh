#!/bin/sh
# programs.sh BUILD SOURCE CMAKE CC: programs outside this tree find the library by pkg-config and by CMake, shared and static, and the
# Python package finds it where both are installed; also in a tree that was moved.
set -eu
build=$1 source=$2 cmake=$3 cc=$4
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
prefix=$place/moved
cd "$place"

"$cmake" --install "$build" --prefix "$place/prefix" >install.log || { cat install.log; exit 1; }
mv "$place/prefix" "$prefix"
library=$(dirname "$(find "$prefix" -name libtrireme.so)")
PKG_CONFIG_PATH=$library/pkgconfig
export PKG_CONFIG_PATH
model=$prefix/share/trireme/models/mnist-quick.yaml

# hash_of PROGRAM: trains two steps with it
hash_of() {
  rm -rf run
  "$1" "$model" run train.epochs=0 train.steps=2 | sed -n 's/.*\([0-9a-f]\{64\}\).*/\1/p'
}

echo "== pkg-config, shared"
[ "$(pkg-config --modversion trireme)" = "$("$prefix/bin/trireme" version | sed 's/^trireme //')" ]
# shellcheck disable=SC2046 # a list of words
"$cc" -std=c99 "$source/examples/01-train.c" -o shared $(pkg-config --cflags --libs trireme)
LD_LIBRARY_PATH=$library
export LD_LIBRARY_PATH
hash=$(hash_of ./shared)
[ ${#hash} = 64 ]

echo "== the module for downloads, from a program of others: beside the library"
cat >fetch.c <<'END'
#include <stdio.h>
#include <trireme/trireme.h>

int main(void)
{
    tr_status status = tr_data_set_fetch("fashion-mnist", "https://127.0.0.1:9/nothing", "none", NULL, NULL, NULL);
    puts(tr_error_message());
    return status == TR_EIO ? 0 : 1;
}
END
# shellcheck disable=SC2046 # a list of words
"$cc" -std=c99 fetch.c -o fetch $(pkg-config --cflags --libs trireme)
./fetch | grep 127.0.0.1

echo "== pkg-config, static: the library alone, and every library"
mkdir static
mv "$library/libtrireme.so" static/
# shellcheck disable=SC2046 # a list of words
"$cc" -std=c99 "$source/examples/01-train.c" -o static/library $(pkg-config --static --cflags --libs trireme)
mv static/libtrireme.so "$library/"
if readelf -d static/library | grep -F libtrireme; then exit 1; fi
# It has the names that the shared one has; all others a program may use for itself.
nm --extern-only --defined-only "$library/libtrireme.a" | awk 'NF == 3 { print $3 }' | sort >static/names
nm --dynamic --defined-only "$library/libtrireme.so" | awk '$2 == "T" { sub("@.*", "", $3); print $3 }' | sort | diff - static/names
grep -q '^trireme_train$\|^tr_source_open$' static/names
# shellcheck disable=SC2046 # a list of words
if "$cc" -static -std=c99 "$source/examples/01-train.c" -o static/whole $(pkg-config --static --cflags --libs trireme) 2>static/log; then
  if readelf -d static/whole | grep -F NEEDED; then exit 1; fi
  [ "$(hash_of static/whole)" = "$hash" ]
else
  # Not every library comes with an archive (Debian 12 has none of ISA-L).
  grep -q 'cannot find -l' static/log || { cat static/log && exit 1; }
  echo "skipped: a program without shared libraries: $(grep -o 'cannot find -l[a-z0-9-]*' static/log | sort -u | tr '\n' ' ')"
fi

echo "== find_package, shared and static; 0.1 is enough for every 0, and 1.0 is not there"
mkdir project
cat >project/CMakeLists.txt <<END
cmake_minimum_required(VERSION 3.18)
project(stranger C)
find_package(trireme 1.0 QUIET)
if(trireme_FOUND)
  message(FATAL_ERROR "version 1.0 was found")
endif()
find_package(trireme 0.1 REQUIRED COMPONENTS static)
add_executable(shared $source/examples/01-train.c)
target_link_libraries(shared PRIVATE trireme::trireme)
add_executable(static $source/examples/01-train.c)
target_link_libraries(static PRIVATE trireme::static)
END
{
  "$cmake" -S project -B project/build -DCMAKE_C_COMPILER="$cc" -DCMAKE_PREFIX_PATH="$prefix" &&
    "$cmake" --build project/build
} >project.log 2>&1 || { cat project.log; exit 1; }
[ "$(hash_of project/build/shared)" = "$hash" ]
[ "$(hash_of project/build/static)" = "$hash" ]
if readelf -d project/build/static | grep -F libtrireme; then exit 1; fi

echo "== the loader's rule is CMake's: the major version is the number of the SONAME"
soname=$(readelf -d "$library/libtrireme.so" | sed -n 's/.*SONAME.*\[libtrireme\.so\.\([0-9]*\)\]/\1/p')
[ "$soname" = "$(pkg-config --modversion trireme | sed 's/\..*//')" ]

echo "== Python"
package=$(find "$prefix" -path '*/trireme/_native')
if [ -n "$package" ] && python3 -c 'import numpy' 2>/dev/null; then
  unset LD_LIBRARY_PATH
  PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=${package%/trireme/_native} python3 -c '
import os, sys, trireme
assert os.path.realpath(trireme.__file__).startswith(sys.argv[1]), trireme.__file__
assert str(trireme.shipped().resolve()) == sys.argv[1] + "/share/trireme", trireme.shipped()' "$(realpath "$prefix")"
  [ "$("$package/bin/trireme" version)" = "$("$prefix/bin/trireme" version)" ]
else
  echo "skipped: Python with NumPy is not here"
fi
echo "found by all"
