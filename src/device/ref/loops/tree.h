/* Reductions over rows: one leaf per microbatch, combined in the tree of base/numbers/tree.h. */
#ifndef TR_DEVICE_REF_TREE_H
#define TR_DEVICE_REF_TREE_H

#include "device/ops.h"
#include "trireme/status.h"

/* Adds the contribution of a microbatch of the cut to `leaf`, which holds +0 on entry. */
typedef void (*ref_leaf)(const void *arguments, int32_t microbatch, float *leaf);

/* Writes every node of the cut: node j, `width` floats, at out + j * cut->stride. TR_ENOMEM when there is
   no memory for the leaves. Any thread. */
tr_status ref_tree(const struct tr_cut *cut, int64_t width, ref_leaf leaf, const void *arguments, float *out);

/* Rows of the whole cut. */
static inline int64_t ref_cut_rows(const struct tr_cut *cut)
{
    return cut->count > 0 ? cut->row[cut->count] : 0;
}

#endif
