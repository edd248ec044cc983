/* Making a stage. */
#include "strategy/pipeline/stage_internal.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "job/feed/resident.h"
#include "job/file/augmentation.h"

/* ---- planning ---- */

static bool has_statistics(const struct tr_model *model, int first_layer, int end_layer)
{
    for (int i = first_layer; i < end_layer; i++)
        for (int k = 0; k < model->layers[i].parameter_count; k++)
            if (model->parameters[model->layers[i].parameter[k]].kind == TR_PARAMETER_STATISTIC) return true;
    return false;
}

static int64_t units_of(const struct stage_plan *plan, int node)
{
    return (plan->bound[node + 1] - plan->bound[node] + plan->per_unit - 1) / plan->per_unit;
}

void stage_plan(const struct tr_job *job, const struct stage_cell *cell, struct stage_plan *plan)
{
    int64_t largest = 0; /* microbatches of a node */
    *plan = (struct stage_plan){.per_unit = cell->per_unit};
    tr_pass_arena(job->model, cell->first_layer, cell->end_layer, &plan->arena_begin, &plan->arena_end);
    plan->stride = (plan->arena_end - plan->arena_begin + TR_PASS_SUMS + 15) / 16 * 16;
    plan->nodes = tr_tree_cover(job->train.microbatches, cell->first, cell->end, plan->bound);
    for (int j = 0; j < plan->nodes; j++)
        if (plan->bound[j + 1] - plan->bound[j] > largest) largest = plan->bound[j + 1] - plan->bound[j];
    if (plan->per_unit > largest) plan->per_unit = largest;
    for (int j = 0; j < plan->nodes; j++) plan->units += units_of(plan, j);
    /* One for each stage from here to the last, and one under way between each two of them. */
    int ahead = 2 * (cell->stages - cell->stage) - 1, receives = cell->stage > 0;
    plan->depth = plan->units < ahead ? (int)plan->units : ahead;
    plan->flights = plan->units < ahead + receives ? (int)plan->units : ahead + receives;
    plan->early = has_statistics(job->model, cell->first_layer, cell->end_layer);
    /* The first of the sums that wait is in the node's own slot; the others, and those in flight, are not. */
    for (int j = 0; j < plan->nodes; j++) {
        int extra = tr_tree_levels(units_of(plan, j)) - 1;
        if (extra > plan->extra) plan->extra = extra;
    }
    if (plan->extra > 0 && plan->early) plan->extra += plan->depth - 1;
}

static void list_units(struct stage *stage)
{
    const struct stage_plan *plan = &stage->plan;
    struct unit *unit = stage->units;
    for (int j = 0; j < plan->nodes; j++) {
        int64_t leaf = 0;
        for (int64_t first = plan->bound[j]; first < plan->bound[j + 1]; first += plan->per_unit) {
            int64_t end = first + plan->per_unit;
            bool last = end >= plan->bound[j + 1];
            *unit++ = (struct unit){first, last ? plan->bound[j + 1] : end, j, leaf++, last};
        }
    }
}

/* ---- making ---- */

static void count_staging(struct stage *stage, const struct tr_staging *buffer)
{
    size_t host = tr_staging_host_memory(buffer);
    stage->memory.host += host;
    stage->memory.device += tr_staging_memory(buffer) - host;
}

static tr_status make_port(struct stage *stage, const struct tr_pass_port *at,
                           const struct tr_pass_limits *limits, struct port *out)
{
    tr_device *device = stage->strategy->device;
    TR_TRY(tr_pass_stage(device, at, at->values, limits, &out->values));
    TR_TRY(tr_pass_stage(device, at, at->gradient, limits, &out->gradient));
    count_staging(stage, &out->values);
    count_staging(stage, &out->gradient);
    return TR_OK;
}

static void release_port(struct port *port)
{
    tr_staging_release(&port->values);
    tr_staging_release(&port->gradient);
}

