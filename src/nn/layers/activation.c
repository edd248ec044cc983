/* Activations as separate layers: relu, leaky_relu, gelu, silu, hard_swish, relu6, tanh,
 * sigmoid. */
#include "base/fail.h"
#include "nn/layers/table.h"

struct options {
    float slope;
};

static const struct tr_option leaky_table[] = {
    {"slope", TR_OPTION_FLOAT, offsetof(struct options, slope), "0.01", 0x1p-20, 1, NULL,
     "factor for negative inputs"},
};

struct gelu_options {
    int32_t approximate;
};

enum { EXACT, BY_TANH };
static const struct tr_choice gelu_choices[] = {
    {"none", EXACT, "by the error function"},
    {"tanh", BY_TANH, "by the hyperbolic tangent, as in GPT-2"},
    {NULL, 0},
};

static const struct tr_option gelu_table[] = {
    {"approximate", TR_OPTION_CHOICE, offsetof(struct gelu_options, approximate), "none", 0, 0, gelu_choices,
     "how the distribution function is computed"},
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
    return layer->class == &tr_layer_leaky_relu ? ((const struct options *)layer->options)->slope : 0;
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
    struct tr_op_activation_backward op = {
        .count = call->rows * tr_shape_count(&call->layer->out),
        .x = call->x[0],
        .y = call->y,
        .dy = call->dy,
        .dx = call->dx[0],
        /* If the consumer has applied a relu's gradient, dy is passed on unchanged. */
        .activation = call->layer->relu.left_to_consumer ? TR_ACT_NONE : activation,
        .slope = slope_of(call->layer),
    };
    return tr_device_activation_backward(call->device, &op);
}

static enum tr_tail_kind tail_relu(const struct tr_layer *layer, struct tr_layer_tail *tail)
{
    (void)layer;
    tail->activation = TR_ACT_RELU;
    return TR_TAIL_ACTIVATION;
}

static enum tr_tail_kind tail_leaky_relu(const struct tr_layer *layer, struct tr_layer_tail *tail)
{
    tail->activation = TR_ACT_LEAKY_RELU;
    tail->slope = slope_of(layer);
    return TR_TAIL_ACTIVATION;
}

#define ACTIVATION(id, kind, text, ...)                                                                      \
    static tr_status build_##id(struct tr_layer *layer, struct tr_builder *builder)                          \
    {                                                                                                        \
        (void)builder;                                                                                       \
        layer->relu.output = layer->class == &tr_layer_relu;                                                 \
        return build(layer, tr_activation_reads_input(kind));                                                \
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
                                                 .by_row = true,                                             \
                                                 .build = build_##id,                                        \
                                                 .forward = forward_##id,                                    \
                                                 .backward = backward_##id,                                  \
                                                 __VA_ARGS__}

ACTIVATION(relu, TR_ACT_RELU, "0 for negative inputs", .fusing.tail = tail_relu);
ACTIVATION(leaky_relu, TR_ACT_LEAKY_RELU, "slope * x for negative inputs",
           TR_ENTRY_OPTIONS(leaky_table, struct options), .fusing.tail = tail_leaky_relu);
static enum tr_activation gelu_of(const struct tr_layer *layer)
{
    const struct gelu_options *options = layer->options;
    return options->approximate == BY_TANH ? TR_ACT_GELU_TANH : TR_ACT_GELU;
}

static enum tr_tail_kind tail_gelu(const struct tr_layer *layer, struct tr_layer_tail *tail)
{
    tail->activation = gelu_of(layer);
    return TR_TAIL_GELU;
}

static tr_status build_gelu(struct tr_layer *layer, struct tr_builder *builder)
{
    (void)builder;
    TR_TRY(build(layer, true));
    const int64_t bytes = tr_shape_count(&layer->out) * (int64_t)sizeof(float);
    tr_layer_buffer(layer, (struct tr_buffer){TR_PER_ROW, bytes, .fused_only = true}); /* derivative */
    return TR_OK;
}

/* Run separately, where outputs are observed, it leaves the same data as its fusion. */
static tr_status forward_gelu(const struct tr_layer_call *call)
{
    const enum tr_activation activation = gelu_of(call->layer);
    float *derivative = call->buffer[0];
    if (derivative) {
        const int64_t count = call->rows * tr_shape_count(&call->layer->out);
        const struct tr_op_fill ones = {count, 1, derivative};
        const struct tr_op_activation_backward op = {count,      call->x[0], call->y, derivative,
                                                     derivative, activation, 0};
        TR_TRY(tr_device_fill(call->device, &ones));
        TR_TRY(tr_device_activation_backward(call->device, &op));
    }
    return run_forward(call, activation);
}

static tr_status backward_gelu(const struct tr_layer_call *call)
{
    return run_backward(call, gelu_of(call->layer));
}

const struct tr_layer_class tr_layer_gelu = {
    .name = "gelu",
    .help = "x times the normal distribution function of x (Hendrycks, Gimpel 2016)",
    TR_ENTRY_OPTIONS(gelu_table, struct gelu_options),
    .inputs = 1,
    .by_row = true,
    .fusing.tail = tail_gelu,
    .build = build_gelu,
    .forward = forward_gelu,
    .backward = backward_gelu,
};

ACTIVATION(silu, TR_ACT_SILU, "x * sigmoid(x) (Hendrycks, Gimpel 2016; also called swish)", );
ACTIVATION(hard_swish, TR_ACT_HARD_SWISH,
           "x times a straight line from 0 at -3 to 1 at 3, near silu (Howard et al. 2019)", );
ACTIVATION(relu6, TR_ACT_RELU6, "0 for negative inputs, 6 for those above 6", );
ACTIVATION(tanh, TR_ACT_TANH, "hyperbolic tangent", );
ACTIVATION(sigmoid, TR_ACT_SIGMOID, "1 / (1 + exp(-x))", );
