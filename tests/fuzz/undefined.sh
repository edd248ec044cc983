#!/bin/sh
# undefined.sh SOURCE BUILD CMAKE: the seeds of all targets, and some damaged copies of them, under clang's checks for undefined
# behaviour. GCC lacks some of them, such as that of zero added to a null pointer. The build is kept for the next run.
set -eu
source=$1 build=$2 cmake=$3
clang=$(command -v clang) || {
  echo "skipped: there is no clang, whose checks for undefined behaviour the seeds are to run under"
  exit 77
}
mkdir -p "$build"
# Kernels for one instruction set: readers of files do not run them.
"$cmake" -S "$source" -B "$build" -DCMAKE_C_COMPILER="$clang" -DCMAKE_BUILD_TYPE=RelWithDebInfo \
  -DTRIREME_SANITIZE=undefined -DTRIREME_ONLY_ISAS=plain -DTRIREME_BUILD_TESTS=ON >"$build/log" 2>&1 &&
  "$cmake" --build "$build" --parallel 2 --target test_fuzz_corpus >>"$build/log" 2>&1 || {
  tail -n 40 "$build/log"
  exit 1
}
UBSAN_OPTIONS=print_stacktrace=1 exec "$build/tests/test_fuzz_corpus" 100
