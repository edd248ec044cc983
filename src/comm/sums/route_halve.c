/* Halving along the tree. Each rank derives from the ranks' bounds, and so equally, into which pieces data
 * are divided at each node, and which island has them.
 */
#include "comm/sums/route_build.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "base/numbers/tree.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* ---- who has what at a node ---- */

/* A piece at a child of a node: which island has it there, and which gets it at the node. */
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

/* From the islands that hold the pieces of a node to those of its child, whose islands are `group`:
   islands that keep a piece have it at the child already; the others' pieces are divided evenly, in the
   order of their later holders, so that few ranks exchange. */
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

/* What this rank receives of a child for which its island has no leaves. */
static tr_status receive(const struct route_builder *builder, struct tr_node child,
                         const struct holdings *list, int round)
{
    struct tr_route *route = builder->route;
    int me = builder->leaves->comm->rank, from = -1;
    for (int i = 0; i < list->count; i++) {
        const struct holding *held = &list->held[i];
        if (held->target != builder->island || route_agent(builder, held->target, held->owner) != me)
            continue;
        int sender = route_agent(builder, held->holder, held->owner);
        if (from < 0) TR_TRY(route_add_arrival(route, child));
        if (sender != from) {
            struct tr_hop hop = {.peer = sender, .round = round, .what = route->arrivals - 1};
            TR_TRY(route_add_hop(route, hop));
            from = sender;
        }
        TR_TRY(route_add_piece(route, (struct tr_piece){held->owner, held->from, held->to}));
        route->hop[route->hops - 1].count++;
        route->arrival[route->arrivals - 1].count++;
    }
    return TR_OK;
}

/* Whether this rank has a piece for another island. */
static bool gives(const struct route_builder *builder, const struct holding *held)
{
    return held->holder == builder->island && held->target != builder->island &&
           route_agent(builder, held->holder, held->owner) == builder->leaves->comm->rank;
}

/* The messages of this rank to another: one for each run of pieces that are consecutive there. */
static tr_status send_to(const struct route_builder *builder, const struct holdings *list, int to, int round)
{
    struct tr_route *route = builder->route;
    int index = 0, last = -2; /* among the pieces that it receives */
    for (int i = 0; i < list->count; i++) {
        const struct holding *held = &list->held[i];
        if (held->target == held->holder || route_agent(builder, held->target, held->owner) != to) continue;
        int at = index++;
        if (!gives(builder, held)) continue;
        if (at != last + 1) {
            struct tr_hop hop = {.peer = to, .round = round, .sends = true, .what = route->sums - 1};
            TR_TRY(route_add_hop(route, hop));
        }
        last = at;
        TR_TRY(route_add_piece(route, (struct tr_piece){held->owner, held->from, held->to}));
        route->hop[route->hops - 1].count++;
    }
    return TR_OK;
}

/* The sum of a child with leaves in this island goes to the islands that get it at the node. */
static tr_status send(const struct route_builder *builder, struct tr_node child, const struct holdings *list,
                      int round, int first_arrival)
{
    struct tr_route *route = builder->route;
    int begin = route->hops;
    for (int i = 0; i < list->count; i++) {
        const struct holding *held = &list->held[i];
        if (!gives(builder, held)) continue;
        int to = route_agent(builder, held->target, held->owner), told = begin;
        while (told < route->hops && route->hop[told].peer != to) told++;
        if (told < route->hops) continue;
        if (route->hops == begin) {
            TR_TRY(route_add_sum(route));
            TR_TRY(tr_route_plan_sum(builder->leaves, route, child, first_arrival,
                                     &route->sum[route->sums - 1]));
        }
        TR_TRY(send_to(builder, list, to, round));
    }
    return TR_OK;
}

static tr_status visit(const struct route_builder *builder, struct tr_node node, const struct holdings *list);

/* `node` is where the child's sum is needed according to `list`, in the round of that height. */
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
    int64_t middle = route_middle_of(node);
    int round = route_height_of(node) - 1;
    TR_TRY(join(builder, (struct tr_node){node.first, middle}, list, round));
    return join(builder, (struct tr_node){middle, node.last}, list, round);
}

/* Above the root, each rank has its shard. */
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
    TR_TRY_GOTO(join(&builder, root, &list, route_height_of(root)), out);
    route_sort_hops(out);
    TR_TRY_GOTO(tr_route_plan_sum(leaves, out, root, 0, &out->root), out);
out:
    tr_free(list.held);
    tr_free(builder.present);
    return status;
}
