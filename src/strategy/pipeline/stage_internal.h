/* The structure of a stage, shared by its making (stage.c) and its steps (flow.c). */
#ifndef TR_STRATEGY_PIPELINE_STAGE_INTERNAL_H
#define TR_STRATEGY_PIPELINE_STAGE_INTERNAL_H

#include "device/staging.h"
#include "job/feed/feed.h"
#include "job/step/mirror.h"
#include "job/step/rows.h"
#include "job/step/shared_weights.h"
#include "strategy/pipeline/stage.h"

/* Some microbatches that flow through together. */
struct unit {
    int64_t first, end; /* microbatches */
    int node;
    int64_t leaf; /* its number among the units of the node */
    bool last;    /* of the node */
};

/* The buffers of a flight at a neighbouring stage; zeros at the ends. */
struct port {
    struct tr_staging values, gradient;
};

/* A unit between admission and backward, with its messages. */
struct flight {
    tr_pass *pass;
    struct tr_rows rows;
    struct tr_pass_batch batch;
    struct port in, out;
    float *slot;                       /* that receives its gradients */
    tr_ticket *entry, *entry_gradient; /* from and to the previous stage */
    tr_ticket *exit, *exit_gradient;   /* to and from the next one */
    struct tr_staging *leaves;         /* [shared weights] contributions of borrowers to the gradient */
    tr_ticket **leaves_ticket;         /* [shared weights] */
};

struct stage {
    tr_strategy *strategy;
    struct stage_cell cell;
    struct stage_plan plan;
    struct tr_order order;
    tr_loader *loader;
    tr_feed *feed;
    tr_mirror *mirror;
    struct tr_shared_weights shared;
    struct unit *units;     /* [plan.units] */
    struct flight *flights; /* [plan.flights]; unit u takes u % flights */
    float *results;         /* [plan.nodes][plan.stride], borrowed */
    float *sums;            /* host [TR_PASS_SUMS], borrowed; or NULL */
    float *extra;           /* device [plan.extra][plan.stride] */
    float **spare;          /* [plan.extra] slots that are free */
    int spares;
    /* Gradients of the current node that wait in the tree, oldest first. */
    float *waiting[TR_TREE_DEPTH + 1];
    int depth;
    struct stage_memory memory;
};

/* Makes the passes of all flights progress messages between layers. */
void stage_accompany(struct stage *stage);

#endif
