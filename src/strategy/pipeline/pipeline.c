/* Pipeline parallelism: the layers are divided into stages, the microbatches of each step flow through
 * them (stage.h), and each rank updates parameters of its own stage. With more ranks than stages, several
 * replicas of the pipeline share the microbatches: a grid of stages x replicas, in which the replicas of a
 * stage add their gradients along the fixed tree, update a shard each, and gather the shards.
 *
 * Rank = stage * replicas + replica, so that ranks that exchange most are neighbours. Parameters lie in
 * the arena in the order of the layers, so the shards of all ranks ascend by rank.
 *
 * Invariant: between steps a rank has the current parameters of its own stage, and the optimizer's state
 * of its own shard; the rest of its arenas are addresses without memory. Only the root has more, between
 * gathering (gather.c) and release.
 */
#include "strategy/pipeline/pipeline.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "comm/program.h"
#include "job/step/mirror.h"
#include "job/teacher.h"

#include <assert.h>
#include <string.h>

static struct pipeline *self_of(tr_strategy *strategy)
{
    return (struct pipeline *)strategy;
}

/* ---- making ---- */

static tr_status check(const struct tr_job *job, const void *options, int ranks)
{
    int stages = pipeline_stages(options, ranks);
    if (tr_job_is_taught(job))
        return tr_fail(TR_EINVAL,
                       "a pipeline has no teacher (`distill`), since the stage that has the loss has no "
                       "examples; take allreduce or parameter-server");
    if (ranks % stages)
        return tr_fail(TR_EINVAL, "%d ranks are not a multiple of %d stages; start %d or %d", ranks, stages,
                       ranks < stages ? stages : ranks / stages * stages, (ranks / stages + 1) * stages);
    TR_TRY(tr_shares_suffice(job->train.microbatches, ranks / stages, "replicas of the pipeline"));
    return ranks == 1 ? TR_OK : pipeline_check_cuts(job->model, options, stages);
}

static tr_status make_tables(struct pipeline *self)
{
    size_t stages = (size_t)self->stages, replicas = (size_t)self->replicas, size = (size_t)self->head.size;
    self->layer = tr_alloc(stages + 1, sizeof *self->layer);
    self->microbatch = tr_alloc(replicas + 1, sizeof *self->microbatch);
    self->shard = tr_alloc_zero(size + 1, sizeof *self->shard);
    self->shard_bytes = tr_alloc_zero(size + 1, sizeof *self->shard_bytes);
    self->part = tr_alloc(replicas + 1, sizeof *self->part);
    self->part_bytes = tr_alloc(replicas + 1, sizeof *self->part_bytes);
    if (!self->layer || !self->microbatch || !self->shard || !self->shard_bytes || !self->part ||
        !self->part_bytes)
        return TR_ENOMEM;
    tr_tree_cut(self->head.job->train.microbatches, self->replicas, self->microbatch);
    return TR_OK;
}

static tr_status create(tr_strategy *strategy)
{
    struct pipeline *self = self_of(strategy);
    tr_comm *comm = strategy->comm;
    self->stages = pipeline_stages(strategy->options, strategy->size);
    self->replicas = strategy->size / self->stages;
    TR_TRY(make_tables(self));
    if (self->stages > 1) TR_TRY(tr_strategy_use_progress_thread(strategy, NULL));
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
    tr_staging_release(&self->nodes);
    tr_staging_release(&self->gradient);
    tr_window_destroy(&self->node_window);
    tr_window_destroy(&self->parameters);
    if (self->splits) tr_comm_destroy(&self->group);
    tr_free(self->layer);
    tr_free(self->microbatch);
    tr_free(self->shard);
    tr_free(self->shard_bytes);
    tr_free(self->part);
    tr_free(self->part_bytes);
}

/* Its messages are ended with all others; a stage that reads ahead must not outlive the data. */
static bool cancel(tr_strategy *strategy)
{
    if (self_of(strategy)->stage) stage_read_no_more(self_of(strategy)->stage);
    return true;
}

/* ---- memory ---- */

static tr_status zero(tr_device *device, float *at, int64_t floats)
{
    struct tr_op_fill fill = {floats, 0, at};
    return tr_device_fill(device, &fill);
}

