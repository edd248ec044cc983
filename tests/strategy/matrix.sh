#!/bin/sh
# One hash under every synchronous strategy, with the real program: processes of one host that the launcher starts itself, and
# processes under MPI that share memory, or have nothing but TCP between them (each in a name space of its own); and from any
# strategy to another after a kill -9. With "long" as third argument all of it, else a selection. Says "skipped:" for what
# cannot be had.
#
#     matrix.sh PROGRAM SOURCE_DIRECTORY [long]
set -u
program=$1 source=$2 what=${3:-short}
place=$(mktemp -d)
failed=0 runs=0
steps=24
job="$source/models/mnist-quick.yaml --set train.microbatches=4 --set train.batch=40 --set optimizer.schedule=constant --set train.log_every=0 --steps $steps"

clean() {
  rm -rf "$place"
}
trap clean EXIT
trap 'exit 1' INT TERM

mpi=yes apart=yes
command -v mpirun >/dev/null && [ -e "$(dirname "$program")/../modules/trireme-mpi.so" ] || {
  mpi=no apart=no
  echo "skipped: processes under MPI (Open MPI was not found; Debian: openmpi-bin and libopenmpi-dev)"
}
[ $mpi = no ] || { [ "$(id -u)" = 0 ] && unshare --pid --fork --mount-proc true 2>/dev/null; } || {
  apart=no
  echo "skipped: processes without shared memory (name spaces of processes are not allowed here)"
}
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1

hash_in() {
  sed -n 's/^hash *//p' "$1" | tail -n 1
}

complain() {
  echo "FAILED: $1"
  tail -n 20 "$2" "$2.error" "$2.before" 2>/dev/null
  failed=$((failed + 1))
}

# run NAME RANKS STRATEGY TRANSPORT OPTIONS...: trains in $place/NAME, output in $place/NAME.log.
run() {
  name=$1 ranks=$2 strategy=$3 transport=$4
  shift 4
  set -- train "$@" --strategy "$strategy" -o "$place/$name" -t 1
  case $transport in
    local) "$program" launch --transport local -n "$ranks" -t 1 "$@" ;;
    mpi) "$program" launch --transport mpi -n "$ranks" -t 1 "$@" ;;
    tcp) OMPI_MCA_btl=tcp,self OMPI_MCA_hwloc_base_binding_policy=none PRTE_MCA_hwloc_default_binding_policy=none \
      mpirun --oversubscribe -n "$ranks" \
      unshare --pid --fork --kill-child --mount-proc "$program" "$@" --transport mpi ;;
  esac >"$place/$name.log" 2>"$place/$name.log.error"
}

# expect NAME DESCRIPTION: the run ended with the hash of one process.
expect() {
  runs=$((runs + 1))
  got=$(hash_in "$place/$1.log")
  if [ "$got" = "$alone" ]; then echo "equal: $2"; else complain "$2: hash ${got:-missing}, one process has $alone" "$place/$1.log"; fi
  rm -rf "${place:?}/$1"
}

# one STRATEGY RANKS TRANSPORT
one() {
  [ "$3" = tcp ] && [ $apart = no ] && return
  [ "$3" = mpi ] && [ $mpi = no ] && return
  # shellcheck disable=SC2086 # the job is words
  run one "$2" "$1" "$3" $job
  expect one "$1 on $2 processes, $3"
}

# newest_rank DIRECTORY: a process that trains there
newest_rank() {
  for process in /proc/[0-9]*; do
    { tr '\0' ' ' <"$process/cmdline"; } 2>/dev/null | grep -q "^$program train .*-o $1 " && echo "${process#/proc/}"
  done | sort -n | tail -n 1
}

