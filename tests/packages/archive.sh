#!/bin/sh
# archive.sh SOURCE FOLDER: builds the portable archive into FOLDER, and checks its contents: its requirements, that it contains
# no path of the build, and that it has the licences of all foreign code.
set -eu
source=$1 folder=$2
rm -rf "$folder"
mkdir -p "$folder/look"
"$source/tools/package" archive "$folder"
archive=$(echo "$folder"/trireme-*.tar.zst)
tar -x --zstd -f "$archive" -C "$folder/look"
tree=$(echo "$folder"/look/trireme-*)
fail() { echo "$1" && exit 1; }

echo "== what a person looks for"
for file in bin/trireme lib/trireme/check-device share/trireme/gpu-check lib/trireme/trireme-fetch.so lib/trireme/trireme-mpi.so share/trireme/models/mnist-quick.yaml \
  share/trireme/data/mnist share/man/man1/trireme.1 share/man/man5/trireme-model.5 share/man/man7/trireme.7 \
  share/bash-completion/completions/trireme share/zsh/site-functions/_trireme share/fish/vendor_completions.d/trireme.fish \
  share/doc/trireme/LICENSE share/doc/trireme/CHANGELOG.md; do
  [ -e "$tree/$file" ] || fail "there is no $file"
done

echo "== libc and what is inside alone, and for the modules Open MPI and curl"
find "$tree" -type f \( -path '*/bin/*' -o -name '*.so*' -o -name check-device \) >"$folder/objects"
[ "$(grep -c . "$folder/objects")" -ge 11 ] || fail "programs and libraries are missing"
while read -r object; do
  others=$(readelf -d "$object" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' | grep -vE '^(libc|libm|libdl|libpthread|librt|ld-linux-x86-64)\.so\.|^libtrireme-' || true)
  case $object in
    */trireme-mpi.so) [ "$others" = libmpi.so.40 ] || fail "$object needs $others" ;;
    */trireme-fetch.so) [ "$others" = libcurl.so.4 ] || fail "$object needs $others" ;;
    *) [ -z "$others" ] || fail "$object needs $others" ;;
  esac
  if readelf -d "$object" | sed -n 's/.*r.*path: \[\(.*\)\]/\1/p' | tr : '\n' | grep '^/'; then fail "$object looks for libraries in a folder of the build"; fi
  newest=$(readelf -V "$object" | grep -o 'GLIBC_[0-9.]*' | sort -t_ -k2 -uV | tail -n 1)
  [ "$(printf '%s\nGLIBC_2.31\n' "$newest" | sort -V | tail -n 1)" = GLIBC_2.31 ] || fail "$object needs $newest"
done <"$folder/objects"

echo "== no path of the build"
if grep -rlaE '/source\.[A-Za-z0-9]{6}|/root/' "$tree"; then fail "these name the folder that they were built in"; fi

echo "== licences"
list=$tree/share/doc/trireme/libraries.tsv
[ "$(grep -c . "$list")" = "$(grep -c . "$source/packaging/libraries.tsv")" ] || fail "libraries are missing in $list"
while IFS='	' read -r name version library licence; do
  [ -n "$name" ] || fail "a library has no name"
  [ -n "$version" ] || fail "$name has no version"
  [ -n "$licence" ] || fail "$name has no licence"
  [ -s "$tree/share/doc/trireme/licenses/$library" ] || fail "the words of the licence of $name are missing"
done <"$list"
rm -rf "$folder/look"
ls -l "$archive"
