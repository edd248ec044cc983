/* Activations as layers of their own: relu, leaky_relu, gelu, tanh, sigmoid. */
#include "nn/layers/table.h"

struct options {
    float slope;
};

static const struct tr_option leaky_table[] = {
    {"slope", TR_OPTION_FLOAT, offsetof(struct options, slope), "0.01", 0x1p-20, 1, NULL,
     "factor for negative inputs"},
};

static tr_status build(struct tr_layer *layer, bool keeps_input)
{
    layer->out = layer->in[0];
    layer->flops = tr_shape_count(&layer->out);
    layer->keeps_input = keeps_input;
    layer->keeps_output = !keeps_input;
    return TR_OK;
}

static float slope_of(const struct tr_layer *layer)
{
    return layer->class->option_count ? ((const struct options *)layer->options)->slope : 0;
}

static tr_status run_forward(const struct tr_layer_call *call, enum tr_activation activation)
{
    struct tr_op_activation_forward op = {
        .count = call->rows * tr_shape_count(&call->layer->out),
        .x = call->x[0],
        .y = call->y,
        .activation = activation,
        .slope = slope_of(call->layer),
    };
    return tr_device_activation_forward(call->device, &op);
}

static tr_status run_backward(const struct tr_layer_call *call, enum tr_activation activation)
{
    if (!call->dx[0]) return TR_OK;
    struct tr_op_activation_backward op = {
        .count = call->rows * tr_shape_count(&call->layer->out),
        .x = call->x[0],
        .y = call->y,
        .dy = call->dy,
        .dx = call->dx[0],
        /* When the consumer has applied a relu's gradient, dy passes as it is. */
        .activation = call->layer->relu_left_to_consumer ? TR_ACT_NONE : activation,
        .slope = slope_of(call->layer),
    };
    return tr_device_activation_backward(call->device, &op);
}

#define ACTIVATION(id, kind, needs_x, text, ...)                                                             \
    static tr_status build_##id(struct tr_layer *layer, struct tr_builder *builder)                          \
    {                                                                                                        \
        (void)builder;                                                                                       \
        layer->relu_output = (kind) == TR_ACT_RELU;                                                          \
        return build(layer, needs_x);                                                                        \
    }                                                                                                        \
    static tr_status forward_##id(const struct tr_layer_call *call)                                          \
    {                                                                                                        \
        return run_forward(call, kind);                                                                      \
    }                                                                                                        \
    static tr_status backward_##id(const struct tr_layer_call *call)                                         \
    {                                                                                                        \
        return run_backward(call, kind);                                                                     \
    }                                                                                                        \
    const struct tr_layer_class tr_layer_##id = {.name = #id,                                                \
                                                 .help = text,                                               \
                                                 .inputs = 1,                                                \
                                                 .build = build_##id,                                        \
                                                 .forward = forward_##id,                                    \
                                                 .backward = backward_##id,                                  \
                                                 __VA_ARGS__}

ACTIVATION(relu, TR_ACT_RELU, false, "0 for negative inputs", );
ACTIVATION(leaky_relu, TR_ACT_LEAKY_RELU, false, "slope * x for negative inputs",
           TR_LAYER_OPTIONS(leaky_table, struct options));
ACTIVATION(gelu, TR_ACT_GELU, true,
           "x times the normal distribution function of x (Hendrycks, Gimpel 2016)", );
ACTIVATION(tanh, TR_ACT_TANH, false, "hyperbolic tangent", );
ACTIVATION(sigmoid, TR_ACT_SIGMOID, false, "1 / (1 + exp(-x))", );
