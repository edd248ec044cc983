#!/bin/sh
# aarch64.sh SOURCE BUILD CMAKE TRIREME: builds everything for 64-bit ARM into BUILD, and runs it under an emulator:
#   - the tests of the devices (NEON kernels and plain C against ref, byte for byte; the bits of ref against recorded ones),
#   - whole training runs, whose hashes must be those of TRIREME, the program built for this machine,
#   - the networks of those runs exported as C, whose predictions must be the same on both.
# The jobs are written in JSON, which stand_ins/yaml.h can read.
set -eu
source=$1 build=$2 cmake=$3 native=$4
for tool in aarch64-linux-gnu-gcc qemu-aarch64; do
  command -v $tool >/dev/null || { echo "skipped: $tool was not found (gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user)"; exit 0; }
done
emulate() { qemu-aarch64 -L /usr/aarch64-linux-gnu "$@"; }

echo "== building for aarch64"
tests="vec_math math ref ref_bits equality"
targets=$(for test in $tests; do printf 'test_device_%s ' "$test"; done)
mkdir -p "$build"
# shellcheck disable=SC2086 # a list of words
{
  "$cmake" -S "$source" -B "$build" -DCMAKE_BUILD_TYPE=Release -DTRIREME_WERROR=ON \
    -DCMAKE_TOOLCHAIN_FILE="$source/tests/cross/aarch64.cmake" \
    -DTRIREME_DEPENDENCIES="$source/tests/cross/stand_ins.cmake"
  "$cmake" --build "$build" -j "$(getconf _NPROCESSORS_ONLN)" --target trireme $targets
} >"$build/build.log" 2>&1 || { cat "$build/build.log"; exit 1; }

for test in $tests; do
  echo "== test_device_$test"
  emulate "$build/tests/test_device_$test" >"$build/$test.log" 2>&1 || { cat "$build/$test.log"; exit 1; }
  tail -n 1 "$build/$test.log"
done

place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
cp "$source"/tests/cross/jobs/*.json "$place"
cd "$place"
"$native" data convert mnist digits --format idx --part test --dir "$source/data"
head -n 300 "$source/data/sst2/train.tsv" >words.tsv


for job in *.json; do
  expected=$("$native" train "$job" --overwrite --out run | sed -n 's/^hash *//p')
  [ ${#expected} = 64 ]
  echo "== $job: $expected"
  for way in "--isa neon --threads 1" "--isa neon --threads 3" "--isa plain" "--device ref"; do
    # shellcheck disable=SC2086 # a list of words
    got=$(emulate "$build/cli/trireme" train "$job" --overwrite --out run $way | sed -n 's/^hash *//p')
    echo "$way: $([ "$got" = "$expected" ] && echo the same || echo "$got")"
    [ "$got" = "$expected" ]
  done
  "$native" export run --c network.c --name net >/dev/null
  "${CC:-cc}" -std=c99 -O2 -I. -o predict "$source/tests/cross/predict.c" network.c -lm
  aarch64-linux-gnu-gcc -std=c99 -O3 -I. -o predict-aarch64 "$source/tests/cross/predict.c" network.c -lm
  ./predict >expected.txt
  emulate ./predict-aarch64 >got.txt
  cmp expected.txt got.txt
  echo "exported as C: the same"
done
