/* Pipeline parallelism: the layers are divided into stages, the microbatches of each step flow through them
 * (stage.h), and each rank updates parameters of its own stage. With more ranks than stages, several replicas
 * of the pipeline share the microbatches: a grid of stages x replicas, in which the replicas of a stage add
 * their gradients along the fixed tree, update a share each, and bring the shares together.
 *
 * Rank = stage * replicas + replica, so that those who exchange most are neighbours. Parameters lie in the
 * arena in the order of the layers, so the shares of all ranks ascend by rank.
 *
 * Invariant: between steps a rank has the present parameters of its own stage; what the optimizer keeps is up
 * to date in its own share only. gather() brings all together.
 */
#include "strategy/class.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "nn/cut.h"
#include "strategy/pipeline/cuts.h"
#include "strategy/pipeline/measure.h"
#include "strategy/pipeline/stage.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#define GRAIN 16 /* floats: shares begin on cache lines */

struct pipeline {
    struct tr_strategy head;
    int stages, replicas;
    int *layer;          /* [stages + 1] bounds */
    int64_t *microbatch; /* [replicas + 1] bounds */
    struct stage_place place;
    struct stage_plan plan;
    struct stage *stage;
    /* Shares of the arena, [size + 1] bounds in floats and bytes; and those of the replicas of this stage,
       from its first parameter on, [replicas + 1]. */
    int64_t *share, *share_bytes, *part, *part_bytes;
    /* The gradient as a whole arena, of which this rank's share is right, or all where its norm is wanted.
       Memory that is never touched costs nothing. */
    float *gradient;
    tr_window *parameters; /* NULL: ranks do not share memory */
    tr_comm *group;        /* the replicas of this stage; NULL: this rank alone */
    bool splits;           /* the group is a part of its own */
    tr_window *nodes;
    float *own_nodes; /* where the group does not share memory */
    tr_reduction *reduction;
};

static struct pipeline *self_of(tr_strategy *strategy)
{
    return (struct pipeline *)strategy;
}

static int stage_of(const struct pipeline *self, int rank)
{
    return rank / self->replicas;
}

static int replica_of(const struct pipeline *self, int rank)
{
    return rank % self->replicas;
}

/* ---- making ---- */

static tr_status check(const struct tr_job *job, const void *options, int ranks)
{
    int stages = pipeline_stages(options, ranks);
    if (ranks % stages)
        return tr_fail(TR_EINVAL, "%d ranks are no multiple of %d stages; start %d or %d", ranks, stages,
                       ranks < stages ? stages : ranks / stages * stages, (ranks / stages + 1) * stages);
    if (ranks / stages > job->train.microbatches)
        return tr_fail(TR_EINVAL,
                       "%d replicas of the pipeline share %lld microbatches; start fewer ranks or set "
                       "train.microbatches higher",
                       ranks / stages, (long long)job->train.microbatches);
    return ranks == 1 ? TR_OK : pipeline_check_cuts(job->model, options, stages);
}

static tr_status make_tables(struct pipeline *self)
{
    size_t stages = (size_t)self->stages, replicas = (size_t)self->replicas, size = (size_t)self->head.size;
    self->layer = tr_alloc(stages + 1, sizeof *self->layer);
    self->microbatch = tr_alloc(replicas + 1, sizeof *self->microbatch);
    self->share = tr_alloc_zero(size + 1, sizeof *self->share);
    self->share_bytes = tr_alloc_zero(size + 1, sizeof *self->share_bytes);
    self->part = tr_alloc(replicas + 1, sizeof *self->part);
    self->part_bytes = tr_alloc(replicas + 1, sizeof *self->part_bytes);
    if (!self->layer || !self->microbatch || !self->share || !self->share_bytes || !self->part ||
        !self->part_bytes)
        return TR_ENOMEM;
    for (int r = 0; r <= self->replicas; r++)
        self->microbatch[r] = tr_cut(self->head.job->train.microbatches, self->replicas, r);
    return TR_OK;
}

static tr_status create(tr_strategy *strategy)
{
    struct pipeline *self = self_of(strategy);
    const struct tr_job *job = strategy->job;
    tr_comm *comm = strategy->comm;
    size_t bytes = (size_t)job->model->arena_floats * sizeof(float);
    float *parameters = NULL;
    self->stages = pipeline_stages(strategy->options, strategy->size);
    self->replicas = strategy->size / self->stages;
    TR_TRY(make_tables(self));
    if (comm) {
        TR_TRY(tr_strategy_window(strategy, tr_comm_local_rank(comm) == 0 ? bytes : 0, &self->parameters));
        if (self->parameters) parameters = tr_window_part(self->parameters, tr_comm_local(comm, 0), NULL);
    }
    if (self->replicas > 1) {
        self->splits = self->stages > 1;
        self->group = comm;
        if (self->splits)
            TR_TRY(tr_comm_split(comm, stage_of(self, strategy->rank), replica_of(self, strategy->rank),
                                 &self->group));
        if (self->splits) strategy->part = self->group;
    }
    return tr_variables_create(strategy->device, job->model, &job->optimizer, parameters,
                               &strategy->variables);
}

