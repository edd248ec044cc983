#!/bin/sh
# names.sh ROOT: refuses two types of one name in a tree's include/, src/ and cli/, since a file that sees the wrong one has
# undefined behaviour.
#
#   - A tag (struct, union, enum) that begins with tr_ is defined once, and so is one of a header.
#   - All typedefs of one name that begins with tr_ are equal.
# Tags without tr_ in a .c file may repeat those of another file.
set -eu
cd "$1"
find include src cli -name '*.[ch]' | sort | xargs grep -nHE \
  '^ *(typedef +)?(struct|union|enum) +[A-Za-z_0-9]+ *(\{|$)|^ *typedef [^{}]*;' | awk '
function refuse(kind, first) {
  print kind " \"" name "\" has two meanings: " first " and " place "; rename one"
  bad = 1
}
{
  lines++
  match($0, /^[^:]*:[0-9]*:/)
  place = substr($0, 1, RLENGTH - 1); text = substr($0, RLENGTH + 1)
  gsub(/ +/, " ", text); sub(/^ /, "", text)
  if (text ~ /^(typedef )?(struct|union|enum) [A-Za-z_0-9]+ ?(\{|$)/) {
    sub(/^typedef /, "", text)
    split(text, word, " "); name = word[2]
    if (name !~ /^tr_/ && place !~ /\.h:/) next
    if (name in tag) refuse("the tag", tag[name])
    tag[name] = place
  } else {
    name = text
    if (name ~ /\(\*/) { sub(/.*\(\* */, "", name); sub(/\).*/, "", name) }
    else { sub(/ *;.*/, "", name); sub(/.*[ *]/, "", name); sub(/\[.*/, "", name) }
    if (name !~ /^tr_/) next
    if (name in typedef && meaning[name] != text) refuse("the typedef", typedef[name])
    typedef[name] = place; meaning[name] = text
  }
}
END {
  if (lines < 1) { print "no file defines a type"; bad = 1 }
  exit bad
}'