/* The rank with a layer for the same microbatches. */
static int rank_of_layer(const void *user, int layer)
{
    const struct stage_cell *cell = user;
    int stage = 0;
    while (layer >= cell->layer[stage + 1]) stage++;
    return cell->rank + (stage - cell->stage) * cell->replicas;
}

/* Resources of a flight for weights that are shared with other stages. */
static tr_status make_leaves(struct stage *stage, const struct tr_pass_limits *limits, struct flight *flight)
{
    struct tr_shared_weights *shared = &stage->shared;
    tr_strategy *strategy = stage->strategy;
    struct tr_pass_tie tie;
    if (flight == stage->flights) {
        TR_TRY(tr_shared_weights_make(strategy->comm, STAGE_TAG_SHARED, strategy->device,
                                      strategy->job->model, flight->pass, rank_of_layer, &stage->cell,
                                      shared));
        for (int i = 0; i < shared->count; i++) count_staging(stage, &shared->item[i].copy);
    }
    tr_shared_weights_lend(shared, flight->pass);
    flight->leaves = tr_alloc_zero((size_t)shared->count + 1, sizeof *flight->leaves);
    flight->leaves_ticket = tr_alloc_zero((size_t)shared->count + 1, sizeof(tr_ticket *));
    if (!flight->leaves || !flight->leaves_ticket) return TR_ENOMEM;
    for (int i = 0; tr_pass_tie(flight->pass, i, &tie); i++) {
        tr_staging_over(strategy->device, limits->microbatches * tie.floats, tie.leaves, &flight->leaves[i]);
        TR_TRY(tr_staging_open(&flight->leaves[i]));
        count_staging(stage, &flight->leaves[i]);
    }
    return TR_OK;
}

static void release_leaves(const struct stage *stage, struct flight *flight)
{
    for (int i = 0; flight->leaves && i < stage->shared.count; i++) tr_staging_release(&flight->leaves[i]);
    tr_free(flight->leaves);
    tr_free(flight->leaves_ticket);
}

static tr_status make_flight(struct stage *stage, const struct tr_pass_limits *limits, struct flight *flight)
{
    tr_strategy *strategy = stage->strategy;
    TR_TRY(tr_pass_create(strategy->device, strategy->job->model, limits, &flight->pass));
    TR_TRY(tr_rows_create(&flight->rows, stage->plan.per_unit));
    TR_TRY(make_leaves(stage, limits, flight));
    struct tr_pass_port in = tr_pass_entry(flight->pass), out = tr_pass_exit(flight->pass);
    TR_TRY(make_port(stage, &in, limits, &flight->in));
    return make_port(stage, &out, limits, &flight->out);
}

static tr_status make_flights(struct stage *stage)
{
    const struct tr_job *job = stage->strategy->job;
    const struct stage_plan *plan = &stage->plan;
    struct tr_pass_limits limits = {
        .training = true,
        .first_layer = stage->cell.first_layer,
        .end_layer = stage->cell.end_layer,
    };
    tr_rows_most(job, plan->per_unit, tr_loader_rows(stage->loader), tr_loader_tokens(stage->loader),
                 tr_loader_second_tokens(stage->loader), &limits);
    size_t bytes;
    TR_TRY(tr_pass_memory(stage->strategy->device, job->model, &limits, &bytes));
    for (int i = 0; i < plan->flights; i++) {
        TR_TRY(make_flight(stage, &limits, &stage->flights[i]));
        stage->memory.device += bytes;
    }
    const struct tr_feed_options feed = {
        .rows = limits.examples,
        .augment = true,
        .keep = true,
        .features = limits.first_layer == 0,
        .labels = limits.end_layer == job->model->layer_count,
    };
    TR_TRY(tr_feed_create(stage->strategy->device, job, job->source[TR_SET_TRAIN], &feed, &stage->feed));
    stage->memory.device += tr_feed_memory(stage->feed);
    return TR_OK;
}

