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
    struct stage_place place;
    struct stage_plan plan;
    struct stage *stage;
    /* Shares of the arena, [size + 1] bounds in floats and bytes; and those of the replicas of this stage,
       from its first parameter on, [replicas + 1]. */
    int64_t *share, *share_bytes, *part, *part_bytes;
    /* The gradient as a whole arena, of which this rank's share is right, or all where its norm is wanted.
       Memory that is never touched costs nothing. */
    float *gradient;
    tr_window *parameters; /* NULL: ranks do not share memory */
    tr_comm *group;        /* the replicas of this stage; NULL: this rank alone */
    bool splits;           /* the group is a part of its own */
    tr_window *nodes;
    float *own_nodes; /* where the group does not share memory */
    tr_reduction *reduction;
};

static inline int pipeline_stage_of(const struct pipeline *self, int rank)
{
    return rank / self->replicas;
}

static inline int pipeline_replica_of(const struct pipeline *self, int rank)
{
    return rank % self->replicas;
}

/* Decides which layers, rows and parameters each rank has: layer, place, share and part. Collective; before
   step `step`, with its parameters there. */
tr_status pipeline_divide(struct pipeline *self, int64_t step);

#endif
