/* Building routes. What follows from the ranks' bounds alone, each rank derives by itself, the same as all
 * others: the pieces into which data are divided at each node, and who has them.
 */
#include "comm/route.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "base/tree.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

bool tr_route_is_long(const tr_comm *comm, const struct tr_islands *islands, int64_t bytes)
{
    if (comm->routing != TR_ROUTING_AUTO) return comm->routing == TR_ROUTING_TREE && islands->count > 1;
    return islands->count > TR_ROUTE_FEW && bytes / comm->size < TR_ROUTE_LARGE;
}

/* ---- growing ---- */

/* An array with room for one element more than `count`; grows at powers of two. NULL: no memory. */
static void *grown(void *array, int count, size_t size)
{
    if (count & (count - 1)) return array;
    return tr_realloc(array, count > 0 ? 2 * (size_t)count : 1, size);
}

static tr_status add_piece(struct tr_route *route, struct tr_piece piece)
{
    void *room = grown(route->piece, route->pieces, sizeof piece);
    if (!room) return TR_ENOMEM;
    route->piece = room;
    route->piece[route->pieces++] = piece;
    return TR_OK;
}

static tr_status add_hop(struct tr_route *route, struct tr_hop hop)
{
    void *room = grown(route->hop, route->hops, sizeof hop);
    if (!room) return TR_ENOMEM;
    hop.first = route->pieces;
    route->hop = room;
    route->hop[route->hops++] = hop;
    if (hop.round >= route->rounds) route->rounds = hop.round + 1;
    return TR_OK;
}

static tr_status add_arrival(struct tr_route *route, struct tr_node node)
{
    void *room = grown(route->arrival, route->arrivals, sizeof *route->arrival);
    if (!room) return TR_ENOMEM;
    route->arrival = room;
    route->arrival[route->arrivals++] = (struct tr_arrival){.node = node, .first = route->pieces};
    return TR_OK;
}

static tr_status add_sum(struct tr_route *route)
{
    void *room = grown(route->sum, route->sums, sizeof *route->sum);
    if (!room) return TR_ENOMEM;
    route->sum = room;
    route->sum[route->sums++] = (struct tr_sum_plan){0};
    return TR_OK;
}

void tr_sum_plan_release(struct tr_sum_plan *sum)
{
    tr_program_destroy(&sum->program);
    tr_free(sum->input);
}

void tr_route_release(struct tr_route *route)
{
    for (int i = 0; i < route->sums; i++) tr_sum_plan_release(&route->sum[i]);
    tr_sum_plan_release(&route->root);
    tr_free(route->hop);
    tr_free(route->piece);
    tr_free(route->sum);
    tr_free(route->arrival);
    *route = (struct tr_route){0};
}

/* By rounds, else as they are: so they are in the same order on both sides. */
static int by_round(const void *left, const void *right)
{
    const struct tr_hop *a = left, *b = right;
    if (a->round != b->round) return a->round < b->round ? -1 : 1;
    return a->output < b->output ? -1 : a->output > b->output;
}

static void sort_hops(struct tr_route *route)
{
    for (int i = 0; i < route->hops; i++) route->hop[i].output = i;
    if (route->hops > 0) qsort(route->hop, (size_t)route->hops, sizeof *route->hop, by_round);
    for (int i = 0; i < route->hops; i++) route->hop[i].output = 0;
}

/* ---- who has what at a node ---- */

/* A piece at a child of a node: who has it there, and who is to have it at the node. */
struct holding {
    int owner, holder, target; /* a rank; islands */
    int64_t from, to;
};

struct holdings {
    struct holding *held;
    int count;
};

/* The islands that have leaves below a node, ascending. */
struct side {
    int *island;
    int count;
    bool ours; /* is one of them */
};

struct route_builder {
    const struct tr_leaves *leaves;
    struct tr_route *route;
    int island;    /* ours */
    bool *present; /* [islands] scratch */
};

static int64_t middle_of(struct tr_node node)
{
    int64_t left = 1;
    while (left * 2 < node.last - node.first) left *= 2;
    return node.first + left;
}

