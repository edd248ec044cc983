/* Running a pass: forward in layer order, the loss, backward in reverse. A fusion runs with the call of its
 * head, forward in place of its last layer and backward in place of its head; forward layer by layer where
 * outputs are watched. */
#include "nn/pass/internal.h"

#include "base/fail.h"
#include "base/numbers/rng.h"
#include "base/threads/timeline.h"

#include <assert.h>
#include <string.h>

static bool is_sequence(const struct tr_layer *layer)
{
    return layer->in[0].sequence;
}

static void fill_call(struct tr_pass *pass, const struct tr_pass_batch *batch, const float *parameters,
                      float *gradients, int i, struct tr_layer_call *call)
{
    const struct tr_model *model = pass->model;
    const struct tr_layer *layer = &model->layers[i];
    tr_rng_key key = tr_rng_key_make(batch->seed, TR_RNG_DROPOUT);
    *call = (struct tr_layer_call){
        .device = pass->device,
        .layer = layer,
        .training = pass->limits.training,
        .examples = batch->examples,
        .rows = is_sequence(layer) ? pass_tokens(pass, batch) : batch->examples,
        .global_rows = batch->global_examples,
        .offset = pass->image_offset ? pass->image_offset : pass->offset,
        .token = pass->token,
        .layer_number = (uint32_t)i,
        .first_example = batch->first_example,
        .dropout_key = {key.k0, key.k1},
        .scalars = batch->scalars,
        .y = pass->output[i],
        .dy = pass->gradient[i],
    };
    for (int k = 0; k < layer->input_count; k++) {
        int source = tr_model_source(model, layer->input[k]);
        call->x[k] = source < 0 ? pass->input : pass->output[source];
    }
    memcpy(call->buffer, pass->buffer[i], sizeof call->buffer);
    if (layer->tied >= 0) {
        const struct tr_layer *lender = &model->layers[layer->tied];
        bool here = pass_has(pass, layer->tied);
        call->tied = here ? parameters + model->parameters[lender->parameter[0]].offset : pass->lent[i];
        call->tied_leaves = here ? pass->buffer[layer->tied][lender->lent_buffer] : pass->leaves[i];
    }
    for (int k = 0; k < layer->parameter_count; k++) {
        int64_t offset = model->parameters[layer->parameter[k]].offset;
        call->parameter[k] = parameters + offset;
        if (gradients) call->gradient[k] = gradients + (offset - pass->arena_begin);
    }
}

/* Tells the timeline how much memory the output of a call takes; what it computes, its operations tell. */
static void tell_memory(const struct tr_layer_call *call)
{
    const struct tr_layer *layer = call->layer;
    int64_t rows = layer->out.sequence ? call->rows : call->examples;
    tr_span_work(0, rows * tr_shape_count(&layer->out) * (int64_t)sizeof(float));
}

/* Ends the span of a call. Operations of some devices run later than they are called: where times are
   recorded, and the device does not record its own, they are waited for, so that each layer gets its own. */
static tr_status end_span(const struct tr_pass *pass, tr_status status)
{
    const tr_device *device = pass->device;
    if (status == TR_OK && !device->class->host_memory && !device->timed && tr_timeline_current())
        status = tr_device_wait(pass->device);
    tr_span_end();
    return status;
}

static struct tr_cut make_cut(const struct tr_pass_batch *batch, const int64_t *row, int64_t stride)
{
    return (struct tr_cut){batch->microbatches, row, batch->nodes, batch->node_bound, stride};
}

bool tr_model_extends(const struct tr_model *model)
{
    for (int i = 0; i < model->layer_count; i++) {
        const struct tr_layer *layer = &model->layers[i];
        const struct tr_layer_class *class = layer->class;
        if (layer->alias || class->by_row) continue;
        if (!class->extend || (class->extends && !class->extends(layer))) return false;
    }
    return model->input.sequence;
}

