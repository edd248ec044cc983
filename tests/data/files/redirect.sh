#!/bin/sh
# redirect.sh PROGRAM SERVER: an https server may redirect to https, and not to http. Without python3 or openssl the test is
# skipped.
set -eu
program=$1
server=$2
python=$(command -v python3 || true)
openssl=$(command -v openssl || true)
[ -n "$python" ] && [ -n "$openssl" ] || { echo "skipped: there is no python3 or no openssl here" >&2; exit 77; }
place=$(mktemp -d)
"$openssl" req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost -addext subjectAltName=DNS:localhost \
  -keyout "$place/key.pem" -out "$place/cert.pem" 2> "$place/openssl.log" || { cat "$place/openssl.log" >&2; exit 1; }
"$python" "$server" "$place" &
process=$!
trap 'kill "$process" 2> /dev/null || true; rm -rf "$place"' EXIT
while [ ! -e "$place/ports" ]; do
  kill -0 "$process" || { echo "the server did not start" >&2; exit 1; }
  sleep 0.1
done
read -r secure plain < "$place/ports"
no_proxy='*'
export no_proxy
get() { "$program" "$place/cert.pem" "$1" 2> "$place/said"; }
fail() { echo "$1" >&2; cat "$place/said" >&2; exit 1; }
[ "$(get "https://localhost:$secure/file")" = "the content" ] || fail "nothing by https"
[ "$(get "https://localhost:$secure/stay")" = "the content" ] || fail "no redirection to https"
if get "https://localhost:$secure/leave"; then fail "a redirection to http was followed"; fi
grep -qi protocol "$place/said" || fail "another reason than the protocol"
if get "http://localhost:$plain/file"; then fail "http was read"; fi
[ ! -e "$place/seen" ] || fail "somebody came by http"
