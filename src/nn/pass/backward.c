/* Backward of a pass: layers in reverse; a fusion runs with the call of its head, in place of that. */
#include "nn/pass/internal.h"

#include "base/fail.h"
#include "base/threads/timeline.h"

#include <assert.h>

/* The tree sums of loss and correctness, after the gradients of each node. */
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

/* Sets call->dx: the gradient's own memory for the first contribution, an addend for later ones. */
static void aim_input_gradients(struct tr_pass *pass, int i, struct tr_layer_call *call)
{
    const struct tr_layer *layer = &pass->model->layers[i];
    for (int k = 0; k < layer->input_count; k++) {
        int source = source_of(pass, i, k);
        if (source < 0 || !pass->layer[source].wants) continue;
        bool second = pass->layer[source].written;
        for (int j = 0; j < k; j++) second |= source_of(pass, i, j) == source;
        call->dx[k] = second ? pass->layer[i].addend[k] : pass->layer[source].gradient;
    }
}

/* Whether the second of two contributions to the gradient of a layer's output is added by the fusion that
   reads it. */
static bool left_to_fusion(const struct tr_pass *pass, int source)
{
    const struct tr_fusion *fusion = &pass->layer[source].fusion;
    return source >= pass->limits.first_layer && tr_fusion_joins(fusion) && fusion->end == source &&
           (pass->model->layers[fusion->head].class->fusing.tails & TR_TAIL_SUM) &&
           tr_model_consumers(pass->model, source) == 2;
}

static tr_status add_contributions(struct tr_pass *pass, int i, const struct tr_layer_call *call)
{
    const struct tr_layer *layer = &pass->model->layers[i];
    for (int k = 0; k < layer->input_count; k++) {
        if (!call->dx[k]) continue;
        int source = source_of(pass, i, k);
        float *sum = pass->layer[source].gradient;
        pass->layer[source].written = true;
        if (call->dx[k] == sum) continue;
        if (left_to_fusion(pass, source)) {
            pass->layer[source].more = call->dx[k];
            continue;
        }
        int64_t rows = !layer->in[k].sequence               ? call->examples
                       : k > 0 && layer->class->two_lengths ? call->memory_rows
                                                            : call->rows;
        struct tr_op_add add = {rows * tr_shape_count(&layer->in[k]), sum, call->dx[k], sum};
        TR_TRY(tr_device_add(pass->device, &add));
    }
    return TR_OK;
}

/* The derivative of the gelu that layer `i` takes, where the gelu was fused with layers before it; else
   NULL. */
static const float *derivative_of_input(const struct tr_pass *pass, int i)
{
    const struct tr_layer_class *class = pass->model->layers[i].class;
    const int source = class->fusing.applies_gelu_gradient ? source_of(pass, i, 0) : -1;
    if (source < pass->limits.first_layer || !tr_fusion_joins(&pass->layer[source].fusion)) return NULL;
    const struct tr_layer_tail tail = tr_fusion_tail(pass->model, &pass->layer[source].fusion);
    return pass_is_gelu(&tail) ? pass->layer[source].buffer[0] : NULL;
}

