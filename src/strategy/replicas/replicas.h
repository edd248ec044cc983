/* Replicas that are trained apart, for classes without `gradient`: a fixed number of them, of which each rank
 * has a contiguous range, so that the arithmetic, and the hash, depend on the number of replicas and not on
 * that of the ranks.
 *
 * Replica r of R takes the microbatches tr_cut(microbatches, R, r) and following of each step as a batch of
 * its own: its gradient is the mean over its own examples.
 */
#ifndef TR_STRATEGY_REPLICAS_H
#define TR_STRATEGY_REPLICAS_H

#include "strategy/class.h"

#include <stddef.h>

/* The row of a class's options for int32_t `replicas` of STRUCT. */
#define TR_REPLICAS_OPTION(STRUCT)                                                                           \
    {                                                                                                        \
        .key = "replicas", .type = TR_OPTION_INT32, .offset = offsetof(STRUCT, replicas), .fallback = "2",   \
        .least = 1, .most = TR_STRATEGY_RANKS,                                                               \
        .help =                                                                                              \
            "replicas of the network, at most as many as microbatches; ranks, at most as many, share them "  \
            "out; the hash depends on the replicas and not on the ranks"                                     \
    }

/* For a class's `check`. TR_EINVAL where so many replicas, or ranks, cannot share the job. Local. */
tr_status tr_replicas_check(const struct tr_job *job, int replicas, int ranks);
/* For its `create`: the replicas of this rank, with their variables. Local. */
tr_status tr_replicas_create(tr_strategy *strategy, int replicas);
/* For its `begin`: their gradients. Local. */
tr_status tr_replicas_begin(tr_strategy *strategy);
/* All others become copies of the first; called by tr_strategy_meet(). Local. */
tr_status tr_replicas_copy(tr_strategy *strategy);
/* The number of all, and the first one of this rank. */
static inline int64_t tr_replicas_total(const tr_strategy *strategy)
{
    return strategy->replica_bound[strategy->size];
}
static inline int64_t tr_replicas_first(const tr_strategy *strategy)
{
    return strategy->replica_bound[strategy->rank];
}

/* ---- averages over all replicas (average.c) ---- */

/* Where the replicas' numbers meet. Which replica is where decides who adds what, never the sums. */
struct tr_average {
    tr_window *node_window, *mean_window; /* NULL: alone, or ranks do not share memory */
    /* Of the holder: [slots][stride], sums of the replicas that this rank has, node j of the tree in slot j;
       slot 0 is the sum of all after tr_average_sum(), in this rank's share. */
    struct tr_staging nodes;
    struct tr_staging mean; /* [stride]: of all replicas */
    int64_t stride;
    int64_t *share, *share_bytes; /* [size + 1]: floats and bytes of an arena that each rank sums up */
    tr_reduction *reduction;      /* NULL: alone */
};

/* The replicas have been created. What was made is released by tr_average_destroy(), also after a failure;
   `average` is zeroed before. Its memory is added to the strategy's. Collective. */
tr_status tr_average_create(tr_strategy *strategy, struct tr_average *average);
void tr_average_destroy(struct tr_average *average);
/* The arenas that are averaged: all that the optimizer keeps. Sets *arena to the next one behind `last` (the
   first: TR_ARENAS); false at the end. */
bool tr_average_next(const tr_strategy *strategy, enum tr_arena last, enum tr_arena *arena);
/* The mean of an arena over all replicas, in three steps, of which the last gives it to all replicas of all
   ranks; before that a class may change the share in `mean`. Collective. */
tr_status tr_average_sum(tr_strategy *strategy, struct tr_average *average, enum tr_arena arena);
tr_status tr_average_mean(tr_strategy *strategy, struct tr_average *average);
tr_status tr_average_give(tr_strategy *strategy, struct tr_average *average, enum tr_arena arena);
/* All of that for all arenas. */
tr_status tr_average_all(tr_strategy *strategy, struct tr_average *average);

/* Copies `count` floats on the strategy's holder. */
tr_status tr_replicas_move(tr_strategy *strategy, int64_t count, const float *from, float *to);

#endif
