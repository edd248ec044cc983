/* A server's shard of the parameters and of the optimizer's state.
 *
 * Gradients are arenas of which only the shard is read. Where a worker gets the parameters of an update
 * immediately, both are done in one pass over the shard, so that updated parameters are copied while they
 * are in the cache.
 */
#ifndef TR_STRATEGY_PARAMETER_SERVER_STORE_H
#define TR_STRATEGY_PARAMETER_SERVER_STORE_H

#include "base/numbers/tree.h"
#include "job/job.h"
#include "job/step/variables.h"

typedef struct ps_store ps_store;

/* Where the shard of server `server` of `servers` begins in an arena, on a cache line. */
static inline int64_t ps_shard_begin(const struct tr_job *job, int servers, int server)
{
    const int64_t grain = 16;
    return tr_variables_cut(job->model, &job->optimizer,
                            tr_cut(job->model->arena_floats / grain, servers, server) * grain);
}

/* The floats [begin, end) of the arenas of `variables`; all borrowed for the life of the store. `sums`: there
   is a sum, see ps_store_add(). Returned, destroy with ps_store_destroy(). TR_ENOMEM. */
tr_status ps_store_create(const struct tr_job *job, tr_variables *variables, int64_t begin, int64_t end,
                          bool sums, ps_store **out);
/* Accepts NULL, nulls the handle. */
void ps_store_destroy(ps_store **store);

/* Sets the sum to factor * gradient if `first`, else adds that to it. `gradient`, host memory, may be
   changed, and is free afterwards. */
tr_status ps_store_add(ps_store *store, float *gradient, float factor, bool first);
/* Chooses what is measured or applied next: a gradient, host memory, borrowed until then; or the sum,
   scaled by `factor`. */
tr_status ps_store_choose(ps_store *store, float *gradient);
tr_status ps_store_choose_sum(ps_store *store, float factor);
/* The sum of squares of the chosen gradient's shard, without parameters that are not optimized. */
tr_status ps_store_squares(ps_store *store, double *out);
/* Applies the chosen gradient as update number `count` (from 0); `clip` is the factor that clips by norm.
   The shard of the new parameters is copied into the arena `give`, host memory (NULL: none). *poisoned:
   one is not finite. */
tr_status ps_store_update(ps_store *store, int64_t count, float clip, float *give, bool *poisoned);
/* Copies the shard of an arena to `to`, host memory of end - begin floats. */
tr_status ps_store_copy(const ps_store *store, enum tr_arena arena, float *to);

#endif
