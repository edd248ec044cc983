/* A directory of this process for files that other processes of the host open: in memory where there is
 * room, else on disk. It is not removed when the process is killed; but it is locked while the process
 * lives, so that a later process of the same user can find and remove it.
 */
#ifndef TR_BASE_SCRATCH_DIR_H
#define TR_BASE_SCRATCH_DIR_H

#include "trireme/status.h"

#include <stdint.h>

#define TR_SCRATCH_DIR_PATH 80

struct tr_scratch_dir {
    char path[TR_SCRATCH_DIR_PATH]; /* "": there is none */
    int lock;                       /* descriptor that holds the lock, or -1 */
};
#define TR_SCRATCH_DIR_NONE                                                                                  \
    {                                                                                                        \
        .lock = -1                                                                                           \
    }

/* Makes "trireme-KIND-XXXXXX" where `room` bytes are free, in /dev/shm or else in /tmp, accessible only to
   this user. First removes directories of the kind that no process holds. TR_EIO, whose message names the
   room of both. */
tr_status tr_scratch_dir_make(const char *kind, int64_t room, struct tr_scratch_dir *dir);
/* Removes it with its contents; open files stay readable. Accepts an empty one, and empties it; changes no
   message. */
void tr_scratch_dir_remove(struct tr_scratch_dir *dir);
/* Removes the directories of a kind that belong to this user and that no process holds; changes no
 * message.
 */
void tr_scratch_dir_sweep(const char *kind);
/* Free bytes at `path` that this user may use; INT64_MAX where nothing limits them, -1 where not known. */
int64_t tr_scratch_dir_room(const char *path);

#endif
