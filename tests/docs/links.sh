#!/bin/sh
# links.sh ROOT: refuses links of pages to missing files or headings, and names of missing pages (docs/roadmap.md) in any other
# file. Addresses on the network are not followed. CHANGELOG.md, which describes the past, is left out.
set -eu
cd "$1"
list=$(mktemp)
trap 'rm -f "$list"' EXIT
if [ -e .git ]; then git ls-files; else find . -type f | sed 's,^\./,,'; fi >"$list"
bad=0

# Links: the anchor of a heading is its text in small letters, without signs, with - for blanks, as in GitHub and MkDocs.
grep '\.md$' "$list" | grep -v '^CHANGELOG\.md$' | xargs awk -v list="$list" '
function slug(text) {
  gsub(/`/, "", text); text = tolower(text)
  gsub(/[^a-z0-9 _-]/, "", text); gsub(/ /, "-", text)
  return text
}
# The path of a target, seen from a folder, without . and ..
function resolve(folder, target,   n, i, parts, out, depth) {
  n = split(folder target, parts, "/"); depth = 0
  for (i = 1; i <= n; i++) {
    if (parts[i] == "" || parts[i] == ".") continue
    if (parts[i] == "..") { depth--; continue }
    out[++depth] = parts[i]
  }
  target = ""
  for (i = 1; i <= depth; i++) target = target (i > 1 ? "/" : "") out[i]
  return target
}
BEGIN { while ((getline path <list) > 0) { there[path] = 1; while (sub(/\/[^\/]*$/, "", path)) there[path] = 1 } }
FNR == 1 { code = 0; folder = FILENAME; if (!sub(/[^\/]*$/, "", folder)) folder = "" }
/^ *```/ { code = !code; next }
code { next }
/^#+ / {
  heading = $0; sub(/^#+ +/, "", heading); heading = slug(heading)
  times = seen[FILENAME, heading]++
  anchor[FILENAME "#" heading (times ? "-" times : "")] = 1
}
{
  line = $0
  gsub(/`[^`]*`/, "", line)
  while (match(line, /\]\([^) ]+\)/) || match(line, /(src|srcset)="[^"]+"/)) {
    target = substr(line, RSTART, RLENGTH); line = substr(line, RSTART + RLENGTH)
    sub(/^\]\(/, "", target); sub(/\)$/, "", target); sub(/^(src|srcset)="/, "", target); sub(/"$/, "", target)
    if (target ~ /^[a-z]+:/) continue
    links++
    page = FILENAME
    if (target ~ /^#/) { want[FILENAME ":" FNR " " FILENAME target] = 1; continue }
    name = target; sub(/#.*/, "", name)
    file = resolve(folder, name)
    if (!(file in there)) { print FILENAME ":" FNR ": no file " name; bad = 1; continue }
    if (target ~ /#/) { sub(/.*#/, "", target); want[FILENAME ":" FNR " " file "#" target] = 1 }
  }
}
END {
  for (key in want) {
    split(key, part, " ")
    if (!(part[2] in anchor)) { print part[1] ": no heading " part[2]; bad = 1 }
  }
  if (links < 5) { print "only " links + 0 " links were found"; bad = 1 }
  exit bad
}' || bad=1

# Names of pages elsewhere.
grep -vE '^CHANGELOG\.md$|^tests/docs/|^tests/architecture/|/corpus/|\.(png|gz|npy|svg)$' "$list" | xargs grep -noE '(^|[^A-Za-z0-9_./-])docs/[a-z0-9_/-]+\.md' /dev/null |
  sed 's/^\([^:]*:[0-9]*\):.*\(docs\/[a-z0-9_\/-]*\.md\)$/\1 \2/' | while read -r place page; do
  [ -e "$page" ] || echo "$place: no file $page"
done >"$list.pages"
if [ -s "$list.pages" ]; then
  cat "$list.pages"
  bad=1
fi
rm -f "$list.pages"
exit $bad
