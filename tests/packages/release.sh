#!/bin/sh
# release.sh SOURCE: what tools/release refuses and what it writes, in a small repository of its own, whose packages are quickly
# made: versions that disagree, files that are not committed, recipes of another version, numerics that no release has,
# builds that differ; sums, a bill of materials, a signature, a tag; numerics and interface that do not agree with the changelog and
# the last tag.
set -eu
source=$1
. "$source/tools/machine.sh"
why=$(machine_why)
[ -z "$why" ] || { echo "skipped: $why" && exit 77; }

place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
trap 'exit 1' INT TERM
fail() { echo "$1" && exit 1; }
export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b
export GIT_AUTHOR_DATE='2026-01-02T12:00:00Z' GIT_COMMITTER_DATE='2026-01-02T12:00:00Z' GIT_CONFIG_GLOBAL=/dev/null

mkdir "$place/tree" && cd "$place/tree"
git init -q .
mkdir -p tools packaging src/base src/verify tests/packages
cp "$source/tools/release" "$source/tools/machine.sh" tools/
cp "$source/packaging/sbom.py" packaging/
echo 'project(trireme VERSION 1.2.3 LANGUAGES C)' >CMakeLists.txt
printf '# Changelog\n\n## Unreleased\n\n- A change.\n' >CHANGELOG.md
echo /dist/ >.gitignore
cat >tools/package <<'END'
#!/bin/sh
cd "$(dirname "$0")/.."
sources=$PWD
mkdir -p "$2" "$2.tree" && cd "$2.tree" && mkdir -p trireme-1.2.3/share/doc/trireme
printf 'zlib\t1.2\tlibz\tZlib\n' >trireme-1.2.3/share/doc/trireme/libraries.tsv
tar -c --mtime="@$SOURCE_DATE_EPOCH" --sort=name trireme-1.2.3 | zstd -q -o "$2/trireme-1.2.3.tar.zst"
[ -z "$(git -C "$sources" status --porcelain)" ] || { echo "what was made lies among the sources" && exit 1; }
END
chmod +x tools/package
echo 'exit 0' >tools/abi
echo 'exit 0' >tests/packages/linters.sh
printf '    {1, "1.0.0"},\n' >src/verify/verify.c
printf 'int tr_numerics_version(void)\n{\n    return 2;\n}\n' >src/base/version.c
git add -A && git commit -qm one

# refuses WORDS OPTION...: a release with these options prints WORDS and makes no tag
refuses() {
  words=$1
  shift
  rm -rf dist
  if tools/release "$@" >"$place/said" 2>&1; then fail "this was not refused: $*"; fi
  grep -q "$words" "$place/said" || { cat "$place/said" && fail "\"$words\" was not said"; }
  [ "$(git tag)" = "$tags" ] || fail "there is a tag"
}
tags=
refuses 'usage\|VERSION' nonsense
refuses 'says version 1.2.3, not 1.2.4' 1.2.4 --kinds archive --on ''
refuses 'head of CHANGELOG.md is ""' 1.2.3 --kinds archive --on ''
printf '# Changelog\n\n## Unreleased\n\n- A change.\n\n## 1.2.3 - 2026-01-02\n' >CHANGELOG.md
git commit -qam 'a change too many'
refuses 'entries under Unreleased' 1.2.3 --kinds archive --on ''
printf '# Changelog\n\n## Unreleased\n\n## 1.2.3 - 2026-01-02\n' >CHANGELOG.md
refuses 'not committed' 1.2.3 --kinds archive --on ''
git commit -qam two
refuses 'which release has the numerics version 2' 1.2.3 --kinds archive --on ''
printf '    {2, "1.2.3"},\n' >>src/verify/verify.c
echo 'exit 1' >tests/packages/linters.sh
git commit -qam 'a release of these numerics'
refuses 'recipes of packages say another version' 1.2.3 --kinds archive --on ''
echo 'exit 0' >tests/packages/linters.sh
git commit -qam 'recipes that agree'

# shellcheck disable=SC2016 # for the script
echo 'date +%N >"$2/clock"' >>tools/package
git commit -qam 'a clock in a package'
refuses 'two builds of the same sources differ' 1.2.3 --kinds archive --on ''
git revert --no-edit HEAD >/dev/null

