/* Averaging the replicas of local SGD.
 *
 * One arena after the other (parameters, moments, moving averages): each rank adds up its replicas to the
 * nodes that they cover of the fixed tree over all replicas, the ranks add their nodes (reduce-scatter), each
 * finishes its share, and the shares go to all (all-gather). A share of the average is
 *
 *     average = sum * (1 / replicas)
 *
 * and that is all, unless there is an outer step. Then, with the parameters w of the last round,
 *
 *     d = w - average;  u = momentum * u + d;  w = w - rate * (nesterov ? momentum * u + d : u)
 *
 * computed as struct tr_op_update says. Running statistics are only averaged.
 */
#include "base/alloc.h"
#include "base/fail.h"
#include "base/tree.h"
#include "strategy/local_sgd.h"

#define GRAIN 16 /* floats: shares begin on cache lines */

static const struct local_sgd_options *options_of(const struct local_sgd *self)
{
    return self->head.options;
}

static bool has_outer_step(const struct local_sgd *self)
{
    return options_of(self)->momentum > 0 || options_of(self)->rate != 1;
}

/* Slots that a binary counter over `leaves` leaves needs, where a leaf that meets its neighbour at once is
   added to it without a slot of its own. */
static int slots_for(int64_t leaves)
{
    int slots = 1;
    while (((int64_t)1 << slots) < leaves) slots++;
    return slots;
}

/* Nodes of this rank's replicas. Returns their number. */
static int cover(const struct local_sgd *self, int64_t bound[2 * TR_TREE_DEPTH + 1])
{
    int rank = self->head.rank;
    return tr_tree_cover(options_of(self)->replicas, self->replica[rank], self->replica[rank + 1], bound);
}

static int slot_count(const struct local_sgd *self)
{
    int64_t bound[2 * TR_TREE_DEPTH + 1];
    int slots = 0, nodes = cover(self, bound);
    for (int j = 0; j < nodes; j++) {
        int last = j + slots_for(bound[j + 1] - bound[j]);
        if (last > slots) slots = last;
    }
    return slots;
}

/* ---- making ---- */

static tr_status make_shares(struct local_sgd *self)
{
    struct local_sgd_average *average = &self->average;
    int size = self->head.size;
    int64_t floats = self->head.job->model->arena_floats;
    average->stride = (floats + GRAIN - 1) / GRAIN * GRAIN;
    average->share = tr_alloc((size_t)size + 1, sizeof *average->share);
    average->share_bytes = tr_alloc((size_t)size + 1, sizeof *average->share_bytes);
    if (!average->share || !average->share_bytes) return TR_ENOMEM;
    for (int r = 0; r <= size; r++) {
        average->share[r] = r < size ? tr_cut(floats / GRAIN, size, r) * GRAIN : floats;
        average->share_bytes[r] = average->share[r] * (int64_t)sizeof(float);
    }
    return TR_OK;
}

/* Device memory for `floats` floats in *own, unless a window has them. */
static tr_status make_floats(struct local_sgd *self, int64_t floats, const tr_window *window, int rank,
                             float **own, float **out)
{
    if (window) {
        *out = tr_window_part(window, rank, NULL);
        return TR_OK;
    }
    TR_TRY(tr_device_alloc(self->head.device, (size_t)(floats + 1) * sizeof(float), (void **)own));
    *out = *own;
    return TR_OK;
}

static tr_status make_outer(struct local_sgd *self)
{
    struct local_sgd_average *average = &self->average;
    tr_device *device = self->head.device;
    struct tr_step_scalars scalars = {.rate = options_of(self)->rate, .clip_scale = 1};
    if (!has_outer_step(self)) return TR_OK;
    if (options_of(self)->momentum > 0) TR_TRY(tr_variables_keep_outer(self->head.variables));
    TR_TRY(
        tr_device_alloc(device, (size_t)(average->stride + 1) * sizeof(float), (void **)&average->previous));
    TR_TRY(tr_device_alloc(device, sizeof scalars, (void **)&average->scalars));
    TR_TRY(tr_device_to_device(device, average->scalars, &scalars, sizeof scalars));
    return tr_device_wait(device);
}

