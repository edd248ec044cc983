#include "job/step/gradient_internal.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "base/numbers/tree.h"
#include "job/feed/resident.h"
#include "job/file/augmentation.h"

#include <assert.h>

static tr_status make_pass(tr_gradient *gradient)
{
    const struct tr_job *job = gradient->job;
    const struct tr_pass_limits *limits = &gradient->plan.limits;
    TR_TRY(tr_pass_create(gradient->device, job->model, limits, &gradient->pass));
    TR_TRY(tr_pass_memory(gradient->device, job->model, limits, &gradient->memory));
    const struct tr_feed_options feed = {
        .rows = limits->examples, .augment = true, .keep = true, .features = true, .labels = true};
    TR_TRY(tr_feed_create(gradient->device, job, job->source[TR_SET_TRAIN], &feed, &gradient->feed));
    gradient->memory += tr_feed_memory(gradient->feed);
    TR_TRY(tr_lesson_create(gradient->device, job, limits, &gradient->lesson));
    gradient->memory += tr_lesson_memory(gradient->lesson);
    return TR_OK;
}

static tr_status zero_floats(tr_gradient *gradient, int64_t begin, int64_t end)
{
    struct tr_op_fill zero = {end - begin, 0, gradient->slots.data + begin};
    gradient->memory += (size_t)(end - begin) * sizeof(float);
    return tr_device_fill(gradient->device, &zero);
}

/* The places of gradients that are computed elsewhere have addresses, but are never touched, and so take
   no memory. */
static tr_status make_slots(tr_gradient *gradient, const bool *apart, float *window)
{
    const struct tr_model *model = gradient->job->model;
    int64_t floats = gradient->plan.stride * gradient->plan.slots, begin = 0;
    TR_TRY(tr_staging_make(gradient->device, floats, window, &gradient->slots));
    assert(!apart || gradient->plan.slots == 1);
    /* Passes never write the gaps between parameters, but updates and sums read them. */
    for (int i = 0; apart && i < model->layer_count; i++) {
        if (!apart[i]) continue;
        const struct tr_parameter *weights = &model->parameters[model->layers[i].parameter[0]];
        TR_TRY(zero_floats(gradient, begin, weights->offset));
        begin = weights->offset + weights->count;
    }
    TR_TRY(zero_floats(gradient, begin, floats));
    /* Huge pages of neighbouring parameters contain some of them. */
    for (int i = 0; apart && i < model->layer_count; i++) {
        if (!apart[i]) continue;
        const struct tr_parameter *weights = &model->parameters[model->layers[i].parameter[0]];
        tr_device_discard(gradient->device, gradient->slots.data + weights->offset,
                          (size_t)weights->count * sizeof(float));
    }
    return TR_OK;
}

/* The device's threads read ahead while they wait for each other: a separate thread would take a processor
   from one of them, and the others would wait for it. */
static void let_help(tr_gradient *gradient)
{
    if (!tr_loader_may_be_helped(gradient->loader)) return;
    gradient->helps = tr_device_set_idle(gradient->device, tr_loader_help, gradient->loader);
    if (gradient->helps) tr_loader_expect_help(gradient->loader);
}

static void end_loader(tr_gradient *gradient)
{
    if (gradient->helps) tr_device_set_idle(gradient->device, NULL, NULL);
    gradient->helps = false;
    tr_loader_destroy(&gradient->loader);
}

tr_status tr_gradient_create(tr_device *device, const struct tr_job *job, tr_variables *variables,
                             const struct tr_gradient_part *part, float *window, tr_gradient **out)
{
    tr_gradient *gradient = tr_alloc_zero(1, sizeof *gradient);
    if (!gradient) return TR_ENOMEM;
    *gradient = (tr_gradient){.device = device, .job = job, .alone = part->alone, .begun.step = -1};
    const struct tr_train_options *train = &job->train;
    const tr_source *source = job->source[TR_SET_TRAIN];
    tr_status status;
    TR_TRY_GOTO(tr_mirror_create(variables, device, &gradient->mirror), fail);
    TR_TRY_GOTO(tr_job_order(job, &gradient->order), fail);
    struct tr_loader_options options = {
        .microbatches = train->microbatches,
        .first_microbatch = part->first,
        .end_microbatch = part->end,
        .prefetch = train->prefetch,
        .end_step = part->end_step,
        .in_place = tr_resident_in_place(device, source),
        .mixes = tr_augmentation_mixes(&job->input.augment),
        .mix_key = tr_rng_key_make((uint64_t)job->file.seed, TR_RNG_AUGMENT),
    };
    TR_TRY_GOTO(tr_loader_create(source, &gradient->order, &options, &gradient->loader), fail);
    let_help(gradient);
    tr_gradient_plan(job, part, tr_loader_rows(gradient->loader), tr_loader_tokens(gradient->loader),
                     tr_loader_second_tokens(gradient->loader), &gradient->plan);
    TR_TRY_GOTO(make_pass(gradient), fail);
    TR_TRY_GOTO(tr_rows_create(&gradient->rows, gradient->plan.per_pass), fail);
    TR_TRY_GOTO(make_slots(gradient, part->apart, window), fail);
    *out = gradient;
    return TR_OK;
fail:
    tr_gradient_destroy(&gradient);
    return status;
}

