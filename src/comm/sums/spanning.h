/* The spanning tree along which small data go to the root and back: within each host, then between hosts,
 * along binomial trees.
 */
#ifndef TR_COMM_SPANNING_H
#define TR_COMM_SPANNING_H

#include "comm/class.h"

#define TR_SPANNING_MOST 64

/* The rank that this one sends to; -1 at the root, which is rank 0. */
int tr_spanning_parent(const tr_comm *comm, int rank);
/* The ranks that send to this one, at most TR_SPANNING_MOST. Returns their number. */
int tr_spanning_children(const tr_comm *comm, int rank, int *child);

#endif
