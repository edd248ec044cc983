/* bidirectional: two recurrent layers, one of which reads the tokens forward and the other backward
 * (Schuster, Paliwal 1997); their outputs are concatenated. Each is a layer of its own class, called here
 * with its part of the memory and parameters.
 */
#include "base/alloc.h"
#include "nn/layers/common.h"
#include "nn/layers/sequences/recurrent.h"
#include "nn/layers/table.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

struct options {
    struct tr_recurrent_options recurrent; /* first */
    int32_t cell;
};

enum cell { LSTM, GRU };
static const struct tr_choice cells[] = {{"lstm", LSTM}, {"gru", GRU}, {NULL, 0}};

static const struct tr_option table[] = {
    {"units", TR_OPTION_INT64, offsetof(struct options, recurrent.units), NULL, 1, 1 << 15, NULL,
     "size of the hidden state of each direction; the output is twice as wide"},
    {"cell", TR_OPTION_CHOICE, offsetof(struct options, cell), "lstm", 0, 0, cells,
     "the layer of both directions"},
    TR_RECURRENT_WEIGHTS(struct options),
    {"bias", TR_OPTION_NODE, offsetof(struct options, recurrent.bias), "0", 0, 0, NULL,
     "initializer of the biases"},
};

#define DIRECTIONS        2
#define CELL_OPTIONS_SIZE 128

struct state {
    struct tr_layer direction[DIRECTIONS];
    _Alignas(max_align_t) char options[DIRECTIONS][CELL_OPTIONS_SIZE];
};

/* After the buffers of both directions. REVERSED: the reversed tokens. OUTPUTS: that of each direction.
   PASSING: the gradients of these outputs, of the reversed tokens, and the latter in reading order. */
enum { REVERSED, OUTPUTS, PASSING = OUTPUTS + DIRECTIONS };

static tr_status build_direction(struct tr_layer *layer, struct tr_builder *builder, int number)
{
    static const char *const names[DIRECTIONS] = {"forward", "backward"};
    const struct options *options = layer->options;
    struct state *state = layer->state;
    struct tr_layer *own = &state->direction[number];
    const struct tr_layer_class *class = options->cell == GRU ? &tr_layer_gru : &tr_layer_lstm;
    char *cell = state->options[number];
    assert(class->options_size <= CELL_OPTIONS_SIZE);
    TR_TRY(tr_options_defaults(class->options, class->option_count, cell));
    *(struct tr_recurrent_options *)cell = options->recurrent; /* a cell's options begin with these */
    *own = (struct tr_layer){
        .class = class, .options = cell, .pace = layer->pace, .input_count = 1, .in = {layer->in[0]}};
    memcpy(own->where, layer->where, sizeof own->where);
    int length = snprintf(own->name, sizeof own->name, "%s.%s", layer->name, names[number]);
    if (length < 0 || (size_t)length >= sizeof own->name)
        return tr_fail(TR_EINVAL, "has a name too long for its directions; use at most %d characters",
                       TR_NAME_SIZE - 10);
    TR_TRY(class->build(own, builder));
    for (int i = 0; i < own->parameter_count; i++)
        layer->parameter[layer->parameter_count++] = own->parameter[i];
    for (int i = 0; i < own->slot_count; i++) layer->slot[layer->slot_count++] = own->slot[i];
    for (int i = 0; i < own->buffer_count; i++) tr_layer_buffer(layer, own->buffer[i]);
    return TR_OK;
}

static tr_status build(struct tr_layer *layer, struct tr_builder *builder)
{
    const struct options *options = layer->options;
    TR_TRY(tr_layer_wants_sequence(layer));
    layer->state = tr_alloc_zero(1, sizeof(struct state));
    if (!layer->state) return TR_ENOMEM;
    for (int i = 0; i < DIRECTIONS; i++) TR_TRY(build_direction(layer, builder, i));
    const int64_t in = tr_shape_count(&layer->in[0]), outputs = DIRECTIONS * options->recurrent.units;
    const struct state *state = layer->state;
    layer->out = (struct tr_shape){1, {outputs}, true};
    layer->flops = state->direction[0].flops + state->direction[1].flops;
    layer->keeps_input = true;
    const int64_t half = options->recurrent.units * (int64_t)sizeof(float);
    const int64_t passing = (outputs + 2 * in) * (int64_t)sizeof(float);
    tr_layer_buffer(layer, (struct tr_buffer){TR_PER_ROW, in * (int64_t)sizeof(float), 0, false});
    for (int i = 0; i < DIRECTIONS; i++)
        tr_layer_buffer(layer, (struct tr_buffer){TR_PER_ROW, half, 0, false});
    tr_layer_buffer(layer, (struct tr_buffer){TR_PER_ROW, passing, 0, true});
    return TR_OK;
}

