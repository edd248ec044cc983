/* lstm: long short-term memory over the tokens of each example (Hochreiter, Schmidhuber 1997; with forget
   gate, Gers et al. 2000). Gate order i, f, g, o. An example costs its own tokens only. */
#include "nn/layers/common.h"
#include "nn/layers/table.h"

struct options {
    int64_t units;
    int32_t truncate;
    const tr_config *weights, *recurrent_weights, *bias;
};

enum { INPUT_WEIGHTS, RECURRENT_WEIGHTS, BIAS };
enum { GATES, CELL, GATE_GRADIENTS };

static const struct tr_option table[] = {
    {"units", TR_OPTION_INT64, offsetof(struct options, units), NULL, 1, 1 << 16, NULL,
     "size of the hidden state"},
    {"truncate", TR_OPTION_INT32, offsetof(struct options, truncate), "0", 0, 1 << 20, NULL,
     "cut backpropagation through time every so many tokens; 0: never"},
    {"weights", TR_OPTION_NODE, offsetof(struct options, weights), "glorot_uniform", 0, 0, NULL,
     "initializer of the input weights"},
    {"recurrent_weights", TR_OPTION_NODE, offsetof(struct options, recurrent_weights), "glorot_uniform", 0, 0,
     NULL, "initializer of the recurrent weights"},
    {"bias", TR_OPTION_NODE, offsetof(struct options, bias), "0", 0, 0, NULL, "initializer of the bias"},
};

static tr_status build(struct tr_layer *layer, struct tr_builder *builder)
{
    const struct options *options = layer->options;
    char text[TR_SHAPE_TEXT];
    if (!layer->in[0].sequence)
        return tr_fail(TR_EINVAL, "wants a sequence, its input is %s; put an embedding in front",
                       tr_shape_text(&layer->in[0], text));
    int64_t in = tr_shape_count(&layer->in[0]), hidden = options->units;
    layer->out = (struct tr_shape){1, {hidden}, true};
    layer->flops = 8 * hidden * (in + hidden);
    layer->keeps_input = layer->keeps_output = true;
    int64_t size = hidden * (int64_t)sizeof(float);
    tr_layer_buffer(layer, (struct tr_buffer){TR_PER_ROW, 4 * size, 0, false}); /* GATES */
    tr_layer_buffer(layer, (struct tr_buffer){TR_PER_ROW, size, 0, false});     /* CELL */
    tr_layer_buffer(layer, (struct tr_buffer){TR_PER_ROW, 4 * size, 0, true});  /* GATE_GRADIENTS */
    struct tr_initializer weights, recurrent, bias;
    TR_TRY(tr_initializer_read(options->weights, "glorot_uniform", &weights));
    TR_TRY(tr_initializer_read(options->recurrent_weights, "glorot_uniform", &recurrent));
    TR_TRY(tr_initializer_read(options->bias, "0", &bias));
    struct tr_shape w = {2, {in, 4 * hidden}, false}, u = {2, {hidden, 4 * hidden}, false},
                    b = {1, {4 * hidden}, false};
    TR_TRY(tr_builder_parameter(builder, layer, "weights", TR_PARAMETER_WEIGHT, w, &weights, in, hidden));
    TR_TRY(tr_builder_parameter(builder, layer, "recurrent_weights", TR_PARAMETER_WEIGHT, u, &recurrent,
                                hidden, hidden));
    return tr_builder_parameter(builder, layer, "bias", TR_PARAMETER_BIAS, b, &bias, in, hidden);
}

static tr_status forward(const struct tr_layer_call *call)
{
    const struct options *options = call->layer->options;
    struct tr_op_dense_forward input = {
        .rows = call->rows,
        .in = tr_shape_count(&call->layer->in[0]),
        .out = 4 * options->units,
        .x = call->x[0],
        .w = call->parameter[INPUT_WEIGHTS],
        .y = call->buffer[GATES],
        .activation = TR_ACT_NONE,
    };
    TR_TRY(tr_device_dense_forward(call->device, &input));
    struct tr_op_lstm_forward op = {
        .examples = call->examples,
        .hidden = options->units,
        .offset = call->offset,
        .w = call->parameter[RECURRENT_WEIGHTS],
        .b = call->parameter[BIAS],
        .gates = call->buffer[GATES],
        .c = call->buffer[CELL],
        .h = call->y,
    };
    return tr_device_lstm_forward(call->device, &op);
}

static tr_status backward(const struct tr_layer_call *call)
{
    const struct options *options = call->layer->options;
    int64_t in = tr_shape_count(&call->layer->in[0]), gates = 4 * options->units;
    float *dgates = call->buffer[GATE_GRADIENTS];
    struct tr_op_lstm_backward op = {
        .examples = call->examples,
        .hidden = options->units,
        .truncate = options->truncate,
        .offset = call->offset,
        .w = call->parameter[RECURRENT_WEIGHTS],
        .gates = call->buffer[GATES],
        .c = call->buffer[CELL],
        .dy = call->dy,
        .dgates = dgates,
    };
    TR_TRY(tr_device_lstm_backward(call->device, &op));
    struct tr_op_lstm_backward_weights recurrent = {
        .examples = call->examples,
        .hidden = options->units,
        .offset = call->offset,
        .h = call->y,
        .dgates = dgates,
        .dw = call->gradient[RECURRENT_WEIGHTS],
        .cut = *call->example_cut,
    };
    TR_TRY(tr_device_lstm_backward_weights(call->device, &recurrent));
    struct tr_op_dense_backward_weights weights = {
        .in = in,
        .out = gates,
        .x = call->x[0],
        .dy = dgates,
        .dw = call->gradient[INPUT_WEIGHTS],
        .db = call->gradient[BIAS],
        .cut = *call->cut,
    };
    TR_TRY(tr_device_dense_backward_weights(call->device, &weights));
    if (!call->dx[0]) return TR_OK;
    struct tr_op_dense_backward_data data = {call->rows, in, gates, dgates, call->parameter[INPUT_WEIGHTS],
                                             call->dx[0]};
    return tr_device_dense_backward_data(call->device, &data);
}

const struct tr_layer_class tr_layer_lstm = {
    .name = "lstm",
    .help = "long short-term memory; gives its hidden state for every token",
    TR_LAYER_OPTIONS(table, struct options),
    .inputs = 1,
    .build = build,
    .forward = forward,
    .backward = backward,
};