/* Memory for the nodes of this stage, and for the gradient. */
static tr_status make_nodes(struct pipeline *self, float **nodes)
{
    tr_strategy *strategy = &self->head;
    const struct stage_plan *plan = &self->plan;
    const struct tr_job *job = strategy->job;
    int64_t floats = plan->nodes * plan->stride;
    float *window = NULL;
    self->apart = self->group || !tr_mirror_is_direct(strategy->device, strategy->holder);
    TR_TRY(tr_staging_make(strategy->holder, job->model->arena_floats + 3 * PIPELINE_GRAIN, NULL,
                           &self->gradient));
    TR_TRY(tr_staging_open(&self->gradient));
    if (!self->apart) {
        assert(plan->nodes == 1);
        *nodes = self->gradient.data + plan->arena_begin;
        return zero(strategy->device, *nodes, plan->stride);
    }
    if (self->group) {
        TR_TRY(tr_strategy_window(self->group, (size_t)floats * sizeof(float), &self->node_window));
        if (self->node_window) window = tr_window_segment(self->node_window, tr_comm_rank(self->group), NULL);
        TR_TRY(tr_reduction_create(self->group, job->train.microbatches, self->microbatch, self->node_window,
                                   &self->reduction));
    }
    TR_TRY(tr_staging_make(strategy->device, floats, window, &self->nodes));
    TR_TRY(tr_staging_open(&self->nodes));
    *nodes = self->nodes.data;
    return zero(strategy->device, *nodes, floats);
}

/* Variables of the stage; replicas on the same host share the parameters. */
static tr_status make_variables(struct pipeline *self)
{
    tr_strategy *strategy = &self->head;
    const struct tr_job *job = strategy->job;
    const struct tr_variables_part part = {
        .begin = self->plan.arena_begin,
        .end = self->plan.arena_end,
        .state_begin = self->shard[strategy->rank],
        .state_end = self->shard[strategy->rank + 1],
    };
    float *parameters = NULL;
    if (self->group) {
        bool holds = tr_comm_local_rank(self->group) == 0;
        size_t bytes = holds ? (size_t)job->model->arena_floats * sizeof(float) : 0;
        TR_TRY(tr_strategy_window_sparse(self->group, bytes, holds ? (size_t)part.begin * sizeof(float) : 0,
                                         holds ? (size_t)part.end * sizeof(float) : 0, &self->parameters));
        if (self->parameters)
            parameters = tr_window_segment(self->parameters, tr_comm_local(self->group, 0), NULL);
    }
    TR_TRY(tr_variables_create_part(strategy->holder, job->model, &job->optimizer, &part, parameters,
                                    &strategy->replicas->variables));
    if (parameters)
        tr_variables_let_fill(strategy->replicas->variables, tr_comm_local_rank(self->group) == 0);
    return TR_OK;
}

/* Counts the memory besides the variables. */
static void count_memory(struct pipeline *self)
{
    tr_strategy *strategy = &self->head;
    const struct stage_plan *plan = &self->plan;
    struct stage_memory stage = stage_memory(self->stage);
    int64_t floats = 0; /* of the gradient, where it is not the node itself */
    if (self->apart) floats = self->shard[strategy->rank + 1] - self->shard[strategy->rank];
    if (self->apart && tr_strategy_measures(strategy->job)) floats = plan->arena_end - plan->arena_begin;
    strategy->computing += stage.device;
    strategy->memory += stage.host + (size_t)floats * sizeof(float);
    /* A device with its own memory needs addresses for a whole arena. */
    if (tr_device_memory(strategy->holder) > 0) {
        int64_t whole = self->gradient.floats - (self->apart ? 0 : plan->nodes * plan->stride);
        if (whole > 0) strategy->holding += (size_t)whole * sizeof(float);
    }
}

/* All is made once the training data are open, which the timing of layers needs. */
static tr_status begin(tr_strategy *strategy)
{
    struct pipeline *self = self_of(strategy);
    float *nodes = NULL;
    TR_TRY(pipeline_divide(self));
    stage_plan(strategy->job, &self->cell, &self->plan);
    TR_TRY(make_variables(self));
    TR_TRY(make_nodes(self, &nodes));
    /* The last rank sends the loss to the others. */
    float *sums = self->gradient.host + strategy->job->model->arena_floats;
    bool tells =
        strategy->rank == strategy->size - 1 && !self->apart && !tr_staging_is_direct(&self->gradient);
    TR_TRY(stage_create(strategy, &self->cell, nodes, tells ? sums : NULL, &self->stage));
    count_memory(self);
    self->update = (struct tr_range){self->shard[strategy->rank], self->shard[strategy->rank + 1]};
    strategy->updates = &self->update;
    strategy->update_count = 1;
    return TR_OK;
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
        .first_update = self->shard[rank],
        .end_update = self->shard[rank + 1],
        .updates = self->shard[rank + 1] - self->shard[rank],
        .confined = true,
    };
}

/* ---- a step ---- */

/* Adds the nodes of the replicas into this rank's shard of the gradient; the last shard ends with the sums of
   loss and correctness. */
