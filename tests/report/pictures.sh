#!/bin/sh
# pictures.sh TRIREME ROOT: looks at a report in a browser without a screen: light, dark, narrow and printed. Checks what can be
# checked by numbers: pictures come out, light and dark differ, and nothing is wider than a phone. Without Chromium the test is skipped.
set -eu
trireme=$1
root=$2
browser=$(command -v chromium || command -v chromium-browser || command -v google-chrome || true)
[ -n "$browser" ] || { echo "skipped: there is no Chromium here" >&2; exit 77; }
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
"$trireme" train "$root/models/mnist-quick.yaml" --steps 40 --set train.log_every=1 --set train.evaluate_every=20 -o "$place/run" --trace "$place/run/trace.json" -q 2> "$place/err" ||
  { mkdir -p "$place/run"; "$trireme" train "$root/models/mnist-quick.yaml" --steps 40 --set train.log_every=1 --set train.evaluate_every=20 -o "$place/run" --trace "$place/run/trace.json" -q; }
"$trireme" report "$place/run" -o "$place/report.html" > /dev/null
shot() { # NAME WIDTH HEIGHT [option...]
  name=$1 width=$2 height=$3
  shift 3
  "$browser" --headless --no-sandbox --disable-gpu --hide-scrollbars --user-data-dir="$place/profile" --window-size="$width,$height" \
    --screenshot="$place/$name.png" "$@" "file://$place/report.html" > "$place/$name.log" 2>&1 || { cat "$place/$name.log" >&2; exit 1; }
  [ -s "$place/$name.png" ] || { echo "no picture: $name" >&2; exit 1; }
}
shot light 1200 2400
shot dark 1200 2400 --blink-settings=preferredColorScheme=0
cmp -s "$place/light.png" "$place/dark.png" && { echo "dark looks like light" >&2; exit 1; }
# The page tells its own width: wider than the window means that a phone has to scroll sideways.
sed 's#</body>#<script>document.title = document.documentElement.scrollWidth;</script></body>#' "$place/report.html" > "$place/probe.html"
width=$("$browser" --headless --no-sandbox --disable-gpu --user-data-dir="$place/profile" --window-size=500,900 --dump-dom "file://$place/probe.html" 2> /dev/null |
  sed -n 's#.*<title>\([0-9]*\)</title>.*#\1#p')
[ -n "$width" ] && [ "$width" -le 500 ] || { echo "the page is ${width:-?} wide in a window of 500" >&2; exit 1; }
"$browser" --headless --no-sandbox --disable-gpu --user-data-dir="$place/profile" --no-pdf-header-footer --print-to-pdf="$place/print.pdf" \
  "file://$place/report.html" > /dev/null 2>&1
[ "$(head -c 5 "$place/print.pdf")" = "%PDF-" ] || { echo "it cannot be printed" >&2; exit 1; }
if [ -n "${KEEP:-}" ]; then cp "$place"/*.png "$place"/report.html "$place"/print.pdf "$KEEP"; fi
