#!/bin/sh
# Jobs under SLURM on three nodes: network namespaces on a bridge, each with processes, a host name and a /tmp of its own, and a
# slurmd; a fourth one has the controller. The hash is that of one process: of a job that runs through, and of two that SLURM
# queues again, one since a node is gone, one since its time is over. Wants root; says "skipped:" where that, SLURM or namespaces
# are not to be had.
#
#     slurm.sh PROGRAM SOURCE_DIRECTORY [through | lost | limit]...      by default all three
set -eu
program=$1 source=$2
name=ts$$
place=$(mktemp -d "${TMPDIR:-/var/tmp}/slurm.XXXXXX")
children=

skip() {
  echo "skipped: $*"
  exit 77
}

clean() {
  for id in $children; do kill -9 "$id" 2>/dev/null || true; done
  [ ! -s "$place/munge/pid" ] || kill "$(cat "$place/munge/pid")" 2>/dev/null || true
  for node in ctl n1 n2 n3; do ip netns del "$name$node" 2>/dev/null || true; done
  rm -rf "$place"
}
trap clean EXIT
trap 'exit 1' INT TERM

[ "$(id -u)" = 0 ] || skip "namespaces want root"
for tool in ip nsenter unshare mpirun slurmctld slurmd munged srun sbatch scontrol; do
  command -v $tool >/dev/null || skip "$tool was not found (Debian: iproute2, util-linux, openmpi-bin, slurm-wlm, munge)"
done
if [ "${TRIREME_SLURM_INSIDE:-}" != yes ]; then
  rm -rf "$place"
  TRIREME_SLURM_INSIDE=yes exec sh "$(dirname "$0")/../support/files/own_mounts.sh" sh "$0" "$@"
fi
shift 2
jobs=${*:-through lost limit}

# ---- three nodes and a controller on one network ----

{ ip netns add "${name}ctl" && ip -n "${name}ctl" link add b0 type bridge; } 2>"$place/why" ||
  skip "network namespaces are not allowed here: $(tail -n 1 "$place/why")"
ip -n "${name}ctl" addr add 10.79.0.1/24 dev b0
ip -n "${name}ctl" link set lo up
ip -n "${name}ctl" link set b0 up
for i in 1 2 3; do
  ip netns add "${name}n$i"
  ip link add "e$i" netns "${name}ctl" type veth peer name e0 netns "${name}n$i"
  ip -n "${name}ctl" link set "e$i" master b0 up
  ip -n "${name}n$i" addr add "10.79.0.1$i/24" dev e0
  ip -n "${name}n$i" link set lo up
  ip -n "${name}n$i" link set e0 up
done

# Runs a command on a machine, in all its name spaces.
on() {
  machine=$1
  shift
  # shellcheck disable=SC2016
  exec nsenter --net="/run/netns/$name$machine" unshare --uts --pid --mount --mount-proc --fork --kill-child \
    sh -c 'hostname "$1"; shift; mount -t tmpfs none /tmp; exec "$@"' sh "$machine" "$@"
}

mkdir -m 700 "$place/munge"
mkdir "$place/state" "$place/run"
dd if=/dev/urandom of="$place/munge/key" bs=128 count=1 2>/dev/null
chmod 400 "$place/munge/key"
chmod 711 "$place" "$place/munge"
munged --key-file="$place/munge/key" --socket="$place/munge/socket" --pid-file="$place/munge/pid" \
  --log-file="$place/munge/log" --seed-file="$place/munge/seed" --force >"$place/why" 2>&1 ||
  skip "munged does not run here: $(tail -n 1 "$place/why")"

cat >"$place/slurm.conf" <<END
ClusterName=trireme
SlurmctldHost=ctl(10.79.0.1)
AuthType=auth/munge
AuthInfo=cred_expire=5,socket=$place/munge/socket
CredType=cred/munge
SlurmUser=root
SlurmdUser=root
StateSaveLocation=$place/state
SlurmdSpoolDir=$place/%n
SlurmctldPidFile=$place/state/pid
SlurmdPidFile=$place/%n/pid
SlurmctldLogFile=$place/ctl.log
SlurmdLogFile=$place/%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/linear
SwitchType=switch/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SlurmdParameters=config_overrides
MpiDefault=none
ReturnToService=2
SlurmdTimeout=5
KillWait=10
JobRequeue=1
SchedulerParameters=sched_interval=2
NodeName=n1 NodeAddr=10.79.0.11 CPUs=2 State=UNKNOWN
NodeName=n2 NodeAddr=10.79.0.12 CPUs=2 State=UNKNOWN
NodeName=n3 NodeAddr=10.79.0.13 CPUs=2 State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
END
export SLURM_CONF="$place/slurm.conf"
srun --mpi=list 2>&1 | grep -q pmix || skip "srun has no PMIx (Debian: slurm-wlm-basic-plugins)"
export OMPI_MCA_btl=tcp,self OMPI_MCA_btl_tcp_if_include=10.79.0.0/24
export OMPI_MCA_pmix_base_collect_data=0 # as in docs/how-to/cluster.md: otherwise Open MPI 4.1 crashes in some starts
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1

