#!/bin/sh
# paths.sh ROOT: refuses paths and names of missing files in comments, docs, lists and messages of a tree.
#
#   - A path with a folder (data/order/order.h, `src/nn/layers/table.h`, docs/roadmap.md) is one from the root, from src/, tests/,
#     docs/, include/ or cli/, or from the folder of the file that names it.
#   - A name without a folder, in backquotes or after "see", is that of some file of the tree.
# Only endings of sources are looked at, and only files that git tracks. CHANGELOG.md, which describes the past, is left out.
set -eu
cd "$1"
list=$(mktemp)
trap 'rm -f "$list"' EXIT
if [ -e .git ]; then git ls-files; else find . -type f | sed 's,^\./,,'; fi >"$list"
[ -s "$list" ] || { echo "no file in $1" >&2; exit 1; }
grep -E '\.(c|h|inc|k|md|sh|cmake)$|CMakeLists\.txt$|^tools/mutations$' "$list" | grep -vE '^CHANGELOG\.md$|^docs/lab/|/corpus/|^tests/architecture/|^debian/' |
  xargs grep -noE '(see |`)?[A-Za-z0-9_./*-]*[A-Za-z0-9_*-]\.(c|h|inc|k|pb-c\.h|c\.in)([^A-Za-z0-9_.(-]|\.$|\. |$)' /dev/null | awk -v list="$list" '
BEGIN {
  while ((getline path <list) > 0) {
    there[path] = 1
    name = path; sub(/.*\//, "", name); known[name] = 1
  }
  split("src/ tests/ docs/ include/ cli/ examples/ bench/", root, " ")
  # Files that tools and programs write, and headers of other projects.
  split("config.h yaml.h zlib.h model.c network.c net.c digits.c", other, " ")
  for (i in other) elsewhere[other[i]] = 1
}
{
  match($0, /^[^:]*:[0-9]+:/)
  place = substr($0, 1, RLENGTH - 1); word = substr($0, RLENGTH + 1)
  marked = word ~ /^(see |`)/
  sub(/^(see |`)/, "", word)
  sub(/[^A-Za-z0-9_]*$/, "", word)
  sub(/^\.\//, "", word)
  if (word ~ /[*]/ || word ~ /[A-Z][A-Z][A-Z]/ && word !~ /CMake|README/ || word ~ /^\// || word ~ /pb-c\.h$/ || word ~ /^-/) next
  seen++
  file = place; sub(/:.*/, "", file)
  folder = file; if (!sub(/[^\/]*$/, "", folder)) folder = ""
  if (word !~ /\//) {
    if (marked && !(word in known) && !(word in elsewhere)) { print place ": there is no file " word; bad = 1 }
    next
  }
  first = word; sub(/\/.*/, "", first)
  # Paths of systems and of other projects.
  if (first !~ /^(src|tests|docs|include|cli|examples|bench|base|tensor|device|optim|nn|io|data|comm|checkpoint|job|strategy|train|export|report|plan|support|\.\.)$/) next
  found = (word in there) || ((folder word) in there)
  for (i in root) found = found || ((root[i] word) in there)
  if (word ~ /^\.\.\//) found = 1
  if (!found) { print place ": there is no file " word; bad = 1 }
}
END {
  if (!seen) { print "no path was found"; bad = 1 }
  exit bad
}'
