/* Small data from all ranks to all, along the spanning tree of the ranks (route.h), first within hosts:
 * each rank combines its own with those of the ranks below it, and sends the result upward; then the
 * root's result goes down again. So a rank has as many messages as neighbours in the tree. Few ranks
 * exchange directly, in one round.
 */
#include "comm/operation.h"
#include "comm/sums/reduction.h"

#include "base/alloc.h"
#include "base/fail.h"

#include <string.h>

/* ---- sums along the reduction tree ---- */

enum { HEAR, JOIN, TELL };

static int nodes_told(const struct tr_trunk *trunk)
{
    return tr_program_outputs(trunk->sum.program);
}

/* Scratch: pointers; nodes from children, one after the other; nodes that this rank sends. */
static float *floats_of(const tr_ticket *ticket)
{
    const struct tr_trunk *trunk = &ticket->reduction->trunk;
    size_t pointers = (size_t)(trunk->sum.inputs + nodes_told(trunk)) * sizeof(float *);
    return (float *)(void *)(ticket->scratch +
                             (pointers + TR_CACHE_LINE - 1) / TR_CACHE_LINE * TR_CACHE_LINE);
}

static tr_status hear_children(tr_comm *comm, tr_ticket *ticket)
{
    const struct tr_trunk *trunk = &ticket->reduction->trunk;
    float *at = floats_of(ticket);
    int64_t count = (int64_t)(ticket->bytes / sizeof *at);
    for (int i = 0; i < trunk->children; i++) {
        if (trunk->nodes[i] == 0) continue;
        TR_TRY(tr_ticket_receive(comm, ticket, trunk->child[i], at, (size_t)trunk->nodes[i] * ticket->bytes,
                                 HEAR));
        at += trunk->nodes[i] * count;
    }
    return TR_OK;
}

static tr_status join_nodes(tr_comm *comm, tr_ticket *ticket)
{
    const struct tr_trunk *trunk = &ticket->reduction->trunk;
    int parent = tr_spanning_parent(comm, comm->rank), nodes = nodes_told(trunk);
    int64_t count = (int64_t)(ticket->bytes / sizeof(float));
    const float **input = (const float **)(void *)ticket->scratch;
    float **output = (float **)(void *)(input + trunk->sum.inputs);
    float *came = floats_of(ticket), *told = came + trunk->arrivals * count;
    for (int i = 0; i < trunk->sum.inputs; i++)
        input[i] = trunk->sum.input[i].rank < 0 ? came + trunk->sum.input[i].index * count
                                                : ticket->nodes + trunk->sum.input[i].index * ticket->stride;
    for (int i = 0; i < nodes; i++) output[i] = parent < 0 ? ticket->out : told + i * count;
    tr_program_run(trunk->sum.program, input, count, output);
    if (parent < 0) return TR_OK;
    if (nodes > 0)
        TR_TRY(tr_ticket_send(comm, ticket, parent, told, (size_t)nodes * ticket->bytes, TR_GATE_LAST));
    return tr_ticket_receive(comm, ticket, parent, ticket->out, ticket->bytes, JOIN);
}

static tr_status tell_children(tr_comm *comm, tr_ticket *ticket, const void *data)
{
    int child[TR_SPANNING_MOST], children = tr_spanning_children(comm, comm->rank, child);
    for (int i = children - 1; i >= 0; i--) /* first the children that have most to pass on */
        TR_TRY(tr_ticket_send(comm, ticket, child[i], data, ticket->bytes, TR_GATE_LAST));
    return TR_OK;
}

static tr_status enter_sum(tr_comm *comm, tr_ticket *ticket)
{
    if (ticket->phase == HEAR) return hear_children(comm, ticket);
    if (ticket->phase == JOIN) return join_nodes(comm, ticket);
    return tell_children(comm, ticket, ticket->out);
}

