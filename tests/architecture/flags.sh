#!/bin/sh
# flags.sh ROOT: refuses texts of the library (src/) that speak of flags of a command line, such as --out: a program that embeds
# the library has none. Settings are called by their names; cli/ may add the rest. Flags are known to what reads command lines,
# and stand in whole commands that a message advises: in "`trireme ...", "cmake ...", and in what data_set.c puts together.
set -eu
cd "$1"
[ -d src/base ] || { echo "there is no src/base" >&2; exit 1; }
if find src -name '*.[ch]' ! -path 'src/base/options/*' ! -path src/data/files/data_set.c | sort |
  xargs grep -nE '(^|[^\\])"(([^"\\]|\\.)*[ (`])?--[a-z]' /dev/null | grep -vE '^[^:]*:[0-9]+: *(\*|/\*)|`trireme |cmake '; then
  echo "name the setting, not a flag"
  exit 1
fi
