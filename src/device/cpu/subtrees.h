/* Gradients of weights in which each member of the team takes some microbatches (a subtree of the tree
 * over them) and not some weights. So each row is packed or transformed, and read, by only one member; the
 * members' sums are then added along the top of the tree (products/subtree_sums.h). This is worth it while
 * there are few weights.
 *
 * Members of unequal speed divide further: each does most of its own subtree, and slow ones leave some of
 * their work to others. Nothing depends on the parts but time.
 */
#ifndef TR_DEVICE_CPU_SUBTREES_H
#define TR_DEVICE_CPU_SUBTREES_H

#include "device/cpu/cpu.h"

struct subtrees {
    int count;       /* one for each member of the team; 0: members do not divide the microbatches */
    int32_t leaves;  /* microbatches of each, a power of two; the last may have fewer */
    int64_t weights; /* floats of a sum, the biases' after them */
    int64_t biases;
    float *sums; /* [count - 1][weights + biases]; those of the first subtree are computed in place */
};

/* Decides whether and how to divide a call, whose work is `nanoseconds` for cpu_run(); the caller sets
   `sums`. `biases` may be 0. */
static inline struct subtrees subtrees_plan(const struct cpu_device *cpu, double nanoseconds,
                                            const struct tr_cut *cut, int64_t weights, int64_t biases)
{
    enum { MOST_FLOATS = 64 * 1024 };
    const int members = cpu->base.threads;
    struct subtrees none = {0};
    int32_t leaves = 1;
    if (members < 2 || nanoseconds < cpu->alone) return none;
    if (cut->nodes != 1 || cut->count < members || weights + biases > MOST_FLOATS) return none;
    while ((int64_t)leaves * members < cut->count) leaves *= 2;
    for (int i = 0; i < members; i++) { /* no member may have much more to do than others */
        const int32_t begin = i * leaves, end = begin + leaves < cut->count ? begin + leaves : cut->count;
        if (begin >= end) return none;
        if ((cut->row[end] - cut->row[begin]) * members * 4 > cut->row[cut->count] * 5) return none;
    }
    return (struct subtrees){.count = members, .leaves = leaves, .weights = weights, .biases = biases};
}

/* Bytes of `sums`. */
static inline size_t subtrees_bytes(const struct subtrees *s)
{
    return s->count > 1 ? (size_t)((s->count - 1) * (s->weights + s->biases)) * sizeof(float) : 0;
}

/* The cut of a subtree: its microbatches, whose rows are counted from the first of the whole cut. */
static inline struct tr_cut subtrees_cut(const struct subtrees *s, const struct tr_cut *cut, int subtree,
                                         int32_t bound[2])
{
    const int32_t begin = subtree * s->leaves;
    const int32_t count = cut->count - begin < s->leaves ? cut->count - begin : s->leaves;
    bound[0] = 0;
    bound[1] = count;
    return (struct tr_cut){.count = count, .row = cut->row + begin, .nodes = 1, .bound = bound};
}

/* Where the sums of a subtree other than the first go: weights and, after them, biases. */
static inline float *subtrees_sums(const struct subtrees *s, int subtree)
{
    return s->sums + (subtree - 1) * (s->weights + s->biases);
}

/* The tiles from (first, begin) to (last, end), a subtree and a tile of it; the last one is not included, and
   may be tile 0 beyond the last subtree. */
struct subtree_tiles {
    int first, last;
    int64_t begin, end;
};

/* Those of a member, where each subtree has `units` tiles. Members have neighbouring parts. */
struct subtree_tiles cpu_subtree_tiles(struct cpu_balance *balance, const struct subtrees *s,
                                       const struct tr_cut *cut, int64_t units, int member);

/* For calls half of whose work is the sums, and half can be done row by row by any member: the rows
   [*begin, *end) whose second half a member does. Members have neighbouring parts, mostly of their own
   subtrees. */
void cpu_subtree_rows(struct cpu_balance *balance, const struct subtrees *s, const struct tr_cut *cut,
                      int member, int64_t *begin, int64_t *end);

#endif
