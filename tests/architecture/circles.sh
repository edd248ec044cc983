#!/bin/sh
# circles.sh ROOT: refuses headers of include/, src/ and cli/ that include each other in a circle; and circles of units, each a
# source with the header of its name, that include one another's headers.
set -eu
cd "$1"
# FILE HEADER, a line each
pairs=$(find include src cli -name '*.[ch]' | sort | xargs grep -nE '^ *# *include *"' | sed -E 's/^([^:]*):[0-9]*: *# *include *"([^"]*)".*/\1 \2/' |
  awk '{ header = $2
    if (header ~ /^trireme\//) header = "include/" header
    else if (header !~ /^cli\//) header = "src/" header
    print $1, header }')

# refuse_circles WHAT ENDING: among the pairs on stdin; tsort prints the members of a circle, and where it begins
refuse_circles() {
  if ! said=$(tsort 2>&1 >/dev/null) || [ -n "$said" ]; then
    echo "$1 that include each other in a circle:"
    printf '%s\n' "$said" | sed -n "s/^tsort: \([^-].*\)$/  \1/p"
    exit 1
  fi
}
headers=$(printf '%s\n' "$pairs" | awk '$1 ~ /\.h$/')
[ -n "$headers" ] || { echo "no header includes another"; exit 1; }
printf '%s\n' "$headers" | refuse_circles headers

# A header without a source of its name is not a unit: several sources share it.
units=$(find src cli -name '*.c' | sort | sed 's/\.c$//')
{ printf '%s\n' "$units"; echo; printf '%s\n' "$pairs"; } |
  awk 'NF == 1 { unit[$1] = 1 }
    NF == 2 { sub(/\.[ch]$/, "", $1); sub(/\.h$/, "", $2); if ($1 != $2 && $1 in unit && $2 in unit) print $1, $2 }' |
  sort -u | refuse_circles units
