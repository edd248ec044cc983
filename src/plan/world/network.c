#include "plan/world/network.h"

#include "base/alloc.h"

tr_status tr_network_make(const struct tr_cluster *cluster, struct tr_network *out)
{
    size_t hosts = (size_t)cluster->hosts;
    *out = (struct tr_network){.cluster = cluster,
                               .up = tr_alloc_zero(hosts, sizeof *out->up),
                               .down = tr_alloc_zero(hosts, sizeof *out->down),
                               .up_busy = tr_alloc_zero(hosts, sizeof *out->up_busy),
                               .down_busy = tr_alloc_zero(hosts, sizeof *out->down_busy)};
    return out->up && out->down && out->up_busy && out->down_busy ? TR_OK : TR_ENOMEM;
}

void tr_network_release(struct tr_network *network)
{
    tr_free(network->up);
    tr_free(network->down);
    tr_free(network->up_busy);
    tr_free(network->down_busy);
}

/* Sends a message from `time` on over a link that is free from *free on; returns when it begins. */
static double occupy(double *free, double *busy, double time, double seconds)
{
    double begins = time > *free ? time : *free;
    *free = begins + seconds;
    *busy += seconds;
    return begins;
}

void tr_network_leave(struct tr_network *network, int from, int to, double time, double bytes, double *begins)
{
    const struct tr_path *path = tr_cluster_path(network->cluster, from, to);
    if (from != to) time = occupy(&network->up[from], &network->up_busy[from], time, bytes / path->rate);
    *begins = time + path->latency;
}

double tr_network_arrive(struct tr_network *network, int from, int to, double time, double bytes)
{
    const struct tr_path *path = tr_cluster_path(network->cluster, from, to);
    if (from != to) {
        time = occupy(&network->down[to], &network->down_busy[to], time, bytes / path->rate);
        return time + bytes / path->rate;
    }
    /* Within a host only the processors at both ends carry bytes, whose time is counted there. */
    double rest = bytes / path->rate - 2 * bytes / path->copying;
    return rest > 0 ? time + rest : time;
}