tr_status tr_pass_extend(tr_pass *pass, const struct tr_pass_batch *batch, const float *parameters,
                         const struct tr_layer_past *past)
{
    for (int i = 0; i < pass->model->layer_count; i++) {
        const struct tr_layer *layer = &pass->model->layers[i];
        if (layer->alias) continue;
        struct tr_layer_call call;
        fill_call(pass, batch, parameters, NULL, i, &call);
        call.past = past;
        call.memory = past->memory[i];
        tr_status status = layer->class->extend ? layer->class->extend(&call) : layer->class->forward(&call);
        if (status != TR_OK) return tr_fail_in(status, "layer \"%s\", forward", layer->name);
    }
    return TR_OK;
}

/* The first token of each microbatch, or NULL. */
static const int64_t *token_rows(tr_pass *pass, const struct tr_pass_batch *batch)
{
    int64_t each = pass->model->image_tokens;
    if (each == 0 || !batch->example_row) return batch->token_row;
    for (int32_t i = 0; i <= batch->microbatches; i++) pass->token_row[i] = batch->example_row[i] * each;
    return pass->token_row;
}

/* Turns the call of a fusion's head into that of the fusion; the gradients of `tail` are not set. */
static void extend_call(const struct tr_pass *pass, const struct tr_fusion *fusion,
                        struct tr_layer_tail *tail, struct tr_layer_call *call)
{
    const struct tr_model *model = pass->model;
    *tail = tr_fusion_tail(model, fusion);
    if (fusion->sum >= 0) {
        int source = tr_model_source(model, model->layers[fusion->sum].input[fusion->addend]);
        tail->addend = source < 0 ? pass->input : pass->output[source];
    }
    if (tail->pool) tail->taken = pass->buffer[fusion->end][0];
    if (tail->activation == TR_ACT_GELU || tail->activation == TR_ACT_GELU_TANH)
        tail->derivative = pass->buffer[fusion->end][0];
    call->y = pass->output[fusion->end];
    call->dy = pass->gradient[fusion->end];
    call->tail = tail;
}

tr_status tr_pass_forward(tr_pass *pass, const struct tr_pass_batch *batch, const float *parameters,
                          float *gradients, int64_t stride)
{
    struct tr_cut example_cut = make_cut(batch, batch->example_row, stride);
    struct tr_cut token_cut = make_cut(batch, token_rows(pass, batch), stride);
    if (pass->watcher) TR_TRY(pass_prepare_watching(pass));
    for (int i = pass->limits.first_layer; i < pass->limits.end_layer; i++) {
        const struct tr_layer *layer = &pass->model->layers[i];
        const struct tr_fusion *fusion = &pass->fusion[i];
        const bool fuses = tr_fusion_joins(fusion) && !pass->watcher;
        if (layer->alias || (fuses && i < fusion->end)) continue;
        if (fuses) layer = &pass->model->layers[fusion->head];
        struct tr_layer_call call;
        struct tr_layer_tail tail;
        fill_call(pass, batch, parameters, gradients, fuses ? fusion->head : i, &call);
        if (fuses) extend_call(pass, fusion, &tail, &call);
        call.example_cut = &example_cut;
        call.cut = is_sequence(layer) ? &token_cut : &example_cut;
        tr_span_begin(TR_ACTIVITY_FORWARD, layer->name);
        tell_memory(&call);
        tr_status status = end_span(pass, layer->class->forward(&call));
        if (status != TR_OK) return tr_fail_in(status, "layer \"%s\", forward", layer->name);
        if (pass->companion) TR_TRY(pass->companion(pass->companion_user));
        if (!pass->watcher) continue;
        int64_t rows = layer->out.sequence ? call.rows : call.examples;
        TR_TRY(pass->watcher(pass->watcher_user, layer, call.y, rows * tr_shape_count(&layer->out)));
    }
    return TR_OK;
}

/* Losses of tokens as shares of the mean over an example, see tr_pass_loss(). */
static tr_status weigh_tokens(tr_pass *pass, const struct tr_pass_batch *batch, int64_t labels)
{
    float factor = (float)batch->global_examples / (float)labels;
    struct tr_op_scale loss = {pass_tokens(pass, batch), factor, pass->loss_rows, pass->loss_rows};
    struct tr_op_scale correct = {pass_tokens(pass, batch), factor, pass->correct_rows, pass->correct_rows};
    TR_TRY(tr_device_scale(pass->device, &loss));
    return tr_device_scale(pass->device, &correct);
}

