/* Reduce-scatter and all-reduce along the tree. See route.h for the messages.
 *
 * First, ranks of the island tell each other that their nodes are ready, and where. Then, round by round,
 * sums of the island's nodes and of earlier arrivals go to other islands. When all have arrived, the shard
 * is summed. For an all-reduce the shards then go to all ranks; and ranks of the island notify each other
 * that they no longer need the nodes.
 *
 * Where the caller changes data by the sums (tr_comm_reduce_start()), the ticket pauses at that point, and
 * the caller sums. Then the changed data go to other islands, and ranks of the island notify each other
 * that all have arrived, and nodes are free.
 *
 * A transport that reduces by itself does so in phase 0, and gathers by itself in the phase that is held.
 *
 * With messages only, every rank is an island. Few elements are not divided: see words.c; or, among few
 * ranks, each sums everything, which saves a round.
 */
#include "comm/sums/reduce_internal.h"

#include "base/fail.h"

#include <stdatomic.h>
#include <string.h>

/* ---- phases ---- */

/* Receives all nodes that other islands send. */
static tr_status receive_nodes(tr_comm *comm, tr_ticket *ticket)
{
    const struct tr_route *route = ticket->route;
    int64_t *offsets = reduce_offsets(ticket);
    ticket->came = reduce_lay_out(comm, ticket, offsets);
    for (int i = 0; i < route->hops; i++) {
        const struct tr_hop *hop = &route->hop[i];
        size_t bytes = (size_t)reduce_length(comm, ticket, hop->first, hop->count) * sizeof(float);
        if (hop->sends || bytes == 0) continue;
        TR_TRY(tr_ticket_receive(comm, ticket, hop->peer, reduce_floats(ticket) + offsets[hop->first], bytes,
                                 ticket->sending + hop->round));
    }
    return TR_OK;
}

/* Where nodes lie in the segment of their rank: offset and stride. Invalid strides with a meaning: */
enum { NO_NODES = -1, DIFFERENT = -2 };

static bool brings_nodes(const tr_comm *comm, const tr_ticket *ticket)
{
    const struct tr_reduction *reduction = ticket->reduction;
    return reduction->window && ticket->nodes && reduction->nodes[comm->rank] > 0;
}

/* Writes that our nodes are ready, and their offset. */
static void write_offset(const tr_comm *comm, tr_ticket *ticket)
{
    const struct tr_reduction *reduction = ticket->reduction;
    ticket->inbox[0] = ticket->inbox[1] = 0;
    if (!brings_nodes(comm, ticket)) return;
    ticket->inbox[0] =
        (const char *)ticket->nodes - (char *)tr_window_segment(reduction->window, comm->rank, NULL);
    ticket->inbox[1] = ticket->stride;
}

/* The common offset that this rank sent in a round, and the one it received. */
static int64_t *sent_in(const tr_ticket *ticket, int round)
{
    return ticket->inbox + 2 * ticket->offsets + 4 * round;
}

static int64_t *came_in(const tr_ticket *ticket, int round)
{
    return sent_in(ticket, round) + 2;
}

/* Merges an offset with another; a rank without nodes agrees with any. */
static void join_offset(int64_t offset[2], const int64_t other[2])
{
    if (other[1] == NO_NODES) return;
    if (offset[1] == NO_NODES)
        memcpy(offset, other, 2 * sizeof *offset);
    else if (offset[0] != other[0] || offset[1] != other[1])
        offset[1] = DIFFERENT;
}

static int members_of(const tr_ticket *ticket)
{
    return tr_island_size(ticket->reduction->islands, ticket->reduction->island);
}

/* The member `distance` after this rank, cyclically. */
static int member_at(const tr_comm *comm, const tr_ticket *ticket, int distance)
{
    const struct tr_islands *islands = ticket->reduction->islands;
    int members = members_of(ticket), index = islands->index[comm->rank];
    return islands
        ->member[islands->start[ticket->reduction->island] + (index + distance + members) % members];
}

/* In round k each notifies 2^k members more where nodes lie, as long as all known offsets agree. */
static tr_status tell_common_offset(tr_comm *comm, tr_ticket *ticket, int round)
{
    int64_t *sent = sent_in(ticket, round);
    size_t bytes = 2 * sizeof *sent;
    memcpy(sent, round > 0 ? sent_in(ticket, round - 1) : ticket->inbox, bytes);
    if (round == 0 && !brings_nodes(comm, ticket)) sent[1] = NO_NODES;
    if (round > 0) join_offset(sent, came_in(ticket, round - 1));
    atomic_thread_fence(memory_order_seq_cst); /* our writes come before the message */
    TR_TRY(tr_ticket_receive(comm, ticket, member_at(comm, ticket, 1 << round), came_in(ticket, round), bytes,
                             round));
    return tr_ticket_send(comm, ticket, member_at(comm, ticket, -(1 << round)), sent, bytes, TR_GATE_LAST);
}

