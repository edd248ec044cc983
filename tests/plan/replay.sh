#!/bin/sh
# replay.sh TRIREME ROOT: SimGrid, another simulator, replays the actions of simulated ranks on the same cluster, and gets about
# the same time. It gets only the messages from ours. Skipped without SimGrid.
set -eu
trireme=$1
root=$2
command -v smpirun > /dev/null || { echo "skipped: there is no SimGrid (libsimgrid-dev) here" >&2; exit 77; }
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
cd "$place"
printf 'hosts: 8\nlink: 0.1\nlatency: 50\noverhead: 0.001\ncopying: 1000\n' > cluster.yaml
for strategy in allreduce,factors=never parameter-server,mode=sync local-sgd,every=2; do
  case $strategy in local-sgd*) with=$strategy,replicas=4 ;; *) with=$strategy ;; esac
  "$trireme" plan "$root/models/mnist-quick.yaml" --cluster cluster.yaml --threads 1 --workers 4 --strategies "$with" --seconds 0 \
    --steps 10 --traces traces --json plan.json > said
  folder=$(find traces -mindepth 1 -maxdepth 1 -type d -name '*-[45]' | head -n 1)
  smpirun -replay "$folder/traces.txt" -np "$(wc -l < "$folder/hosts.txt")" -platform "$folder/platform.xml" -hostfile "$folder/hosts.txt" \
    --cfg=smpi/host-speed:1Gf --cfg=smpi/os:0:0:0 --cfg=smpi/or:0:0:0 --cfg=network/model:CM02 --log=smpi_replay.thres:info \
    > replay.out 2>&1 || { cat replay.out; exit 1; }
  theirs=$(sed -n 's/.*Simulation time \([0-9.e-]*\).*/\1/p' replay.out)
  ours=$(cat "$folder/seconds.txt")
  echo "$strategy: $ours s here, $theirs s by SimGrid"
  awk -v a="$ours" -v b="$theirs" 'BEGIN { exit !(b > 0 && a / b < 1.15 && a / b > 0.85) }' || { cat said; exit 1; }
  rm -rf traces
done
