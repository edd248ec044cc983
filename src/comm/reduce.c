/* Reduce-scatter and all-reduce along the tree. See route.h for who sends what.
 *
 * First, ranks of the island tell each other that their nodes are ready, and where. Then, round by round,
 * sums of the nodes of the island and of what came before go to other islands. When all has come, the share
 * is summed. Then the shares go to everybody, for an all-reduce; and ranks of the island tell each other that
 * they need the nodes no more.
 *
 * Where the caller changes data by the sums (tr_comm_reduce_start()), the ticket is held in the place of the
 * sum, and the caller sums. Then the changed data go to other islands, and ranks of the island tell each
 * other that all is there, and their nodes are free.
 *
 * A transport that reduces by itself does so in phase 0, and gathers by itself in the phase that is held.
 *
 * With messages only, every rank is an island. Few elements are not divided: see words.c; or, among few
 * ranks, everybody sums everything, which saves a round.
 */
#include "comm/operation.h"
#include "comm/reduction.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "base/tree.h"

#include <assert.h>
#include <stdatomic.h>
#include <string.h>

/* Up to here, data are not divided. */
#define WHOLE_BYTES 4096

#define LINE_FLOATS (TR_CACHE_LINE / (int64_t)sizeof(float))

static int64_t padded(int64_t floats)
{
    return (floats + LINE_FLOATS - 1) / LINE_FLOATS * LINE_FLOATS;
}

/* The elements of a piece of the ticket's shares. */
static void range_of(const tr_comm *comm, const tr_ticket *ticket, const struct tr_piece *piece,
                     int64_t *begin, int64_t *end)
{
    if (!ticket->everything) {
        tr_piece_range(piece, ticket->share, begin, end);
        return;
    }
    *begin = 0;
    *end = ticket->share[comm->size];
}

static int64_t length_of(const tr_comm *comm, const tr_ticket *ticket, int first, int count)
{
    int64_t length = 0;
    for (int i = first; i < first + count; i++) {
        int64_t begin, end;
        range_of(comm, ticket, &ticket->route->piece[i], &begin, &end);
        length += end - begin;
    }
    return length;
}

/* The piece that is this rank's share. */
static struct tr_piece own_share(const tr_comm *comm)
{
    return (struct tr_piece){comm->rank, 0, TR_PIECE_WHOLE};
}

/* ---- scratch: pointers for programs, places of what comes, nodes that come, sums on their way ---- */

static size_t in_lines(size_t bytes)
{
    return (bytes + TR_CACHE_LINE - 1) / TR_CACHE_LINE * TR_CACHE_LINE;
}

static size_t pointer_bytes(const struct tr_route *route)
{
    int most = route->root.inputs + 1;
    for (int i = 0; i < route->sums; i++) {
        int pointers = route->sum[i].inputs + tr_program_outputs(route->sum[i].program);
        if (pointers > most) most = pointers;
    }
    return in_lines((size_t)most * sizeof(float *));
}

/* For each piece of a node that comes, how many floats lie before it. */
static int64_t *places_of(const tr_ticket *ticket)
{
    return (int64_t *)(void *)(ticket->scratch + pointer_bytes(ticket->route));
}

static float *floats_of(const tr_ticket *ticket)
{
    size_t before = in_lines((size_t)ticket->route->pieces * sizeof(int64_t));
    return (float *)(void *)(ticket->scratch + pointer_bytes(ticket->route) + before);
}

/* Whether what is sent lies somewhere as it is, at an input of the sum's program. */
static int direct_input(const struct tr_route *route, const struct tr_hop *hop)
{
    return hop->count == 1 ? tr_program_direct(route->sum[hop->what].program, hop->output) : -1;
}

