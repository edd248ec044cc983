#!/bin/sh
# hangs.sh PROGRAM: shows that a test program that hangs ends by itself, fails, and prints where each of its threads is.
set -eu
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT

status=0
TRIREME_TEST_SECONDS=1 "$1" 2>"$place/log" || status=$?
cat "$place/log"
[ $status -gt 128 ] || { echo "ends with $status, not by a signal" && exit 1; }
grep -q 'hangs: no end after 1 s' "$place/log"
[ "$(grep -c '^thread [0-9]*:$' "$place/log")" = 2 ]
! grep -q 'does not answer' "$place/log"
command -v addr2line >/dev/null || { echo "no addr2line here: functions have no names" && exit 0; }
grep -q '^main ' "$place/log"
grep -q '^wait_beside ' "$place/log"
