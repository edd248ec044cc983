#include "comm/sums/spanning.h"

/* Along a binomial tree: item i sends to i without its lowest bit. */
static int binomial_children(int item, int items, int *child)
{
    int count = 0;
    for (int step = 1; item + step < items && !(item & step); step *= 2) child[count++] = item + step;
    return count;
}

int tr_spanning_parent(const tr_comm *comm, int rank)
{
    const struct tr_islands *hosts = &comm->hosts;
    int host = hosts->of[rank], index = hosts->index[rank];
    if (index > 0) return hosts->member[hosts->start[host] + (index & (index - 1))];
    return host > 0 ? hosts->member[hosts->start[host & (host - 1)]] : -1;
}

int tr_spanning_children(const tr_comm *comm, int rank, int *child)
{
    const struct tr_islands *hosts = &comm->hosts;
    int host = hosts->of[rank];
    int count = binomial_children(hosts->index[rank], tr_island_size(hosts, host), child);
    for (int i = 0; i < count; i++) child[i] = hosts->member[hosts->start[host] + child[i]];
    if (hosts->index[rank] > 0) return count;
    int all = count + binomial_children(host, hosts->count, child + count);
    for (int i = count; i < all; i++) child[i] = hosts->member[hosts->start[child[i]]];
    return all;
}
