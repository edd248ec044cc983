/* last: the vector of each sequence's last token. */
#include "nn/layers/table.h"

static tr_status build(struct tr_layer *layer, struct tr_builder *builder)
{
    (void)builder;
    char text[TR_SHAPE_TEXT];
    if (!layer->in[0].sequence)
        return tr_fail(TR_EINVAL,
                       "needs a sequence, its input is %s; use it after layers over tokens or steps",
                       tr_shape_text(&layer->in[0], text));
    layer->out = layer->in[0];
    layer->out.sequence = false;
    return TR_OK;
}

static tr_status forward(const struct tr_layer_call *call)
{
    struct tr_op_sequence_last_forward op = {call->examples, tr_shape_count(&call->layer->out), call->offset,
                                             call->x[0], call->y};
    return tr_device_sequence_last_forward(call->device, &op);
}

static tr_status backward(const struct tr_layer_call *call)
{
    struct tr_op_sequence_last_backward op = {call->examples, tr_shape_count(&call->layer->out), call->offset,
                                              call->dy, call->dx[0]};
    return tr_device_sequence_last_backward(call->device, &op);
}

const struct tr_layer_class tr_layer_last = {
    .name = "last",
    .help = "the last token's vector of each sequence",
    .inputs = 1,
    .by_row = true,
    .build = build,
    .forward = forward,
    .backward = backward,
};
