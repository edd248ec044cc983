#!/bin/sh
# container.sh SOURCE: carries out the steps of packaging/container/Containerfile on fresh Debian systems in folders, then uses
# the result like a user: the digits to the hash of README.md, on one process and on two, also by Open MPI, as a user without
# rights. It knows the commands that the file uses, and refuses others.
set -eu
source=$1
. "$source/tools/machine.sh"
why=$(machine_why)
[ -z "$why" ] || { echo "skipped: $why" && exit 77; }

place=$(mktemp -d)
trap 'rm -rf --one-file-system "$place"' EXIT
trap 'exit 1' INT TERM
fail() { echo "$1" && exit 1; }
user=root folder=/ variables='' start='' machine=''

# inside COMMAND...: in the last stage, with the user, the folder and the variables that the file has set up to there
inside() {
  # shellcheck disable=SC2016,SC2086 # expanded there; a list of words
  machine_run "$machine" sh -c 'cd "$1" && user=$2 && shift 2 && HOME=$(getent passwd "$user" | cut -d: -f6) &&
    export HOME && exec setpriv --reuid="$user" --regid="$user" --init-groups env "$@"' sh "$folder" "$user" $variables "$@"
}

begin() { # IMAGE [AS NAME]
  suite=${1#debian:}
  suite=${suite%-slim}
  [ "debian:$suite-slim" = "$1" ] || fail "the image $1 is none that this test can make"
  [ -d "$place/image-$suite" ] || machine_make "$suite" "$place/image-$suite"
  machine=$place/stage-${3:-last}
  cp -a "$place/image-$suite" "$machine"
  user=root folder=/ variables=''
}

copy() { # [--from=STAGE] FROM... TO
  root=$source
  case $1 in --from=*) root=$place/stage-${1#--from=} && shift ;; esac
  for to in "$@"; do :; done
  mkdir -p "$machine$to"
  while [ $# -gt 1 ]; do
    if [ -d "$root/$1" ]; then cp -a --no-preserve=ownership "$root/$1/." "$machine$to"; else cp "$root/$1" "$machine$to"; fi
    shift
  done
}

# Comments are removed, and lines that end with a backslash continue in the next.
sed '/^ *#/d; /^ *$/d' "$source/packaging/container/Containerfile" |
  awk '{ if (sub(/\\$/, "")) { printf "%s", $0 } else { print } }' >"$place/steps"
while IFS= read -r step <&3; do
  words=${step#* }
  echo "== $step" | cut -c 1-120
  # shellcheck disable=SC2086 # a list of words
  case ${step%% *} in
    FROM) begin $words ;;
    COPY) copy $words ;;
    RUN) inside sh -c "$words" >"$place/log" 2>&1 || { tail -n 20 "$place/log" && exit 1; } ;;
    ENV) variables="$variables $words" ;;
    USER) user=$words ;;
    WORKDIR) folder=$words && mkdir -p "$machine$words" ;;
    ENTRYPOINT) start=$(echo "$words" | sed 's/^\["\([^",]*\)"\]$/\1/') ;;
    CMD) ;;
    *) fail "this test does not know ${step%% *}" ;;
  esac
done 3<"$place/steps"

echo "== what came out"
du -sm "$machine" | cut -f 1 | sed 's/$/ MiB/'
[ "$(inside id -un)" = trireme ] || fail "it runs as $(inside id -un)"
[ "$(inside cat /etc/OpenCL/vendors/nvidia.icd)" = libnvidia-opencl.so.1 ] || fail "NVIDIA's driver is not named"
for unwanted in cc gcc cmake; do
  if inside sh -c "command -v $unwanted"; then fail "$unwanted is for building alone"; fi
done
if inside touch /usr/local/bin/trireme 2>/dev/null; then fail "the user may change the program"; fi
inside "$start" version
inside "$start" devices | tee "$place/said"
grep -q 'libOpenCL.so.1 cannot be loaded' "$place/said" && fail "the loader of OpenCL is not there"
hash=$(sed -n 's/^hash  *//p' "$source/README.md" | head -n 1)
for launch in "$start" "$start launch -n 2" "mpirun --oversubscribe -n 2 -x TRIREME_TRANSPORT=mpi $start"; do
  # shellcheck disable=SC2086 # a list of words
  inside $launch train mnist-quick --out run --overwrite | tee "$place/said"
  grep -q "^hash  *$hash\$" "$place/said" || fail "the hash is not $hash"
done
inside "$start" predict run --idx /usr/local/share/trireme/data/mnist/t10k-images-idx3-ubyte.gz --index 1 | grep ': 2 100'
echo "all is well"