tr_status tr_comm_sum_words(tr_comm *comm, struct tr_reduction *reduction, const tr_ticket *arguments,
                            int64_t count, const char *name, tr_ticket **out)
{
    const struct tr_trunk *trunk = &reduction->trunk;
    size_t told = (size_t)nodes_told(trunk), pointers = ((size_t)trunk->sum.inputs + told) * sizeof(float *);
    size_t floats = ((size_t)trunk->arrivals + told) * (size_t)count;
    tr_ticket *ticket;
    TR_TRY(tr_ticket_take_collective(comm, "all-reduce", name, 2 * trunk->children + 2,
                                     pointers + TR_CACHE_LINE + floats * sizeof(float), &ticket));
    ticket->reduction = reduction;
    ticket->nodes = arguments->nodes;
    ticket->stride = arguments->stride;
    ticket->out = arguments->out;
    ticket->bytes = (size_t)count * sizeof(float);
    ticket->numbers = true;
    ticket->enter = enter_sum;
    ticket->last = TELL;
    TR_TRY(tr_ticket_start(comm, ticket));
    *out = ticket;
    return TR_OK;
}

/* ---- combining blocks ---- */

/* Scratch: a block for each rank that sends to this one, and after them this rank's own. */
static void *block_at(const tr_ticket *ticket, int index)
{
    return ticket->scratch + (size_t)index * ticket->bytes;
}

static tr_status enter_combine(tr_comm *comm, tr_ticket *ticket)
{
    int child[TR_SPANNING_MOST], children = tr_spanning_children(comm, comm->rank, child);
    int parent = tr_spanning_parent(comm, comm->rank);
    if (ticket->phase == HEAR) {
        for (int i = 0; i < children; i++)
            TR_TRY(tr_ticket_receive(comm, ticket, child[i], block_at(ticket, i), ticket->bytes, HEAR));
        return TR_OK;
    }
    if (ticket->phase == TELL) return tell_children(comm, ticket, ticket->data);
    for (int i = 0; i < children; i++) ticket->combine(ticket->data, block_at(ticket, i));
    if (parent < 0) return TR_OK;
    memcpy(block_at(ticket, children), ticket->data, ticket->bytes);
    TR_TRY(tr_ticket_send(comm, ticket, parent, block_at(ticket, children), ticket->bytes, TR_GATE_LAST));
    return tr_ticket_receive(comm, ticket, parent, ticket->data, ticket->bytes, JOIN);
}

/* Directly from all to all. */
static tr_status enter_combine_few(tr_comm *comm, tr_ticket *ticket)
{
    int others = comm->size - 1;
    if (ticket->phase == JOIN) {
        for (int i = 0; i < others; i++) ticket->combine(ticket->data, block_at(ticket, i));
        return TR_OK;
    }
    memcpy(block_at(ticket, others), ticket->data, ticket->bytes);
    for (int i = 0; i < others; i++) {
        int peer = (comm->rank + 1 + i) % comm->size;
        TR_TRY(tr_ticket_receive(comm, ticket, peer, block_at(ticket, i), ticket->bytes, HEAR));
        TR_TRY(tr_ticket_send(comm, ticket, peer, block_at(ticket, others), ticket->bytes, TR_GATE_LAST));
    }
    return TR_OK;
}

static tr_status start_combine(tr_comm *comm, void *block, size_t bytes, tr_combine combine, const char *name,
                               tr_ticket **out)
{
    int child[TR_SPANNING_MOST];
    bool few = tr_comm_is_few(comm, comm->size);
    int tell = few ? comm->size - 1 : tr_spanning_children(comm, comm->rank, child);
    tr_ticket *ticket;
    if (bytes > TR_COMM_COMBINE_MOST)
        return tr_fail(TR_EINVAL, "combine: %zu bytes; at most %d", bytes, TR_COMM_COMBINE_MOST);
    TR_TRY(
        tr_ticket_take_collective(comm, "combine", name, 2 * tell + 2, ((size_t)tell + 1) * bytes, &ticket));
    ticket->data = block;
    ticket->bytes = bytes;
    ticket->combine = combine;
    ticket->enter = few ? enter_combine_few : enter_combine;
    ticket->last = few ? JOIN : TELL;
    TR_TRY(tr_ticket_start(comm, ticket));
    *out = ticket;
    return TR_OK;
}

tr_status tr_comm_combine(tr_comm *comm, void *block, size_t bytes, tr_combine combine, const char *name,
                          tr_ticket **out)
{
    *out = NULL;
    pthread_mutex_lock(&comm->lock);
    tr_status status = start_combine(comm, block, bytes, combine, name, out);
    pthread_mutex_unlock(&comm->lock);
    return status;
}
