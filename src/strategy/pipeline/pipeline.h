/* The structure of the pipeline strategy, shared by its class (pipeline.c) and the division of the work
 * (grid.c).
 */
#ifndef TR_STRATEGY_PIPELINE_PIPELINE_H
#define TR_STRATEGY_PIPELINE_PIPELINE_H

#include "strategy/class.h"
#include "strategy/pipeline/cuts.h"
#include "strategy/pipeline/stage.h"

#define PIPELINE_GRAIN 16 /* floats: shards begin on cache lines */

struct pipeline {
    struct tr_strategy head;
    int stages, replicas;
    int *layer;          /* [stages + 1] bounds */
    int64_t *microbatch; /* [replicas + 1] bounds */
    int64_t per_unit;    /* microbatches that flow together */
    struct stage_cell cell;
    struct stage_plan plan;
    struct stage *stage;
    /* Ranks' parts of the arena, [size + 1] bounds in floats and bytes; and those of this stage's
       replicas, from its first parameter on, [replicas + 1]. */
    int64_t *shard, *shard_bytes, *part, *part_bytes;
    /* The gradient: addresses for a whole arena, of which this rank's shard is valid, or the stage's part
       where the norm is needed. Memory that is never touched costs nothing. */
    struct tr_staging gradient; /* of the holder */
    struct tr_range update;     /* this rank's shard */
    tr_comm *group;             /* the replicas of this stage; NULL: only this rank */
    tr_window *parameters;      /* of the group; NULL: its ranks do not share memory */
    bool splits;                /* the group is a separate subgroup */
    /* The stage's results on the device that computes, unless they are in place: for a single rank, whose
       only node is its gradient, on devices that share their memory. */
    bool apart;
    struct tr_staging nodes;
    tr_window *node_window; /* NULL: the group's ranks do not share memory */
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

/* Determines each rank's layers, rows and parameters: layer, cell, shard and part. Collective; the
   training data must be open. */
tr_status pipeline_divide(struct pipeline *self);

/* The slot `collect` of the class (gather.c). */
tr_status pipeline_collect(tr_strategy *strategy, enum tr_arena arena, int64_t begin, int64_t end, float *to);

#endif