# like_alone STRATEGY RANKS TRANSPORT SETTING: processes end like a single one under the same strategy and setting, whose hash may
# differ from that of other strategies; and the setting takes effect.
like_alone() {
  [ "$3" = tcp ] && [ $apart = no ] && return
  default=$alone
  # shellcheck disable=SC2086
  "$program" train $job --set "$4" --strategy "$1" -o "$place/single" >"$place/single.log" 2>"$place/single.log.error"
  alone=$(hash_in "$place/single.log")
  if [ -z "$alone" ] || [ "$alone" = "$default" ]; then complain "$1 with $4 on one process ends as without" "$place/single.log"; fi
  rm -rf "$place/single"
  # shellcheck disable=SC2086
  run one "$2" "$1" "$3" $job --set "$4"
  expect one "$1 with $4 on $2 processes, $3"
  alone=$default
}

# kill FROM RANKS TO RANKS: a process of FROM is killed once there is a checkpoint, and TO resumes.
killed() {
  endless=$(echo "$job" | sed "s/--steps $steps/--steps 1000000/")
  # shellcheck disable=SC2086
  run killed "$2" "$1" local $endless --set train.checkpoint_every=3 --set train.keep=1000 &
  waiting=$!
  for _ in $(seq 600); do
    [ -d "$place/killed/checkpoint-00000006" ] && break
    sleep 0.1
  done
  victim=$(newest_rank "$place/killed")
  [ -n "$victim" ] && kill -KILL "$victim"
  wait $waiting && complain "$1 on $2 processes: the end of a killed job is taken for success" "$place/killed.log"
  cat "$place/killed.log" "$place/killed.log.error" >"$place/killed.log.before"
  # The run may have got past the end of the undisturbed one: only checkpoints up to there are kept.
  for saved in "$place"/killed/checkpoint-*; do
    number=${saved##*-}
    [ "$(echo "$number" | sed 's/^0*//')" -gt 18 ] && rm -rf "$saved"
  done
  # shellcheck disable=SC2086
  run killed "$4" "$3" local $job --resume "$place/killed"
  expect killed "$1 on $2 processes, killed, then $3 on $4"
}

# shellcheck disable=SC2086
"$program" train $job -o "$place/alone" >"$place/alone.log" 2>"$place/alone.log.error"
alone=$(hash_in "$place/alone.log")
[ -n "$alone" ] || { complain "one process" "$place/alone.log"; exit 1; }

ps=parameter-server,mode=sync,servers
if [ "$what" = long ]; then
  for transport in local mpi tcp; do
    for workers in 1 2 3 4; do
      one allreduce $workers $transport
      one $ps=1 $((workers + 1)) $transport
      one $ps=2 $((workers + 2)) $transport
    done
    one pipeline,stages=2 2 $transport
    one pipeline,stages=2 4 $transport # a grid of 2 stages x 2 replicas
  done
  killed allreduce 2 pipeline,stages=2 4
  killed pipeline,stages=2 4 $ps=2 4
  killed $ps=2 4 $ps=1 3
  killed $ps=1 2 allreduce 3
  killed allreduce 4 allreduce 1
  for transport in local tcp; do
    for setting in optimizer.clip_norm=0.3 optimizer.l2=0.01; do
      like_alone allreduce 3 $transport $setting
      like_alone $ps=1 3 $transport $setting
      like_alone pipeline,stages=2 4 $transport $setting
      for ranks in 2 3 4; do
        like_alone local-sgd,replicas=4,momentum=0.5 $ranks $transport $setting
        like_alone easgd,replicas=4,every=3 $ranks $transport $setting
        like_alone gossip,replicas=4,every=2,consensus=4 $ranks $transport $setting
      done
    done
  done
else
  one allreduce 2 local
  one $ps=1 3 local
  one pipeline,stages=2 2 local
  one allreduce 2 mpi
  one allreduce 3 tcp
  one $ps=1 3 tcp
  killed pipeline,stages=2 2 allreduce 3
  like_alone pipeline,stages=2 4 local optimizer.clip_norm=0.3
  like_alone local-sgd,replicas=4,momentum=0.5 2 local optimizer.clip_norm=0.3
  like_alone gossip,replicas=4,every=2,consensus=4 3 local optimizer.clip_norm=0.3
fi
echo "$runs runs, $failed failed"
[ $failed = 0 ]
