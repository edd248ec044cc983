# The command: equal runs, a run that does not repeat, a party behind a pipe, a command that is not a party, and impossible
# requests. command.sh TRIREME SOURCE
set -eu
trireme=$1
place=$(mktemp -d "${TMPDIR:-/tmp}/trireme-test-XXXXXX")
trap 'rm -rf "$place"' EXIT
cd "$place"

"$trireme" train penguins --receipt --steps 20 --set train.receipt_every=5 --quiet --out a > /dev/null
"$trireme" train penguins --receipt --steps 20 --set train.receipt_every=5 --quiet --out b > /dev/null
"$trireme" train penguins --receipt --steps 20 --set train.receipt_every=5 --set optimizer.rate=0.02 --quiet --out c > /dev/null

# expect CODE WORDS COMMAND...: the exit code, and words of the output
expect() {
    code=0
    wanted=$1 words=$2
    shift 2
    "$@" > said 2>&1 || code=$?
    [ "$code" = "$wanted" ] || { echo "exit code $code instead of $wanted: $*"; cat said; exit 1; }
    grep -q -e "$words" said || { echo "\"$words\" is not in the output of $*"; cat said; exit 1; }
}

expect 0 '^EQUAL: ' "$trireme" dispute a b
expect 0 '^EQUAL: ' "$trireme" dispute a/run.receipt "|'$trireme' dispute --answer b"
expect 7 '^CANNOT: .*the model file that' "$trireme" dispute a c
expect 6 '^B IS RIGHT: ' "$trireme" dispute c a --model "$2/models/penguins.yaml" --set train.epochs=0 --set train.steps=20 --set train.receipt_every=5
# A digest that no run has.
ones=$(printf '1%.0s' $(seq 64))
sed "s/\"20\": .*/\"20\": [\"$ones\", \"$ones\"]/" b/run.receipt > forged
cmp -s forged b/run.receipt && { echo "nothing was forged"; exit 1; }
expect 6 '^A IS RIGHT: B does not come again' "$trireme" dispute a forged
expect 6 '"outcome": *"b"' "$trireme" dispute forged a --json
# Commands that are not parties.
expect 1 'ended before the dispute' "$trireme" dispute a '|true'
expect 6 '^A IS RIGHT: B answers' "$trireme" dispute a '|cat'
expect 2 'name two receipts' "$trireme" dispute a
expect 2 'no receipt' "$trireme" dispute a .
printf 'hello 1\nboundary 0\nnode entries 0 2\nboundary 99\n' | "$trireme" dispute --answer a > said
[ "$(cut -d' ' -f1 said | tr '\n' ' ')" = "hello boundary sorry sorry " ] || { cat said; exit 1; }
