/* rms_norm (Zhang, Sennrich 2019): rows divided by their root mean square, without a mean or a shift. */
#include "nn/layers/common.h"
#include "nn/layers/table.h"

struct options {
    float epsilon;
};

static const struct tr_option table[] = {
    {"epsilon", TR_OPTION_FLOAT, offsetof(struct options, epsilon), "1e-5", 1e-12, 1, NULL,
     "added to the mean square"},
};

static tr_status build(struct tr_layer *layer, struct tr_builder *builder)
{
    layer->out = layer->in[0];
    layer->keeps_input = true;
    int64_t width = tr_shape_count(&layer->out);
    layer->flops = 4 * width;
    tr_layer_buffer(layer, (struct tr_buffer){TR_PER_ROW, sizeof(float), 0, false}); /* inv */
    return tr_layer_vector(layer, builder, "gamma", TR_PARAMETER_BIAS, "1", width);
}

static tr_status forward(const struct tr_layer_call *call)
{
    const struct options *options = call->layer->options;
    struct tr_op_rms_norm_forward op = {
        .rows = call->rows,
        .width = tr_shape_count(&call->layer->out),
        .epsilon = options->epsilon,
        .x = call->x[0],
        .gamma = call->parameter[0],
        .y = call->y,
        .inv = call->buffer[0],
    };
    return tr_device_rms_norm_forward(call->device, &op);
}

static tr_status backward(const struct tr_layer_call *call)
{
    struct tr_op_rms_norm_backward op = {
        .width = tr_shape_count(&call->layer->out),
        .x = call->x[0],
        .gamma = call->parameter[0],
        .inv = call->buffer[0],
        .dy = call->dy,
        .dx = call->dx[0],
        .dgamma = call->gradient[0],
        .cut = *call->cut,
    };
    return tr_device_rms_norm_backward(call->device, &op);
}

const struct tr_layer_class tr_layer_rms_norm = {
    .name = "rms_norm",
    .help = "divides each example, or each token, by its root mean square",
    TR_ENTRY_OPTIONS(table, struct options),
    .inputs = 1,
    .by_row = true,
    .build = build,
    .forward = forward,
    .backward = backward,
};