/* Levels of the tree below a node. */
static int height_of(struct tr_node node)
{
    int height = 0;
    while ((int64_t)1 << height < node.last - node.first) height++;
    return height;
}

static tr_status find_group(const struct route_builder *builder, struct tr_node node, struct side *out)
{
    const struct tr_leaves *leaves = builder->leaves;
    const struct tr_islands *islands = leaves->islands;
    *out = (struct side){.island = tr_alloc((size_t)islands->count, sizeof *out->island)};
    if (!out->island) return TR_ENOMEM;
    memset(builder->present, 0, (size_t)islands->count * sizeof *builder->present);
    for (int rank = 0; rank < leaves->comm->size; rank++)
        if (leaves->bound[rank] < leaves->bound[rank + 1] && leaves->bound[rank] < node.last &&
            leaves->bound[rank + 1] > node.first)
            builder->present[islands->of[rank]] = true;
    for (int i = 0; i < islands->count; i++)
        if (builder->present[i]) out->island[out->count++] = i;
    out->ours = builder->present[builder->island];
    return TR_OK;
}

static int compare(int64_t a, int64_t b)
{
    return a < b ? -1 : a > b;
}

static int by_owner(const void *left, const void *right)
{
    const struct holding *a = left, *b = right;
    return a->owner != b->owner ? compare(a->owner, b->owner) : compare(a->from, b->from);
}

static int by_target(const void *left, const void *right)
{
    const struct holding *a = left, *b = right;
    return a->target != b->target ? compare(a->target, b->target) : by_owner(left, right);
}

static bool is_in(const struct side *group, int island)
{
    int low = 0, high = group->count;
    while (low < high) {
        int middle = (low + high) / 2;
        if (group->island[middle] < island)
            low = middle + 1;
        else
            high = middle;
    }
    return low < group->count && group->island[low] == island;
}

/* From who has what at a node to who has it at a child, whose islands are `group`: those that keep a piece
   have it there already; the others' pieces are dealt out evenly, in the order of who will have them, so that
   few ranks meet. */
static tr_status deal(const struct holdings *node, const struct side *group, struct holdings *out)
{
    *out = (struct holdings){.held = tr_alloc((size_t)(node->count + group->count), sizeof *out->held)};
    struct holding *foreign = tr_alloc((size_t)node->count + 1, sizeof *foreign);
    if (!out->held || !foreign) {
        tr_free(foreign);
        return TR_ENOMEM;
    }
    int count = 0;
    int64_t all = 0, at = 0;
    for (int i = 0; i < node->count; i++) {
        struct holding held = node->held[i];
        held.target = held.holder;
        if (is_in(group, held.holder)) {
            out->held[out->count++] = held;
        } else {
            foreign[count++] = held;
            all += held.to - held.from;
        }
    }
    if (count > 0) qsort(foreign, (size_t)count, sizeof *foreign, by_target);
    for (int i = 0, member = 0; i < count; i++) {
        for (struct holding rest = foreign[i]; rest.from < rest.to;) {
            int64_t end;
            while ((end = tr_cut(all, group->count, member + 1)) <= at) member++;
            struct holding held = rest;
            held.holder = group->island[member];
            if (held.to - held.from > end - at) held.to = held.from + (end - at);
            at += held.to - held.from;
            rest.from = held.to;
            assert(out->count < node->count + group->count);
            out->held[out->count++] = held;
        }
    }
    if (out->count > 0) qsort(out->held, (size_t)out->count, sizeof *out->held, by_owner);
    tr_free(foreign);
    return TR_OK;
}

/* ---- messages between the members of islands ---- */

static int agent(const struct route_builder *builder, int island, int owner)
{
    return tr_island_agent(builder->leaves->islands, island, owner);
}

