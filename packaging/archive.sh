#!/bin/sh
# archive.sh: writes the portable archive to $OUT. Runs in the builder (packaging/builder.sh), in the sources.
#
# The libraries of packaging/libraries.tsv (Debian's package, name, licence) are inside, under names of their own, so that they
# never stand in for those of the system, which its Open MPI, curl and OpenCL drivers bring along. All is found from where it lies.
set -eu
quietly() {
  "$@" >build.log 2>&1 || { tail -n 30 build.log && exit 1; }
}
version=$(sed -n 's/^project(trireme VERSION \([0-9.]*\).*/\1/p' CMakeLists.txt)
name=trireme-$version-linux-$(uname -m)
inside=$PWD/inside
doc=$name/share/doc/trireme
mkdir -p "$inside" "$doc/licenses"

# libpng16.so.16 becomes libtrireme-png16.so.16, which the linker then finds as libpng16.so.
while IFS='	' read -r package library licence; do
  file=$(realpath "$(dpkg -L "$package" | grep "/$library\.so\$")")
  soname=$(readelf -d "$file" | sed -n 's/.*(SONAME).*\[lib\(.*\)\]/libtrireme-\1/p')
  cp "$file" "$inside/$soname"
  patchelf --set-soname "$soname" "$inside/$soname"
  ln -s "$soname" "$inside/$library.so"
  cp "/usr/share/doc/$package/copyright" "$doc/licenses/$library"
  printf '%s\t%s\t%s\n' "$(dpkg-query -W -f '${source:Package}\t${source:Version}' "$package")" "$library" "$licence" >>"$doc/libraries.tsv"
done <packaging/libraries.tsv
patchelf --replace-needed libz.so.1 libtrireme-z.so.1 "$inside/libtrireme-png16.so.16"
# shellcheck disable=SC2016 # for the loader
patchelf --set-rpath '$ORIGIN' "$inside/libtrireme-png16.so.16"

# The folder is as deep as that of the wheel, so that what one compiled serves the other (ccache).
# A build ID would tell one folder from another: it is made before the installation puts its own paths to libraries.
export LDFLAGS=-Wl,--build-id=none
# shellcheck disable=SC2016 # for the loader
CFLAGS="-ffile-prefix-map=$PWD/=" quietly cmake -S . -B build/archive -G Ninja -DCMAKE_BUILD_TYPE=Release -DTRIREME_BUILD_TESTS=OFF \
  -DCMAKE_LIBRARY_PATH="$inside" -DCMAKE_INSTALL_RPATH='$ORIGIN/../lib/trireme;$ORIGIN/trireme' -DCMAKE_INSTALL_PREFIX=/opt/trireme \
  -DCMAKE_INSTALL_LIBDIR=lib
quietly cmake --build build/archive
for component in command library headers mpi downloads data; do
  quietly cmake --install build/archive --strip --component $component --prefix "$PWD/$name"
done
# A static library is for programs that are linked with the others, too, and finds none of them here.
rm "$name"/lib/libtrireme.a "$name"/lib/cmake/trireme/trireme-static-targets*.cmake
find "$inside" -type f -exec cp {} "$name/lib/trireme/" \;
cp LICENSE CHANGELOG.md "$doc/"

tar -c --sort=name --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner --mode=u+rw,go+rX,go-w "$name" |
  zstd --quiet --ultra -22 --long=27 -o "$OUT/$name.tar.zst"
