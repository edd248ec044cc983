/* Spreading shards of data to all islands, and synchronization within an island. */
#include "comm/operation.h"
#include "comm/sums/route.h"

#include "base/alloc.h"
#include "base/fail.h"

#include <stdatomic.h>
#include <string.h>

bool tr_comm_is_few(const tr_comm *comm, int count)
{
    return comm->routing == TR_ROUTING_AUTO ? count <= TR_ROUTE_FEW : comm->routing == TR_ROUTING_DIRECT;
}

/* ---- synchronization ---- */

static int members_of(const tr_comm *comm, const struct tr_islands *islands)
{
    return tr_island_size(islands, islands->of[comm->rank]);
}

int tr_notify_rounds(const tr_comm *comm, const struct tr_islands *islands)
{
    int members = members_of(comm, islands), rounds = 0;
    if (members > 1 && tr_comm_is_few(comm, members)) return 1;
    while (1 << rounds < members) rounds++;
    return rounds;
}

int tr_notify_transfers(const tr_comm *comm, const struct tr_islands *islands)
{
    int members = members_of(comm, islands);
    return 2 * (tr_comm_is_few(comm, members) ? members - 1 : tr_notify_rounds(comm, islands));
}

/* Few members notify all others; else in round k each notifies 2^k members more. */
tr_status tr_ticket_notify(tr_comm *comm, tr_ticket *ticket, const struct tr_islands *islands, int round,
                           int gate)
{
    int members = members_of(comm, islands), index = islands->index[comm->rank];
    const int *member = islands->member + islands->start[islands->of[comm->rank]];
    bool few = tr_comm_is_few(comm, members);
    atomic_thread_fence(memory_order_seq_cst); /* our reads, writes and receives come before the messages */
    for (int i = few ? 1 : 1 << round; i < members; i++) {
        TR_TRY(tr_ticket_receive(comm, ticket, member[(index + members - i) % members], NULL, 0, gate));
        TR_TRY(tr_ticket_send(comm, ticket, member[(index + i) % members], NULL, 0, TR_GATE_LAST));
        if (!few) break;
    }
    return TR_OK;
}

/* ---- shards ---- */

static tr_status find_route(tr_comm *comm, const struct tr_islands *islands, const struct tr_route **out)
{
    struct tr_route **kept = islands == &comm->alone ? &comm->spread_alone : &comm->spread_hosts;
    if (!*kept) {
        struct tr_route *made = tr_alloc_zero(1, sizeof *made);
        tr_status status = made ? tr_route_double(comm, islands, made) : TR_ENOMEM;
        if (status != TR_OK) {
            if (made) tr_route_release(made);
            tr_free(made);
            return status;
        }
        *kept = made;
    }
    *out = *kept;
    return TR_OK;
}

/* The bytes of a message, and where they begin in the data if they are contiguous there; else -1. */
static int64_t hop_bytes(const struct tr_route *route, const struct tr_hop *hop, const int64_t *shard,
                         int64_t unit, int64_t *together)
{
    int64_t items = 0, next = -1, first = -1;
    bool apart = false;
    for (int i = hop->first; i < hop->first + hop->count; i++) {
        int64_t begin, end;
        tr_piece_range(&route->piece[i], shard, &begin, &end);
        if (begin == end) continue;
        if (first < 0) first = begin;
        apart = apart || (next >= 0 && begin != next);
        next = end;
        items += end - begin;
    }
    *together = apart || first < 0 ? -1 : first * unit;
    return items * unit;
}

