# ./check --fuzz MINUTES [TARGET...]: builds the targets of tests/fuzz with clang's fuzzer and sanitizers, and gives each (or
# those that are named) its share of the time. Inputs that reach new code are stored in build/fuzz/corpus, where the next run
# begins; an input that breaks a target is stored in build/fuzz/broken. Exits with 1 if there is any.
set -eu
. tools/setup.sh
case ${1:-} in
  '' | *[!0-9]* | 0*)
    echo "usage: ./check --fuzz MINUTES [TARGET...]" >&2
    exit 2
    ;;
esac
minutes=$1
shift
seeds=tests/fuzz/corpus found=build/fuzz/corpus broken=build/fuzz/broken
# shellcheck disable=SC2086 # a list of words
install_packages $packages_build $packages_test clang

say "Building the fuzzer"
mkdir -p "$broken"
export CC=clang
target=fuzz
build build/fuzz -DCMAKE_BUILD_TYPE=RelWithDebInfo -DTRIREME_SANITIZE=address -DTRIREME_FUZZ=ON -DTRIREME_BUILD_TESTS=ON

[ $# -gt 0 ] || set -- $(ls "$seeds")
seconds=$((minutes * 60 / $#))
[ $seconds -gt 0 ] || seconds=1
status=0
for reader in "$@"; do
  say "$reader, $seconds seconds"
  mkdir -p "$found/$reader"
  # Large damaged inputs find little; an input that takes a minute counts as a hang.
  if ! build/fuzz/tests/fuzz "$reader" "$found/$reader" "$seeds/$reader" -max_total_time=$seconds -max_len=8192 -timeout=60 \
    -rss_limit_mb=2048 -print_final_stats=0 -verbosity=0 -artifact_prefix="$broken/$reader-" >build/fuzz/log 2>&1; then
    status=1
    tail -n 60 build/fuzz/log >&2
    echo "$reader is broken by an input in $broken; once it is mended, the input becomes a seed in $seeds/$reader" >&2
  fi
done
exit $status
