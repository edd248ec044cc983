/* Making plans of reductions. */
#include "comm/sums/reduction.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "base/numbers/tree.h"

#include <assert.h>
#include <inttypes.h>
#include <stdbool.h>

static tr_status plan_trunk(const struct tr_leaves *leaves, struct tr_trunk *trunk)
{
    trunk->children = tr_spanning_children(leaves->comm, leaves->comm->rank, trunk->child);
    TR_TRY(tr_route_plan_trunk(leaves, trunk->child, trunk->children, trunk->nodes, &trunk->sum));
    for (int i = 0; i < trunk->children; i++) trunk->arrivals += trunk->nodes[i];
    return TR_OK;
}

static tr_status plan(struct tr_reduction *reduction, int64_t leaves, const int64_t *bound)
{
    const tr_comm *comm = reduction->comm;
    const struct tr_leaves all = {
        .comm = comm, .islands = reduction->islands, .count = leaves, .bound = bound};
    for (int rank = 0; rank < comm->size; rank++) {
        int64_t cut[2 * TR_TREE_DEPTH + 1];
        reduction->nodes[rank] = tr_tree_cover(leaves, bound[rank], bound[rank + 1], cut);
    }
    TR_TRY(tr_route_direct_sums(&all, &reduction->direct));
    TR_TRY(plan_trunk(&all, &reduction->trunk));
    reduction->has_tree = tr_route_is_long(comm, reduction->islands, 0);
    return reduction->has_tree ? tr_route_halve(&all, &reduction->tree) : TR_OK;
}

static tr_status check(const tr_comm *comm, int64_t leaves, const int64_t *bound)
{
    if (leaves < 1 || leaves > INT32_MAX)
        return tr_fail(TR_EINVAL, "reduction: %" PRId64 " leaves; choose 1 to %d", leaves, INT32_MAX);
    bool ascends = bound[0] == 0 && bound[comm->size] == leaves;
    for (int i = 0; i < comm->size; i++) ascends = ascends && bound[i] <= bound[i + 1];
    if (!ascends)
        return tr_fail(TR_EINVAL, "reduction: the bounds of %d ranks must ascend from 0 to %" PRId64,
                       comm->size, leaves);
    return TR_OK;
}

tr_status tr_reduction_create(tr_comm *comm, int64_t leaves, const int64_t *bound, tr_window *window,
                              tr_reduction **out)
{
    *out = NULL;
    TR_TRY(check(comm, leaves, bound));
    struct tr_reduction *reduction = tr_alloc_zero(1, sizeof *reduction);
    if (!reduction) return TR_ENOMEM;
    *reduction = (struct tr_reduction){
        .comm = comm, .window = window, .islands = window ? &comm->hosts : &comm->alone};
    reduction->island = reduction->islands->of[comm->rank];
    reduction->nodes = tr_alloc_zero((size_t)comm->size, sizeof *reduction->nodes);
    tr_status status = reduction->nodes ? plan(reduction, leaves, bound) : TR_ENOMEM;
    *out = reduction;
    if (status != TR_OK) tr_reduction_destroy(out);
    return status;
}

void tr_reduction_destroy(tr_reduction **handle)
{
    struct tr_reduction *reduction = *handle;
    if (!reduction) return;
    tr_route_release(&reduction->direct);
    tr_route_release(&reduction->tree);
    tr_sum_plan_release(&reduction->trunk.sum);
    tr_free(reduction->nodes);
    tr_free(reduction);
    *handle = NULL;
}

int tr_reduction_nodes(const tr_reduction *reduction, int rank)
{
    assert(rank >= 0 && rank < reduction->comm->size);
    return reduction->nodes[rank];
}
