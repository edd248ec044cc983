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
#include "strategy/pipeline/pipeline.h"

#include "base/alloc.h"
#include "base/fail.h"

#include <assert.h>
#include <math.h>
#include <string.h>

static struct pipeline *self_of(tr_strategy *strategy)
{
    return (struct pipeline *)strategy;
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
            TR_TRY(tr_comm_split(comm, pipeline_stage_of(self, strategy->rank),
                                 pipeline_replica_of(self, strategy->rank), &self->group));
        if (self->splits) strategy->part = self->group;
    }
    return tr_variables_create(strategy->holder, job->model, &job->optimizer, parameters,
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
    TR_TRY(tr_device_alloc(strategy->device,
                           (size_t)(job->model->arena_floats + 3 * PIPELINE_GRAIN) * sizeof(float),
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
    TR_TRY(pipeline_divide(self, step));
    stage_plan(strategy->job, &self->place, &self->plan);
    TR_TRY(make_nodes(self, &nodes));
    TR_TRY(stage_create(strategy, &self->place, nodes, &self->stage));
    if (strategy->rank > 0) /* the chief gathers */
        tr_variables_confine(strategy->variables, self->share[strategy->rank],
                             self->share[strategy->rank + 1]);
    if (!strategy->comm) return TR_OK;
    tr_ticket *ticket = NULL;
    tr_status status = tr_comm_barrier(strategy->comm, &ticket);
    return tr_strategy_wait(strategy, status, ticket);
}

static void placement(const tr_strategy *strategy, int rank, struct tr_placement *out)
{
    const struct pipeline *self = (const struct pipeline *)strategy;
    int stage = pipeline_stage_of(self, rank), replica = pipeline_replica_of(self, rank);
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

/* One rank's share of an arena goes to the chief; called by these two. */
static tr_status bring_share(struct pipeline *self, int rank, float *arena, const char *name)
{
    tr_strategy *strategy = &self->head;
    tr_comm *comm = strategy->comm;
    float *share = arena + self->share[rank];
    size_t bytes = (size_t)(self->share_bytes[rank + 1] - self->share_bytes[rank]);
    tr_ticket *ticket = NULL;
    tr_status status = strategy->rank == 0
                           ? tr_comm_receive(comm, rank, STAGE_TAG_GATHER, share, bytes, name, &ticket)
                           : tr_comm_send(comm, 0, STAGE_TAG_GATHER, share, bytes, name, &ticket);
    return tr_strategy_wait(strategy, status, ticket);
}

/* What the optimizer keeps is wanted by the chief alone. */
static tr_status bring_to_chief(struct pipeline *self, float *arena, const char *name)
{
    if (self->head.rank > 0) return bring_share(self, self->head.rank, arena, name);
    for (int rank = 1; rank < self->head.size; rank++) TR_TRY(bring_share(self, rank, arena, name));
    return TR_OK;
}

/* A host's copy of the parameters is up to date only where it has the stage. */
static tr_status gather(tr_strategy *strategy)
{
    struct pipeline *self = self_of(strategy);
    float *parameters = tr_variables_arena(strategy->variables, TR_ARENA_PARAMETERS);
    if (!strategy->comm) return TR_OK;
    tr_ticket *ticket = NULL;
    tr_status status = tr_comm_all_gather(strategy->comm, parameters, self->share_bytes, self->parameters,
                                          "parameters", &ticket);
    TR_TRY(tr_strategy_wait(strategy, status, ticket));
    for (int i = TR_ARENA_M; i < TR_ARENAS; i++) {
        float *arena = tr_variables_arena(strategy->variables, (enum tr_arena)i);
        if (arena) TR_TRY(bring_to_chief(self, arena, tr_arena_names[i]));
    }
    return TR_OK;
}

/* No rank can tell by itself. All parameters come to all, and each goes through the step with the whole
   network, so that all come to the same. */
static tr_status blame(tr_strategy *strategy, int64_t step, char *name, size_t size)
{
    const struct tr_train_options *train = &strategy->job->train;
    struct tr_gradient_part part = {.end = train->microbatches, .end_step = train->steps};
    tr_gradient *gradient;
    TR_TRY(gather(strategy));
    TR_TRY(tr_gradient_create(strategy->device, strategy->job, strategy->variables, &part, NULL, &gradient));
    tr_status status = tr_gradient_blame(gradient, step, name, size);
    tr_gradient_destroy(&gradient);
    return status;
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
    .blame = blame,
    .variants = variants,
};
