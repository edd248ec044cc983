/* The driver: the sequence of a step, written once for all strategies. What it calls of a class, and what it
 * does for one, is in strategy/class.h. */
#ifndef TR_STRATEGY_DRIVER_H
#define TR_STRATEGY_DRIVER_H

#include "strategy/class.h"

/* The outcome of a replica in a round, for all ranks; where all train one replica, the rank's. */
struct tr_report {
    double loss, correct; /* sums over the examples learned */
    double norms;         /* sum over the steps measured */
    int64_t examples;     /* learned */
    int64_t measured;     /* steps whose gradient's norm is known */
    int64_t skipped;      /* steps that were not applied since they were not finite */
    int64_t bad_step;     /* step at which the replica ended, -1: it did not */
    int32_t bad_loss;     /* the reason: a loss that is not finite, else a parameter */
    int32_t request;      /* of the rank */
};

/* The result of a round, known to all ranks: of constant size, however many replicas there are. */
struct tr_digest {
    struct tr_report all; /* added up; where a replica came to an end, its step and reason */
    int64_t replica;      /* the first that did; -1: none */
};

/* Whether all ranks train one replica. */
static inline bool tr_driver_is_together(const tr_strategy *strategy)
{
    return strategy->class->gradient != NULL;
}

/* The first report of a rank; of `size`: the number of all. Where all train one replica, there is one report,
   which the ranks combine. */
static inline int64_t tr_driver_first_report(const tr_strategy *strategy, int rank)
{
    if (strategy->replica_bound) return strategy->replica_bound[rank];
    return tr_driver_is_together(strategy) ? 0 : rank;
}

/* Memory for reports, once the class's `begin` has been called. Local. TR_ENOMEM. */
tr_status tr_driver_create(tr_strategy *strategy);
void tr_driver_destroy(tr_strategy *strategy);
/* Enqueues this rank's part of the update of a replica. */
tr_status tr_driver_apply(const tr_strategy *strategy, tr_variables *variables, const float *gradient);
/* tr_strategy_step() of a synchronous strategy: a round. */
tr_status tr_driver_round(tr_strategy *strategy, int64_t step, int32_t request,
                          struct tr_step_figures *figures);
/* tr_strategy_locate_nonfinite(); in locate_nonfinite.c. */
tr_status tr_driver_locate_nonfinite(tr_strategy *strategy, int64_t step, char *name, size_t size);

/* ---- reports.c ---- */

/* The reports of this rank's replicas, as a round begins; `request`: of the rank. */
void tr_driver_begin_reports(tr_strategy *strategy, int32_t request);
/* Adds the outcome of a step of `examples` examples to the report of a replica. */
void tr_driver_tell(const tr_strategy *strategy, const struct tr_verdict *verdict, bool poisoned,
                    int64_t step, int64_t examples, struct tr_report *report);
/* All ranks exchange their reports, and have the digest afterwards. Collective. */
tr_status tr_driver_exchange(tr_strategy *strategy);
/* Adds up reports, in their order. */
void tr_driver_digest(const struct tr_report *reports, int64_t count, struct tr_digest *out);
/* The figures of a round of `steps` steps that begins at `step`, of the digest. */
void tr_driver_sum_up(const tr_strategy *strategy, int64_t step, int64_t steps,
                      struct tr_step_figures *figures);

/* ---- driver_alone.c ---- */

/* Resources of steps that this process decides alone, on a device with separate memory. TR_ENOMEM; released
   with tr_driver_release_pending(), also after a failure. */
tr_status tr_driver_make_pending(tr_strategy *strategy);
void tr_driver_release_pending(tr_strategy *strategy);
/* Whether the device can go through a whole step without the host, who waits for it once then, not each time
   that something is to be decided. Observers of updates do not see those that are held. */
bool tr_driver_goes_alone(const tr_strategy *strategy, const struct tr_replica *replica);
/* Such a step, of those that end with `end`; the next one may be under way then (tr_strategy_has_begun()). */
tr_status tr_driver_learn_alone(tr_strategy *strategy, const struct tr_replica *replica, int64_t step,
                                int64_t end, struct tr_report *report);

#endif
