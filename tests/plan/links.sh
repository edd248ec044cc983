#!/bin/sh
# links.sh PROGRAM SOURCE_DIRECTORY [RATE...]: plans and runs on two machines behind slow links: two network namespaces with a cable
# between them that carries so much (100mbit and 50mbit without any). What `plan --hosts` measures of the network is about what the cable carries, and what it
# predicts is not off by more than a factor: machines are busy. Wants root; says "skipped:" where that or namespaces are not to be had.
# With MEASURE=COMMAND in the environment, that is run in the place of all checks, for each rate, with HOSTS and RATE set (bench/plan).
set -eu
program=$1 source=$2
shift 2
a=tp$$a b=tp$$b
place=$(mktemp -d)
factor=2.5

skip() {
  echo "skipped: $*"
  exit 77
}

clean() {
  ip netns del "$a" 2>/dev/null || true
  ip netns del "$b" 2>/dev/null || true
  rm -rf "$place"
}
trap clean EXIT
trap 'exit 1' INT TERM

[ "$(id -u)" = 0 ] || skip "network namespaces want root"
for tool in ip tc unshare mpirun; do
  command -v $tool >/dev/null || skip "$tool was not found (Debian: iproute2, util-linux, openmpi-bin)"
done
# Mounts of `ip netns` must vanish with this program: it runs in a separate name space of mounts.
if [ "${TRIREME_LINKS_INSIDE:-}" != yes ]; then
  rm -rf "$place"
  TRIREME_LINKS_INSIDE=yes exec sh "$(dirname "$0")/../support/files/own_mounts.sh" sh "$0" "$program" "$source" "$@"
fi
{ ip netns add "$a" && ip netns add "$b" &&
  ip link add v0 netns "$a" type veth peer name v0 netns "$b" &&
  ip netns exec "$a" unshare --uts --pid --fork --mount-proc true; } 2>"$place/why" ||
  skip "network namespaces are not allowed here: $(tail -n 1 "$place/why")"
for side in "$a 10.78.0.1" "$b 10.78.0.2"; do
  set -- $side "$@"
  ip -n "$1" addr add "$2/24" dev v0
  ip -n "$1" link set lo up
  ip -n "$1" link set v0 up
  shift 2
done

# Stands in for ssh, which passes the words to a shell: `agent [options] HOST COMMAND...` runs the command on that machine.
cat >"$place/agent" <<END
#!/bin/sh
while [ "\${1#-}" != "\$1" ]; do shift; done
case \$1 in
  10.78.0.1) space=$a name=machine-a ;;
  10.78.0.2) space=$b name=machine-b ;;
  *) echo "agent: there is no host \$1" >&2; exit 255 ;;
esac
shift
exec ip netns exec "\$space" unshare --uts --pid --fork --kill-child --mount-proc sh -c "hostname \$name; \$*; exit \$?"
END
chmod +x "$place/agent"
export OMPI_MCA_plm_rsh_agent="$place/agent" PRTE_MCA_plm_ssh_agent="$place/agent" # of Open MPI 4 and 5
# The daemon is the first process of its name space and must stay.
export OMPI_MCA_orte_leave_session_attached=1 PRTE_MCA_prte_leave_session_attached=1
export OMPI_MCA_btl=tcp,self
HOSTS=10.78.0.1:1,10.78.0.2:1
RATE=
export HOSTS RATE

fail() {
  echo "FAILED: $*"
  cat "$place/out" "$place/err"
  exit 1
}

# figure KEY FILE: the numbers after such keys
figure() {
  sed -n "s/.*$1\": *\([0-9.eE+-]*\).*/\1/p" "$2"
}

# near NUMBER NUMBER: within the factor
near() {
  awk -v a="$1" -v b="$2" -v f=$factor 'BEGIN { exit !(a > 0 && b > 0 && a / b < f && b / a < f) }'
}

[ $# -gt 0 ] || set -- 100mbit 50mbit
for rate in "$@"; do
  # After a pause a bucket of tokens lets this much through at once, which a real link would not. So it has only the size of a
  # piece that the system sends at once. With less, the system would cut these pieces up, which takes processor time that a real
  # link would not.
  for space in "$a" "$b"; do
    ip netns exec "$space" tc qdisc replace dev v0 root tbf rate "$rate" burst 80kb latency 50ms ||
      skip "tc cannot make links slow here"
  done
  if [ -n "${MEASURE:-}" ]; then
    RATE=$rate
    "$place/agent" 10.78.0.1 "$MEASURE"
    continue
  fi
  # The gradients of 13 MB each way take longer than all else, so that the processor time of other programs hardly counts.
  "$place/agent" 10.78.0.1 "$program" plan "$source/models/mnist-cnn.yaml" --hosts $HOSTS --workers 2 --threads 1 --seconds 0.2 \
    --strategies allreduce,factors=never --verify --runs 0 --json "$place/json" >"$place/out" 2>"$place/err" || fail "exit code $?"
  tr ',' '\n' <"$place/json" >"$place/figures"
  case $rate in *gbit) bytes=$((${rate%gbit} * 125000000)) ;; *) bytes=$((${rate%mbit} * 125000)) ;; esac
  found=$(figure '"bytes_per_second' "$place/figures" | head -n 1)
  near "$found" $bytes || fail "a link of $bytes bytes per second was measured as $found"
  grep -q '"failure"' "$place/json" && fail "a run failed"
  predicted=$(figure '"examples_per_second' "$place/figures" | tail -n 1) measured=$(figure measured_examples_per_second "$place/figures" | tail -n 1)
  echo "$rate: measured as $found bytes per second; predicted $predicted examples per second, measured $measured"
  near "$predicted" "$measured" || fail "predicted $predicted examples per second, measured $measured"
done
[ -n "${MEASURE:-}" ] || echo "two machines behind slow links are as planned"