tr_status tr_pass_loss(tr_pass *pass, const struct tr_pass_batch *batch)
{
    const struct tr_model *model = pass->model;
    assert(pass_is_last(pass));
    bool backward = pass->limits.training && pass->wants[pass->exit], tokens = model->output.sequence;
    /* A batch without labels has no loss and no gradient, whatever they are divided by. */
    int64_t labels = !tokens ? batch->global_examples : batch->global_labels > 0 ? batch->global_labels : 1;
    struct tr_loss_call call = {
        .device = pass->device,
        .rows = tokens ? pass_tokens(pass, batch) : batch->examples,
        .training = pass->limits.training,
        .scale = 1.0f / (float)labels,
        .output = tr_pass_output(pass),
        .label = pass->label,
        .target = pass->target,
        .weight = pass->weight,
        .scratch = pass->scratch,
        .loss = pass->loss_rows,
        .correct = pass->correct_rows,
        .gradient = backward ? pass->gradient[pass->exit] : NULL,
    };
    tr_span_begin(TR_ACTIVITY_FORWARD, "loss");
    tr_status status = tr_loss_run(&model->loss, tr_shape_count(&model->output), &call);
    if (status == TR_OK && tokens && pass->limits.training) status = weigh_tokens(pass, batch, labels);
    return end_span(pass, status);
}

/* The tree sums of loss and correctness, behind the gradients of each node. */
static tr_status sum_metrics(tr_pass *pass, const struct tr_cut *cut, float *sums)
{
    struct tr_op_sum_rows loss = {pass->loss_rows, sums, *cut};
    struct tr_op_sum_rows correct = {pass->correct_rows, sums + 1, *cut};
    TR_TRY(tr_device_sum_rows(pass->device, &loss));
    return tr_device_sum_rows(pass->device, &correct);
}

/* The layer whose output is input `k` of layer `i`, or -1. */
static int source_of(const struct tr_pass *pass, int i, int k)
{
    return tr_model_source(pass->model, pass->model->layers[i].input[k]);
}

/* Sets call->dx: the gradient's own place for its first contribution, an addend for later ones. */
static void aim_input_gradients(struct tr_pass *pass, int i, struct tr_layer_call *call)
{
    const struct tr_layer *layer = &pass->model->layers[i];
    for (int k = 0; k < layer->input_count; k++) {
        int source = source_of(pass, i, k);
        if (source < 0 || !pass->wants[source]) continue;
        bool second = pass->written[source];
        for (int j = 0; j < k; j++) second |= source_of(pass, i, j) == source;
        call->dx[k] = second ? pass->addend[i][k] : pass->gradient[source];
    }
}

/* Whether the second of two contributions to the gradient of a layer's output is added where a fusion reads
   it. */
static bool left_to_fusion(const struct tr_pass *pass, int source)
{
    const struct tr_fusion *fusion = &pass->fusion[source];
    return source >= pass->limits.first_layer && tr_fusion_joins(fusion) && fusion->end == source &&
           (pass->model->layers[fusion->head].class->tails & TR_TAIL_SUM) &&
           tr_model_consumers(pass->model, source) == 2;
}

static tr_status add_contributions(struct tr_pass *pass, int i, const struct tr_layer_call *call)
{
    const struct tr_layer *layer = &pass->model->layers[i];
    for (int k = 0; k < layer->input_count; k++) {
        if (!call->dx[k]) continue;
        int source = source_of(pass, i, k);
        float *sum = pass->gradient[source];
        pass->written[source] = true;
        if (call->dx[k] == sum) continue;
        if (left_to_fusion(pass, source)) {
            pass->more[source] = call->dx[k];
            continue;
        }
        int64_t rows = layer->in[k].sequence ? call->rows : call->examples;
        struct tr_op_add add = {rows * tr_shape_count(&layer->in[k]), sum, call->dx[k], sum};
        TR_TRY(tr_device_add(pass->device, &add));
    }
    return TR_OK;
}

