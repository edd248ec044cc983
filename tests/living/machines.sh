#!/bin/sh
# A job on two machines over TCP: two network namespaces with a cable between them, each with processes and a host name of its
# own; checkpoints lie on one of them. With "outage" as third argument, the cable is pulled in the middle of the run; with
# "losses", one process after the other is killed on both machines, and the others go on; with "slow", the cable carries 50 Mb/s,
# and four workers train under every synchronous strategy and variant that `compare` knows. Wants root; says "skipped:" where that
# or namespaces are not to be had.
#
#     machines.sh PROGRAM SOURCE_DIRECTORY [together | outage | losses | slow]
set -eu
program=$1 source=$2 what=${3:-together}
a=tr$$a b=tr$$b
place=$(mktemp -d)

skip() {
  echo "skipped: $*"
  exit 77
}

clean() {
  for id in $(ip netns pids "$a" 2>/dev/null) $(ip netns pids "$b" 2>/dev/null); do kill -9 "$id" 2>/dev/null || true; done
  ip netns del "$a" 2>/dev/null || true
  ip netns del "$b" 2>/dev/null || true
  rm -rf "$place"
}
trap clean EXIT
trap 'exit 1' INT TERM

[ "$(id -u)" = 0 ] || skip "network namespaces want root"
for tool in ip unshare mpirun; do
  command -v $tool >/dev/null || skip "$tool was not found (Debian: iproute2, util-linux, openmpi-bin)"
done
# Mounts of `ip netns` must vanish with this program: it runs in a separate name space of mounts.
if [ "${TRIREME_MACHINES_INSIDE:-}" != yes ]; then
  rm -rf "$place"
  TRIREME_MACHINES_INSIDE=yes exec sh "$(dirname "$0")/../support/files/own_mounts.sh" sh "$0" "$@"
fi
{ ip netns add "$a" && ip netns add "$b" &&
  ip link add v0 netns "$a" type veth peer name v0 netns "$b" &&
  ip netns exec "$a" unshare --uts --pid --fork --mount-proc true; } 2>"$place/why" ||
  skip "network namespaces are not allowed here: $(tail -n 1 "$place/why")"
for side in "$a 10.77.0.1" "$b 10.77.0.2"; do
  set -- $side
  ip -n "$1" addr add "$2/24" dev v0
  ip -n "$1" link set lo up
  ip -n "$1" link set v0 up
  [ "$what" != slow ] || tc -n "$1" qdisc add dev v0 root tbf rate 50mbit burst 16kb latency 100ms 2>"$place/why" ||
    skip "links cannot be made slow here: $(tail -n 1 "$place/why")"
done

# Stands in for ssh, which passes the words to a shell: `agent [options] HOST COMMAND...` runs the command on that machine.
cat >"$place/agent" <<END
#!/bin/sh
while [ "\${1#-}" != "\$1" ]; do shift; done
case \$1 in
  10.77.0.1) space=$a name=machine-a ;;
  10.77.0.2) space=$b name=machine-b ;;
  *) echo "agent: there is no host \$1" >&2; exit 255 ;;
esac
shift
exec ip netns exec "\$space" unshare --uts --pid --fork --kill-child --mount-proc sh -c \
  "hostname \$name; [ \$name = machine-a ] || mount -t tmpfs none '$place/two'; \$*; exit \$?"
END
chmod +x "$place/agent"
mkdir "$place/two" # of checkpoints: machine-b sees another one, which is empty
export OMPI_MCA_plm_rsh_agent="$place/agent" PRTE_MCA_plm_ssh_agent="$place/agent" # of Open MPI 4 and 5
# The daemon is the first process of its name space and must stay.
export OMPI_MCA_orte_leave_session_attached=1 PRTE_MCA_prte_leave_session_attached=1
export OMPI_MCA_btl=tcp,self
# Its store in shared memory is named by numbers of processes, which exist on both machines.
export PMIX_MCA_gds=hash
# Sessions are named by host and process, which are the same in every run of this program.
export OMPI_MCA_orte_tmpdir_base="$place" PRTE_MCA_prte_tmpdir_base="$place"

hash_in() {
  sed -n 's/^hash *//p' "$1" | tail -n 1
}

fail() {
  echo "FAILED: $*"
  cat "$place/out" "$place/err"
  exit 1
}

# launch RANKS OPTIONS...: half of the ranks on each machine, the odd one on the first
launch() {
  ranks=$1 half=$((($1 + 1) / 2))
  shift
  "$place/agent" 10.77.0.1 "$program" launch -n "$ranks" -t 1 --hosts "10.77.0.1:$half,10.77.0.2:$half" "$@" >"$place/out" 2>"$place/err"
}

# Kills the process of a rank, on its machine.
kill_rank() {
  for id in $(ip netns pids "$a") $(ip netns pids "$b"); do
    tr '\0' '\n' <"/proc/$id/environ" 2>/dev/null | grep -qx "OMPI_COMM_WORLD_RANK=$1" && kill -9 "$id" && return
  done
  fail "there is no rank $1"
}

