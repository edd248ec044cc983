#include "nn/layers/common.h"

#include "base/fail.h"

#include <inttypes.h>

const struct tr_choice tr_fused_activation_choices[] = {
    {"none", TR_ACT_NONE}, {"relu", TR_ACT_RELU},       {"leaky_relu", TR_ACT_LEAKY_RELU},
    {"tanh", TR_ACT_TANH}, {"sigmoid", TR_ACT_SIGMOID}, {NULL, 0},
};

tr_status tr_affine_build(struct tr_layer *layer, struct tr_builder *builder,
                          const struct tr_affine_options *options, struct tr_shape shape, int64_t outputs,
                          int64_t fan_in, int64_t fan_out)
{
    struct tr_initializer weights, bias;
    TR_TRY(tr_initializer_read(options->weights, "glorot_uniform", &weights));
    TR_TRY(tr_initializer_read(options->bias, "0", &bias));
    TR_TRY(tr_builder_parameter(builder, layer, "weights", TR_PARAMETER_WEIGHT, shape, &weights, fan_in,
                                fan_out));
    if (options->use_bias) {
        struct tr_shape vector = {1, {outputs}, false};
        TR_TRY(
            tr_builder_parameter(builder, layer, "bias", TR_PARAMETER_BIAS, vector, &bias, fan_in, fan_out));
    }
    layer->keeps_input = true;
    layer->keeps_output = options->activation != TR_ACT_NONE;
    layer->relu.output = options->activation == TR_ACT_RELU;
    return TR_OK;
}

tr_status tr_affine_activation_backward(const struct tr_layer_call *call,
                                        const struct tr_affine_options *options)
{
    if (options->activation == TR_ACT_NONE || call->layer->relu.left_to_consumer) return TR_OK;
    struct tr_op_activation_backward op = {
        .count = call->rows * tr_shape_count(&call->layer->out),
        .y = call->y,
        .dy = call->dy,
        .dx = (float *)call->dy,
        .activation = (enum tr_activation)options->activation,
        .slope = options->slope,
    };
    return tr_device_activation_backward(call->device, &op);
}

tr_status tr_layer_groups(int64_t groups, int64_t channels, int64_t filters)
{
    if (channels % groups == 0 && filters % groups == 0) return TR_OK;
    return tr_fail(TR_EINVAL,
                   "%" PRId64 " channels and %" PRId64 " filters cannot both be divided into %" PRId64
                   " groups; choose a divisor of both",
                   channels, filters, groups);
}

int64_t tr_layer_channels(const struct tr_layer *layer)
{
    return layer->out.size[layer->out.rank - 1];
}

tr_status tr_layer_vector(struct tr_layer *layer, struct tr_builder *builder, const char *name,
                          enum tr_parameter_kind kind, const char *value, int64_t size)
{
    struct tr_initializer initializer;
    TR_TRY(tr_initializer_read(NULL, value, &initializer));
    const struct tr_shape shape = {1, {size}, false};
    return tr_builder_parameter(builder, layer, name, kind, shape, &initializer, size, size);
}

tr_status tr_layer_scale(struct tr_layer *layer, struct tr_builder *builder, int64_t size)
{
    TR_TRY(tr_layer_vector(layer, builder, "gamma", TR_PARAMETER_BIAS, "1", size));
    return tr_layer_vector(layer, builder, "beta", TR_PARAMETER_BIAS, "0", size);
}

struct tr_cut tr_cut_single(const struct tr_cut *cut, int32_t m, int64_t row[2], int32_t bound[2])
{
    row[0] = 0;
    row[1] = cut->row[m + 1] - cut->row[m];
    bound[0] = 0;
    bound[1] = 1;
    return (struct tr_cut){1, row, 1, bound, 0};
}

tr_status tr_layer_wants_sequence(const struct tr_layer *layer)
{
    char text[TR_SHAPE_TEXT];
    if (layer->in[0].sequence) return TR_OK;
    return tr_fail(TR_EINVAL, "needs a sequence, its input is %s; put an embedding in front",
                   tr_shape_text(&layer->in[0], text));
}

tr_status tr_layer_group_norm_forward(const struct tr_layer_call *call, int64_t groups, float epsilon)
{
    const int64_t channels = tr_layer_channels(call->layer);
    struct tr_op_group_norm_forward op = {
        .rows = call->rows,
        .spatial = tr_shape_count(&call->layer->out) / channels,
        .channels = channels,
        .groups = groups,
        .epsilon = epsilon,
        .x = call->x[0],
        .gamma = call->parameter[0],
        .beta = call->parameter[1],
        .y = call->y,
        .mean = call->buffer[0],
        .inv = call->buffer[1],
    };
    return tr_device_group_norm_forward(call->device, &op);
}

tr_status tr_layer_group_norm_backward(const struct tr_layer_call *call, int64_t groups)
{
    const int64_t channels = tr_layer_channels(call->layer);
    struct tr_op_group_norm_backward op = {
        .spatial = tr_shape_count(&call->layer->out) / channels,
        .channels = channels,
        .groups = groups,
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
    return tr_device_group_norm_backward(call->device, &op);
}
