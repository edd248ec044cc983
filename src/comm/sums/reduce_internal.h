/* A reduction under way: shared by its phases (reduce.c), the inputs of its sums (reduce_inputs.c) and its
 * beginning (reduce_start.c).
 */
#ifndef TR_COMM_REDUCE_INTERNAL_H
#define TR_COMM_REDUCE_INTERNAL_H

#include "comm/operation.h"
#include "comm/sums/reduction.h"

#include "base/alloc.h"

/* ---- memory in whole cache lines ---- */

#define REDUCE_LINE_FLOATS (TR_CACHE_LINE / (int64_t)sizeof(float))

static inline int64_t reduce_padded(int64_t floats)
{
    return (floats + REDUCE_LINE_FLOATS - 1) / REDUCE_LINE_FLOATS * REDUCE_LINE_FLOATS;
}

static inline size_t reduce_in_lines(size_t bytes)
{
    return (bytes + TR_CACHE_LINE - 1) / TR_CACHE_LINE * TR_CACHE_LINE;
}

/* ---- shards ---- */

/* The piece that is this rank's shard. */
static inline struct tr_piece reduce_own_shard(const tr_comm *comm)
{
    return (struct tr_piece){comm->rank, 0, TR_PIECE_WHOLE};
}

/* ---- reduce_inputs.c ---- */

/* The elements of a piece of the ticket's shards. */
void reduce_range(const tr_comm *comm, const tr_ticket *ticket, const struct tr_piece *piece, int64_t *begin,
                  int64_t *end);
/* Elements of so many pieces of its route. */
int64_t reduce_length(const tr_comm *comm, const tr_ticket *ticket, int first, int count);
/* For each piece of a received node, how many floats lie before it. */
int64_t *reduce_offsets(const tr_ticket *ticket);
/* Where these floats begin. */
float *reduce_floats(const tr_ticket *ticket);
/* The place of data to send that are an unchanged input of the sum's program, if they are. */
int reduce_direct_input(const struct tr_route *route, const struct tr_hop *hop);
/* Floats of all received pieces; `offsets`, if not NULL, becomes where each begins. */
int64_t reduce_lay_out(const tr_comm *comm, const tr_ticket *ticket, int64_t *offsets);
/* Scratch bytes of a ticket with this route and these shards. */
size_t reduce_scratch_bytes(const tr_comm *comm, const tr_ticket *ticket);
/* Writes where the inputs of a sum lie, from element `skip` of a piece on. */
void reduce_find_inputs(const tr_comm *comm, const tr_ticket *ticket, const struct tr_sum_plan *plan,
                        const struct tr_piece *piece, int64_t skip, const float **pointer);
/* Bytes that a program reads from other ranks' nodes. */
int64_t reduce_bytes_of_others(const tr_comm *comm, const struct tr_sum_plan *plan, int64_t length);

/* ---- reduce.c ---- */

/* The sum over all leaves, of elements of this rank's shard. */
void reduce_sum(const tr_comm *comm, const tr_ticket *ticket, int64_t begin, int64_t end, float *out);
/* The islands whose ranks notify each other in the end that all have arrived, and nodes are free. */
const struct tr_islands *reduce_neighbours(const tr_comm *comm, const tr_ticket *ticket);
/* Whether the transport reduces by itself. */
bool reduce_is_own(const tr_comm *comm, const struct tr_reduction *reduction);
/* Phases of a ticket, and of one that the transport's own collective serves. */
tr_status reduce_enter(tr_comm *comm, tr_ticket *ticket);
tr_status reduce_enter_own(tr_comm *comm, tr_ticket *ticket);

#endif
