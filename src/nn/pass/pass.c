/* Memory of a pass: one planned block, laid out by the lifetimes of a step.
 *
 * Events of a step with n layers: layer i runs forward at i, the loss at n, layer i backward at 2n - i. The
 * input is written at -1. A fusion (nn/fusion.h) runs at the last event of its layers, and what is between
 * them has no memory; only where outputs are watched its layers run one by one. Of a range, the entry is
 * written at -1, the exit is sent and its gradient received at n; the entry's gradient has memory of its own,
 * since it may be on its way while the next rows come in.
 */
#include "nn/pass/internal.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "base/numbers/rng.h"
#include "tensor/planner.h"

#include <assert.h>
#include <string.h>

/* Where a buffer may begin, in bytes. */
#define PLACE_GRAIN 64

/* What one planned buffer belongs to. */
struct claim {
    void **place, **also; /* also: a second place in the same memory, or NULL */
    struct tr_interval interval;
};

struct plan {
    struct claim *claims;
    size_t count;
};

static void claim(struct plan *plan, void *place, int64_t bytes, int first, int last)
{
    plan->claims[plan->count++] = (struct claim){place, NULL, {(size_t)bytes, first, last, 0}};
}

static int backward_event(const struct tr_model *model, int layer)
{
    return 2 * model->layer_count - layer;
}

/* The events at which a layer runs with its fusion. */
static int last_forward(const struct tr_pass *pass, int layer)
{
    return pass->fusion[layer].end;
}

static int last_backward(const struct tr_pass *pass, int layer)
{
    return backward_event(pass->model, pass->fusion[layer].head);
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
        pass->wants[i] = layer->parameter_count > 0 || layer->tied >= 0;
        for (int k = 0; k < layer->input_count; k++)
            if (layer->input[k] >= 0 && pass->wants[layer->input[k]]) pass->wants[i] = true;
    }
}

/* Finds the fusions; all layers of one are within the range. */
static void plan_fusions(struct tr_pass *pass, const tr_device *device)
{
    const int first = pass->limits.first_layer, end = pass->limits.end_layer;
    if (pass->limits.training)
        tr_fusion_plan(pass->model, device ? device->class : NULL, first, end, pass->fusion + first);
    else
        for (int i = first; i < end; i++) pass->fusion[i] = (struct tr_fusion){i, i, -1, 0};
}

