/* Doubling: shards go to all islands, each of which then passes on all it has. */
#include "comm/sums/route_build.h"

#include "base/fail.h"
#include "base/numbers/tree.h"

/* ---- doubling ---- */

/* The pieces that go from a side of islands [first, end) to an island, `part` of `parts`, as far as they
   concern this rank: a message for each pair of members. `whole`: of all shards of that side. */
static tr_status carry(const struct route_builder *builder, int first, int end, int part, int parts, int from,
                       int to, int round)
{
    const struct tr_islands *islands = builder->leaves->islands;
    const tr_comm *comm = builder->leaves->comm;
    bool sends = from == builder->island;
    int64_t shards = islands->start[end] - islands->start[first];
    int64_t begin = tr_cut(shards * TR_PIECE_WHOLE, parts, part),
            stop = tr_cut(shards * TR_PIECE_WHOLE, parts, part + 1);
    struct tr_route *route = builder->route;
    int other = sends ? to : from;
    /* By the members on the other side, so that each message's pieces are consecutive in the list. */
    for (int m = islands->start[other]; m < islands->start[other + 1]; m++) {
        int peer = islands->member[m], hops = route->hops;
        int64_t at = 0;
        for (int i = islands->start[first]; i < islands->start[end]; i++, at += TR_PIECE_WHOLE) {
            int owner = islands->member[i];
            int64_t low = begin > at ? begin - at : 0, high = stop - at;
            if (high > TR_PIECE_WHOLE) high = TR_PIECE_WHOLE;
            if (low >= high || route_agent(builder, builder->island, owner) != comm->rank ||
                route_agent(builder, other, owner) != peer)
                continue;
            if (route->hops == hops)
                TR_TRY(route_add_hop(route, (struct tr_hop){.peer = peer, .round = round, .sends = sends}));
            TR_TRY(route_add_piece(route, (struct tr_piece){owner, low, high}));
            route->hop[route->hops - 1].count++;
        }
    }
    return TR_OK;
}

/* Between the sides [first, middle) and [middle, end) of islands; the left one is at least as large. An
   island on the left gets all of the right from one island there; an island on the right gets all of the
   left, in parts, from those that it sends to. */
static tr_status join_sides(const struct route_builder *builder, int first, int middle, int end, int round)
{
    int right = end - middle, us = builder->island;
    bool left = us < middle;
    for (int i = left ? us : first + (us - middle); i < middle; i += right) {
        int partner = middle + (i - first) % right, part = (i - first) / right;
        int parts = (middle - first - (i - first) % right + right - 1) / right;
        /* In the same order on both sides. */
        TR_TRY(carry(builder, first, middle, part, parts, i, partner, round));
        TR_TRY(carry(builder, middle, end, 0, 1, partner, i, round));
        if (left) break;
    }
    return TR_OK;
}

tr_status tr_route_double(const tr_comm *comm, const struct tr_islands *islands, struct tr_route *out)
{
    struct tr_leaves leaves = {.comm = comm, .islands = islands};
    struct route_builder builder = {.leaves = &leaves, .route = out, .island = islands->of[comm->rank]};
    struct tr_node node = {0, islands->count};
    *out = (struct tr_route){0};
    while (node.last - node.first > 1) {
        int64_t middle = route_middle_of(node);
        TR_TRY(join_sides(&builder, (int)node.first, (int)middle, (int)node.last, route_height_of(node) - 1));
        if (builder.island < middle)
            node.last = middle;
        else
            node.first = middle;
    }
    route_sort_hops(out);
    return TR_OK;
}