/* Floats of all that comes, with `places` or NULL for where each piece begins. */
static int64_t lay_out(const tr_comm *comm, const tr_ticket *ticket, int64_t *places)
{
    const struct tr_route *route = ticket->route;
    int64_t floats = 0;
    for (int a = 0; a < route->arrivals; a++) {
        const struct tr_arrival *arrival = &route->arrival[a];
        for (int i = arrival->first; i < arrival->first + arrival->count; i++) {
            if (places) places[i] = floats;
            floats += length_of(comm, ticket, i, 1);
        }
        floats = padded(floats);
    }
    return floats;
}

static size_t scratch_bytes(const tr_comm *comm, const tr_ticket *ticket)
{
    const struct tr_route *route = ticket->route;
    int64_t floats = lay_out(comm, ticket, NULL);
    for (int i = 0; i < route->hops; i++) {
        const struct tr_hop *hop = &route->hop[i];
        if (hop->sends && direct_input(route, hop) < 0)
            floats += padded(length_of(comm, ticket, hop->first, hop->count));
    }
    return pointer_bytes(route) + in_lines((size_t)route->pieces * sizeof(int64_t)) +
           in_lines((size_t)floats * sizeof(float));
}

/* ---- inputs of sums ---- */

/* The nodes of a rank of our island. */
static const float *local_node(const tr_comm *comm, const tr_ticket *ticket, int rank, int index)
{
    const struct tr_reduction *reduction = ticket->reduction;
    const struct tr_islands *islands = reduction->islands;
    if (rank == comm->rank) return ticket->nodes + index * ticket->stride;
    int members = tr_island_size(islands, reduction->island);
    int from = (islands->place[rank] + members - islands->place[comm->rank]) % members;
    const char *part = tr_window_part(reduction->window, rank, NULL);
    return (const float *)(const void *)(part + ticket->inbox[2 * from]) +
           index * ticket->inbox[2 * from + 1];
}

/* Where a piece begins of what came of a node; it may have come in several. */
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
    return floats_of(ticket) + places_of(ticket)[arrival->first + low];
}

/* Writes where the inputs of a sum lie, from element `skip` of a piece on. */
static void find_inputs(const tr_comm *comm, const tr_ticket *ticket, const struct tr_sum_plan *plan,
                        const struct tr_piece *piece, int64_t skip, const float **pointer)
{
    int64_t begin, end;
    range_of(comm, ticket, piece, &begin, &end);
    for (int i = 0; i < plan->inputs; i++) {
        const struct tr_input *input = &plan->input[i];
        pointer[i] = input->rank < 0 ? arrived(ticket, input->index, piece) + skip
                                     : local_node(comm, ticket, input->rank, input->index) + begin + skip;
    }
}

/* Bytes that a program reads of the nodes of others. */
static int64_t bytes_of_others(const tr_comm *comm, const struct tr_sum_plan *plan, int64_t length)
{
    int others = 0;
    for (int i = 0; i < plan->inputs; i++)
        others += plan->input[i].rank >= 0 && plan->input[i].rank != comm->rank;
    return others * length * (int64_t)sizeof(float);
}

/* ---- phases ---- */

/* All that other islands will send. */
static tr_status receive_nodes(tr_comm *comm, tr_ticket *ticket)
{
    const struct tr_route *route = ticket->route;
    int64_t *places = places_of(ticket);
    ticket->came = lay_out(comm, ticket, places);
    for (int i = 0; i < route->hops; i++) {
        const struct tr_hop *hop = &route->hop[i];
        size_t bytes = (size_t)length_of(comm, ticket, hop->first, hop->count) * sizeof(float);
        if (hop->sends || bytes == 0) continue;
        TR_TRY(tr_ticket_receive(comm, ticket, hop->peer, floats_of(ticket) + places[hop->first], bytes,
                                 ticket->sending + hop->round));
    }
    return TR_OK;
}

/* Our nodes are ready, and lie where our place in the inbox says. */
static void write_place(const tr_comm *comm, tr_ticket *ticket)
{
    const struct tr_reduction *reduction = ticket->reduction;
    ticket->inbox[0] = ticket->inbox[1] = 0;
    if (!reduction->window || !ticket->nodes || reduction->nodes[comm->rank] == 0) return;
    ticket->inbox[0] =
        (const char *)ticket->nodes - (char *)tr_window_part(reduction->window, comm->rank, NULL);
    ticket->inbox[1] = ticket->stride;
}

