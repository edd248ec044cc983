/* Reductions over rows, column by column: one chain per column and microbatch, vectors over columns, and the
 * tree over microbatches in registers.
 *
 * A group is 1, 2 or COLUMN_VECTORS vectors of neighbouring columns. Several chains side by side hide the
 * latency of addition.
 */
#ifndef TR_DEVICE_CPU_COLUMNS_H
#define TR_DEVICE_CPU_COLUMNS_H

#include "base/numbers/tree.h"
#include "device/cpu/vectors/vec.h"

#define COLUMN_VECTORS 4
#define COLUMN_GROUP   (COLUMN_VECTORS * VW)

/* Fewest columns that a thread takes: a cache line of floats. */
#define COLUMN_GRAIN (COLUMN_GROUP < 16 ? COLUMN_GROUP : 16)

/* The partial sums of a tree under way, for a group of `vectors` vectors. */
struct column_tree {
    vf sum[TR_TREE_DEPTH][COLUMN_VECTORS];
    struct tr_tree_fold fold;
};

V_INLINE void column_tree_combine(struct column_tree *tree, int vectors)
{
    for (int right; (right = tr_tree_combine(&tree->fold)) > 0;)
        for (int v = 0; v < vectors; v++)
            tree->sum[right - 1][v] = v_add(tree->sum[right - 1][v], tree->sum[right][v]);
}

/* An empty tree. The sums are not set: clearing them would take longer than most reductions. */
V_INLINE void column_tree_begin(struct column_tree *tree)
{
    tree->fold = (struct tr_tree_fold){0};
}

/* Adds the next leaf. */
V_INLINE void column_tree_push(struct column_tree *tree, int vectors, const vf *leaf)
{
    for (int v = 0; v < vectors; v++) tree->sum[tree->fold.waiting][v] = leaf[v];
    tr_tree_push(&tree->fold, false);
    column_tree_combine(tree, vectors);
}

/* Combines the rest into sum[0], +0 if there was nothing, and begins anew. */
V_INLINE void column_tree_finish(struct column_tree *tree, int vectors)
{
    if (tree->fold.waiting == 0)
        for (int v = 0; v < vectors; v++) tree->sum[0][v] = v_zero();
    tr_tree_end(&tree->fold);
    column_tree_combine(tree, vectors);
    column_tree_begin(tree);
}

/* Vector v of a group whose first column is at p; `columns` are valid from there, the others +0. */
V_INLINE vf column_load(const float *p, int v, int64_t columns)
{
    return columns >= (v + 1) * VW ? v_load(p + v * VW) : v_load_part(p + v * VW, columns - v * VW);
}

V_INLINE void column_store(float *p, int v, vf value, int64_t columns)
{
    if (columns >= (v + 1) * VW)
        v_store(p + v * VW, value);
    else
        v_store_part(p + v * VW, value, columns - v * VW);
}

/* Writes the sum of all leaves, +0 if there were none, and begins anew. */
V_INLINE void column_tree_store(struct column_tree *tree, int vectors, float *to, int64_t columns)
{
    column_tree_finish(tree, vectors);
    for (int v = 0; v < vectors; v++) column_store(to, v, tree->sum[0][v], columns);
}

/* Calls f(arguments, vectors, first column, valid columns) for the groups of columns [begin, end): full
 * groups as far as possible, then single vectors, the last perhaps in part. `f` is inlined once for each
 * kind, with constant arguments.
 */
#define COLUMN_GROUPS(f, arguments, begin, end)                                                              \
    do {                                                                                                     \
        int64_t column_ = (begin);                                                                           \
        for (; column_ + COLUMN_GROUP <= (end); column_ += COLUMN_GROUP)                                     \
            f(arguments, COLUMN_VECTORS, column_, COLUMN_GROUP);                                             \
        for (; column_ + 2 * VW <= (end); column_ += 2 * VW) f(arguments, 2, column_, 2 * VW);               \
        for (; column_ + VW <= (end); column_ += VW) f(arguments, 1, column_, VW);                           \
        if (column_ < (end)) f(arguments, 1, column_, (end)-column_);                                        \
    } while (0)

#endif
