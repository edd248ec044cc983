/* The plan of a reduction: which rank brings which nodes of the tree, which sums islands form, and who sends
 * them to whom.
 *
 * An island is a set of ranks that read each other's nodes: the ranks of a host with a window, else each rank
 * for itself. For a share of the elements that belongs to rank q, every other island sums its nodes as far as
 * the tree allows (its cover), and one member, the agent for q, sends these sums to q. Rank q reads the nodes
 * of its own island where they are, and combines.
 */
#ifndef TR_COMM_REDUCTION_H
#define TR_COMM_REDUCTION_H

#include "comm/class.h"
#include "comm/program.h"

/* An input of a program: a node that a rank of our island brings, or one that came from another island. */
struct tr_input {
    int rank;   /* -1: from another island */
    int island; /* where it is from */
    int index;  /* node of the rank, or of the island's cover */
};

struct tr_reduction {
    tr_comm *comm;
    tr_window *window; /* borrowed, NULL without */
    const struct tr_islands *islands;
    int island;        /* ours */
    int *nodes;        /* [size] that each rank brings */
    int *covers;       /* [islands->count] nodes that each island sends */
    int covers_in_all; /* of the other islands */
    tr_program *cover; /* what our island sends */
    struct tr_input *cover_input;
    int cover_inputs;
    tr_program *root; /* the sum */
    struct tr_input *root_input;
    int root_inputs;
};

#endif
