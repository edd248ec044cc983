/* The parts of gpu_lists: the current stretch of launches (lists.c), recorded lists (kept.c), and a test of
 * the device's lists (trial.c).
 *
 * A fixed list equals its launches in every argument. A list that follows stands for launches of the same
 * kernels with other arguments and numbers of groups, as in steps over texts of other lengths. It is changed
 * before it is enqueued, if the interface can do that.
 */
#ifndef TR_DEVICE_GPU_LISTS_KEPT_H
#define TR_DEVICE_GPU_LISTS_KEPT_H

#include "device/gpu/internal.h"

#include "base/fail.h"

#define GPU_STRETCH                                                                                          \
    64 /* most launches of a stretch: the device may have to wait so long for the first one                  \
        */
#define GPU_LISTS 128
#define GPU_SEEN  512
#define GPU_OFTEN 3 /* a stretch is recorded after so many occurrences, */
#define GPU_ALIKE 6 /* a list that follows after so many stretches of the same kernels */

struct gpu_list {
    void *handle;
    bool follows;
    bool stale; /* it follows, and may use blocks that were freed: all launches are changed */
    int count;
    struct gpu_launch *launches;
    uint64_t *hashes, *shapes; /* [i]: hash of the launches up to `i`; of their kernels only */
    void **blocks;             /* blocks that a fixed list uses */
    int block_count;
};

/* A stretch that was not enqueued as an equal list. */
struct gpu_seen {
    uint64_t hash;
    int launches, times;
};

/* The last ones, in a ring. */
struct gpu_stretches {
    struct gpu_seen seen[GPU_SEEN];
    int next;
};

struct gpu_lists {
    /* The current stretch. */
    int count, arguments;
    int held;               /* launches held back: all of the stretch, or none */
    int listed;             /* launches already enqueued as a list */
    bool changed;           /* that list was changed for it */
    struct gpu_list *guess; /* the list they may become */
    struct gpu_launch launch[GPU_STRETCH];
    struct gpu_argument argument[GPU_STRETCH * GPU_ARGUMENTS];
    uint64_t hash[GPU_STRETCH], shape[GPU_STRETCH];

    struct gpu_list kept[GPU_LISTS];
    int kept_count;
    bool refused; /* recording one failed: nothing more is recorded */
    bool rigid;   /* lists cannot be changed, or changing one failed: none follows */
    struct gpu_stretches same, alike;
    struct tr_failure failure; /* of commands enqueued by a function that cannot fail */
};

/* ---- kept.c ---- */

/* Computes the hashes up to the stretch's last launch. */
void gpu_lists_hash(struct gpu_lists *lists);
/* Whether launch `index` of a list may stand for launch `index` of the stretch. */
bool gpu_list_takes(const struct gpu_lists *lists, const struct gpu_list *list, int index);
/* The longest list that begins with the stretch, and the longest list that the launches held back begin with,
   or equal. NULL: there is none. */
struct gpu_list *gpu_lists_find(struct gpu_lists *lists);
struct gpu_list *gpu_lists_find_beginning(struct gpu_lists *lists);
/* Changes a list to the launches held back, where it differs, and enqueues it. *done is false, and nothing is
   enqueued, if it could not be changed. */
tr_status gpu_lists_enqueue(struct gpu *gpu, struct gpu_list *list, bool *done);
/* Records the stretch. */
void gpu_lists_record(struct gpu *gpu, bool follows);
/* Whether a fixed list uses a block. */
bool gpu_list_uses(const struct gpu_list *list, const void *block);
/* Frees a list, which must not be running; the last list takes its index. */
void gpu_lists_drop(struct gpu *gpu, int index);

/* ---- trial.c ---- */

/* Records and runs some lists. Whether fixed lists gave the right numbers; *follow: also lists that follow.
 */
bool gpu_lists_try(struct gpu *gpu, bool *follow);

#endif
