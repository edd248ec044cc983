#!/bin/sh
# broken.sh FOLDER: shows that the checks in FOLDER find each kind of mistake, in trees with one mistake each, and none in a sound
# tree.
set -eu
checks=$1
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT

# make PATH LINE: a sound tree, with LINE added to PATH
make() {
  rm -rf "${tree:?}"/*
  mkdir -p "$tree/docs" "$tree/src/base" "$tree/src/device/cpu/vectors" "$tree/src/nn" "$tree/include/trireme" "$tree/cli/train" "$tree/examples"
  # shellcheck disable=SC2016 # backquotes of Markdown
  printf '| `src/base/` | x |\n| `src/device/` | x |\n| `src/nn/` | x |\n' >"$tree/docs/architecture.md"
  echo '#include <stdint.h>' >"$tree/include/trireme/status.h"
  printf '#include "trireme/status.h"\ntypedef struct tr_location tr_location;\n' >"$tree/src/base/fail.h"
  printf '# x\n\n- Read in this order: `fail.h`.\n- May include: nothing from elsewhere.\n- Subfolders: `text/`.\n' >"$tree/src/base/README.md"
  printf '# x\n\n- Subfolders: `cpu/`.\n' >"$tree/src/device/README.md"
  printf '# x\n\n- Subfolders: `vectors/`.\n- May include: `device/cpu/vectors`.\n- Used by: `src/device` alone.\n' >"$tree/src/device/cpu/README.md"
  printf '# x\n\n- Used by: `src/device` alone.\n' >"$tree/src/device/cpu/vectors/README.md"
  printf '# x\n\n- May include: `base`.\n' >"$tree/src/nn/README.md"
  mkdir -p "$tree/src/base/text" "$tree/tests/base"
  printf '# x\n\n- Private: `internal.h`.\n' >"$tree/src/base/text/README.md"
  echo '#include <stdint.h>' >"$tree/src/base/text/internal.h"
  echo '#include "base/fail.h"' >"$tree/tests/base/test_text.c"
  printf '# x\n\n- May include: `nn`.\n' >"$tree/cli/train/README.md"
  echo '#include "device/cpu/vectors/vec.h"' >"$tree/src/device/cpu/dense.c"
  echo '/* One lane after the other, see vec.h. */' >"$tree/src/device/cpu/vectors/vec.h"
  # A declaration may be repeated, and files may have private types of the same name.
  printf '#include "base/fail.h"\ntypedef struct tr_location tr_location;\nstruct options {\nstruct tr_location {\n' >"$tree/src/nn/model.c"
  printf '/* Of src/base/fail.h. */\n#include "base/fail.h"\n' >"$tree/src/nn/model.h"
  printf '#include "nn/model.h"\nstruct options {\n    "see --help"\n' >"$tree/cli/train/main.c"
  echo '#include <trireme/status.h>' >"$tree/examples/01.c"
  mkdir -p "$(dirname "$tree/$1")"
  echo "$2" >>"$tree/$1"
}

# sound: the present tree passes every check.
sound() {
  for check in includes circles names flags streams paths portable words; do
    sh "$checks/$check.sh" "$tree" || { echo "$check.sh refused the sound tree"; exit 1; }
  done
}
make cli/train/main.c '#include "nn/model.h"'
sound

# finds WHAT MISTAKE: the check $check finds the mistake in the present tree.
finds() {
  if said=$(sh "$checks/$check.sh" "$tree" 2>&1); then
    echo "not found: $1"
    exit 1
  fi
  case $said in
    *"$1"*) ;;
    *) echo "$2 gave: $said"; exit 1 ;;
  esac
}

