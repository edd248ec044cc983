/* Tickets of operations: made, reused from a pool, given room for transfers, and freed. */
#include "comm/operation.h"

#include "base/alloc.h"
#include "base/threads/clock.h"
#include "base/fail.h"

void tr_ticket_free(tr_ticket *ticket)
{
    if (!ticket) return;
    tr_free(ticket->transfer);
    tr_free(ticket->shard);
    tr_free(ticket->inbox);
    tr_free(ticket->scratch);
    tr_free(ticket);
}

/* Takes the smallest free ticket with enough scratch from the pool, or else the largest, or else makes
   one: the operations of a step repeat, so each size soon has its ticket and nothing is allocated. */
static tr_ticket *find(tr_comm *comm, size_t scratch)
{
    tr_ticket **best = NULL;
    for (tr_ticket **at = &comm->pool; *at; at = &(*at)->next) {
        size_t have = (*at)->scratch_bytes, best_have = best ? (*best)->scratch_bytes : 0;
        bool enough = have >= scratch, best_enough = best && best_have >= scratch;
        if (!best || (enough && (!best_enough || have < best_have)) || (!best_enough && have > best_have))
            best = at;
    }
    if (!best) return tr_alloc_zero(1, sizeof(tr_ticket));
    tr_ticket *ticket = *best;
    *best = ticket->next;
    return ticket;
}

/* Gives a ticket the memory it needs. */
static tr_status furnish(tr_comm *comm, tr_ticket *ticket, int transfers, size_t scratch)
{
    size_t ranks = (size_t)comm->size;
    int offsets = tr_comm_local_size(comm);
    if (!ticket->shard) ticket->shard = tr_alloc(ranks + 1, sizeof *ticket->shard);
    if (!ticket->shard) return TR_ENOMEM;
    if (ticket->offsets < offsets) { /* it may have been made before the ranks knew their hosts */
        tr_free(ticket->inbox);
        ticket->inbox = tr_alloc((size_t)offsets + 2 * TR_OFFSET_ROUNDS, 2 * sizeof *ticket->inbox);
        ticket->offsets = ticket->inbox ? offsets : 0;
        if (!ticket->inbox) return TR_ENOMEM;
    }
    if (ticket->capacity < transfers) {
        tr_free(ticket->transfer);
        ticket->transfer = tr_alloc((size_t)transfers, sizeof *ticket->transfer);
        ticket->capacity = ticket->transfer ? transfers : 0;
        if (!ticket->transfer) return TR_ENOMEM;
    }
    if (ticket->scratch_bytes < scratch) {
        tr_free(ticket->scratch);
        ticket->scratch = tr_alloc_aligned(scratch, 1);
        ticket->scratch_bytes = ticket->scratch ? scratch : 0;
        if (!ticket->scratch) return TR_ENOMEM;
    }
    return TR_OK;
}

tr_status tr_ticket_take(tr_comm *comm, const char *kind, const char *name, int transfers, size_t scratch,
                         tr_ticket **out)
{
    tr_ticket *ticket = find(comm, scratch);
    *out = NULL;
    if (!ticket) return TR_ENOMEM;
    if (furnish(comm, ticket, transfers, scratch) != TR_OK) {
        tr_ticket_free(ticket);
        return TR_ENOMEM;
    }
    *ticket = (tr_ticket){.kind = kind,
                          .name = name,
                          .transfer = ticket->transfer,
                          .capacity = ticket->capacity,
                          .shard = ticket->shard,
                          .inbox = ticket->inbox,
                          .offsets = ticket->offsets,
                          .scratch = ticket->scratch,
                          .scratch_bytes = ticket->scratch_bytes};
    *out = ticket;
    return TR_OK;
}

void tr_ticket_drop(tr_comm *comm, tr_ticket *ticket)
{
    ticket->next = comm->pool;
    comm->pool = ticket;
}

tr_status tr_ticket_take_collective(tr_comm *comm, const char *kind, const char *name, int transfers,
                                    size_t scratch, tr_ticket **out)
{
    TR_TRY(tr_comm_check(comm));
    tr_status status = tr_ticket_take(comm, kind, name, transfers, scratch, out);
    if (status != TR_OK) return tr_comm_die(comm, status);
    (*out)->collective = true;
    (*out)->tag = TR_COMM_TAG_COLLECTIVE + (int)(comm->sequence++ % TR_COMM_TAG_COLLECTIVE);
    return TR_OK;
}
