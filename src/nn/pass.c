/* Memory of a pass: one planned block, laid out by the lifetimes of a step.
 *
 * Events of a step with n layers: layer i runs forward at i, the loss at n, layer i backward at 2n - i. The
 * input is written at -1. Of a range, the entry is written at -1, the exit is sent and its gradient received
 * at n; the entry's gradient has memory of its own, since it may be on its way while the next rows come in.
 */
#include "nn/pass_internal.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "base/rng.h"
#include "tensor/planner.h"

#include <assert.h>
#include <string.h>

/* What one planned buffer belongs to. */
struct claim {
    void **place;
    struct tr_interval interval;
};

struct plan {
    struct claim *claims;
    size_t count;
};

static void claim(struct plan *plan, void *place, int64_t bytes, int first, int last)
{
    plan->claims[plan->count++] = (struct claim){place, {(size_t)bytes, first, last, 0}};
}

static int backward_event(const struct tr_model *model, int layer)
{
    return 2 * model->layer_count - layer;
}

static int64_t units_of(const struct tr_pass_limits *limits, bool sequence)
{
    return sequence ? limits->tokens : limits->examples;
}

static int64_t output_bytes(const struct tr_pass_limits *limits, const struct tr_shape *shape)
{
    return units_of(limits, shape->sequence) * tr_shape_count(shape) * (int64_t)sizeof(float);
}

/* Marks the layers through which a gradient must flow: those with parameters at or below them. */
static void mark_gradients(struct tr_pass *pass)
{
    for (int i = 0; i < pass->model->layer_count; i++) {
        const struct tr_layer *layer = &pass->model->layers[i];
        pass->wants[i] = layer->parameter_count > 0;
        for (int k = 0; k < layer->input_count; k++)
            if (layer->input[k] >= 0 && pass->wants[layer->input[k]]) pass->wants[i] = true;
    }
}

/* The last event that reads the output of `source` (-1: the input). */
static int last_use(const struct tr_pass *pass, int source)
{
    const struct tr_model *model = pass->model;
    bool training = pass->limits.training;
    int last = source;
    if (source > pass->entry && training && model->layers[source].keeps_output)
        last = backward_event(model, source);
    for (int i = pass->limits.first_layer; i < pass->limits.end_layer; i++) {
        const struct tr_layer *layer = &model->layers[i];
        for (int k = 0; k < layer->input_count; k++) {
            if (layer->alias || tr_model_source(model, layer->input[k]) != source) continue;
            int use = training && layer->keeps_input ? backward_event(model, i) : i;
            if (use > last) last = use;
        }
    }
    if (source == pass->exit && last < model->layer_count) last = model->layer_count;
    return last;
}

/* The first event at which a gradient of the output of `source` is written: the backward of its last
 * consumer. */
static int first_gradient(const struct tr_pass *pass, int source)
{
    const struct tr_model *model = pass->model;
    if (source == pass->exit) return model->layer_count;
    for (int i = pass->limits.end_layer - 1; i > source; i--) {
        const struct tr_layer *layer = &model->layers[i];
        for (int k = 0; k < layer->input_count; k++)
            if (!layer->alias && tr_model_source(model, layer->input[k]) == source)
                return backward_event(model, i);
    }
    return backward_event(model, source);
}

static void claim_layer(struct tr_pass *pass, struct plan *plan, int i)
{
    const struct tr_model *model = pass->model;
    const struct tr_layer *layer = &model->layers[i];
    const struct tr_pass_limits *limits = &pass->limits;
    int backward = backward_event(model, i);
    if (layer->alias) return;
    claim(plan, &pass->output[i], output_bytes(limits, &layer->out), i, last_use(pass, i));
    for (int k = 0; k < layer->buffer_count; k++) {
        const struct tr_buffer *buffer = &layer->buffer[k];
        if (buffer->backward_only && !(limits->training && pass->wants[i])) continue;
        int64_t units = buffer->unit == TR_PER_EXAMPLE ? limits->examples
                        : buffer->unit == TR_PER_ROW   ? units_of(limits, layer->in[0].sequence)
                                                       : limits->microbatches;
        claim(plan, &pass->buffer[i][k], units * buffer->bytes + buffer->fixed,
              buffer->backward_only ? backward : i, limits->training ? backward : i);
    }
    if (!limits->training || !pass->wants[i]) return;
    claim(plan, &pass->gradient[i], output_bytes(limits, &layer->out), first_gradient(pass, i), backward);
    /* Room for a second contribution to an input's gradient, added when both are there. */
    for (int k = 0; k < layer->input_count; k++) {
        int source = tr_model_source(model, layer->input[k]);
        if (source >= 0 && pass->wants[source] && tr_model_consumers(model, source) > 1)
            claim(plan, &pass->addend[i][k], output_bytes(limits, &layer->in[k]), backward, backward);
    }
}

