/* dense: every output is a weighted sum of all inputs of the example, or of the token in a sequence. */
#include "nn/layers/adapter.h"
#include "nn/layers/common.h"
#include "nn/layers/table.h"

struct options {
    int64_t units;
    struct tr_affine_options affine;
};

static const struct tr_option table[] = {
    {"units", TR_OPTION_INT64, offsetof(struct options, units), NULL, 1, 1 << 28, NULL, "number of outputs"},
    TR_AFFINE_OPTIONS(struct options),
};

static tr_status build(struct tr_layer *layer, struct tr_builder *builder)
{
    const struct options *options = layer->options;
    int64_t in = tr_shape_count(&layer->in[0]), out = options->units;
    layer->out = (struct tr_shape){1, {out}, layer->in[0].sequence};
    layer->flops = 2 * in * out;
    struct tr_shape weights = {2, {in, out}, false};
    return tr_affine_build(layer, builder, &options->affine, weights, out, in, out);
}

static bool fuses(const struct tr_layer *layer, const struct tr_device_class *device)
{
    const struct options *options = layer->options;
    if (options->affine.activation != TR_ACT_NONE || layer->adapters.count > 0) return false;
    return !device || (device->dense_gelu_forward && device->dense_gelu_backward_data);
}

static int projections(const struct tr_layer *layer, struct tr_projection out[TR_LAYER_ADAPTERS])
{
    const struct options *options = layer->options;
    const int64_t units = options->units;
    out[0] = (struct tr_projection){NULL, true, 0, tr_shape_count(&layer->in[0]), units, 0, units};
    return 1;
}

/* The activation comes after what adapters add. */
static tr_status forward_adapted(const struct tr_layer_call *call, struct tr_op_dense_forward *op)
{
    const struct tr_op_activation_forward activation = {.count = call->rows * op->out,
                                                        .x = op->y,
                                                        .y = op->y,
                                                        .activation = op->activation,
                                                        .slope = op->slope};
    op->activation = TR_ACT_NONE;
    TR_TRY(tr_device_dense_forward(call->device, op));
    TR_TRY(tr_adapters_forward(call, 0, call->x[0], call->y));
    return activation.activation == TR_ACT_NONE ? TR_OK
                                                : tr_device_activation_forward(call->device, &activation);
}

static tr_status forward(const struct tr_layer_call *call)
{
    const struct options *options = call->layer->options;
    struct tr_op_dense_forward op = {
        .rows = call->rows,
        .in = tr_shape_count(&call->layer->in[0]),
        .out = options->units,
        .x = call->x[0],
        .w = call->parameter[0],
        .b = tr_affine_bias(call),
        .y = call->y,
        .activation = (enum tr_activation)options->affine.activation,
        .slope = options->affine.slope,
    };
    if (call->layer->adapters.count > 0) return forward_adapted(call, &op);
    if (call->tail) {
        struct tr_op_dense_gelu_forward fused = {op, call->tail->derivative};
        fused.dense.activation = call->tail->activation;
        return tr_device_dense_gelu_forward(call->device, &fused);
    }
    return tr_device_dense_forward(call->device, &op);
}

static tr_status backward(const struct tr_layer_call *call)
{
    const struct options *options = call->layer->options;
    int64_t in = tr_shape_count(&call->layer->in[0]);
    TR_TRY(tr_affine_activation_backward(call, &options->affine));
    struct tr_op_dense_backward_weights weights = {
        .in = call->apart ? 0 : in, /* 0: the bias only */
        .out = options->units,
        .x = call->x[0],
        .dy = call->dy,
        .dw = call->gradient[0],
        .db = tr_affine_bias_gradient(call),
        .cut = *call->cut,
    };
    if (weights.dw) TR_TRY(tr_device_dense_backward_weights(call->device, &weights));
    if (call->layer->adapters.count > 0 && !call->dx[0])
        return tr_adapters_backward(call, 0, call->x[0], call->dy, NULL);
    if (!call->dx[0]) return TR_OK;
    struct tr_op_dense_backward_data data = {
        call->rows, in, options->units, call->dy, call->parameter[0], call->dx[0],
    };
    if (call->derivative) {
        const struct tr_op_dense_gelu_backward_data fused = {data, call->derivative};
        return tr_device_dense_gelu_backward_data(call->device, &fused);
    }
    TR_TRY(tr_device_dense_backward_data(call->device, &data));
    return tr_adapters_backward(call, 0, call->x[0], call->dy, call->dx[0]);
}

const struct tr_layer_class tr_layer_dense = {
    .name = "dense",
    .help = "fully connected layer; images are flattened",
    TR_ENTRY_OPTIONS(table, struct options),
    .inputs = 1,
    .by_row = true,
    .factors = true,
    .skips_gradients = true,
    .projections = projections,
    .fusing = {.tails = TR_TAIL_GELU, .fuses = fuses, .applies_gelu_gradient = true},
    .build = build,
    .forward = forward,
    .backward = backward,
};
