/* Rehearsals: a strategy's own steps on so many ranks of a cluster, without the numbers. */
#ifndef TR_PLAN_REHEARSAL_H
#define TR_PLAN_REHEARSAL_H

#include "plan/cluster.h"
#include "plan/costs.h"
#include "plan/world/transport.h"
#include "plan/variant.h"

struct tr_rehearsal {
    const struct tr_job *job; /* a variant with blank examples */
    const struct tr_cluster *cluster;
    int ranks; /* the first of the cluster's */
    const tr_costs *costs;
    int64_t calls; /* of tr_strategy_step() that count, after a first one: steps, or rounds of them */
    const struct tr_sim_listener *listener; /* of everything from the beginning on; NULL: none */
};

/* What a rank takes, and does in a step. */
struct tr_rehearsed_rank {
    double compute, other, waiting; /* seconds: of its device; of its processor for messages and sums; idle */
    int64_t bytes_sent, bytes_received, bytes_shared;
    int64_t messages;
    size_t memory; /* bytes of the strategy */
};

enum tr_bottleneck {
    TR_BOTTLENECK_COMPUTING,  /* those that compute do so nearly all the time */
    TR_BOTTLENECK_LINK,       /* a host's link is busy nearly all the time */
    TR_BOTTLENECK_PROCESSING, /* messages and sums take more of processors than computing */
    TR_BOTTLENECK_WAITING     /* ranks wait for each other, and no link is busy */
};
extern const char *const tr_bottleneck_names[];

struct tr_rehearsed {
    double seconds; /* of a step; of an asynchronous strategy, of the updates' mean */
    double examples_per_second;
    int64_t steps;
    double whole; /* seconds of everything, what came before and after included */
    bool asynchronous;
    int ranks, workers;
    struct tr_rehearsed_rank sum, most; /* over ranks, per step */
    struct tr_rehearsed_rank mean;      /* of those that compute; times alone */
    double serving;                     /* seconds of a step that the busiest server is busy */
    double waiting;                     /* share of all ranks' time */
    double link;                        /* share of the time that the busiest link was busy */
    enum tr_bottleneck bottleneck;
    int64_t unmarked; /* large messages that are not marked as numbers, whose contents were moved therefore */
};

/* All borrowed for the call. TR_EINVAL where so many ranks make no sense; errors of ranks are told with their
   number. */
tr_status tr_rehearse(const struct tr_rehearsal *rehearsal, struct tr_rehearsed *out);

#endif
