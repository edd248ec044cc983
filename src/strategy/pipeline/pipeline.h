/* The inside of the pipeline strategy, shared by its class (pipeline.c) and the division of the work
 * (grid.c). */
#ifndef TR_STRATEGY_PIPELINE_PIPELINE_H
#define TR_STRATEGY_PIPELINE_PIPELINE_H

#include "strategy/class.h"
#include "strategy/pipeline/cuts.h"
#include "strategy/pipeline/stage.h"

#define PIPELINE_GRAIN 16 /* floats: shares begin on cache lines */

struct pipeline {
    struct tr_strategy head;
    int stages, replicas;
    int *layer;          /* [stages + 1] bounds */
    int64_t *microbatch; /* [replicas + 1] bounds */
    int64_t per_unit;    /* microbatches that flow together */
    struct stage_place place;
    struct stage_plan plan;
    struct stage *stage;
    /* Shares of the arena, [size + 1] bounds in floats and bytes; and those of the replicas of this stage,
       from its first parameter on, [replicas + 1]. */
    int64_t *share, *share_bytes, *part, *part_bytes;
    /* The gradient, addresses for a whole arena, of which this rank's share is right, or the stage's where
       the norm is wanted. Memory that is never touched costs nothing. */
    float *gradient;
    int64_t *square_bytes; /* [size + 1] bounds of the sums of squares that ranks bring to the norm */
    tr_comm *group;        /* the replicas of this stage; NULL: this rank alone */
    tr_window *parameters; /* of the group; NULL: its ranks do not share memory */
    bool splits;           /* the group is a part of its own */
    tr_window *nodes;
    float *own_nodes; /* where the group does not share memory */
    tr_reduction *reduction;
    float *piece; /* [TR_STRATEGY_PIECE] of an arena, comes together here; the chief's */
};

static inline int pipeline_stage_of(const struct pipeline *self, int rank)
{
    return rank / self->replicas;
}

static inline int pipeline_replica_of(const struct pipeline *self, int rank)
{
    return rank % self->replicas;
}

/* Decides which layers, rows and parameters each rank has: layer, place, share and part. Collective; the
   training data are open. */
tr_status pipeline_divide(struct pipeline *self);

/* The slots of the class that bring together what the stages keep (gather.c). */
tr_status pipeline_gather_parameters(tr_strategy *strategy);
tr_status pipeline_gather_averages(tr_strategy *strategy);
void pipeline_release(tr_strategy *strategy);
tr_status pipeline_bring(tr_strategy *strategy, enum tr_arena arena, int64_t begin, int64_t end,
                         const float **values);

#endif
