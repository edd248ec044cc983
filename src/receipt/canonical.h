/* The canonical bytes of a state, from which its root is computed: the same however ranks divide it.
 *
 * First the head, a text:
 *
 *     trireme state 1
 *     step 100                            steps done: the position in the data and in schedules
 *     best_loss 3fd51eb851eb851f          the figures that a checkpoint of the state keeps, in order of name,
 *     ...                                 each as the bits of a float64; not a number as 7ff8000000000000
 *     input.json <digest>                 the file of what data sets share, where there is one
 *     optimizer/m.conv1.weights F32 5x5x1x32
 *     parameters/conv1.weights F32 5x5x1x32     all tensors, in order of name
 *     ...
 *
 * Then the data of the tensors in the same order, little-endian, C order. Each tensor is cut into leaves
 * of TR_LEAF_BYTES, the last of which may be shorter; so a leaf lies in one tensor, and the head
 * determines which.
 */
#ifndef TR_RECEIPT_CANONICAL_H
#define TR_RECEIPT_CANONICAL_H

#include "checkpoint/checkpoint.h"

#define TR_LEAF_BYTES 65536

struct tr_canonical_tensor {
    enum tr_checkpoint_group group;
    int64_t index; /* its original number in the group */
    const char *name;
    uint64_t bytes;
    int64_t first_leaf, end_leaf;
};

/* How a state is cut into leaves. */
struct tr_canonical {
    char *head;
    size_t head_bytes;
    int64_t head_leaves;                /* number of leaves of the head, which come first */
    struct tr_canonical_tensor *tensor; /* [count] in order of name */
    int64_t count;
    int64_t leaves; /* of all */
};

/* From the content of a checkpoint of the state: `step` and `metrics` of the facts, the tensors without
   their data, and the file that is named by `state` (NULL: there is none) among the content's. Names of
   tensors are borrowed. Release with tr_canonical_release(), also after a failure. TR_ENOMEM. */
tr_status tr_canonical_make(const struct tr_checkpoint_content *content, const char *state,
                            struct tr_canonical *out);
void tr_canonical_release(struct tr_canonical *canonical);

/* The place of a leaf: its tensor (NULL: the head), the bytes before it there, and its size. */
struct tr_canonical_leaf {
    const struct tr_canonical_tensor *tensor;
    uint64_t at;
    size_t bytes;
};
struct tr_canonical_leaf tr_canonical_leaf_at(const struct tr_canonical *canonical, int64_t leaf);

#endif
