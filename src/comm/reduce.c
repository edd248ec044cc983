/* Reduce-scatter and all-reduce along the tree. See reduction.h for who sends what.
 *
 * Phase 0: ranks of the island tell each other that their nodes are ready, and where. Receives from other
 * islands are posted.
 *
 * Phase 1: the island's sums for shares of other islands are formed and sent.
 *
 * Phase 2: all has come: the share is summed.
 *
 * Phase 3: all was sent, also what lies with others: ranks of the island tell each other that they need the
 * nodes no more. For an all-reduce, the shares go to everybody.
 *
 * Where the sum is applied to data, that happens in phase 2, piece by piece. In phase 3 the changed data go
 * to other islands, in phase 4 ranks of the island tell each other that all is there, and their nodes are
 * free.
 *
 * With messages only, every rank is an island, and phase 1 sends nodes from where they lie. Few elements are
 * not divided: everybody sums everything, which saves a round.
 */
#include "comm/operation.h"
#include "comm/reduction.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "base/tree.h"

#include <assert.h>
#include <stdatomic.h>
#include <string.h>

/* Up to here, sending all to all is faster than a second round. */
#define EVERYTHING_BYTES 4096

#define LINE_FLOATS (TR_CACHE_LINE / (int64_t)sizeof(float))

static int64_t padded(int64_t floats)
{
    return (floats + LINE_FLOATS - 1) / LINE_FLOATS * LINE_FLOATS;
}

static int64_t share_begin(const tr_ticket *ticket, int rank)
{
    return ticket->everything ? 0 : ticket->share[rank];
}

static int64_t share_length(const tr_comm *comm, const tr_ticket *ticket, int rank)
{
    return ticket->everything ? ticket->share[comm->size] : ticket->share[rank + 1] - ticket->share[rank];
}

/* Whether we send our island's sums to a rank. */
static bool is_agent_for(const tr_comm *comm, const struct tr_reduction *reduction, int rank)
{
    return reduction->islands->of[rank] != reduction->island &&
           tr_island_agent(reduction->islands, reduction->island, rank) == comm->rank;
}

/* ---- scratch: pointers for programs, what comes from other islands, sums on their way to them ---- */

static size_t pointer_bytes(const struct tr_reduction *reduction)
{
    int most =
        reduction->root_inputs > reduction->cover_inputs ? reduction->root_inputs : reduction->cover_inputs;
    size_t bytes = (size_t)(most + reduction->covers[reduction->island]) * sizeof(float *);
    return (bytes + TR_CACHE_LINE - 1) / TR_CACHE_LINE * TR_CACHE_LINE;
}

/* Sums of the island's cover that are not simply somebody's node. */
static int formed_covers(const struct tr_reduction *reduction)
{
    int formed = 0;
    for (int i = 0; i < reduction->covers[reduction->island]; i++)
        formed += tr_program_direct(reduction->cover, i) < 0;
    return formed;
}

static size_t scratch_bytes(const tr_comm *comm, const struct tr_reduction *reduction, const int64_t *share,
                            bool everything)
{
    int64_t whole = share[comm->size], floats = 0;
    int formed = formed_covers(reduction);
    floats +=
        reduction->covers_in_all * padded(everything ? whole : share[comm->rank + 1] - share[comm->rank]);
    for (int rank = 0; rank < comm->size; rank++)
        if (is_agent_for(comm, reduction, rank))
            floats += formed * padded(everything ? whole : share[rank + 1] - share[rank]);
    return pointer_bytes(reduction) + (size_t)floats * sizeof(float);
}

static float *inbox_of(const struct tr_reduction *reduction, const tr_ticket *ticket)
{
    return (float *)(void *)(ticket->scratch + pointer_bytes(reduction));
}

/* What came from another island: its node `index`. Islands follow each other, ours left out. */
static float *remote_node(const tr_comm *comm, const tr_ticket *ticket, int island, int index)
{
    const struct tr_reduction *reduction = ticket->reduction;
    int before = index;
    for (int i = 0; i < island; i++)
        if (i != reduction->island) before += reduction->covers[i];
    return inbox_of(reduction, ticket) + before * padded(share_length(comm, ticket, comm->rank));
}

