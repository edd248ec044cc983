# Sourced by ./demo and ./check from the project's root: installs missing packages on Debian and Ubuntu, and elsewhere names them.

# The compiler, the build tools and the libraries that cmake/dependencies.cmake looks for.
packages_build="gcc libc6-dev cmake make pkg-config libyaml-dev zlib1g-dev libssl-dev libisal-dev libpng-dev libturbojpeg0-dev libprotobuf-c-dev protobuf-c-compiler libcurl4-openssl-dev"
packages_test="libcmocka-dev libjansson-dev libdnnl-dev libopenmpi-dev openmpi-bin iproute2 libsimgrid-dev pocl-opencl-icd ocl-icd-libopencl1 mandoc"

say() { printf '\n== %s\n' "$*"; }

# missing PACKAGE...: those that are not installed
missing() {
  for package in "$@"; do
    dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q 'install ok installed' || printf '%s ' "$package"
  done
}

# install PACKAGE...: installs the missing ones as root or through sudo, or prints the command for it
install_packages() {
  if ! command -v apt-get >/dev/null 2>&1 || ! command -v dpkg-query >/dev/null 2>&1; then
    echo "This is no Debian or Ubuntu: CMake will name the libraries that are missing, if any."
    return 0
  fi
  wanted=$(missing "$@")
  [ -n "$wanted" ] || return 0
  say "Installing ${wanted% }"
  if [ "$(id -u)" = 0 ]; then
    as_root=
  elif command -v sudo >/dev/null 2>&1 && sudo -n true 2>/dev/null || { command -v sudo >/dev/null 2>&1 && [ -t 0 ]; }; then
    as_root=sudo
  else
    echo "Missing packages, and no way to become root here. Please have someone type:" >&2
    echo "    apt-get update && apt-get install -y --no-install-recommends $wanted" >&2
    exit 1
  fi
  # shellcheck disable=SC2086 # a list of words
  $as_root apt-get update -qq &&
    DEBIAN_FRONTEND=noninteractive $as_root apt-get install -y -qq --no-install-recommends $wanted >/dev/null || {
    echo "apt-get could not install: $wanted" >&2
    exit 1
  }
}

# install_optional PACKAGE...: those that this release of the system has; the tests report missing ones
install_optional() {
  command -v apt-cache >/dev/null 2>&1 || return 0
  known=
  for package in $(missing "$@"); do
    if apt-cache show "$package" >/dev/null 2>&1; then known="$known $package"; else echo "skipped: this system has no package $package"; fi
  done
  # shellcheck disable=SC2086 # a list of words
  [ -z "$known" ] || install_packages $known
}

processors() { getconf _NPROCESSORS_ONLN 2>/dev/null || echo 2; }

# build DIRECTORY CMAKE_OPTION...: configures and builds everything, or only $target, quietly unless it fails; with Ninja and
# ccache where they are
build() {
  directory=$1
  shift
  mkdir -p "$directory"
  log=$directory/build.log
  [ -f "$directory/CMakeCache.txt" ] || ! command -v ninja >/dev/null || set -- -G Ninja "$@"
  ! command -v ccache >/dev/null || set -- -DCMAKE_C_COMPILER_LAUNCHER=ccache "$@"
  if ! { cmake -S . -B "$directory" "$@" && cmake --build "$directory" -j "$(processors)" ${target:+--target "$target"}; } >"$log" 2>&1; then
    grep -E -A3 'error|Error|needs these packages' "$log" | head -n 60 >&2
    echo "The build failed; all of its output is in $log" >&2
    exit 1
  fi
}
