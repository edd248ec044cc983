/* attention: multi-head self-attention over the tokens of each example (Vaswani et al. 2017), with the
 * projections in front of it and behind it. An example costs its own tokens only.
 */
#include "nn/layers/common.h"
#include "nn/layers/table.h"

#include <math.h>

struct options {
    int64_t heads, width;
    bool causal, use_bias;
    float dropout, rotary;
    const tr_config *weights, *output_weights;
};

enum { WEIGHTS, OUTPUT_WEIGHTS, BIAS, OUTPUT_BIAS };
/* PROJECTED holds queries, keys and values side by side; STATISTICS what shifts the scores of each head, then
   one over their sum; GRADIENTS those of PROJECTED, then those of ATTENDED. */
enum { PROJECTED, ATTENDED, STATISTICS, GRADIENTS };

static const struct tr_option table[] = {
    {"heads", TR_OPTION_INT64, offsetof(struct options, heads), NULL, 1, 1 << 16, NULL,
     "number of heads: parts of the vectors that attend separately"},
    {"width", TR_OPTION_INT64, offsetof(struct options, width), "0", 0, 1 << 20, NULL,
     "width of queries, keys and values, all heads together; 0: that of the input"},
    {"causal", TR_OPTION_BOOL, offsetof(struct options, causal), "false", 0, 0, NULL,
     "a token sees itself and earlier tokens, not later ones"},
    {"dropout", TR_OPTION_FLOAT, offsetof(struct options, dropout), "0", 0, 0.9999, NULL,
     "fraction of the attention weights that are dropped in training"},
    {"rotary", TR_OPTION_FLOAT, offsetof(struct options, rotary), "0", 0, 1e9, NULL,
     "base of rotary positions (Su et al. 2021), usually 10000; 0: none. Number k of a head rotates with "
     "number k + half of its size, as in Llama and GPT-NeoX; the paper rotates neighbours"},
    {"use_bias", TR_OPTION_BOOL, offsetof(struct options, use_bias), "true", 0, 0, NULL,
     "add biases to the projections"},
    {"weights", TR_OPTION_NODE, offsetof(struct options, weights), "glorot_uniform", 0, 0, NULL,
     "initializer of the projection to queries, keys and values"},
    {"output_weights", TR_OPTION_NODE, offsetof(struct options, output_weights), "glorot_uniform", 0, 0, NULL,
     "initializer of the output projection"},
};

static tr_status declare_parameters(struct tr_layer *layer, struct tr_builder *builder, int64_t in)
{
    const struct options *options = layer->options;
    const int64_t width = options->width;
    struct tr_initializer weights, output, zero;
    TR_TRY(tr_initializer_read(options->weights, "glorot_uniform", &weights));
    TR_TRY(tr_initializer_read(options->output_weights, "glorot_uniform", &output));
    TR_TRY(tr_initializer_read(NULL, "0", &zero));
    const struct tr_shape w = {2, {in, 3 * width}, false}, o = {2, {width, in}, false};
    const struct tr_shape b = {1, {3 * width}, false}, c = {1, {in}, false};
    TR_TRY(tr_builder_parameter(builder, layer, "weights", TR_PARAMETER_WEIGHT, w, &weights, in, width));
    TR_TRY(
        tr_builder_parameter(builder, layer, "output_weights", TR_PARAMETER_WEIGHT, o, &output, width, in));
    if (!options->use_bias) return TR_OK;
    TR_TRY(tr_builder_parameter(builder, layer, "bias", TR_PARAMETER_BIAS, b, &zero, in, width));
    return tr_builder_parameter(builder, layer, "output_bias", TR_PARAMETER_BIAS, c, &zero, width, in);
}

static tr_status build(struct tr_layer *layer, struct tr_builder *builder)
{
    struct options *options = layer->options;
    TR_TRY(tr_layer_wants_sequence(layer));
    const int64_t in = tr_shape_count(&layer->in[0]);
    if (options->width == 0) options->width = in;
    if (options->width % options->heads)
        return tr_fail(TR_EINVAL, "a width of %lld does not divide into %lld heads; choose a multiple",
                       (long long)options->width, (long long)options->heads);
    if (options->rotary > 0 && options->width / options->heads % 2)
        return tr_fail(TR_EINVAL, "rotary positions turn pairs, a head has %lld numbers; make them even",
                       (long long)(options->width / options->heads));
    const int64_t size = options->width * (int64_t)sizeof(float);
    layer->out = (struct tr_shape){1, {in}, true};
    layer->flops = 8 * in * options->width;
    layer->keeps_input = true;
    tr_layer_buffer(layer, (struct tr_buffer){TR_PER_ROW, 3 * size, 0, false}); /* PROJECTED */
    tr_layer_buffer(layer, (struct tr_buffer){TR_PER_ROW, size, 0, false});     /* ATTENDED */
    tr_layer_buffer(layer, (struct tr_buffer){TR_PER_ROW, 2 * options->heads * (int64_t)sizeof(float), 0,
                                              false});                         /* STATISTICS */
    tr_layer_buffer(layer, (struct tr_buffer){TR_PER_ROW, 4 * size, 0, true}); /* GRADIENTS */
    return declare_parameters(layer, builder, in);
}

static struct tr_attention describe(const struct tr_layer_call *call)
{
    const struct options *options = call->layer->options;
    const int64_t size = options->width / options->heads;
    const float *projected = call->buffer[PROJECTED];
    float *statistics = call->buffer[STATISTICS];
    return (struct tr_attention){
        .examples = call->examples,
        .heads = options->heads,
        .size = size,
        .causal = options->causal,
        .scale = 1 / sqrtf((float)size),
        .offset = call->offset,
        .key_offset = call->offset,
        .q = projected,
        .k = projected + options->width,
        .v = projected + 2 * options->width,
        .q_step = 3 * options->width,
        .kv_step = 3 * options->width,
        .shift = statistics,
        .inv = statistics + call->rows * options->heads,
        .rate = call->training ? options->dropout : 0,
        .key = {call->dropout_key[0], call->dropout_key[1]},
        .layer = call->layer_number,
        .first_example = call->first_example,
        .scalars = call->scalars,
    };
}

