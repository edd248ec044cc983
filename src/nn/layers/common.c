#include "nn/layers/common.h"

#include "base/fail.h"

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
    layer->relu_output = options->activation == TR_ACT_RELU;
    return TR_OK;
}

tr_status tr_affine_activation_backward(const struct tr_layer_call *call,
                                        const struct tr_affine_options *options)
{
    if (options->activation == TR_ACT_NONE || call->layer->relu_left_to_consumer) return TR_OK;
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
