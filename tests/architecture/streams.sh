#!/bin/sh
# streams.sh ROOT: refuses commands (cli/) that write to stdout or stderr directly: names of files, and texts of data sets and
# checkpoints, may contain control sequences of terminals. cli/terminal/output.c has the functions that make them harmless;
# cli/terminal/screen.c draws with them.
set -eu
cd "$1"
[ -d cli ] || { echo "there is no cli" >&2; exit 1; }
if find cli -name '*.[ch]' ! -name output.c ! -name screen.c | sort |
  xargs grep -nE '(^|[^a-z_])((v|f|d|vf|vd)?printf|f?puts|f?putc|putchar|fwrite|perror)(_unlocked)?\(' /dev/null |
  grep -vE '^[^:]*:[0-9]+: *(\*|/\*)'; then
  echo "print by cli_printf(), cli_print() or cli_message()"
  exit 1
fi
