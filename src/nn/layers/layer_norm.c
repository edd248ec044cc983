/* layer_norm (Ba et al. 2016). */
#include "nn/layers/common.h"
#include "nn/layers/table.h"

struct options {
    float epsilon;
};

static const struct tr_option table[] = {
    TR_EPSILON_OPTION(struct options),
};

static tr_status build(struct tr_layer *layer, struct tr_builder *builder)
{
    layer->out = layer->in[0];
    layer->keeps_input = true;
    layer->flops = 8 * tr_shape_count(&layer->out);
    for (int i = 0; i < 2; i++) /* mean, inv */
        tr_layer_buffer(layer, (struct tr_buffer){TR_PER_ROW, sizeof(float), 0, false});
    return tr_layer_scale(layer, builder, tr_shape_count(&layer->out));
}

static tr_status forward(const struct tr_layer_call *call)
{
    const struct options *options = call->layer->options;
    struct tr_op_layer_norm_forward op = {
        .rows = call->rows,
        .width = tr_shape_count(&call->layer->out),
        .epsilon = options->epsilon,
        .x = call->x[0],
        .gamma = call->parameter[0],
        .beta = call->parameter[1],
        .y = call->y,
        .mean = call->buffer[0],
        .inv = call->buffer[1],
    };
    return tr_device_layer_norm_forward(call->device, &op);
}

static tr_status backward(const struct tr_layer_call *call)
{
    struct tr_op_layer_norm_backward op = {
        .width = tr_shape_count(&call->layer->out),
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
    return tr_device_layer_norm_backward(call->device, &op);
}

const struct tr_layer_class tr_layer_layer_norm = {
    .name = "layer_norm",
    .help = "normalizes each example, or each token",
    TR_ENTRY_OPTIONS(table, struct options),
    .inputs = 1,
    .by_row = true,
    .build = build,
    .forward = forward,
    .backward = backward,
};
