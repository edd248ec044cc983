/* The files of the data cache: names, whom they belong to, writing them, removing them. */
#ifndef TR_DATA_CACHE_FILES_H
#define TR_DATA_CACHE_FILES_H

#include "base/files/ops.h"

#define TR_CACHE_DATA   ".data"
#define TR_CACHE_RECORD ".note"
#define TR_CACHE_TMP    ".tmp"

/* "directory/<key><suffix>". Returned, free with tr_free(). NULL when memory fails. */
char *tr_cache_path(const char *directory, const char *key, const char *suffix);

/* TR_OK where the directory belongs to the user and no other user can write there; TR_ENOTFOUND where it is
   missing, unless `make`: then it is made. Else TR_EINVAL or TR_EIO. */
tr_status tr_cache_check_directory(const tr_file_system *files, const char *directory, bool make);
/* Opens a file that belongs to the user and that no other user can write, for reading; the caller closes it.
   TR_ENOTFOUND where there is none, TR_ECORRUPT where it may not be trusted. */
tr_status tr_cache_open_file(const char *path, int *descriptor, uint64_t *size);

/* A file that is written under another name and renamed when complete. */
struct tr_cache_writing {
    struct tr_file_writer writer;
    const tr_file_system *files;
    const char *path;
    char *aside;
};
/* `path` is borrowed until the end. After a failure there is nothing to finish. TR_EIO, TR_ENOMEM. */
tr_status tr_cache_begin(const tr_file_system *files, const char *path, uint64_t expected,
                         struct tr_cache_writing *writing);
/* Renames the file to its name when `status`, the result of writing, is TR_OK; else removes it. Returns
   the first failure. */
tr_status tr_cache_finish(struct tr_cache_writing *writing, tr_status status);

/* A file of the cache, for tr_cache_each(). */
struct tr_cache_file {
    const char *path, *name;
    int64_t size;
    int64_t used[2]; /* seconds and nanoseconds since 1970 of the last use */
};
/* Calls `visit` for each file whose name is one of the cache's. Files that appear or vanish meanwhile may
   be missed. */
tr_status tr_cache_each(const tr_file_system *files, const char *directory,
                        tr_status (*visit)(void *user, const struct tr_cache_file *file), void *user);
/* Removes the least recently used entries until the total is within the limit; the entry of key `kept`
   stays. */
void tr_cache_trim(const tr_file_system *files, const char *directory, int64_t limit, const char *kept);
/* Removes unfinished files of killed processes, and records unused for long. */
void tr_cache_sweep(const tr_file_system *files, const char *directory);

#endif
