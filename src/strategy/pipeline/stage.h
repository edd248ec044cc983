/* A stage of a pipeline: some layers of the network, for a contiguous range of the microbatches of each step.
 *
 * The microbatches flow through in units (a microbatch, or as many as train.pass says) by the "one
 * forward, one backward" schedule (Narayanan et al. 2019, 2021): a stage runs forward until a certain
 * number of units, its depth, is in flight, then alternates between backward of the oldest and forward of
 * the next. So it needs memory for only that many units, however many microbatches a step has:
 *
 *     stage 0   F0 F1 F2 F3 F4 B0 .. B1 .. B2 .. B3 .. B4
 *     stage 1      F0 F1 F2 B0 F3 B1 F4 B2 .. B3 .. B4
 *     stage 2         F0 B0 F1 B1 F2 B2 F3 B3 F4 B4
 *
 * The depth of the last stage is one; that of each other stage is two more than the next one's: one for a
 * unit in that stage, and one for a unit under way, so that no stage waits for a message under way. For
 * the same reason an arriving unit has a separate flight, while the stage computes.
 *
 * Activations go to the next stage and their gradients to the one before, as messages between the ranks
 * that have the same microbatches. Weights that layers of two stages share go to the stage that borrows
 * them at the beginning of each step, and its contribution to their gradient comes back with each unit,
 * microbatch by microbatch, so that leaves are computed as in one process. Gradients of parameters are
 * computed for each unit and combined in the fixed tree as units come back, in ascending order.
 */
#ifndef TR_STRATEGY_PIPELINE_STAGE_H
#define TR_STRATEGY_PIPELINE_STAGE_H

#include "strategy/class.h"

/* Messages between ranks of a pipeline. */
enum stage_tag {
    STAGE_TAG_ACTIVATIONS = 1,
    STAGE_TAG_GRADIENTS,
    STAGE_TAG_GATHER,
    STAGE_TAG_SHARED,
    STAGE_TAG_LEAVES
};

/* A cell of the grid of stages and replicas. */
struct stage_cell {
    int stage, stages;
    int first_layer, end_layer;
    int64_t first, end; /* number of microbatches */
    int64_t per_unit;   /* of these in a unit, at least 1 */
    int previous, next; /* ranks of the neighbouring stages; unused at the ends */
    const int *layer;   /* [stages + 1] bounds of all stages, borrowed */
    int rank, replicas; /* this one; how many replicas of each stage there are */
};

/* The memory of a stage. */
struct stage_plan {
    int64_t arena_begin, arena_end;       /* floats of the arena: its parameters */
    int64_t stride;                       /* floats of a slot: these and the sums */
    int nodes;                            /* of the tree, that the range covers */
    int64_t bound[2 * TR_TREE_DEPTH + 1]; /* node j is over microbatches [bound[j], bound[j + 1]) */
    int64_t per_unit;                     /* microbatches of a unit */
    int64_t units;
    int depth;   /* units between forward and backward */
    int flights; /* these, and the one that is arriving */
    int extra;   /* slots in addition to those of the nodes */
    bool early;  /* forward writes into gradients: statistics */
};

void stage_plan(const struct tr_job *job, const struct stage_cell *cell, struct stage_plan *plan);

struct stage;

/* `results` is zeroed device memory for the nodes, [plan.nodes][plan.stride]. `sums`, or NULL, is host
   memory of TR_PASS_SUMS floats to which the last stage, which then has one node, copies the sums after
   it. All except the cell is borrowed for the life of the stage. The training data must be open. Returned,
   destroy with stage_destroy(). */
tr_status stage_create(tr_strategy *strategy, const struct stage_cell *cell, float *results, float *sums,
                       struct stage **out);
/* Accepts NULL, nulls the handle. */
void stage_destroy(struct stage **stage);
/* Stops reading ahead; the stage runs no more steps. */
void stage_read_no_more(struct stage *stage);

/* Computes the gradients of a step with the present parameters. Call tr_variables_begin_step() first.
   After waiting for the device, node j is at results + j * stride: the arena of the stage's parameters
   and, at the last stage, TR_PASS_SUMS floats after it, which are at `sums` on return. The batch is
   borrowed until the device was waited for. *examples is the size of the global batch. All stages step
   together. */
tr_status stage_step(struct stage *stage, int64_t step, int64_t *examples);
/* Bytes that a stage takes on the device that computes, including `results`, and on the host. */
struct stage_memory {
    size_t device, host;
};
struct stage_memory stage_memory(const struct stage *stage);

#endif