static tr_status add_nodes(struct pipeline *self)
{
    tr_strategy *strategy = &self->head;
    int replicas = self->replicas;
    tr_ticket *ticket = NULL;
    bool sums_too = self->cell.stage == self->stages - 1;
    self->part[replicas] += sums_too ? TR_PASS_SUMS : 0;
    tr_status status =
        tr_comm_reduce_scatter(self->group, self->reduction, self->nodes.host, self->plan.stride, self->part,
                               self->gradient.host + self->shard[strategy->rank], "gradient", &ticket);
    self->part[replicas] -= sums_too ? TR_PASS_SUMS : 0;
    return status == TR_OK ? tr_comm_wait(self->group, &ticket) : status;
}

static void copy_nodes(struct pipeline *self)
{
    memcpy(self->gradient.host + self->plan.arena_begin, self->nodes.host,
           (size_t)self->plan.stride * sizeof(float));
    tr_program_moved(2 * self->plan.stride, 0);
}

/* Copies the stage's results to the gradient's memory. */
static tr_status reduce(struct pipeline *self)
{
    tr_strategy *strategy = &self->head;
    int64_t begin = self->shard[strategy->rank], end = self->shard[strategy->rank + 1];
    if (!self->apart) return TR_OK;
    TR_TRY(tr_staging_to_host(&self->nodes, 0, self->nodes.floats));
    TR_TRY(tr_device_wait(strategy->device));
    if (self->group)
        TR_TRY(add_nodes(self));
    else
        copy_nodes(self);
    return tr_staging_to_device(&self->gradient, begin, end + TR_PASS_SUMS);
}

/* The last rank has the sums, in host memory after the gradient. */
static tr_status share_sums(struct pipeline *self)
{
    tr_strategy *strategy = &self->head;
    int last = strategy->size - 1;
    float sums[TR_PASS_SUMS];
    tr_ticket *ticket = NULL;
    if (strategy->rank == last)
        memcpy(sums, self->gradient.host + strategy->job->model->arena_floats, sizeof sums);
    if (strategy->comm) {
        tr_status status = tr_comm_broadcast(strategy->comm, last, sums, sizeof sums, "loss", &ticket);
        TR_TRY(tr_strategy_wait(strategy, status, ticket));
    }
    tr_driver_open(strategy, sums);
    return TR_OK;
}

/* Gathers the replicas' shards of an arena of their stage. */
static tr_status join(struct pipeline *self, const struct tr_staging *arena, tr_window *window,
                      const char *name)
{
    if (!self->group) return TR_OK;
    return tr_strategy_join(self->group, arena, self->shard[self->cell.stage * self->replicas],
                            self->part_bytes, window, name);
}

static tr_status gradient(tr_strategy *strategy, int64_t step, struct tr_combined *out)
{
    struct pipeline *self = self_of(strategy);
    TR_TRY(stage_step(self->stage, step, &out->examples));
    TR_TRY(reduce(self));
    TR_TRY(share_sums(self));
    out->gradient = self->gradient.data;
    if (strategy->spoilt || !tr_strategy_measures(strategy->job)) return TR_OK;
    return join(self, &self->gradient, NULL, "gradient");
}

static tr_status gather(tr_strategy *strategy, unsigned arenas)
{
    struct pipeline *self = self_of(strategy);
    for (int i = 0; i < TR_ARENAS; i++) {
        const struct tr_staging *arena;
        if (!(arenas & 1U << i)) continue;
        TR_TRY(tr_variables_open(strategy->replicas->variables, (enum tr_arena)i, &arena));
        TR_TRY(join(self, arena, i == TR_ARENA_PARAMETERS ? self->parameters : NULL, tr_arena_names[i]));
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
     .help = "number of stages; the number of ranks is a multiple of it. 0: from `cut`, else 2. A single "
             "process computes all layers"},
    {.key = "cut",
     .type = TR_OPTION_STRING_LIST,
     .offset = AT(cut),
     .fallback = "",
     .help = "names of the first layers of the second and later stages; default: stages of equal time, as "
             "measured when training starts"},
};
#undef AT

static const char *const variants[] = {"stages=2", NULL};

static const struct tr_strategy_division division = {
    .placement = placement, .gather = gather, .collect = pipeline_collect};

const struct tr_strategy_class tr_strategy_pipeline = {
    .version = TR_STRATEGY_CLASS_VERSION,
    .name = "pipeline",
    .help =
        "model parallelism: the layers are divided into stages, through which the microbatches flow; with "
        "several ranks a stage, these share the microbatches",
    .options = options,
    .option_count = TR_OPTION_COUNT(options),
    .options_size = sizeof(struct pipeline_options),
    .size = sizeof(struct pipeline),
    .variants = variants,
    .check = check,
    .create = create,
    .begin = begin,
    .cancel = cancel,
    .destroy = destroy,
    .gradient = gradient,
    .division = &division,
};
