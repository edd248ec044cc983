/* Collectives that move bytes: barrier, broadcast, all-gather. */
#include "comm/operation.h"

#include "base/fail.h"
#include "base/numbers/tree.h"

#include <assert.h>
#include <string.h>

/* From this size on, a broadcast distributes shards and then gathers them: each rank sends the data about
 * twice instead of log2(size) times.
 */
#define SCATTER_BYTES (256 << 10)

/* ---- barrier: in round k each rank hears of 2^k ranks more ---- */

static tr_status enter_barrier(tr_comm *comm, tr_ticket *ticket)
{
    int size = comm->size, distance = 1 << ticket->phase;
    if (size == 1) return TR_OK;
    TR_TRY(tr_ticket_receive(comm, ticket, (comm->rank - distance + size) % size, NULL, 0, ticket->phase));
    return tr_ticket_send(comm, ticket, (comm->rank + distance) % size, NULL, 0, TR_GATE_LAST);
}

static tr_status start_barrier(tr_comm *comm, tr_ticket **out)
{
    int rounds = 0;
    while (1 << rounds < comm->size) rounds++;
    tr_ticket *ticket;
    TR_TRY(tr_ticket_take_collective(comm, "barrier", NULL, 2 * rounds, 0, &ticket));
    ticket->enter = enter_barrier;
    ticket->last = rounds > 0 ? rounds - 1 : 0;
    TR_TRY(tr_ticket_start(comm, ticket));
    *out = ticket;
    return TR_OK;
}

tr_status tr_comm_barrier(tr_comm *comm, tr_ticket **out)
{
    *out = NULL;
    pthread_mutex_lock(&comm->lock);
    tr_status status = start_barrier(comm, out);
    pthread_mutex_unlock(&comm->lock);
    return status;
}

/* ---- broadcast; `stride` of the ticket is the root ---- */

/* Along a binomial tree in which ranks count from the root: rank v gets the data from v without its lowest
   bit, and passes them to v + 2^k for all k below that bit, the largest first. */
static tr_status enter_broadcast(tr_comm *comm, tr_ticket *ticket)
{
    int size = comm->size, root = (int)ticket->stride, v = (comm->rank - root + size) % size;
    int low = v & -v;
    if (ticket->phase == 0)
        return v == 0
                   ? TR_OK
                   : tr_ticket_receive(comm, ticket, (v - low + root) % size, ticket->data, ticket->bytes, 0);
    int step = v == 0 ? size : low;
    while (step & (step - 1)) step += step & -step; /* the root's: a power of two not below the size */
    for (step /= 2; step >= 1; step /= 2)
        if (v + step < size)
            TR_TRY(tr_ticket_send(comm, ticket, (v + step + root) % size, ticket->data, ticket->bytes,
                                  TR_GATE_LAST));
    return TR_OK;
}

/* Bytes of items; an item is a byte unless stated otherwise. */
static size_t shard_bytes(const tr_ticket *ticket, int rank)
{
    return (size_t)(ticket->shard[rank + 1] - ticket->shard[rank]);
}

/* The root distributes shards; then every rank sends its own to the ranks that lack it. */
static tr_status enter_scatter(tr_comm *comm, tr_ticket *ticket)
{
    int size = comm->size, root = (int)ticket->stride, me = comm->rank;
    char *data = ticket->data;
    const int64_t *shard = ticket->shard;
    if (ticket->phase == 0 && me != root)
        return tr_ticket_receive(comm, ticket, root, data + shard[me], shard_bytes(ticket, me), 0);
    for (int i = 1; i < size; i++) {
        int to = (me + i) % size, from = (me + size - i) % size;
        if (ticket->phase == 0) {
            TR_TRY(tr_ticket_send(comm, ticket, to, data + shard[to], shard_bytes(ticket, to), TR_GATE_LAST));
            continue;
        }
        if (me != root)
            TR_TRY(tr_ticket_receive(comm, ticket, from, data + shard[from], shard_bytes(ticket, from),
                                     TR_GATE_LAST));
        if (to != root)
            TR_TRY(tr_ticket_send(comm, ticket, to, data + shard[me], shard_bytes(ticket, me), TR_GATE_LAST));
    }
    return TR_OK;
}

/* By the transport itself, here and below. */
static tr_status enter_own_broadcast(tr_comm *comm, tr_ticket *ticket)
{
    return tr_ticket_broadcast(comm, ticket, (int)ticket->stride, ticket->data, ticket->bytes, 0);
}

static tr_status start_broadcast(tr_comm *comm, int root, void *data, size_t bytes, const char *name,
                                 tr_ticket **out)
{
    if (root < 0 || root >= comm->size)
        return tr_fail(TR_EINVAL, "broadcast: there is no rank %d; choose 0 to %d", root, comm->size - 1);
    tr_ticket *ticket;
    TR_TRY(tr_ticket_take_collective(comm, "broadcast", name, 3 * comm->size, 0, &ticket));
    for (int i = 0; i <= comm->size; i++) ticket->shard[i] = tr_cut((int64_t)bytes, comm->size, i);
    ticket->data = data;
    ticket->bytes = bytes;
    ticket->stride = root;
    ticket->enter = bytes < SCATTER_BYTES || comm->size == 2 ? enter_broadcast : enter_scatter;
    ticket->last = comm->size > 1 ? 1 : 0;
    if (comm->class->broadcast) {
        ticket->enter = enter_own_broadcast;
        ticket->last = 0;
    }
    TR_TRY(tr_ticket_start(comm, ticket));
    *out = ticket;
    return TR_OK;
}

