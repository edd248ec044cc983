/* Gradients of a step on this process: its microbatches in passes, combined in the fixed tree.
 *
 * A process computes a contiguous range of a step's microbatches, which covers some nodes of the tree over
 * all of them (tr_tree_cover()); the whole range is the root. Results equal those of one pass over each
 * node's microbatches, whatever the size of a pass.
 */
#ifndef TR_JOB_GRADIENT_H
#define TR_JOB_GRADIENT_H

#include "base/numbers/tree.h"
#include "job/feed/feed.h"
#include "job/job.h"
#include "job/step/variables.h"

typedef struct tr_gradient tr_gradient;

/* The part of each step that a process computes. */
struct tr_gradient_part {
    int64_t first, end; /* microbatches [first, end) */
    int64_t end_step;   /* steps from this one on are not read ahead */
    /* The part is a separate batch: its gradient is the mean over its examples, added along a separate
       tree (one node); otherwise it is a summand of the mean over the whole batch. */
    bool alone;
    /* [layers], borrowed for making the gradient, or NULL: layers of tr_gradient_leave_apart(), whose
       places take no memory. Only where all microbatches are computed in one pass. */
    const bool *apart;
};

/* The memory of a step: the limits of a pass, and the arenas in which gradients of passes wait in the
 * tree.
 */
struct tr_gradient_plan {
    int64_t per_pass; /* microbatches computed at a time */
    int64_t widest;   /* microbatches of the largest node */
    struct tr_pass_limits limits;
    int nodes;                            /* nodes of the tree that the part covers */
    int64_t bound[2 * TR_TREE_DEPTH + 1]; /* node j is over microbatches [bound[j], bound[j + 1]) */
    int slots;
    int64_t stride; /* floats of a slot: an arena and the sums */
};

/* Plans steps in which the part has at most `rows` examples with `tokens` tokens in all (0 without
 * sequences). */
void tr_gradient_plan(const struct tr_job *job, const struct tr_gradient_part *part, int64_t rows,
                      int64_t tokens, int64_t second, struct tr_gradient_plan *plan);
/* The bytes of all slots. */
size_t tr_gradient_slot_bytes(const struct tr_job *job, const struct tr_gradient_part *part);

/* Makes passes, loader and gradient memory for the training data of the job, whose set must be open.
   `window`, or NULL, is host memory of tr_gradient_slot_bytes() that ranks share, for the results, see
   tr_staging_make(). All except the part is borrowed for the life of the gradient. Returned, destroy with
   tr_gradient_destroy(). */
tr_status tr_gradient_create(tr_device *device, const struct tr_job *job, tr_variables *variables,
                             const struct tr_gradient_part *part, float *window, tr_gradient **out);
void tr_gradient_destroy(tr_gradient **gradient);
/* Replaces tr_gradient_destroy() while messages may be using its memory: stops reading ahead, and leaves
   the rest until the process ends. Accepts NULL, nulls the handle. */
void tr_gradient_leave(tr_gradient **gradient);

/* Computes the nodes of a step with the present parameters and waits. Call tr_variables_begin_step()
   first. *examples is the size of the global batch; for a separate batch its own size. 0: there was
   nothing to compute, and the slots did not change. */
tr_status tr_gradient_step(tr_gradient *gradient, int64_t step, int64_t *examples);
/* The same without waiting: after waiting for the device, the slots are complete, and `sums`, host memory
   or NULL, has the result of tr_gradient_sums(). The batch is borrowed until then. */
tr_status tr_gradient_enqueue(tr_gradient *gradient, int64_t step, float sums[TR_PASS_SUMS],
                              int64_t *examples);
/* Enqueues the batch, forward and loss of a step. It needs only that commands enqueued earlier produce the
   parameters. tr_gradient_enqueue() of this step then continues with backward; of another step it begins
   anew. Call tr_variables_begin_step() first, and only if tr_gradient_may_begin(). */
tr_status tr_gradient_begin(tr_gradient *gradient, int64_t step);
/* Whether a step can be begun: the part is computed in one pass, and borrows nothing of a batch. */
bool tr_gradient_may_begin(const tr_gradient *gradient);
/* Forgets a step that was begun; whether there was one. */
bool tr_gradient_begin_anew(tr_gradient *gradient);
/* Whether nothing of a batch is borrowed, so that the next step can be enqueued meanwhile. */
bool tr_gradient_borrows_nothing(const tr_gradient *gradient);
/* The loss after node 0 of the last step, device memory. */
const float *tr_gradient_loss(const tr_gradient *gradient);
/* The sums of loss and correctness after node 0 of the last step that computed some, host memory
   [TR_PASS_SUMS]. */
const float *tr_gradient_sums(const tr_gradient *gradient);
/* For a separate batch: later steps compute only its microbatches [first, end), as a batch of their own. */
void tr_gradient_narrow(tr_gradient *gradient, int64_t first, int64_t end);
/* The nodes of the last step: node j is an arena followed by TR_PASS_SUMS floats, at slots + j * stride.
 * Device memory. */
float *tr_gradient_slots(const tr_gradient *gradient);
/* The same with a host side, to move gradients between ranks; borrowed. TR_ENOMEM. */
tr_status tr_gradient_open(tr_gradient *gradient, const struct tr_staging **out);
/* The floats [0, count) of node 0 where the device that holds the variables can read them; see
 * tr_mirror_gradient().
 */
tr_status tr_gradient_deliver(tr_gradient *gradient, int64_t count, const float **out);
int64_t tr_gradient_stride(const tr_gradient *gradient);
/* Called while backward of a step's last pass proceeds through the layers: from float `from` of their
   arenas on, all nodes and the sums after them are final, and the parameters are not read again. `from`
   falls to 0 and may repeat. The work is only enqueued: tr_device_wait() ensures that it is complete. A
   failure fails the step. */
typedef tr_status (*tr_gradient_listener)(void *user, int64_t from);
/* Sets or, with NULL, removes the listener of later steps; it is not called for steps without examples. */
void tr_gradient_listen(tr_gradient *gradient, tr_gradient_listener listener, void *user);
/* Sets the layers whose first parameter's gradient is computed elsewhere, see tr_pass_leave_apart(); nodes
   have arbitrary values there. */
void tr_gradient_leave_apart(tr_gradient *gradient, const bool *apart, tr_pass_taker taker, void *user);
/* Sets or, with NULL, removes an observer of the passes of coming steps. */
void tr_gradient_observe(tr_gradient *gradient, tr_pass_observer observer, void *user);
/* Finds the first tensor of the last step's forward pass that is not finite: runs it again with the
   present parameters. Writes "parameter conv1.weights" or "output of layer dense2" to `name`, "loss" if
   all of these are finite. */
tr_status tr_gradient_locate_nonfinite(tr_gradient *gradient, int64_t step, char *name, size_t size);

/* Bytes of device memory. */
size_t tr_gradient_memory(const tr_gradient *gradient);

#endif
