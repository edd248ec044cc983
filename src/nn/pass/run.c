/* Running a pass: forward in layer order, and the loss. A fusion runs with the call of its head in place
 * of its last layer; where outputs are observed, layers run one by one.
 */
#include "nn/pass/internal.h"

#include "base/fail.h"
#include "base/threads/timeline.h"

#include <assert.h>

/* Whether all rows of a layer are known when text is generated: those of the second text. */
static bool is_known(const struct tr_layer *layer)
{
    return layer->fed || layer->tokens_in == TR_TOKENS_OF_SECOND;
}

bool tr_model_extends(const struct tr_model *model)
{
    for (int i = 0; i < model->layer_count; i++) {
        const struct tr_layer *layer = &model->layers[i];
        const struct tr_layer_class *class = layer->class;
        if (is_known(layer) && !layer->out.sequence) return false;
        if (layer->alias || class->by_row || is_known(layer)) continue;
        if (!class->extend || (class->extends && !class->extends(layer))) return false;
    }
    return model->input.sequence;
}

tr_status tr_pass_extend(tr_pass *pass, const struct tr_pass_batch *batch, const float *parameters,
                         const struct tr_layer_past *past)
{
    for (int i = 0; i < pass->model->layer_count; i++) {
        const struct tr_layer *layer = &pass->model->layers[i];
        if (layer->alias || (is_known(layer) && past->rows > 0)) continue;
        struct tr_layer_call call;
        pass_fill_call(pass, batch, parameters, NULL, i, &call);
        const bool extends = layer->class->extend && !is_known(layer);
        call.past = extends ? past : NULL;
        call.memory = past->memory[i];
        tr_status status = extends ? layer->class->extend(&call) : layer->class->forward(&call);
        if (status != TR_OK) return tr_fail_in(status, "layer \"%s\", forward", layer->name);
    }
    return TR_OK;
}

tr_status pass_run_forward(struct tr_pass *pass, const struct tr_pass_batch *batch, int first, int end,
                           const float *parameters, float *gradients, int64_t stride)
{
    const struct tr_cut example_cut = pass_make_cut(pass, batch, false, 0, stride);
    pass_begin_lengths(pass, batch);
    for (int i = first; i < end; i++) {
        const struct tr_layer *layer = &pass->model->layers[i];
        const struct tr_fusion *fusion = &pass->layer[i].fusion;
        const bool fuses = tr_fusion_joins(fusion) && !pass->observer;
        if (layer->alias || (fuses && i < fusion->end)) continue;
        if (fuses) layer = &pass->model->layers[fusion->head];
        struct tr_layer_call call;
        struct tr_layer_tail tail;
        pass_fill_call(pass, batch, parameters, gradients, fuses ? fusion->head : i, &call);
        if (fuses) pass_extend_call(pass, fusion, &tail, &call);
        const struct tr_cut cut =
            pass_make_cut(pass, batch, pass_is_sequence(layer), layer->tokens_in, stride);
        const struct tr_cut memory_cut =
            pass_make_cut(pass, batch, pass_is_sequence(layer), layer->tokens_memory, stride);
        call.example_cut = &example_cut;
        call.cut = &cut;
        call.memory_cut = &memory_cut;
        tr_span_begin(TR_ACTIVITY_FORWARD, layer->name);
        pass_tell_memory(batch, layer);
        tr_status status = pass_end_span(pass, layer->class->forward(&call));
        if (status != TR_OK) return tr_fail_in(status, "layer \"%s\", forward", layer->name);
        if (pass->companion) TR_TRY(pass->companion(pass->companion_user));
        if (!pass->observer) continue;
        TR_TRY(pass->observer(pass->observer_user, layer, call.y,
                              pass_rows_out(batch, layer) * tr_shape_count(&layer->out)));
    }
    return TR_OK;
}

/* Layers that are computed again use their memory for forward. */
tr_status tr_pass_forward(tr_pass *pass, const struct tr_pass_batch *batch, const float *parameters,
                          float *gradients, int64_t stride)
{
    const struct tr_pass_limits *limits = &pass->limits;
    if (pass->observer) TR_TRY(pass_prepare_observed(pass));
    for (int i = limits->first_layer; i < limits->end_layer; i++) pass_load_set(pass, i, 0);
    return pass_run_forward(pass, batch, limits->first_layer, limits->end_layer, parameters, gradients,
                            stride);
}

/* Scales losses of tokens to shares of the mean over an example, see tr_pass_loss(). */
static tr_status weigh_tokens(tr_pass *pass, const struct tr_pass_batch *batch, int64_t labels)
{
    float factor = (float)batch->global_examples / (float)labels;
    const int64_t rows = pass_rows_out(batch, &pass->model->layers[pass->model->layer_count - 1]);
    struct tr_op_scale loss = {rows, factor, pass->loss_rows, pass->loss_rows};
    struct tr_op_scale correct = {rows, factor, pass->correct_rows, pass->correct_rows};
    TR_TRY(tr_device_scale(pass->device, &loss));
    return tr_device_scale(pass->device, &correct);
}

void tr_pass_teach(tr_pass *pass, const float *scores)
{
    pass->teacher = scores;
}

tr_status tr_pass_loss(tr_pass *pass, const struct tr_pass_batch *batch)
{
    const struct tr_model *model = pass->model;
    assert(pass_is_last(pass));
    bool backward = pass->limits.training && pass->layer[pass->exit].wants, tokens = model->output.sequence;
    /* A batch without labels has no loss and no gradient, whatever the divisor. */
    int64_t labels = !tokens ? batch->global_examples : batch->global_labels > 0 ? batch->global_labels : 1;
    struct tr_loss_call call = {
        .device = pass->device,
        .rows = pass_rows_out(batch, &model->layers[model->layer_count - 1]),
        .training = pass->limits.training,
        .scale = 1.0f / (float)labels,
        .output = tr_pass_output(pass),
        .label = pass->label,
        .target = pass->target,
        .weight = pass->weight,
        .teacher = pass->limits.training ? pass->teacher : NULL,
        .scratch = pass->scratch,
        .loss = pass->loss_rows,
        .correct = pass->correct_rows,
        .gradient = backward ? pass->layer[pass->exit].gradient : NULL,
    };
    if (call.training && model->loss.taught > 0 && !call.teacher)
        return tr_fail(TR_EUNSUPPORTED, "the loss has a teacher (`distill`), which says nothing here");
    tr_span_begin(TR_ACTIVITY_FORWARD, "loss");
    tr_status status = tr_loss_run(&model->loss, tr_shape_count(&model->output), &call);
    if (status == TR_OK && tokens && pass->limits.training) status = weigh_tokens(pass, batch, labels);
    return pass_end_span(pass, status);
}
