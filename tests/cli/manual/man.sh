#!/bin/sh
# man.sh TRIREME: every command has a page in the manual, mandoc has no complaint about it, and it is readable in 80 columns.
# Without mandoc the test is skipped.
set -eu
trireme=$1
command -v mandoc >/dev/null || { echo "skipped: there is no mandoc here" >&2; exit 77; }
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
SOURCE_DATE_EPOCH=1700000000 "$trireme" help --man "$place/a"
SOURCE_DATE_EPOCH=1700000000 "$trireme" help --man "$place/b"
diff -r "$place/a" "$place/b" >&2 || { echo "the same time gives other pages" >&2; exit 1; }
grep -q '2023-11-14' "$place/a/man1/trireme.1" || { echo "SOURCE_DATE_EPOCH is not heard" >&2; exit 1; }
for page in man1/trireme.1 man1/trireme-train.1 man1/trireme-data.1 man1/trireme-data-list.1 man5/trireme-model.5 man7/trireme.7; do
  [ -s "$place/a/$page" ] || { echo "$page is missing" >&2; exit 1; }
done
"$trireme" help | sed -n '/^Commands:/,/^$/s/^  \([a-z]*\) .*/\1/p' | while read -r name; do
  [ -s "$place/a/man1/trireme-$name.1" ] || { echo "no page for $name" >&2; exit 1; }
done
bad=0
for page in "$place"/a/man*/*; do
  mandoc -Tlint -W base "$page" >"$place/lint" 2>&1 || true
  if [ -s "$place/lint" ]; then
    head -5 "$place/lint" >&2
    bad=1
  fi
  mandoc -Tutf8 -O width=78 "$page" | sed 's/.\x08//g' >"$place/text"
  wide=$(awk 'length($0) > 80' "$place/text" | head -1)
  [ -z "$wide" ] || { echo "$(basename "$page") has a line of more than 80 columns: $wide" >&2; bad=1; }
done
# Commands of the introduction's list are bold, and the text after them is not.
sed -n '/^\.SH I WANT TO/,/^\.SH SEE/p' "$place/a/man7/trireme.7" >"$place/text"
begins=$(grep -c '^\\fB' "$place/text") ends=$(grep -c '\\fR$' "$place/text") || true
[ "$begins" -gt 0 ] && [ "$begins" = "$ends" ] || { echo "trireme(7): the bold of $begins commands begins, of $ends it ends" >&2; exit 1; }
# Options look as they are typed, and the text of a table is complete.
mandoc -Tascii -O width=78 "$place/a/man1/trireme-train.1" | sed 's/.\x08//g' >"$place/text"
grep -q -e '-o, --out DIR' "$place/text" || { echo "--out is not in the page of train" >&2; exit 1; }
mandoc -Tascii -O width=78 "$place/a/man5/trireme-model.5" | sed 's/.\x08//g' >"$place/text"
grep -q 'microbatches' "$place/text" || { echo "no microbatches in trireme-model(5)" >&2; exit 1; }
grep -q '|' "$place/text" && grep -n '^ *|' "$place/text" >&2 && { echo "a table is left over in trireme-model(5)" >&2; exit 1; }
exit $bad
