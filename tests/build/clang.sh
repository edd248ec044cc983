#!/bin/sh
# clang.sh COMMANDS [SOURCE]: the front end of clang, with the flags of this build and all warnings as errors, over every file that it
# compiles (COMMANDS is its compile_commands.json), each once; SOURCE chooses those whose path contains it. What clang warns of it
# mostly knows without making code, which would take as long as a build. Exit code 77 where there is no clang.
set -eu
commands=$1 source=${2-}
command -v clang >/dev/null || { echo "skipped: no clang"; exit 77; }
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT

# Each command on a line: "compiler flags -o object -c file", with JSON's \" and \\ taken away and the quotes for the shell left.
sed -n 's/^ *"command": "\(.*\)",$/\1/p' "$commands" | sed 's/\\"/"/g; s/\\\\/\\/g' |
  grep -F "$source" | awk '!seen[$NF]++' >"$place/all"
[ -s "$place/all" ] || { echo "nothing to compile in $commands"; exit 1; }
# The compiler's name is what stands before the first flag.
sed 's/^[^-]* -/clang -/; s/ -o [^ ]* / /; s/ -M[TF] [^ ]*//g; s/ -MD//; s/ -c \([^ ]*\)$/ -Werror -fsyntax-only \1/' "$place/all" >"$place/lines"
if ! xargs -a "$place/lines" -d '\n' -n 1 -P "$(getconf _NPROCESSORS_ONLN)" sh -c 'cd "$0" && eval "$1"' "$(dirname "$commands")" \
  >"$place/said" 2>&1; then
  cat "$place/said"
  exit 1
fi
echo "clang has nothing to say of $(wc -l <"$place/lines") files"