tr_status tr_spread_plan(tr_comm *comm, const struct tr_islands *islands, const int64_t *shard, int64_t unit,
                         struct tr_spread *out)
{
    *out = (struct tr_spread){.islands = islands, .unit = unit, .phases = 1};
    if (!tr_route_is_long(comm, islands, shard[comm->size] * unit)) {
        int us = islands->of[comm->rank];
        out->transfers = islands->count - 1;
        for (int rank = 0; rank < comm->size; rank++)
            out->transfers += islands->of[rank] != us && tr_island_agent(islands, us, rank) == comm->rank;
        return TR_OK;
    }
    TR_TRY(find_route(comm, islands, &out->route));
    out->phases = out->route->rounds + 1; /* the last to unpack */
    out->transfers = out->route->hops;
    for (int i = 0; i < out->route->hops; i++) {
        int64_t together, bytes = hop_bytes(out->route, &out->route->hop[i], shard, unit, &together);
        if (together < 0) out->scratch += (size_t)bytes;
    }
    return TR_OK;
}

static size_t shard_bytes(const tr_ticket *ticket, int rank)
{
    return (size_t)((ticket->shard[rank + 1] - ticket->shard[rank]) * ticket->spread.unit);
}

static tr_status spread_directly(tr_comm *comm, tr_ticket *ticket, int gate)
{
    const struct tr_islands *islands = ticket->spread.islands;
    const int64_t *shard = ticket->shard, unit = ticket->spread.unit;
    int island = islands->of[comm->rank];
    for (int rank = 0; rank < comm->size; rank++) {
        if (islands->of[rank] == island || tr_island_agent(islands, island, rank) != comm->rank) continue;
        if (shard_bytes(ticket, rank) == 0) continue;
        TR_TRY(tr_ticket_receive(comm, ticket, rank, ticket->data + shard[rank] * unit,
                                 shard_bytes(ticket, rank), gate));
    }
    if (shard_bytes(ticket, comm->rank) == 0) return TR_OK;
    for (int i = 1; i < islands->count; i++) {
        int agent = tr_island_agent(islands, (island + i) % islands->count, comm->rank);
        TR_TRY(tr_ticket_send(comm, ticket, agent, ticket->data + shard[comm->rank] * unit,
                              shard_bytes(ticket, comm->rank), TR_GATE_LAST));
    }
    return TR_OK;
}

/* Copies the pieces of a message between the data and their place in the scratch. */
static void copy_pieces(tr_ticket *ticket, const struct tr_hop *hop, char *packed, bool pack)
{
    const struct tr_spread *spread = &ticket->spread;
    for (int i = hop->first; i < hop->first + hop->count; i++) {
        int64_t begin, end;
        tr_piece_range(&spread->route->piece[i], ticket->shard, &begin, &end);
        char *data = ticket->data + begin * spread->unit;
        size_t bytes = (size_t)((end - begin) * spread->unit);
        if (bytes == 0) continue;
        memcpy(pack ? packed : data, pack ? data : packed, bytes);
        packed += bytes;
    }
}

static tr_status spread_round(tr_comm *comm, tr_ticket *ticket, int round, int gate)
{
    const struct tr_spread *spread = &ticket->spread;
    char *packed = ticket->scratch + spread->at;
    for (int i = 0; i < spread->route->hops; i++) {
        const struct tr_hop *hop = &spread->route->hop[i];
        int64_t together, bytes = hop_bytes(spread->route, hop, ticket->shard, spread->unit, &together);
        char *at = together < 0 ? packed : ticket->data + together;
        if (bytes == 0) continue;
        if (together < 0) packed += bytes;
        if (together < 0 && !hop->sends && hop->round == round - 1) copy_pieces(ticket, hop, at, false);
        if (together < 0 && hop->sends && hop->round == round) copy_pieces(ticket, hop, at, true);
        if (hop->round != round) continue;
        TR_TRY(hop->sends ? tr_ticket_send(comm, ticket, hop->peer, at, (size_t)bytes, TR_GATE_LAST)
                          : tr_ticket_receive(comm, ticket, hop->peer, at, (size_t)bytes, gate));
    }
    return TR_OK;
}

tr_status tr_ticket_spread(tr_comm *comm, tr_ticket *ticket, int phase, int gate)
{
    atomic_thread_fence(memory_order_seq_cst); /* our earlier writes come before the messages */
    return ticket->spread.route ? spread_round(comm, ticket, phase, gate)
                                : spread_directly(comm, ticket, gate);
}
