/* The arrival time of messages over links that are shared. */
#ifndef TR_PLAN_NETWORK_H
#define TR_PLAN_NETWORK_H

#include "plan/cluster.h"

/* When the links of the hosts are free again. */
struct tr_network {
    const struct tr_cluster *cluster;
    double *up, *down;           /* [hosts] */
    double *up_busy, *down_busy; /* [hosts] seconds so far */
};

/* All links are free at time 0. Released with tr_network_release(), also after a failure. TR_ENOMEM. */
tr_status tr_network_make(const struct tr_cluster *cluster, struct tr_network *out);
void tr_network_release(struct tr_network *network);

/* Two steps, called in order of time. At `time` a message is ready at host `from` for host `to`; *begins
   is when its first byte reaches the other end's link. */
void tr_network_leave(struct tr_network *network, int from, int to, double time, double bytes,
                      double *begins);
/* At `time`, from leave(), the first byte is there; returns when the last one is. */
double tr_network_arrive(struct tr_network *network, int from, int to, double time, double bytes);

static inline const struct tr_path *tr_cluster_path(const struct tr_cluster *cluster, int from, int to)
{
    return from == to ? &cluster->local : &cluster->remote;
}

#endif