/* Backward of layer `i`, or of the fusion whose head it is. */
static tr_status run_backward(struct tr_pass *pass, const struct tr_pass_batch *batch,
                              const float *parameters, int i, struct tr_layer_call *call)
{
    const struct tr_layer *layer = call->layer;
    const struct tr_fusion *fusion = &pass->layer[i].fusion;
    struct tr_layer_tail tail;
    struct tr_layer_call sum = {0};
    if (tr_fusion_joins(fusion)) {
        pass_extend_call(pass, fusion, &tail, call);
        if (pass->model->layers[fusion->end].relu.left_to_consumer) tail.activation = TR_ACT_NONE;
        tail.more = pass->layer[fusion->end].more;
        /* The layer that adds runs before the head, as it would without a fusion. */
        if (fusion->sum >= 0) {
            pass_fill_call(pass, batch, parameters, NULL, fusion->sum, &sum);
            aim_input_gradients(pass, fusion->sum, &sum);
            sum.dx[1 - fusion->addend] = NULL;
            tail.daddend = sum.dx[fusion->addend];
            if (tail.daddend) pass->layer[source_of(pass, fusion->sum, fusion->addend)].written = true;
        }
    }
    aim_input_gradients(pass, i, call);
    call->derivative = derivative_of_input(pass, i);
    tr_span_begin(TR_ACTIVITY_BACKWARD, layer->name);
    pass_tell_memory(batch, layer);
    tr_status status = layer->class->backward(call);
    if (status == TR_OK && call->apart)
        status = pass->taker(pass->taker_user, i, call->x[0], call->dy, batch);
    if (status == TR_OK && sum.layer) status = add_contributions(pass, fusion->sum, &sum);
    if (status == TR_OK) status = add_contributions(pass, i, call);
    return pass_end_span(pass, status);
}

tr_status tr_pass_backward(tr_pass *pass, const struct tr_pass_batch *batch, const float *parameters,
                           float *gradients, int64_t stride)
{
    const struct tr_model *model = pass->model;
    const struct tr_cut example_cut = pass_make_cut(pass, batch, false, 0, stride);
    pass_begin_lengths(pass, batch);
    if (pass_is_last(pass)) {
        const struct tr_cut compared = pass_make_cut(
            pass, batch, model->output.sequence, model->layers[model->layer_count - 1].tokens_out, stride);
        TR_TRY(sum_metrics(pass, &compared, gradients + (pass->arena_end - pass->arena_begin)));
    }
    for (int i = 0; i < model->layer_count; i++) {
        pass->layer[i].written = false;
        pass->layer[i].more = NULL;
    }
    for (int i = pass->limits.end_layer - 1; i >= pass->limits.first_layer; i--) {
        const struct tr_layer *layer = &model->layers[i];
        if (layer->alias || !pass->layer[i].wants) continue;
        if (i > pass->layer[i].fusion.head) {
            if (pass->listener) TR_TRY(pass->listener(pass->listener_user, i));
            continue;
        }
        TR_TRY(pass_recompute_before(pass, batch, i, parameters, gradients, stride));
        struct tr_layer_call call;
        pass_fill_call(pass, batch, parameters, gradients, i, &call);
        const struct tr_cut cut =
            pass_make_cut(pass, batch, pass_is_sequence(layer), layer->tokens_in, stride);
        const struct tr_cut memory_cut =
            pass_make_cut(pass, batch, pass_is_sequence(layer), layer->tokens_memory, stride);
        call.example_cut = &example_cut;
        call.cut = &cut;
        call.memory_cut = &memory_cut;
        call.apart = pass->apart && pass->apart[i];
        /* What is formed for nothing lies one after the other, a node's after that of the one before. */
        struct tr_cut waste = cut, waste_of_examples = example_cut, waste_of_memory = memory_cut;
        waste.stride = pass_waste_bytes(model, i) / (int64_t)sizeof(float);
        waste_of_examples.stride = waste_of_memory.stride = waste.stride;
        if (waste.stride > 0) {
            call.cut = &waste;
            call.example_cut = &waste_of_examples;
            call.memory_cut = &waste_of_memory;
        }
        assert(!call.apart || (layer->class->factors && !pass_is_sequence(layer)));
        struct tr_cut leaves[3];
        if (pass_shares(model, i)) pass_begin_share(pass, batch, i, &call, leaves);
        tr_status status = run_backward(pass, batch, parameters, i, &call);
        if (status == TR_OK && pass_shares(model, i)) status = pass_end_share(pass, &cut, i, gradients);
        if (status != TR_OK) return tr_fail_in(status, "layer \"%s\", backward", layer->name);
        if (pass->companion) TR_TRY(pass->companion(pass->companion_user));
        if (pass->listener) TR_TRY(pass->listener(pass->listener_user, i));
    }
    return TR_OK;
}
