# Sourced by the programs of bench/ from the project's root: the jobs and their figures. Needs $trireme, and $jobs, a folder.

# array DIMENSIONS...: the head of a .npy file of bytes
array() { printf '\223NUMPY\001\000\166\000%-117s\n' "{'descr': '|u1', 'fortran_order': False, 'shape': ($*), }"; }

# prepare_jobs: the data that do not ship with the project
prepare_jobs() {
  mkdir -p "$jobs"
  # 6,400 sentences of 50 of 15,999 words; the label is the parity of the first.
  awk 'BEGIN { srand(1); for (i = 0; i < 6400; i++) { for (k = 0; k < 50; k++) { w = int(rand() * 15999); if (k == 0) y = w % 2
    printf "%sw%d", k ? " " : "", w } printf "\t%d\n", y } }' >"$jobs/lstm-50.tsv"
  cp bench/jobs/lstm-50.yaml bench/jobs/residual.yaml "$jobs/"
  # 2,560 colour images of 32x32, whose pixels are the bytes of a compressed file, as good as noise, in classes by turns.
  array 2560, 32, 32, 3 >"$jobs/residual-images.npy"
  head -c 7864320 data/mnist/train-images-idx3-ubyte.gz >>"$jobs/residual-images.npy"
  array 2560, >"$jobs/residual-labels.npy"
  for _ in $(seq 256); do printf '\000\001\002\003\004\005\006\007\010\011'; done >>"$jobs/residual-labels.npy"
  # The perceptron's pixels come from TFRecord files, as its model file wants them.
  for part in train test; do
    [ -e "$jobs/$part.tfrecord" ] || $trireme data convert mnist "$jobs/$part.tfrecord" --part $part >/dev/null
  done
  for job in resnet18 resnet50 unet gpt2 lstm2; do
    [ -e "$jobs/$job.yaml" ] || python3 bench/jobs/networks.py $job "$jobs"
  done
  sed "s|../data/mnist/|$PWD/$jobs/|" models/mnist-mlp.yaml >"$jobs/mnist-mlp.yaml"
}

# job_arguments JOB: arguments after `trireme train` for a run of some seconds on one thread, which reports four times
job_arguments() {
  case $1 in
  wide) every=6 model="models/mnist-cnn-wide.yaml --set train.batch=128" ;;
  cnn) every=60 model=models/mnist-cnn.yaml ;;
  mlp) every=1000 model=$jobs/mnist-mlp.yaml ;;
  lstm) every=20 model=$jobs/lstm-50.yaml ;;
  residual) every=12 model=$jobs/residual.yaml ;;
  gpt) every=60 model="models/shakespeare-gpt.yaml --set data.validation=null --set train.evaluate_every=0" ;;
  gpt-large) every=2 model=bench/jobs/gpt-large.yaml ;;
  resnet18) every=6 model=$jobs/resnet18.yaml ;;
  resnet50) every=4 model=$jobs/resnet50.yaml ;;
  unet) every=2 model=$jobs/unet.yaml ;;
  gpt2) every=4 model=$jobs/gpt2.yaml ;;
  lstm2) every=4 model=$jobs/lstm2.yaml ;;
  esac
  echo "$model --steps $((every * 4)) --set train.log_every=$every --set data.test= --overwrite --log json"
}

# stop_bench FILE WORDS...: prints the failure and the log in FILE, and ends
stop_bench() {
  log=$1
  shift
  echo "$0: $*; its last words:" >&2
  tail -n 20 "$log" >&2
  exit 1
}

# best_rate FILE: examples per second of the best report among those of a run with --log json. A run without any has failed.
best_rate() {
  rate=$(sed -n 's/.*"event":"step".*"examples_per_second":\([0-9.eE+]*\).*/\1/p' "$1" | sort -g | tail -n 1)
  [ -n "$rate" ] || stop_bench "$1" "no examples per second in $1"
  echo "$rate"
}

# rivals_of JOB: the rivals that are installed, one a line, and measured: SCRIPT:WAY. Needs $python and $tensorflow, interpreters or empty, and
# takes LLMC, a checkout of llm.c.
rivals_of() {
  [ -z "$python" ] || case $1 in
  gpt2) echo "torch_gpt:eager torch_gpt:compile" ;;
  gpt*) echo "torch_gpt:eager torch_gpt:compile${LLMC:+ llm_c:c}" ;;
  lstm | lstm2 | mlp) echo "torch_jobs:eager torch_jobs:compile" ;;
  *) echo "torch_jobs:eager torch_jobs:compile torch_jobs:channels_last" ;;
  esac
  [ -z "$tensorflow" ] || case $1 in
  gpt*) ;;
  lstm | lstm2 | resnet* | unet) echo "tensorflow_jobs:keras" ;;
  *) echo "tensorflow_jobs:keras tensorflow_jobs:graph" ;;
  esac
}

# rival NAME JOB THREADS: "<examples per second> <peak memory in MiB>" of one of rivals_of, "0 0" if it fails
rival() {
  case $1 in
  torch_gpt:*) "$python" bench/jobs/torch_gpt.py "$3" data "${1#*:}" "$2" 2>/dev/null ;;
  llm_c:*) "$python" bench/jobs/llm_c.py "$LLMC" "$2" "$3" 2>/dev/null ;;
  torch_jobs:*) "$python" bench/jobs/torch_jobs.py "$2" "$3" --way "${1#*:}" 2>/dev/null ;;
  tensorflow_jobs:*) "$tensorflow" bench/jobs/tensorflow_jobs.py "$2" "$3" "${1#*:}" 2>/dev/null ;;
  esac || echo 0 0
}

# median NUMBER..., greatest NUMBER..., ratio A B: A / B
median() { printf '%s\n' "$@" | sort -g | awk '{ r[NR] = $1 } END { if (NR) printf "%.2f", r[int((NR + 1) / 2)]; else printf "-" }'; }
greatest() { printf '%s\n' "$@" | sort -g | tail -n 1; }
ratio() { echo "$1 $2" | awk '{ if ($2 > 0) printf "%.3f", $1 / $2; else printf "-" }'; }
