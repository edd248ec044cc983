/* The plan of a reduction: which rank brings which nodes of the tree, and the routes that their sums take.
 *
 * An island is a set of ranks that read each other's nodes: the ranks of a host with a window, else each rank
 * for itself. Whatever an island sends was summed from its nodes and those that came before, as far as the
 * tree allows. A rank reads the nodes of its own island where they are.
 */
#ifndef TR_COMM_REDUCTION_H
#define TR_COMM_REDUCTION_H

#include "comm/class.h"
#include "comm/sums/route.h"
#include "comm/sums/spanning.h"

/* How few elements go that everybody is to have, along the spanning tree (comm/sums/route.h): each rank sums
   what it brings and what came from below, as far as the tree allows, and tells that upward. */
struct tr_trunk {
    int child[TR_SPANNING_MOST], nodes[TR_SPANNING_MOST]; /* who tells this rank, and how many nodes */
    int children, arrivals;                               /* the latter: nodes of all children */
    struct tr_sum_plan sum; /* its inputs: own nodes, and arrivals in this order */
};

struct tr_reduction {
    tr_comm *comm;
    tr_window *window; /* borrowed, NULL without */
    const struct tr_islands *islands;
    int island;                         /* ours */
    int *nodes;                         /* [size] that each rank brings */
    struct tr_route direct, tree, none; /* the last of no messages */
    bool has_tree;                      /* else data never go that way */
    struct tr_trunk trunk;
};

/* Sums few elements along the trunk, to `out` of all ranks: nodes, stride and out of the arguments. With the
   lock held. */
tr_status tr_comm_sum_words(tr_comm *comm, struct tr_reduction *reduction, const tr_ticket *arguments,
                            int64_t count, const char *name, tr_ticket **out);

#endif