/* What comes to this rank of a child that its island has no leaves of. */
static tr_status receive(const struct route_builder *builder, struct tr_node child,
                         const struct holdings *list, int round)
{
    struct tr_route *route = builder->route;
    int me = builder->leaves->comm->rank, from = -1;
    for (int i = 0; i < list->count; i++) {
        const struct holding *held = &list->held[i];
        if (held->target != builder->island || agent(builder, held->target, held->owner) != me) continue;
        int sender = agent(builder, held->holder, held->owner);
        if (from < 0) TR_TRY(add_arrival(route, child));
        if (sender != from) {
            struct tr_hop hop = {.peer = sender, .round = round, .what = route->arrivals - 1};
            TR_TRY(add_hop(route, hop));
            from = sender;
        }
        TR_TRY(add_piece(route, (struct tr_piece){held->owner, held->from, held->to}));
        route->hop[route->hops - 1].count++;
        route->arrival[route->arrivals - 1].count++;
    }
    return TR_OK;
}

/* Whether this rank has a piece that another island is to get. */
static bool gives(const struct route_builder *builder, const struct holding *held)
{
    return held->holder == builder->island && held->target != builder->island &&
           agent(builder, held->holder, held->owner) == builder->leaves->comm->rank;
}

/* What this rank sends to one other: a message for each run of pieces that lie together there. */
static tr_status send_to(const struct route_builder *builder, const struct holdings *list, int to, int round)
{
    struct tr_route *route = builder->route;
    int place = 0, last = -2; /* among the pieces that come to it */
    for (int i = 0; i < list->count; i++) {
        const struct holding *held = &list->held[i];
        if (held->target == held->holder || agent(builder, held->target, held->owner) != to) continue;
        int at = place++;
        if (!gives(builder, held)) continue;
        if (at != last + 1) {
            struct tr_hop hop = {.peer = to, .round = round, .sends = true, .what = route->sums - 1};
            TR_TRY(add_hop(route, hop));
        }
        last = at;
        TR_TRY(add_piece(route, (struct tr_piece){held->owner, held->from, held->to}));
        route->hop[route->hops - 1].count++;
    }
    return TR_OK;
}

/* The sum of a child that its island has leaves of goes to those who are to have it at the node. */
static tr_status send(const struct route_builder *builder, struct tr_node child, const struct holdings *list,
                      int round, int first_arrival)
{
    struct tr_route *route = builder->route;
    int begin = route->hops;
    for (int i = 0; i < list->count; i++) {
        const struct holding *held = &list->held[i];
        if (!gives(builder, held)) continue;
        int to = agent(builder, held->target, held->owner), told = begin;
        while (told < route->hops && route->hop[told].peer != to) told++;
        if (told < route->hops) continue;
        if (route->hops == begin) {
            TR_TRY(add_sum(route));
            TR_TRY(tr_route_plan_sum(builder->leaves, route, child, first_arrival,
                                     &route->sum[route->sums - 1]));
        }
        TR_TRY(send_to(builder, list, to, round));
    }
    return TR_OK;
}

static tr_status visit(const struct route_builder *builder, struct tr_node node, const struct holdings *list);

/* `node` is where the child's sum is wanted as `list` says, in the round of that height. */
static tr_status join(const struct route_builder *builder, struct tr_node child, const struct holdings *node,
                      int round)
{
    struct side group;
    struct holdings list = {0};
    int first_arrival = builder->route->arrivals;
    tr_status status;
    TR_TRY_GOTO(find_group(builder, child, &group), out);
    TR_TRY_GOTO(deal(node, &group, &list), out);
    if (group.ours && group.count > 1) TR_TRY_GOTO(visit(builder, child, &list), out);
    TR_TRY_GOTO(group.ours ? send(builder, child, &list, round, first_arrival)
                           : receive(builder, child, &list, round),
                out);
out:
    tr_free(group.island);
    tr_free(list.held);
    return status;
}

/* Messages at a node, and below it. */
static tr_status visit(const struct route_builder *builder, struct tr_node node, const struct holdings *list)
{
    int64_t middle = middle_of(node);
    int round = height_of(node) - 1;
    TR_TRY(join(builder, (struct tr_node){node.first, middle}, list, round));
    return join(builder, (struct tr_node){middle, node.last}, list, round);
}

/* Above the root, everybody has his share. */
static tr_status begin_list(const struct tr_leaves *leaves, struct holdings *out)
{
    *out = (struct holdings){.held = tr_alloc((size_t)leaves->comm->size, sizeof *out->held)};
    if (!out->held) return TR_ENOMEM;
    for (int rank = 0; rank < leaves->comm->size; rank++)
        out->held[out->count++] =
            (struct holding){.owner = rank, .holder = leaves->islands->of[rank], .to = TR_PIECE_WHOLE};
    return TR_OK;
}

