/* Making plans of reductions. */
#include "comm/reduction.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "base/tree.h"

#include <assert.h>
#include <inttypes.h>
#include <stdbool.h>

/* Nodes with what they are, ascending. */
struct list {
    struct tr_node *node;
    struct tr_input *input;
    int count, capacity;
};

static tr_status make_list(struct list *list, int capacity)
{
    *list = (struct list){.capacity = capacity};
    list->node = tr_alloc((size_t)capacity, sizeof *list->node);
    list->input = tr_alloc((size_t)capacity, sizeof *list->input);
    return list->node && list->input ? TR_OK : TR_ENOMEM;
}

static void free_list(struct list *list)
{
    tr_free(list->node);
    tr_free(list->input);
}

/* Inserts in order of the leaves. */
static void insert(struct list *list, struct tr_node node, struct tr_input input)
{
    assert(list->count < list->capacity);
    int at = list->count++;
    for (; at > 0 && list->node[at - 1].first > node.first; at--) {
        list->node[at] = list->node[at - 1];
        list->input[at] = list->input[at - 1];
    }
    list->node[at] = node;
    list->input[at] = input;
}

/* Adds what a rank brings. */
static void insert_rank(struct list *list, const struct tr_reduction *reduction, int64_t leaves,
                        const int64_t *bound, int rank)
{
    int64_t cut[2 * TR_TREE_DEPTH + 1];
    int nodes = tr_tree_cover(leaves, bound[rank], bound[rank + 1], cut);
    for (int i = 0; i < nodes; i++)
        insert(list, (struct tr_node){cut[i], cut[i + 1]},
               (struct tr_input){.rank = rank, .island = reduction->islands->of[rank], .index = i});
}

/* Plans what an island sends, and adds that to `sums` if it is another one. */
static tr_status plan_cover(struct tr_reduction *reduction, int64_t leaves, const int64_t *bound, int island,
                            int capacity, struct list *sums)
{
    const struct tr_islands *islands = reduction->islands;
    struct list list;
    tr_program *program = NULL;
    tr_status status;
    TR_TRY_GOTO(make_list(&list, capacity), out);
    for (int i = islands->start[island]; i < islands->start[island + 1]; i++)
        insert_rank(&list, reduction, leaves, bound, islands->member[i]);
    TR_TRY_GOTO(tr_program_create(leaves, list.node, list.count, &program), out);
    reduction->covers[island] = tr_program_outputs(program);
    if (island == reduction->island) {
        reduction->cover = program;
        reduction->cover_input = list.input;
        reduction->cover_inputs = list.count;
        tr_free(list.node);
        return TR_OK;
    }
    for (int i = 0; i < reduction->covers[island]; i++)
        insert(sums, tr_program_output(program, i),
               (struct tr_input){.rank = -1, .island = island, .index = i});
    reduction->covers_in_all += reduction->covers[island];
out:
    free_list(&list);
    tr_program_destroy(&program);
    return status;
}

static tr_status plan(struct tr_reduction *reduction, int64_t leaves, const int64_t *bound)
{
    const struct tr_islands *islands = reduction->islands;
    int capacity = 0;
    for (int rank = 0; rank < reduction->comm->size; rank++) {
        int64_t cut[2 * TR_TREE_DEPTH + 1];
        reduction->nodes[rank] = tr_tree_cover(leaves, bound[rank], bound[rank + 1], cut);
        capacity += reduction->nodes[rank];
    }
    struct list list;
    tr_status status;
    TR_TRY_GOTO(make_list(&list, capacity), out);
    for (int i = 0; i < islands->count; i++)
        TR_TRY_GOTO(plan_cover(reduction, leaves, bound, i, capacity, &list), out);
    for (int i = islands->start[reduction->island]; i < islands->start[reduction->island + 1]; i++)
        insert_rank(&list, reduction, leaves, bound, islands->member[i]);
    TR_TRY_GOTO(tr_program_create(leaves, list.node, list.count, &reduction->root), out);
    assert(tr_program_outputs(reduction->root) == 1);
    reduction->root_input = list.input;
    reduction->root_inputs = list.count;
    list.input = NULL;
out:
    free_list(&list);
    return status;
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
    reduction->covers = tr_alloc_zero((size_t)reduction->islands->count, sizeof *reduction->covers);
    tr_status status = reduction->nodes && reduction->covers ? plan(reduction, leaves, bound) : TR_ENOMEM;
    *out = reduction;
    if (status != TR_OK) tr_reduction_destroy(out);
    return status;
}

void tr_reduction_destroy(tr_reduction **handle)
{
    struct tr_reduction *reduction = *handle;
    if (!reduction) return;
    tr_program_destroy(&reduction->cover);
    tr_program_destroy(&reduction->root);
    tr_free(reduction->cover_input);
    tr_free(reduction->root_input);
    tr_free(reduction->nodes);
    tr_free(reduction->covers);
    tr_free(reduction);
    *handle = NULL;
}

int tr_reduction_nodes(const tr_reduction *reduction, int rank)
{
    assert(rank >= 0 && rank < reduction->comm->size);
    return reduction->nodes[rank];
}
