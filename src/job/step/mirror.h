/* How a device computes with variables that another one holds: parameters on the processor, computing on an
 * accelerator, say.
 *
 * Where both have host memory, it computes with the variables where they are. Elsewhere it has a copy of the
 * parameters and of the scalars of the step, renewed before each step, and gradients are copied back.
 */
#ifndef TR_JOB_MIRROR_H
#define TR_JOB_MIRROR_H

#include "job/step/variables.h"

typedef struct tr_mirror tr_mirror;

/* For `reader`; both are borrowed for the life of the mirror. Returned, destroy with tr_mirror_destroy(). */
tr_status tr_mirror_create(tr_variables *variables, tr_device *reader, tr_mirror **out);
/* Accepts NULL, nulls the handle. */
void tr_mirror_destroy(tr_mirror **mirror);

/* Brings what the reader sees up to date: after updates, and once the scalars of the step are set. `arena` is
   what it takes for the parameters: themselves or their averages. Where something is copied, waits for the
   holder; the way to the reader is enqueued. */
tr_status tr_mirror_renew(tr_mirror *mirror, enum tr_arena arena);
/* The parameters as last renewed, and the scalars, in memory of the reader. */
const float *tr_mirror_parameters(const tr_mirror *mirror);
struct tr_step_scalars *tr_mirror_scalars(const tr_mirror *mirror);
/* The floats [0, count) of a gradient in memory of the reader, where the holder of the variables can read
   them; valid until the next call. Where something is copied, waits for the reader; the way to the holder is
   enqueued. */
tr_status tr_mirror_gradient(tr_mirror *mirror, const float *gradient, int64_t count, const float **out);

/* Whether one device can compute with what another holds, without copies. */
bool tr_mirror_is_direct(const tr_device *reader, const tr_device *holder);

#endif
