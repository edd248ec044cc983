/* softmax: exp(x) over its sum, along the channels of each row. The cross-entropy loss includes one. */
#include "nn/layers/common.h"
#include "nn/layers/table.h"

static tr_status build(struct tr_layer *layer, struct tr_builder *builder)
{
    (void)builder;
    layer->out = layer->in[0];
    layer->flops = 4 * tr_shape_count(&layer->out);
    layer->keeps_output = true;
    return TR_OK;
}

static tr_status forward(const struct tr_layer_call *call)
{
    int64_t width = tr_layer_channels(call->layer);
    struct tr_op_softmax_forward op = {call->rows * (tr_shape_count(&call->layer->out) / width), width,
                                       call->x[0], call->y};
    return tr_device_softmax_forward(call->device, &op);
}

static tr_status backward(const struct tr_layer_call *call)
{
    int64_t width = tr_layer_channels(call->layer);
    struct tr_op_softmax_backward op = {call->rows * (tr_shape_count(&call->layer->out) / width), width,
                                        call->y, call->dy, call->dx[0]};
    return tr_device_softmax_backward(call->device, &op);
}

const struct tr_layer_class tr_layer_softmax = {
    .name = "softmax",
    .help = "probabilities from scores; not before a softmax_cross_entropy loss, which contains it",
    .inputs = 1,
    .by_row = true,
    .build = build,
    .forward = forward,
    .backward = backward,
};
