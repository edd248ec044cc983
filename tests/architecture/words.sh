#!/bin/sh
# words.sh ROOT: refuses words in a tree's src/, cli/, include/, python/ and docs/ that docs/reference/glossary.md has replaced by those of
# the field, and words for persons where a thread, a process or a rank is meant.
set -eu
cd "$1"

# The old name -> the name in use.
retired='bereaved:lost_member
disband:dissolve
disbanded:dissolved
examination:evaluation
examiner:evaluation hooks
farewell:shutdown
leave_the_word:last_words
reigns:is_root
part_comm:subgroup'

folders=
for folder in src cli include python docs; do
  [ ! -d "$folder" ] || folders="$folders $folder"
done
bad=0

# find_word PATTERN: lines with it in $folders, as grep -n has them
find_word() {
  # shellcheck disable=SC2086 # several folders
  grep -rnE "$1" $folders --include='*.[chk]' --include='*.inc' --include='*.c.in' --include='*.py' --include='*.md' --include='*.cmake' \
    --exclude-dir=lab || :
}

# Underscores separate words of a name, so that tr_comm_disband() is found, too.
for pair in $(printf '%s' "$retired" | tr ' ' '~'); do
  word=${pair%%:*}
  instead=$(printf '%s' "${pair#*:}" | tr '~' ' ')
  found=$(find_word "(^|[^A-Za-z])$word([^A-Za-z]|\$)")
  [ -z "$found" ] || { printf '%s\n' "$found" | sed "s/\$/    <- \"$word\" is called \"$instead\"/"; bad=1; }
done

# These names were used for types of seven kinds: see the glossary for each.
found=$(find_word '^ *(typedef )?struct ([a-z]+_)*(place|told|meeting|seat)( |;|$)')
[ -z "$found" ] || { printf '%s\n' "$found" | sed 's/$/    <- say what it is: a placement, a cell, an offset, a peer ... (docs\/glossary.md)/'; bad=1; }

# Only in the sources: pages have examples of text. Names of people, and of the initializer, are excepted.
folders=$(for folder in src cli include; do [ ! -d "$folder" ] || printf ' %s' "$folder"; done)
found=$(find_word '(^|[^A-Za-z_"])(he|him|his|himself)([^A-Za-z_"]|$)')
[ -z "$found" ] || { printf '%s\n' "$found" | sed 's/$/    <- a thread, a process or a rank is "it"/'; bad=1; }
exit $bad