# Failures that would end it at the end are found at the beginning.
refuses 'no-such-key cannot be read\|minisign is not installed' 1.2.3 --kinds archive --on '' --key no-such-key
(export GIT_COMMITTER_NAME='' && refuses 'who makes the tag' 1.2.3 --kinds archive --on '')

# A test of the packages decides, unless it reports that the packages are not for this system.
# shellcheck disable=SC2016 # for the script
printf 'echo "$1 is too old" && [ "$1" = bullseye ] && exit 77\n[ "$1" = trixie ] || exit 1\ngit -C "$2" commit -q --allow-empty -m later\n' >tests/packages/archive_on.sh
git add -A && git commit -qm 'a test'
refuses 'bookworm is too old' 1.2.3 --kinds archive --on 'bullseye bookworm'
tools/release 1.2.3 --dry-run --kinds archive --on bullseye --out "$place/old" >"$place/said" 2>&1 || { cat "$place/said" && fail "an old system ends a release"; }
grep -q 'bullseye is too old' "$place/said" || fail "what is left out is not told"

rm -rf dist
set -- --kinds archive --on ''
if command -v minisign >/dev/null; then
  printf '\n\n' | minisign -G -W -p "$place/key.pub" -s "$place/key" >/dev/null 2>&1
  set -- "$@" --key "$place/key"
fi
tools/release 1.2.3 --dry-run "$@" >"$place/said" 2>&1 || { cat "$place/said" && fail "a trial was refused"; }
grep -q ' 0 complaints; no tag' "$place/said" || { cat "$place/said" && fail "it complains"; }
[ -z "$(git tag)" ] || fail "a trial made a tag"
mv dist "$place/dry"
commit=$(git rev-parse HEAD)
tools/release 1.2.3 "$@" --on trixie >"$place/said" 2>&1 || { cat "$place/said" && fail "the release was refused"; }
[ "$(git tag)" = v1.2.3 ] || fail "there is no tag"
[ "$(git cat-file -t v1.2.3)" = tag ] || fail "the tag has no author and date"
# The test of the packages has committed something: the tag is on the commit that was built.
[ "$(git rev-parse HEAD~)" = "$commit" ] || fail "nothing was committed meanwhile"
[ "$(git rev-parse 'v1.2.3^{commit}')" = "$commit" ] || fail "the tag is not on the commit that was built"
cd dist/1.2.3
sha256sum --quiet -c SHA256SUMS
cmp SHA256SUMS "$place/dry/1.2.3/SHA256SUMS"
grep -q '"version": "1.2.3"' trireme-1.2.3.cdx.json || fail "the bill of materials is of another version"
grep -q '"name": "zlib"' trireme-1.2.3.cdx.json || fail "the bill of materials has no zlib"
if command -v minisign >/dev/null; then
  minisign -V -q -p "$place/key.pub" -m SHA256SUMS
  echo changed >>SHA256SUMS
  if minisign -V -q -p "$place/key.pub" -m SHA256SUMS 2>/dev/null; then fail "a changed file has its signature"; fi
fi

cd ../..
tags=v1.2.3
sed -i s/1.2.3/1.2.4/ CMakeLists.txt CHANGELOG.md tools/package
sed -i s/2/3/ src/base/version.c
printf '    {3, "1.2.4"},\n' >>src/verify/verify.c
git commit -qam three
refuses 'CHANGELOG.md tells of no hash' 1.2.4 --kinds archive --on ''
printf '\n### Hashes\n\n- All.\n\n## 1.2.3\n' >>CHANGELOG.md
git commit -qam 'a section that was not released'
refuses 'other words under 1.2.3 than' 1.2.4 --kinds archive --on ''
printf '# Changelog\n\n## 1.2.4 - 2026-01-02\n\n### Hashes\n\n- All.\n\n## 1.2.3 - 2026-01-02\n' >CHANGELOG.md
echo 'exit 4' >tools/abi
git commit -qam four
refuses 'the binary interface' 1.2.4 --kinds archive --on ''
sed -i s/3/2/ src/base/version.c
git commit -qam five
refuses 'is that of v1.2.3' 1.2.4 --kinds archive --on ''
echo "all is well"
