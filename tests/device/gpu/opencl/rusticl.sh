#!/bin/sh
# rusticl.sh SOURCE TRIREME PROGRAM...: Mesa's rusticl with llvmpipe, which has another compiler, gives the bytes of ref. The
# programs run on a fresh Debian 13 (tools/machine.sh), which is removed when the test ends. Its multiply-adds are inexact
# functions, so that kernels use their own; a device that is inexact elsewhere is refused, and the test prints the difference.
set -eu
source=$1 trireme=$2
shift 2
cd "$source"
. tools/machine.sh
why=$(machine_why)
[ -z "$why" ] || { echo "skipped: $why" && exit 77; }
place=$(mktemp -d)
trap 'rm -rf --one-file-system "$place"' EXIT
trap 'exit 1' INT TERM
machine=$place/machine
machine_make trixie "$machine" || { echo "skipped: no Debian 13 from here" && exit 77; }
machine_install "$machine" mesa-opencl-icd ocl-icd-libopencl1

# The programs, and libraries of this system that they need and Debian 13 lacks.
mkdir "$machine/root/lib"
for program in "$trireme" "$@"; do
  cp "$program" "$machine/root/"
  ldd "$program" | sed -n 's/.*=> \(\/[^ ]*\).*/\1/p' | grep -vE '/(libc|libm|libdl|libpthread|librt|ld-linux[^/]*)\.so' |
    while read -r library; do cp -L "$library" "$machine/root/lib/"; done
done
mkdir -p "$machine$source"
cp -r models data "$machine$source/" # where the programs search for them
# there COMMAND...: with rusticl alone
there() {
  machine_run "$machine" env RUSTICL_ENABLE=llvmpipe OCL_ICD_VENDORS=/etc/OpenCL/vendors/rusticl.icd LD_LIBRARY_PATH=/root/lib "$@"
}
there /root/trireme devices | tee "$place/devices"
grep -q 'opencl:0.*llvmpipe' "$place/devices"
if grep -q 'refused: .* does not give the bits of other devices: ' "$place/devices"; then
  echo "refused by name"
  exit 0
fi
grep -q 'exact, slow$' "$place/devices"
for program in "$@"; do
  there "/root/$(basename "$program")" >"$place/log" 2>&1 || { tail -n 40 "$place/log" && exit 1; }
  if grep '^skipped:' "$place/log"; then exit 1; fi
  echo "$(basename "$program"): $(sed -n 's/.*PASSED *. \([0-9]* test\)(s).*/\1s passed/p' "$place/log")"
done
