#!/bin/sh
# broken.sh FOLDER: shows that the checks in FOLDER find each kind of mistake, in trees with one mistake each, and none in the
# tree without.
set -eu
checks=$1
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT

# make PATH LINE: a sound tree, with LINE added to PATH
make() {
  rm -rf "${tree:?}"/*
  mkdir -p "$tree/docs" "$tree/src/base" "$tree/src/device/cpu" "$tree/src/nn" "$tree/include/trireme" "$tree/cli" "$tree/examples"
  # shellcheck disable=SC2016 # backquotes of Markdown
  printf '| `src/base/` | x |\n| `src/device/` | x |\n| `src/nn/` | x |\n' >"$tree/docs/architecture.md"
  echo '#include <stdint.h>' >"$tree/include/trireme/status.h"
  printf '#include "trireme/status.h"\ntypedef struct tr_location tr_location;\n' >"$tree/src/base/fail.h"
  echo '#include "device/cpu/vec.h"' >"$tree/src/device/cpu/dense.c"
  # A declaration may be repeated, and files may keep types of one name to themselves.
  printf '#include "base/fail.h"\ntypedef struct tr_location tr_location;\nstruct options {\nstruct tr_location {\n' >"$tree/src/nn/model.c"
  printf '#include "nn/model.h"\nstruct options {\n    "see --help"\n' >"$tree/cli/main.c"
  echo '#include <trireme/status.h>' >"$tree/examples/01.c"
  mkdir -p "$(dirname "$tree/$1")"
  echo "$2" >>"$tree/$1"
}

# sound: the tree as it stands passes every check.
sound() {
  for check in includes names flags streams; do
    sh "$checks/$check.sh" "$tree" || { echo "$check.sh refused the sound tree"; exit 1; }
  done
}
make cli/main.c '#include "command.h"'
sound

# expect WHAT PATH LINE: the check $check finds the mistake.
expect() {
  make "$2" "$3"
  if said=$(sh "$checks/$check.sh" "$tree" 2>&1); then
    echo "not found: $1"
    exit 1
  fi
  case $said in
    *"$1"*) ;;
    *) echo "\"$3\" in $2 gave: $said"; exit 1 ;;
  esac
}
check=includes
expect 'includes point down' src/base/fail.c '#include "nn/model.h"'
expect 'includes point down' src/device/cpu/dense.c '  #  include "nn/model.h"'
expect 'includes point down' include/trireme/train.h '#include "base/fail.h"'
expect 'includes point down' examples/01.c '#include "base/fail.h"'
expect 'an implementation' src/nn/model.c '#include "device/cpu/vec.h"'
expect 'an implementation' cli/main.c '#include "device/cpu/vec.h"'
expect 'no layer' src/nn/model.c '#include "gpu/cuda.h"'
expect 'the path from src/' src/nn/model.c '#include "model.h"'
expect 'does not know' src/nn/model.c '#include <cblas.h>'
expect 'belongs to' src/nn/model.c '#include <yaml.h>'
expect 'C standard' include/trireme/train.h '#include <pthread.h>'
expect 'is no layer' src/gpu/cuda.c '#include "base/fail.h"'
check=names
expect 'the tag "tr_location"' src/base/fail.c 'struct tr_location {'
expect 'the tag "tr_location"' cli/main.c 'enum tr_location {'
expect 'the tag "run"' src/base/fail.h 'struct run {
union run {'
expect 'the typedef "tr_location"' src/device/device.h 'typedef const struct tr_location *tr_location;'
expect 'the typedef "tr_hook"' src/base/fail.h 'typedef int (*tr_hook)(void);
typedef int (*tr_hook)(int sign);'
check=flags
expect 'name the setting' src/nn/model.c 'fail("give one with --out");'
expect 'name the setting' src/nn/model.c '    "--steps is missing"'
expect 'name the setting' src/base/fail.c 'fail("a \"b\" (--steps)");'
check=streams
expect 'print by cli_printf' cli/main.c '    printf("%s\n", path);'
expect 'print by cli_printf' cli/main.c '    if (failed) fprintf(stderr, "%s", name);'
expect 'print by cli_printf' cli/main.c '    puts(line);'
expect 'print by cli_printf' cli/main.c '    fwrite(text, 1, size, stdout);'
echo "all mistakes were found"
