/* Digests of a run: the numbers of each recorded step, as a few bytes for each tensor, so that two runs
 * that should be equal can be compared, and the first difference found (report/diff.c).
 *
 * A digest is the sum, modulo 2^64, of a mix of the place and the bits of every element. So it does not
 * depend on which rank computed which part: ranks add theirs. It is recorded for the outputs of every
 * layer for every microbatch, the mean gradient, and the parameters after the step.
 */
#ifndef TR_TRAIN_DIGESTS_H
#define TR_TRAIN_DIGESTS_H

#include "strategy/strategy.h"

/* The file in the directory of a run: an object a line. */
#define TR_DIGESTS_FILE "digests.jsonl"

typedef struct tr_digests tr_digests;

/* Records every `every` steps, the first one of a run included; the root writes to `directory`, after its
   present contents. All borrowed for the life of the digests; `comm` may be NULL. The job computes a
   microbatch at a time from then on. Collective. Returned, destroy with tr_digests_destroy(). TR_EINVAL
   for an asynchronous strategy, whose runs are not reproducible; TR_EIO, TR_ENOMEM. */
tr_status tr_digests_create(struct tr_job *job, tr_device *device, tr_comm *comm, tr_strategy *strategy,
                            const char *directory, int64_t every, tr_digests **out);
/* Accepts NULL, nulls the handle; before the strategy. */
void tr_digests_destroy(tr_digests **digests);

/* The run starts after `step` steps: writes the digests of the parameters. Local. */
tr_status tr_digests_start(tr_digests *digests, int64_t step);
/* Called before and after the step after `step` steps; does nothing for steps that are not recorded. The
   second is collective. */
void tr_digests_begin(tr_digests *digests, int64_t step);
tr_status tr_digests_end(tr_digests *digests, const struct tr_step_figures *figures);

/* The digest of elements [first, first + count) of a tensor. */
uint64_t tr_digest_of(const float *values, int64_t first, int64_t count);

#endif
