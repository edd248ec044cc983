/* The inputs of a reduction's sums, and their places: the scratch of a ticket, received nodes, the nodes
 * of the island.
 */
#include "comm/sums/reduce_internal.h"

#include <assert.h>

void reduce_range(const tr_comm *comm, const tr_ticket *ticket, const struct tr_piece *piece, int64_t *begin,
                  int64_t *end)
{
    if (!ticket->everything) {
        tr_piece_range(piece, ticket->shard, begin, end);
        return;
    }
    *begin = 0;
    *end = ticket->shard[comm->size];
}

int64_t reduce_length(const tr_comm *comm, const tr_ticket *ticket, int first, int count)
{
    int64_t length = 0;
    for (int i = first; i < first + count; i++) {
        int64_t begin, end;
        reduce_range(comm, ticket, &ticket->route->piece[i], &begin, &end);
        length += end - begin;
    }
    return length;
}

/* ---- scratch: pointers for programs, offsets of what comes, nodes that come, sums on their way ---- */

static size_t pointer_bytes(const struct tr_route *route)
{
    int most = route->root.inputs + 1;
    for (int i = 0; i < route->sums; i++) {
        int pointers = route->sum[i].inputs + tr_program_outputs(route->sum[i].program);
        if (pointers > most) most = pointers;
    }
    return reduce_in_lines((size_t)most * sizeof(float *));
}

int64_t *reduce_offsets(const tr_ticket *ticket)
{
    return (int64_t *)(void *)(ticket->scratch + pointer_bytes(ticket->route));
}

float *reduce_floats(const tr_ticket *ticket)
{
    size_t before = reduce_in_lines((size_t)ticket->route->pieces * sizeof(int64_t));
    return (float *)(void *)(ticket->scratch + pointer_bytes(ticket->route) + before);
}

int reduce_direct_input(const struct tr_route *route, const struct tr_hop *hop)
{
    return hop->count == 1 ? tr_program_direct(route->sum[hop->what].program, hop->output) : -1;
}

int64_t reduce_lay_out(const tr_comm *comm, const tr_ticket *ticket, int64_t *offsets)
{
    const struct tr_route *route = ticket->route;
    int64_t floats = 0;
    for (int a = 0; a < route->arrivals; a++) {
        const struct tr_arrival *arrival = &route->arrival[a];
        for (int i = arrival->first; i < arrival->first + arrival->count; i++) {
            if (offsets) offsets[i] = floats;
            floats += reduce_length(comm, ticket, i, 1);
        }
        floats = reduce_padded(floats);
    }
    return floats;
}

size_t reduce_scratch_bytes(const tr_comm *comm, const tr_ticket *ticket)
{
    const struct tr_route *route = ticket->route;
    int64_t floats = reduce_lay_out(comm, ticket, NULL);
    for (int i = 0; i < route->hops; i++) {
        const struct tr_hop *hop = &route->hop[i];
        if (hop->sends && reduce_direct_input(route, hop) < 0)
            floats += reduce_padded(reduce_length(comm, ticket, hop->first, hop->count));
    }
    return pointer_bytes(route) + reduce_in_lines((size_t)route->pieces * sizeof(int64_t)) +
           reduce_in_lines((size_t)floats * sizeof(float));
}

/* ---- inputs of sums ---- */

/* The nodes of a rank of our island. */
static const float *local_node(const tr_comm *comm, const tr_ticket *ticket, int rank, int index)
{
    const struct tr_reduction *reduction = ticket->reduction;
    const struct tr_islands *islands = reduction->islands;
    if (rank == comm->rank) return ticket->nodes + index * ticket->stride;
    int members = tr_island_size(islands, reduction->island);
    int from = (islands->index[rank] + members - islands->index[comm->rank]) % members;
    const char *segment = tr_window_segment(reduction->window, rank, NULL);
    return (const float *)(const void *)(segment + ticket->inbox[2 * from]) +
           index * ticket->inbox[2 * from + 1];
}

/* Where a piece of a received node begins; the node may have come in several pieces. */
static const float *arrived(const tr_ticket *ticket, int index, const struct tr_piece *piece)
{
    const struct tr_arrival *arrival = &ticket->route->arrival[index];
    const struct tr_piece *came = ticket->route->piece + arrival->first;
    int low = 0, high = arrival->count - 1;
    while (low < high) {
        int middle = (low + high + 1) / 2;
        bool behind = came[middle].owner > piece->owner ||
                      (came[middle].owner == piece->owner && came[middle].from > piece->from);
        if (behind)
            high = middle - 1;
        else
            low = middle;
    }
    assert(came[low].owner == piece->owner && came[low].from == piece->from);
    return reduce_floats(ticket) + reduce_offsets(ticket)[arrival->first + low];
}

void reduce_find_inputs(const tr_comm *comm, const tr_ticket *ticket, const struct tr_sum_plan *plan,
                        const struct tr_piece *piece, int64_t skip, const float **pointer)
{
    int64_t begin, end;
    reduce_range(comm, ticket, piece, &begin, &end);
    for (int i = 0; i < plan->inputs; i++) {
        const struct tr_input *input = &plan->input[i];
        pointer[i] = input->rank < 0 ? arrived(ticket, input->index, piece) + skip
                                     : local_node(comm, ticket, input->rank, input->index) + begin + skip;
    }
}

int64_t reduce_bytes_of_others(const tr_comm *comm, const struct tr_sum_plan *plan, int64_t length)
{
    int others = 0;
    for (int i = 0; i < plan->inputs; i++)
        others += plan->input[i].rank >= 0 && plan->input[i].rank != comm->rank;
    return others * length * (int64_t)sizeof(float);
}
