# Sourced by the programs of bench/ from the project's root: the four jobs and their figures. Needs $trireme, and $jobs, a folder.

# prepare_jobs: the data that do not ship with the project
prepare_jobs() {
  mkdir -p "$jobs"
  # 6,400 sentences of 50 of 15,999 words; the label is the parity of the first.
  awk 'BEGIN { srand(1); for (i = 0; i < 6400; i++) { for (k = 0; k < 50; k++) { w = int(rand() * 15999); if (k == 0) y = w % 2
    printf "%sw%d", k ? " " : "", w } printf "\t%d\n", y } }' >"$jobs/lstm-50.tsv"
  cp bench/jobs/lstm-50.yaml "$jobs/"
  # The perceptron's pixels come from TFRecord files, as its model file wants them.
  for part in train test; do
    [ -e "$jobs/$part.tfrecord" ] || $trireme data convert mnist "$jobs/$part.tfrecord" --part $part >/dev/null
  done
  sed "s|../data/mnist/|$PWD/$jobs/|" models/mnist-mlp.yaml >"$jobs/mnist-mlp.yaml"
}

# job_arguments JOB: what follows `trireme train` for a run of some seconds on one thread, which reports four times
job_arguments() {
  case $1 in
  wide) every=6 model="models/mnist-cnn-wide.yaml --set train.batch=128" ;;
  cnn) every=60 model=models/mnist-cnn.yaml ;;
  mlp) every=1000 model=$jobs/mnist-mlp.yaml ;;
  lstm) every=20 model=$jobs/lstm-50.yaml ;;
  esac
  echo "$model --steps $((every * 4)) --set train.log_every=$every --set data.test= --overwrite --log json"
}

# best_rate FILE: examples per second of the best report among those of a run with --log json
best_rate() { sed -n 's/.*"event":"step".*"examples_per_second":\([0-9.eE+]*\).*/\1/p' "$1" | sort -g | tail -n 1; }

# median NUMBER..., greatest NUMBER..., ratio A B: A / B
median() { printf '%s\n' "$@" | sort -g | awk '{ r[NR] = $1 } END { if (NR) printf "%.2f", r[int((NR + 1) / 2)]; else printf "-" }'; }
greatest() { printf '%s\n' "$@" | sort -g | tail -n 1; }
ratio() { echo "$1 $2" | awk '{ if ($2 > 0) printf "%.3f", $1 / $2; else printf "-" }'; }