# expect WHAT PATH LINE: the check $check finds the mistake.
expect() {
  make "$2" "$3"
  finds "$1" "\"$3\" in $2"
}
check=includes
expect 'includes point down' src/base/fail.c '#include "nn/model.h"'
expect 'includes point down' src/device/cpu/dense.c '  #  include "nn/model.h"'
expect 'includes point down' include/trireme/train.h '#include "base/fail.h"'
expect 'includes point down' examples/01.c '#include "base/fail.h"'
expect 'an implementation' src/nn/model.c '#include "device/cpu/vectors/vec.h"'
expect 'an implementation' cli/train/main.c '#include "device/cpu/vectors/vec.h"'
expect 'private to its layer' src/nn/model.c '#include "base/text/internal.h"'
expect 'private to its layer' tests/base/test_text.c '#include "base/text/internal.h"'
expect 'does not say that it may include device' cli/train/main.c '#include "device/device.h"'
expect 'does not say that it may include cli/launch' cli/train/main.c '#include "cli/launch/job.h"'
expect 'and nothing there does' src/nn/README.md '- May include: `tensor`.'
expect 'which is not there' src/base/README.md '- Read in this order: `gone.h`.'
expect 'has no README.md' src/base/numbers/tree.c '#include "base/fail.h"'
expect 'does not name its subfolder' src/base/numbers/tree.c '#include "base/fail.h"'
make src/base/tree.h '#include <stdint.h>'
for number in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24; do : >"$tree/src/base/$number.h"; done
finds 'at most 25' 'a folder of 26 files'
expect 'cli lies above' src/nn/model.c '#include "cli/train/main.h"'
expect 'no layer' src/nn/model.c '#include "gpu/cuda.h"'
expect 'the path from src/' src/nn/model.c '#include "model.h"'
expect 'does not know' src/nn/model.c '#include <cblas.h>'
expect 'belongs to' src/nn/model.c '#include <yaml.h>'
expect 'C standard' include/trireme/train.h '#include <pthread.h>'
expect 'is no layer' src/gpu/cuda.c '#include "base/fail.h"'
check=circles
expect 'src/base/fail.h' src/base/fail.h '#include "nn/model.h"'
expect 'units that include' src/base/fail.c '#include "nn/model.h"'
expect 'src/nn/model' src/base/fail.c '#include "nn/model.h"'
check=names
expect 'the tag "tr_location"' src/base/fail.c 'struct tr_location {'
expect 'the tag "tr_location"' cli/train/main.c 'enum tr_location {'
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
expect 'print by cli_printf' cli/train/main.c '    printf("%s\n", path);'
expect 'print by cli_printf' cli/train/main.c '    if (failed) fprintf(stderr, "%s", name);'
expect 'print by cli_printf' cli/train/main.c '    puts(line);'
expect 'print by cli_printf' cli/train/main.c '    fwrite(text, 1, size, stdout);'
check=paths
expect 'no file data/order.h' src/nn/model.c '/* As data/order.h says. */'
expect 'no file src/base/gone.c' docs/architecture.md 'It is in `src/base/gone.c`.'
expect 'no file gone.c' src/nn/model.c '/* The rest, see gone.c. */'
check=portable
expect 'tr_errno_text' src/nn/model.c '    return strerrordesc_np(errno);'
expect 'by syscall' cli/train/main.c '#include <sys/pidfd.h>'
expect 'some C libraries' src/nn/model.c '    dladdr1(x, &info, &map, 1);'
expect 'CMake 3.18' src/CMakeLists.txt 'file(REAL_PATH x y)'
expect 'CMake 3.18' CMakeLists.txt 'cmake_minimum_required(VERSION 3.25)'
check=words
expect 'is called "dissolve"' src/nn/model.c 'void tr_comm_disband(void);'
expect 'is called "shutdown"' docs/architecture.md 'The farewell of a worker.'
expect 'is called "evaluation hooks"' include/trireme/train.h '/* The examiner. */'
expect 'say what it is' src/base/fail.h 'struct tr_place {'
expect 'is "it"' cli/train/main.c '/* Whoever waits keeps his lock. */'
echo "all mistakes were found"