void tr_gradient_destroy(tr_gradient **handle)
{
    tr_gradient *gradient = *handle;
    if (!gradient) return;
    end_loader(gradient);
    tr_pass_destroy(&gradient->pass);
    tr_lesson_destroy(&gradient->lesson);
    tr_feed_destroy(&gradient->feed);
    tr_staging_release(&gradient->slots);
    tr_rows_release(&gradient->rows);
    tr_mirror_destroy(&gradient->mirror);
    tr_free(gradient);
    *handle = NULL;
}

void tr_gradient_leave(tr_gradient **handle)
{
    if (*handle) end_loader(*handle);
    *handle = NULL;
}

/* The number of examples for the mean loss: those of the whole batch, or only of the part. */
static int64_t examples_of(const tr_gradient *gradient, const struct tr_batch *batch)
{
    const int64_t *bound = gradient->plan.bound, parts = gradient->job->train.microbatches;
    if (!gradient->alone) return batch->global_rows;
    return tr_cut(batch->global_rows, parts, bound[1]) - tr_cut(batch->global_rows, parts, bound[0]);
}

/* Likewise of labels of tokens. */
static int64_t labels_of(const tr_gradient *gradient, const struct tr_batch *batch)
{
    const int64_t *bound = gradient->plan.bound, parts = gradient->job->train.microbatches;
    if (!gradient->alone || !gradient->job->model->output.sequence) return batch->global_labels;
    int64_t first = batch->offset[tr_cut(batch->global_rows, parts, bound[0]) - batch->first];
    int64_t end = batch->offset[tr_cut(batch->global_rows, parts, bound[1]) - batch->first];
    return tr_labels_count(batch->labels + first, end - first);
}

tr_status gradient_prepare_pass(tr_gradient *gradient, const struct tr_batch *batch, int64_t first,
                                int64_t end, struct tr_pass_batch *out)
{
    const struct tr_job *job = gradient->job;
    struct tr_step_scalars *scalars = tr_mirror_scalars(gradient->mirror);
    tr_rows_describe(&gradient->rows, job, batch, first, end, examples_of(gradient, batch),
                     labels_of(gradient, batch), scalars, out);
    int64_t begin = (int64_t)out->first_example - batch->first;
    if (gradient->lesson)
        TR_TRY(tr_lesson_give(gradient->lesson, gradient->feed, batch, begin, out, gradient->pass));
    return tr_feed_rows(gradient->feed, gradient->pass, batch, begin, begin + out->examples,
                        (uint64_t)job->file.seed, scalars);
}

/* Runs microbatches [first, end) forward: `nodes` whole nodes from plan.bound[node] on or, with nodes 1, a
   part of one, with slots from `slot` on. */
static tr_status start_pass(tr_gradient *gradient, const struct tr_batch *batch, int64_t first, int64_t end,
                            int node, int nodes, float *slot, struct tr_pass_batch *part)
{
    const float *parameters = tr_mirror_parameters(gradient->mirror);
    TR_TRY(gradient_prepare_pass(gradient, batch, first, end, part));
    if (nodes > 1) {
        for (int j = 0; j <= nodes; j++)
            gradient->node_bound[j] = (int32_t)(gradient->plan.bound[node + j] - first);
        part->nodes = nodes;
        part->node_bound = gradient->node_bound;
    }
    TR_TRY(tr_pass_forward(gradient->pass, part, parameters, slot, gradient->plan.stride));
    return tr_pass_loss(gradient->pass, part);
}