static void destroy(tr_strategy *strategy)
{
    struct pipeline *self = self_of(strategy);
    stage_destroy(&self->stage);
    tr_reduction_destroy(&self->reduction);
    tr_window_destroy(&self->nodes);
    tr_window_destroy(&self->parameters);
    tr_device_free(strategy->device, self->own_nodes);
    tr_device_free(strategy->device, self->gradient);
    if (self->splits) tr_comm_destroy(&self->group);
    tr_free(self->layer);
    tr_free(self->microbatch);
    tr_free(self->share);
    tr_free(self->share_bytes);
    tr_free(self->part);
    tr_free(self->part_bytes);
}

/* All is made once the parameters are there, since layers are timed with them. */
static tr_status begin(tr_strategy *strategy)
{
    (void)strategy;
    return TR_OK;
}

/* ---- the division ---- */

/* Cuts where the stages become equally slow, in the chief's opinion. */
static tr_status measured_cuts(struct pipeline *self, int64_t step)
{
    const struct tr_model *model = self->head.job->model;
    size_t most = (size_t)model->layer_count + 1;
    int *bound = tr_alloc(most, sizeof *bound), *first = tr_alloc(most, sizeof *first);
    double *cost = tr_alloc(most, sizeof *cost);
    tr_status status = bound && first && cost ? TR_OK : TR_ENOMEM;
    if (status != TR_OK) goto out;
    bound[0] = 0;
    int ranges = tr_model_cuts(model, bound + 1) + 1;
    bound[ranges] = model->layer_count;
    TR_TRY_GOTO(pipeline_measure(&self->head, step, self->replicas, bound, ranges, cost), out);
    TR_TRY_GOTO(pipeline_balance(cost, ranges, self->stages, first), out);
    for (int s = 0; s <= self->stages; s++) self->layer[s] = bound[first[s]];
out:
    tr_free(bound);
    tr_free(first);
    tr_free(cost);
    return status;
}

static tr_status choose_layers(struct pipeline *self, int64_t step)
{
    tr_strategy *strategy = &self->head;
    const struct pipeline_options *options = strategy->options;
    const struct tr_model *model = strategy->job->model;
    self->layer[0] = 0;
    self->layer[self->stages] = model->layer_count;
    if (self->stages == 1) return TR_OK;
    if (options->cut.count > 0) {
        pipeline_named_cuts(model, options, self->layer);
        return TR_OK;
    }
    if (tr_strategy_is_chief(strategy->comm)) TR_TRY(measured_cuts(self, step));
    return tr_strategy_share(strategy, self->layer, ((size_t)self->stages + 1) * sizeof *self->layer);
}

static void choose_shares(struct pipeline *self)
{
    const struct tr_model *model = self->head.job->model;
    for (int rank = 0; rank <= self->head.size; rank++) {
        int64_t begin = model->arena_floats, end = begin;
        int stage = stage_of(self, rank), replica = replica_of(self, rank);
        if (rank < self->head.size)
            tr_pass_arena(model, self->layer[stage], self->layer[stage + 1], &begin, &end);
        self->share[rank] = begin + tr_cut((end - begin) / GRAIN, self->replicas, replica) * GRAIN;
        self->share_bytes[rank] = self->share[rank] * (int64_t)sizeof(float);
    }
    int first = self->place.stage * self->replicas; /* rank of the stage's first replica */
    for (int r = 0; r <= self->replicas; r++) {
        self->part[r] = self->share[first + r] - self->share[first];
        self->part_bytes[r] = self->part[r] * (int64_t)sizeof(float);
    }
}

static void choose_place(struct pipeline *self)
{
    int rank = self->head.rank, stage = stage_of(self, rank), replica = replica_of(self, rank);
    self->place = (struct stage_place){
        .stage = stage,
        .stages = self->stages,
        .first_layer = self->layer[stage],
        .end_layer = self->layer[stage + 1],
        .first = self->microbatch[replica],
        .end = self->microbatch[replica + 1],
        .previous = rank - self->replicas,
        .next = rank + self->replicas,
    };
}

