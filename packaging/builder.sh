# Sourced by what builds for systems older than this one: an old Debian with compiler and libraries. What is linked there
# runs on every system whose glibc is as new or newer. It lies in ~/.cache/trireme-builder, is made once, and again when the list
# below changes.
#
#   builder_make               makes it, or says why not and ends
#   builder_run SCRIPT OUT     runs packaging/SCRIPT in a copy of the sources there, which it finds in the current folder; what it
#                              writes to $OUT there comes to the folder OUT here. What was compiled before is kept there, too;
#                              with CCACHE_RECACHE it is compiled anew

. tools/machine.sh
builder_suite=bullseye # Debian 11, glibc 2.31
builder_packages="gcc libc6-dev cmake ninja-build pkg-config libyaml-dev zlib1g-dev libssl-dev libisal-dev libpng-dev
  libturbojpeg0-dev libprotobuf-c-dev protobuf-c-compiler libcurl4-openssl-dev libopenmpi-dev openmpi-bin python3 python3-venv patchelf zstd ccache"
builder=${XDG_CACHE_HOME:-$HOME/.cache}/trireme-builder

builder_make() {
  why=$(machine_why)
  [ -z "$why" ] || { echo "skipped: $why" && exit 77; }
  mkdir -p "$(dirname "$builder")"
  exec 8>"$builder.lock"
  flock 8 # others wait until it is made
  [ "$(cat "$builder/made" 2>/dev/null)" != "$builder_suite $builder_packages" ] || { exec 8>&- && return 0; }
  echo "making a Debian $builder_suite to build in, in $builder"
  rm -rf --one-file-system "$builder"
  machine_make "$builder_suite" "$builder"
  # shellcheck disable=SC2086 # a list of words
  machine_install "$builder" $builder_packages
  echo "$builder_suite $builder_packages" >"$builder/made"
  exec 8>&-
}

# The files of the project as they are here, without what git is to ignore; without git, all but what was built.
builder_files() {
  if [ -e .git ]; then git ls-files -z --cached --others --exclude-standard; else find . -path ./build -prune -o -path ./dist -prune -o -type f -print0; fi
}

builder_run() (
  # The folder has another name each time, so that whatever depends on it shows.
  place=$(mktemp -d "$builder/root/source.XXXXXX")
  trap 'rm -rf --one-file-system "$place"' EXIT
  trap 'exit 1' INT TERM
  builder_files | tar -c --null -T - | tar -x -C "$place"
  mkdir "$place/out"
  inside=${place#"$builder"}
  # shellcheck disable=SC2016 # expanded there
  machine_run "$builder" sh -c 'cd "$1" && export OUT=$1/out CCACHE_BASEDIR=$1 CCACHE_NOHASHDIR=1 CMAKE_C_COMPILER_LAUNCHER=ccache &&
    exec sh "packaging/$2"' sh "$inside" "$1"
  mkdir -p "$2"
  install -m 644 "$place"/out/* "$2/"
)
