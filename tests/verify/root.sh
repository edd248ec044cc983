#!/bin/sh
# root.sh TRIREME ROOT: roots of checkpoints as root.py computes them from files alone.
set -eu
command -v python3 >/dev/null || { echo "skipped: no python3"; exit 77; }
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
"$1" train "$2/models/penguins.yaml" --receipt --steps 40 --out "$place/run" --quiet --threads 1 \
  --set train.checkpoint_every=10 --set train.keep=100 --set train.evaluate_every=10 --set train.patience=9 --set optimizer.ema=0.9
python3 "$2/tests/verify/root.py" "$place/run"
