/* What the library asks of a file system when it writes: ten calls behind a table.
 *
 * Everything that must survive a full disk, a kill or a power cut (checkpoints above all) is written through
 * this table, so that tests can put a faulting, counting or power-losing file system in place of the
 * machine's. Reading needs no such table: a test prepares the files that it wants read.
 *
 * Invariant: the functions below, not the table's slots, are what other code calls. They finish short writes,
 * repeat interrupted calls and record messages that name the path, the reason and the next step.
 */
#ifndef TR_BASE_FILE_OPS_H
#define TR_BASE_FILE_OPS_H

#include "trireme/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TR_FILE_OPS_VERSION 2

/* Only the last follows a symbolic link in place of the file, or writes to what is no regular file (and
   may then wait for somebody who reads it): it is for places that a person has named. */
enum tr_file_create {
    TR_FILE_NEW,      /* fails where the file exists */
    TR_FILE_REPLACE,  /* empties an existing file */
    TR_FILE_APPEND,   /* goes on after what is in the file, which need not exist */
    TR_FILE_EXISTING, /* writes from the start of what exists already; for devices and pipes */
};

/* Slots return 0 or a count or descriptor >= 0, and on failure a negative errno value. `context` is that of
   the tr_file_system. None may be NULL. */
struct tr_file_ops {
    const char *name;
    int version; /* TR_FILE_OPS_VERSION */
    /* Opens for writing; a descriptor >= 0. */
    int (*open)(void *context, const char *path, enum tr_file_create create);
    /* Writes at the descriptor's position; may write less than asked for, as write(2). */
    int64_t (*write)(void *context, int descriptor, const void *data, size_t size);
    /* The file's contents and size are durable when it returns. */
    int (*sync)(void *context, int descriptor);
    /* The descriptor is gone, even on failure. */
    int (*close)(void *context, int descriptor);
    /* Atomic; replaces a file `to`. */
    int (*rename)(void *context, const char *from, const char *to);
    int (*make_directory)(void *context, const char *path);
    int (*remove_file)(void *context, const char *path);
    /* The directory must be empty. */
    int (*remove_directory)(void *context, const char *path);
    /* The directory's entries are durable when it returns. */
    int (*sync_directory)(void *context, const char *path);
    /* Calls `visit` for each entry but "." and "..", in any order; `name` is borrowed for that call. A
       non-zero result of `visit` ends the walk and is returned. */
    int (*list)(void *context, const char *path, int (*visit)(void *user, const char *name), void *user);
    /* Makes `path` a symbolic link with this text; fails where there is something. */
    int (*make_link)(void *context, const char *text, const char *path);
    /* Writes the text of a link and a NUL to `text`; -EINVAL for what is none, -ENAMETOOLONG. */
    int (*read_link)(void *context, const char *path, char *text, size_t size);
};

/* A table with its state. Functions take NULL for the machine's own file system. Borrowed for the call. */
typedef struct tr_file_system {
    const struct tr_file_ops *ops;
    void *context;
} tr_file_system;

/* A directory that is held open. Paths that begin with `path` are looked up in it, wherever it has been moved
   to and whatever has taken its place. */
struct tr_file_anchor {
    const char *path;
    int descriptor;
};

/* The machine's. Its context is a struct tr_file_anchor, or NULL. A write beyond the process's file size
   limit fails with EFBIG and leaves no SIGXFSZ behind, whatever the signal's disposition. */
extern const struct tr_file_ops tr_file_ops_posix;

/* A file being written. The fields are for the functions below. Plain memory: may lie on the stack. */
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
/* Makes the contents durable where `durable`, and closes. After a failure the file is closed as well. */
tr_status tr_file_finish(struct tr_file_writer *writer, bool durable);
/* Closes without a word; the file stays. For error paths: does nothing to a writer that is not open, changes
 * no message. */
void tr_file_abandon(struct tr_file_writer *writer);

/* All TR_EIO on failure. */
tr_status tr_file_rename(const tr_file_system *files, const char *from, const char *to);
tr_status tr_file_sync_directory(const tr_file_system *files, const char *path);
tr_status tr_file_make_directory(const tr_file_system *files, const char *path);
/* Makes `path` a symbolic link to `name`, which lies beside it: the link comes in one step in place of an
   earlier one, and is durable. */
tr_status tr_file_point(const tr_file_system *files, const char *path, const char *name);
/* The text of a symbolic link, "" where `path` is none or is not there. TR_EIO. */
tr_status tr_file_read_link(const tr_file_system *files, const char *path, char *text, size_t size);
/* Makes the directory and its missing parents, each durable in its parent. An existing directory is fine. */
tr_status tr_file_make_directories(const tr_file_system *files, const char *path);
/* Removes a file, or a directory of files and directories (at most 8 deep; links are removed, not followed).
   Goes on after a failure to remove as much as it can, and returns the first failure. Something that does not
   exist is fine. */
tr_status tr_file_remove(const tr_file_system *files, const char *path);
/* The same for error paths: what cannot be removed stays, and the thread's message is kept. */
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
