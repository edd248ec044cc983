/* The driver: the sequence of a step, written once for all strategies. Its interface to classes is in
 * strategy/class.h.
 */
#ifndef TR_STRATEGY_DRIVER_H
#define TR_STRATEGY_DRIVER_H

#include "strategy/class.h"

/* The outcome of a replica in a round, for all ranks; where all train one replica, the rank's outcome. */
struct tr_report {
    double loss, correct; /* sums over the examples learned */
    double norms;         /* sum over the steps measured */
    int64_t examples;     /* learned */
    int64_t measured;     /* steps whose gradient norm is known */
    int64_t skipped;      /* steps that were skipped since they were not finite */
    int64_t bad_step;     /* step at which the replica ended, -1: none */
    int32_t bad_loss;     /* the reason: a loss that is not finite, otherwise a parameter */
    int32_t request;      /* of the rank */
};

/* The result of a round, known to all ranks; its size does not depend on the number of replicas. */
struct tr_digest {
    struct tr_report all; /* sums; where a replica ended, its step and reason */
    int64_t replica;      /* the first replica that ended; -1: none */
};

/* Whether all ranks train one replica. */
static inline bool tr_driver_is_together(const tr_strategy *strategy)
{
    return strategy->class->gradient != NULL;
}

/* The first report of a rank; for `size`: the number of all. Where all train one replica, there is one
   report, which the ranks combine. */
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

/* Initializes the reports of this rank's replicas for a round; `request`: of the rank. */
void tr_driver_begin_reports(tr_strategy *strategy, int32_t request);
/* Adds the outcome of a step of `examples` examples to the report of a replica. */
void tr_driver_tell(const tr_strategy *strategy, const struct tr_verdict *verdict, bool poisoned,
                    int64_t step, int64_t examples, struct tr_report *report);
/* All ranks exchange their reports, and get the digest. Collective. */
tr_status tr_driver_exchange(tr_strategy *strategy);
/* Adds up reports, in their order. */
void tr_driver_digest(const struct tr_report *reports, int64_t count, struct tr_digest *out);
/* The figures of a round of `steps` steps that begins at `step`, from the digest. */
void tr_driver_sum_up(const tr_strategy *strategy, int64_t step, int64_t steps,
                      struct tr_step_figures *figures);

/* ---- driver_alone.c ---- */

/* Resources of steps that this process decides alone, on a device with separate memory. TR_ENOMEM; release
   with tr_driver_release_pending(), also after a failure. */
tr_status tr_driver_make_pending(tr_strategy *strategy);
void tr_driver_release_pending(tr_strategy *strategy);
/* Whether the device can run a whole step without the host, which then waits once, not for every decision.
   Observers of updates do not see updates that are held. */
bool tr_driver_goes_alone(const tr_strategy *strategy, const struct tr_replica *replica);
/* Runs such a step, before `end`; the next one may be under way afterwards (tr_strategy_has_begun()). */
tr_status tr_driver_learn_alone(tr_strategy *strategy, const struct tr_replica *replica, int64_t step,
                                int64_t end, struct tr_report *report);

#endif
