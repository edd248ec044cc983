/* How much more memory this process can use: the machine's free memory, within the limits of its control
 * groups.
 */
#ifndef TR_BASE_MEMORY_H
#define TR_BASE_MEMORY_H

#include <stdint.h>

struct tr_memory_room {
    int64_t free;    /* bytes, including reclaimable memory (file caches) and swap; INT64_MAX: not known */
    char where[160]; /* source of the limit: "this machine", "the control group /job" */
};

/* Looks below `root` (NULL: "/") in proc/ and sys/fs/cgroup/, for both versions of control groups. Files
   that cannot be read set no limit. Any thread. */
void tr_memory_look(const char *root, struct tr_memory_room *out);

#endif