tr_status local_sgd_average_create(struct local_sgd *self)
{
    struct local_sgd_average *average = &self->average;
    tr_comm *comm = self->head.comm;
    int holder = 0;
    TR_TRY(make_shares(self));
    int64_t floats = average->stride * slot_count(self);
    if (comm) {
        holder = tr_comm_local(comm, 0);
        TR_TRY(tr_strategy_window(&self->head, (size_t)floats * sizeof(float), &average->node_window));
        size_t shared = self->head.rank == holder ? (size_t)average->stride * sizeof(float) : 0;
        TR_TRY(tr_strategy_window(&self->head, shared, &average->average_window));
        TR_TRY(tr_reduction_create(comm, options_of(self)->replicas, self->replica, average->node_window,
                                   &average->reduction));
    }
    TR_TRY(make_floats(self, floats, average->node_window, self->head.rank, &average->own_nodes,
                       &average->nodes));
    TR_TRY(make_floats(self, average->stride, average->average_window, holder, &average->own_average,
                       &average->average));
    return make_outer(self);
}

void local_sgd_average_destroy(struct local_sgd *self)
{
    struct local_sgd_average *average = &self->average;
    tr_reduction_destroy(&average->reduction);
    tr_window_destroy(&average->average_window);
    tr_window_destroy(&average->node_window);
    tr_device_free(self->head.device, average->own_nodes);
    tr_device_free(self->head.device, average->own_average);
    tr_device_free(self->head.device, average->previous);
    tr_device_free(self->head.device, average->scalars);
    tr_free(average->share);
    tr_free(average->share_bytes);
}

size_t local_sgd_average_memory(const struct local_sgd *self)
{
    int64_t arenas = slot_count(self) + 1 + (self->average.previous != NULL);
    return (size_t)(arenas * self->average.stride) * sizeof(float);
}

/* ---- averaging ---- */

static tr_status copy(struct local_sgd *self, int64_t count, const float *from, float *to)
{
    struct tr_op_scale scale = {count, 1, from, to};
    return tr_device_scale(self->head.device, &scale);
}

static tr_status add(struct local_sgd *self, const float *left, const float *right, float *to)
{
    struct tr_op_add sum = {self->head.job->model->arena_floats, left, right, to};
    return tr_device_add(self->head.device, &sum);
}

/* Adds up one arena of the replicas [first, end), which are one node, in slot `slot` and those behind it. */
static tr_status sum_node(struct local_sgd *self, enum tr_arena arena, int64_t first, int64_t end, int slot)
{
    const struct local_sgd_average *average = &self->average;
    int64_t own = self->replica[self->head.rank];
    int depth = slot;
    float *nodes = average->nodes;
    for (int64_t leaf = 0; leaf < end - first; leaf++) {
        const float *values = tr_variables_arena(self->replicas[first + leaf - own].variables, arena);
        int due = tr_tree_combines_after(leaf);
        if (due == 0) {
            TR_TRY(
                copy(self, self->head.job->model->arena_floats, values, nodes + depth++ * average->stride));
            continue;
        }
        float *top = nodes + (depth - 1) * average->stride;
        TR_TRY(add(self, top, values, top));
        for (; due > 1; due--, depth--) {
            top = nodes + (depth - 1) * average->stride;
            TR_TRY(add(self, top - average->stride, top, top - average->stride));
        }
    }
    for (; depth > slot + 1; depth--) {
        float *top = nodes + (depth - 1) * average->stride;
        TR_TRY(add(self, top - average->stride, top, top - average->stride));
    }
    return TR_OK;
}

/* Slot 0 receives the sum over all replicas, in this rank's share. */
static tr_status sum(struct local_sgd *self, enum tr_arena arena)
{
    const struct local_sgd_average *average = &self->average;
    int64_t bound[2 * TR_TREE_DEPTH + 1];
    int nodes = cover(self, bound);
    for (int j = 0; j < nodes; j++) TR_TRY(sum_node(self, arena, bound[j], bound[j + 1], j));
    TR_TRY(tr_device_wait(self->head.device));
    if (!self->head.comm) return TR_OK;
    tr_ticket *ticket = NULL;
    tr_status status = tr_comm_reduce_scatter(
        self->head.comm, average->reduction, average->nodes, average->stride, average->share,
        average->nodes + average->share[self->head.rank], tr_arena_names[arena], &ticket);
    return tr_strategy_wait(&self->head, status, ticket);
}

