/* The mean of an arena over all replicas: each rank adds up its replicas to the nodes that they cover of the
 * fixed tree over all replicas, the ranks add their nodes (reduce-scatter), each finishes its shard,
 *
 *     mean = sum * (1 / replicas)
 *
 * and the shards go to all (all-gather).
 */
#include "base/alloc.h"
#include "base/fail.h"
#include "base/numbers/tree.h"
#include "strategy/replicas/replicas.h"

#define GRAIN 16 /* floats: shards begin on cache lines */

/* Slots for a binary counter over `leaves` leaves, where a leaf that combines with its neighbour at once
   needs no separate slot. */
static int slots_for(int64_t leaves)
{
    int slots = 1;
    while (((int64_t)1 << slots) < leaves) slots++;
    return slots;
}

/* Nodes of this rank's replicas. Returns their number. */
static int cover(const tr_strategy *strategy, int64_t bound[2 * TR_TREE_DEPTH + 1])
{
    return tr_tree_cover(tr_replicas_total(strategy), tr_replicas_first(strategy),
                         strategy->replica_bound[strategy->rank + 1], bound);
}

static int slot_count(const tr_strategy *strategy)
{
    int64_t bound[2 * TR_TREE_DEPTH + 1];
    int slots = 0, nodes = cover(strategy, bound);
    for (int j = 0; j < nodes; j++) {
        int last = j + slots_for(bound[j + 1] - bound[j]);
        if (last > slots) slots = last;
    }
    return slots;
}

/* ---- making ---- */

static tr_status make_shards(const tr_strategy *strategy, struct tr_average *average)
{
    int size = strategy->size;
    int64_t floats = strategy->job->model->arena_floats;
    average->stride = (floats + GRAIN - 1) / GRAIN * GRAIN;
    average->shard = tr_alloc((size_t)size + 1, sizeof *average->shard);
    average->shard_bytes = tr_alloc((size_t)size + 1, sizeof *average->shard_bytes);
    if (!average->shard || !average->shard_bytes) return TR_ENOMEM;
    for (int r = 0; r <= size; r++) {
        average->shard[r] = r < size ? tr_cut(floats / GRAIN, size, r) * GRAIN : floats;
        average->shard_bytes[r] = average->shard[r] * (int64_t)sizeof(float);
    }
    return TR_OK;
}

static tr_status make_floats(tr_strategy *strategy, int64_t floats, const tr_window *window, int rank,
                             struct tr_staging *out)
{
    float *shared = window ? tr_window_segment(window, rank, NULL) : NULL;
    TR_TRY(tr_staging_make(strategy->holder, floats, shared, out));
    TR_TRY(tr_staging_open(out));
    strategy->memory +=
        shared ? (size_t)floats * sizeof(float) + tr_staging_memory(out) : tr_staging_memory(out);
    return TR_OK;
}

tr_status tr_average_create(tr_strategy *strategy, struct tr_average *average)
{
    tr_comm *comm = strategy->comm;
    int holder = 0;
    TR_TRY(make_shards(strategy, average));
    int64_t floats = average->stride * slot_count(strategy);
    if (comm) {
        holder = tr_comm_local(comm, 0);
        TR_TRY(tr_strategy_window(comm, (size_t)floats * sizeof(float), &average->node_window));
        size_t shared = strategy->rank == holder ? (size_t)average->stride * sizeof(float) : 0;
        TR_TRY(tr_strategy_window(comm, shared, &average->mean_window));
        TR_TRY(tr_reduction_create(comm, tr_replicas_total(strategy), strategy->replica_bound,
                                   average->node_window, &average->reduction));
    }
    TR_TRY(make_floats(strategy, floats, average->node_window, strategy->rank, &average->nodes));
    return make_floats(strategy, average->stride, average->mean_window, holder, &average->mean);
}

void tr_average_destroy(struct tr_average *average)
{
    tr_staging_release(&average->mean);
    tr_staging_release(&average->nodes);
    tr_reduction_destroy(&average->reduction);
    tr_window_destroy(&average->mean_window);
    tr_window_destroy(&average->node_window);
    tr_free(average->shard);
    tr_free(average->shard_bytes);
}

/* ---- averaging ---- */

static tr_status add(tr_strategy *strategy, const float *left, const float *right, float *to)
{
    struct tr_op_add sum = {strategy->job->model->arena_floats, left, right, to};
    return tr_device_add(strategy->holder, &sum);
}

