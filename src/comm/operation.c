/* The engine: takes operations from phase to phase, and waits for them. */
#include "comm/operation.h"

#include "base/alloc.h"
#include "base/threads/clock.h"
#include "base/fail.h"
#include "base/threads/timeline.h"

#include <assert.h>

/* ---- transfers ---- */

/* Whether a message may fail without ending the communicator. In a crew, the wait for it finds the dead
   rank. */
static bool tolerates(const tr_comm *comm, const tr_ticket *ticket, tr_status status)
{
    return status == TR_EPEER && (comm->outlives || (comm->tolerant && !ticket->collective));
}

static struct tr_transfer *add(const tr_comm *comm, tr_ticket *ticket, struct tr_transfer transfer)
{
    assert(ticket->transfers < ticket->capacity);
    assert(transfer.peer >= 0 && transfer.peer < comm->size);
    struct tr_transfer *fresh = &ticket->transfer[ticket->transfers++];
    *fresh = transfer;
    fresh->tag = ticket->tag;
    fresh->numbers = ticket->numbers;
    return fresh;
}

/* The transport's result of starting the last added transfer. */
static tr_status started(tr_comm *comm, tr_ticket *ticket, tr_status status)
{
    if (tolerates(comm, ticket, status)) {
        ticket->transfer[ticket->transfers - 1].broken = true;
        return TR_OK;
    }
    /* Not under way, so it must not be tested or withdrawn. */
    if (status != TR_OK) ticket->transfers--;
    return status;
}

static tr_status add_message(tr_comm *comm, tr_ticket *ticket, struct tr_transfer transfer)
{
    struct tr_comm_statistics *sum = &comm->statistics;
    *(transfer.sends ? &sum->messages_sent : &sum->messages_received) += 1;
    *(transfer.sends ? &sum->bytes_sent : &sum->bytes_received) += (int64_t)transfer.bytes;
    return started(comm, ticket, comm->class->start(comm, add(comm, ticket, transfer)));
}

tr_status tr_ticket_send(tr_comm *comm, tr_ticket *ticket, int to, const void *data, size_t bytes, int gate)
{
    return add_message(
        comm, ticket,
        (struct tr_transfer){.data = (void *)data, .bytes = bytes, .peer = to, .sends = true, .gate = gate});
}

tr_status tr_ticket_receive(tr_comm *comm, tr_ticket *ticket, int from, void *data, size_t bytes, int gate)
{
    return add_message(comm, ticket,
                       (struct tr_transfer){.data = data, .bytes = bytes, .peer = from, .gate = gate});
}

static struct tr_transfer *add_collective(tr_comm *comm, tr_ticket *ticket, void *data, size_t bytes,
                                          int gate)
{
    return add(comm, ticket,
               (struct tr_transfer){.data = data, .bytes = bytes, .peer = comm->rank, .gate = gate});
}

tr_status tr_ticket_broadcast(tr_comm *comm, tr_ticket *ticket, int root, void *data, size_t bytes, int gate)
{
    struct tr_transfer *transfer = add_collective(comm, ticket, data, bytes, gate);
    return started(comm, ticket, comm->class->broadcast(comm, transfer, root));
}

tr_status tr_ticket_all_gather(tr_comm *comm, tr_ticket *ticket, void *data, const int64_t *bound, int gate)
{
    struct tr_transfer *transfer = add_collective(comm, ticket, data, (size_t)bound[comm->size], gate);
    return started(comm, ticket, comm->class->all_gather(comm, transfer, bound));
}

tr_status tr_ticket_reduce_scatter(tr_comm *comm, tr_ticket *ticket, int gate)
{
    const struct tr_sum *sum = &ticket->sum;
    size_t bytes = (size_t)(sum->shard[comm->rank + 1] - sum->shard[comm->rank]) * sizeof *sum->out;
    struct tr_transfer *transfer = add_collective(comm, ticket, sum->out, bytes, gate);
    return started(comm, ticket, comm->class->reduce_scatter(comm, transfer, sum));
}

bool tr_transfer_withdraw(tr_comm *comm, struct tr_transfer *transfer)
{
    /* If it could not be started, the transport knows whether a part of it was. */
    if (transfer->broken && transfer->request) return false;
    return comm->class->withdraw(comm, transfer);
}

/* ---- phases ---- */

