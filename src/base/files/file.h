/* Reading files, and replacing one file by another.
 *
 * Contents are hostile until the caller has checked them: these functions only ensure regular files and
 * correct sizes.
 */
#ifndef TR_BASE_FILE_H
#define TR_BASE_FILE_H

#include "base/files/ops.h"
#include "base/files/path.h"

bool tr_file_exists(const char *path);
bool tr_file_is_directory(const char *path);

/* Opens a regular file for reading; anything else (directory, device, pipe) is TR_EFORMAT, without
   waiting. Writes the descriptor, which the caller closes with close(), and the size. TR_ENOTFOUND where
   there is no such file, else TR_EIO. */
tr_status tr_file_open(const char *path, int *descriptor, uint64_t *size);
/* Reads exactly `size` bytes at `offset`. TR_EIO; also when the file has become shorter. Any thread. */
tr_status tr_file_read_at(int descriptor, const char *path, uint64_t offset, void *to, size_t size);

/* A whole file in memory: `size` bytes and a NUL that is not counted. */
struct tr_file_content {
    char *data;
    size_t size;
};
/* Reads a regular file of at most `limit` bytes. Returned, free with tr_file_content_free(). TR_ENOTFOUND,
   TR_EIO, TR_ENOMEM, and TR_EFORMAT when it is larger than the limit. */
tr_status tr_file_read(const char *path, uint64_t limit, struct tr_file_content *out);
/* Accepts an empty content; empties it. */
void tr_file_content_free(struct tr_file_content *content);

/* A regular file mapped read-only. If another process cuts the file short meanwhile, or the disk fails, an
   access raises SIGBUS, whose handler can find the file with tr_mapped_at() (base/files/mapped.h). Use
   tr_file_read_at() where that must not end the process. */
struct tr_file_map {
    const uint8_t *data; /* NULL for an empty file */
    size_t size;
};
/* Returned, release with tr_file_unmap(). TR_ENOTFOUND, TR_EIO. */
tr_status tr_file_map(const char *path, struct tr_file_map *out);
/* The same for the first `size` bytes of an open file, which may then be closed; `path` is for messages.
   TR_EIO, TR_ENOMEM. */
tr_status tr_file_map_open(int descriptor, const char *path, uint64_t size, struct tr_file_map *out);
/* Lets the system drop the mapping's pages from memory; they are read back on access. */
void tr_file_map_leave(const struct tr_file_map *map);
/* Accepts an empty map; empties it. */
void tr_file_unmap(struct tr_file_map *map);

/* Opens a file of lines for writing: anew, or to continue after its last complete line. Anything but a
   regular file, and symbolic links, are refused. `path` is borrowed until tr_file_finish() or
   tr_file_abandon(). TR_EIO, TR_ENOMEM. */
tr_status tr_file_lines_begin(const char *path, bool goes_on, struct tr_file_writer *writer);
/* Writes `line` (borrowed for the call; changed and restored meanwhile) and a line feed at once. TR_EIO. */
tr_status tr_file_lines_add(struct tr_file_writer *writer, char *line);

/* Locks a directory for this process, so that no other works in it: TR_EIO at once where one does. The
   lock lasts until the caller closes the descriptor with close(), or the process ends. Where the file
   system has no locks, or the directory cannot be read, the descriptor is -1 and the result is TR_OK. */
tr_status tr_file_lock(const char *directory, int *descriptor);
/* Where an open file is now. */
enum tr_file_whereabouts {
    TR_FILE_THERE,   /* `path` leads to it */
    TR_FILE_MOVED,   /* `path` leads to something else, or to nothing */
    TR_FILE_REMOVED, /* no path leads to it */
};
enum tr_file_whereabouts tr_file_find(int descriptor, const char *path);
/* A path that leads to it, as the system reports; NULL where it does not, or memory fails. Returned, free
   with tr_free(). */
char *tr_file_descriptor_path(int descriptor);

/* A file that replaces another once it is complete: readers see the old content or the new one, also after
   a crash or power failure, and a failed write leaves the old one. The content is written to
   "<path>.<process>.tmp", which a killed process may leave. Where `path` is a device or a pipe it is
   written in place; a symbolic link to a file is replaced. Plain memory: may lie on the stack. */
struct tr_file_replacement {
    struct tr_file_writer writer; /* for tr_file_write() */
    const tr_file_system *files;
    const char *path;
    char *aside, *parent; /* NULL where `path` is written in place */
};
/* `files` and `path` are borrowed until finishing or abandoning; `expected` as for tr_file_begin(). After a
   failure there is nothing to abandon. TR_EIO, TR_ENOMEM. */
tr_status tr_file_replace_begin(const tr_file_system *files, const char *path, uint64_t expected,
                                struct tr_file_replacement *out);
/* Makes the content durable and renames it into place; releases `file`, also on failure. TR_EIO. */
tr_status tr_file_replace_finish(struct tr_file_replacement *file);
/* Removes the written content and releases `file`; changes no message. Does nothing after finishing or a
   failed beginning. */
void tr_file_replace_abandon(struct tr_file_replacement *file);
/* Whether replacing `path` may work, for long work whose result goes there: tries it and leaves nothing
   behind. Anything but a regular file is not touched. Errors as tr_file_replace_begin(). */
tr_status tr_file_replace_check(const char *path);

/* Replaces the file `path` by these `size` bytes, as above. */
tr_status tr_file_write_atomic(const tr_file_system *files, const char *path, const void *data, size_t size);

#endif
