# Sourced by tools/package, tools/release and the tests of packages: fresh Debian systems in folders, to build and to try things in.
# They come from the mirror of this system, or from TRIREME_DEBIAN_MIRROR, and need root, debootstrap and unshare (util-linux).
#
#   machine_why                        why this machine cannot make them, in a line; nothing where it can
#   machine_make SUITE FOLDER [NAMES]  fills FOLDER with a Debian SUITE and packages: names with commas between. What debootstrap made
#                                      is kept for a day in ~/.cache/trireme-machines, as an archive that each machine comes out of
#   machine_install FOLDER PACKAGE...  installs packages, with the updates of Debian's security team where the mirror has them
#   machine_run FOLDER COMMAND...      runs a command there; what it mounts and starts ends with it, so that FOLDER can be removed

machine_mirror=${TRIREME_DEBIAN_MIRROR:-$(cat /etc/apt/sources.list /etc/apt/sources.list.d/* 2>/dev/null |
  sed -n 's/^URIs: *\([^ ]*\).*/\1/p; s/^deb *\(\[[^]]*\] *\)\{0,1\}\([^ ]*\).*/\2/p' | head -n 1)}

machine_why() {
  if [ "$(id -u)" != 0 ]; then
    echo "only root can make a fresh machine"
  elif ! command -v debootstrap >/dev/null; then
    echo "debootstrap is not installed"
  elif ! unshare --mount true 2>/dev/null; then
    echo "mounts of its own are not allowed here"
  fi
}

machine_make() {
  machine_kept=${XDG_CACHE_HOME:-$HOME/.cache}/trireme-machines/$1${3:+,$3}.tar
  mkdir -p "${machine_kept%/*}" "$2"
  exec 9>"$machine_kept.lock"
  flock 9 # others wait until it exists
  if [ -z "$(find "$machine_kept" -mtime -1 2>/dev/null)" ]; then
    machine_new=$(mktemp -d "$machine_kept.XXXXXX")
    if ! unshare --mount --propagation private debootstrap --variant=minbase --include="ca-certificates${3:+,$3}" "$1" "$machine_new/root" \
      ${machine_mirror:+"$machine_mirror"} >"$machine_new/log" 2>&1 9>&-; then
      tail -n 5 "$machine_new/log"
      rm -rf --one-file-system "$machine_new"
      exec 9>&-
      return 1
    fi
    tar -c -f "$machine_new/tar" -C "$machine_new/root" .
    mv "$machine_new/tar" "$machine_kept"
    rm -rf --one-file-system "$machine_new"
  fi
  tar -x -p --numeric-owner -f "$machine_kept" -C "$2"
  exec 9>&-
  cp -L /etc/resolv.conf /etc/hosts "$2/etc/"
  echo force-unsafe-io >"$2/etc/dpkg/dpkg.cfg.d/unsafe-io" # a temporary machine need not survive a power failure
  machine_trust "$2"
}

# Certificates that this system trusts on the network are trusted there, too.
machine_trust() {
  for bundle in /etc/ssl/certs/ca-certificates.crt "${PIP_CERT:-}"; do
    [ ! -f "$bundle" ] || { mkdir -p "$1$(dirname "$bundle")" && cp -L "$bundle" "$1$bundle"; }
  done
}

machine_install() {
  machine_at=$1
  shift
  # shellcheck disable=SC2016 # expanded there
  machine_run "$machine_at" sh -c '
    . /etc/os-release
    security=$(sed -n "1s,/debian/* .*,/debian-security $VERSION_CODENAME-security main,p" /etc/apt/sources.list)
    echo "$security" >/etc/apt/sources.list.d/security.list
    apt-get update -qq 2>/dev/null || { rm /etc/apt/sources.list.d/security.list && apt-get update -qq; }
    apt-get upgrade -y -qq && apt-get install -y -qq --no-install-recommends "$@"' sh "$@" >"$machine_at.log" 2>&1 || {
    tail -n 5 "$machine_at.log"
    return 1
  }
  rm "$machine_at.log"
  machine_trust "$machine_at" # packages may have written their own
}

machine_run() {
  # shellcheck disable=SC2016,SC2046 # expanded there; a list of words
  env -i HOME=/root PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin LANG=C.UTF-8 DEBIAN_FRONTEND=noninteractive \
    $(env | grep -iE '^((https?|no)_proxy|PIP_(CERT|INDEX_URL|DEFAULT_TIMEOUT)|SOURCE_DATE_EPOCH|CCACHE_RECACHE)=' || true) \
    unshare --mount --pid --fork --kill-child --propagation private sh -c '
      mount -t proc proc "$0/proc" && mount --rbind /dev "$0/dev" && chroot "$0" "$@"
      exit $?' "$@" </dev/null
}