static void claim_entry(struct tr_pass *pass, struct plan *plan, int end)
{
    int64_t bytes = output_bytes(&pass->limits, &pass->model->layers[pass->entry].out);
    claim(plan, &pass->output[pass->entry], bytes, -1, last_use(pass, pass->entry));
    if (pass->limits.training && pass->wants[pass->entry])
        claim(plan, &pass->gradient[pass->entry], bytes, -1, end);
}

static void claim_ends(struct tr_pass *pass, struct plan *plan)
{
    const struct tr_model *model = pass->model;
    const struct tr_pass_limits *limits = &pass->limits;
    int end = limits->training ? 2 * model->layer_count + 1 : model->layer_count;
    int64_t examples = limits->examples;
    if (pass->entry >= 0)
        claim_entry(pass, plan, end);
    else if (model->vocabulary > 0)
        claim(plan, &pass->token, limits->tokens * (int64_t)sizeof(int32_t), -1, end);
    else
        claim(plan, &pass->input, output_bytes(limits, &model->input), -1, last_use(pass, -1));
    if (model->input.sequence) claim(plan, &pass->offset, (examples + 1) * (int64_t)sizeof(int32_t), -1, end);
    if (!pass_is_last(pass)) return;
    if (model->loss.kind == TR_LOSS_SOFTMAX_CROSS_ENTROPY)
        claim(plan, &pass->label, examples * (int64_t)sizeof(int32_t), -1, end);
    else
        claim(plan, &pass->target, output_bytes(limits, &model->output), -1, end);
    claim(plan, &pass->loss_rows, examples * (int64_t)sizeof(float), model->layer_count, end);
    claim(plan, &pass->correct_rows, examples * (int64_t)sizeof(float), model->layer_count, end);
}

static tr_status allocate_tables(struct tr_pass *pass)
{
    size_t layers = (size_t)pass->model->layer_count;
    pass->output = tr_alloc_zero(layers, sizeof *pass->output);
    pass->gradient = tr_alloc_zero(layers, sizeof *pass->gradient);
    pass->buffer = tr_alloc_zero(layers, sizeof *pass->buffer);
    pass->addend = tr_alloc_zero(layers, sizeof *pass->addend);
    pass->wants = tr_alloc_zero(layers, sizeof *pass->wants);
    pass->written = tr_alloc_zero(layers, sizeof *pass->written);
    bool complete =
        pass->output && pass->gradient && pass->buffer && pass->addend && pass->wants && pass->written;
    return complete ? TR_OK : TR_ENOMEM;
}

/* Plans the block; with `place` also sets every pointer into `base`. */
static tr_status lay_out(struct tr_pass *pass, size_t *bytes)
{
    size_t most = (size_t)pass->model->layer_count * (2 + TR_LAYER_BUFFERS + TR_LAYER_INPUTS) + 8;
    struct plan plan = {tr_alloc(most, sizeof *plan.claims), 0};
    struct tr_interval *intervals = tr_alloc(most, sizeof *intervals);
    tr_status status = plan.claims && intervals ? TR_OK : TR_ENOMEM;
    if (status != TR_OK) goto out;
    mark_gradients(pass);
    for (int i = pass->limits.first_layer; i < pass->limits.end_layer; i++) claim_layer(pass, &plan, i);
    claim_ends(pass, &plan);
    for (size_t i = 0; i < plan.count; i++) intervals[i] = plan.claims[i].interval;
    TR_TRY_GOTO(tr_plan(intervals, plan.count, bytes), out);
    if (pass->device) {
        TR_TRY_GOTO(tr_device_alloc(pass->device, *bytes ? *bytes : 1, &pass->memory), out);
        for (size_t i = 0; i < plan.count; i++)
            *plan.claims[i].place = (char *)pass->memory + intervals[i].offset;
    }
out:
    tr_free(plan.claims);
    tr_free(intervals);
    return status;
}

static void release_tables(struct tr_pass *pass)
{
    tr_free(pass->output);
    tr_free(pass->gradient);
    tr_free(pass->buffer);
    tr_free(pass->addend);
    tr_free(pass->wants);
    tr_free(pass->written);
}

