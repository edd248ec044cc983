#!/bin/sh
# run.sh SCRIPT TRIREME SOURCE [ARGUMENT...]: runs a Python script that checks files by other programs, or prints why it cannot.
#
# The script's line "# needs: torch numpy" names the modules without which it is skipped (exit code 77). The Python is
# TRIREME_INTEROP_PYTHON, or that of the environment which ./check --interop makes.
set -eu
script=$1
shift
python=${TRIREME_INTEROP_PYTHON:-${XDG_CACHE_HOME:-${HOME:-/nonexistent}/.cache}/trireme/interop/bin/python}
if ! [ -x "$python" ] && ! command -v "$python" >/dev/null 2>&1; then
  echo "skipped: there is no $python; ./check --interop makes it, and TRIREME_INTEROP_PYTHON may name another"
  exit 77
fi
for module in $(sed -n 's/^# needs: //p' "$script"); do
  if ! why=$("$python" -c "import $module" 2>&1); then
    echo "skipped: $python cannot import $module: $(printf '%s' "$why" | tail -n 1)"
    exit 77
  fi
done
PYTHONDONTWRITEBYTECODE=1 TF_CPP_MIN_LOG_LEVEL=2 exec "$python" "$script" "$@"
