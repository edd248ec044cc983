#!/bin/sh
# mpi.sh SOURCE CMAKE CC: how the build handles an incomplete Open MPI. A stand-in for it, a compiler's wrapper with a header and
# a library, is assembled piece by piece and taken apart again, and one build directory is configured each time.
set -eu
source=$1 cmake=$2 cc=$3
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
mpi=$place/mpi
mkdir -p "$mpi/bin" "$place/project"
cd "$place"

cat >"$mpi/bin/mpicc" <<END
#!/bin/sh
case \$1 in
  -showme:compile) echo "-I$mpi/include" ;;
  -showme:incdirs) echo "$mpi/include" ;;
  -showme:link) echo "-L$mpi/lib -lstandin" ;;
  -showme:libdirs) echo "$mpi/lib" ;;
  -showme:libs) echo standin ;;
  *) exec "$cc" "\$@" "-I$mpi/include" "-L$mpi/lib" -lstandin ;;
esac
END
chmod +x "$mpi/bin/mpicc"
cat >project/CMakeLists.txt <<END
cmake_minimum_required(VERSION 3.25)
project(stranger C)
include($source/cmake/mpi.cmake)
if(MPI_C_FOUND)
  add_library(module MODULE module.c)
  target_link_libraries(module PRIVATE MPI::MPI_C)
endif()
END
printf '#include <mpi.h>\nint begin(void);\nint begin(void) { return MPI_Init(0, 0); }\n' >project/module.c

# Another MPI of this machine must not be found: the stand-in's wrapper comes first, also where it does not work.
configure() {
  PATH=$mpi/bin:$PATH "$cmake" -S project -B build -DCMAKE_C_COMPILER="$cc" -DMPI_C_COMPILER="$mpi/bin/mpicc" >log 2>&1 &&
    PATH=$mpi/bin:$PATH "$cmake" --build build >>log 2>&1 || { cat log; echo "FAILED: $1"; exit 1; }
}

absent() {
  rm -f build/libmodule.so
  configure "$1"
  [ ! -e build/libmodule.so ] || { cat log; echo "FAILED: $1: the module was built"; exit 1; }
  tr -s ' \n' ' ' <log >words
  for word in openmpi-bin libopenmpi-dev "cmake $(realpath build) && cmake --build $(realpath build)"; do
    grep -qF "$word" words || { cat log; echo "FAILED: $1: \"$word\" is not named"; exit 1; }
  done
  echo "left out: $1"
}

present() {
  configure "$1"
  [ -e build/libmodule.so ] || { cat log; echo "FAILED: $1: no module"; exit 1; }
  echo "built: $1"
}

header() {
  mkdir -p "$mpi/include"
  cat >"$mpi/include/mpi.h" <<END
#define MPI_VERSION 3
#define MPI_SUBVERSION 1
#define MPI_MAX_LIBRARY_VERSION_STRING 256
int MPI_Init(int *count, char ***arguments);
int MPI_Finalize(void);
int MPI_Get_library_version(char *version, int *length);
END
}

library() {
  mkdir -p "$mpi/lib"
  printf 'int MPI_Init(int *c, char ***a) { return !c + !a; }\nint MPI_Finalize(void) { return 0; }\nint MPI_Get_library_version(char *v, int *l) { *v = 0; return *l = 0; }\n' >mpi.c
  "$cc" -shared -fPIC mpi.c -o "$mpi/lib/libstandin.so"
}

absent "a wrapper alone"
header
absent "no library"
library
present "all of it, in the same build directory"
present "once more"
rm -r "$mpi/include"
absent "the header went away"
header
present "it came back"
rm -r "$mpi/lib"
absent "the library went away"

# The entries that FindMPI leaves in the cache of a build directory that was begun without this file.
library
rm -r build
rm -r "$mpi/include"
sed "s|include(.*|find_package(MPI QUIET COMPONENTS C)|" project/CMakeLists.txt >poison.txt
mv project/CMakeLists.txt good.txt
mv poison.txt project/CMakeLists.txt
PATH=$mpi/bin:$PATH "$cmake" -S project -B build -DCMAKE_C_COMPILER="$cc" -DMPI_C_COMPILER="$mpi/bin/mpicc" >log 2>&1 || true
mv good.txt project/CMakeLists.txt
header
present "over a cache that FindMPI left behind"
