/* A directory of this process's own for files that others on the host are to open: in memory where there is
 * room, else on disk. Nothing removes it when the process is killed; but it is locked as long as the process
 * lives, so that a later process of the same user finds those that no process holds.
 */
#ifndef TR_BASE_SCRATCH_DIR_H
#define TR_BASE_SCRATCH_DIR_H

#include "trireme/status.h"

#include <stdint.h>

#define TR_SCRATCH_DIR_PATH 80

struct tr_scratch_dir {
    char path[TR_SCRATCH_DIR_PATH]; /* "": there is none */
    int lock;                       /* descriptor that holds it, or -1 */
};
#define TR_SCRATCH_DIR_NONE                                                                                  \
    {                                                                                                        \
        .lock = -1                                                                                           \
    }

/* Makes "trireme-KIND-XXXXXX" where `room` bytes are free, in /dev/shm or else in /tmp, for this user alone.
   First removes those of the kind that no process holds. TR_EIO, whose message names the room of both. */
tr_status tr_scratch_dir_make(const char *kind, int64_t room, struct tr_scratch_dir *dir);
/* Removes it with all that is there; what is open stays readable. Accepts one that is empty, and empties it;
   changes no message. */
void tr_scratch_dir_remove(struct tr_scratch_dir *dir);
/* Removes the directories of a kind that no process holds, as far as they are this user's; changes no
 * message. */
void tr_scratch_dir_sweep(const char *kind);
/* Free bytes where `path` is, as far as this user may take them; INT64_MAX where nothing limits them, -1
   where that is not known. */
int64_t tr_scratch_dir_room(const char *path);

#endif
