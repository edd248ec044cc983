/* Running a pass: forward in layer order, the loss, backward in reverse. */
#include "nn/pass_internal.h"

#include "base/fail.h"
#include "base/rng.h"
#include "base/timeline.h"

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
        .rows = is_sequence(layer) ? batch->tokens : batch->examples,
        .global_rows = batch->global_examples,
        .offset = pass->offset,
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
    for (int k = 0; k < layer->parameter_count; k++) {
        int64_t offset = model->parameters[layer->parameter[k]].offset;
        call->parameter[k] = parameters + offset;
        if (gradients) call->gradient[k] = gradients + (offset - pass->arena_begin);
    }
}

/* Tells the timeline what a call computes and how much memory its output takes; `products` counts how many of
   the layer's forward products it is worth. */
static void tell_work(const struct tr_layer_call *call, int products)
{
    const struct tr_layer *layer = call->layer;
    int64_t rows = layer->out.sequence ? call->rows : call->examples;
    tr_span_work((double)layer->flops * (double)call->rows * products,
                 rows * tr_shape_count(&layer->out) * (int64_t)sizeof(float));
}

static struct tr_cut make_cut(const struct tr_pass_batch *batch, const int64_t *row, int64_t stride)
{
    return (struct tr_cut){batch->microbatches, row, batch->nodes, batch->node_bound, stride};
}

tr_status tr_pass_forward(tr_pass *pass, const struct tr_pass_batch *batch, const float *parameters,
                          float *gradients, int64_t stride)
{
    struct tr_cut example_cut = make_cut(batch, batch->example_row, stride);
    struct tr_cut token_cut = make_cut(batch, batch->token_row, stride);
    for (int i = pass->limits.first_layer; i < pass->limits.end_layer; i++) {
        const struct tr_layer *layer = &pass->model->layers[i];
        if (layer->alias) continue;
        struct tr_layer_call call;
        fill_call(pass, batch, parameters, gradients, i, &call);
        call.example_cut = &example_cut;
        call.cut = is_sequence(layer) ? &token_cut : &example_cut;
        tr_span_begin(TR_ACTIVITY_FORWARD, layer->name);
        tell_work(&call, 1);
        tr_status status = layer->class->forward(&call);
        tr_span_end();
        if (status != TR_OK) return tr_fail_in(status, "layer \"%s\", forward", layer->name);
        if (!pass->watcher) continue;
        int64_t rows = layer->out.sequence ? call.rows : call.examples;
        TR_TRY(pass->watcher(pass->watcher_user, layer, call.y, rows * tr_shape_count(&layer->out)));
    }
    return TR_OK;
}

tr_status tr_pass_loss(tr_pass *pass, const struct tr_pass_batch *batch)
{
    const struct tr_model *model = pass->model;
    assert(pass_is_last(pass));
    bool backward = pass->limits.training && pass->wants[pass->exit];
    struct tr_loss_call call = {
        .device = pass->device,
        .rows = batch->examples,
        .scale = 1.0f / (float)batch->global_examples,
        .output = tr_pass_output(pass),
        .label = pass->label,
        .target = pass->target,
        .loss = pass->loss_rows,
        .correct = pass->correct_rows,
        .gradient = backward ? pass->gradient[pass->exit] : NULL,
    };
    tr_span_begin(TR_ACTIVITY_FORWARD, "loss");
    tr_status status = tr_loss_run(&model->loss, tr_shape_count(&model->output), &call);
    tr_span_end();
    return status;
}

/* The tree sums of loss and correctness, behind the gradients of each node. */
static tr_status sum_metrics(tr_pass *pass, const struct tr_cut *cut, float *sums)
{
    struct tr_op_sum_rows loss = {pass->loss_rows, sums, *cut};
    struct tr_op_sum_rows correct = {pass->correct_rows, sums + 1, *cut};
    TR_TRY(tr_device_sum_rows(pass->device, &loss));
    return tr_device_sum_rows(pass->device, &correct);
}

/* Sets call->dx: the gradient's own place for its first contribution, an addend for later ones. */
static void aim_input_gradients(struct tr_pass *pass, int i, struct tr_layer_call *call)
{
    const struct tr_layer *layer = &pass->model->layers[i];
    for (int k = 0; k < layer->input_count; k++) {
        int source = tr_model_source(pass->model, layer->input[k]);
        if (source < 0 || !pass->wants[source]) continue;
        bool second =
            pass->written[source] || (k == 1 && tr_model_source(pass->model, layer->input[0]) == source);
        call->dx[k] = second ? pass->addend[i][k] : pass->gradient[source];
    }
}

static tr_status add_contributions(struct tr_pass *pass, int i, const struct tr_layer_call *call)
{
    const struct tr_layer *layer = &pass->model->layers[i];
    for (int k = 0; k < layer->input_count; k++) {
        if (!call->dx[k]) continue;
        int source = tr_model_source(pass->model, layer->input[k]);
        float *sum = pass->gradient[source];
        pass->written[source] = true;
        if (call->dx[k] == sum) continue;
        int64_t rows = layer->in[k].sequence ? call->rows : call->examples;
        struct tr_op_add add = {rows * tr_shape_count(&layer->in[k]), sum, call->dx[k], sum};
        TR_TRY(tr_device_add(pass->device, &add));
    }
    return TR_OK;
}

tr_status tr_pass_backward(tr_pass *pass, const struct tr_pass_batch *batch, const float *parameters,
                           float *gradients, int64_t stride)
{
    const struct tr_model *model = pass->model;
    struct tr_cut example_cut = make_cut(batch, batch->example_row, stride);
    struct tr_cut token_cut = make_cut(batch, batch->token_row, stride);
    if (pass_is_last(pass))
        TR_TRY(sum_metrics(pass, &example_cut, gradients + (pass->arena_end - pass->arena_begin)));
    memset(pass->written, 0, (size_t)model->layer_count * sizeof *pass->written);
    for (int i = pass->limits.end_layer - 1; i >= pass->limits.first_layer; i--) {
        const struct tr_layer *layer = &model->layers[i];
        if (layer->alias || !pass->wants[i]) continue;
        struct tr_layer_call call;
        fill_call(pass, batch, parameters, gradients, i, &call);
        call.example_cut = &example_cut;
        call.cut = is_sequence(layer) ? &token_cut : &example_cut;
        aim_input_gradients(pass, i, &call);
        call.apart = pass->apart && pass->apart[i];
        assert(!call.apart || (layer->class->factors && !is_sequence(layer)));
        tr_span_begin(TR_ACTIVITY_BACKWARD, layer->name);
        tell_work(&call, (call.dx[0] != NULL) + (layer->parameter_count > 0 && !call.apart));
        tr_status status = layer->class->backward(&call);
        if (status == TR_OK && call.apart)
            status = pass->taker(pass->taker_user, i, call.x[0], call.dy, batch);
        if (status == TR_OK) status = add_contributions(pass, i, &call);
        tr_span_end();
        if (status != TR_OK) return tr_fail_in(status, "layer \"%s\", backward", layer->name);
        if (pass->listener) TR_TRY(pass->listener(pass->listener_user, i));
    }
    return TR_OK;
}
