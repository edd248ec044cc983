/* first: the vector of each sequence's first token, which in encoders like BERT represents the whole text.
 * It is the last one of the reversed sequence.
 */
#include "nn/layers/common.h"
#include "nn/layers/table.h"

enum { REVERSED, REVERSED_GRADIENT };

static int64_t width_of(const struct tr_layer *layer)
{
    return tr_shape_count(&layer->in[0]);
}

static tr_status build(struct tr_layer *layer, struct tr_builder *builder)
{
    (void)builder;
    TR_TRY(tr_layer_wants_sequence(layer));
    const int64_t bytes = width_of(layer) * (int64_t)sizeof(float);
    layer->out = layer->in[0];
    layer->out.sequence = false;
    tr_layer_buffer(layer, (struct tr_buffer){TR_PER_ROW, bytes, 0, .forward_only = true}); /* REVERSED */
    tr_layer_buffer(layer, (struct tr_buffer){TR_PER_ROW, bytes, 0, .backward_only = true});
    return TR_OK;
}

static tr_status reverse(const struct tr_layer_call *call, const float *x, float *y)
{
    const int64_t width = width_of(call->layer);
    const struct tr_op_sequence_copy op = {
        .examples = call->examples,
        .width = width,
        .x_step = width,
        .y_step = width,
        .reverse = true,
        .offset = call->offset,
        .x = x,
        .y = y,
    };
    return tr_device_sequence_copy(call->device, &op);
}

static tr_status forward(const struct tr_layer_call *call)
{
    TR_TRY(reverse(call, call->x[0], call->buffer[REVERSED]));
    const struct tr_op_sequence_last_forward op = {call->examples, width_of(call->layer), call->offset,
                                                   call->buffer[REVERSED], call->y};
    return tr_device_sequence_last_forward(call->device, &op);
}

static tr_status backward(const struct tr_layer_call *call)
{
    const struct tr_op_sequence_last_backward op = {call->examples, width_of(call->layer), call->offset,
                                                    call->dy, call->buffer[REVERSED_GRADIENT]};
    TR_TRY(tr_device_sequence_last_backward(call->device, &op));
    return reverse(call, call->buffer[REVERSED_GRADIENT], call->dx[0]);
}

const struct tr_layer_class tr_layer_first = {
    .name = "first",
    .help = "the first token's vector of each sequence",
    .inputs = 1,
    .build = build,
    .forward = forward,
    .backward = backward,
};
