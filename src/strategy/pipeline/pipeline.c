/* Pipeline parallelism: the layers are divided into stages, the microbatches of each step flow through them
 * (stage.h), and each rank updates parameters of its own stage. With more ranks than stages, several replicas
 * of the pipeline share the microbatches: a grid of stages x replicas, in which the replicas of a stage add
 * their gradients along the fixed tree, update a share each, and bring the shares together.
 *
 * Rank = stage * replicas + replica, so that those who exchange most are neighbours. Parameters lie in the
 * arena in the order of the layers, so the shares of all ranks ascend by rank.
 *
 * Invariant: between steps a rank has the present parameters of its own stage, and what the optimizer keeps
 * of its own share; the rest of its arenas are addresses without memory. Only the chief ever has more, from a
 * gathering (gather.c) to its release.
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
    self->square_bytes = tr_alloc_zero(size + 1, sizeof *self->square_bytes);
    if (!self->layer || !self->microbatch || !self->share || !self->share_bytes || !self->part ||
        !self->part_bytes || !self->square_bytes)
        return TR_ENOMEM;
    for (int r = 0; r <= self->replicas; r++)
        self->microbatch[r] = tr_cut(self->head.job->train.microbatches, self->replicas, r);
    return TR_OK;
}

static tr_status create(tr_strategy *strategy)
{
    struct pipeline *self = self_of(strategy);
    tr_comm *comm = strategy->comm;
    self->stages = pipeline_stages(strategy->options, strategy->size);
    self->replicas = strategy->size / self->stages;
    TR_TRY(make_tables(self));
    if (self->stages > 1) TR_TRY(tr_strategy_keep_moving(strategy, NULL));
    if (self->replicas == 1) return TR_OK;
    self->splits = self->stages > 1;
    self->group = comm;
    if (self->splits)
        TR_TRY(tr_comm_split(comm, pipeline_stage_of(self, strategy->rank),
                             pipeline_replica_of(self, strategy->rank), &self->group));
    if (self->splits) strategy->part = self->group;
    return TR_OK;
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
    tr_free(self->square_bytes);
    tr_free(self->piece);
}

static void leave(tr_strategy *strategy)
{
    stage_leave(&self_of(strategy)->stage);
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

/* Those of the stage; the replicas of a host have the parameters once. */
static tr_status make_variables(struct pipeline *self)
{
    tr_strategy *strategy = &self->head;
    const struct tr_job *job = strategy->job;
    const struct tr_variables_part part = {
        .begin = self->plan.arena_begin,
        .end = self->plan.arena_end,
        .state_begin = self->share[strategy->rank],
        .state_end = self->share[strategy->rank + 1],
    };
    float *parameters = NULL;
    if (self->group) {
        bool holds = tr_comm_local_rank(self->group) == 0;
        size_t bytes = holds ? (size_t)job->model->arena_floats * sizeof(float) : 0;
        TR_TRY(tr_strategy_window_sparse(strategy, self->group, bytes,
                                         holds ? (size_t)part.begin * sizeof(float) : 0,
                                         holds ? (size_t)part.end * sizeof(float) : 0, &self->parameters));
        if (self->parameters)
            parameters = tr_window_part(self->parameters, tr_comm_local(self->group, 0), NULL);
    }
    return tr_variables_create_part(strategy->holder, job->model, &job->optimizer, &part, parameters,
                                    &strategy->variables);
}

/* The sums of squares of a stage are brought by its first replica. */
static void bound_squares(struct pipeline *self)
{
    for (int rank = 0; rank <= self->head.size; rank++) {
        int stage = pipeline_stage_of(self, rank) + (pipeline_replica_of(self, rank) > 0);
        int64_t squares =
            tr_variables_squares_before(self->head.variables, self->share[stage * self->replicas]);
        self->square_bytes[rank] = squares * (int64_t)sizeof(float);
    }
}

