/* Routes: the messages between many islands, in rounds whose number grows with the logarithm of the number
 * of islands.
 *
 * Sums go by *halving along the tree*. At a node of the reduction tree the sum over its leaves is divided
 * among the islands that have some of them. Where two siblings meet, each side sends the other the pieces
 * that it will not keep: first nearest siblings, with half of the data, then further ones with half of
 * that. Only siblings are added, so the bits are those of any other route. Sides need not be equal: the
 * pieces of one are divided evenly among the other.
 *
 * Shares go to all by *doubling*: neighbours first, then pairs of them, each side sending the other all that
 * it has; a larger side divides that among its members.
 *
 * Within an island, the member with the same index handles a shard (tr_island_agent()).
 */
#ifndef TR_COMM_ROUTE_H
#define TR_COMM_ROUTE_H

#include "comm/class.h"
#include "comm/program.h"

/* A part of the shard of a rank: [from, to) in units of 1 / TR_PIECE_WHOLE of it. */
#define TR_PIECE_WHOLE ((int64_t)1 << 20)
struct tr_piece {
    int owner;
    int64_t from, to;
};

/* A message of a route; one that would be empty is not sent. */
struct tr_hop {
    int peer, round;
    bool sends;
    int first, count; /* its pieces, one after the other */
    /* For sums: which of the route's sums is sent, and which output of its program; or which node is
       received. */
    int what, output;
};

/* An input of a sum: a node of a rank of our island, or a received one. */
struct tr_input {
    int rank;  /* -1: received */
    int index; /* node of the rank, or of those that come */
};

/* Sums of nodes, the largest that can be formed of the inputs. */
struct tr_sum_plan {
    tr_program *program;
    struct tr_input *input;
    int inputs;
};

/* A received node, as far as this rank keeps it. */
struct tr_arrival {
    struct tr_node node;
    int first, count; /* its pieces, ascending, which lie one after the other */
};

struct tr_route {
    int rounds;
    struct tr_hop *hop; /* [hops] by rounds; between two ranks in the same order on both */
    int hops;
    struct tr_piece *piece; /* [pieces] */
    int pieces;
    /* Of sums: */
    struct tr_sum_plan *sum; /* [sums] that are sent */
    int sums;
    struct tr_arrival *arrival; /* [arrivals] */
    int arrivals;
    struct tr_sum_plan root; /* the sum over all leaves, of this rank's shard */
};

/* Where the leaves of a reduction are. */
struct tr_leaves {
    const tr_comm *comm;
    const struct tr_islands *islands;
    int64_t count;
    const int64_t *bound; /* [size + 1] */
};

/* Direct: one round in which all send to all, for few islands or large messages. Release with
   tr_route_release(), also after a failure. TR_ENOMEM. */
tr_status tr_route_direct_sums(const struct tr_leaves *leaves, struct tr_route *out);
/* Halving along the tree. */
tr_status tr_route_halve(const struct tr_leaves *leaves, struct tr_route *out);
/* Doubling: every island gets the shards of all ranks. */
tr_status tr_route_double(const tr_comm *comm, const struct tr_islands *islands, struct tr_route *out);
void tr_route_release(struct tr_route *route);
void tr_sum_plan_release(struct tr_sum_plan *sum);

/* The sum that this rank's island can compute below a node: from its ranks' nodes, and from received nodes
   with numbers from `first_arrival` on. Released with the route, also after a failure. In sums.c. */
tr_status tr_route_plan_sum(const struct tr_leaves *leaves, const struct tr_route *route,
                            struct tr_node below, int first_arrival, struct tr_sum_plan *out);
/* The sums that an island can compute from its ranks' nodes. */
tr_status tr_route_plan_cover(const struct tr_leaves *leaves, int island, struct tr_sum_plan *out);
/* The sums that this rank can compute from its nodes and those of its `children` in the spanning tree, and
   how many nodes each of these sends: nodes[children]. */
tr_status tr_route_plan_trunk(const struct tr_leaves *leaves, const int *child, int children, int *nodes,
                              struct tr_sum_plan *out);

/* Up to so many islands, or ranks, exchange directly. */
#define TR_ROUTE_FEW 4
/* The same with messages of so many bytes: sending fewer of them saves less time than is lost by waiting
   in rounds. */
#define TR_ROUTE_LARGE ((int64_t)128 << 10)

/* Whether data of `bytes` bytes, cut into a shard for each rank, are sent in rounds. The same on all
   ranks. */
bool tr_route_is_long(const tr_comm *comm, const struct tr_islands *islands, int64_t bytes);

/* Items of a shard before the unit `at`; shards are cut at multiples of 16 items. */
static inline int64_t tr_piece_before(int64_t items, int64_t at)
{
    return at == TR_PIECE_WHOLE ? items : items * at / TR_PIECE_WHOLE / 16 * 16;
}

/* The items of a piece: [*begin, *end) of all. */
static inline void tr_piece_range(const struct tr_piece *piece, const int64_t *shard, int64_t *begin,
                                  int64_t *end)
{
    int64_t first = shard[piece->owner], items = shard[piece->owner + 1] - first;
    *begin = first + tr_piece_before(items, piece->from);
    *end = first + tr_piece_before(items, piece->to);
}

#endif