/* The memory of one direction. */
struct side {
    const float *x;
    float *y, *dy, *dx;
};

static struct side side_of(const struct tr_layer_call *call, int number)
{
    const struct options *options = call->layer->options;
    const struct state *state = call->layer->state;
    const int64_t half = call->rows * options->recurrent.units;
    const int first = DIRECTIONS * state->direction[0].buffer_count;
    float *passing = call->buffer[first + PASSING];
    return (struct side){
        .x = number == 0 ? call->x[0] : call->buffer[first + REVERSED],
        .y = call->buffer[first + OUTPUTS + number],
        .dy = passing ? passing + number * half : NULL,
        .dx = passing ? passing + DIRECTIONS * half : NULL,
    };
}

/* The call of one direction's layer. */
static struct tr_layer_call call_of(const struct tr_layer_call *call, int number)
{
    const struct state *state = call->layer->state;
    const struct tr_layer *layer = &state->direction[number];
    const struct side side = side_of(call, number);
    struct tr_layer_call own = *call;
    own.layer = layer;
    own.x[0] = side.x;
    own.y = side.y;
    own.dy = side.dy;
    own.dx[0] = number == 0 || !call->dx[0] ? call->dx[0] : side.dx;
    for (int i = 0; i < layer->buffer_count; i++)
        own.buffer[i] = call->buffer[number * layer->buffer_count + i];
    for (int i = 0; i < layer->slot_count; i++) {
        own.parameter[i] = call->parameter[number * layer->slot_count + i];
        own.gradient[i] = call->gradient[number * layer->slot_count + i];
    }
    return own;
}

static tr_status copy(const struct tr_layer_call *call, int64_t width, bool reverse, const float *x,
                      int64_t x_step, float *y, int64_t y_step)
{
    const struct tr_op_sequence_copy op = {call->examples, width,        x_step, y_step,
                                           reverse,        call->offset, x,      y};
    return tr_device_sequence_copy(call->device, &op);
}

static tr_status forward(const struct tr_layer_call *call)
{
    const struct options *options = call->layer->options;
    const int64_t in = tr_shape_count(&call->layer->in[0]), units = options->recurrent.units;
    for (int i = 0; i < DIRECTIONS; i++) {
        const struct tr_layer_call own = call_of(call, i);
        if (i == 1) TR_TRY(copy(call, in, true, call->x[0], in, (float *)own.x[0], in));
        TR_TRY(own.layer->class->forward(&own));
        TR_TRY(copy(call, units, i == 1, own.y, units, call->y + i * units, DIRECTIONS * units));
    }
    return TR_OK;
}

static tr_status backward(const struct tr_layer_call *call)
{
    const struct options *options = call->layer->options;
    const int64_t in = tr_shape_count(&call->layer->in[0]), units = options->recurrent.units;
    for (int i = 0; i < DIRECTIONS; i++) {
        const struct tr_layer_call own = call_of(call, i);
        TR_TRY(copy(call, units, i == 1, call->dy + i * units, DIRECTIONS * units, (float *)own.dy, units));
        TR_TRY(own.layer->class->backward(&own));
    }
    if (!call->dx[0]) return TR_OK;
    float *reversed = side_of(call, 1).dx, *reading = reversed + call->rows * in;
    TR_TRY(copy(call, in, true, reversed, in, reading, in));
    const struct tr_op_add sum = {call->rows * in, call->dx[0], reading, call->dx[0]};
    return tr_device_add(call->device, &sum);
}

const struct tr_layer_class tr_layer_bidirectional = {
    .name = "bidirectional",
    .help = "a recurrent layer in both directions; gives both hidden states for every token",
    TR_ENTRY_OPTIONS(table, struct options),
    .inputs = 1,
    .build = build,
    .forward = forward,
    .backward = backward,
};