tr_status tr_route_halve(const struct tr_leaves *leaves, struct tr_route *out)
{
    struct route_builder builder = {.leaves = leaves, .route = out};
    struct tr_node root = {0, leaves->count};
    struct holdings list;
    tr_status status;
    *out = (struct tr_route){0};
    builder.island = leaves->islands->of[leaves->comm->rank];
    builder.present = tr_alloc((size_t)leaves->islands->count, sizeof *builder.present);
    TR_TRY_GOTO(begin_list(leaves, &list), out);
    if (!builder.present) {
        status = TR_ENOMEM;
        goto out;
    }
    TR_TRY_GOTO(join(&builder, root, &list, height_of(root)), out);
    sort_hops(out);
    TR_TRY_GOTO(tr_route_plan_sum(leaves, out, root, 0, &out->root), out);
out:
    tr_free(list.held);
    tr_free(builder.present);
    return status;
}

/* ---- everybody to everybody ---- */

/* The nodes that another island sends, for the share of this rank. */
static tr_status receive_covers(const struct tr_leaves *leaves, int island, struct tr_route *route)
{
    struct tr_sum_plan cover = {0};
    const tr_comm *comm = leaves->comm;
    tr_status status = tr_route_plan_cover(leaves, island, &cover);
    int nodes = status == TR_OK ? tr_program_outputs(cover.program) : 0;
    for (int i = 0; i < nodes && status == TR_OK; i++) {
        struct tr_hop hop = {.peer = tr_island_agent(leaves->islands, island, comm->rank),
                             .count = 1,
                             .what = route->arrivals};
        status = add_arrival(route, tr_program_output(cover.program, i));
        if (status == TR_OK) status = add_hop(route, hop);
        if (status == TR_OK) status = add_piece(route, (struct tr_piece){comm->rank, 0, TR_PIECE_WHOLE});
        if (status == TR_OK) route->arrival[route->arrivals - 1].count = 1;
    }
    tr_sum_plan_release(&cover);
    return status;
}

/* The nodes of our island go to a rank elsewhere. */
static tr_status send_covers(int to, struct tr_route *route)
{
    int nodes = tr_program_outputs(route->sum->program);
    for (int i = 0; i < nodes; i++)
        TR_TRY(add_hop(route, (struct tr_hop){.peer = to, .sends = true, .count = 1, .output = i}));
    return add_piece(route, (struct tr_piece){to, 0, TR_PIECE_WHOLE});
}

tr_status tr_route_direct_sums(const struct tr_leaves *leaves, struct tr_route *out)
{
    const struct tr_islands *islands = leaves->islands;
    const tr_comm *comm = leaves->comm;
    int own = islands->of[comm->rank];
    *out = (struct tr_route){0};
    TR_TRY(add_sum(out));
    TR_TRY(tr_route_plan_cover(leaves, own, out->sum));
    for (int island = 0; island < islands->count; island++)
        if (island != own) TR_TRY(receive_covers(leaves, island, out));
    /* Beginning with the next rank, so that not all of them send to rank 0 first. */
    for (int i = 1; i < comm->size; i++) {
        int rank = (comm->rank + i) % comm->size;
        if (islands->of[rank] != own && tr_island_agent(islands, own, rank) == comm->rank)
            TR_TRY(send_covers(rank, out));
    }
    return tr_route_plan_sum(leaves, out, (struct tr_node){0, leaves->count}, 0, &out->root);
}

/* ---- doubling ---- */

/* The pieces that go from a side of islands [first, end) to an island, `part` of `parts`, as far as this rank
   has to do with them: a message for each pair of members. `whole`: of all shares of that side. */
