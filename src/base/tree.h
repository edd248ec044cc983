/* The fixed binary tree that combines what microbatches contribute.
 *
 * Over n leaves: the left child covers the largest power of two below n leaves, the right child the rest.
 * Leaves 2i and 2i+1 meet first, an odd leaf passes upward. A range of leaves that starts at a multiple of
 * its size (a power of two) is therefore one node, wherever it is computed. Every node's value is left +
 * right.
 */
#ifndef TR_BASE_TREE_H
#define TR_BASE_TREE_H

#include <stdint.h>

#define TR_TREE_DEPTH 32

/* Where a binary counter stands: leaves are pushed in ascending order and pairs combine as soon as they are
   complete. After pushing leaf `i` (counting from 0), this many combinations are due: the number of trailing
   ones of i. */
static inline int tr_tree_combines_after(int64_t leaf)
{
    return __builtin_ctzll(~(unsigned long long)leaf);
}

/* Combinations still due after the last of n leaves was pushed: the number of ones in n, less one. */
static inline int tr_tree_combines_at_end(int64_t leaves)
{
    return __builtin_popcountll((unsigned long long)leaves) - 1;
}

/* The most values that wait at once while n leaves, at least 1, are pushed, the last one included. */
static inline int tr_tree_levels(int64_t leaves)
{
    return 64 - __builtin_clzll((unsigned long long)leaves);
}

/* Writes the boundaries of the fewest nodes of the tree over `leaves` leaves which cover [begin, end)
   exactly, ascending: node i covers [bounds[i], bounds[i+1]). Returns the number of nodes (at most 2 *
   TR_TREE_DEPTH); bounds needs room for one more. */
int tr_tree_cover(int64_t leaves, int64_t begin, int64_t end, int64_t *bounds);

/* The first leaf of part `index` when `items` are cut into `parts` contiguous parts whose sizes differ by at
 * most one. */
static inline int64_t tr_cut(int64_t items, int64_t parts, int64_t index)
{
    return items / parts * index + items % parts * index / parts;
}

#endif