/* ---- memory ---- */

static tr_status zeroed(tr_device *device, int64_t floats, float **out)
{
    TR_TRY(tr_device_alloc(device, (size_t)floats * sizeof **out, (void **)out));
    struct tr_op_fill zero = {floats, 0, *out};
    return tr_device_fill(device, &zero);
}

/* Memory for the nodes of this stage. A rank alone has but one, which is its gradient and lies where the
 * whole gradient has it. */
static tr_status make_nodes(struct pipeline *self, float **nodes)
{
    tr_strategy *strategy = &self->head;
    const struct stage_plan *plan = &self->plan;
    const struct tr_job *job = strategy->job;
    int64_t floats = plan->nodes * plan->stride;
    TR_TRY(tr_device_alloc(strategy->device, (size_t)(job->model->arena_floats + 3 * GRAIN) * sizeof(float),
                           (void **)&self->gradient));
    if (!self->group) {
        assert(plan->nodes == 1);
        *nodes = self->gradient + plan->arena_begin;
        struct tr_op_fill zero = {plan->stride, 0, *nodes};
        return tr_device_fill(strategy->device, &zero);
    }
    TR_TRY(tr_strategy_window_of(strategy, self->group, (size_t)floats * sizeof(float), &self->nodes));
    if (self->nodes)
        *nodes = tr_window_part(self->nodes, tr_comm_rank(self->group), NULL); /* windows are zeroed */
    else
        TR_TRY(zeroed(strategy->device, floats, &self->own_nodes));
    if (!self->nodes) *nodes = self->own_nodes;
    return tr_reduction_create(self->group, job->train.microbatches, self->microbatch, self->nodes,
                               &self->reduction);
}

static tr_status meet(tr_strategy *strategy, int64_t step)
{
    struct pipeline *self = self_of(strategy);
    float *nodes = NULL;
    assert(!self->stage);
    TR_TRY(choose_layers(self, step));
    choose_place(self);
    choose_shares(self);
    stage_plan(strategy->job, &self->place, &self->plan);
    TR_TRY(make_nodes(self, &nodes));
    TR_TRY(stage_create(strategy, &self->place, nodes, &self->stage));
    if (!strategy->comm) return TR_OK;
    tr_ticket *ticket = NULL;
    tr_status status = tr_comm_barrier(strategy->comm, &ticket);
    return tr_strategy_wait(strategy, status, ticket);
}

static void placement(const tr_strategy *strategy, int rank, struct tr_placement *out)
{
    const struct pipeline *self = (const struct pipeline *)strategy;
    int stage = stage_of(self, rank), replica = replica_of(self, rank);
    *out = (struct tr_placement){
        .role = "stage",
        .first_microbatch = self->microbatch[replica],
        .end_microbatch = self->microbatch[replica + 1],
        .first_layer = self->layer[stage],
        .end_layer = self->layer[stage + 1],
        .first_update = self->share[rank],
        .end_update = self->share[rank + 1],
        .updates = self->share[rank + 1] - self->share[rank],
    };
}

static size_t memory(const tr_strategy *strategy)
{
    const struct pipeline *self = (const struct pipeline *)strategy;
    return tr_variables_memory(strategy->variables) + (self->stage ? stage_memory(self->stage) : 0);
}

/* ---- a step ---- */

/* Adds the nodes of the replicas into this rank's share of the gradient; the last share ends with the sums of
   loss and correctness, which go to all. */
static tr_status reduce(struct pipeline *self, struct tr_step_figures *figures)
{
    tr_strategy *strategy = &self->head;
    int64_t floats = strategy->job->model->arena_floats;
    int replicas = self->replicas, last = strategy->size - 1;
    float sums[TR_PASS_SUMS];
    tr_ticket *ticket = NULL;
    if (self->group) {
        const float *nodes =
            self->nodes ? tr_window_part(self->nodes, tr_comm_rank(self->group), NULL) : self->own_nodes;
        bool sums_too = self->place.stage == self->stages - 1;
        self->part[replicas] += sums_too ? TR_PASS_SUMS : 0;
        tr_status status =
            tr_comm_reduce_scatter(self->group, self->reduction, nodes, self->plan.stride, self->part,
                                   self->gradient + self->share[strategy->rank], "gradient", &ticket);
        self->part[replicas] -= sums_too ? TR_PASS_SUMS : 0;
        if (status == TR_OK) status = tr_comm_wait(self->group, &ticket);
        TR_TRY(status);
    }
    if (strategy->rank == last) memcpy(sums, self->gradient + floats, sizeof sums);
    if (strategy->comm) {
        tr_status status = tr_comm_broadcast(strategy->comm, last, sums, sizeof sums, "loss", &ticket);
        TR_TRY(tr_strategy_wait(strategy, status, ticket));
    }
    figures->loss = sums[0];
    figures->correct = sums[1];
    return TR_OK;
}

