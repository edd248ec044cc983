#!/bin/sh
# deb_on.sh SUITE SOURCE FOLDER: builds the Debian packages on a Debian of this suite that has what debian/control asks for, from the
# source package of FOLDER if there is one (tools/package deb), else from SOURCE, and lintian has nothing to say; installs them on a
# fresh one in place of older ones, uses them (debian/tests), and purges them, so that nothing is left.
set -eu
suite=$1 source=$2 folder=$3
cd "$source"
. tools/machine.sh
. tests/packages/page.sh
why=$(machine_why)
[ -z "$why" ] || { echo "skipped: $why" && exit 77; }
[ "$suite" != bullseye ] || { echo "skipped: the packages are for Debian 12 and newer" && exit 77; }
place=$(mktemp -d)
trap 'rm -rf --one-file-system "$place"' EXIT
trap 'exit 1' INT TERM

echo "== building on Debian $suite"
builder=$place/builder machine=$place/machine
machine_make "$suite" "$builder"
machine_install "$builder" dpkg-dev lintian
# there COMMAND: in the folder of the sources
there() {
  machine_run "$builder" sh -c "cd /root/source && $1" >"$place/log" 2>&1 || { tail -n 40 "$place/log" && exit 1; }
}
mkdir "$builder/root/source" "$builder/root/packages"
if [ -n "$(find "$folder" -name '*.dsc' 2>/dev/null)" ]; then
  cp "$folder"/*.dsc "$folder"/trireme_*.tar.xz "$builder/root/packages/"
  there 'dpkg-source --extract /root/packages/*.dsc inside && apt-get build-dep -y -qq --no-install-recommends ./inside'
  there 'cd inside && dpkg-buildpackage -b -us -uc && mv ../*.deb /root/packages/'
else
  git ls-files -z --cached --others --exclude-standard | tar -c --null -T - | tar -x -C "$builder/root/source"
  there 'apt-get build-dep -y -qq --no-install-recommends ./'
  SOURCE_DATE_EPOCH=$(git log -1 --format=%ct) there 'tools/package deb /root/packages'
fi
rm -f "$builder"/root/packages/*-dbgsym_*
ls "$builder/root/packages"

echo "== lintian"
# Overridden: Debian has no request for the package which its first entry could close, Debian 12 does not know our policy's
# version, and not every override is needed on both.
there 'lintian --version; lintian --pedantic --display-info --suppress-tags initial-upload-closes-no-bugs,newer-standards-version,unused-override \
  --fail-on error,warning,info,pedantic --allow-root /root/packages/*.dsc /root/packages/*.deb'
cat "$place/log"
mkdir "$place/new"
mv "$builder"/root/packages/*.deb "$place/new/"
rm -rf --one-file-system "$builder"

echo "== older packages on a fresh machine"
machine_make "$suite" "$machine"
mkdir "$machine/root/new" "$machine/root/old"
cp "$place"/new/*.deb "$machine/root/new/"
for package in "$machine"/root/new/*.deb; do
  rm -rf "$place/package"
  dpkg-deb -R "$package" "$place/package"
  sed -i '/^Version:/s/ .*/ 0.0.1-1/; s/(= [^)]*)/(= 0.0.1-1)/g' "$place/package/DEBIAN/control"
  dpkg-deb -b -Znone --root-owner-group "$place/package" "$machine/root/old/" >/dev/null
done
find "$machine" -xdev -name '*trireme*' ! -path "$machine/root/*" >"$place/before"
[ ! -s "$place/before" ]
# install FOLDER: all packages of it
install() {
  # shellcheck disable=SC2046 # a list of files
  machine_install "$machine" $(cd "$machine" && find "./root/$1" -name '*.deb' | sed 's,^\.,,')
}
install old

echo "== in place of them, the new ones"
install new
version=$(dpkg-deb -f "$(find "$place/new" -name 'trireme_*.deb')" Version)
# shellcheck disable=SC2016 # expanded there
machine_run "$machine" dpkg-query -W -f '${Package} ${Version}\n' 'trireme*' 'libtrireme*' python3-trireme >"$place/versions"
cat "$place/versions"
if grep -v " $version\$" "$place/versions"; then exit 1; fi

echo "== used"
cp -r debian/tests "$machine/root/"
machine_install "$machine" gcc libc6-dev pkgconf
for test in command library mpi python; do
  echo "-- $test"
  machine_run "$machine" sh "/root/tests/$test"
done

# Both lines of the page that users type: one installs only program and data, the other removes all packages.
page_lines "$PWD" "Debian packages" | sed 's/apt-get \(install\|purge\)/& -y -qq/' >"$place/lines"
# typed WORDS: the line with these words
typed() {
  machine_run "$machine" sh -ec "cd /root && $(grep "apt-get $1 " "$place/lines")" >"$place/log" 2>&1 || { tail -n 20 "$place/log" && exit 1; }
}
purged() {
  echo "== purged"
  typed purge
  find "$machine" -xdev -name '*trireme*' ! -path "$machine/root/*" ! -path "$machine/tmp/*" ! -path "$machine/var/cache/apt/*" >"$place/after"
  if [ -s "$place/after" ]; then cat "$place/after" && exit 1; fi
}
purged
echo "== the program and its data alone"
mv "$machine/root/new" "$machine/root/dist"
typed install
machine_run "$machine" trireme train penguins --steps 5 --quiet --out /root/birds
purged
echo "all is well on $suite"
