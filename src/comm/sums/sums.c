/* Which sums can be computed from some ranks' nodes and from received nodes. */
#include "comm/sums/route.h"
#include "comm/sums/spanning.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "base/numbers/tree.h"

#include <assert.h>

/* Nodes and their sources, ascending. */
struct list {
    struct tr_node *node;
    struct tr_input *input;
    int count, capacity;
};

static tr_status make_list(struct list *list, int capacity)
{
    *list = (struct list){.capacity = capacity};
    list->node = tr_alloc((size_t)capacity + 1, sizeof *list->node);
    list->input = tr_alloc((size_t)capacity + 1, sizeof *list->input);
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

static int count_nodes(const struct tr_leaves *leaves, int rank)
{
    int64_t cut[2 * TR_TREE_DEPTH + 1];
    return tr_tree_cover(leaves->count, leaves->bound[rank], leaves->bound[rank + 1], cut);
}

/* Adds a rank's nodes below a node. */
static void insert_rank(struct list *list, const struct tr_leaves *leaves, struct tr_node below, int rank)
{
    int64_t cut[2 * TR_TREE_DEPTH + 1];
    int nodes = tr_tree_cover(leaves->count, leaves->bound[rank], leaves->bound[rank + 1], cut);
    for (int i = 0; i < nodes; i++)
        if (cut[i] >= below.first && cut[i + 1] <= below.last)
            insert(list, (struct tr_node){cut[i], cut[i + 1]}, (struct tr_input){rank, i});
}

/* The ranks of an island, and received nodes. */
static tr_status plan(const struct tr_leaves *leaves, int island, struct tr_node below,
                      const struct tr_arrival *arrival, int first, int arrivals, struct tr_sum_plan *out)
{
    const struct tr_islands *islands = leaves->islands;
    struct list list;
    tr_status status;
    int capacity = arrivals - first;
    for (int i = islands->start[island]; i < islands->start[island + 1]; i++)
        capacity += count_nodes(leaves, islands->member[i]);
    *out = (struct tr_sum_plan){0};
    TR_TRY_GOTO(make_list(&list, capacity), out);
    for (int i = islands->start[island]; i < islands->start[island + 1]; i++)
        insert_rank(&list, leaves, below, islands->member[i]);
    for (int i = first; i < arrivals; i++) insert(&list, arrival[i].node, (struct tr_input){-1, i});
    TR_TRY_GOTO(tr_program_create(leaves->count, list.node, list.count, &out->program), out);
    out->input = list.input;
    out->inputs = list.count;
    list.input = NULL;
out:
    free_list(&list);
    return status;
}

tr_status tr_route_plan_sum(const struct tr_leaves *leaves, const struct tr_route *route,
                            struct tr_node below, int first_arrival, struct tr_sum_plan *out)
{
    int island = leaves->islands->of[leaves->comm->rank];
    return plan(leaves, island, below, route->arrival, first_arrival, route->arrivals, out);
}

tr_status tr_route_plan_cover(const struct tr_leaves *leaves, int island, struct tr_sum_plan *out)
{
    return plan(leaves, island, (struct tr_node){0, leaves->count}, NULL, 0, 0, out);
}

/* The nodes of a rank and of all that send to it, directly or indirectly. */
static void insert_below(struct list *list, const struct tr_leaves *leaves, int rank)
{
    int64_t cut[2 * TR_TREE_DEPTH + 1];
    int child[TR_SPANNING_MOST], children = tr_spanning_children(leaves->comm, rank, child);
    int nodes = tr_tree_cover(leaves->count, leaves->bound[rank], leaves->bound[rank + 1], cut);
    for (int i = 0; i < nodes; i++)
        insert(list, (struct tr_node){cut[i], cut[i + 1]}, (struct tr_input){rank, i});
    for (int i = 0; i < children; i++) insert_below(list, leaves, child[i]);
}

static int count_below(const struct tr_leaves *leaves, int rank)
{
    int child[TR_SPANNING_MOST], children = tr_spanning_children(leaves->comm, rank, child);
    int nodes = count_nodes(leaves, rank);
    for (int i = 0; i < children; i++) nodes += count_below(leaves, child[i]);
    return nodes;
}

/* The nodes that a child sends: those that can be computed below it. They become inputs from `*arrivals`
   on. */
static tr_status insert_told(struct list *list, const struct tr_leaves *leaves, int child, int *arrivals,
                             int *nodes)
{
    struct list below;
    tr_program *program = NULL;
    tr_status status;
    TR_TRY_GOTO(make_list(&below, count_below(leaves, child)), out);
    insert_below(&below, leaves, child);
    TR_TRY_GOTO(tr_program_create(leaves->count, below.node, below.count, &program), out);
    *nodes = tr_program_outputs(program);
    for (int i = 0; i < *nodes; i++)
        insert(list, tr_program_output(program, i), (struct tr_input){-1, (*arrivals)++});
out:
    free_list(&below);
    tr_program_destroy(&program);
    return status;
}

tr_status tr_route_plan_trunk(const struct tr_leaves *leaves, const int *child, int children, int *nodes,
                              struct tr_sum_plan *out)
{
    int me = leaves->comm->rank, arrivals = 0;
    struct list list;
    tr_status status;
    *out = (struct tr_sum_plan){0};
    TR_TRY_GOTO(make_list(&list, count_below(leaves, me)), out);
    insert_rank(&list, leaves, (struct tr_node){0, leaves->count}, me);
    for (int i = 0; i < children; i++)
        TR_TRY_GOTO(insert_told(&list, leaves, child[i], &arrivals, &nodes[i]), out);
    TR_TRY_GOTO(tr_program_create(leaves->count, list.node, list.count, &out->program), out);
    out->input = list.input;
    out->inputs = list.count;
    list.input = NULL;
out:
    free_list(&list);
    return status;
}