/* Where its norm is wanted, the whole gradient comes to all. */
static tr_status gather_gradient(struct pipeline *self)
{
    tr_strategy *strategy = &self->head;
    if (!strategy->comm || !tr_strategy_measures(strategy->job)) return TR_OK;
    tr_ticket *ticket = NULL;
    tr_status status = tr_comm_all_gather(strategy->comm, self->gradient, self->share_bytes, NULL,
                                          "whole gradient", &ticket);
    return tr_strategy_wait(strategy, status, ticket);
}

static tr_status update(struct pipeline *self, bool *poisoned)
{
    tr_strategy *strategy = &self->head;
    int rank = strategy->rank, first = self->place.stage * self->replicas;
    float *parameters = tr_variables_arena(strategy->variables, TR_ARENA_PARAMETERS);
    TR_TRY(
        tr_variables_update(strategy->variables, self->gradient, self->share[rank], self->share[rank + 1]));
    TR_TRY(tr_variables_nonfinite(strategy->variables, poisoned));
    if (!self->group) return TR_OK;
    tr_ticket *ticket = NULL;
    TR_TRY(tr_comm_all_gather(self->group, parameters + self->share[first], self->part_bytes,
                              self->parameters, "parameters", &ticket));
    return tr_comm_wait(self->group, &ticket);
}

static tr_status step(tr_strategy *strategy, int64_t step, int32_t wish, struct tr_step_figures *figures)
{
    struct pipeline *self = self_of(strategy);
    bool poisoned = false;
    TR_TRY(tr_variables_begin_step(strategy->variables, step));
    TR_TRY(stage_step(self->stage, step, &figures->examples));
    TR_TRY(reduce(self, figures));
    figures->bad_loss = !isfinite(figures->loss);
    if (!figures->bad_loss) TR_TRY(gather_gradient(self));
    TR_TRY(tr_strategy_measure(strategy, self->gradient, figures));
    if (!figures->bad_loss && !figures->skipped) TR_TRY(update(self, &poisoned));
    return tr_strategy_exchange(strategy, poisoned, wish, figures);
}

/* A host's copy of the parameters is up to date only where it has the stage. */
static tr_status gather(tr_strategy *strategy)
{
    const struct pipeline *self = self_of(strategy);
    if (!strategy->comm) return TR_OK;
    for (int i = 0; i < TR_ARENAS; i++) {
        float *arena = tr_variables_arena(strategy->variables, (enum tr_arena)i);
        if (!arena) continue;
        tr_ticket *ticket = NULL;
        tr_status status = tr_comm_all_gather(strategy->comm, arena, self->share_bytes,
                                              i == TR_ARENA_PARAMETERS ? self->parameters : NULL,
                                              tr_arena_names[i], &ticket);
        TR_TRY(tr_strategy_wait(strategy, status, ticket));
    }
    return TR_OK;
}

#define AT(field) offsetof(struct pipeline_options, field)
static const struct tr_option options[] = {
    {.key = "stages",
     .type = TR_OPTION_INT32,
     .offset = AT(stages),
     .fallback = "0",
     .least = 0,
     .most = TR_STRATEGY_RANKS,
     .help = "number of stages; the number of ranks is a multiple of it. 0: as many as `cut` says, else 2. A "
             "single process computes all layers by itself"},
    {.key = "cut",
     .type = TR_OPTION_STRING_LIST,
     .offset = AT(cut),
     .fallback = "",
     .help = "names of the layers with which the second and later stages begin; without, the stages are made "
             "equally slow by the time that layers take when training starts"},
};
#undef AT

static const char *const variants[] = {"stages=2", NULL};

const struct tr_strategy_class tr_strategy_pipeline = {
    .name = "pipeline",
    .help =
        "model parallelism: the layers are divided into stages, through which the microbatches flow; with "
        "several ranks a stage, these share the microbatches",
    .options = options,
    .option_count = TR_OPTION_COUNT(options),
    .options_size = sizeof(struct pipeline_options),
    .size = sizeof(struct pipeline),
    .check = check,
    .create = create,
    .destroy = destroy,
    .begin = begin,
    .placement = placement,
    .meet = meet,
    .step = step,
    .gather = gather,
    .memory = memory,
    .variants = variants,
};
