#!/bin/sh
# deb.sh OUT: writes Debian packages for the system that this runs on, and their source package, from which another builds its own.
# Runs in the sources; needs dpkg-dev and what debian/control names under Build-Depends.
set -eu
. packaging/builder.sh
out=$1
version=$(dpkg-parsechangelog -S Version)
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT

# The sources as they are here, in the form that Debian keeps them in: what is from the project, and debian/ apart.
name=trireme-${version%-*}
builder_files | sed -z 's,^\./,,' | grep -zv '^debian/' | LC_ALL=C sort -z |
  tar -c --null --no-recursion -T - --transform "s,^,$name/,S" --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner --mode=u+rw,go=rX |
  xz -T1 >"$place/trireme_${version%-*}.orig.tar.xz"
tar -x -C "$place" -f "$place/trireme_${version%-*}.orig.tar.xz"
cp -r debian "$place/$name/"
(cd "$place/$name" && dpkg-buildpackage -us -uc >"$place/log" 2>&1) || { tail -n 40 "$place/log" && exit 1; }
# Not what tells of this build alone, its time among it.
find "$place" -maxdepth 1 \( -name '*.deb' -o -name '*.dsc' -o -name '*.tar.xz' \) ! -name '*-dbgsym_*' -exec cp {} "$out/" \;
