#!/bin/sh
# front_end.sh COMMANDS SOURCE COMPILER...: the front ends of other compilers, with the flags of this build and all warnings as
# errors, over every file that it compiles (COMMANDS is its compile_commands.json), each once; SOURCE chooses those whose path it
# matches (awk). Most warnings do not need the generation of code, which would take as long as a build. `musl-gcc` sees only the
# system's headers of the libraries and of the kernel. Missing compilers, and second names of one, are left out; exit code 77 if
# none is left.
set -eu
commands=$1 source=$2
shift 2
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT

# Each command on a line: "compiler flags -o object -c file", without JSON's \" and \\ and with the quotes for the shell.
sed -n 's/^ *"command": "\(.*\)",$/\1/p' "$commands" | sed 's/\\"/"/g; s/\\\\/\\/g' |
  awk -v source="$source" '$NF ~ source && !seen[$NF]++' >"$place/all"
[ -s "$place/all" ] || { echo "nothing to compile in $commands"; exit 1; }

# The headers of the kernel and of the libraries that the build finds, without those of the C library.
library_headers() {
  mkdir "$place/include"
  for from in /usr/include "/usr/include/$(uname -m)-linux-gnu"; do
    for name in linux asm asm-generic yaml.h zlib.h zconf.h openssl isa-l.h isa-l libpng16 png.h pngconf.h pnglibconf.h turbojpeg.h \
      protobuf-c google curl; do
      [ ! -e "$from/$name" ] || cp -rsn "$from/$name" "$place/include/"
    done
  done
}

here="" status=0
for compiler in "$@"; do
  command -v "$compiler" >/dev/null || continue
  if [ "$compiler" != musl-gcc ]; then
    version=$("$compiler" --version | head -n 1 | sed 's/^[^ ]* //')
    case $here in *"|$version|"*) continue ;; esac
    here="$here|$version|"
    more=
  else
    library_headers
    here="$here|musl|"
    more="-isystem $place/include"
  fi
  # The compiler's name is the text before the first flag.
  sed "s|^[^-]* -|$compiler -|; s| -o [^ ]* | |; s| -M[TF] [^ ]*||g; s| -MD||; s| -fvect-cost-model=[^ ]*||; s| -fno-unswitch-loops||; s| -c \\([^ ]*\\)\$| $more -Werror -fsyntax-only \\1|" \
    "$place/all" >"$place/lines"
  if xargs -a "$place/lines" -d '\n' -n 1 -P "$(getconf _NPROCESSORS_ONLN)" sh -c 'cd "$0" && eval "$1"' "$(dirname "$commands")" \
    >"$place/said" 2>&1; then
    echo "$compiler has nothing to say of $(wc -l <"$place/lines") files"
  else
    echo "$compiler:"
    cat "$place/said"
    status=1
  fi
done
[ -n "$here" ] || { echo "skipped: none of $*"; exit 77; }
exit $status