static void fill_head(struct tr_pass *pass, tr_device *device, const struct tr_model *model,
                      const struct tr_pass_limits *limits)
{
    *pass = (struct tr_pass){.device = device, .model = model, .limits = *limits};
    if (limits->end_layer == 0) pass->limits.end_layer = model->layer_count;
    pass->entry = tr_model_source(model, limits->first_layer - 1);
    pass->exit = tr_model_source(model, pass->limits.end_layer - 1);
    assert(pass->entry < pass->exit);
    tr_pass_arena(model, limits->first_layer, pass->limits.end_layer, &pass->arena_begin, &pass->arena_end);
}

tr_status tr_pass_create(tr_device *device, const struct tr_model *model, const struct tr_pass_limits *limits,
                         tr_pass **out)
{
    struct tr_pass *pass = tr_alloc_zero(1, sizeof *pass);
    if (!pass) return TR_ENOMEM;
    fill_head(pass, device, model, limits);
    size_t bytes;
    tr_status status = allocate_tables(pass);
    if (status == TR_OK) status = lay_out(pass, &bytes);
    if (status != TR_OK) {
        tr_pass_destroy(&pass);
        return status;
    }
    *out = pass;
    return TR_OK;
}

tr_status tr_pass_memory(const struct tr_model *model, const struct tr_pass_limits *limits, size_t *bytes)
{
    struct tr_pass pass;
    fill_head(&pass, NULL, model, limits);
    tr_status status = allocate_tables(&pass);
    if (status == TR_OK) status = lay_out(&pass, bytes);
    release_tables(&pass);
    return status;
}

void tr_pass_destroy(tr_pass **handle)
{
    struct tr_pass *pass = *handle;
    if (!pass) return;
    if (pass->memory) tr_device_free(pass->device, pass->memory);
    release_tables(pass);
    tr_free(pass);
    *handle = NULL;
}

float *tr_pass_input(tr_pass *pass)
{
    return pass->input;
}

int32_t *tr_pass_token(tr_pass *pass)
{
    return pass->token;
}

int32_t *tr_pass_offset(tr_pass *pass)
{
    return pass->offset;
}

int32_t *tr_pass_label(tr_pass *pass)
{
    return pass->label;
}

float *tr_pass_target(tr_pass *pass)
{
    return pass->target;
}

const float *tr_pass_output(const tr_pass *pass)
{
    return pass->output[pass->exit];
}

static struct tr_pass_port port_at(const tr_pass *pass, int layer)
{
    const struct tr_shape *shape = &pass->model->layers[layer].out;
    return (struct tr_pass_port){pass->output[layer], pass->gradient[layer], tr_shape_count(shape),
                                 shape->sequence};
}

struct tr_pass_port tr_pass_entry(const tr_pass *pass)
{
    return pass->entry < 0 ? (struct tr_pass_port){0} : port_at(pass, pass->entry);
}

struct tr_pass_port tr_pass_exit(const tr_pass *pass)
{
    return pass_is_last(pass) ? (struct tr_pass_port){0} : port_at(pass, pass->exit);
}

size_t tr_pass_port_bytes(const struct tr_pass_port *port, const struct tr_pass_batch *batch)
{
    int64_t rows = port->sequence ? batch->tokens : batch->examples;
    return (size_t)(rows * port->width) * sizeof(float);
}

/* Parameters lie in the order of their layers. */
static int64_t arena_before(const struct tr_model *model, int layer)
{
    for (; layer < model->layer_count; layer++)
        if (model->layers[layer].parameter_count)
            return model->parameters[model->layers[layer].parameter[0]].offset;
    return model->arena_floats;
}

void tr_pass_arena(const struct tr_model *model, int first_layer, int end_layer, int64_t *begin, int64_t *end)
{
    *begin = first_layer == 0 ? 0 : arena_before(model, first_layer);
    *end = arena_before(model, end_layer);
}

const float *tr_pass_loss_rows(const tr_pass *pass)
{
    return pass->loss_rows;
}

const float *tr_pass_correct_rows(const tr_pass *pass)
{
    return pass->correct_rows;
}

void tr_pass_watch(tr_pass *pass, tr_pass_watcher watcher, void *user)
{
    pass->watcher = watcher;
    pass->watcher_user = user;
}

void tr_pass_leave_apart(tr_pass *pass, const bool *apart, tr_pass_taker taker, void *user)
{
    pass->apart = apart;
    pass->taker = taker;
    pass->taker_user = user;
}

void tr_pass_listen(tr_pass *pass, tr_pass_listener listener, void *user)
{
    pass->listener = listener;
    pass->listener_user = user;
}
