#!/bin/sh
# sources_on.sh SUITE SOURCE: on a fresh Debian of this suite, ./demo from a clone ends with the hash of README.md; then the lines of
# docs/how-to/install.md for the sources, and for programs that use the library, one after the other.
set -eu
suite=$1 source=$2
. "$source/tools/machine.sh"
. "$source/tests/packages/page.sh"
why=$(machine_why)
[ -z "$why" ] || { echo "skipped: $why" && exit 77; }

place=$(mktemp -d)
machine=$place/machine
trap 'rm -rf --one-file-system "$place"' EXIT
trap 'exit 1' INT TERM
fail() { echo "$1" && exit 1; }
hash=$(sed -n 's/^hash  *//p' "$source/README.md" | head -n 1)

echo "== Debian $suite"
machine_make "$suite" "$machine"
mkdir "$machine/root/trireme"
(cd "$source" && git ls-files -z --cached --others --exclude-standard | tar -c --null -T -) | tar -x -C "$machine/root/trireme"
# there COMMAND: in the folder of the sources
there() {
  echo "-- $1"
  machine_run "$machine" sh -ec "cd /root/trireme && $1" >"$place/said" 2>&1 || { tail -n 40 "$place/said" && exit 1; }
}
# is PROGRAM: the installed program is this one, and trains
is() {
  there "$1 train mnist-quick --steps 2 --quiet --out /root/run --overwrite && $1 models"
}

echo "== ./demo"
there ./demo
for processes in one two; do
  grep "^$processes process.* $hash\$" "$place/said" || { cat "$place/said" && fail "the hash is not $hash"; }
done

echo "== installed and removed"
page_lines "$source" "From the sources" >"$place/lines"
while IFS= read -r line <&3; do
  there "$line"
  case $line in
    *uninstall) [ ! -e "$machine/root/.local/bin/trireme" ] || fail "it is not removed" ;;
    *--prefix*) is /root/.local/bin/trireme ;;
    *--install*) is trireme ;;
  esac
done 3<"$place/lines"
is trireme

echo "== programs that use the library"
there "cp examples/01-train.c program.c && ldconfig"
page_lines "$source" "Programs that use the library" >"$place/lines"
while IFS= read -r line <&3; do
  there "$line"
  there "./a.out models/mnist-quick.yaml /root/program train.epochs=0 train.steps=2 && rm -r a.out /root/program"
  grep -E '[0-9a-f]{64}' "$place/said" || fail "the program says no hash"
done 3<"$place/lines"
mkdir "$machine/root/trireme/stranger"
{
  echo 'cmake_minimum_required(VERSION 3.18)'
  echo 'project(stranger C)'
  page_lines "$source" "Programs that use the library" cmake
  for library in trireme static; do
    printf 'add_executable(with-%s ../program.c)\ntarget_link_libraries(with-%s PRIVATE trireme::%s)\n' $library $library $library
  done
} >"$machine/root/trireme/stranger/CMakeLists.txt"
there "cmake -S stranger -B stranger/build && cmake --build stranger/build"
for library in trireme static; do
  there "stranger/build/with-$library models/mnist-quick.yaml /root/program train.epochs=0 train.steps=2 && rm -r /root/program"
  grep -E '[0-9a-f]{64}' "$place/said" || fail "the program says no hash"
done
echo "all is well on $suite"