/* The nodes of a rank of our island. */
static const float *local_node(const tr_comm *comm, const tr_ticket *ticket, int rank, int index)
{
    if (rank == comm->rank) return ticket->nodes + index * ticket->stride;
    const char *part = tr_window_part(ticket->reduction->window, rank, NULL);
    return (const float *)(const void *)(part + ticket->inbox[2 * rank]) +
           index * ticket->inbox[2 * rank + 1];
}

/* Writes where the inputs of a program lie, from element `begin` of the nodes on, and counts what is read of
   others. What came from other islands is our share only. */
static void find_inputs(tr_comm *comm, const tr_ticket *ticket, const struct tr_input *input, int inputs,
                        int64_t begin, int64_t length, const float **pointer)
{
    for (int i = 0; i < inputs; i++) {
        bool remote = input[i].rank < 0;
        pointer[i] = remote ? remote_node(comm, ticket, input[i].island, input[i].index)
                            : local_node(comm, ticket, input[i].rank, input[i].index) + begin;
        if (!remote && input[i].rank != comm->rank)
            comm->statistics.bytes_shared += length * (int64_t)sizeof(float);
    }
}

/* ---- phases ---- */

/* Our nodes are ready, and lie where our place in the inbox says. */
static tr_status tell_places(tr_comm *comm, tr_ticket *ticket)
{
    const struct tr_islands *islands = ticket->reduction->islands;
    int island = ticket->reduction->island;
    int64_t *own = ticket->inbox + 2 * comm->size;
    size_t bytes = 2 * sizeof *own;
    atomic_thread_fence(memory_order_seq_cst); /* what we wrote comes before the message */
    for (int i = islands->start[island]; i < islands->start[island + 1]; i++) {
        int rank = islands->member[i];
        if (rank == comm->rank) continue;
        TR_TRY(tr_ticket_receive(comm, ticket, rank, ticket->inbox + 2 * rank, bytes, 0));
        TR_TRY(tr_ticket_send(comm, ticket, rank, own, bytes, TR_GATE_LAST));
    }
    return TR_OK;
}

static tr_status enter_ready(tr_comm *comm, tr_ticket *ticket)
{
    const struct tr_reduction *reduction = ticket->reduction;
    const struct tr_islands *islands = reduction->islands;
    if (reduction->window && reduction->nodes[comm->rank] > 0) {
        const char *part = tr_window_part(reduction->window, comm->rank, NULL);
        ticket->inbox[2 * comm->size] = (const char *)ticket->nodes - part;
        ticket->inbox[2 * comm->size + 1] = ticket->stride;
    } else {
        ticket->inbox[2 * comm->size] = ticket->inbox[2 * comm->size + 1] = 0;
    }
    TR_TRY(tell_places(comm, ticket));
    size_t bytes = (size_t)share_length(comm, ticket, comm->rank) * sizeof(float);
    if (bytes == 0) return TR_OK;
    for (int island = 0; island < islands->count; island++) {
        if (island == reduction->island) continue;
        int agent = tr_island_agent(islands, island, comm->rank);
        for (int i = 0; i < reduction->covers[island]; i++)
            TR_TRY(tr_ticket_receive(comm, ticket, agent, remote_node(comm, ticket, island, i), bytes, 1));
    }
    return TR_OK;
}

/* Whatever another rank says about its nodes must lie in its part. */
static tr_status check_neighbours(const tr_comm *comm, const tr_ticket *ticket)
{
    const struct tr_reduction *reduction = ticket->reduction;
    const struct tr_islands *islands = reduction->islands;
    for (int i = islands->start[reduction->island]; i < islands->start[reduction->island + 1]; i++) {
        int rank = islands->member[i];
        if (rank == comm->rank || reduction->nodes[rank] == 0) continue;
        size_t bytes;
        tr_window_part(reduction->window, rank, &bytes);
        int64_t most = (int64_t)bytes, offset = ticket->inbox[2 * rank], stride = ticket->inbox[2 * rank + 1],
                end;
        if (__builtin_mul_overflow(reduction->nodes[rank] - 1, stride, &end) ||
            __builtin_add_overflow(end, ticket->share[comm->size], &end) ||
            __builtin_mul_overflow(end, (int64_t)sizeof(float), &end) ||
            __builtin_add_overflow(end, offset, &end) || offset < 0 || stride < 0 || end > most)
            return tr_fail(
                TR_EMISMATCH,
                "rank %d has its nodes outside of its part of the window; all ranks must run the same "
                "program on the same job",
                rank);
    }
    return TR_OK;
}