/* Computes their gradients into these slots. batch NULL: they have run forward already. */
static tr_status run_pass(tr_gradient *gradient, const struct tr_batch *batch, int64_t first, int64_t end,
                          int node, int nodes, float *slot)
{
    struct tr_pass_batch part = gradient->begun.part;
    const float *parameters = tr_mirror_parameters(gradient->mirror);
    if (batch) TR_TRY(start_pass(gradient, batch, first, end, node, nodes, slot, &part));
    return tr_pass_backward(gradient->pass, &part, parameters, slot, gradient->plan.stride);
}

static float *slot_at(const tr_gradient *gradient, int index)
{
    return gradient->slots.data + index * gradient->plan.stride;
}

/* Adds slot `right` to the slot below it. */
static tr_status combine(tr_gradient *gradient, int right)
{
    float *left = slot_at(gradient, right - 1);
    struct tr_op_add add = {gradient->plan.stride, left, slot_at(gradient, right), left};
    return tr_device_add(gradient->device, &add);
}

/* The last pass has completed its slot from float `from` on: adds the waiting slots there, and notifies
   the listener. */
static tr_status finish(tr_gradient *gradient, int64_t from)
{
    int64_t count = gradient->final - from;
    for (int top = gradient->depth - 1; count > 0 && top > gradient->node; top--) {
        float *left = slot_at(gradient, top - 1) + from, *right = slot_at(gradient, top) + from;
        struct tr_op_add add = {count, left, right, left};
        TR_TRY(tr_device_add(gradient->device, &add));
    }
    gradient->final = from;
    return gradient->listener(gradient->listener_user, from);
}

static tr_status finish_layer(void *user, int layer)
{
    tr_gradient *gradient = user;
    const struct tr_model *model = gradient->job->model;
    int64_t from = gradient->final < model->arena_floats ? gradient->final : model->arena_floats;
    if (model->layers[layer].parameter_count > 0)
        from = model->parameters[model->layers[layer].parameter[0]].offset;
    return finish(gradient, from);
}

/* The last pass of a step with a listener; it fills the slots from depth - 1 on. Gradients are added as
   soon as they are complete, not at the end. */
static tr_status run_last_pass(tr_gradient *gradient, const struct tr_batch *batch, int64_t first,
                               int64_t end, int node, int nodes, int depth)
{
    gradient->node = node;
    gradient->depth = depth;
    gradient->final = gradient->plan.stride;
    tr_pass_listen(gradient->pass, finish_layer, gradient);
    tr_status status = run_pass(gradient, batch, first, end, node, nodes, slot_at(gradient, depth - 1));
    tr_pass_listen(gradient->pass, NULL, NULL);
    return status == TR_OK ? finish(gradient, 0) : status;
}

/* Computes a node that takes several passes into its slot; a binary counter over the passes uses the slots
   from there on. */
static tr_status compute_in_passes(tr_gradient *gradient, const struct tr_batch *batch, int node, bool tells)
{
    const int64_t *bound = gradient->plan.bound + node, per_pass = gradient->plan.per_pass;
    struct tr_tree_fold fold = {0};
    for (int64_t first = bound[0]; first < bound[1]; first += per_pass) {
        int64_t end = first + per_pass < bound[1] ? first + per_pass : bound[1];
        int slot = node + fold.waiting;
        assert(slot < gradient->plan.slots);
        if (tells && end == bound[1]) return run_last_pass(gradient, batch, first, end, node, 1, slot + 1);
        TR_TRY(run_pass(gradient, batch, first, end, node, 1, slot_at(gradient, slot)));
        tr_tree_push(&fold, end == bound[1]);
        for (int right; (right = tr_tree_combine(&fold)) > 0;) TR_TRY(combine(gradient, node + right));
    }
    return TR_OK;
}

/* Computes nodes from `node` on: as many as one pass can take, or else one. Returns the next node. */
static tr_status compute_nodes(tr_gradient *gradient, const struct tr_batch *batch, int node, int *next)
{
    const struct tr_gradient_plan *plan = &gradient->plan;
    int end = node + 1;
    while (end < plan->nodes && plan->bound[end + 1] - plan->bound[node] <= plan->per_pass) end++;
    bool tells = gradient->listener && end == plan->nodes;
    int64_t first = plan->bound[node], last = plan->bound[end];
    *next = end;
    if (last - first > plan->per_pass) return compute_in_passes(gradient, batch, node, tells);
    if (tells) return run_last_pass(gradient, batch, first, last, node, end - node, node + 1);
    return run_pass(gradient, batch, first, last, node, end - node, slot_at(gradient, node));
}

