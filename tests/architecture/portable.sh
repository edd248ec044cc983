#!/bin/sh
# portable.sh ROOT: refuses features that glibc 2.31, musl or CMake 3.18 lack, if there is another way.
set -eu
cd "$1"
[ -d src ] || { echo "there is no src" >&2; exit 1; }
status=0
# refuse PATTERN INSTEAD FILES...
refuse() {
  pattern=$1 instead=$2
  shift 2
  find "$@" -type f | sort | xargs grep -nE "$pattern" /dev/null && status=1 && echo "    $instead"
  return 0
}
find . -path ./build -prune -o \( -name CMakeLists.txt -o -name '*.cmake' \) -print | sort |
  xargs grep -nE '^ *(cmake_path\(|block\(|file\(REAL_PATH)|cmake_minimum_required\(VERSION 3\.(19|[2-9][0-9])' /dev/null && {
  status=1
  echo "    CMake 3.18 does not know it"
}
refuse '[^a-z_](strerrordesc_np|strerrorname_np)\(' "tr_errno_text() of base/reason.h says it everywhere" src cli
refuse '[^a-z_](pidfd_open|pidfd_send_signal|pidfd_getfd)\(|sys/pidfd\.h' "ask the kernel by syscall(), as src/comm/location.c does" src cli
refuse '[^a-z_](dladdr1|posix_close|close_range|closefrom)\(' "only some C libraries have it" src cli
exit $status