/* Sends our island's sums for the share of one rank; those to be formed go to `formed`. `formed` moves on. */
static tr_status send_covers(tr_comm *comm, tr_ticket *ticket, int rank, float **formed)
{
    const struct tr_reduction *reduction = ticket->reduction;
    int64_t begin = share_begin(ticket, rank), length = share_length(comm, ticket, rank);
    int outputs = reduction->covers[reduction->island];
    const float **input = (const float **)(void *)ticket->scratch;
    float **output = (float **)(void *)(input + reduction->cover_inputs);
    /* Where the island is this rank alone, all is direct, and nothing is read. */
    bool forms = formed_covers(reduction) > 0;
    if (length == 0) return TR_OK;
    find_inputs(comm, ticket, reduction->cover_input, reduction->cover_inputs, begin, length, input);
    for (int i = 0; i < outputs; i++) {
        output[i] = tr_program_direct(reduction->cover, i) < 0 ? *formed : NULL;
        if (output[i]) *formed += padded(length);
    }
    if (forms) tr_program_run(reduction->cover, input, length, output);
    /* Where everybody sums everything, the sum may overwrite what is sent. */
    int gate = ticket->everything ? 1 : 2;
    for (int i = 0; i < outputs; i++) {
        const float *sum = output[i] ? output[i] : input[tr_program_direct(reduction->cover, i)];
        TR_TRY(tr_ticket_send(comm, ticket, rank, sum, (size_t)length * sizeof(float), gate));
    }
    return TR_OK;
}

static tr_status enter_send(tr_comm *comm, tr_ticket *ticket)
{
    const struct tr_reduction *reduction = ticket->reduction;
    atomic_thread_fence(memory_order_seq_cst); /* what others wrote before their message is there */
    if (reduction->window) TR_TRY(check_neighbours(comm, ticket));
    float *formed = inbox_of(reduction, ticket) +
                    reduction->covers_in_all * padded(share_length(comm, ticket, comm->rank));
    /* Beginning with the next rank, so that not all of them send to rank 0 first. */
    for (int i = 1; i < comm->size; i++) {
        int rank = (comm->rank + i) % comm->size;
        if (is_agent_for(comm, reduction, rank)) TR_TRY(send_covers(comm, ticket, rank, &formed));
    }
    return TR_OK;
}

static tr_status enter_sum(tr_comm *comm, tr_ticket *ticket)
{
    const struct tr_reduction *reduction = ticket->reduction;
    int64_t begin = share_begin(ticket, comm->rank), length = share_length(comm, ticket, comm->rank);
    const struct tr_comm_apply *apply = &ticket->apply;
    const float **input = (const float **)(void *)ticket->scratch;
    float *out = ticket->gathers ? ticket->out + begin : ticket->out;
    if (length == 0) return TR_OK;
    if (!apply->form)
        find_inputs(comm, ticket, reduction->root_input, reduction->root_inputs, begin, length, input);
    int64_t piece = apply->take ? apply->piece : length;
    for (int64_t done = 0, count; done < length; done += count) {
        count = length - done < piece ? length - done : piece;
        if (apply->form) {
            TR_TRY(apply->form(apply->user, begin + done, begin + done + count, out));
        } else {
            tr_program_run(reduction->root, input, count, &out);
            for (int i = 0; i < reduction->root_inputs; i++) input[i] += count;
        }
        if (apply->take) TR_TRY(apply->take(apply->user, begin + done, begin + done + count));
        out += count;
    }
    return TR_OK;
}

static tr_status enter_spread(tr_comm *comm, tr_ticket *ticket)
{
    const struct tr_islands *islands = ticket->window ? &comm->hosts : &comm->alone;
    return tr_ticket_spread(comm, ticket, islands, ticket->data, (int64_t)sizeof(float), 3);
}

