#!/bin/sh
# page.sh PAGE PROGRAM SOURCE_DIRECTORY [long]: runs the console blocks of a page of the manual, in their order, in a fresh
# directory that has the models and the data of a clone, and compares what the page shows with what comes. Every line that a
# block shows below a command must come in the command's output, in the page's order; `...` stands for lines that are left out.
# What depends on the machine (times, speeds, memory, processors) is masked on both sides by mask.awk. A command must end with
# exit code 0, or with another if the page shows a message of the program. Where its comment says `# Ctrl-C`, it gets that
# once its first step is done.
#
# Invisible comments of the page, in front of a block:
#     <!-- console: before COMMAND -->    run in the directory first, however it ends no line of it is compared
#     <!-- console: long -->              the block takes long: only run with "long" as fourth argument
#     <!-- console: skipped, REASON -->   needs what is not there; the test says so
set -u
page=$1 program=$2 source=$3 mode=${4:-short}
here=$(cd "$(dirname "$0")" && pwd)
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
trap 'exit 1' INT TERM
PATH=$(dirname "$program"):$PATH TERM=dumb SOURCE=$source TRIREME_DATA_CACHE_DIR=$place/cache
export PATH TERM SOURCE TRIREME_DATA_CACHE_DIR
unset TRIREME_THREADS TRIREME_ISA TRIREME_DEVICE

mkdir "$place/run" "$place/parts"
ln -s "$source/models" "$source/data" "$place/run/"
failed=0 ran=0 skipped=0

# Each command becomes parts/N.command and parts/N.shown; the output is the list of actions in order.
awk -v parts="$place/parts" -v mode="$mode" '
  /^<!-- console: / {
    text = $0
    sub(/^<!-- console: /, "", text)
    sub(/ *-->$/, "", text)
    if (sub(/^before /, "", text)) {
      printf "%s\n", text > (parts "/" ++n ".command")
      print "before", n, NR
    } else if (text == "long") {
      if (mode != "long") skip = "takes long: ./check --long"
    } else if (sub(/^skipped, /, "", text)) {
      skip = text
    } else {
      print "unknown", 0, NR, text
    }
    next
  }
  /^```console$/ {
    inside = 1
    if (skip != "") print "skip", 0, NR, skip
    next
  }
  inside && /^```$/ { inside = 0; skip = ""; command = ""; next }
  !inside || skip != "" { next }
  /^\$ / {
    command = parts "/" ++n ".command"
    print substr($0, 3) > command
    printf "" > (parts "/" n ".shown")
    print /# *Ctrl-C/ ? "interrupt" : "run", n, NR
    next
  }
  command == "" { print "unknown", 0, NR, "a block begins with a command"; next }
  /^> / && more { print substr($0, 3) > command; next }
  !/^ *\.\.\.$/ { print > (parts "/" n ".shown") }
' "$page" >"$place/list" || exit 1

# ends_as_shown CODE N: 0 if the page shows no error message.
ends_as_shown() {
  if [ "$1" = 0 ]; then return 0; fi
  grep -q '^trireme [a-z]*: ' "$place/parts/$2.shown"
}

# interrupted COMMAND_FILE OUTPUT: SIGINT after the first step, to all processes of the command, as a terminal sends it.
interrupted() {
  setsid sh "$1" >"$2" 2>&1 </dev/null &
  job=$!
  until grep -q '^step' "$2" || ! kill -0 "$job" 2>/dev/null; do sleep 0.01; done
  kill -INT -- "-$job" 2>/dev/null
  wait "$job"
}

complain() {
  echo "FAILED: $page:$1: $2"
  sed 's/^/    $ /' "$place/parts/$3.command"
  sed 's/^/    /' "$place/output" | tail -n 40
  failed=$((failed + 1))
}

cd "$place/run" || exit 1
while read -r what number line reason; do
  command=$place/parts/$number.command shown=$place/parts/$number.shown code=0
  case $what in
    skip)
      echo "skipped: ${page#"$source"/}:$line: $reason"
      skipped=$((skipped + 1))
      continue
      ;;
    before)
      sh "$command" >"$place/output" 2>&1 </dev/null || complain "$line" "what comes before failed" "$number"
      continue
      ;;
    interrupt) interrupted "$command" "$place/output" || code=$? ;;
    run) sh "$command" >"$place/output" 2>&1 </dev/null || code=$? ;;
    *)
      echo "FAILED: $page:$line: $what $reason"
      failed=$((failed + 1))
      continue
      ;;
  esac
  ran=$((ran + 1))
  ends_as_shown "$code" "$number" || complain "$line" "exit code $code" "$number"
  awk -f "$here/mask.awk" "$shown" >"$place/expected" && awk -f "$here/mask.awk" "$place/output" >"$place/got" || exit 1
  missing=$(awk -f "$here/in_order.awk" "$place/expected" "$place/got") ||
    complain "$line" "does not come, or not in this order: $missing" "$number"
done <"$place/list"
echo "${page#"$source"/}: $ran commands run, $skipped blocks skipped"
[ $failed = 0 ] && [ $((ran + skipped)) -gt 0 ]