/* The last event that reads the output of `source` (-1: the input). */
static int last_use(const struct tr_pass *pass, int source)
{
    const struct tr_model *model = pass->model;
    bool training = pass->limits.training;
    int last = source;
    if (source > pass->entry && training && model->layers[source].keeps_output)
        last = last_backward(pass, source);
    for (int i = pass->limits.first_layer; i < pass->limits.end_layer; i++) {
        const struct tr_layer *layer = &model->layers[i];
        for (int k = 0; k < layer->input_count; k++) {
            if (layer->alias || tr_model_source(model, layer->input[k]) != source) continue;
            int use = training && layer->keeps_input ? last_backward(pass, i) : last_forward(pass, i);
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

static bool ends_fusion(const struct tr_pass *pass, int i)
{
    return tr_fusion_joins(&pass->fusion[i]) && pass->fusion[i].end == i;
}

/* The end of the fusion whose gradient, in its memory, becomes that of the layer before it, `source`: if it
   writes dx where dy is and is the only one that takes the layer's output. -1: none. */
static int gradient_replaced(const struct tr_pass *pass, int source)
{
    const struct tr_model *model = pass->model;
    if (!pass_has(pass, source) || tr_fusion_joins(&pass->fusion[source])) return -1;
    if (tr_model_consumers(model, source) != 1) return -1;
    for (int i = source + 1; i < pass->limits.end_layer; i++) {
        const struct tr_layer *layer = &model->layers[i];
        if (layer->alias || tr_model_source(model, layer->input[0]) != source) continue;
        const struct tr_fusion *fusion = &pass->fusion[i];
        const bool replaces = layer->class->replaces_dy && tr_fusion_joins(fusion) && fusion->head == i;
        return replaces && fusion->end != pass->exit ? fusion->end : -1;
    }
    return -1;
}

static void claim_gradient(struct tr_pass *pass, struct plan *plan, int i)
{
    const struct tr_model *model = pass->model;
    const int before = tr_model_source(model, model->layers[pass->fusion[i].head].input[0]);
    const int end = gradient_replaced(pass, i);
    if (pass_is_within(pass, i) ||
        (before >= 0 && pass->wants[before] && gradient_replaced(pass, before) == i))
        return; /* it is claimed there */
    claim(plan, &pass->gradient[i], output_bytes(&pass->limits, &model->layers[i].out),
          first_gradient(pass, end >= 0 ? end : i), last_backward(pass, i));
    if (end >= 0) plan->claims[plan->count - 1].also = &pass->gradient[end];
}

static void claim_layer(struct tr_pass *pass, struct plan *plan, int i)
{
    const struct tr_model *model = pass->model;
    const struct tr_layer *layer = &model->layers[i];
    const struct tr_pass_limits *limits = &pass->limits;
    int backward = backward_event(model, i), last = last_backward(pass, i);
    if (layer->alias) return;
    if (!pass_is_within(pass, i))
        claim(plan, &pass->output[i], output_bytes(limits, &layer->out), i, last_use(pass, i));
    for (int k = 0; k < layer->buffer_count; k++) {
        const struct tr_buffer *buffer = &layer->buffer[k];
        if (buffer->backward_only && !(limits->training && pass->wants[i])) continue;
        if (buffer->fused_only && !ends_fusion(pass, i)) continue;
        int64_t units = buffer->unit == TR_PER_EXAMPLE ? limits->examples
                        : buffer->unit == TR_PER_ROW   ? units_of(limits, layer->in[0].sequence)
                                                       : limits->microbatches;
        /* What comes from a layer behind the range may come once forward is done. */
        claim(plan, &pass->buffer[i][k], units * buffer->bytes + buffer->fixed,
              buffer->from >= limits->end_layer ? model->layer_count
              : buffer->from > 0                ? backward_event(model, buffer->from)
              : buffer->backward_only           ? backward
                                                : i,
              limits->training ? last : last_forward(pass, i));
    }
    if (!limits->training || !pass->wants[i]) return;
    claim_gradient(pass, plan, i);
    /* Room for a second contribution to an input's gradient, added when both are there, or, at the end of a
       fusion, when that runs. */
    for (int k = 0; k < layer->input_count; k++) {
        int source = tr_model_source(model, layer->input[k]);
        if (source >= 0 && pass->wants[source] && tr_model_consumers(model, source) > 1)
            claim(plan, &pass->addend[i][k], output_bytes(limits, &layer->in[k]), backward,
                  source >= limits->first_layer && last_backward(pass, source) > last
                      ? last_backward(pass, source)
                      : last);
    }
}

/* What a borrower leaves for a lender elsewhere may be on its way while the next rows come in. */
static void claim_leaves(struct tr_pass *pass, struct plan *plan, int i)
{
    const struct tr_model *model = pass->model;
    const int lender = model->layers[i].tied;
    if (lender < 0 || pass_has(pass, lender) || !pass->limits.training) return;
    int64_t bytes = model->parameters[model->layers[lender].parameter[0]].count * (int64_t)sizeof(float);
    claim(plan, &pass->leaves[i], pass->limits.microbatches * bytes, -1, 2 * model->layer_count + 1);
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
    int64_t compared = units_of(limits, model->output.sequence);
    if (tr_loss_class_of(&model->loss)->classifies)
        claim(plan, &pass->label, compared * (int64_t)sizeof(int32_t), -1, end);
    else
        claim(plan, &pass->target,
              compared * tr_loss_targets(&model->loss, tr_shape_count(&model->output)) *
                  (int64_t)sizeof(float),
              -1, end);
    int64_t scratch = tr_loss_scratch(&model->loss, tr_shape_count(&model->output), compared);
    if (scratch > 0) claim(plan, &pass->scratch, scratch, model->layer_count, model->layer_count);
    claim(plan, &pass->loss_rows, compared * (int64_t)sizeof(float), model->layer_count, end);
    claim(plan, &pass->correct_rows, compared * (int64_t)sizeof(float), model->layer_count, end);
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
    pass->fusion = tr_alloc_zero(layers, sizeof *pass->fusion);
    pass->more = tr_alloc_zero(layers, sizeof *pass->more);
    pass->leaves = tr_alloc_zero(layers, sizeof *pass->leaves);
    pass->lent = tr_alloc_zero(layers, sizeof *pass->lent);
    pass->token_row = tr_alloc_zero((size_t)pass->limits.microbatches + 1, sizeof *pass->token_row);
    bool complete = pass->leaves && pass->lent && pass->token_row && pass->output && pass->gradient &&
                    pass->buffer && pass->addend && pass->wants && pass->written && pass->fusion &&
                    pass->more;
    return complete ? TR_OK : TR_ENOMEM;
}

/* Plans the block for `device`; with a device of its own, the pass also gets it. */
static tr_status lay_out(struct tr_pass *pass, const tr_device *device, size_t *bytes)
{
    size_t most = (size_t)pass->model->layer_count * (3 + TR_LAYER_BUFFERS + TR_LAYER_INPUTS) + 9;
    struct plan plan = {tr_alloc(most, sizeof *plan.claims), 0};
    struct tr_interval *intervals = tr_alloc(most, sizeof *intervals);
    tr_status status = plan.claims && intervals ? TR_OK : TR_ENOMEM;
    if (status != TR_OK) goto out;
    mark_gradients(pass);
    plan_fusions(pass, device);
    for (int i = pass->limits.first_layer; i < pass->limits.end_layer; i++) {
        claim_layer(pass, &plan, i);
        claim_leaves(pass, &plan, i);
    }
    claim_ends(pass, &plan);
    for (size_t i = 0; i < plan.count; i++) intervals[i] = plan.claims[i].interval;
    TR_TRY_GOTO(tr_plan(intervals, plan.count, bytes), out);
    if (pass->device) {
        TR_TRY_GOTO(tr_device_alloc(pass->device, *bytes ? *bytes : 1, &pass->memory), out);
        for (size_t i = 0; i < plan.count; i++) {
            *plan.claims[i].place = (char *)pass->memory + intervals[i].offset;
            if (plan.claims[i].also) *plan.claims[i].also = *plan.claims[i].place;
        }
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
    tr_free(pass->fusion);
    tr_free(pass->more);
    tr_free(pass->leaves);
    tr_free(pass->lent);
    tr_free(pass->token_row);
}

static void fill_head(struct tr_pass *pass, tr_device *device, const struct tr_model *model,
                      const struct tr_pass_limits *limits)
{
    *pass = (struct tr_pass){.device = device, .model = model, .limits = *limits};
    if (limits->end_layer == 0) pass->limits.end_layer = model->layer_count;
    if (model->image_tokens > 0) pass->limits.tokens = limits->examples * model->image_tokens;
    pass->entry = tr_model_source(model, limits->first_layer - 1);
    pass->exit = tr_model_source(model, pass->limits.end_layer - 1);
    assert(pass->entry < pass->exit);
    tr_pass_arena(model, limits->first_layer, pass->limits.end_layer, &pass->arena_begin, &pass->arena_end);
}

/* The weights of the classes stay the same in all runs, in memory of their own. */
static tr_status make_weights(struct tr_pass *pass)
{
    const struct tr_model *model = pass->model;
    size_t outputs = (size_t)tr_shape_count(&model->output);
    if (!pass->limits.training || !pass_is_last(pass)) return TR_OK;
    float *weight = tr_alloc(outputs, sizeof *weight);
    if (!weight) return TR_ENOMEM;
    if (!tr_loss_weights(&model->loss, (int64_t)outputs, weight)) {
        tr_free(weight);
        return TR_OK;
    }
    tr_status status = tr_device_alloc(pass->device, outputs * sizeof *weight, &pass->weight);
    if (status == TR_OK) {
        status = tr_device_to_device(pass->device, pass->weight, weight, outputs * sizeof *weight);
        tr_status finished = tr_device_wait(pass->device);
        if (status == TR_OK) status = finished;
    }
    tr_free(weight);
    return status;
}

/* Where the tokens of each image begin, which never changes. */
static tr_status place_image_tokens(struct tr_pass *pass)
{
    int64_t each = pass->model->image_tokens, examples = pass->limits.examples;
    if (each == 0 || examples == 0) return TR_OK;
    if (examples > INT32_MAX / each)
        return tr_fail(TR_EINVAL, "%lld images of %lld tokens are too many at a time; make the batch smaller",
                       (long long)examples, (long long)each);
    int32_t *offset = tr_alloc((size_t)examples + 1, sizeof *offset);
    if (!offset) return TR_ENOMEM;
    for (int64_t i = 0; i <= examples; i++) offset[i] = (int32_t)(i * each);
    size_t bytes = (size_t)(examples + 1) * sizeof *offset;
    tr_status status = tr_device_alloc(pass->device, bytes, &pass->image_offset);
    if (status == TR_OK) status = tr_device_to_device(pass->device, pass->image_offset, offset, bytes);
    tr_status finished = tr_device_wait(pass->device);
    tr_free(offset);
    return status == TR_OK ? finished : status;
}

tr_status tr_pass_create(tr_device *device, const struct tr_model *model, const struct tr_pass_limits *limits,
                         tr_pass **out)
{
    struct tr_pass *pass = tr_alloc_zero(1, sizeof *pass);
    if (!pass) return TR_ENOMEM;
    fill_head(pass, device, model, limits);
    size_t bytes;
    tr_status status = allocate_tables(pass);
    if (status == TR_OK) status = lay_out(pass, device, &bytes);
    if (status == TR_OK) status = make_weights(pass);
    if (status == TR_OK) status = place_image_tokens(pass);
    if (status == TR_OK) status = pass_rehearse(pass);
    if (status != TR_OK) {
        tr_pass_destroy(&pass);
        return status;
    }
    *out = pass;
    return TR_OK;
}

tr_status tr_pass_memory(const tr_device *device, const struct tr_model *model,
                         const struct tr_pass_limits *limits, size_t *bytes)
{
    struct tr_pass pass;
    fill_head(&pass, NULL, model, limits);
    tr_status status = allocate_tables(&pass);
    if (status == TR_OK) status = lay_out(&pass, device, bytes);
    release_tables(&pass);
    return status;
}

tr_status pass_prepare_watching(struct tr_pass *pass)
{
    const struct tr_pass_limits *limits = &pass->limits;
    int64_t bytes = 0;
    if (pass->spare) return TR_OK;
    for (int i = limits->first_layer; i < limits->end_layer; i++)
        if (pass_is_within(pass, i))
            bytes += (output_bytes(limits, &pass->model->layers[i].out) + PLACE_GRAIN - 1) / PLACE_GRAIN *
                     PLACE_GRAIN;
    if (bytes == 0) return TR_OK;
    TR_TRY(tr_device_alloc(pass->device, (size_t)bytes, &pass->spare));
    for (int i = limits->end_layer - 1; i >= limits->first_layer; i--) {
        if (!pass_is_within(pass, i)) continue;
        bytes -=
            (output_bytes(limits, &pass->model->layers[i].out) + PLACE_GRAIN - 1) / PLACE_GRAIN * PLACE_GRAIN;
        pass->output[i] = (char *)pass->spare + bytes;
    }
    return TR_OK;
}

void tr_pass_destroy(tr_pass **handle)
{
    struct tr_pass *pass = *handle;
    if (!pass) return;
    if (pass->memory) tr_device_free(pass->device, pass->memory);
    if (pass->spare) tr_device_free(pass->device, pass->spare);
    if (pass->weight) tr_device_free(pass->device, pass->weight);
    if (pass->image_offset) tr_device_free(pass->device, pass->image_offset);
    release_tables(pass);
    tr_free(pass);
    *handle = NULL;
}
