#!/bin/sh
# archive_on.sh SUITE SOURCE FOLDER: on a fresh Debian of this suite, with nothing that is not in all of them, unpacks the portable
# archive of FOLDER and uses it: the digits, to the hash of README.md, on one process and on two; predictions, a look at a model,
# text; the same with Open MPI of the system; a device of OpenCL, where TRIREME_TEST_OPENCL asks for the download of a driver.
set -eu
suite=$1 source=$2 folder=$3
. "$source/tools/machine.sh"
. "$source/tests/packages/page.sh"
why=$(machine_why)
[ -z "$why" ] || { echo "skipped: $why" && exit 77; }
archive=$(find "$folder" -name 'trireme-*.tar.zst' 2>/dev/null | head -n 1)
[ -n "$archive" ] || { echo "skipped: no archive was built" && exit 77; }

place=$(mktemp -d)
machine=$place/machine
trap 'rm -rf --one-file-system "$place"' EXIT
trap 'exit 1' INT TERM
fail() { echo "$1" && exit 1; }
hash=$(sed -n 's/^hash  *//p' "$source/README.md" | head -n 1)

echo "== Debian $suite"
machine_make "$suite" "$machine"
tar -x --zstd -f "$archive" -C "$machine/opt"
mv "$machine"/opt/trireme-* "$machine/opt/elsewhere"
there() { machine_run "$machine" "$@"; }
trireme() { there /opt/elsewhere/bin/trireme "$@"; }
# trains COMMAND...: COMMAND, which trains mnist-quick, ends with the hash of README.md
trains() {
  there "$@" | tee "$place/said"
  grep -q "^hash  *$hash\$" "$place/said" || fail "the hash is not $hash"
}

echo "== the digits, on one process and on two"
trireme version
trains /opt/elsewhere/bin/trireme train mnist-quick --out /root/one
trains /opt/elsewhere/bin/trireme launch -n 2 train mnist-quick --out /root/two
digits=/opt/elsewhere/share/trireme/data/mnist/t10k-images-idx3-ubyte.gz
trireme predict /root/one --idx $digits --index 1 | tee "$place/said"
grep -q ': 2 100' "$place/said" || fail "the digit is a 2"

echo "== looks, texts, data, words for a shell"
trireme inspect mnist-cnn | grep -q /opt/elsewhere/share/trireme/models/mnist-cnn.yaml || fail "the model is another"
trireme data verify sst2
trireme train shakespeare-gpt --steps 5 --quiet --out /root/play
[ -n "$(trireme generate /root/play --tokens 20)" ] || fail "there is no text"
trireme completion bash | grep -q complete || fail "there is no completion"

echo "== what the system has not is named"
if trireme data fetch fashion-mnist 2>"$place/said"; then fail "there is no curl here"; fi
grep libcurl "$place/said" || fail "the message names no library: $(cat "$place/said")"
trireme devices | tee "$place/said"
grep -q 'libOpenCL.so.1 cannot be loaded' "$place/said" || fail "the message names no library"

echo "== Open MPI and curl of the system"
machine_install "$machine" openmpi-bin libcurl4
trains mpirun --allow-run-as-root --oversubscribe -n 2 /opt/elsewhere/bin/trireme train mnist-quick --transport mpi --out /root/three
if http_proxy=http://127.0.0.1:9 https_proxy=http://127.0.0.1:9 no_proxy='' trireme data fetch fashion-mnist 2>"$place/said"; then fail "nobody listens there"; fi
grep 'fetch http' "$place/said" || fail "curl was not used: $(cat "$place/said")"

echo "== the line of docs/how-to/install.md"
machine_install "$machine" zstd
cp "$archive" "$machine/root/"
there sh -ec "cd && $(page_lines "$source" Archive)"
there /root/.local/bin/trireme train penguins --steps 5 --quiet --out /root/birds

if [ -n "${TRIREME_TEST_OPENCL:-}" ]; then
  echo "== OpenCL of the system"
  machine_install "$machine" pocl-opencl-icd
  trains /opt/elsewhere/bin/trireme train mnist-quick --device opencl --out /root/four
fi
echo "all is well on $suite"
