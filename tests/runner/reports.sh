#!/bin/sh
# reports.sh CTEST PROGRAM: shows that ctest, which ./check ends with, reports each way of failing with its exit code, and does
# not report tests that pass.
set -eu
ctest=$1 program=$2
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT

# outcome HOW: ctest's report of one test
outcome() {
  echo "add_test(one \"$program\" $1)" >"$place/CTestTestfile.cmake"
  if "$ctest" --test-dir "$place" >"$place/log" 2>&1; then echo passed; else echo failed; fi
}

for how in pass compare crash setup; do
  expected=failed
  [ $how != pass ] || expected=passed
  got=$(outcome $how)
  echo "$how: $got"
  [ "$got" = $expected ] || { cat "$place/log"; exit 1; }
done
