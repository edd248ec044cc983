/* batch_norm (Ioffe, Szegedy 2015; statistics over a microbatch, where other frameworks use a replica's
   batch). */
#include "nn/layers/common.h"
#include "nn/layers/table.h"

struct options {
    float epsilon, momentum;
};

static const struct tr_option table[] = {
    TR_EPSILON_OPTION(struct options),
    {"momentum", TR_OPTION_FLOAT, offsetof(struct options, momentum), "0.1", 0, 1, NULL,
     "fraction of a new batch in the running statistics, which change once a step by the mean of the "
     "microbatches' means and unbiased variances"},
};

static int64_t spatial_of(const struct tr_layer *layer)
{
    return tr_shape_count(&layer->out) / tr_layer_channels(layer);
}

static tr_status build(struct tr_layer *layer, struct tr_builder *builder)
{
    const struct options *options = layer->options;
    char text[TR_SHAPE_TEXT];
    /* Its running statistics weigh microbatches by their share of the global batch's examples, since the
       number of tokens in a whole global batch is not known. */
    if (layer->in[0].sequence)
        return tr_fail(TR_EINVAL,
                       "wants one vector or image for each example, its input is %s; use layer_norm",
                       tr_shape_text(&layer->in[0], text));
    layer->out = layer->in[0];
    layer->keeps_input = true;
    layer->flops = 8 * tr_shape_count(&layer->out);
    layer->statistic_momentum = options->momentum;
    int64_t channels = tr_layer_channels(layer);
    for (int i = 0; i < 2; i++) /* mean, inv */
        tr_layer_buffer(layer,
                        (struct tr_buffer){TR_PER_MICROBATCH, channels * (int64_t)sizeof(float), 0, false});
    TR_TRY(tr_layer_scale(layer, builder, channels));
    TR_TRY(tr_layer_vector(layer, builder, "running_mean", TR_PARAMETER_STATISTIC, "0", channels));
    return tr_layer_vector(layer, builder, "running_var", TR_PARAMETER_STATISTIC, "1", channels);
}

static bool fuses(const struct tr_layer *layer, const struct tr_device_class *device)
{
    (void)layer;
    return !device || (device->batch_norm_activation_forward && device->batch_norm_activation_backward);
}

static tr_status forward(const struct tr_layer_call *call)
{
    const struct options *options = call->layer->options;
    int64_t channels = tr_layer_channels(call->layer), spatial = spatial_of(call->layer);
    if (!call->training) {
        struct tr_op_batch_norm_infer infer = {
            .rows = call->rows * spatial,
            .channels = channels,
            .epsilon = options->epsilon,
            .x = call->x[0],
            .gamma = call->parameter[0],
            .beta = call->parameter[1],
            .mean = call->parameter[2],
            .var = call->parameter[3],
            .y = call->y,
        };
        return tr_device_batch_norm_infer(call->device, &infer);
    }
    struct tr_op_batch_norm_forward op = {
        .spatial = spatial,
        .channels = channels,
        .global_rows = call->global_rows,
        .epsilon = options->epsilon,
        .x = call->x[0],
        .gamma = call->parameter[0],
        .beta = call->parameter[1],
        .y = call->y,
        .mean = call->buffer[0],
        .inv = call->buffer[1],
        .batch_mean = call->gradient[2],
        .batch_var = call->gradient[3],
        .cut = *call->cut,
    };
    if (!call->tail) return tr_device_batch_norm_forward(call->device, &op);
    struct tr_op_batch_norm_activation_forward fused = {op, call->tail->addend, call->tail->activation,
                                                        call->tail->slope};
    return tr_device_batch_norm_activation_forward(call->device, &fused);
}

static tr_status backward(const struct tr_layer_call *call)
{
    struct tr_op_batch_norm_backward op = {
        .spatial = spatial_of(call->layer),
        .channels = tr_layer_channels(call->layer),
        .x = call->x[0],
        .gamma = call->parameter[0],
        .mean = call->buffer[0],
        .inv = call->buffer[1],
        .dy = call->dy,
        .dx = call->dx[0],
        .dgamma = call->gradient[0],
        .dbeta = call->gradient[1],
        .cut = *call->cut,
    };
    const struct tr_layer_tail *tail = call->tail;
    if (!tail) return tr_device_batch_norm_backward(call->device, &op);
    struct tr_op_batch_norm_activation_backward fused = {
        .norm = op,
        .more = tail->more,
        .y = call->y,
        .beta = tail->addend ? NULL : call->parameter[1],
        .daddend = tail->daddend,
        .activation = tail->activation,
        .slope = tail->slope,
    };
    return tr_device_batch_norm_activation_backward(call->device, &fused);
}

const struct tr_layer_class tr_layer_batch_norm = {
    .name = "batch_norm",
    .help = "normalizes each channel over the examples of a microbatch (`train.microbatches`)",
    TR_ENTRY_OPTIONS(table, struct options),
    .inputs = 1,
    .by_row = true,
    .fusing = {.tails = TR_TAIL_SUM | TR_TAIL_ACTIVATION, .fuses = fuses, .replaces_dy = true},
    .build = build,
    .forward = forward,
    .backward = backward,
};
