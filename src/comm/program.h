/* The part of the reduction tree that can be computed from some nodes: which sums, and in which order.
 *
 * Inputs are nodes of the tree, ascending and disjoint. Outputs are the largest nodes whose leaves are all
 * covered by inputs; each is the sum of its inputs along the tree, left + right at every step, so its bits
 * do not depend on how the leaves are divided into inputs.
 */
#ifndef TR_COMM_PROGRAM_H
#define TR_COMM_PROGRAM_H

#include "trireme/status.h"

#include <stdint.h>

/* The leaves of a node: [first, last). */
struct tr_node {
    int64_t first, last;
};

typedef struct tr_program tr_program;

/* `inputs` nodes of the tree over `leaves` leaves, borrowed for the call. Returned, destroy with
 * tr_program_destroy(). TR_ENOMEM. */
tr_status tr_program_create(int64_t leaves, const struct tr_node *input, int inputs, tr_program **out);
/* Accepts NULL, nulls the handle. */
void tr_program_destroy(tr_program **program);
int tr_program_outputs(const tr_program *program);
struct tr_node tr_program_output(const tr_program *program, int output);
/* The input that an output equals, or -1 if it is a sum. */
int tr_program_direct(const tr_program *program, int output);
/* Computes `count` elements of all outputs; where output[i] is NULL, nothing is written. An output may
   have the place of one input exactly. Any thread. */
void tr_program_run(const tr_program *program, const float *const *input, int64_t count,
                    float *const *output);

/* Makes the calling thread's programs over TR_PROGRAM_REHEARSED elements or more compute nothing, and
   notify `listener` of the number of floats that they would read and write; smaller ones are computed and
   counted, too. For simulated runs, whose numbers do not matter (src/plan). NULL: all are computed again.
   `user` is borrowed until then. */
#define TR_PROGRAM_REHEARSED ((int64_t)64)
enum tr_program_motion {
    TR_MOTION_ALL,  /* floats that are read or written */
    TR_MOTION_OTHER /* of these: in the cache of another rank of the host that used them since */
};
typedef void (*tr_program_listener)(void *user, enum tr_program_motion motion, int64_t floats);
void tr_program_rehearse(tr_program_listener listener, void *user);
/* Counts floats for that listener that the calling thread reads or writes outside of a program; `others`
   of them are in another rank's cache. Without a listener it does nothing. */
void tr_program_moved(int64_t floats, int64_t others);

#endif