/* All is made once the data are there, with which layers are timed. */
static tr_status begin(tr_strategy *strategy)
{
    struct pipeline *self = self_of(strategy);
    float *nodes = NULL;
    if (strategy->comm && strategy->rank == 0) {
        self->piece = tr_alloc((size_t)TR_STRATEGY_PIECE, sizeof *self->piece);
        if (!self->piece) return TR_ENOMEM;
    }
    TR_TRY(pipeline_divide(self));
    stage_plan(strategy->job, &self->place, &self->plan);
    TR_TRY(make_variables(self));
    bound_squares(self);
    TR_TRY(make_nodes(self, &nodes));
    return stage_create(strategy, &self->place, nodes, &self->stage);
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
        .confined = true,
    };
}

static size_t memory(const tr_strategy *strategy)
{
    const struct pipeline *self = (const struct pipeline *)strategy;
    const struct stage_plan *plan = &self->plan;
    int64_t floats = 0; /* of the gradient, where it is not the node itself */
    if (self->group) floats = self->share[strategy->rank + 1] - self->share[strategy->rank];
    if (self->group && tr_strategy_measures(strategy->job)) floats = plan->arena_end - plan->arena_begin;
    return tr_variables_memory(strategy->variables) + stage_memory(self->stage) +
           (size_t)floats * sizeof(float);
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

/* The norm of the whole gradient from the sums of squares that each stage forms of its own. */
static tr_status measure_together(struct pipeline *self)
{
    tr_strategy *strategy = &self->head;
    tr_variables *variables = strategy->variables;
    tr_ticket *ticket = NULL;
    if (self->group) {
        float *gradient = self->gradient + self->plan.arena_begin;
        TR_TRY(tr_comm_all_gather(self->group, gradient, self->part_bytes, NULL, "gradient", &ticket));
        TR_TRY(tr_comm_wait(self->group, &ticket));
    }
    TR_TRY(tr_variables_measure_squares(variables, self->gradient));
    TR_TRY(tr_device_wait(strategy->holder));
    tr_status status = tr_comm_all_gather(strategy->comm, tr_variables_squares(variables), self->square_bytes,
                                          NULL, "squares of the gradient", &ticket);
    TR_TRY(tr_strategy_wait(strategy, status, ticket));
    return tr_variables_join_squares(variables);
}

static tr_status measure(struct pipeline *self, struct tr_step_figures *figures)
{
    tr_strategy *strategy = &self->head;
    if (!tr_strategy_measures(strategy->job)) return TR_OK;
    if (!figures->bad_loss)
        TR_TRY(strategy->comm ? measure_together(self)
                              : tr_variables_measure(strategy->variables, self->gradient));
    return tr_strategy_judge(strategy, figures);
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
    TR_TRY(measure(self, figures));
    if (!figures->bad_loss && !figures->skipped) TR_TRY(update(self, &poisoned));
    return tr_strategy_exchange(strategy, poisoned, wish, figures);
}

/* No rank can tell by itself: the chief goes through the step with the whole network. */
static tr_status blame_here(tr_strategy *strategy, int64_t step, char *name, size_t size)
{
    const struct tr_train_options *train = &strategy->job->train;
    struct tr_gradient_part part = {.end = train->microbatches, .end_step = train->steps};
    tr_gradient *gradient;
    TR_TRY(tr_gradient_create(strategy->device, strategy->job, strategy->variables, &part, NULL, &gradient));
    tr_status status = tr_gradient_blame(gradient, step, name, size);
    tr_gradient_destroy(&gradient);
    return status;
}

static tr_status blame(tr_strategy *strategy, int64_t step, char *name, size_t size)
{
    TR_TRY(pipeline_gather_parameters(strategy));
    if (tr_strategy_is_chief(strategy->comm)) TR_TRY(blame_here(strategy, step, name, size));
    pipeline_release(strategy);
    return tr_strategy_share(strategy, name, size);
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
    .leave = leave,
    .begin = begin,
    .placement = placement,
    .step = step,
    .gather_averages = pipeline_gather_averages,
    .gather_parameters = pipeline_gather_parameters,
    .release = pipeline_release,
    .bring = pipeline_bring,
    .memory = memory,
    .blame = blame,
    .variants = variants,
};
