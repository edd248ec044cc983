#!/bin/sh
# size.sh PROGRAM MOST [WHY]: without its symbols the program has at most so many bytes. WHY says why a build is not measured.
set -eu
program=$1 most=$2 why=${3:-}
[ -z "$why" ] || { echo "skipped: $why" && exit 77; }
command -v strip >/dev/null || { echo "skipped: there is no strip" && exit 77; }
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
strip -o "$place/program" "$program"
size=$(stat -c %s "$place/program")
echo "$size of $most bytes"
[ "$size" -le "$most" ] || { echo "too large: docs/lab/2026-11-27-size.md says where the bytes are and which ways there are to save some" && exit 1; }
