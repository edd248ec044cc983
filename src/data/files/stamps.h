/* The files that a source is made of: their stamps, which show whether a file may have changed, and their
 * digest, which shows whether it did.
 *
 * A stamp is device, inode, size, and the times of the last change of contents (mtime, which anybody may set)
 * and of contents or attributes (ctime, which the kernel alone sets). Equal stamps mean equal contents where
 * the file system is one of this machine's own and the stamp was taken some time after the last change: see
 * tr_source_files_settled().
 */
#ifndef TR_DATA_FILES_H
#define TR_DATA_FILES_H

#include "base/numbers/hash.h"
#include "trireme/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tr_file_stamp {
    uint64_t device, inode, size;
    int64_t modified[2], changed[2]; /* seconds and nanoseconds since 1970 */
    bool directory;
};

struct tr_source_file {
    char *path;
    struct tr_file_stamp stamp;
};

/* Empty: all zero. */
struct tr_source_files {
    struct tr_source_file *file;
    int64_t count;
};

/* `path`, or `directory`/`path` where it is relative and `directory` is not NULL. Returned, free with
   tr_free(); NULL when memory fails. */
char *tr_source_path(const char *directory, const char *path);

/* Adds a file or directory; `path` is taken from `directory` as by tr_source_path(). TR_ENOMEM. */
tr_status tr_source_files_add(struct tr_source_files *files, const char *directory, const char *path);
/* Accepts an empty list; empties it. */
void tr_source_files_release(struct tr_source_files *files);

/* Notes the present stamps. TR_ENOTFOUND, TR_EIO: the stamps are then not to be used. */
tr_status tr_source_files_stamp(struct tr_source_files *files);
/* Whether any later change is sure to show in the stamps, which are `now` (by the clock of the machine):
   all files lie on a file system of this machine, and none was changed in the last seconds, within a tick
   of its clock. */
bool tr_source_files_settled(const struct tr_source_files *files, int64_t now);
/* A file whose contents may have changed since its stamp was noted (other size, time of modification or
   inode, or gone), borrowed from the list; NULL where there is none. */
const char *tr_source_files_changed(const struct tr_source_files *files);

/* The sum of the sizes of all files, as stamped; folders count nothing. */
int64_t tr_source_files_bytes(const struct tr_source_files *files);
/* Adds the stamps, in order, to a hash. */
void tr_source_files_add_stamps(const struct tr_source_files *files, tr_sha256 *hash);
/* Adds the names, each with that of its directory, and the contents, in order. Reads all. TR_ENOTFOUND,
 * TR_EIO. */
tr_status tr_source_files_add_contents(const struct tr_source_files *files, tr_sha256 *hash);

#endif