/* Few members tell all others; else each tells in round k what 2^k of them have said. */
static tr_status tell_places(tr_comm *comm, tr_ticket *ticket, int round)
{
    const struct tr_islands *islands = ticket->reduction->islands;
    int members = tr_island_size(islands, ticket->reduction->island), place = islands->place[comm->rank];
    const int *member = islands->member + islands->start[ticket->reduction->island];
    bool few = tr_comm_is_few(comm, members);
    atomic_thread_fence(memory_order_seq_cst); /* what we wrote comes before the message */
    for (int i = few ? 1 : 1 << round; i < members; i++) {
        int count = few ? 1 : i < members - i ? i : members - i;
        size_t bytes = 2 * (size_t)count * sizeof *ticket->inbox;
        TR_TRY(tr_ticket_receive(comm, ticket, member[(place + i) % members], ticket->inbox + 2 * i, bytes,
                                 round));
        TR_TRY(tr_ticket_send(comm, ticket, member[(place + members - i) % members], ticket->inbox, bytes,
                              TR_GATE_LAST));
        if (!few) break;
    }
    return TR_OK;
}

/* Whatever another rank says about its nodes must lie in its part. */
static tr_status check_neighbours(const tr_comm *comm, const tr_ticket *ticket)
{
    const struct tr_reduction *reduction = ticket->reduction;
    const struct tr_islands *islands = reduction->islands;
    int members = tr_island_size(islands, reduction->island), place = islands->place[comm->rank];
    for (int i = 1; i < members; i++) {
        int rank = islands->member[islands->start[reduction->island] + (place + i) % members];
        if (reduction->nodes[rank] == 0) continue;
        size_t bytes;
        tr_window_part(reduction->window, rank, &bytes);
        int64_t most = (int64_t)bytes, offset = ticket->inbox[2 * i], stride = ticket->inbox[2 * i + 1], end;
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

/* Forms what `count` messages carry, which are outputs of one sum over the same pieces, and sends them. */
static tr_status send_sums(tr_comm *comm, tr_ticket *ticket, const struct tr_hop *hop, int count)
{
    const struct tr_route *route = ticket->route;
    const struct tr_sum_plan *plan = &route->sum[hop->what];
    int64_t length = length_of(comm, ticket, hop->first, hop->count);
    const float **input = (const float **)(void *)ticket->scratch;
    float **output = (float **)(void *)(input + plan->inputs);
    float *room = floats_of(ticket) + ticket->came;
    bool forms = false;
    if (length == 0) return TR_OK;
    for (int i = 0; i < tr_program_outputs(plan->program); i++) output[i] = NULL;
    for (int i = 0; i < count; i++) {
        if (direct_input(route, &hop[i]) >= 0) continue;
        output[hop[i].output] = room + ticket->formed;
        ticket->formed += padded(length);
        forms = true;
    }
    for (int k = hop->first; k < hop->first + hop->count; k++) {
        int64_t items = length_of(comm, ticket, k, 1);
        if (items == 0) continue;
        find_inputs(comm, ticket, plan, &route->piece[k], 0, input);
        comm->statistics.bytes_shared += bytes_of_others(comm, plan, items);
        if (forms) tr_program_run(plan->program, input, items, output);
        for (int i = 0; i < count; i++)
            if (output[hop[i].output]) output[hop[i].output] += items;
    }
    /* Where everybody sums everything, the sum may overwrite what is sent. */
    int gate = ticket->everything ? ticket->summing - 1 : ticket->summing;
    for (int i = 0; i < count; i++) {
        const float *end = output[hop[i].output];
        const float *data = end ? end - length : input[direct_input(route, &hop[i])];
        TR_TRY(tr_ticket_send(comm, ticket, hop[i].peer, data, (size_t)length * sizeof(float), gate));
    }
    return TR_OK;
}

static tr_status send_round(tr_comm *comm, tr_ticket *ticket, int round)
{
    const struct tr_route *route = ticket->route;
    atomic_thread_fence(memory_order_seq_cst); /* what others wrote before their message is there */
    if (round == 0 && ticket->reduction->window) TR_TRY(check_neighbours(comm, ticket));
    for (int i = 0, next; i < route->hops; i = next) {
        const struct tr_hop *hop = &route->hop[i];
        for (next = i + 1; next < route->hops; next++) /* outputs of one sum for one rank */
            if (!hop->sends || !hop[next - i].sends || hop[next - i].first != hop->first) break;
        if (hop->round == round && hop->sends) TR_TRY(send_sums(comm, ticket, hop, next - i));
    }
    return TR_OK;
}

static void sum(const tr_comm *comm, const tr_ticket *ticket, int64_t begin, int64_t end, float *out)
{
    const struct tr_piece own = own_share(comm);
    const float **input = (const float **)(void *)ticket->scratch;
    int64_t first, last;
    range_of(comm, ticket, &own, &first, &last);
    find_inputs(comm, ticket, &ticket->route->root, &own, begin - first, input);
    tr_program_run(ticket->route->root.program, input, end - begin, &out);
}

static tr_status enter_sum(tr_comm *comm, tr_ticket *ticket)
{
    const struct tr_piece own = own_share(comm);
    int64_t begin, end;
    range_of(comm, ticket, &own, &begin, &end);
    if (begin == end) return TR_OK;
    comm->statistics.bytes_shared += bytes_of_others(comm, &ticket->route->root, end - begin);
    sum(comm, ticket, begin, end, ticket->gathers ? ticket->out + begin : ticket->out);
    return TR_OK;
}

/* Those whose ranks tell each other in the end that all is there, and nodes are free. */
static const struct tr_islands *neighbours(const tr_comm *comm, const tr_ticket *ticket)
{
    return ticket->reduction->window || ticket->window ? &comm->hosts : &comm->alone;
}

static tr_status enter(tr_comm *comm, tr_ticket *ticket)
{
    int phase = ticket->phase;
    if (phase == 0) {
        write_place(comm, ticket);
        TR_TRY(receive_nodes(comm, ticket));
    }
    if (phase < ticket->sending) return tell_places(comm, ticket, phase);
    if (phase < ticket->summing) return send_round(comm, ticket, phase - ticket->sending);
    if (phase < ticket->spreading) return enter_sum(comm, ticket);
    if (phase < ticket->notifying) return tr_ticket_spread(comm, ticket, phase - ticket->spreading, phase);
    return tr_ticket_notify(comm, ticket, neighbours(comm, ticket), phase - ticket->notifying, phase);
}

/* ---- by the transport itself ---- */

static bool is_own(const tr_comm *comm, const struct tr_reduction *reduction)
{
    return comm->class->reduce_scatter && !reduction->window;
}

static tr_status enter_own(tr_comm *comm, tr_ticket *ticket)
{
    if (ticket->phase > 0) {
        int phase = ticket->phase;
        if (phase < ticket->notifying)
            return tr_ticket_spread(comm, ticket, phase - ticket->spreading, phase);
        return tr_ticket_notify(comm, ticket, neighbours(comm, ticket), phase - ticket->notifying, phase);
    }
    ticket->sum = (struct tr_sum){.reduction = ticket->reduction,
                                  .nodes = ticket->nodes,
                                  .stride = ticket->stride,
                                  .share = ticket->share,
                                  .out = ticket->held ? (float *)(void *)ticket->scratch : ticket->out};
    return tr_ticket_reduce_scatter(comm, ticket, 0);
}

/* ---- starting ---- */

static tr_status check(const tr_comm *comm, const struct tr_reduction *reduction, const float *nodes,
                       int64_t stride, const int64_t *share, const char *kind)
{
    assert(reduction->comm == comm);
    bool ascends = share[0] == 0;
    for (int i = 0; i < comm->size; i++) ascends = ascends && share[i] <= share[i + 1];
    if (!ascends)
        return tr_fail(TR_EINVAL, "%s: the shares of %d ranks must ascend from 0", kind, comm->size);
    int own = reduction->nodes[comm->rank];
    if (own == 0 || !nodes) return TR_OK;
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

/* Halving serves data of which all have to do with about as much: elsewhere, as with servers, some would
   carry what is for others. */
static bool is_even(const tr_comm *comm, const int64_t *share)
{
    int64_t most = 0;
    for (int rank = 0; rank < comm->size; rank++)
        if (share[rank + 1] - share[rank] > most) most = share[rank + 1] - share[rank];
    return most <= 4 * (share[comm->size] / comm->size + LINE_FLOATS);
}

static const struct tr_route *choose_route(const tr_comm *comm, const struct tr_reduction *reduction,
                                           const int64_t *share, bool everything)
{
    bool tree = reduction->has_tree && !everything && is_even(comm, share) &&
                tr_route_is_long(comm, reduction->islands, share[comm->size] * (int64_t)sizeof(float));
    return tree ? &reduction->tree : &reduction->direct;
}

/* Which phases there are. */
static void plan_phases(const tr_comm *comm, tr_ticket *ticket, bool own)
{
    bool spreads = ticket->held || (ticket->gathers && !ticket->everything);
    int rounds = ticket->route->rounds > 0 ? ticket->route->rounds : 1;
    ticket->sending = own ? 0 : tr_notify_rounds(comm, ticket->reduction->islands);
    ticket->summing = own ? 1 : ticket->sending + rounds;
    /* The sum of a transport is in phase 0; that of the caller has no phase. */
    ticket->spreading = own || ticket->held ? ticket->summing : ticket->summing + 1;
    ticket->notifying = ticket->spreading + (spreads ? ticket->spread.phases : 0);
    ticket->last = ticket->notifying + tr_notify_rounds(comm, neighbours(comm, ticket)) - 1;
    if (ticket->held) ticket->held = ticket->summing;
}

/* What the caller asks for, and the size of what it takes. */
static tr_status plan(tr_comm *comm, struct tr_reduction *reduction, tr_ticket *arguments,
                      const int64_t *share, size_t *scratch, int *transfers)
{
    const struct tr_islands *to = arguments->window ? &comm->hosts : &comm->alone;
    int64_t unit = (int64_t)sizeof(float);
    arguments->reduction = reduction;
    arguments->route =
        arguments->nodes ? choose_route(comm, reduction, share, arguments->everything) : &reduction->none;
    if (arguments->held || arguments->gathers)
        TR_TRY(tr_spread_plan(comm, to, share, unit, &arguments->spread));
    arguments->share = (int64_t *)share; /* only read */
    *scratch = scratch_bytes(comm, arguments);
    size_t own = in_lines((size_t)(share[comm->rank + 1] - share[comm->rank]) * sizeof(float));
    if (is_own(comm, reduction) && *scratch < own) *scratch = own;
    arguments->spread.at = *scratch;
    *scratch += arguments->spread.scratch;
    *transfers = 1 + arguments->route->hops + arguments->spread.transfers +
                 tr_notify_transfers(comm, reduction->islands) +
                 tr_notify_transfers(comm, neighbours(comm, arguments));
    return TR_OK;
}

static tr_status start(tr_comm *comm, const char *kind, struct tr_reduction *reduction, tr_ticket *arguments,
                       const int64_t *share, const char *name, tr_ticket **out)
{
    size_t scratch;
    int transfers;
    tr_ticket *ticket;
    *out = NULL;
    TR_TRY(check(comm, reduction, arguments->nodes, arguments->stride, share, kind));
    TR_TRY(tr_comm_check(comm));
    bool own = is_own(comm, reduction) && !arguments->gathers;
    tr_status status = plan(comm, reduction, arguments, share, &scratch, &transfers);
    if (status != TR_OK) return tr_comm_die(comm, status); /* the others are about to wait for us */
    TR_TRY(tr_ticket_take_collective(comm, kind, name, transfers, scratch, &ticket));
    memcpy(ticket->share, share, ((size_t)comm->size + 1) * sizeof *share);
    ticket->reduction = reduction;
    ticket->route = arguments->route;
    ticket->spread = arguments->spread;
    ticket->everything = arguments->everything;
    ticket->gathers = arguments->gathers;
    ticket->nodes = arguments->nodes;
    ticket->stride = arguments->stride;
    ticket->out = arguments->out;
    ticket->held = arguments->held;
    ticket->data = arguments->held ? arguments->data : (char *)arguments->out;
    ticket->window = arguments->window;
    ticket->enter = own ? enter_own : enter;
    plan_phases(comm, ticket, own);
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

tr_status tr_comm_reduce_start(tr_comm *comm, tr_reduction *reduction, const float *nodes, int64_t stride,
                               const int64_t *share, float *data, tr_window *window, const char *name,
                               tr_ticket **ticket)
{
    *ticket = NULL;
    tr_ticket arguments = {
        .nodes = nodes, .stride = stride, .data = (char *)data, .window = window, .held = 1};
    if (window && !tr_window_holds(window, data, share[comm->size] * (int64_t)sizeof(float)))
        return tr_fail(TR_EINVAL, "reduce-gather: the data lie outside of the window");
    pthread_mutex_lock(&comm->lock);
    tr_status status = start(comm, "reduce-gather", reduction, &arguments, share, name, ticket);
    pthread_mutex_unlock(&comm->lock);
    return status;
}

void tr_comm_reduce_piece(tr_ticket *ticket, int64_t begin, int64_t end, float *out)
{
    const struct tr_reduction *reduction = ticket->reduction;
    const tr_comm *comm = reduction->comm;
    assert(ticket->ready && !ticket->released);
    assert(begin >= ticket->share[comm->rank] && begin <= end && end <= ticket->share[comm->rank + 1]);
    if (begin == end) return;
    if (ticket->sum.out) {
        const float *own = ticket->sum.out + (begin - ticket->share[comm->rank]);
        memcpy(out, own, (size_t)(end - begin) * sizeof *out);
        return;
    }
    ticket->taken += bytes_of_others(comm, &ticket->route->root, end - begin);
    sum(comm, ticket, begin, end, out);
}

tr_status tr_comm_reduce_gather(tr_comm *comm, tr_ticket *ticket)
{
    pthread_mutex_lock(&comm->lock);
    assert(ticket->ready && !ticket->released);
    comm->statistics.bytes_shared += ticket->taken;
    ticket->released = true;
    pthread_mutex_unlock(&comm->lock);
    return tr_comm_progress(comm);
}

tr_status tr_comm_all_reduce(tr_comm *comm, tr_reduction *reduction, const float *nodes, int64_t stride,
                             int64_t count, float *out, const char *name, tr_ticket **ticket)
{
    *ticket = NULL;
    if (count < 0) return tr_fail(TR_EINVAL, "all-reduce: %lld elements", (long long)count);
    bool whole = count * (int64_t)sizeof(float) <= WHOLE_BYTES,
         words = whole && !tr_comm_is_few(comm, comm->size);
    tr_ticket arguments = {
        .nodes = nodes, .stride = stride, .out = out, .gathers = true, .everything = whole};
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
    tr_status status = check(comm, reduction, nodes, stride, share, "all-reduce");
    if (status == TR_OK)
        status = words ? tr_comm_sum_words(comm, reduction, &arguments, count, name, ticket)
                       : start(comm, "all-reduce", reduction, &arguments, share, name, ticket);
    pthread_mutex_unlock(&comm->lock);
    tr_free(share);
    return status;
}
