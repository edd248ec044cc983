#!/bin/sh
# pictures.sh TRIREME ROOT: looks at a report and a plan in a browser without a screen: light, dark, narrow and printed. Checks what can be
# checked by numbers: pictures come out, light and dark differ, nothing is wider than a phone, no table is cut off, and curves stay in their charts. Without Chromium the test is skipped.
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
"$trireme" plan "$root/models/mnist-quick.yaml" --simulate 1,2,4,8 --page "$place/plan.html" > /dev/null
# The title of a page lists the elements that are wider than their place, in a frame of the width asked for (windows have a least
# one), and those that leave a chart.
cat > "$place/probe.js" << 'END'
<script>
let wide = [...document.querySelectorAll('body, .scroll, table, figure')].filter(e => !e.querySelector('svg.timeline') && e.scrollWidth > e.clientWidth + 1 && e.clientWidth > 0);
let out = [...document.querySelectorAll('svg:not(.timeline) > path.line')].filter(p => { let b = p.getBBox(); return b.y < 0 || b.y + b.height > 250 || b.x < 0 || b.x + b.width > 480; });
document.title = 'probe:' + document.documentElement.scrollWidth + ':' + (wide.length ? wide.map(e => e.tagName + '.' + e.className).join(',') : 'none') + ':' + out.length;
parent.document.title = document.title;
</script></body>
END
for page in report plan; do
  sed -e "/<\/body>/{r $place/probe.js" -e 's#</body>.*##}' "$place/$page.html" > "$place/$page-probe.html"
  for width in 400 1200; do
    echo "<body style=margin:0><iframe src=$page-probe.html style=\"border:0;width:${width}px;height:900px\"></iframe></body>" > "$place/frame.html"
    found=$("$browser" --headless --no-sandbox --disable-gpu --hide-scrollbars --allow-file-access-from-files --user-data-dir="$place/profile" --window-size=1300,900 --dump-dom "file://$place/frame.html" 2> /dev/null |
      sed -n 's#.*<title>probe:\([^<]*\)</title>.*#\1#p')
    case $found in
    "$width:none:0") ;;
    *) echo "$page at $width pixels: \"$found\" (width, elements that are cut off, curves that leave their chart)" >&2; exit 1 ;;
    esac
  done
done
"$browser" --headless --no-sandbox --disable-gpu --user-data-dir="$place/profile" --no-pdf-header-footer --print-to-pdf="$place/print.pdf" \
  "file://$place/report.html" > /dev/null 2>&1
[ "$(head -c 5 "$place/print.pdf")" = "%PDF-" ] || { echo "it cannot be printed" >&2; exit 1; }
if [ -n "${KEEP:-}" ]; then cp "$place"/*.png "$place"/report.html "$place"/plan.html "$place"/print.pdf "$KEEP"; fi
