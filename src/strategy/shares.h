/* How the microbatches of a step are shared among the workers of a strategy in which all of them compute some
 * of each step: equally, by speeds that are given, or by speeds that are measured while the run goes on.
 *
 * The tree over the microbatches stays; only who computes which of them changes, so no bit depends on it. A
 * worker has a contiguous range, at least one microbatch.
 *
 * Measured speeds: every worker takes the time that it computes for in each step with a whole batch, but the
 * first. After the steps 4, 16 and 64 of a run, and after every 256th, the ranks tell each other the median
 * since the last time, and all cut the microbatches by the same numbers: so they agree. The cut changes only
 * where the slowest worker would then be done a tenth sooner.
 */
#ifndef TR_STRATEGY_SHARES_H
#define TR_STRATEGY_SHARES_H

#include "trireme/status.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct tr_strategy tr_strategy;
struct tr_step_figures;

#define TR_SHARES_SAMPLES 64

/* All zeros: equal ones. */
struct tr_shares {
    int workers;
    double *speed;   /* [workers] in any unit; NULL: all are equal */
    int64_t *bound;  /* [ranks + 1] in use: rank r computes microbatches [bound[r], bound[r + 1]) */
    char *text;      /* describes it; NULL: the shares are equal */
    bool measures;   /* speeds are measured */
    int64_t steps;   /* of this run */
    double computed; /* seconds up to the last step */
    double *seconds; /* [ranks] for a microbatch; 0: not known */
    int64_t samples; /* since the ranks last told each other */
    double sample[TR_SHARES_SAMPLES]; /* seconds for a microbatch, in the last ones */
};

/* TR_EINVAL where a step has fewer microbatches than those who are to compute one at least: "ranks". */
tr_status tr_shares_suffice(int64_t microbatches, int parts, const char *whose);

/* Reads what the settings say ("equal", "auto", or a speed for each worker, "3,1,1"; NULL: equal) and cuts
   the microbatches, which are no fewer than workers. Once the class, its traits and the number of ranks are
   known. TR_EINVAL; TR_EUNSUPPORTED where the strategy has nothing to share so; TR_ENOMEM. */
tr_status tr_shares_create(tr_strategy *strategy);
void tr_shares_destroy(tr_strategy *strategy);
/* A step has ended well: takes its time and, where that is due, has the class share microbatches out anew and
   says so in the figures. Of ranks that step together. Collective. */
tr_status tr_shares_end_step(tr_strategy *strategy, struct tr_step_figures *figures);

#endif
