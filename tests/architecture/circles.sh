#!/bin/sh
# circles.sh ROOT: refuses headers of include/, src/ and cli/ that include each other in a circle, whichever is read first.
set -eu
cd "$1"
pairs=$(find include src cli -name '*.h' | sort | xargs grep -nE '^ *# *include *"' | sed -E 's/^([^:]*):[0-9]*: *# *include *"([^"]*)".*/\1 \2/' |
  awk '{ header = $2
    if (header ~ /^trireme\//) header = "include/" header
    else if (header !~ /^cli\//) header = "src/" header
    print $1, header }')
[ -n "$pairs" ] || { echo "no header includes another"; exit 1; }
# tsort names the members of a circle, and where one begins.
if ! said=$(printf '%s\n' "$pairs" | tsort 2>&1 >/dev/null) || [ -n "$said" ]; then
  echo "headers that include each other in a circle:"
  printf '%s\n' "$said" | sed -n 's/^tsort: \([^-].*\.h\)$/  \1/p'
  exit 1
fi