tr_status tr_comm_broadcast(tr_comm *comm, int root, void *data, size_t bytes, const char *name,
                            tr_ticket **out)
{
    *out = NULL;
    pthread_mutex_lock(&comm->lock);
    tr_status status = start_broadcast(comm, root, data, bytes, name, out);
    pthread_mutex_unlock(&comm->lock);
    return status;
}

/* ---- gather: along the binomial tree in which a broadcast of rank 0 goes, upward ---- */

/* Bytes of the ranks [first, end), as many of them as there are. */
static size_t bytes_between(const tr_comm *comm, const tr_ticket *ticket, int first, int end)
{
    return (size_t)(ticket->shard[end < comm->size ? end : comm->size] - ticket->shard[first]);
}

static tr_status enter_to_root(tr_comm *comm, tr_ticket *ticket)
{
    int me = comm->rank, low = me > 0 ? me & -me : comm->size;
    if (ticket->phase == 1 && me > 0)
        return tr_ticket_send(comm, ticket, me - low, ticket->data + ticket->shard[me],
                              bytes_between(comm, ticket, me, me + low), TR_GATE_LAST);
    for (int step = 1; ticket->phase == 0 && step < low && me + step < comm->size; step *= 2)
        TR_TRY(tr_ticket_receive(comm, ticket, me + step, ticket->data + ticket->shard[me + step],
                                 bytes_between(comm, ticket, me + step, me + 2 * step), 0));
    return TR_OK;
}

static tr_status start_to_root(tr_comm *comm, void *data, const int64_t *bound, const char *name,
                               tr_ticket **out)
{
    int rounds = 1;
    while (1 << rounds < comm->size) rounds++;
    tr_ticket *ticket;
    TR_TRY(tr_ticket_take_collective(comm, "gather", name, rounds + 1, 0, &ticket));
    memcpy(ticket->shard, bound, ((size_t)comm->size + 1) * sizeof *bound);
    ticket->data = data;
    ticket->enter = enter_to_root;
    ticket->last = 1;
    TR_TRY(tr_ticket_start(comm, ticket));
    *out = ticket;
    return TR_OK;
}

tr_status tr_comm_gather(tr_comm *comm, void *data, const int64_t *bound, const char *name, tr_ticket **out)
{
    *out = NULL;
    pthread_mutex_lock(&comm->lock);
    tr_status status = start_to_root(comm, data, bound, name, out);
    pthread_mutex_unlock(&comm->lock);
    return status;
}

/* ---- all-gather ---- */

/* Shards go to the other islands; then the members of an island tell each other that all have arrived. */
static tr_status enter_gather(tr_comm *comm, tr_ticket *ticket)
{
    int phase = ticket->phase;
    if (phase < ticket->notifying) return tr_ticket_spread(comm, ticket, phase, phase);
    return tr_ticket_notify(comm, ticket, ticket->spread.islands, phase - ticket->notifying, phase);
}

static tr_status enter_own_gather(tr_comm *comm, tr_ticket *ticket)
{
    return tr_ticket_all_gather(comm, ticket, ticket->data, ticket->shard, 0);
}

static tr_status start_gather(tr_comm *comm, bool numbers, void *data, const int64_t *bound,
                              tr_window *window, const char *name, tr_ticket **out)
{
    bool ascends = bound[0] == 0;
    for (int i = 0; i < comm->size; i++) ascends = ascends && bound[i] <= bound[i + 1];
    if (!ascends)
        return tr_fail(TR_EINVAL, "all-gather: the bounds of %d ranks must ascend from 0", comm->size);
    if (window && bound[comm->size] > 0 && !tr_window_holds(window, data, bound[comm->size]))
        return tr_fail(TR_EINVAL, "all-gather: the data lie outside of the window");
    const struct tr_islands *islands = window ? &comm->hosts : &comm->alone;
    tr_ticket *ticket;
    struct tr_spread spread;
    TR_TRY(tr_comm_check(comm));
    tr_status status = tr_spread_plan(comm, islands, bound, 1, &spread);
    if (status != TR_OK) return tr_comm_die(comm, status);
    TR_TRY(tr_ticket_take_collective(comm, "all-gather", name,
                                     spread.transfers + tr_notify_transfers(comm, islands) + 1,
                                     spread.scratch, &ticket));
    memcpy(ticket->shard, bound, ((size_t)comm->size + 1) * sizeof *bound);
    ticket->data = data;
    ticket->numbers = numbers;
    ticket->spread = spread;
    ticket->enter = enter_gather;
    ticket->notifying = spread.phases;
    ticket->last = spread.phases + tr_notify_rounds(comm, islands) - 1;
    if (comm->class->all_gather && !window) {
        ticket->enter = enter_own_gather;
        ticket->last = 0;
    }
    TR_TRY(tr_ticket_start(comm, ticket));
    *out = ticket;
    return TR_OK;
}

tr_status tr_comm_all_gather(tr_comm *comm, void *data, const int64_t *bound, tr_window *window,
                             const char *name, tr_ticket **out)
{
    *out = NULL;
    pthread_mutex_lock(&comm->lock);
    tr_status status = start_gather(comm, true, data, bound, window, name, out);
    pthread_mutex_unlock(&comm->lock);
    return status;
}

tr_status tr_comm_gather_to_all(tr_comm *comm, void *data, const int64_t *bound, const char *name,
                                tr_ticket **out)
{
    *out = NULL;
    pthread_mutex_lock(&comm->lock);
    tr_status status = start_gather(comm, false, data, bound, NULL, name, out);
    pthread_mutex_unlock(&comm->lock);
    return status;
}
