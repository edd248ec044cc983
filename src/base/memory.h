/* How much memory this process may still take: what the machine has free, and what the control groups allow
 * that it is in.
 */
#ifndef TR_BASE_MEMORY_H
#define TR_BASE_MEMORY_H

#include <stdint.h>

struct tr_memory_room {
    int64_t
        free; /* bytes, with what the system can give up (caches of files) and swap; INT64_MAX: not known */
    char where[160]; /* what sets the limit: "this machine", "the control group /job" */
};

/* Looks below `root` (NULL: "/") in proc/ and sys/fs/cgroup/, for both versions of control groups. What
   cannot be read sets no limit. Any thread. */
void tr_memory_look(const char *root, struct tr_memory_room *out);

#endif
