#!/bin/sh
# languages.sh INCLUDE: every public header, and every macro that a structure begins with, in the languages of users of the
# library: C from C99 and C++ from C++98, by each installed compiler, with all warnings as errors. The program is run: a structure
# has its size, and members that were not given are zero or a default.
set -eu
include=$1
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
cd "$place"

{
  for header in "$include"/trireme/*.h; do echo "#include <trireme/$(basename "$header")>"; done
  echo 'static int good(const void *begin, size_t size) { return *(const size_t *)begin == size; }'
  echo 'int main(void)'
  echo '{'
  macros=$(sed -n 's/^#define \(TR_[A-Z_]*\)_INIT.*/\1/p' "$include"/trireme/*.h | sort -u | grep -vx TR_SIZED)
  for macro in $macros; do
    name=$(echo "$macro" | tr '[:upper:]' '[:lower:]')
    echo "    struct $name one_$name = ${macro}_INIT, two_$name[2] = {${macro}_INIT, ${macro}_INIT};"
  done
  echo '    int bad = 0;'
  for macro in $macros; do
    name=$(echo "$macro" | tr '[:upper:]' '[:lower:]')
    echo "    bad += !good(&one_$name, sizeof one_$name) + !good(&two_$name[1], sizeof one_$name);"
  done
  cat <<'END'
    bad += one_tr_train_settings.model != NULL || !one_tr_predict_settings.use_average;
    bad += one_tr_train_info.name != NULL || one_tr_predict_info.heads != 0 || one_tr_train_event.name != NULL;
    return bad;
}
END
} >all.c
[ "$(grep -c '_INIT' all.c)" -ge 13 ] || { echo "the macros were not found"; exit 1; }

tried=0
# try COMPILER LANGUAGE STANDARD...
try() {
  compiler=$1 language=$2
  shift 2
  command -v "$compiler" >/dev/null || return 0
  for standard in "$@"; do
    echo "$compiler -std=$standard"
    "$compiler" -x "$language" -std="$standard" -Wall -Wextra -pedantic -Werror -I "$include" all.c -o program
    ./program || { echo "a structure does not begin as it should"; exit 1; }
    tried=$((tried + 1))
  done
}
for compiler in gcc clang; do try "$compiler" c c99 c11 c17; done
for compiler in g++ clang++; do try "$compiler" c++ c++98 c++11 c++14 c++17 c++20; done
[ "$tried" -gt 0 ] || { echo "no compiler is called gcc, clang, g++ or clang++"; exit 1; }