/* The outer step of the floats [begin, end) of a parameter, whose sums are in slot 0. */
static tr_status step_outer(struct local_sgd *self, int64_t begin, int64_t end)
{
    const struct local_sgd_options *options = options_of(self);
    struct local_sgd_average *average = &self->average;
    tr_device *device = self->head.device;
    float *momentum = tr_variables_arena(self->head.variables, TR_ARENA_OUTER);
    float *difference = average->nodes + begin, *previous = average->previous + begin;
    struct tr_op_scale negate = {end - begin, -1.0F / (float)options->replicas, difference, difference};
    TR_TRY(tr_device_scale(device, &negate));
    struct tr_op_add subtract = {end - begin, previous, difference, difference};
    TR_TRY(tr_device_add(device, &subtract));
    struct tr_op_update update = {
        .count = end - begin,
        .rule = momentum ? TR_RULE_MOMENTUM : TR_RULE_SGD,
        .nesterov = options->nesterov,
        .beta1 = options->momentum,
        .grad = difference,
        .w = previous,
        .m = momentum ? momentum + begin : NULL,
        .scalars = average->scalars,
    };
    TR_TRY(tr_device_update(device, &update));
    return copy(self, end - begin, previous, average->average + begin);
}

/* Finishes this rank's share of the average. */
static tr_status finish_share(struct local_sgd *self, enum tr_arena arena)
{
    struct local_sgd_average *average = &self->average;
    const struct tr_model *model = self->head.job->model;
    int64_t begin = average->share[self->head.rank], end = average->share[self->head.rank + 1];
    struct tr_op_scale mean = {end - begin, 1.0F / (float)options_of(self)->replicas, average->nodes + begin,
                               average->average + begin};
    TR_TRY(tr_device_scale(self->head.device, &mean));
    if (arena == TR_ARENA_PARAMETERS && has_outer_step(self))
        for (int i = 0; i < model->parameter_count; i++) {
            const struct tr_parameter *parameter = &model->parameters[i];
            int64_t from = parameter->offset, to = from + parameter->count;
            if (from < begin) from = begin;
            if (to > end) to = end;
            if (from >= to || parameter->kind == TR_PARAMETER_STATISTIC) continue;
            TR_TRY(step_outer(self, from, to));
        }
    return tr_device_wait(self->head.device);
}

static tr_status average_arena(struct local_sgd *self, enum tr_arena arena)
{
    struct local_sgd_average *average = &self->average;
    TR_TRY(sum(self, arena));
    TR_TRY(finish_share(self, arena));
    if (self->head.comm) {
        tr_ticket *ticket = NULL;
        tr_status status = tr_comm_all_gather(self->head.comm, average->average, average->share_bytes,
                                              average->average_window, tr_arena_names[arena], &ticket);
        TR_TRY(tr_strategy_wait(&self->head, status, ticket));
    }
    for (int i = 0; i < self->count; i++)
        TR_TRY(copy(self, self->head.job->model->arena_floats, average->average,
                    tr_variables_arena(self->replicas[i].variables, arena)));
    /* Others may write the next arena's average once this rank brings its sums of it. */
    return tr_device_wait(self->head.device);
}

tr_status local_sgd_average(struct local_sgd *self)
{
    static const enum tr_arena averaged[] = {TR_ARENA_PARAMETERS, TR_ARENA_M, TR_ARENA_V, TR_ARENA_EMA};
    for (size_t i = 0; i < sizeof averaged / sizeof averaged[0]; i++)
        if (tr_variables_arena(self->head.variables, averaged[i])) TR_TRY(average_arena(self, averaged[i]));
    return TR_OK;
}

tr_status local_sgd_average_begin(struct local_sgd *self)
{
    if (!self->average.previous) return TR_OK;
    TR_TRY(copy(self, self->head.job->model->arena_floats,
                tr_variables_arena(self->head.variables, TR_ARENA_PARAMETERS), self->average.previous));
    return tr_device_wait(self->head.device);
}

tr_status local_sgd_average_gather(struct local_sgd *self)
{
    float *momentum = tr_variables_arena(self->head.variables, TR_ARENA_OUTER);
    if (!momentum || !self->head.comm) return TR_OK;
    tr_ticket *ticket = NULL;
    tr_status status = tr_comm_all_gather(self->head.comm, momentum, self->average.share_bytes, NULL,
                                          tr_arena_names[TR_ARENA_OUTER], &ticket);
    return tr_strategy_wait(&self->head, status, ticket);
}
