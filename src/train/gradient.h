/* Gradients of a step on this process: its microbatches in passes, combined in the fixed tree.
 *
 * The result is that of one pass over all microbatches, whatever the size of a pass.
 */
#ifndef TR_TRAIN_GRADIENT_H
#define TR_TRAIN_GRADIENT_H

#include "train/feed.h"
#include "train/job.h"
#include "train/variables.h"

typedef struct tr_gradient tr_gradient;

/* The figures of a step. */
struct tr_step_figures {
    int64_t examples; /* of the global batch */
    float loss;       /* sum over the examples */
    float correct;    /* number of examples, classification only */
};

/* The memory of a step: what a pass is made for, and the arenas in which gradients of passes wait in the
 * tree. */
struct tr_gradient_plan {
    int64_t per_pass; /* microbatches computed at a time */
    struct tr_pass_limits limits;
    int slots;
    int64_t stride; /* floats of a slot: an arena and the sums */
};

/* Plans steps of at most `rows` examples with `tokens` tokens in all (0 without sequences). */
void tr_gradient_plan(const struct tr_job *job, int64_t rows, int64_t tokens, struct tr_gradient_plan *plan);

/* Makes passes, loader and gradient memory for the training data of the job, whose set must be open. All
   borrowed for the life of the gradient. Returned, destroy with tr_gradient_destroy(). */
tr_status tr_gradient_create(tr_device *device, const struct tr_job *job, tr_variables *variables,
                             int64_t end_step, tr_gradient **out);
void tr_gradient_destroy(tr_gradient **gradient);

/* Computes the gradient of a step with the present parameters and waits. tr_variables_begin_step() has been
 * called. */
tr_status tr_gradient_step(tr_gradient *gradient, int64_t step, struct tr_step_figures *figures);
/* The gradient of the last step, an arena in device memory. */
const float *tr_gradient_arena(const tr_gradient *gradient);
/* Finds the first tensor of the last step's forward pass that is not finite: runs it again with the present
   parameters. Writes "parameter conv1.weights" or "output of layer dense2" to `name`, "loss" if all of these
   are finite. */
tr_status tr_gradient_blame(tr_gradient *gradient, int64_t step, char *name, size_t size);

int64_t tr_gradient_steps_per_epoch(const tr_gradient *gradient);
/* Bytes of device memory. */
size_t tr_gradient_memory(const tr_gradient *gradient);

#endif
