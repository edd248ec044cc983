/* Gradients of weights of which each member of the team takes some microbatches, a subtree of the tree over
 * them, instead of some weights. So each row is packed or transformed by one member only, and read by one
 * processor; the members' sums are then added as the top of the tree has it. That is worth it while the
 * weights are few.
 */
#ifndef TR_DEVICE_CPU_SUBTREES_H
#define TR_DEVICE_CPU_SUBTREES_H

#include "device/cpu/cpu.h"
#include "device/cpu/kernels.h"

/* Every instruction set has its own. */
#define subtrees_add CPU_KERNEL(subtrees_add)

struct subtrees {
    int count;       /* one for each member of the team; 0: members do not share by microbatches */
    int32_t leaves;  /* microbatches of each but the last, which may have fewer: a power of two */
    int64_t weights; /* floats of a sum, the biases' after them */
    int64_t biases;
    float *sums; /* [count - 1][weights + biases]: those of the first subtree are formed where they belong */
};

/* Decides whether and how a call is shared whose work is `nanoseconds` to cpu_run(); `sums` is left to the
   caller. `biases` may be 0. */
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
    for (int i = 0; i < members; i++) { /* none may have much more to do than others */
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

/* The cut of a member: its microbatches, whose rows are still counted from the whole cut's first. */
static inline struct tr_cut subtrees_cut(const struct subtrees *s, const struct tr_cut *cut, int member,
                                         int32_t bound[2])
{
    const int32_t begin = member * s->leaves;
    const int32_t count = cut->count - begin < s->leaves ? cut->count - begin : s->leaves;
    bound[0] = 0;
    bound[1] = count;
    return (struct tr_cut){.count = count, .row = cut->row + begin, .nodes = 1, .bound = bound};
}

/* Where a member's sums of weights or, after them, biases go, other than the first's. */
static inline float *subtrees_sums(const struct subtrees *s, int member)
{
    return s->sums + (member - 1) * (s->weights + s->biases);
}

/* Adds the sums of all members to those of the first, dw and db, as the tree over the subtrees has it. */
void subtrees_add(struct cpu_device *cpu, const struct subtrees *subtrees, float *dw, float *db);

#endif
