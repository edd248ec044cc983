/* The plan's model of a cluster: hosts, the ranks on each, and the time of messages between them.
 *
 * The model of a message is that of LogGP (Alexandrov et al. 1995, "LogGP: incorporating long messages into
 * the LogP model"): `overhead` of the processor at each end, `latency` on the way, and so much for each byte,
 * with links that are shared: a host sends one message at a time and receives one at a time, in the order in
 * which they come, each at the full rate of its link. The network between hosts has no limits.
 */
#ifndef TR_PLAN_CLUSTER_H
#define TR_PLAN_CLUSTER_H

#include "base/options/option.h"

/* The time of messages between two ranks. */
struct tr_path {
    double latency;  /* seconds from sending the first byte to its arrival */
    double rate;     /* bytes per second */
    double overhead; /* seconds of each end's processor for a message */
    double copying;  /* bytes per second that the processor of each end moves; INFINITY: it is not
                        involved. Within a host the processors' time is part of that of `rate` */
    double waking;   /* seconds, besides those of any message, until a sleeping receiver continues; within
                        a host */
    int64_t eager;   /* larger messages are sent only when the receiver waits for them */
    int64_t one_way; /* two ranks send each other messages larger than this one after the other; 0: never */
};

struct tr_cluster {
    int hosts, per_host;   /* ranks of a host */
    int threads;           /* of a rank */
    int processors;        /* of a host; 0: as many as its ranks need */
    bool naps;             /* ranks of several hosts nap while they wait, as under MPI; else they notice
                              messages at once, like those of one host */
    struct tr_path remote; /* between hosts, whose links have remote.rate in each direction */
    struct tr_path local;  /* between ranks of a host */
    double memory;         /* bytes per second at which a rank adds numbers, read and written */
    double beside;         /* seconds of processors that its other threads take for each second that it is
                              busy */
};

/* A description for people and files: "hosts: 16", "link: 10", ... */
struct tr_cluster_options {
    int32_t hosts, ranks_per_host, threads, processors;
    double link, latency, overhead, copying; /* Gb/s, microseconds, microseconds, GB/s */
    double local_rate, local_latency, local_overhead, local_waking, memory; /* GB/s, ... ; 0: as measured */
};
extern const struct tr_option tr_cluster_option_table[];
extern const int32_t tr_cluster_option_count;

/* Reads a YAML file of the options into `out`, which has others, or the defaults. TR_ENOTFOUND, TR_EIO,
 * TR_EFORMAT, TR_EINVAL with file, line and key. */
tr_status tr_cluster_read(const char *path, struct tr_cluster_options *out);
/* The cluster that the options describe; options that are 0 leave `out` unchanged. */
void tr_cluster_take(const struct tr_cluster_options *options, struct tr_cluster *out);

/* The first of so many ranks that runs on a host; with `host` the number of hosts, the number of ranks.
   Ranks are numbered host by host; those beyond the hosts' capacity are divided among all, one more on the
   first ones, as in mpirun. */
int tr_cluster_first_rank(const struct tr_cluster *cluster, int ranks, int host);

/* Defaults for figures that are neither given nor measured: an ordinary network, and memory of one
   processor. */
extern const struct tr_cluster tr_cluster_ordinary;

#endif
