#!/bin/sh
# includes.sh ROOT: checks the includes of a tree, and names every line that breaks a rule.
#
#   - The layers are the rows of the table in docs/architecture.md, bottom first. A file includes only from its own layer
#     and those below; include/trireme/ is the bottom, cli/ the top; every folder of src/ is in the table.
#   - Every folder with sources has a README.md, whose line "May include:" names the layers, and the folders of its own layer,
#     that its files include: no more and no fewer. "Used by: `src/x` alone" keeps a folder to its layer, and "Private: `x.h`" a
#     header, also from tests and benchmarks.
#   - A folder has at most 25 files beside that.
#   - Public headers and examples include public headers and those of the C standard, nothing else.
#   - Only one place includes the headers of each foreign library.
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

# Every folder with sources describes itself in a README.md, and names existing files and subfolders.
find src cli -name '*.[chk]' -o -name '*.inc' -o -name '*.c.in' -o -name '*.proto' | sed 's,/[^/]*$,,' | sort -u | while read -r folder; do
  if [ ! -f "$folder/README.md" ]; then
    echo "$folder has no README.md that says what is there and what it may include"
    continue
  fi
  # shellcheck disable=SC2016 # backquotes of Markdown
  sed -n '/^- Read in this order:/p; /^- Subfolders:/p; /^- Private:/p' "$folder/README.md" | grep -o '`[^`]*`' | tr -d '`' | while read -r name; do
    [ -e "$folder/$name" ] || echo "$folder/README.md names $name, which is not there"
  done
  count=$(find "$folder" -maxdepth 1 -type f ! -name README.md ! -name CMakeLists.txt | wc -l)
  [ "$count" -le 25 ] || echo "$folder has $count files, and a folder at most 25; divide it into subfolders"
  for room in "$folder"/*/; do
    [ ! -d "$room" ] || grep -q "^- Subfolders:.*\`$(basename "$room")/\`" "$folder/README.md" || echo "$folder/README.md does not name its subfolder $(basename "$room")/"
  done
done >"${TMPDIR:-/tmp}/readmes.$$"
if [ -s "${TMPDIR:-/tmp}/readmes.$$" ]; then
  cat "${TMPDIR:-/tmp}/readmes.$$"
  rm -f "${TMPDIR:-/tmp}/readmes.$$"
  exit 1
fi
rm -f "${TMPDIR:-/tmp}/readmes.$$"

readmes=$(find src cli -name README.md | sort)
also=
for folder in tests bench; do [ ! -d $folder ] || also="$also $folder"; done
# shellcheck disable=SC2086 # folders
find include src cli examples $also -name '*.[ch]' -o -name '*.inc' | sort | xargs grep -nE '^ *# *include' | awk -v layers="$layers" -v readmes="$readmes" '
function complain(why) { print $0 "    <- " why; bad = 1 }
function begins(text, start) { return substr(text, 1, length(start)) == start }
# The rules of a README.md for its folder: may[folder, name] for what its files may include, alone[folder] for its only user,
# private[header] for those that only its layer includes.
function read_readme(path,   line, folder, i, words, word) {
  folder = path; sub(/\/README.md$/, "", folder)
  while ((getline line <path) > 0) {
    if (line ~ /^- Used by: .* alone\.$/) { split(line, word, "`"); alone[folder] = word[2] }
    if (line ~ /^- Private: /) {
      words = split(line, word, "`")
      for (i = 2; i <= words; i += 2) private[folder "/" word[i]] = 1
    }
    if (line !~ /^- May include: /) continue
    words = split(line, word, "`")
    for (i = 2; i <= words; i += 2) may[folder, word[i]] = 1
  }
  close(path)
}
BEGIN {
  readme_count = split(readmes, readme, "\n")
  for (i = 1; i <= readme_count; i++) read_readme(readme[i])
  count = split(layers, name, " ")
  for (i = 1; i <= count; i++) rank[name[i]] = i
  rank["trireme"] = 0
  # The only paths with foreign headers, by their beginning.
  home["arm_neon.h"] = home["immintrin.h"] = "src/device/cpu/vectors/"
  home["emmintrin.h"] = "src/device/cpu/vectors/fma_exact.h"
  home["curl/curl.h"] = "src/data/files/fetch_curl.c"
  home["isa-l/crc.h"] = home["openssl/evp.h"] = "src/base/numbers/hash.c"
  home["cpuid.h"] = "src/base/processor.c"
  home["isa-l/igzip_lib.h"] = "src/data/files/inflate.c"
  home["mpi.h"] = "src/comm/mpi/"
  home["png.h"] = "src/data/images/"
  home["turbojpeg.h"] = "src/data/images/"
  home["protobuf-c/protobuf-c.h"] = "src/io/"
  home["yaml.h"] = "src/base/options/config_parse.c"
  home["zlib.h"] = "src/data/formats/tfrecord_write.c"
  also["zlib.h"] = "src/base/text/packed.c"
  split("assert ctype errno float inttypes limits locale math setjmp signal stdarg stdatomic stdbool stddef stdint stdio stdlib string time", words, " ")
  for (i in words) standard[words[i] ".h"] = 1
  split("dirent.h dlfcn.h fcntl.h grp.h langinfo.h link.h linux/futex.h poll.h pthread.h pwd.h sched.h semaphore.h strings.h sys/eventfd.h sys/file.h sys/ioctl.h sys/mman.h sys/pidfd.h sys/prctl.h sys/random.h sys/resource.h sys/signalfd.h sys/stat.h sys/statfs.h sys/syscall.h sys/types.h sys/wait.h unistd.h", words, " ")
  for (i in words) posix[words[i]] = 1
}
{
  files++
  path = $0; sub(/:.*/, "", path)
  header = $0; sub(/^[^<"]*[<"]/, "", header); sub(/[>"].*/, "", header)
  parts = split(path, folder, "/")
  if (("src/" header) in private && !(folder[1] == "src" && begins(header, folder[2] "/"))) { complain("private to its layer: its other headers say what it does for others"); next }
  if (folder[1] == "tests" || folder[1] == "bench") next
  public = folder[1] == "include" || folder[1] == "examples"
  own = folder[1] == "src" ? (parts > 2 ? rank[folder[2]] : count + 1) : public ? 0 : count + 1
  if ($0 ~ /include *</) {
    if (header in standard || begins(header, "trireme/")) next
    if (path == "examples/06-event-loop.c" && header in posix) next # an event loop is part of the system
    if (public) complain("public headers and examples use the C standard and trireme/ alone")
    else if (header in posix) next
    else if (!(header in home)) complain("a library whose place tests/architecture/includes.sh does not know")
    else if (!begins(path, home[header]) && path != also[header]) complain("this library belongs to " home[header])
    next
  }
  steps = split(header, step, "/")
  if (steps == 1) { complain("write the path from src/, or from cli/"); next }
  from = path; sub(/\/[^\/]*$/, "", from)
  to = header; sub(/\/[^\/]*$/, "", to)
  if (step[1] == "cli") {
    if (folder[1] != "cli") { complain("includes point down: cli lies above " folder[2]); next }
    target = to
  } else {
    if (!(step[1] in rank)) { complain("no layer of this name"); next }
    if (rank[step[1]] > own) { complain("includes point down: " step[1] " lies above " folder[2]); next }
    target = "src/" to
  }
  if (target == from || header ~ /\.pb-c\.h$/ || step[1] == "trireme") next
  same = step[1] == "cli" || (folder[1] == "src" && folder[2] == step[1])
  if ((target in alone) && !same) { complain("an implementation, for " alone[target] " alone"); next }
  wanted = same ? to : step[1]
  if (!((from, wanted) in may)) complain(from "/README.md does not say that it may include " wanted)
  else used[from, wanted] = 1
}
END {
  for (key in may)
    if (!(key in used)) { split(key, pair, SUBSEP); print pair[1] "/README.md says that it may include " pair[2] ", and nothing there does"; bad = 1 }
  if (files < 1) { print "no file includes anything"; bad = 1 }
  exit bad
}'
