/* How the microbatches of a step are divided among workers, in strategies in which each worker computes
 * some of each step: equally, by given speeds, or by speeds measured during the run.
 *
 * The tree over the microbatches does not change; only the assignment to workers does, so no bit depends
 * on it. A worker has a contiguous range, at least one microbatch.
 *
 * Measured speeds: every worker measures its time of computation in each step with a whole batch, except
 * the first. After steps 4, 16 and 64 of a run, and after every 256th, the ranks exchange the medians
 * since the last time, and all cut the microbatches by the same numbers. The cut changes only where the
 * slowest worker would then finish a tenth sooner.
 */
#ifndef TR_STRATEGY_SHARES_H
#define TR_STRATEGY_SHARES_H

#include "trireme/status.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct tr_strategy tr_strategy;
struct tr_step_figures;

#define TR_SHARES_SAMPLES 64

/* All zeros: equal shares. */
struct tr_shares {
    int workers;
    double *speed;   /* [workers] in any unit; NULL: all are equal */
    int64_t *bound;  /* [ranks + 1] in use: rank r computes microbatches [bound[r], bound[r + 1]) */
    char *text;      /* describes the shares; NULL: they are equal */
    bool measures;   /* speeds are measured */
    int64_t steps;   /* of this run */
    double computed; /* seconds up to the last step */
    double *seconds; /* [ranks] for a microbatch; 0: not known */
    int64_t samples; /* since the last exchange */
    double sample[TR_SHARES_SAMPLES]; /* seconds for a microbatch, in the last ones */
};

/* TR_EINVAL where a step has fewer microbatches than ranks that must compute at least one: "ranks". */
tr_status tr_shares_suffice(int64_t microbatches, int parts, const char *whose);

/* Reads the setting ("equal", "auto", or a speed for each worker, "3,1,1"; NULL: equal) and cuts the
   microbatches, of which there are at least as many as workers. Call it once the class, its traits and the
   number of ranks are known. TR_EINVAL; TR_EUNSUPPORTED where the strategy cannot divide microbatches in
   this way; TR_ENOMEM. */
tr_status tr_shares_create(tr_strategy *strategy);
void tr_shares_destroy(tr_strategy *strategy);
/* A step has succeeded: measures it and, when due, makes the class divide microbatches anew and notes this
   in the figures. For ranks that step together. Collective. */
tr_status tr_shares_end_step(tr_strategy *strategy, struct tr_step_figures *figures);

#endif