# Waits until a file has a line like this; fails after a minute, or when the job is over.
wait_for() {
  tries=600
  while ! grep -q "$2" "$1" 2>/dev/null; do
    kill -0 $job_id 2>/dev/null || fail "the job ended"
    tries=$((tries - 1))
    [ $tries -gt 0 ] || fail "nobody said \"$2\""
    sleep 0.1
  done
}

# Processes of one host, which `compare` starts, and two hosts end with the same hash.
slow() {
  job="$source/models/mnist-quick.yaml --set train.batch=48 --set train.microbatches=8 --set optimizer.schedule=constant"
  "$program" compare $job --steps 16 --workers 4 --csv "$place/all.csv" >"$place/out" 2>"$place/err" || fail "compare: exit code $?"
  # The commas of a strategy do not separate columns. Only asynchronous ones have a staleness.
  sed 's/,\([a-z]*=\)/;\1/g; s/"//g' "$place/all.csv" | awk -F, '
    NR == 1 { for (i = 1; i <= NF; i++) column[$i] = i; next }
    $column["workers"] == 4 && $column["staleness_mean"] == "" {
      print $column["strategy"], $column["processes"], $column["end"], $column["hash"], $column["hash_equal"] }' |
    tr ';' ',' >"$place/synchronous"
  strategies=0
  while read -r strategy ranks end hash equal <&3; do
    [ "$end" = done ] && [ "$equal" != no ] || fail "$strategy on one host: $end $hash $equal"
    launch "$ranks" train $job --steps 16 --strategy "$strategy" -o "$place/two" --overwrite --placement || fail "$strategy: exit code $?"
    [ "$(hash_in "$place/out")" = "$hash" ] || fail "$strategy: hash $(hash_in "$place/out"), on one host it has $hash"
    grep -q machine-a "$place/out" && grep -q machine-b "$place/out" || fail "$strategy: there were no two machines"
    echo "$strategy on $ranks ranks: $hash"
    strategies=$((strategies + 1))
  done 3<"$place/synchronous"
  [ $strategies -gt 0 ] || fail "compare names no synchronous strategy"
  for side in "$a" "$b"; do
    tc -n "$side" -s qdisc show dev v0 | grep -q 'overlimits [1-9]' || fail "nothing had to wait for the link"
  done
}

# alone STEPS: the job in one process, and its hash
alone() {
  job="$source/models/mnist-quick.yaml --set train.microbatches=4 --set train.checkpoint_every=20 --set train.log_every=20 --steps $1"
  "$program" train $job -o "$place/alone" --overwrite >"$place/out"
  alone=$(hash_in "$place/out")
}

expect() {
  [ "$(hash_in "$place/out")" = "$alone" ] || fail "hash $(hash_in "$place/out"), one process has $alone"
}

together() {
  alone 60
  launch 2 train $job -o "$place/two" --timeout 10000 || fail "exit code $?"
  expect
  rm -r "$place/two/checkpoint-00000060"
  launch 2 train $job -o "$place/two" --placement --timeout 10000 --continue || fail "exit code $?"
  grep -q '^resumed .*step 40' "$place/out" || fail "it began anew"
  grep -q machine-a "$place/out" && grep -q machine-b "$place/out" || fail "there were no two machines"
  grep -q ' 0 bytes read in shared memory' "$place/out" || fail "the machines shared memory"
  expect
}

losses() {
  alone 600
  launch 4 --on-loss shrink train $job -o "$place/two" --timeout 20000 --replicas-of-state 1 &
  job_id=$!
  wait_for "$place/out" '^step  60/'
  kill_rank 3
  wait_for "$place/err" 'rank 3 on host machine-b died; 3 of 4 ranks go on'
  wait_for "$place/out" '^step 200/'
  kill_rank 0
  wait_for "$place/err" 'rank 0 on host machine-a died; 2 of 4 ranks go on, and rank 1 reports and saves'
  wait $job_id || fail "exit code $?"
  expect
}

outage() {
  alone 600
  launch 2 --restarts 5 train $job -o "$place/two" --timeout 2000 &
  job_id=$!
  while ! grep -q '^step  60/' "$place/out" 2>/dev/null; do sleep 0.1; done
  ip -n "$b" link set v0 down
  while ! grep -q 'restart 1 of' "$place/err"; do
    kill -0 $job_id 2>/dev/null || fail "the job ended"
    sleep 0.1
  done
  ip -n "$b" link set v0 up
  wait $job_id || fail "exit code $?"
  grep -q 'after step [0-9]* of 600: .*rank 1 on host machine-b has not been heard of' "$place/err" ||
    fail "the machine that was gone was not named"
  expect
}

$what
sleep 1
left=$(for id in $(ip netns pids "$a") $(ip netns pids "$b"); do tr '\0' ' ' <"/proc/$id/cmdline"; done)
[ -z "$left" ] || fail "left behind: $left"
echo "$what: as on one machine"
