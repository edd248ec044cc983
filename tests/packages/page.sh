# Sourced by the tests of packages: the lines of docs/how-to/install.md that users type, unchanged.
#
#   page_lines SOURCE HEADING [LANGUAGE]   blocks of code (```sh) below a heading, without comments and without `sudo`, which a machine
#                                          of a test has no need of; an error where there are none

page_lines() {
  awk -v heading="$2" -v language="${3:-sh}" '
    /^```/ { fence = !fence; inside = fence && below && $0 == "```" language; next }
    !fence && /^#/ { sub(/^#+ */, ""); below = $0 == heading; next }
    inside { sub(/  +#.*/, ""); sub(/^sudo /, ""); print }
  ' "$1/docs/how-to/install.md" | grep . || { echo "docs/how-to/install.md has no lines of ${3:-sh} below $2" >&2 && return 1; }
}
