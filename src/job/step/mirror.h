/* How a device computes with variables that another device holds: for example parameters on the processor,
 * and computation on an accelerator.
 *
 * Where both have host memory, it uses the variables in place. Elsewhere it has a copy of the parameters
 * and of the step's scalars, renewed before each step, and gradients are copied back.
 */
#ifndef TR_JOB_MIRROR_H
#define TR_JOB_MIRROR_H

#include "job/step/variables.h"

typedef struct tr_mirror tr_mirror;

/* For `reader`; both are borrowed for the life of the mirror. Returned, destroy with tr_mirror_destroy(). */
tr_status tr_mirror_create(tr_variables *variables, tr_device *reader, tr_mirror **out);
/* Accepts NULL, nulls the handle. */
void tr_mirror_destroy(tr_mirror **mirror);

/* Updates the reader's copy: after updates, and once the step's scalars are set. `arena` is used as the
   parameters: themselves or their averages. Where something is copied, waits for the holder; the copy to
   the reader is enqueued. */
tr_status tr_mirror_renew(tr_mirror *mirror, enum tr_arena arena);
/* The parameters as last renewed, and the scalars, in memory of the reader. */
const float *tr_mirror_parameters(const tr_mirror *mirror);
struct tr_step_scalars *tr_mirror_scalars(const tr_mirror *mirror);
/* The floats [0, count) of a gradient in memory of the reader, where the holder of the variables can read
   them; valid until the next call. Where something is copied, waits for the reader; the copy to the holder
   is enqueued. */
tr_status tr_mirror_gradient(tr_mirror *mirror, const float *gradient, int64_t count, const float **out);

/* Whether one device can use the memory of the other, without copies. */
bool tr_mirror_is_direct(const tr_device *reader, const tr_device *holder);

#endif
