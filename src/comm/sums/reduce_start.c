/* Starting and releasing reduce-scatter and all-reduce; the phases are in reduce.c. */
#include "comm/sums/reduce_internal.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "base/numbers/tree.h"

#include <assert.h>
#include <string.h>

/* Up to this size, data are not divided. */
#define WHOLE_BYTES 4096

static tr_status check(const tr_comm *comm, const struct tr_reduction *reduction, const float *nodes,
                       int64_t stride, const int64_t *shard, const char *kind)
{
    assert(reduction->comm == comm);
    bool ascends = shard[0] == 0;
    for (int i = 0; i < comm->size; i++) ascends = ascends && shard[i] <= shard[i + 1];
    if (!ascends)
        return tr_fail(TR_EINVAL, "%s: the shards of %d ranks must ascend from 0", kind, comm->size);
    int own = reduction->nodes[comm->rank];
    if (own == 0 || !nodes) return TR_OK;
    if (own > 1 && stride < shard[comm->size])
        return tr_fail(TR_EINVAL, "%s: nodes of %lld elements overlap at a stride of %lld", kind,
                       (long long)shard[comm->size], (long long)stride);
    if (!reduction->window) return TR_OK;
    size_t bytes;
    const char *segment = tr_window_segment(reduction->window, comm->rank, &bytes),
               *first = (const char *)nodes;
    const char *end = (const char *)(nodes + (own - 1) * stride + shard[comm->size]);
    if (first < segment || end > segment + bytes)
        return tr_fail(TR_EINVAL, "%s: the nodes of rank %d lie outside of its segment of the window", kind,
                       comm->rank);
    return TR_OK;
}

/* Halving is for data that ranks share about equally: elsewhere, as with servers, some ranks would carry
   data for others. */
static bool is_even(const tr_comm *comm, const int64_t *shard)
{
    int64_t most = 0;
    for (int rank = 0; rank < comm->size; rank++)
        if (shard[rank + 1] - shard[rank] > most) most = shard[rank + 1] - shard[rank];
    return most <= 4 * (shard[comm->size] / comm->size + REDUCE_LINE_FLOATS);
}

static const struct tr_route *choose_route(const tr_comm *comm, const struct tr_reduction *reduction,
                                           const int64_t *shard, bool everything)
{
    bool tree = reduction->has_tree && !everything && is_even(comm, shard) &&
                tr_route_is_long(comm, reduction->islands, shard[comm->size] * (int64_t)sizeof(float));
    return tree ? &reduction->tree : &reduction->direct;
}

/* The rounds in which members of the island exchange offsets; with many, half of them check whether these
   agree. */
static int place_rounds(const tr_comm *comm, const struct tr_reduction *reduction)
{
    bool few = tr_comm_is_few(comm, tr_island_size(reduction->islands, reduction->island));
    return (few ? 1 : 2) * tr_notify_rounds(comm, reduction->islands);
}

/* Determines the phases. */
static void plan_phases(const tr_comm *comm, tr_ticket *ticket, bool own)
{
    bool spreads = ticket->held || (ticket->gathers && !ticket->everything);
    int rounds = ticket->route->rounds > 0 ? ticket->route->rounds : 1;
    ticket->sending = own ? 0 : place_rounds(comm, ticket->reduction);
    ticket->summing = own ? 1 : ticket->sending + rounds;
    /* A transport's own sum is in phase 0; the caller's sum has no phase. */
    ticket->spreading = own || ticket->held ? ticket->summing : ticket->summing + 1;
    ticket->notifying = ticket->spreading + (spreads ? ticket->spread.phases : 0);
    ticket->last = ticket->notifying + tr_notify_rounds(comm, reduce_neighbours(comm, ticket)) - 1;
    if (ticket->held) ticket->held = ticket->summing;
}

/* Plans the operation that the caller requests, and its size. */
static tr_status plan(tr_comm *comm, struct tr_reduction *reduction, tr_ticket *arguments,
                      const int64_t *shard, size_t *scratch, int *transfers)
{
    const struct tr_islands *to = arguments->window ? &comm->hosts : &comm->alone;
    int64_t unit = (int64_t)sizeof(float);
    arguments->reduction = reduction;
    arguments->route =
        arguments->nodes ? choose_route(comm, reduction, shard, arguments->everything) : &reduction->none;
    if (arguments->held || arguments->gathers)
        TR_TRY(tr_spread_plan(comm, to, shard, unit, &arguments->spread));
    arguments->shard = (int64_t *)shard; /* only read */
    *scratch = reduce_scratch_bytes(comm, arguments);
    size_t own = reduce_in_lines((size_t)(shard[comm->rank + 1] - shard[comm->rank]) * sizeof(float));
    if (reduce_is_own(comm, reduction) && *scratch < own) *scratch = own;
    arguments->spread.at = *scratch;
    *scratch += arguments->spread.scratch;
    *transfers = 1 + arguments->route->hops + arguments->spread.transfers +
                 2 * tr_notify_transfers(comm, reduction->islands) +
                 tr_notify_transfers(comm, reduce_neighbours(comm, arguments));
    return TR_OK;
}

