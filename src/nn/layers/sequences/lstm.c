/* lstm: long short-term memory over the tokens of each example (Hochreiter, Schmidhuber 1997; with forget
   gate, Gers et al. 2000). Gate order i, f, g, o. The cost of an example depends only on its own tokens. */
#include "nn/layers/sequences/recurrent.h"
#include "nn/layers/table.h"

struct options {
    struct tr_recurrent_options recurrent; /* first */
    int32_t truncate;
};

#define GATE_COUNT 4

static const struct tr_option table[] = {
    TR_RECURRENT_UNITS(struct options),
    {"truncate", TR_OPTION_INT32, offsetof(struct options, truncate), "0", 0, 1 << 20, NULL,
     "tokens after which backpropagation through time is cut; 0: never"},
    TR_RECURRENT_WEIGHTS(struct options),
    {"bias", TR_OPTION_NODE, offsetof(struct options, recurrent.bias), "0", 0, 0, NULL,
     "initializer of the bias"},
};

static tr_status build(struct tr_layer *layer, struct tr_builder *builder)
{
    const struct options *options = layer->options;
    return tr_recurrent_build(layer, builder, &options->recurrent, GATE_COUNT, 1);
}

/* `before` [2][hidden]: the output and the cell of the row before the first, or NULL. */
static tr_status run_forward(const struct tr_layer_call *call, const float *before)
{
    const struct options *options = call->layer->options;
    TR_TRY(tr_recurrent_input(call, GATE_COUNT, call->buffer[TR_RECURRENT_GATES]));
    struct tr_op_lstm_forward op = {
        .examples = call->examples,
        .hidden = options->recurrent.units,
        .offset = call->offset,
        .w = call->parameter[TR_RECURRENT_HIDDEN],
        .b = call->parameter[TR_RECURRENT_BIAS],
        .gates = call->buffer[TR_RECURRENT_GATES],
        .c = call->buffer[TR_RECURRENT_STATE],
        .h = call->y,
        .h_before = before,
        .c_before = before ? before + options->recurrent.units : NULL,
    };
    return tr_device_lstm_forward(call->device, &op);
}

static tr_status forward(const struct tr_layer_call *call)
{
    return run_forward(call, NULL);
}

static int64_t memory_of(const struct tr_layer *layer, int64_t tokens)
{
    (void)tokens;
    return 2 * tr_shape_count(&layer->out) * (int64_t)sizeof(float);
}

/* Keeps the last row's output and cell. */
static tr_status extend(const struct tr_layer_call *call)
{
    int64_t hidden = tr_shape_count(&call->layer->out), last = (call->rows - 1) * hidden;
    float *kept = call->memory;
    const float *cell = call->buffer[TR_RECURRENT_STATE];
    TR_TRY(run_forward(call, call->past->rows > 0 ? kept : NULL));
    struct tr_op_scale output = {hidden, 1, call->y + last, kept};
    struct tr_op_scale cells = {hidden, 1, cell + last, kept + hidden};
    TR_TRY(tr_device_scale(call->device, &output));
    return tr_device_scale(call->device, &cells);
}

static tr_status backward(const struct tr_layer_call *call)
{
    const struct options *options = call->layer->options;
    float *dgates = call->buffer[TR_RECURRENT_GATE_GRADIENTS];
    struct tr_op_lstm_backward op = {
        .examples = call->examples,
        .hidden = options->recurrent.units,
        .truncate = options->truncate,
        .offset = call->offset,
        .w = call->parameter[TR_RECURRENT_HIDDEN],
        .gates = call->buffer[TR_RECURRENT_GATES],
        .c = call->buffer[TR_RECURRENT_STATE],
        .dy = call->dy,
        .dgates = dgates,
    };
    TR_TRY(tr_device_lstm_backward(call->device, &op));
    struct tr_op_lstm_backward_weights recurrent = {
        .examples = call->examples,
        .hidden = options->recurrent.units,
        .offset = call->offset,
        .h = call->y,
        .dgates = dgates,
        .dw = call->gradient[TR_RECURRENT_HIDDEN],
        .cut = *call->example_cut,
    };
    TR_TRY(tr_device_lstm_backward_weights(call->device, &recurrent));
    return tr_recurrent_input_backward(call, GATE_COUNT, dgates);
}

const struct tr_layer_class tr_layer_lstm = {
    .name = "lstm",
    .help = "long short-term memory; gives its hidden state for every token",
    TR_ENTRY_OPTIONS(table, struct options),
    .inputs = 1,
    .build = build,
    .forward = forward,
    .extend = extend,
    .memory = memory_of,
    .backward = backward,
};
