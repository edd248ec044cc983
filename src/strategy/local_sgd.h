/* The inside of local SGD, shared by its rounds (local_sgd.c) and the averaging of replicas
 * (local_sgd_average.c).
 */
#ifndef TR_STRATEGY_LOCAL_SGD_H
#define TR_STRATEGY_LOCAL_SGD_H

#include "strategy/class.h"

struct local_sgd_options {
    int32_t replicas, every;
    float momentum, rate;
    bool nesterov;
};

/* Where the replicas' numbers meet. Which replica is where decides who adds what, never the sums. */
struct local_sgd_average {
    tr_window *node_window, *average_window; /* NULL: alone, or ranks do not share memory */
    float *own_nodes, *own_average;          /* device memory where there is no window */
    float *nodes; /* [slots][stride]: sums of the replicas that this rank has, node j of the tree in slot j */
    float *average; /* [arena_floats]: of all replicas */
    int64_t stride;
    int64_t *share, *share_bytes; /* [size + 1]: floats and bytes of an arena that each rank sums up */
    tr_reduction *reduction;      /* NULL: alone */
    /* The outer step, where it is more than the average: */
    float *previous; /* device [arena_floats]: parameters of the last round, right in the share */
    struct tr_step_scalars *scalars; /* device */
};

struct local_sgd_replica {
    tr_variables *variables;
    tr_gradient *gradient;
};

struct local_sgd {
    struct tr_strategy head;
    int64_t *replica;                   /* [size + 1]: those of rank r are replica[r] to replica[r + 1] - 1 */
    int count;                          /* of this rank */
    struct local_sgd_replica *replicas; /* [count]; the variables of the first are the strategy's, too */
    struct local_sgd_report *reports;   /* [all replicas] */
    struct local_sgd_average average;
};

/* Allocates; the replicas' variables are there. What was made is released by the other, also after a failure.
 */
tr_status local_sgd_average_create(struct local_sgd *self);
void local_sgd_average_destroy(struct local_sgd *self);
/* Bytes of device memory. */
size_t local_sgd_average_memory(const struct local_sgd *self);
/* Takes the parameters of the first replica as those of the last round. */
tr_status local_sgd_average_begin(struct local_sgd *self);
/* All replicas of all ranks get the averages of their arenas, by way of the outer step. Collective. */
tr_status local_sgd_average(struct local_sgd *self);
/* Brings the outer momentum together. Collective. */
tr_status local_sgd_average_gather(struct local_sgd *self);

#endif