static tr_status enter_settle(tr_comm *comm, tr_ticket *ticket)
{
    bool shares = ticket->window || ticket->reduction->window;
    return tr_ticket_notify(comm, ticket, shares ? &comm->hosts : &comm->alone, TR_GATE_LAST);
}

static tr_status enter_end(tr_comm *comm, tr_ticket *ticket)
{
    TR_TRY(tr_ticket_notify(comm, ticket, ticket->reduction->islands, TR_GATE_LAST));
    if (!ticket->gathers || ticket->everything) return TR_OK;
    for (int i = 1; i < comm->size; i++) {
        int to = (comm->rank + i) % comm->size, from = (comm->rank + comm->size - i) % comm->size;
        size_t out_bytes = (size_t)share_length(comm, ticket, comm->rank) * sizeof(float);
        size_t in_bytes = (size_t)share_length(comm, ticket, from) * sizeof(float);
        if (in_bytes)
            TR_TRY(tr_ticket_receive(comm, ticket, from, ticket->out + ticket->share[from], in_bytes,
                                     TR_GATE_LAST));
        if (out_bytes)
            TR_TRY(tr_ticket_send(comm, ticket, to, ticket->out + ticket->share[comm->rank], out_bytes,
                                  TR_GATE_LAST));
    }
    return TR_OK;
}

static tr_status enter(tr_comm *comm, tr_ticket *ticket)
{
    static tr_status (*const phase[])(tr_comm *, tr_ticket *) = {enter_ready, enter_send, enter_sum,
                                                                 enter_end};
    return phase[ticket->phase](comm, ticket);
}

static tr_status enter_applied(tr_comm *comm, tr_ticket *ticket)
{
    static tr_status (*const phase[])(tr_comm *, tr_ticket *) = {enter_ready, enter_send, enter_sum,
                                                                 enter_spread, enter_settle};
    return phase[ticket->phase](comm, ticket);
}

/* ---- starting ---- */

static int most_transfers(const tr_comm *comm, const struct tr_reduction *reduction, bool gathers)
{
    int neighbours = tr_island_size(&comm->hosts, comm->hosts.of[comm->rank]) - 1;
    int transfers = 4 * neighbours + reduction->covers_in_all;
    for (int rank = 0; rank < comm->size; rank++)
        if (is_agent_for(comm, reduction, rank)) transfers += reduction->covers[reduction->island];
    return transfers + (gathers ? 2 * (comm->size - 1) : 0);
}

static tr_status check(const tr_comm *comm, const struct tr_reduction *reduction, const float *nodes,
                       int64_t stride, const int64_t *share, const char *kind)
{
    assert(reduction->comm == comm);
    bool ascends = share[0] == 0;
    for (int i = 0; i < comm->size; i++) ascends = ascends && share[i] <= share[i + 1];
    if (!ascends)
        return tr_fail(TR_EINVAL, "%s: the shares of %d ranks must ascend from 0", kind, comm->size);
    int own = reduction->nodes[comm->rank];
    if (own == 0) return TR_OK;
    if (own > 1 && stride < share[comm->size])
        return tr_fail(TR_EINVAL, "%s: nodes of %lld elements overlap at a stride of %lld", kind,
                       (long long)share[comm->size], (long long)stride);
    if (!reduction->window) return TR_OK;
    size_t bytes;
    const char *part = tr_window_part(reduction->window, comm->rank, &bytes), *first = (const char *)nodes;
    const char *end = (const char *)(nodes + (own - 1) * stride + share[comm->size]);
    if (first < part || end > part + bytes)
        return tr_fail(TR_EINVAL, "%s: the nodes of rank %d lie outside of its part of the window", kind,
                       comm->rank);
    return TR_OK;
}

