/* A server's share of the parameters and of what the optimizer keeps of them.
 *
 * Gradients are arenas of which only the share is read. Where parameters are given to a worker at the moment
 * of an update, both go over the share in one pass, so that what was updated is copied while it is in the
 * cache.
 */
#ifndef TR_STRATEGY_PARAMETER_SERVER_STORE_H
#define TR_STRATEGY_PARAMETER_SERVER_STORE_H

#include "job/job.h"
#include "job/variables.h"

typedef struct ps_store ps_store;

/* The floats [begin, end) of the arenas of `variables`; all borrowed for the life of the store. `sums`: there
   is a sum, see ps_store_add(). Returned, destroy with ps_store_destroy(). TR_ENOMEM, TR_EUNSUPPORTED for
   devices whose memory the host does not see. */
tr_status ps_store_create(tr_device *device, const struct tr_job *job, tr_variables *variables, int64_t begin,
                          int64_t end, bool sums, ps_store **out);
/* Accepts NULL, nulls the handle. */
void ps_store_destroy(ps_store **store);

/* The sum becomes factor * gradient if `first`, else that is added to it. May change the gradient. */
tr_status ps_store_add(ps_store *store, float *gradient, float factor, bool first);
/* The sum is scaled by `factor`; *gradient is where it is, borrowed for the life of the store. */
tr_status ps_store_finish_sum(ps_store *store, float factor, float **gradient);
/* The sum of squares of the share, without parameters that are not optimized. */
double ps_store_squares(const ps_store *store, const float *gradient);
/* Update number `count` (from 0); `clip` is the factor that clips by norm. The share of the new parameters is
   copied into the arena `give` (NULL: nowhere). *poisoned: one is not finite. */
tr_status ps_store_update(ps_store *store, int64_t count, const float *gradient, float clip, float *give,
                          bool *poisoned);
/* Copies the share of an arena into another one. */
void ps_store_copy(const ps_store *store, enum tr_arena arena, float *to);

#endif
