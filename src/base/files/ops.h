/* The calls that the library needs of a file system to write: twelve, in a table.
 *
 * All files that must survive a full disk, a crash or a power failure (above all checkpoints) are written
 * through this table, so that tests can replace the machine's file system by one that fails, counts or
 * loses power. Reading needs no such table: tests prepare the files to read.
 *
 * Invariant: other code calls the functions below, not the table's slots. They finish short writes, repeat
 * interrupted calls and record messages that name the path, the reason and the next step.
 */
#ifndef TR_BASE_FILE_OPS_H
#define TR_BASE_FILE_OPS_H

#include "trireme/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TR_FILE_OPS_VERSION 2

/* Only the last mode follows a symbolic link at `path`, or writes to anything but a regular file (and may
   then wait for a reader): it is for paths that a person has named. */
enum tr_file_create {
    TR_FILE_NEW,      /* fails where the file exists */
    TR_FILE_REPLACE,  /* empties an existing file */
    TR_FILE_APPEND,   /* appends to the file, which need not exist */
    TR_FILE_EXISTING, /* writes from the start of an existing file; for devices and pipes */
};

/* Slots return 0 or a count or descriptor >= 0, and on failure a negative errno value. `context` is that of
   the tr_file_system. None may be NULL. */
struct tr_file_ops {
    const char *name;
    int version; /* TR_FILE_OPS_VERSION */
    /* Opens for writing; a descriptor >= 0. */
    int (*open)(void *context, const char *path, enum tr_file_create create);
    /* Writes at the descriptor's position; may write less than requested, as write(2). */
    int64_t (*write)(void *context, int descriptor, const void *data, size_t size);
    /* The file's contents and size are durable when it returns. */
    int (*sync)(void *context, int descriptor);
    /* The descriptor is closed, even on failure. */
    int (*close)(void *context, int descriptor);
    /* Atomic; replaces a file `to`. */
    int (*rename)(void *context, const char *from, const char *to);
    int (*make_directory)(void *context, const char *path);
    int (*remove_file)(void *context, const char *path);
    /* The directory must be empty. */
    int (*remove_directory)(void *context, const char *path);
    /* The directory's entries are durable when it returns. */
    int (*sync_directory)(void *context, const char *path);
    /* Calls `visit` for each entry except "." and "..", in any order; `name` is borrowed for that call. A
       non-zero result of `visit` ends the walk and is returned. */
    int (*list)(void *context, const char *path, int (*visit)(void *user, const char *name), void *user);
    /* Makes `path` a symbolic link with this text; fails where something exists. */
    int (*make_link)(void *context, const char *text, const char *path);
    /* Writes the text of a link and a NUL to `text`; -EINVAL for anything but a link, -ENAMETOOLONG. */
    int (*read_link)(void *context, const char *path, char *text, size_t size);
};

/* A table with its state. Functions take NULL for the machine's file system. Borrowed for the call. */
typedef struct tr_file_system {
    const struct tr_file_ops *ops;
    void *context;
} tr_file_system;

/* A directory that is held open. Paths that begin with `path` are looked up in it, wherever it was moved
   and whatever replaced it. */
struct tr_file_anchor {
    const char *path;
    int descriptor;
};

/* The machine's file system. Its context is a struct tr_file_anchor, or NULL. A write beyond the process's
   file size limit fails with EFBIG, without SIGXFSZ, whatever the signal's disposition. */
extern const struct tr_file_ops tr_file_ops_posix;

/* A file being written. The fields are private. Plain memory: may lie on the stack. */
struct tr_file_writer {
    const tr_file_system *files;
    const char *path;
    int descriptor; /* -1: not open */
    uint64_t written;
    uint64_t expected; /* for messages; 0: unknown */
};

/* Opens `path` for writing. `path` and `files` are borrowed until tr_file_finish() or tr_file_abandon().
   `expected` is the number of bytes to come, or 0; it appears in messages. TR_EIO. */
tr_status tr_file_begin(const tr_file_system *files, const char *path, enum tr_file_create create,
                        uint64_t expected, struct tr_file_writer *writer);
/* Writes all of `data` (borrowed for the call). TR_EIO: the caller abandons the writer. */
tr_status tr_file_write(struct tr_file_writer *writer, const void *data, size_t size);
/* Makes the contents durable if `durable`, and closes the file, also after a failure. */
tr_status tr_file_finish(struct tr_file_writer *writer, bool durable);
/* Closes the file, which stays. For error paths: does nothing to a writer that is not open, changes no
 * message.
 */
void tr_file_abandon(struct tr_file_writer *writer);

/* All TR_EIO on failure. */
tr_status tr_file_rename(const tr_file_system *files, const char *from, const char *to);
tr_status tr_file_sync_directory(const tr_file_system *files, const char *path);
tr_status tr_file_make_directory(const tr_file_system *files, const char *path);
/* Makes `path` a symbolic link to `name` in the same directory: durable, and replacing an earlier link in
   one step. */
tr_status tr_file_point(const tr_file_system *files, const char *path, const char *name);
/* The text of a symbolic link, "" where `path` is not one or does not exist. TR_EIO. */
tr_status tr_file_read_link(const tr_file_system *files, const char *path, char *text, size_t size);
/* Makes the directory and its missing parents, each durable in its parent. An existing directory is fine. */
tr_status tr_file_make_directories(const tr_file_system *files, const char *path);
/* Removes a file, or a directory of files and directories (at most 8 deep; links are removed, not
   followed). After a failure it continues to remove as much as possible, and returns the first failure. A
   path that does not exist is no failure. */
tr_status tr_file_remove(const tr_file_system *files, const char *path);
/* The same for error paths: ignores failures, and keeps the thread's message. */
void tr_file_discard(const tr_file_system *files, const char *path);

/* Names, ascending by bytes. */
struct tr_file_names {
    char **name;
    int64_t count;
};
/* The entries of a directory. Returned, free with tr_file_names_free(). TR_EIO, TR_ENOMEM. */
tr_status tr_file_list(const tr_file_system *files, const char *path, struct tr_file_names *out);
/* Accepts an empty list; empties it. */
void tr_file_names_free(struct tr_file_names *names);

/* Records the message `<operation> "<path>": <reason>; <next step>` for an errno value (positive) and returns
 * TR_EIO. */
tr_status tr_file_failure(const char *operation, const char *path, int error);

#endif
