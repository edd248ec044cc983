#!/bin/sh
# flags.sh ROOT: refuses texts of the library (src/) with flags of a command line, such as --out: a program that embeds the
# library has none. Texts use the names of settings; cli/ may change them to flags. Allowed are files that read command lines, and
# whole commands that a message advises: "`trireme ...", "cmake ...", and those that data_set.c composes.
set -eu
cd "$1"
[ -d src/base ] || { echo "there is no src/base" >&2; exit 1; }
if find src -name '*.[ch]' ! -path 'src/base/options/*' ! -path src/data/files/data_set.c | sort |
  xargs grep -nE '(^|[^\\])"(([^"\\]|\\.)*[ (`])?--[a-z]' /dev/null | grep -vE '^[^:]*:[0-9]+: *(\*|/\*)|`trireme |cmake '; then
  echo "name the setting, not a flag"
  exit 1
fi