static tr_status start(tr_comm *comm, const char *kind, struct tr_reduction *reduction,
                       const tr_ticket *arguments, const int64_t *share, const char *name, tr_ticket **out)
{
    *out = NULL;
    TR_TRY(check(comm, reduction, arguments->nodes, arguments->stride, share, kind));
    TR_TRY(tr_comm_check(comm));
    tr_ticket *ticket;
    tr_status status = tr_ticket_take(
        comm, kind, name, most_transfers(comm, reduction, arguments->gathers || arguments->apply.take),
        scratch_bytes(comm, reduction, share, arguments->everything), &ticket);
    if (status != TR_OK) return tr_comm_die(comm, status); /* the others are about to wait for us */
    memcpy(ticket->share, share, ((size_t)comm->size + 1) * sizeof *share);
    ticket->reduction = reduction;
    ticket->everything = arguments->everything;
    ticket->gathers = arguments->gathers;
    ticket->nodes = arguments->nodes;
    ticket->stride = arguments->stride;
    ticket->out = arguments->out;
    ticket->enter = enter;
    ticket->last = 3;
    if (arguments->apply.take) {
        ticket->apply = arguments->apply;
        ticket->data = (char *)arguments->apply.data;
        ticket->window = arguments->apply.window;
        ticket->open = arguments->apply.open;
        ticket->held = 1;
        ticket->callers = 2; /* the sum, and what is done with it */
        ticket->enter = enter_applied;
        ticket->last = 4;
    }
    tr_ticket_number(comm, ticket);
    TR_TRY(tr_ticket_start(comm, ticket));
    *out = ticket;
    return TR_OK;
}

tr_status tr_comm_reduce_scatter(tr_comm *comm, tr_reduction *reduction, const float *nodes, int64_t stride,
                                 const int64_t *share, float *out, const char *name, tr_ticket **ticket)
{
    tr_ticket arguments = {.nodes = nodes, .stride = stride, .out = out};
    pthread_mutex_lock(&comm->lock);
    tr_status status = start(comm, "reduce-scatter", reduction, &arguments, share, name, ticket);
    pthread_mutex_unlock(&comm->lock);
    return status;
}

tr_status tr_comm_reduce_apply(tr_comm *comm, tr_reduction *reduction, const float *nodes, int64_t stride,
                               const int64_t *share, float *out, const struct tr_comm_apply *apply,
                               const char *name, tr_ticket **ticket)
{
    assert(apply->take && apply->piece >= 1);
    assert(!apply->form || (reduction->window && reduction->islands->count == 1));
    *ticket = NULL;
    tr_ticket arguments = {.nodes = nodes, .stride = stride, .out = out, .apply = *apply};
    if (apply->window &&
        !tr_window_holds(apply->window, apply->data, share[comm->size] * (int64_t)sizeof(float)))
        return tr_fail(TR_EINVAL, "reduce-apply: the data lie outside of the window");
    pthread_mutex_lock(&comm->lock);
    tr_status status = start(comm, "reduce-apply", reduction, &arguments, share, name, ticket);
    pthread_mutex_unlock(&comm->lock);
    return status;
}

tr_status tr_comm_all_reduce(tr_comm *comm, tr_reduction *reduction, const float *nodes, int64_t stride,
                             int64_t count, float *out, const char *name, tr_ticket **ticket)
{
    *ticket = NULL;
    if (count < 0) return tr_fail(TR_EINVAL, "all-reduce: %lld elements", (long long)count);
    tr_ticket arguments = {.nodes = nodes,
                           .stride = stride,
                           .out = out,
                           .gathers = true,
                           .everything = count * (int64_t)sizeof(float) <= EVERYTHING_BYTES};
    int64_t *share = tr_alloc((size_t)comm->size + 1, sizeof *share);
    if (!share) {
        tr_comm_abort(comm, "out of memory");
        return TR_ENOMEM;
    }
    int64_t lines = (count + LINE_FLOATS - 1) / LINE_FLOATS; /* shares that begin with a cache line */
    for (int i = 0; i <= comm->size; i++) {
        share[i] = tr_cut(lines, comm->size, i) * LINE_FLOATS;
        if (share[i] > count) share[i] = count;
    }
    pthread_mutex_lock(&comm->lock);
    tr_status status = start(comm, "all-reduce", reduction, &arguments, share, name, ticket);
    pthread_mutex_unlock(&comm->lock);
    tr_free(share);
    return status;
}