static tr_status advance(tr_comm *comm, tr_ticket *ticket)
{
    while (!ticket->done) {
        bool last = ticket->phase == ticket->last;
        /* Transfers tested in this phase are not tested again, however often callers poll. */
        for (; ticket->looked < ticket->transfers; ticket->looked++) {
            struct tr_transfer *transfer = &ticket->transfer[ticket->looked];
            if (transfer->done || !tr_ticket_needs(ticket, transfer)) continue;
            if (transfer->broken) return TR_OK;
            tr_status status = comm->class->test(comm, transfer);
            transfer->broken = tolerates(comm, ticket, status);
            if (status != TR_OK && !transfer->broken) return status;
            if (!transfer->done) return TR_OK;
            comm->completed++;
        }
        if (!last) {
            if (ticket->phase + 1 == ticket->held && !ticket->released) {
                /* Once: from then on the caller reads the ticket without the lock. */
                if (!ticket->ready) comm->completed++, ticket->ready = true;
                return TR_OK;
            }
            ticket->phase++;
            ticket->looked = 0;
            comm->completed++;
            TR_TRY(ticket->enter(comm, ticket));
            continue;
        }
        ticket->done = true;
        comm->statistics.operations += ticket->collective;
    }
    return TR_OK;
}

static tr_status fail_in_ticket(const tr_comm *comm, const tr_ticket *ticket, tr_status status)
{
    return tr_fail_in(status, "%s%s%s%s on rank %d", ticket->kind, ticket->name ? " \"" : "",
                      ticket->name ? ticket->name : "", ticket->name ? "\"" : "",
                      tr_comm_number(comm, comm->rank));
}

static tr_status advance_until(tr_comm *comm, uint64_t *moment)
{
    TR_TRY(tr_comm_check(comm));
    comm->turns++;
    tr_status status = comm->class->poll(comm, moment);
    if (status != TR_OK) return tr_comm_die(comm, status);
    comm->polled = *moment;
    for (tr_ticket *ticket = comm->active; ticket; ticket = ticket->next) {
        status = advance(comm, ticket);
        if (status != TR_OK) return tr_comm_die(comm, fail_in_ticket(comm, ticket, status));
    }
    return TR_OK;
}

static tr_status advance_all(tr_comm *comm)
{
    tr_status status = advance_until(comm, &comm->moment);
    tr_progress_thread_notice(comm);
    return status;
}

tr_status tr_comm_move(tr_comm *comm)
{
    /* `moment` stays that of the last caller: all since then is news to it. */
    uint64_t moment;
    bool lived = !comm->dead;
    comm->moves = true;
    tr_status status = advance_until(comm, &moment);
    comm->moves = false;
    if (lived && comm->dead) comm->verdict = status;
    return status;
}

static void unlink_ticket(tr_comm *comm, tr_ticket *ticket)
{
    *ticket->previous = ticket->next;
    if (ticket->next) ticket->next->previous = ticket->previous;
    if (comm->newest == &ticket->next) comm->newest = ticket->previous;
}

tr_status tr_ticket_start(tr_comm *comm, tr_ticket *ticket)
{
    /* At the end of the list, so that older operations progress first. */
    ticket->next = NULL;
    ticket->previous = comm->active ? comm->newest : &comm->active;
    *ticket->previous = ticket;
    comm->newest = &ticket->next;
    tr_status status = ticket->enter ? ticket->enter(comm, ticket) : TR_OK;
    if (status == TR_OK) status = advance(comm, ticket);
    tr_progress_thread_notice(comm);
    if (status == TR_OK) return TR_OK;
    status = tr_comm_die(comm, fail_in_ticket(comm, ticket, status));
    /* Others may not know yet, and may send; transfers that the transport does not release stay among the
     * active ones.
     */
    tr_ticket_withdraw(comm, ticket);
    return status;
}

/* ---- the interface ---- */

/* If the ticket is done: removes it from the list and nulls it. */
static bool collect(tr_comm *comm, tr_ticket **ticket)
{
    if (*ticket && !(*ticket)->done) return false;
    if (*ticket) {
        unlink_ticket(comm, *ticket);
        tr_ticket_drop(comm, *ticket);
        *ticket = NULL;
    }
    return true;
}

tr_status tr_comm_progress(tr_comm *comm)
{
    pthread_mutex_lock(&comm->lock);
    bool works = comm->active != NULL;
    if (works) tr_span_begin(TR_ACTIVITY_COMMUNICATION, "progress");
    tr_status status = advance_all(comm);
    if (works) tr_span_end();
    pthread_mutex_unlock(&comm->lock);
    return status;
}

tr_status tr_comm_test(tr_comm *comm, tr_ticket **ticket, bool *done)
{
    pthread_mutex_lock(&comm->lock);
    tr_status status = advance_all(comm);
    *done = status == TR_OK && collect(comm, ticket);
    pthread_mutex_unlock(&comm->lock);
    return status;
}

