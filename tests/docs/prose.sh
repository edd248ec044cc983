#!/bin/sh
# prose.sh ROOT: holds the pages of a tree to plain words and short sentences.
#
#   - Prose is at most 120 characters wide. Tables, code and invisible comments are as wide as they must be.
#   - Of the sentences of a page at most one in twenty has more than 30 words, and none has more than 45.
#   - Words that tell history (no longer, formerly, ...) stand in docs/lab and CHANGELOG.md alone; some turns of speech never.
# The parts of a page that are made from option tables or scripts are left out, as are docs/lab for history and CHANGELOG.md.
set -eu
cd "$1"
list=$(mktemp)
trap 'rm -f "$list"' EXIT
if [ -e .git ]; then git ls-files; else find . -type f | sed 's,^\./,,'; fi |
  grep -E '^(docs/.*|README|CONTRIBUTING|SECURITY)(\.md)$' | grep -v '^docs/reference/command\.md$' >"$list"
xargs awk <"$list" '
function words(text,   n, parts) { return split(text, parts, / +/) }

# A paragraph or an item of a list is at an end: its sentences are counted.
function finish(   n, i, parts, text, count) {
  text = paragraph; paragraph = ""
  if (text == "") return
  gsub(/`[^`]*`/, "X", text)              # code counts as one word
  gsub(/\]\([^)]*\)/, "]", text)          # links without their target
  gsub(/(e\.g|i\.e|etc)\./, "X", text)
  n = split(text, parts, /[.!?:;]( |$)/)
  for (i = 1; i <= n; i++) {
    sub(/^[ *_>-]+/, "", parts[i])
    count = words(parts[i])
    if (count < 2) continue
    sentences[page]++
    if (count > 30) lengthy[page]++
    if (count > 45) { print start ": a sentence of " count " words: " substr(parts[i], 1, 70) "..."; bad = 1 }
  }
}
FNR == 1 { finish(); page = FILENAME; code = 0; made = 0; pages++ }
/^<!-- (From here on|notebook:)/ { finish(); made = 1 }
/^<!-- end -->/ { made = 0 }
made { next }
/^ *```/ { finish(); code = !code; next }
code || /^    / && paragraph == "" { next }
/^ *(\||<|#|!\[)/ || /^ *$/ { finish(); next }
{
  if (length($0) > 120) { print FILENAME ":" FNR ": " length($0) " characters; wrap prose at 120"; bad = 1 }
  if (FILENAME !~ /^docs\/lab\// && match(tolower($0), /no longer|not any more|any longer|formerly|used to be|nowadays|until recently/)) {
    print FILENAME ":" FNR ": \"" substr($0, RSTART, RLENGTH) "\" tells history; say what is so"; bad = 1
  }
  if (match(tolower($0), /so manieth|whoever|what is wrong with|in the place of|takes? it up|taken up again|the other way round|by turns|as long as it takes/)) {
    print FILENAME ":" FNR ": \"" substr($0, RSTART, RLENGTH) "\": say it plainly"; bad = 1
  }
  if ($0 ~ /^ *([-*]|[0-9]+\.) /) finish()
  if (paragraph == "") start = FILENAME ":" FNR
  paragraph = paragraph " " $0
}
END {
  finish()
  for (page in sentences)
    if (lengthy[page] * 20 > sentences[page] && lengthy[page] > 1) {
      print page ": " lengthy[page] " of " sentences[page] " sentences have more than 30 words"; bad = 1
    }
  if (pages < 10) { print "only " pages + 0 " pages were found"; bad = 1 }
  exit bad
}'
