/* Strategies: how ranks share the work of a step and come to the same parameters.
 *
 * A strategy owns the variables and gradients of its rank. With no communicator it is a single process. All
 * functions but destroy are collective: every rank calls them in the same order with arguments that agree.
 */
#ifndef TR_STRATEGY_STRATEGY_H
#define TR_STRATEGY_STRATEGY_H

#include "comm/comm.h"
#include "job/gradient.h"
#include "job/job.h"
#include "job/variables.h"

/* The figures of a step, the same on all ranks. */
struct tr_step_figures {
    int64_t examples; /* of the global batch */
    float loss;       /* sum over the examples */
    float correct;    /* number of examples, classification only */
    float norm;       /* of the gradient, where it was measured; else NaN */
    bool skipped;     /* the step was not applied, since it was not finite */
    bool bad_loss;    /* the loss is not finite, and nothing was applied */
    bool poisoned;    /* a parameter is not finite after the step */
    int32_t wish;     /* the bitwise or of all ranks' wishes */
};

typedef struct tr_strategy tr_strategy;

#define TR_STRATEGY_RANKS 1024

/* Memory for a rank's part of the job. The training data are not needed yet. `comm` may be NULL; all borrowed
   for the life of the strategy. Returned, destroy with tr_strategy_destroy(). TR_EINVAL when there are more
   ranks than microbatches or than TR_STRATEGY_RANKS. */
tr_status tr_strategy_create(tr_device *device, const struct tr_job *job, tr_comm *comm, tr_strategy **out);
/* Accepts NULL, nulls the handle. Local; before the communicator. */
void tr_strategy_destroy(tr_strategy **strategy);
/* Makes what steps need, once the training data are open. */
tr_status tr_strategy_begin(tr_strategy *strategy);

struct tr_gradient_part tr_strategy_part(const tr_strategy *strategy);
tr_variables *tr_strategy_variables(const tr_strategy *strategy);
tr_gradient *tr_strategy_gradient(const tr_strategy *strategy); /* NULL before tr_strategy_begin() */

/* Computes and applies a step. `wish` is handed to all ranks in figures->wish: a rank asks for something that
 * all must do together. */
tr_status tr_strategy_step(tr_strategy *strategy, int64_t step, int32_t wish,
                           struct tr_step_figures *figures);
/* Brings what the optimizer keeps, which is spread over the ranks, together on every rank: before a
 * checkpoint or an evaluation. */
tr_status tr_strategy_gather(tr_strategy *strategy);
/* All ranks are here; after loading or initializing. */
tr_status tr_strategy_meet(tr_strategy *strategy);
/* The chief's bytes come to all ranks. */
tr_status tr_strategy_share(tr_strategy *strategy, void *data, size_t bytes);

static inline bool tr_strategy_is_chief(const tr_comm *comm)
{
    return !comm || tr_comm_rank(comm) == 0;
}

#endif
