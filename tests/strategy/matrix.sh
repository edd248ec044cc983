#!/bin/sh
# One hash under every synchronous strategy, with the real program over MPI: processes that share memory, and processes that
# have nothing but TCP between them (each in a name space of its own); and from any strategy to another after a kill -9. With
# "long" as third argument all of it, else a selection. Says "skipped:" for what cannot be had.
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

for tool in mpirun pgrep; do
  command -v $tool >/dev/null || { echo "skipped: $tool was not found (Debian: openmpi-bin, procps)"; exit 77; }
done
apart=yes
[ "$(id -u)" = 0 ] && unshare --pid --fork --mount-proc true 2>/dev/null || {
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
    shared) "$program" launch -n "$ranks" -t 1 "$@" ;;
    tcp) OMPI_MCA_btl=tcp,self OMPI_MCA_hwloc_base_binding_policy=none mpirun -q --oversubscribe -n "$ranks" \
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
  # shellcheck disable=SC2086 # the job is words
  run one "$2" "$1" "$3" $job
  expect one "$1 on $2 processes, $3"
}

# kill FROM RANKS TO RANKS: a process of FROM is killed once there is a checkpoint, and TO goes on.
killed() {
  endless=$(echo "$job" | sed "s/--steps $steps/--steps 1000000/")
  # shellcheck disable=SC2086
  run killed "$2" "$1" shared $endless --set train.checkpoint_every=3 --set train.keep=1000 &
  waiting=$!
  for _ in $(seq 600); do
    [ -d "$place/killed/checkpoint-00000006" ] && break
    sleep 0.1
  done
  victim=$(pgrep -f "^$program train .*-o $place/killed " | tail -n 1)
  [ -n "$victim" ] && kill -KILL "$victim"
  wait $waiting && complain "$1 on $2 processes: the end of a killed job is taken for success" "$place/killed.log"
  cat "$place/killed.log" "$place/killed.log.error" >"$place/killed.log.before"
  # The run may have come past the end of the undisturbed one: what it saved by then is taken.
  for saved in "$place"/killed/checkpoint-*; do
    number=${saved##*-}
    [ "$(echo "$number" | sed 's/^0*//')" -gt 18 ] && rm -rf "$saved"
  done
  # shellcheck disable=SC2086
  run killed "$4" "$3" shared $job --resume "$place/killed"
  expect killed "$1 on $2 processes, killed, then $3 on $4"
}

# shellcheck disable=SC2086
"$program" train $job -o "$place/alone" >"$place/alone.log" 2>"$place/alone.log.error"
alone=$(hash_in "$place/alone.log")
[ -n "$alone" ] || { complain "one process" "$place/alone.log"; exit 1; }

ps=parameter-server,mode=sync,servers
if [ "$what" = long ]; then
  for transport in shared tcp; do
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
else
  one allreduce 2 shared
  one allreduce 3 tcp
  one $ps=1 3 tcp
  one pipeline,stages=2 2 shared
  killed pipeline,stages=2 2 allreduce 3
fi
echo "$runs runs, $failed failed"
[ $failed = 0 ]
