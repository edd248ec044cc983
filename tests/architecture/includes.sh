#!/bin/sh
# includes.sh ROOT: checks who includes whom in a tree, and names every line that breaks a rule.
#
#   - The layers are the rows of the table in docs/architecture.md, bottom first. A file includes only from its own layer
#     and those below; include/trireme/ is the bottom, cli/ the top; every folder of src/ is in the table.
#   - Implementations (a folder in a layer, such as device/cpu/) are for their own layer alone.
#   - Public headers and examples include public headers and those of the C standard, nothing else.
#   - Each foreign library is known to one place.
set -eu
cd "$1"
# shellcheck disable=SC2016 # backquotes of Markdown
layers=$(sed -n 's/^| `src\/\([a-z]*\)\/` |.*/\1/p' docs/architecture.md | tr '\n' ' ')
[ -n "$layers" ] || { echo "docs/architecture.md has no table of layers" >&2; exit 1; }

for folder in src/*/; do
  name=$(basename "$folder")
  case " $layers" in
    *" $name "*) ;;
    *) echo "src/$name is no layer of docs/architecture.md" >&2; exit 1 ;;
  esac
done

find include src cli examples -name '*.[ch]' -o -name '*.inc' | sort | xargs grep -nE '^ *# *include' | awk -v layers="$layers" '
function complain(why) { print $0 "    <- " why; bad = 1 }
function begins(text, start) { return substr(text, 1, length(start)) == start }
BEGIN {
  count = split(layers, name, " ")
  for (i = 1; i <= count; i++) rank[name[i]] = i
  rank["trireme"] = 0
  # Where foreign headers may appear: the beginning of a path.
  home["arm_neon.h"] = home["immintrin.h"] = "src/device/cpu/vec_"
  home["emmintrin.h"] = "src/device/cpu/fma_exact.h"
  home["curl/curl.h"] = "src/data/fetch_curl.c"
  home["isa-l/crc.h"] = home["openssl/evp.h"] = "src/base/hash.c"
  home["isa-l/igzip_lib.h"] = "src/data/inflate.c"
  home["mpi.h"] = "src/comm/mpi/"
  home["png.h"] = "src/data/image"
  home["turbojpeg.h"] = "src/data/image_jpeg.c"
  home["protobuf-c/protobuf-c.h"] = "src/io/"
  home["yaml.h"] = "src/base/config_parse.c"
  home["zlib.h"] = "src/data/tfrecord_write.c"
  split("assert ctype errno float inttypes limits locale math setjmp signal stdarg stdatomic stdbool stddef stdint stdio stdlib string time", words, " ")
  for (i in words) standard[words[i] ".h"] = 1
  split("dirent.h dlfcn.h fcntl.h grp.h langinfo.h link.h linux/futex.h poll.h pthread.h pwd.h sched.h semaphore.h strings.h sys/eventfd.h sys/file.h sys/ioctl.h sys/mman.h sys/prctl.h sys/random.h sys/resource.h sys/signalfd.h sys/stat.h sys/statfs.h sys/syscall.h sys/types.h sys/wait.h unistd.h", words, " ")
  for (i in words) posix[words[i]] = 1
}
{
  files++
  path = $0; sub(/:.*/, "", path)
  header = $0; sub(/^[^<"]*[<"]/, "", header); sub(/[>"].*/, "", header)
  parts = split(path, folder, "/")
  public = folder[1] == "include" || folder[1] == "examples"
  own = folder[1] == "src" ? (parts > 2 ? rank[folder[2]] : count + 1) : public ? 0 : count + 1
  if ($0 ~ /include *</) {
    if (header in standard || begins(header, "trireme/")) next
    if (public) complain("public headers and examples use the C standard and trireme/ alone")
    else if (header in posix) next
    else if (!(header in home)) complain("a library whose place tests/architecture/includes.sh does not know")
    else if (!begins(path, home[header])) complain("this library belongs to " home[header])
    next
  }
  steps = split(header, step, "/")
  if (steps == 1) { if (folder[1] != "cli") complain("write the path from src/"); next }
  if (!(step[1] in rank)) complain("no layer of this name")
  else if (rank[step[1]] > own) complain("includes point down: " step[1] " lies above " folder[2])
  else if (steps > 2 && folder[2] != step[1]) complain("an implementation, for src/" step[1] "/ alone")
}
END {
  if (files < 1) { print "no file includes anything"; bad = 1 }
  exit bad
}'