/* After all rounds: whether all nodes have the same offset; then writes it to the inbox for all. */
static bool have_common_offset(tr_ticket *ticket, int rounds)
{
    int64_t offset[2];
    memcpy(offset, sent_in(ticket, rounds - 1), sizeof offset);
    join_offset(offset, came_in(ticket, rounds - 1));
    if (offset[1] == DIFFERENT) return false;
    if (offset[1] == NO_NODES) offset[0] = offset[1] = 0;
    for (int i = 1; i < members_of(ticket); i++) memcpy(ticket->inbox + 2 * i, offset, sizeof offset);
    return true;
}

/* Few members notify all others; else each passes on in round k the offsets of 2^k of them. */
static tr_status tell_all_offsets(tr_comm *comm, tr_ticket *ticket, int round)
{
    int members = members_of(ticket);
    bool few = tr_comm_is_few(comm, members);
    atomic_thread_fence(memory_order_seq_cst); /* our writes come before the message */
    for (int i = few ? 1 : 1 << round; i < members; i++) {
        int count = few ? 1 : i < members - i ? i : members - i;
        size_t bytes = 2 * (size_t)count * sizeof *ticket->inbox;
        TR_TRY(tr_ticket_receive(comm, ticket, member_at(comm, ticket, i), ticket->inbox + 2 * i, bytes,
                                 ticket->phase));
        TR_TRY(tr_ticket_send(comm, ticket, member_at(comm, ticket, -i), ticket->inbox, bytes, TR_GATE_LAST));
        if (!few) break;
    }
    return TR_OK;
}

/* Many members find out by messages of constant size whether all nodes have the same offset; only if not,
   each sends all offsets that it knows. */
static tr_status tell_offsets(tr_comm *comm, tr_ticket *ticket, int phase)
{
    if (tr_comm_is_few(comm, members_of(ticket))) return tell_all_offsets(comm, ticket, phase);
    int rounds = ticket->sending / 2;
    if (phase < rounds) return tell_common_offset(comm, ticket, phase);
    if (have_common_offset(ticket, rounds)) return TR_OK;
    return tell_all_offsets(comm, ticket, phase - rounds);
}

/* Offsets that other ranks announce must lie in their segments. */
static tr_status check_neighbours(const tr_comm *comm, const tr_ticket *ticket)
{
    const struct tr_reduction *reduction = ticket->reduction;
    const struct tr_islands *islands = reduction->islands;
    int members = tr_island_size(islands, reduction->island), index = islands->index[comm->rank];
    for (int i = 1; i < members; i++) {
        int rank = islands->member[islands->start[reduction->island] + (index + i) % members];
        if (reduction->nodes[rank] == 0) continue;
        size_t bytes;
        tr_window_segment(reduction->window, rank, &bytes);
        int64_t most = (int64_t)bytes, offset = ticket->inbox[2 * i], stride = ticket->inbox[2 * i + 1], end;
        if (__builtin_mul_overflow(reduction->nodes[rank] - 1, stride, &end) ||
            __builtin_add_overflow(end, ticket->shard[comm->size], &end) ||
            __builtin_mul_overflow(end, (int64_t)sizeof(float), &end) ||
            __builtin_add_overflow(end, offset, &end) || offset < 0 || stride < 0 || end > most)
            return tr_fail(
                TR_EMISMATCH,
                "rank %d has its nodes outside of its segment of the window; all ranks must run the same "
                "program on the same job",
                rank);
    }
    return TR_OK;
}

static void tell_of_others(const tr_comm *comm, const struct tr_sum_plan *plan, int64_t items)
{
    tr_program_moved(0, reduce_bytes_of_others(comm, plan, items) / (int64_t)sizeof(float));
}

/* Computes the contents of `count` messages, which are outputs of one sum over the same pieces, and sends
   them. */
static tr_status send_sums(tr_comm *comm, tr_ticket *ticket, const struct tr_hop *hop, int count)
{
    const struct tr_route *route = ticket->route;
    const struct tr_sum_plan *plan = &route->sum[hop->what];
    int64_t length = reduce_length(comm, ticket, hop->first, hop->count);
    const float **input = (const float **)(void *)ticket->scratch;
    float **output = (float **)(void *)(input + plan->inputs);
    float *room = reduce_floats(ticket) + ticket->came;
    bool forms = false;
    if (length == 0) return TR_OK;
    for (int i = 0; i < tr_program_outputs(plan->program); i++) output[i] = NULL;
    for (int i = 0; i < count; i++) {
        if (reduce_direct_input(route, &hop[i]) >= 0) continue;
        output[hop[i].output] = room + ticket->formed;
        ticket->formed += reduce_padded(length);
        forms = true;
    }
    for (int k = hop->first; k < hop->first + hop->count; k++) {
        int64_t items = reduce_length(comm, ticket, k, 1);
        if (items == 0) continue;
        reduce_find_inputs(comm, ticket, plan, &route->piece[k], 0, input);
        comm->statistics.bytes_shared += reduce_bytes_of_others(comm, plan, items);
        if (forms) {
            tr_program_run(plan->program, input, items, output);
            tell_of_others(comm, plan, items);
        }
        for (int i = 0; i < count; i++)
            if (output[hop[i].output]) output[hop[i].output] += items;
    }
    /* Where every rank sums everything, the sum may overwrite sent data. */
    int gate = ticket->everything ? ticket->summing - 1 : ticket->summing;
    for (int i = 0; i < count; i++) {
        const float *end = output[hop[i].output];
        const float *data = end ? end - length : input[reduce_direct_input(route, &hop[i])];
        TR_TRY(tr_ticket_send(comm, ticket, hop[i].peer, data, (size_t)length * sizeof(float), gate));
    }
    return TR_OK;
}

