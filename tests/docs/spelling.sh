#!/bin/sh
# spelling.sh ROOT: codespell over the pages, the sources, the command and Python. Tests are left out, since they misspell names
# on purpose. Exit code 77 where codespell is not here (Debian and PyPI: codespell).
set -eu
cd "$1"
command -v codespell >/dev/null || { echo "skipped: codespell is not here (Debian: codespell)"; exit 77; }
# A pair of letters of names, a gradient's variable, and half of Toom-Cook.
right=nin,dout,toom
# A check that finds nothing must be shown to find a fault.
said=$(printf 'we recieve it\n' | codespell --ignore-words-list "$right" - || true)
case $said in *receive*) ;; *) echo "codespell does not find \"recieve\": $said"; exit 1 ;; esac
if [ -e .git ]; then git ls-files; else find . -type f | sed 's,^\./,,'; fi |
  grep -E '^(src|cli|include|python|docs|examples|bench|models|tools|packaging|debian)/|^[A-Za-z]+(\.md)?$' |
  grep -vE '\.(png|gz|npy|svg|csv|ipynb)$|^LICENSE$' | xargs codespell --ignore-words-list "$right"