/* The batch of a step, and the parameters where passes find them. */
static tr_status open_step(tr_gradient *gradient, int64_t step, const struct tr_batch **batch,
                           int64_t *examples)
{
    TR_TRY(tr_loader_get(gradient->loader, step, batch));
    *examples = examples_of(gradient, *batch);
    return *examples > 0 ? tr_mirror_renew(gradient->mirror, TR_ARENA_PARAMETERS) : TR_OK;
}

tr_status tr_gradient_begin(tr_gradient *gradient, int64_t step)
{
    const struct tr_gradient_plan *plan = &gradient->plan;
    const int64_t first = plan->bound[0], end = plan->bound[plan->nodes];
    struct gradient_begun *begun = &gradient->begun;
    const struct tr_batch *batch;
    assert(tr_gradient_may_begin(gradient));
    (void)tr_gradient_begin_anew(gradient);
    TR_TRY(open_step(gradient, step, &batch, &begun->examples));
    if (begun->examples == 0) return TR_OK;
    TR_TRY(start_pass(gradient, batch, first, end, 0, plan->nodes, slot_at(gradient, 0), &begun->part));
    begun->step = step;
    return TR_OK;
}

bool tr_gradient_may_begin(const tr_gradient *gradient)
{
    const struct tr_gradient_plan *plan = &gradient->plan;
    return plan->bound[plan->nodes] - plan->bound[0] <= plan->per_pass &&
           tr_gradient_borrows_nothing(gradient);
}

bool tr_gradient_begin_anew(tr_gradient *gradient)
{
    bool had_begun = gradient->begun.step >= 0;
    gradient->begun.step = -1;
    return had_begun;
}

tr_status tr_gradient_enqueue(tr_gradient *gradient, int64_t step, float sums[TR_PASS_SUMS],
                              int64_t *examples)
{
    const struct tr_batch *batch = NULL;
    bool begun = gradient->begun.step == step;
    *examples = gradient->begun.examples;
    (void)tr_gradient_begin_anew(gradient);
    if (!begun) TR_TRY(open_step(gradient, step, &batch, examples));
    if (*examples == 0) return TR_OK;
    for (int node = 0; node < gradient->plan.nodes;) TR_TRY(compute_nodes(gradient, batch, node, &node));
    return sums ? tr_device_to_host(gradient->device, sums, tr_gradient_loss(gradient), sizeof gradient->sums)
                : TR_OK;
}

bool tr_gradient_borrows_nothing(const tr_gradient *gradient)
{
    return tr_feed_is_resident(gradient->feed);
}

tr_status tr_gradient_step(tr_gradient *gradient, int64_t step, int64_t *examples)
{
    TR_TRY(tr_gradient_enqueue(gradient, step, gradient->sums, examples));
    return *examples == 0 ? TR_OK : tr_device_wait(gradient->device);
}

const float *tr_gradient_loss(const tr_gradient *gradient)
{
    return gradient->slots.data + gradient->job->model->arena_floats;
}

const float *tr_gradient_sums(const tr_gradient *gradient)
{
    return gradient->sums;
}

void tr_gradient_narrow(tr_gradient *gradient, int64_t first, int64_t end)
{
    assert(gradient->alone && end - first <= gradient->plan.widest);
    gradient->plan.bound[0] = first;
    gradient->plan.bound[1] = end;
    (void)tr_gradient_begin_anew(gradient);
}

float *tr_gradient_slots(const tr_gradient *gradient)
{
    return gradient->slots.data;
}

tr_status tr_gradient_open(tr_gradient *gradient, const struct tr_staging **out)
{
    *out = &gradient->slots;
    return tr_staging_open(&gradient->slots);
}

tr_status tr_gradient_deliver(tr_gradient *gradient, int64_t count, const float **out)
{
    return tr_mirror_gradient(gradient->mirror, gradient->slots.data, count, out);
}

int64_t tr_gradient_stride(const tr_gradient *gradient)
{
    return gradient->plan.stride;
}

void tr_gradient_listen(tr_gradient *gradient, tr_gradient_listener listener, void *user)
{
    gradient->listener = listener;
    gradient->listener_user = user;
}

void tr_gradient_leave_apart(tr_gradient *gradient, const bool *apart, tr_pass_taker taker, void *user)
{
    tr_pass_leave_apart(gradient->pass, apart, taker, user);
}

void tr_gradient_observe(tr_gradient *gradient, tr_pass_observer observer, void *user)
{
    tr_pass_observe(gradient->pass, observer, user);
}

size_t tr_gradient_memory(const tr_gradient *gradient)
{
    return gradient->memory;
}
