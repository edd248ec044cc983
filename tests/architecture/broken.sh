#!/bin/sh
# broken.sh INCLUDES_SH: shows that includes.sh finds each kind of mistake, in trees with one mistake each, and none in the
# tree without.
set -eu
check=$1
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT

# make PATH LINE: a sound tree, with LINE added to PATH
make() {
  rm -rf "${tree:?}"/*
  mkdir -p "$tree/docs" "$tree/src/base" "$tree/src/device/cpu" "$tree/src/nn" "$tree/include/trireme" "$tree/cli" "$tree/examples"
  # shellcheck disable=SC2016 # backquotes of Markdown
  printf '| `src/base/` | x |\n| `src/device/` | x |\n| `src/nn/` | x |\n' >"$tree/docs/architecture.md"
  echo '#include <stdint.h>' >"$tree/include/trireme/status.h"
  echo '#include "trireme/status.h"' >"$tree/src/base/fail.h"
  echo '#include "device/cpu/vec.h"' >"$tree/src/device/cpu/dense.c"
  echo '#include "base/fail.h"' >"$tree/src/nn/model.c"
  echo '#include "nn/model.h"' >"$tree/cli/main.c"
  echo '#include <trireme/status.h>' >"$tree/examples/01.c"
  mkdir -p "$(dirname "$tree/$1")"
  echo "$2" >>"$tree/$1"
}

make cli/main.c '#include "command.h"'
sh "$check" "$tree" || { echo "the sound tree was refused"; exit 1; }

# expect WHAT PATH LINE
expect() {
  make "$2" "$3"
  if said=$(sh "$check" "$tree" 2>&1); then
    echo "not found: $1"
    exit 1
  fi
  case $said in
    *"$1"*) ;;
    *) echo "\"$3\" in $2 gave: $said"; exit 1 ;;
  esac
}
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
echo "all mistakes were found"