/* The derivative of the gelu that layer `i` takes, where that was fused with what is before it; else NULL. */
static const float *derivative_of_input(const struct tr_pass *pass, int i)
{
    const struct tr_layer_class *class = pass->model->layers[i].class;
    const int source = class->applies_gelu_gradient ? source_of(pass, i, 0) : -1;
    if (source < pass->limits.first_layer || !tr_fusion_joins(&pass->fusion[source])) return NULL;
    const struct tr_layer_tail tail = tr_fusion_tail(pass->model, &pass->fusion[source]);
    const bool gelu = tail.activation == TR_ACT_GELU || tail.activation == TR_ACT_GELU_TANH;
    return gelu ? pass->buffer[source][0] : NULL;
}

/* Backward of layer `i`, or of the fusion whose head it is. */
static tr_status run_backward(struct tr_pass *pass, const struct tr_pass_batch *batch,
                              const float *parameters, int i, struct tr_layer_call *call)
{
    const struct tr_layer *layer = call->layer;
    const struct tr_fusion *fusion = &pass->fusion[i];
    struct tr_layer_tail tail;
    struct tr_layer_call sum = {0};
    if (tr_fusion_joins(fusion)) {
        extend_call(pass, fusion, &tail, call);
        if (pass->model->layers[fusion->end].relu_left_to_consumer) tail.activation = TR_ACT_NONE;
        tail.more = pass->more[fusion->end];
        /* The layer that adds comes before the head, as it would alone. */
        if (fusion->sum >= 0) {
            fill_call(pass, batch, parameters, NULL, fusion->sum, &sum);
            aim_input_gradients(pass, fusion->sum, &sum);
            sum.dx[1 - fusion->addend] = NULL;
            tail.daddend = sum.dx[fusion->addend];
            if (tail.daddend) pass->written[source_of(pass, fusion->sum, fusion->addend)] = true;
        }
    }
    aim_input_gradients(pass, i, call);
    call->derivative = derivative_of_input(pass, i);
    tr_span_begin(TR_ACTIVITY_BACKWARD, layer->name);
    tell_memory(call);
    tr_status status = layer->class->backward(call);
    if (status == TR_OK && call->apart)
        status = pass->taker(pass->taker_user, i, call->x[0], call->dy, batch);
    if (status == TR_OK && sum.layer) status = add_contributions(pass, fusion->sum, &sum);
    if (status == TR_OK) status = add_contributions(pass, i, call);
    return end_span(pass, status);
}

tr_status tr_pass_backward(tr_pass *pass, const struct tr_pass_batch *batch, const float *parameters,
                           float *gradients, int64_t stride)
{
    const struct tr_model *model = pass->model;
    struct tr_cut example_cut = make_cut(batch, batch->example_row, stride);
    struct tr_cut token_cut = make_cut(batch, token_rows(pass, batch), stride);
    if (pass_is_last(pass))
        TR_TRY(sum_metrics(pass, model->output.sequence ? &token_cut : &example_cut,
                           gradients + (pass->arena_end - pass->arena_begin)));
    memset(pass->written, 0, (size_t)model->layer_count * sizeof *pass->written);
    for (int i = 0; i < model->layer_count; i++) pass->more[i] = NULL;
    for (int i = pass->limits.end_layer - 1; i >= pass->limits.first_layer; i--) {
        const struct tr_layer *layer = &model->layers[i];
        if (layer->alias || !pass->wants[i]) continue;
        if (i > pass->fusion[i].head) {
            if (pass->listener) TR_TRY(pass->listener(pass->listener_user, i));
            continue;
        }
        struct tr_layer_call call;
        fill_call(pass, batch, parameters, gradients, i, &call);
        call.example_cut = &example_cut;
        call.cut = is_sequence(layer) ? &token_cut : &example_cut;
        call.apart = pass->apart && pass->apart[i];
        assert(!call.apart || (layer->class->factors && !is_sequence(layer)));
        tr_status status = run_backward(pass, batch, parameters, i, &call);
        if (status != TR_OK) return tr_fail_in(status, "layer \"%s\", backward", layer->name);
        if (pass->companion) TR_TRY(pass->companion(pass->companion_user));
        if (pass->listener) TR_TRY(pass->listener(pass->listener_user, i));
    }
    return TR_OK;
}