static tr_status start(tr_comm *comm, const char *kind, struct tr_reduction *reduction, tr_ticket *arguments,
                       const int64_t *shard, const char *name, tr_ticket **out)
{
    size_t scratch;
    int transfers;
    tr_ticket *ticket;
    *out = NULL;
    TR_TRY(check(comm, reduction, arguments->nodes, arguments->stride, shard, kind));
    TR_TRY(tr_comm_check(comm));
    bool own = reduce_is_own(comm, reduction) && !arguments->gathers;
    tr_status status = plan(comm, reduction, arguments, shard, &scratch, &transfers);
    if (status != TR_OK) return tr_comm_die(comm, status); /* the others will wait for us */
    TR_TRY(tr_ticket_take_collective(comm, kind, name, transfers, scratch, &ticket));
    memcpy(ticket->shard, shard, ((size_t)comm->size + 1) * sizeof *shard);
    ticket->reduction = reduction;
    ticket->route = arguments->route;
    ticket->spread = arguments->spread;
    ticket->everything = arguments->everything;
    ticket->gathers = arguments->gathers;
    ticket->nodes = arguments->nodes;
    ticket->stride = arguments->stride;
    ticket->out = arguments->out;
    ticket->held = arguments->held;
    ticket->data = arguments->held ? arguments->data : (char *)arguments->out;
    ticket->window = arguments->window;
    ticket->enter = own ? reduce_enter_own : reduce_enter;
    plan_phases(comm, ticket, own);
    TR_TRY(tr_ticket_start(comm, ticket));
    *out = ticket;
    return TR_OK;
}

tr_status tr_comm_reduce_scatter(tr_comm *comm, tr_reduction *reduction, const float *nodes, int64_t stride,
                                 const int64_t *shard, float *out, const char *name, tr_ticket **ticket)
{
    tr_ticket arguments = {.nodes = nodes, .stride = stride, .out = out};
    pthread_mutex_lock(&comm->lock);
    tr_status status = start(comm, "reduce-scatter", reduction, &arguments, shard, name, ticket);
    pthread_mutex_unlock(&comm->lock);
    return status;
}

tr_status tr_comm_reduce_start(tr_comm *comm, tr_reduction *reduction, const float *nodes, int64_t stride,
                               const int64_t *shard, float *data, tr_window *window, const char *name,
                               tr_ticket **ticket)
{
    *ticket = NULL;
    tr_ticket arguments = {
        .nodes = nodes, .stride = stride, .data = (char *)data, .window = window, .held = 1};
    if (window && !tr_window_holds(window, data, shard[comm->size] * (int64_t)sizeof(float)))
        return tr_fail(TR_EINVAL, "reduce-gather: the data lie outside of the window");
    pthread_mutex_lock(&comm->lock);
    tr_status status = start(comm, "reduce-gather", reduction, &arguments, shard, name, ticket);
    pthread_mutex_unlock(&comm->lock);
    return status;
}

void tr_comm_reduce_piece(tr_ticket *ticket, int64_t begin, int64_t end, float *out)
{
    const struct tr_reduction *reduction = ticket->reduction;
    const tr_comm *comm = reduction->comm;
    assert(ticket->ready && !ticket->released);
    assert(begin >= ticket->shard[comm->rank] && begin <= end && end <= ticket->shard[comm->rank + 1]);
    if (begin == end) return;
    if (ticket->sum.out) {
        const float *own = ticket->sum.out + (begin - ticket->shard[comm->rank]);
        memcpy(out, own, (size_t)(end - begin) * sizeof *out);
        return;
    }
    ticket->taken += reduce_bytes_of_others(comm, &ticket->route->root, end - begin);
    reduce_sum(comm, ticket, begin, end, out);
}

tr_status tr_comm_reduce_gather(tr_comm *comm, tr_ticket *ticket)
{
    pthread_mutex_lock(&comm->lock);
    assert(ticket->ready && !ticket->released);
    comm->statistics.bytes_shared += ticket->taken;
    ticket->released = true;
    pthread_mutex_unlock(&comm->lock);
    return tr_comm_progress(comm);
}

tr_status tr_comm_all_reduce(tr_comm *comm, tr_reduction *reduction, const float *nodes, int64_t stride,
                             int64_t count, float *out, const char *name, tr_ticket **ticket)
{
    *ticket = NULL;
    if (count < 0) return tr_fail(TR_EINVAL, "all-reduce: %lld elements", (long long)count);
    bool whole = count * (int64_t)sizeof(float) <= WHOLE_BYTES,
         words = whole && !tr_comm_is_few(comm, comm->size);
    tr_ticket arguments = {
        .nodes = nodes, .stride = stride, .out = out, .gathers = true, .everything = whole};
    int64_t *shard = tr_alloc((size_t)comm->size + 1, sizeof *shard);
    if (!shard) {
        tr_comm_abort(comm, "out of memory");
        return TR_ENOMEM;
    }
    int64_t lines =
        (count + REDUCE_LINE_FLOATS - 1) / REDUCE_LINE_FLOATS; /* shards that begin with a cache line */
    for (int i = 0; i <= comm->size; i++) {
        shard[i] = tr_cut(lines, comm->size, i) * REDUCE_LINE_FLOATS;
        if (shard[i] > count) shard[i] = count;
    }
    pthread_mutex_lock(&comm->lock);
    tr_status status = check(comm, reduction, nodes, stride, shard, "all-reduce");
    if (status == TR_OK)
        status = words ? tr_comm_sum_words(comm, reduction, &arguments, count, name, ticket)
                       : start(comm, "all-reduce", reduction, &arguments, shard, name, ticket);
    pthread_mutex_unlock(&comm->lock);
    tr_free(shard);
    return status;
}
