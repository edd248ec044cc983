/* The plan of a reduction: which rank contributes which nodes of the tree, and the routes that their sums
 * take.
 *
 * An island is a set of ranks that read each other's nodes: the ranks of a host with a window, else each
 * rank for itself. An island sends sums of its nodes and of earlier arrivals, as far as the tree allows. A
 * rank reads the nodes of its own island in place.
 */
#ifndef TR_COMM_REDUCTION_H
#define TR_COMM_REDUCTION_H

#include "comm/class.h"
#include "comm/sums/route.h"
#include "comm/sums/spanning.h"

/* How a few elements, summed for all ranks, go along the spanning tree (comm/sums/route.h): each rank sums
   its own nodes and those from below, as far as the tree allows, and sends the results upward. */
struct tr_trunk {
    int child[TR_SPANNING_MOST], nodes[TR_SPANNING_MOST]; /* senders to this rank, and their numbers of
                                                             nodes */
    int children, arrivals;                               /* arrivals: nodes of all children */
    struct tr_sum_plan sum; /* its inputs: own nodes, and arrivals in this order */
};

struct tr_reduction {
    tr_comm *comm;
    tr_window *window; /* borrowed, NULL without */
    const struct tr_islands *islands;
    int island;                         /* ours */
    int *nodes;                         /* [size] that each rank brings */
    struct tr_route direct, tree, none; /* `none` has no messages */
    bool has_tree;                      /* otherwise data are never sent that way */
    struct tr_trunk trunk;
};

/* Sums a few elements along the trunk, to `out` of all ranks: nodes, stride and out of the arguments. With
   the lock held. */
tr_status tr_comm_sum_words(tr_comm *comm, struct tr_reduction *reduction, const tr_ticket *arguments,
                            int64_t count, const char *name, tr_ticket **out);

#endif
