/* The fixed binary tree that combines the contributions of microbatches.
 *
 * Over n leaves: the left child covers the largest power of two below n leaves, the right child the rest.
 * Leaves 2i and 2i+1 combine first; an odd last leaf passes upward. So a range of leaves that starts at a
 * multiple of its size (a power of two) is one node, wherever it is computed. Every node's value is left +
 * right.
 */
#ifndef TR_BASE_TREE_H
#define TR_BASE_TREE_H

#include <stdbool.h>
#include <stdint.h>

#define TR_TREE_DEPTH 32

/* The tree as a binary counter: leaves are pushed in ascending order, and pairs combine as soon as they
   are complete. After pushing leaf `i` (counting from 0), this many combinations are due: the number of
   trailing ones of i. */
static inline int tr_tree_combines_after(int64_t leaf)
{
    return __builtin_ctzll(~(unsigned long long)leaf);
}

/* Combinations still due after the last of n leaves was pushed: the number of ones in n, less one. */
static inline int tr_tree_combines_at_end(int64_t leaves)
{
    return __builtin_popcountll((unsigned long long)leaves) - 1;
}

/* A walk over the leaves of a node in ascending order, wherever the values are kept: a stack of waiting
   values, oldest first. The next leaf's value goes to place `waiting`; then tr_tree_push(&fold, last); for
   (int right; (right = tr_tree_combine(&fold)) > 0;) value[right - 1] = value[right - 1] + value[right];
   and after the last leaf the node's value is in place 0. Begins with zeros. */
struct tr_tree_fold {
    int64_t leaves;
    int waiting, due;
};

static inline void tr_tree_push(struct tr_tree_fold *fold, bool last)
{
    fold->waiting++;
    fold->due = last ? fold->waiting - 1 : tr_tree_combines_after(fold->leaves);
    fold->leaves++;
}

/* For callers that learn only afterwards that a leaf was the last: waiting values become due. */
static inline void tr_tree_end(struct tr_tree_fold *fold)
{
    fold->due = fold->waiting > 1 ? fold->waiting - 1 : 0;
}

/* The place of the value to add to the one before it; this removes it from the stack. 0: nothing is due
   before the next leaf. */
static inline int tr_tree_combine(struct tr_tree_fold *fold)
{
    if (fold->due == 0) return 0;
    fold->due--;
    return --fold->waiting;
}

/* The most values that wait at once, including the last one, while n leaves (at least 1) are pushed. */
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

/* Cuts `leaves` leaves of the tree into `parts` contiguous parts, none empty if there are as many leaves:
 * no part is larger than the largest of tr_cut(). As far as this allows, parts begin at multiples of large
 * powers of two, so that they consist of few nodes. Fills bound[parts + 1], ascending from 0 to `leaves`.
 */
void tr_tree_cut(int64_t leaves, int64_t parts, int64_t *bound);
/* The same for parts with different speeds: of all cuts without an empty part, one whose slowest part
 * (leaves / speed) is fastest and, as far as this allows, with few nodes. `speed`: [parts], each finite
 * and above 0, in any unit. At least as many leaves as parts. Equal arguments give equal cuts on all
 * machines.
 */
void tr_tree_cut_by_speed(int64_t leaves, int64_t parts, const double *speed, int64_t *bound);

#endif