static tr_status make_slots(struct stage *stage)
{
    tr_device *device = stage->strategy->device;
    const struct stage_plan *plan = &stage->plan;
    int64_t floats = plan->extra * plan->stride;
    stage->memory.device += (size_t)(floats + plan->nodes * plan->stride) * sizeof(float);
    if (floats == 0) return TR_OK;
    TR_TRY(tr_device_alloc(device, (size_t)floats * sizeof(float), (void **)&stage->extra));
    /* Passes never write the gaps between parameters, but sums read them. */
    struct tr_op_fill zero = {floats, 0, stage->extra};
    TR_TRY(tr_device_fill(device, &zero));
    for (int i = 0; i < plan->extra; i++) stage->spare[stage->spares++] = stage->extra + i * plan->stride;
    return TR_OK;
}

static tr_status make(struct stage *stage)
{
    const struct tr_job *job = stage->strategy->job;
    const struct stage_plan *plan = &stage->plan;
    stage->units = tr_alloc((size_t)plan->units, sizeof *stage->units);
    stage->flights = tr_alloc_zero((size_t)plan->flights, sizeof *stage->flights);
    stage->spare = tr_alloc((size_t)plan->extra + 1, sizeof *stage->spare);
    if (!stage->units || !stage->flights || !stage->spare) return TR_ENOMEM;
    list_units(stage);
    TR_TRY(tr_job_order(job, &stage->order));
    struct tr_loader_options options = {
        .microbatches = job->train.microbatches,
        .first_microbatch = stage->cell.first,
        .end_microbatch = stage->cell.end,
        .prefetch = job->train.prefetch,
        .end_step = job->train.steps,
        .in_place = tr_resident_in_place(stage->strategy->device, job->source[TR_SET_TRAIN]),
        .mixes = tr_augmentation_mixes(&job->input.augment),
        .mix_key = tr_rng_key_make((uint64_t)job->file.seed, TR_RNG_AUGMENT),
    };
    TR_TRY(tr_loader_create(job->source[TR_SET_TRAIN], &stage->order, &options, &stage->loader));
    TR_TRY(tr_mirror_create(stage->strategy->replicas->variables, stage->strategy->device, &stage->mirror));
    TR_TRY(make_flights(stage));
    stage_accompany(stage);
    return make_slots(stage);
}

tr_status stage_create(tr_strategy *strategy, const struct stage_cell *cell, float *results, float *sums,
                       struct stage **out)
{
    *out = NULL;
    struct stage *stage = tr_alloc_zero(1, sizeof *stage);
    if (!stage) return TR_ENOMEM;
    *stage = (struct stage){.strategy = strategy, .cell = *cell, .results = results, .sums = sums};
    stage_plan(strategy->job, cell, &stage->plan);
    tr_status status = make(stage);
    if (status != TR_OK) {
        stage_destroy(&stage);
        return status;
    }
    *out = stage;
    return TR_OK;
}

void stage_destroy(struct stage **handle)
{
    struct stage *stage = *handle;
    if (!stage) return;
    for (int i = 0; stage->flights && i < stage->plan.flights; i++) {
        release_port(&stage->flights[i].in);
        release_port(&stage->flights[i].out);
        release_leaves(stage, &stage->flights[i]);
        tr_pass_destroy(&stage->flights[i].pass);
        tr_rows_release(&stage->flights[i].rows);
    }
    tr_shared_weights_release(&stage->shared);
    tr_loader_destroy(&stage->loader);
    tr_feed_destroy(&stage->feed);
    tr_mirror_destroy(&stage->mirror);
    tr_device_free(stage->strategy->device, stage->extra);
    tr_free(stage->units);
    tr_free(stage->flights);
    tr_free(stage->spare);
    tr_free(stage);
    *handle = NULL;
}

void stage_read_no_more(struct stage *stage)
{
    tr_loader_destroy(&stage->loader);
}

struct stage_memory stage_memory(const struct stage *stage)
{
    return stage->memory;
}
