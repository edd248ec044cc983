/* Routes as growing lists, and the direct route, by which every island sends to all others. */
#include "comm/sums/route_build.h"

#include "base/alloc.h"
#include "base/fail.h"

#include <stdlib.h>

bool tr_route_is_long(const tr_comm *comm, const struct tr_islands *islands, int64_t bytes)
{
    if (comm->routing != TR_ROUTING_AUTO) return comm->routing == TR_ROUTING_TREE && islands->count > 1;
    return islands->count > TR_ROUTE_FEW && bytes / comm->size < TR_ROUTE_LARGE;
}

/* ---- growing ---- */

/* An array with room for one element more than `count`; grows at powers of two. NULL: no memory. */
static void *grown(void *array, int count, size_t size)
{
    if (count & (count - 1)) return array;
    return tr_realloc(array, count > 0 ? 2 * (size_t)count : 1, size);
}

tr_status route_add_piece(struct tr_route *route, struct tr_piece piece)
{
    void *room = grown(route->piece, route->pieces, sizeof piece);
    if (!room) return TR_ENOMEM;
    route->piece = room;
    route->piece[route->pieces++] = piece;
    return TR_OK;
}

tr_status route_add_hop(struct tr_route *route, struct tr_hop hop)
{
    void *room = grown(route->hop, route->hops, sizeof hop);
    if (!room) return TR_ENOMEM;
    hop.first = route->pieces;
    route->hop = room;
    route->hop[route->hops++] = hop;
    if (hop.round >= route->rounds) route->rounds = hop.round + 1;
    return TR_OK;
}

tr_status route_add_arrival(struct tr_route *route, struct tr_node node)
{
    void *room = grown(route->arrival, route->arrivals, sizeof *route->arrival);
    if (!room) return TR_ENOMEM;
    route->arrival = room;
    route->arrival[route->arrivals++] = (struct tr_arrival){.node = node, .first = route->pieces};
    return TR_OK;
}

tr_status route_add_sum(struct tr_route *route)
{
    void *room = grown(route->sum, route->sums, sizeof *route->sum);
    if (!room) return TR_ENOMEM;
    route->sum = room;
    route->sum[route->sums++] = (struct tr_sum_plan){0};
    return TR_OK;
}

void tr_sum_plan_release(struct tr_sum_plan *sum)
{
    tr_program_destroy(&sum->program);
    tr_free(sum->input);
}

void tr_route_release(struct tr_route *route)
{
    for (int i = 0; i < route->sums; i++) tr_sum_plan_release(&route->sum[i]);
    tr_sum_plan_release(&route->root);
    tr_free(route->hop);
    tr_free(route->piece);
    tr_free(route->sum);
    tr_free(route->arrival);
    *route = (struct tr_route){0};
}

/* Sorted by rounds, otherwise stable: so the order is the same on both sides. */
static int by_round(const void *left, const void *right)
{
    const struct tr_hop *a = left, *b = right;
    if (a->round != b->round) return a->round < b->round ? -1 : 1;
    return a->output < b->output ? -1 : a->output > b->output;
}

void route_sort_hops(struct tr_route *route)
{
    for (int i = 0; i < route->hops; i++) route->hop[i].output = i;
    if (route->hops > 0) qsort(route->hop, (size_t)route->hops, sizeof *route->hop, by_round);
    for (int i = 0; i < route->hops; i++) route->hop[i].output = 0;
}

/* ---- direct ---- */

/* The nodes that another island sends, for the shard of this rank. */
static tr_status receive_covers(const struct tr_leaves *leaves, int island, struct tr_route *route)
{
    struct tr_sum_plan cover = {0};
    const tr_comm *comm = leaves->comm;
    tr_status status = tr_route_plan_cover(leaves, island, &cover);
    int nodes = status == TR_OK ? tr_program_outputs(cover.program) : 0;
    for (int i = 0; i < nodes && status == TR_OK; i++) {
        struct tr_hop hop = {.peer = tr_island_agent(leaves->islands, island, comm->rank),
                             .count = 1,
                             .what = route->arrivals};
        status = route_add_arrival(route, tr_program_output(cover.program, i));
        if (status == TR_OK) status = route_add_hop(route, hop);
        if (status == TR_OK)
            status = route_add_piece(route, (struct tr_piece){comm->rank, 0, TR_PIECE_WHOLE});
        if (status == TR_OK) route->arrival[route->arrivals - 1].count = 1;
    }
    tr_sum_plan_release(&cover);
    return status;
}

/* Our island's nodes for a rank elsewhere. */
static tr_status send_covers(int to, struct tr_route *route)
{
    int nodes = tr_program_outputs(route->sum->program);
    for (int i = 0; i < nodes; i++)
        TR_TRY(route_add_hop(route, (struct tr_hop){.peer = to, .sends = true, .count = 1, .output = i}));
    return route_add_piece(route, (struct tr_piece){to, 0, TR_PIECE_WHOLE});
}

tr_status tr_route_direct_sums(const struct tr_leaves *leaves, struct tr_route *out)
{
    const struct tr_islands *islands = leaves->islands;
    const tr_comm *comm = leaves->comm;
    int own = islands->of[comm->rank];
    *out = (struct tr_route){0};
    TR_TRY(route_add_sum(out));
    TR_TRY(tr_route_plan_cover(leaves, own, out->sum));
    for (int island = 0; island < islands->count; island++)
        if (island != own) TR_TRY(receive_covers(leaves, island, out));
    /* Beginning with the next rank, so that not all send to rank 0 first. */
    for (int i = 1; i < comm->size; i++) {
        int rank = (comm->rank + i) % comm->size;
        if (islands->of[rank] != own && tr_island_agent(islands, own, rank) == comm->rank)
            TR_TRY(send_covers(rank, out));
    }
    return tr_route_plan_sum(leaves, out, (struct tr_node){0, leaves->count}, 0, &out->root);
}
