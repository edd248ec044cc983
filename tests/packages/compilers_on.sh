#!/bin/sh
# compilers_on.sh SUITE SOURCE COMPILER...: on a fresh Debian of this suite, the front ends of compilers that this system may not have,
# over every file of a build there, with all warnings as errors (tests/build/front_end.sh).
set -eu
suite=$1 source=$2
shift 2
. "$source/tools/machine.sh"
. "$source/tools/setup.sh"
why=$(machine_why)
[ -z "$why" ] || { echo "skipped: $why" && exit 77; }

place=$(mktemp -d)
machine=$place/machine
trap 'rm -rf --one-file-system "$place"' EXIT
trap 'exit 1' INT TERM

echo "== Debian $suite"
machine_make "$suite" "$machine"
# shellcheck disable=SC2154,SC2086 # of setup.sh; lists of words
machine_install "$machine" $packages_build $packages_test ninja-build "$@"
mkdir "$machine/root/trireme"
(cd "$source" && git ls-files -z --cached --others --exclude-standard | tar -c --null -T -) | tar -x -C "$machine/root/trireme"

# What is compiled of generated files is made before, which is all that objects wait for.
machine_run "$machine" sh -ec 'cd /root/trireme
  cmake -S . -B build -G Ninja -DCMAKE_BUILD_TYPE=Release -DTRIREME_BUILD_TESTS=ON
  ninja -C build -t targets all | sed -n "s/^\(cmake_object_order_depends_target_[^:]*\):.*/\1/p" | xargs ninja -C build' >"$place/log" 2>&1 ||
  { tail -n 40 "$place/log" && exit 1; }
machine_run "$machine" sh -ec 'cd /root/trireme && sh tests/build/front_end.sh "$PWD/build/compile_commands.json" "[.]c$" "$@"' sh "$@"
