/* Separate replicas, for classes without `gradient`: a fixed number of them, of which each rank has a
 * contiguous range, so that the arithmetic, and the hash, depend on the number of replicas and not on that
 * of ranks.
 *
 * Replica r of R takes the microbatches tr_cut(microbatches, R, r) and following of each step as a
 * separate batch: its gradient is the mean over its own examples.
 */
#ifndef TR_STRATEGY_REPLICAS_H
#define TR_STRATEGY_REPLICAS_H

#include "strategy/class.h"

#include <stddef.h>

/* The head of these classes' structures, and of their options: their first row is TR_REPLICAS_OPTION. */
struct tr_replicas_options {
    int32_t replicas;
};
#define TR_REPLICAS_OPTION                                                                                   \
    {                                                                                                        \
        .key = "replicas", .type = TR_OPTION_INT32,                                                          \
        .offset = offsetof(struct tr_replicas_options, replicas), .fallback = "2", .least = 1,               \
        .most = TR_STRATEGY_RANKS,                                                                           \
        .help = "replicas of the network, at most as many as microbatches; up to as many ranks share them. " \
                "The hash depends on the replicas, not on the ranks"                                         \
    }

/* Slots of a class. `check`: TR_EINVAL where so many replicas, or ranks, are not possible. Local. */
tr_status tr_replicas_check(const struct tr_job *job, const void *options, int ranks);
/* `create`: the replicas of this rank, with their variables, and what averages take. Collective. */
tr_status tr_replicas_create(tr_strategy *strategy);
/* `begin`: their gradients. Local. */
tr_status tr_replicas_begin(tr_strategy *strategy);
/* `destroy`. Local. */
void tr_replicas_destroy(tr_strategy *strategy);

/* Copies the first replica to all others; called by tr_strategy_connect(). Local. */
tr_status tr_replicas_copy(tr_strategy *strategy);
/* For `create` of a class whose replicas stay separate: the state of the run gets separate variables, and
   the arenas of all replicas become the strategy's, which the class names by TR_REPLICAS_ARENAS. Local.
   TR_ENOMEM. */
tr_status tr_replicas_keep_apart(tr_strategy *strategy);
#define TR_REPLICAS_ARENAS "replica#.parameters", "replica#.m", "replica#.v", "replica#.vmax", "replica#.ema"
/* Narrows the floats [*begin, *end) to those of parameter `index`; false if none is left, or if the
   parameter is not learned: running statistics. */
bool tr_replicas_narrow(const tr_strategy *strategy, int index, int64_t *begin, int64_t *end);
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

/* The sums and means of the replicas. Where a replica is determines which rank adds what, never the sums. */
struct tr_average {
    tr_window *node_window, *mean_window; /* NULL: a single process, or ranks do not share memory */
    /* Of the holder: [slots][stride], sums of the replicas of this rank, node j of the tree in slot j;
       slot 0 is the sum of all, in this rank's shard, when a mean is changed. */
    struct tr_staging nodes;
    struct tr_staging mean; /* [stride]: of all replicas */
    int64_t stride;
    int64_t *shard, *shard_bytes; /* [size + 1]: floats and bytes of an arena that each rank sums up */
    tr_reduction *reduction;      /* NULL: a single process */
};

/* Makes it; the replicas must exist. Release with tr_average_destroy(), also after a failure; `average`
   must be zeroed before. Its memory is added to the strategy's. Collective. */
tr_status tr_average_create(tr_strategy *strategy, struct tr_average *average);
void tr_average_destroy(struct tr_average *average);
/* A class's changes to setting all replicas of all ranks to the mean. */
struct tr_averaging {
    /* Changes this rank's shard in `mean`, which no rank reads yet. NULL: no change. */
    tr_status (*change)(tr_strategy *strategy, enum tr_arena arena);
    /* Called with the changed mean, complete on this rank, instead of copying it to the replicas. */
    tr_status (*take)(tr_strategy *strategy, enum tr_arena arena);
};
/* The mean over all replicas of those of `arenas`, bits 1 << enum tr_arena, that the optimizer keeps, one
   after another. `how` may be NULL. Collective. */
tr_status tr_average_all(tr_strategy *strategy, struct tr_average *average, unsigned arenas,
                         const struct tr_averaging *how);
#define TR_AVERAGE_STATE ((1u << TR_ARENAS) - 1) /* all */
/* Copies the mean, except frozen parameters, to an arena. */
tr_status tr_average_give(tr_strategy *strategy, const struct tr_average *average, float *to);

/* The head of these classes' structures. */
struct tr_replicas {
    struct tr_strategy head;
    struct tr_average average;
};

/* Copies `count` floats on the strategy's holder. */
tr_status tr_replicas_move(tr_strategy *strategy, int64_t count, const float *from, float *to);

#endif
