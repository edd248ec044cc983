/* Parts of building any kind of route. */
#ifndef TR_COMM_ROUTE_BUILD_H
#define TR_COMM_ROUTE_BUILD_H

#include "comm/sums/route.h"

struct route_builder {
    const struct tr_leaves *leaves;
    struct tr_route *route;
    int island;    /* ours */
    bool *present; /* [islands] scratch, of halving */
};

/* They append to a list of the route; the pieces of a message or an arrival follow it. TR_ENOMEM. */
tr_status route_add_piece(struct tr_route *route, struct tr_piece piece);
tr_status route_add_hop(struct tr_route *route, struct tr_hop hop);
tr_status route_add_arrival(struct tr_route *route, struct tr_node node);
tr_status route_add_sum(struct tr_route *route);
/* By rounds, in the order in which they were added. */
void route_sort_hops(struct tr_route *route);

/* Where the right child of a node begins. */
static inline int64_t route_middle_of(struct tr_node node)
{
    int64_t left = 1;
    while (left * 2 < node.last - node.first) left *= 2;
    return node.first + left;
}

/* Levels of the tree below a node. */
static inline int route_height_of(struct tr_node node)
{
    int height = 0;
    while ((int64_t)1 << height < node.last - node.first) height++;
    return height;
}

/* The member of an island that handles the shard of a rank. */
static inline int route_agent(const struct route_builder *builder, int island, int owner)
{
    return tr_island_agent(builder->leaves->islands, island, owner);
}

#endif