fail() {
  echo "FAILED: $*"
  tail -n 20 "$place"/*.log "$place"/out* "$place"/err* 2>/dev/null
  exit 1
}

# A node that boots. Files of earlier steps are removed: SLURM's PMIx cannot start a step of the same number if its socket exists.
node() {
  rm -rf "${place:?}/$1"
  mkdir "$place/$1"
  (on "$1" slurmd -D -N "$1") >"$place/$1.out" 2>&1 &
  eval "node_$1=$!"
  children="$children $!"
}

(on ctl slurmctld -D -i) >"$place/ctl.out" 2>&1 &
children="$children $!"
for i in 1 2 3; do node "n$i"; done

# Waits for something, two minutes or so at most.
await() {
  what=$1
  shift
  for _ in $(seq 1200); do
    if "$@"; then return; fi
    sleep 0.1
  done
  fail "$what did not come"
}

control() { (on ctl "$@") 2>>"$place/err"; }
are_idle() { [ "$(control sinfo -h -t idle -o %D)" = "${1:-3}" ]; }
await "three idle nodes" are_idle

hash_in() { sed -n 's/^hash *//p' "$1" | tail -n 1; }

train="$program train $source/models/mnist-quick.yaml --set train.microbatches=6 --set optimizer.schedule=constant"
train="$train --set train.checkpoint_every=20 --set train.log_every=20 -t 1"

# expect FILE STEPS: its last hash is that of one process after so many steps.
expect() {
  $train --steps "$2" -o "$place/alone" --overwrite >"$place/out.alone"
  [ "$(hash_in "$1")" = "$(hash_in "$place/out.alone")" ] ||
    fail "hash $(hash_in "$1"), one process has $(hash_in "$place/out.alone")"
}

# submit NAME OPTIONS...: the batch script of docs/how-to/cluster.md; the number of steps is in a file.
submit() {
  batch=$1
  shift
  cat >"$place/$batch.sh" <<END
#!/bin/sh
#SBATCH --nodes=3 --ntasks-per-node=1
#SBATCH --requeue --open-mode=append
srun --mpi=pmix --kill-on-bad-exit=1 $train --transport mpi --continue -o "$place/run/$batch" --steps "\$(cat "$place/$batch.steps")"
code=\$?
echo "attempt \${SLURM_RESTART_COUNT:-0}: exit code \$code"
[ \$code -ne 3 ] || scontrol requeue "\$SLURM_JOB_ID"
END
  control sbatch --parsable -o "$place/out.$batch" "$@" "$place/$batch.sh" >"$place/$batch.id"
}

has() { grep -q "$1" "$2" 2>/dev/null; }
has_ended() { [ -z "$(control squeue -h -o %i)" ]; }

# A start that crashes in MPI_Init all the same, before the first step, is not the program's fault, and is repeated.
through() {
  for _ in 1 2 3 4; do
    code=0
    control srun --mpi=pmix --kill-on-bad-exit=1 -N 3 --ntasks-per-node=1 $train --steps 60 -o "$place/run/three" \
      --transport mpi --placement --continue >"$place/out" 2>"$place/err.srun" || code=$?
    if [ $code != 139 ] || has '^step' "$place/out"; then break; fi
    echo "MPI crashed while it began"
  done
  [ $code = 0 ] || fail "exit code $code"
  expect "$place/out" 60
  for i in 1 2 3; do grep -q " n$i " "$place/out" || fail "nothing ran on n$i"; done
}

# A node's processes and its cable are removed in the middle of the training; later it comes back.
lost() {
  echo 400 >"$place/lost.steps"
  submit lost
  await "step 60" has '^step  *60/' "$place/out.lost"
  ip -n "${name}ctl" link set e3 down
  kill -9 "$node_n3"
  await "the loss of a node" has 'requeue' "$place/ctl.log"
  ip -n "${name}ctl" link set e3 up
  node n3
  await "a second attempt" has '^resumed ' "$place/out.lost"
  await "the end of the job" has_ended
  has '^attempt 1: exit code 0' "$place/out.lost" || fail "the second attempt did not end well"
  expect "$place/out.lost" 400
}

# A job that exceeds its time limit is notified a while before, saves, and continues as another attempt.
limit() {
  echo 1000000 >"$place/limit.steps"
  submit limit --time=1 --signal=USR1@20
  await "the signal before the time limit" has '^attempt 0: exit code 3' "$place/out.limit"
  saved=$(ls "$place/run/limit" | sed -n 's/^checkpoint-0*//p' | sort -n | tail -n 1)
  echo $((saved + 20)) >"$place/limit.steps"
  await "the end of the job" has_ended
  has '^attempt 1: exit code 0' "$place/out.limit" || fail "the second attempt did not end well"
  expect "$place/out.limit" $((saved + 20))
}

for job in $jobs; do
  $job
  echo "$job: the hash of one process"
done