static tr_status send_round(tr_comm *comm, tr_ticket *ticket, int round)
{
    const struct tr_route *route = ticket->route;
    atomic_thread_fence(memory_order_seq_cst); /* others' writes before their message are visible */
    if (round == 0 && ticket->reduction->window) TR_TRY(check_neighbours(comm, ticket));
    for (int i = 0, next; i < route->hops; i = next) {
        const struct tr_hop *hop = &route->hop[i];
        for (next = i + 1; next < route->hops; next++) /* outputs of one sum for one rank */
            if (!hop->sends || !hop[next - i].sends || hop[next - i].first != hop->first) break;
        if (hop->round == round && hop->sends) TR_TRY(send_sums(comm, ticket, hop, next - i));
    }
    return TR_OK;
}

void reduce_sum(const tr_comm *comm, const tr_ticket *ticket, int64_t begin, int64_t end, float *out)
{
    const struct tr_piece own = reduce_own_shard(comm);
    const float **input = (const float **)(void *)ticket->scratch;
    int64_t first, last;
    reduce_range(comm, ticket, &own, &first, &last);
    reduce_find_inputs(comm, ticket, &ticket->route->root, &own, begin - first, input);
    tr_program_run(ticket->route->root.program, input, end - begin, &out);
    tell_of_others(comm, &ticket->route->root, end - begin);
}

static tr_status enter_sum(tr_comm *comm, tr_ticket *ticket)
{
    const struct tr_piece own = reduce_own_shard(comm);
    int64_t begin, end;
    reduce_range(comm, ticket, &own, &begin, &end);
    if (begin == end) return TR_OK;
    comm->statistics.bytes_shared += reduce_bytes_of_others(comm, &ticket->route->root, end - begin);
    reduce_sum(comm, ticket, begin, end, ticket->gathers ? ticket->out + begin : ticket->out);
    return TR_OK;
}

const struct tr_islands *reduce_neighbours(const tr_comm *comm, const tr_ticket *ticket)
{
    return ticket->reduction->window || ticket->window ? &comm->hosts : &comm->alone;
}

tr_status reduce_enter(tr_comm *comm, tr_ticket *ticket)
{
    int phase = ticket->phase;
    if (phase == 0) {
        write_offset(comm, ticket);
        TR_TRY(receive_nodes(comm, ticket));
    }
    ticket->numbers = phase >= ticket->sending; /* before that, ranks exchange offsets */
    if (phase < ticket->sending) return tell_offsets(comm, ticket, phase);
    if (phase < ticket->summing) return send_round(comm, ticket, phase - ticket->sending);
    if (phase < ticket->spreading) return enter_sum(comm, ticket);
    if (phase < ticket->notifying) return tr_ticket_spread(comm, ticket, phase - ticket->spreading, phase);
    return tr_ticket_notify(comm, ticket, reduce_neighbours(comm, ticket), phase - ticket->notifying, phase);
}

/* ---- by the transport itself ---- */

bool reduce_is_own(const tr_comm *comm, const struct tr_reduction *reduction)
{
    return comm->class->reduce_scatter && !reduction->window;
}

tr_status reduce_enter_own(tr_comm *comm, tr_ticket *ticket)
{
    if (ticket->phase > 0) {
        int phase = ticket->phase;
        if (phase < ticket->notifying)
            return tr_ticket_spread(comm, ticket, phase - ticket->spreading, phase);
        return tr_ticket_notify(comm, ticket, reduce_neighbours(comm, ticket), phase - ticket->notifying,
                                phase);
    }
    ticket->sum = (struct tr_sum){.reduction = ticket->reduction,
                                  .nodes = ticket->nodes,
                                  .stride = ticket->stride,
                                  .shard = ticket->shard,
                                  .out = ticket->held ? (float *)(void *)ticket->scratch : ticket->out};
    return tr_ticket_reduce_scatter(comm, ticket, 0);
}
