# Sourced by ./check: the Python environment in which other programs check the output of Trireme (tests/interop).
#
# It lies outside the tree, in ~/.cache/trireme/interop, and is kept. TRIREME_INTEROP_PYTHON names a Python to use instead, as it is.

interop_place=${XDG_CACHE_HOME:-$HOME/.cache}/trireme/interop
interop_log=$interop_place/pip.log

# interop_install PIP_ARGUMENT...: quietly, with a log
interop_install() {
  "$interop_place/bin/python" -m pip install --quiet --disable-pip-version-check --retries 1 "$@" >>"$interop_log" 2>&1
}

# Makes the environment or completes it. Missing packages are reported; the tests that need them are then skipped.
interop_environment() {
  if [ -n "${TRIREME_INTEROP_PYTHON:-}" ]; then
    say "Judging with $TRIREME_INTEROP_PYTHON"
    return 0
  fi
  command -v python3 >/dev/null 2>&1 && python3 -c 'import ensurepip' 2>/dev/null ||
    install_packages python3 python3-venv
  say "Python packages from PyPI, in $interop_place"
  mkdir -p "$interop_place"
  : >"$interop_log"
  [ -x "$interop_place/bin/python" ] || python3 -m venv "$interop_place"
  while read -r requirement; do
    case $requirement in '' | '#'*) continue ;; esac
    # PyTorch's own index has a build without CUDA, a tenth of the size.
    [ "${requirement%%[<>=]*}" != torch ] || "$interop_place/bin/python" -c 'import torch' 2>/dev/null ||
      interop_install --index-url https://download.pytorch.org/whl/cpu "$requirement" || true
    interop_install "$requirement" ||
      echo "skipped: $requirement cannot be had: $(grep -v '^ *$' "$interop_log" | tail -n 1)"
  done <tests/interop/requirements.txt
  TRIREME_INTEROP_PYTHON=$interop_place/bin/python
  export TRIREME_INTEROP_PYTHON
}