/* Adds up one arena of the replicas [first, end), which are one node, in slot `slot` and those after it. */
static tr_status sum_node(tr_strategy *strategy, struct tr_average *average, enum tr_arena arena,
                          int64_t first, int64_t end, int slot)
{
    const struct tr_replica *own = strategy->replicas + (first - tr_replicas_first(strategy));
    int64_t floats = strategy->job->model->arena_floats;
    int depth = slot;
    float *nodes = average->nodes.data;
    for (int64_t leaf = 0; leaf < end - first; leaf++) {
        const float *values = tr_variables_arena(own[leaf].variables, arena);
        int due = tr_tree_combines_after(leaf);
        if (due == 0) {
            TR_TRY(tr_replicas_move(strategy, floats, values, nodes + depth++ * average->stride));
            continue;
        }
        float *top = nodes + (depth - 1) * average->stride;
        TR_TRY(add(strategy, top, values, top));
        for (; due > 1; due--, depth--) {
            top = nodes + (depth - 1) * average->stride;
            TR_TRY(add(strategy, top - average->stride, top, top - average->stride));
        }
    }
    for (; depth > slot + 1; depth--) {
        float *top = nodes + (depth - 1) * average->stride;
        TR_TRY(add(strategy, top - average->stride, top, top - average->stride));
    }
    return TR_OK;
}

/* The sum over all replicas, in this rank's shard of slot 0. */
static tr_status sum_all(tr_strategy *strategy, struct tr_average *average, enum tr_arena arena)
{
    int64_t bound[2 * TR_TREE_DEPTH + 1];
    int nodes = cover(strategy, bound);
    for (int j = 0; j < nodes; j++) TR_TRY(sum_node(strategy, average, arena, bound[j], bound[j + 1], j));
    if (!strategy->comm) return TR_OK;
    TR_TRY(tr_staging_to_host(&average->nodes, 0, nodes * average->stride));
    TR_TRY(tr_device_wait(strategy->holder));
    tr_ticket *ticket = NULL;
    int64_t begin = average->shard[strategy->rank], end = average->shard[strategy->rank + 1];
    tr_status status =
        tr_comm_reduce_scatter(strategy->comm, average->reduction, average->nodes.host, average->stride,
                               average->shard, average->nodes.host + begin, tr_arena_names[arena], &ticket);
    TR_TRY(tr_strategy_wait(strategy, status, ticket));
    return tr_staging_to_device(&average->nodes, begin, end);
}

static tr_status take_mean(tr_strategy *strategy, struct tr_average *average)
{
    int64_t begin = average->shard[strategy->rank], end = average->shard[strategy->rank + 1];
    struct tr_op_scale mean = {end - begin, 1.0F / (float)tr_replicas_total(strategy),
                               average->nodes.data + begin, average->mean.data + begin};
    return tr_device_scale(strategy->holder, &mean);
}

/* Gathers the shards on all ranks. Others may write the next arena's mean once this rank contributes its
   sums of it, which is after it has used this mean; no rank reads this arena's nodes any more. */
static tr_status share_mean(tr_strategy *strategy, struct tr_average *average, enum tr_arena arena)
{
    if (!strategy->comm) return TR_OK;
    return tr_strategy_join(strategy->comm, &average->mean, 0, average->shard_bytes, average->mean_window,
                            tr_arena_names[arena]);
}

tr_status tr_average_give(tr_strategy *strategy, const struct tr_average *average, float *to)
{
    /* Frozen numbers are the same in all replicas, but a mean of equal numbers is rounded: they are not
       copied. */
    int64_t begin = 0, end = 0;
    while (tr_model_trained_range(strategy->job->model, end, &begin, &end))
        TR_TRY(tr_replicas_move(strategy, end - begin, average->mean.data + begin, to + begin));
    return TR_OK;
}

/* All replicas of this rank become the mean. */
static tr_status give_all(tr_strategy *strategy, struct tr_average *average, enum tr_arena arena)
{
    for (int i = 0; i < strategy->replica_count; i++)
        TR_TRY(
            tr_average_give(strategy, average, tr_variables_arena(strategy->replicas[i].variables, arena)));
    return TR_OK;
}

tr_status tr_average_all(tr_strategy *strategy, struct tr_average *average, unsigned arenas,
                         const struct tr_averaging *how)
{
    for (int i = 0; i < TR_ARENAS; i++) {
        enum tr_arena arena = (enum tr_arena)i;
        if (!(arenas & 1U << i) || !tr_variables_arena(strategy->replicas->variables, arena)) continue;
        TR_TRY(sum_all(strategy, average, arena));
        TR_TRY(take_mean(strategy, average));
        if (how && how->change) TR_TRY(how->change(strategy, arena));
        TR_TRY(share_mean(strategy, average, arena));
        TR_TRY(how && how->take ? how->take(strategy, arena) : give_all(strategy, average, arena));
    }
    return TR_OK;
}