bool tr_comm_is_done(tr_comm *comm, tr_ticket **ticket)
{
    pthread_mutex_lock(&comm->lock);
    bool done = !comm->dead && collect(comm, ticket);
    pthread_mutex_unlock(&comm->lock);
    return done;
}

/* The rank whose message the ticket needs first, or -1. */
static int awaited_by(const tr_ticket *ticket)
{
    for (int i = 0; i < ticket->transfers; i++)
        if (!ticket->transfer[i].done) return ticket->transfer[i].peer;
    return -1;
}

/* A wait is for a ticket to be done, or to be ready for its caller. */
typedef bool (*condition)(tr_comm *comm, tr_ticket **ticket);

static bool is_ready(tr_comm *comm, tr_ticket **ticket)
{
    (void)comm;
    return (*ticket)->ready;
}

static tr_status wait_until(tr_comm *comm, tr_ticket **ticket, condition holds)
{
    double began = tr_clock_seconds(), now = began, quiet = began;
    uint64_t heard = 0;
    bool waits = false;
    struct tr_patience patience = {.began = began};
    /* Seldom enough to cost nothing, often enough for the time-out. */
    double nap = comm->settings.timeout / 10 < 0.1 ? comm->settings.timeout / 10 : 0.1;
    for (;;) {
        pthread_mutex_lock(&comm->lock);
        tr_status status = advance_all(comm);
        uint64_t moment = comm->moment;
        bool done = status == TR_OK && holds(comm, ticket);
        if (status == TR_OK && !done) {
            now = tr_clock_seconds();
            /* Where much arrives piece by piece, the next one comes soon. */
            if (moment != heard) quiet = now;
            heard = moment;
            status = tr_comm_judge(comm, *ticket, now, &patience);
            if (status != TR_OK) status = tr_comm_die(comm, fail_in_ticket(comm, *ticket, status));
        }
        bool over = done || status != TR_OK;
        int awaited = over ? -1 : awaited_by(*ticket);
        if (over && now > began) comm->statistics.wait_seconds += tr_clock_seconds() - began;
        if (waits == over) {
            comm->waits += over ? -1 : 1;
            waits = !over;
            tr_progress_thread_notice(comm);
        }
        pthread_mutex_unlock(&comm->lock);
        if (over) return status;
        tr_span_begin(TR_ACTIVITY_WAITING, "wait");
        comm->class->idle(comm, moment, now - quiet, nap);
        tr_span_end_about(awaited);
    }
}

static tr_status wait_in_span(tr_comm *comm, tr_ticket **ticket, condition holds)
{
    const char *name = *ticket ? (*ticket)->name ? (*ticket)->name : (*ticket)->kind : "nothing";
    tr_span_begin(TR_ACTIVITY_COMMUNICATION, name);
    tr_status status = wait_until(comm, ticket, holds);
    tr_span_end();
    return status;
}

tr_status tr_comm_wait(tr_comm *comm, tr_ticket **ticket)
{
    return wait_in_span(comm, ticket, collect);
}

tr_status tr_comm_wait_ready(tr_comm *comm, tr_ticket *ticket)
{
    return wait_in_span(comm, &ticket, is_ready);
}

bool tr_comm_is_ready(tr_comm *comm, const tr_ticket *ticket)
{
    pthread_mutex_lock(&comm->lock);
    bool ready = !comm->dead && ticket->ready;
    pthread_mutex_unlock(&comm->lock);
    return ready;
}

void tr_comm_idle(tr_comm *comm, double seconds)
{
    pthread_mutex_lock(&comm->lock);
    uint64_t moment = comm->moment;
    pthread_mutex_unlock(&comm->lock);
    comm->class->idle(comm, moment, seconds, seconds);
}

bool tr_ticket_withdraw(tr_comm *comm, tr_ticket *ticket)
{
    bool free_again = true;
    for (int i = 0; i < ticket->transfers; i++)
        if (!ticket->transfer[i].done && !tr_transfer_withdraw(comm, &ticket->transfer[i]))
            free_again = false;
    if (!free_again) return false;
    unlink_ticket(comm, ticket);
    tr_ticket_drop(comm, ticket);
    return true;
}

bool tr_comm_cancel(tr_comm *comm, tr_ticket **handle)
{
    tr_ticket *ticket = *handle;
    if (!ticket) return true;
    *handle = NULL;
    pthread_mutex_lock(&comm->lock);
    assert(!ticket->collective && ticket->transfers <= 1);
    bool free_again = tr_ticket_withdraw(comm, ticket);
    if (!free_again) unlink_ticket(comm, ticket); /* stays allocated: the transport uses it */
    pthread_mutex_unlock(&comm->lock);
    return free_again;
}
