#!/bin/sh
# linters.sh SOURCE: the recipes of packages and the page about them name the version of the sources, and the linters of their
# systems, if installed (rpm, rpmlint, nix-bin; deb_on.sh runs lintian), accept them.
set -eu
cd "$1"
version=$(sed -n 's/^project(trireme VERSION \([0-9.]*\).*/\1/p' CMakeLists.txt)
[ -n "$version" ]
# version_in FILE TEXT: where a file names that version
version_in() {
  [ "$2" = "$version" ] || { echo "$1 says $2, CMakeLists.txt $version" && exit 1; }
}

echo "== debian/"
version_in debian/changelog "$(sed -n '1s/^trireme (\(.*\)-[^-]*) .*/\1/p' debian/changelog)"
# Names of each version of the interface have a line.
sed -n 's/^\(TRIREME_[0-9.]*\) {.*/\1/p' src/exports.map | while read -r node; do
  grep -qE "^ \(symver(\|optional)?\)$node [0-9.]*\$" debian/libtrireme0.symbols || { echo "debian/libtrireme0.symbols has no $node" && exit 1; }
done
# The last node takes names that come with these sources: its version follows theirs, so that each release has its own.
last=$(sed -n 's/^\(TRIREME_[0-9.]*\) {.*/\1/p' src/exports.map | tail -n 1)
version_in debian/libtrireme0.symbols "$(sed -n "s/^ (symver[a-z|]*)$last //p" debian/libtrireme0.symbols)"

echo "== docs/how-to/install.md"
version_in docs/how-to/install.md "$(sed -n 's/.*tar .*trireme-\([0-9.]*\)-linux-.*/\1/p' docs/how-to/install.md)"

echo "== packaging/rpm"
version_in packaging/rpm/trireme.spec "$(sed -n 's/^Version: *//p' packaging/rpm/trireme.spec)"
if command -v rpmspec >/dev/null; then
  rpmspec -P packaging/rpm/trireme.spec >/dev/null
  [ "$(rpmspec -q --qf '%{version}\n' packaging/rpm/trireme.spec | sort -u)" = "$version" ]
else
  echo "skipped: rpmspec is not installed (package rpm)"
fi
if command -v rpmlint >/dev/null; then
  said=$(rpmlint -c packaging/rpm/rpmlint.toml packaging/rpm/trireme.spec) || { echo "$said" && exit 1; }
  case $said in
    *" 0 errors, 0 warnings"*) ;;
    *) echo "$said" && exit 1 ;;
  esac
else
  echo "skipped: rpmlint is not installed"
fi

echo "== packaging/nix"
if command -v nix-instantiate >/dev/null; then
  for file in packaging/nix/*.nix; do
    nix-instantiate --parse "$file" >/dev/null
  done
  # Its expression of the version, as in the file.
  grep -o 'builtins.head (builtins.match.*CMakeLists.txt))' packaging/nix/package.nix | sed "s,\.\./\.\./,$PWD/," >"${TMPDIR:-/tmp}/version.$$.nix"
  found=$(nix-instantiate --eval "${TMPDIR:-/tmp}/version.$$.nix" | tr -d '"')
  rm "${TMPDIR:-/tmp}/version.$$.nix"
  version_in packaging/nix/package.nix "$found"
else
  echo "skipped: nix-instantiate is not installed (package nix-bin)"
fi
echo "nothing to say"