/* Turns the queries and keys in `x`, or gradients of them back. */
static tr_status turn(const struct tr_layer_call *call, float *x, bool inverse)
{
    const struct options *options = call->layer->options;
    if (!(options->rotary > 0)) return TR_OK;
    struct tr_op_rotary op = {
        .examples = call->examples,
        .heads = 2 * options->heads,
        .size = options->width / options->heads,
        .step = 3 * options->width,
        .base = options->rotary,
        .inverse = inverse,
        .past = call->past ? call->past->rows : 0,
        .offset = call->offset,
        .x = x,
    };
    return tr_device_rotary(call->device, &op);
}

/* Queries, keys and values of the rows, turned to their places. */
static tr_status project(const struct tr_layer_call *call, float *projected)
{
    const struct options *options = call->layer->options;
    const struct tr_op_dense_forward input = {
        .rows = call->rows,
        .in = tr_shape_count(&call->layer->in[0]),
        .out = 3 * options->width,
        .x = call->x[0],
        .w = call->parameter[WEIGHTS],
        .b = options->use_bias ? call->parameter[BIAS] : NULL,
        .y = projected,
        .activation = TR_ACT_NONE,
    };
    TR_TRY(tr_device_dense_forward(call->device, &input));
    return turn(call, projected, false);
}

static tr_status attend(const struct tr_layer_call *call, const struct tr_attention *at)
{
    const struct options *options = call->layer->options;
    const int64_t in = tr_shape_count(&call->layer->in[0]), width = options->width;
    const struct tr_op_attention_forward attention = {*at, call->buffer[ATTENDED]};
    TR_TRY(tr_device_attention_forward(call->device, &attention));
    const struct tr_op_dense_forward output = {
        .rows = call->rows,
        .in = width,
        .out = in,
        .x = call->buffer[ATTENDED],
        .w = call->parameter[OUTPUT_WEIGHTS],
        .b = options->use_bias ? call->parameter[OUTPUT_BIAS] : NULL,
        .y = call->y,
        .activation = TR_ACT_NONE,
    };
    return tr_device_dense_forward(call->device, &output);
}

static tr_status forward(const struct tr_layer_call *call)
{
    TR_TRY(project(call, call->buffer[PROJECTED]));
    const struct tr_attention at = describe(call);
    return attend(call, &at);
}

/* What is remembered of each token is its query, key and value, as they were projected. */
static tr_status extend(const struct tr_layer_call *call)
{
    const struct options *options = call->layer->options;
    const int64_t step = 3 * options->width;
    float *remembered = call->memory, *own = remembered + call->past->rows * step;
    struct tr_attention at = describe(call);
    TR_TRY(project(call, own));
    at.q = own;
    at.k = remembered + options->width;
    at.v = remembered + 2 * options->width;
    at.key_offset = call->past->whole;
    return attend(call, &at);
}

/* Where a token sees those behind it, they change what follows from it. */
static bool extends(const struct tr_layer *layer)
{
    return ((const struct options *)layer->options)->causal;
}

static int64_t memory_of(const struct tr_layer *layer, int64_t tokens)
{
    return tokens * 3 * ((const struct options *)layer->options)->width * (int64_t)sizeof(float);
}

/* The gradients of a projection's weights and bias, and of its input where that is wanted. */
static tr_status project_back(const struct tr_layer_call *call, int64_t in, int64_t out, const float *x,
                              const float *dy, int weights, int bias, float *dx)
{
    const struct options *options = call->layer->options;
    const struct tr_op_dense_backward_weights op = {
        .in = in,
        .out = out,
        .x = x,
        .dy = dy,
        .dw = call->gradient[weights],
        .db = options->use_bias ? call->gradient[bias] : NULL,
        .cut = *call->cut,
    };
    TR_TRY(tr_device_dense_backward_weights(call->device, &op));
    if (!dx) return TR_OK;
    const struct tr_op_dense_backward_data data = {call->rows, in, out, dy, call->parameter[weights], dx};
    return tr_device_dense_backward_data(call->device, &data);
}

static tr_status backward(const struct tr_layer_call *call)
{
    const struct options *options = call->layer->options;
    const int64_t in = tr_shape_count(&call->layer->in[0]), width = options->width;
    float *projected = call->buffer[GRADIENTS], *attended = projected + call->rows * 3 * width;
    TR_TRY(project_back(call, width, in, call->buffer[ATTENDED], call->dy, OUTPUT_WEIGHTS, OUTPUT_BIAS,
                        attended));
    const struct tr_op_attention_backward attention = {
        .at = describe(call),
        .y = call->buffer[ATTENDED],
        .dy = attended,
        .dq = projected,
        .dk = projected + width,
        .dv = projected + 2 * width,
        .gradient_step = 3 * width,
    };
    TR_TRY(tr_device_attention_backward(call->device, &attention));
    TR_TRY(turn(call, projected, true));
    return project_back(call, in, 3 * width, call->x[0], projected, WEIGHTS, BIAS, call->dx[0]);
}

const struct tr_layer_class tr_layer_attention = {
    .name = "attention",
    .help = "multi-head self-attention over the tokens of each example",
    TR_ENTRY_OPTIONS(table, struct options),
    .inputs = 1,
    .build = build,
    .forward = forward,
    .extend = extend,
    .extends = extends,
    .memory = memory_of,
    .backward = backward,
};
