/* gru: gated recurrent unit over the tokens of each example (Cho et al. 2014; the reset gate after the
 * product, as in PyTorch and cuDNN). Gate order r, z, n. The cost of an example depends only on its own
 * tokens.
 */
#include "nn/layers/sequences/recurrent.h"
#include "nn/layers/table.h"

struct options {
    struct tr_recurrent_options recurrent; /* first */
};

#define GATE_COUNT 3

enum { RECURRENT_GRADIENTS = TR_RECURRENT_BUFFERS };

static const struct tr_option table[] = {
    TR_RECURRENT_UNITS(struct options),
    TR_RECURRENT_WEIGHTS(struct options),
    {"bias", TR_OPTION_NODE, offsetof(struct options, recurrent.bias), "0", 0, 0, NULL,
     "initializer of both biases"},
};

static tr_status build(struct tr_layer *layer, struct tr_builder *builder)
{
    const struct options *options = layer->options;
    const int64_t wide = GATE_COUNT * options->recurrent.units * (int64_t)sizeof(float);
    TR_TRY(tr_recurrent_build(layer, builder, &options->recurrent, GATE_COUNT, 2));
    tr_layer_buffer(layer, (struct tr_buffer){TR_PER_ROW, wide, 0, true}); /* RECURRENT_GRADIENTS */
    return TR_OK;
}

static tr_status forward(const struct tr_layer_call *call)
{
    const struct options *options = call->layer->options;
    TR_TRY(tr_recurrent_input(call, GATE_COUNT, call->buffer[TR_RECURRENT_GATES]));
    const struct tr_op_gru_forward op = {
        .examples = call->examples,
        .hidden = options->recurrent.units,
        .offset = call->offset,
        .w = call->parameter[TR_RECURRENT_HIDDEN],
        .b = call->parameter[TR_RECURRENT_BIAS],
        .b_hidden = call->parameter[TR_RECURRENT_HIDDEN_BIAS],
        .gates = call->buffer[TR_RECURRENT_GATES],
        .inner = call->buffer[TR_RECURRENT_STATE],
        .h = call->y,
    };
    return tr_device_gru_forward(call->device, &op);
}

static tr_status backward(const struct tr_layer_call *call)
{
    const struct options *options = call->layer->options;
    float *dgates = call->buffer[TR_RECURRENT_GATE_GRADIENTS], *dhidden = call->buffer[RECURRENT_GRADIENTS];
    const struct tr_op_gru_backward op = {
        .examples = call->examples,
        .hidden = options->recurrent.units,
        .offset = call->offset,
        .w = call->parameter[TR_RECURRENT_HIDDEN],
        .gates = call->buffer[TR_RECURRENT_GATES],
        .inner = call->buffer[TR_RECURRENT_STATE],
        .h = call->y,
        .dy = call->dy,
        .dgates = dgates,
        .dhidden = dhidden,
    };
    TR_TRY(tr_device_gru_backward(call->device, &op));
    const struct tr_op_gru_backward_weights recurrent = {
        .examples = call->examples,
        .hidden = options->recurrent.units,
        .offset = call->offset,
        .h = call->y,
        .dhidden = dhidden,
        .dw = call->gradient[TR_RECURRENT_HIDDEN],
        .cut = *call->example_cut,
    };
    TR_TRY(tr_device_gru_backward_weights(call->device, &recurrent));
    const struct tr_op_dense_backward_weights bias = {
        .in = 0, /* the bias only */
        .out = GATE_COUNT * options->recurrent.units,
        .x = call->x[0],
        .dy = dhidden,
        .dw = call->gradient[TR_RECURRENT_HIDDEN_BIAS],
        .db = call->gradient[TR_RECURRENT_HIDDEN_BIAS],
        .cut = *call->cut,
    };
    TR_TRY(tr_device_dense_backward_weights(call->device, &bias));
    return tr_recurrent_input_backward(call, GATE_COUNT, dgates);
}

const struct tr_layer_class tr_layer_gru = {
    .name = "gru",
    .help = "gated recurrent unit; gives its hidden state for every token",
    TR_ENTRY_OPTIONS(table, struct options),
    .inputs = 1,
    .build = build,
    .forward = forward,
    .backward = backward,
};