static tr_status carry(const struct route_builder *builder, int first, int end, int part, int parts, int from,
                       int to, int round)
{
    const struct tr_islands *islands = builder->leaves->islands;
    const tr_comm *comm = builder->leaves->comm;
    bool sends = from == builder->island;
    int64_t shares = islands->start[end] - islands->start[first];
    int64_t begin = tr_cut(shares * TR_PIECE_WHOLE, parts, part),
            stop = tr_cut(shares * TR_PIECE_WHOLE, parts, part + 1);
    struct tr_route *route = builder->route;
    int other = sends ? to : from;
    /* By the members on the other side, so that each message's pieces lie together in the list. */
    for (int m = islands->start[other]; m < islands->start[other + 1]; m++) {
        int peer = islands->member[m], hops = route->hops;
        int64_t at = 0;
        for (int i = islands->start[first]; i < islands->start[end]; i++, at += TR_PIECE_WHOLE) {
            int owner = islands->member[i];
            int64_t low = begin > at ? begin - at : 0, high = stop - at;
            if (high > TR_PIECE_WHOLE) high = TR_PIECE_WHOLE;
            if (low >= high || agent(builder, builder->island, owner) != comm->rank ||
                agent(builder, other, owner) != peer)
                continue;
            if (route->hops == hops)
                TR_TRY(add_hop(route, (struct tr_hop){.peer = peer, .round = round, .sends = sends}));
            TR_TRY(add_piece(route, (struct tr_piece){owner, low, high}));
            route->hop[route->hops - 1].count++;
        }
    }
    return TR_OK;
}

/* Between the sides [first, middle) and [middle, end) of islands, of which the left is not the smaller: an
   island on the left gets all of the right from one there; one on the right gets all of the left, in parts,
   from those that it sends to. */
static tr_status meet(const struct route_builder *builder, int first, int middle, int end, int round)
{
    int right = end - middle, us = builder->island;
    bool left = us < middle;
    for (int i = left ? us : first + (us - middle); i < middle; i += right) {
        int partner = middle + (i - first) % right, part = (i - first) / right;
        int parts = (middle - first - (i - first) % right + right - 1) / right;
        /* Both in one order on both sides. */
        TR_TRY(carry(builder, first, middle, part, parts, i, partner, round));
        TR_TRY(carry(builder, middle, end, 0, 1, partner, i, round));
        if (left) break;
    }
    return TR_OK;
}

tr_status tr_route_double(const tr_comm *comm, const struct tr_islands *islands, struct tr_route *out)
{
    struct tr_leaves leaves = {.comm = comm, .islands = islands};
    struct route_builder builder = {.leaves = &leaves, .route = out, .island = islands->of[comm->rank]};
    struct tr_node node = {0, islands->count};
    *out = (struct tr_route){0};
    while (node.last - node.first > 1) {
        int64_t middle = middle_of(node);
        TR_TRY(meet(&builder, (int)node.first, (int)middle, (int)node.last, height_of(node) - 1));
        if (builder.island < middle)
            node.last = middle;
        else
            node.first = middle;
    }
    sort_hops(out);
    return TR_OK;
}

/* ---- words ---- */

/* Along a binomial tree: item i tells i without its lowest bit. */
static int binomial_children(int item, int items, int *child)
{
    int count = 0;
    for (int step = 1; item + step < items && !(item & step); step *= 2) child[count++] = item + step;
    return count;
}

int tr_spanning_parent(const tr_comm *comm, int rank)
{
    const struct tr_islands *hosts = &comm->hosts;
    int host = hosts->of[rank], place = hosts->place[rank];
    if (place > 0) return hosts->member[hosts->start[host] + (place & (place - 1))];
    return host > 0 ? hosts->member[hosts->start[host & (host - 1)]] : -1;
}

int tr_spanning_children(const tr_comm *comm, int rank, int *child)
{
    const struct tr_islands *hosts = &comm->hosts;
    int host = hosts->of[rank];
    int count = binomial_children(hosts->place[rank], tr_island_size(hosts, host), child);
    for (int i = 0; i < count; i++) child[i] = hosts->member[hosts->start[host] + child[i]];
    if (hosts->place[rank] > 0) return count;
    int all = count + binomial_children(host, hosts->count, child + count);
    for (int i = count; i < all; i++) child[i] = hosts->member[hosts->start[child[i]]];
    return all;
}
