/* attention: multi-head self-attention over the tokens of each example (Vaswani et al. 2017), with the
 * projections in front of it and after it. An example costs its own tokens only.
 */
#include "nn/layers/product.h"
#include "nn/layers/common.h"
#include "nn/layers/sequences/heads.h"
#include "nn/layers/table.h"

struct options {
    int64_t heads, width, kv_heads, window, context;
    bool causal, use_bias, use_output_bias;
    float dropout, rotary;
    int rotary_style;
    double rotary_factor, rotary_original, rotary_low, rotary_high;
    const tr_config *weights, *output_weights;
};

enum { WEIGHTS, OUTPUT_WEIGHTS, BIAS, OUTPUT_BIAS };
/* PROJECTED holds queries, keys and values side by side; STATISTICS the shift of each head's scores, then
   one over their sum; GRADIENTS those of PROJECTED, then those of ATTENDED. */
enum { PROJECTED, ATTENDED, STATISTICS, GRADIENTS };

enum style { HALVES, PAIRS };

static const struct tr_choice styles[] = {
    {"halves", HALVES, "number k of a head turns with number k + half of its size, as in Llama and GPT-NeoX"},
    {"pairs", PAIRS, "number 2k turns with number 2k + 1, as in the paper and in GPT-J"},
    {0},
};

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
     "base of rotary positions (Su et al. 2021), usually 10000; 0: none. `rotary_style` says which numbers "
     "turn together"},
    {"use_bias", TR_OPTION_BOOL, offsetof(struct options, use_bias), "true", 0, 0, NULL,
     "add biases to the projections"},
    {"weights", TR_OPTION_NODE, offsetof(struct options, weights), "glorot_uniform", 0, 0, NULL,
     "initializer of the projection to queries, keys and values"},
    {"output_weights", TR_OPTION_NODE, offsetof(struct options, output_weights), "glorot_uniform", 0, 0, NULL,
     "initializer of the output projection"},
    {"kv_heads", TR_OPTION_INT64, offsetof(struct options, kv_heads), "0", 0, 1 << 16, NULL,
     "heads of keys and values, each shared by `heads` / `kv_heads` neighbouring heads of queries "
     "(grouped-query "
     "attention, Ainslie et al. 2023); 0: `heads`",
     .flags = TR_OPTION_QUIET},
    {"window", TR_OPTION_INT64, offsetof(struct options, window), "0", 0, INT32_MAX, NULL,
     "a token sees tokens less than this number of places away, itself included; 0: all",
     .flags = TR_OPTION_QUIET},
    {.key = "rotary_style",
     .type = TR_OPTION_CHOICE,
     .offset = offsetof(struct options, rotary_style),
     .fallback = "halves",
     .choices = styles,
     .help = "which numbers of a head turn together",
     .flags = TR_OPTION_QUIET},
    {"rotary_factor", TR_OPTION_DOUBLE, offsetof(struct options, rotary_factor), "1", 1, 1e9, NULL,
     "divides positions, so that longer texts stay within the angles of the first training",
     .flags = TR_OPTION_QUIET},
    {"rotary_original", TR_OPTION_DOUBLE, offsetof(struct options, rotary_original), "0", 0, 1e9, NULL,
     "length of texts in the first training, as in Llama 3: `rotary_factor` divides positions only for "
     "numbers that turn less than `rotary_low` times over this length, in part up to `rotary_high` times; 0: "
     "for all",
     .flags = TR_OPTION_QUIET},
    {"rotary_low", TR_OPTION_DOUBLE, offsetof(struct options, rotary_low), "1", 0, 1e9, NULL,
     "turns, see `rotary_original`", .flags = TR_OPTION_QUIET | TR_OPTION_ABOVE_LEAST},
    {"rotary_high", TR_OPTION_DOUBLE, offsetof(struct options, rotary_high), "4", 0, 1e9, NULL,
     "turns, see `rotary_original`; more than `rotary_low`",
     .flags = TR_OPTION_QUIET | TR_OPTION_ABOVE_LEAST},
    {"use_output_bias", TR_OPTION_BOOL, offsetof(struct options, use_output_bias), "true", 0, 0, NULL,
     "with `use_bias`, also to the output projection; Qwen2 does not", .flags = TR_OPTION_QUIET},
    {"context", TR_OPTION_INT64, offsetof(struct options, context), "0", 0, INT32_MAX, NULL,
     "greatest number of tokens that `generate` shows the network; 0: no limit", .flags = TR_OPTION_QUIET},
};

/* Width of queries, keys and values side by side. */
static int64_t kv_width(const struct options *options)
{
    return options->width / options->heads * options->kv_heads;
}

static int64_t projected_width(const struct options *options)
{
    return options->width + 2 * kv_width(options);
}

static bool has_output_bias(const struct options *options)
{
    return options->use_bias && options->use_output_bias;
}

static tr_status declare_parameters(struct tr_layer *layer, struct tr_builder *builder, int64_t in)
{
    const struct options *options = layer->options;
    const int64_t width = options->width, projected = projected_width(options);
    TR_TRY(tr_heads_weights(layer, builder, options->weights, "weights", in, projected, width));
    TR_TRY(tr_heads_weights(layer, builder, options->output_weights, "output_weights", width, in, in));
    if (!options->use_bias) return TR_OK;
    TR_TRY(tr_layer_vector(layer, builder, "bias", TR_PARAMETER_BIAS, "0", projected));
    return has_output_bias(options)
               ? tr_layer_vector(layer, builder, "output_bias", TR_PARAMETER_BIAS, "0", in)
               : TR_OK;
}

static tr_status check_rotary(const struct options *options)
{
    const bool scaled = options->rotary_factor > 1 || options->rotary_original > 0;
    if (options->rotary == 0 && (scaled || options->rotary_style != HALVES))
        return tr_fail(TR_EINVAL,
                       "`%s` is an option of rotary positions, and there are none; write `rotary: 10000` too",
                       options->rotary_style != HALVES ? "rotary_style"
                       : options->rotary_original > 0  ? "rotary_original"
                                                       : "rotary_factor");
    if (options->rotary_original > 0 && options->rotary_low >= options->rotary_high)
        return tr_fail(TR_EINVAL, "`rotary_low` is %g and `rotary_high` %g; make the second greater",
                       options->rotary_low, options->rotary_high);
    if (options->rotary > 0 && options->width / options->heads % 2)
        return tr_fail(TR_EINVAL, "rotary positions turn pairs, a head has %lld numbers; make them even",
                       (long long)(options->width / options->heads));
    return TR_OK;
}

static tr_status build(struct tr_layer *layer, struct tr_builder *builder)
{
    struct options *options = layer->options;
    TR_TRY(tr_layer_wants_sequence(layer));
    const int64_t in = tr_shape_count(&layer->in[0]);
    if (options->width == 0) options->width = in;
    if (options->kv_heads == 0) options->kv_heads = options->heads;
    TR_TRY(tr_heads_check(options->width, options->heads, options->kv_heads));
    TR_TRY(check_rotary(options));
    const int64_t size = options->width * (int64_t)sizeof(float);
    const int64_t projected = projected_width(options) * (int64_t)sizeof(float);
    layer->out = (struct tr_shape){1, {in}, true};
    layer->flops = 2 * in * (projected_width(options) + options->width);
    layer->keeps_input = true;
    tr_layer_buffer(layer, (struct tr_buffer){TR_PER_ROW, projected, 0, false}); /* PROJECTED */
    tr_layer_buffer(layer, (struct tr_buffer){TR_PER_ROW, size, 0, false});      /* ATTENDED */
    tr_layer_buffer(layer, (struct tr_buffer){TR_PER_ROW, 2 * options->heads * (int64_t)sizeof(float), 0,
                                              false});                                 /* STATISTICS */
    tr_layer_buffer(layer, (struct tr_buffer){TR_PER_ROW, projected + size, 0, true}); /* GRADIENTS */
    return declare_parameters(layer, builder, in);
}

static int projections(const struct tr_layer *layer, struct tr_projection out[TR_LAYER_ADAPTERS])
{
    const struct options *options = layer->options;
    const int64_t in = tr_shape_count(&layer->in[0]), width = options->width;
    const int64_t shared = width > 0 ? kv_width(options) : 0, full = width + 2 * shared;
    out[0] = (struct tr_projection){"input", true, WEIGHTS, in, full, 0, full};
    out[1] = (struct tr_projection){"query", false, WEIGHTS, in, full, 0, width};
    out[2] = (struct tr_projection){"key", false, WEIGHTS, in, full, width, shared};
    out[3] = (struct tr_projection){"value", false, WEIGHTS, in, full, width + shared, shared};
    out[4] = (struct tr_projection){"output", true, OUTPUT_WEIGHTS, width, in, 0, in};
    return 5;
}

static struct tr_attention describe(const struct tr_layer_call *call)
{
    const struct options *options = call->layer->options;
    const float *projected = call->buffer[PROJECTED];
    struct tr_attention at = tr_heads_attention(call, options->width, options->heads, options->kv_heads,
                                                options->dropout, call->buffer[STATISTICS]);
    at.window = options->window;
    at.causal = options->causal;
    at.q = projected;
    at.k = projected + options->width;
    at.v = at.k + kv_width(options);
    at.q_step = at.kv_step = projected_width(options);
    return at;
}

/* Rotates the queries and keys in `x`; or rotates their gradients back. */
static tr_status turn(const struct tr_layer_call *call, float *x, bool inverse)
{
    const struct options *options = call->layer->options;
    if (!(options->rotary > 0)) return TR_OK;
    struct tr_op_rotary op = {
        .examples = call->examples,
        .heads = options->heads + options->kv_heads,
        .size = options->width / options->heads,
        .step = projected_width(options),
        .base = options->rotary,
        .pairs = options->rotary_style == PAIRS,
        .factor = options->rotary_factor,
        .original = options->rotary_original,
        .low = options->rotary_low,
        .high = options->rotary_high,
        .inverse = inverse,
        .past = call->past ? call->past->rows : 0,
        .offset = call->offset,
        .x = x,
    };
    return tr_device_rotary(call->device, &op);
}

static struct tr_layer_product input_of(const struct tr_layer *layer)
{
    const struct options *options = layer->options;
    return (struct tr_layer_product){tr_shape_count(&layer->in[0]), projected_width(options), WEIGHTS,
                                     options->use_bias ? BIAS : -1};
}

static struct tr_layer_product output_of(const struct tr_layer *layer)
{
    const struct options *options = layer->options;
    return (struct tr_layer_product){options->width, tr_shape_count(&layer->in[0]), OUTPUT_WEIGHTS,
                                     has_output_bias(options) ? OUTPUT_BIAS : -1};
}

/* Queries, keys and values of the rows, rotated by their positions. */
static tr_status project(const struct tr_layer_call *call, float *projected)
{
    const struct tr_layer_product input = input_of(call->layer);
    TR_TRY(tr_layer_product_forward(call, &input, call->x[0], projected));
    return turn(call, projected, false);
}

static tr_status attend(const struct tr_layer_call *call, const struct tr_attention *at)
{
    const struct tr_layer_product output = output_of(call->layer);
    const struct tr_op_attention_forward attention = {*at, call->buffer[ATTENDED]};
    TR_TRY(tr_device_attention_forward(call->device, &attention));
    return tr_layer_product_forward(call, &output, call->buffer[ATTENDED], call->y);
}

static tr_status forward(const struct tr_layer_call *call)
{
    TR_TRY(project(call, call->buffer[PROJECTED]));
    const struct tr_attention at = describe(call);
    return attend(call, &at);
}

/* The memory of each token is its query, key and value, as projected. */
static tr_status extend(const struct tr_layer_call *call)
{
    const struct options *options = call->layer->options;
    const int64_t step = projected_width(options);
    float *remembered = call->memory, *own = remembered + call->past->rows * step;
    struct tr_attention at = describe(call);
    TR_TRY(project(call, own));
    at.q = own;
    at.k = remembered + options->width;
    at.v = remembered + options->width + kv_width(options);
    at.key_offset = call->past->whole;
    return attend(call, &at);
}

/* Where a token sees those after it, they change what follows from it. */
static bool extends(const struct tr_layer *layer)
{
    return ((const struct options *)layer->options)->causal;
}

static int64_t longest(const struct tr_layer *layer)
{
    return ((const struct options *)layer->options)->context;
}

static int64_t memory_of(const struct tr_layer *layer, int64_t tokens)
{
    return tokens * projected_width(layer->options) * (int64_t)sizeof(float);
}

static tr_status backward(const struct tr_layer_call *call)
{
    const struct options *options = call->layer->options;
    const struct tr_layer_product input = input_of(call->layer), output = output_of(call->layer);
    float *projected = call->buffer[GRADIENTS], *attended = projected + call->rows * input.out;
    TR_TRY(tr_layer_product_backward(call, &output, call->buffer[ATTENDED], call->dy, attended));
    const struct tr_op_attention_backward attention = {
        .at = describe(call),
        .y = call->buffer[ATTENDED],
        .dy = attended,
        .dq = projected,
        .dk = projected + options->width,
        .dv = projected + options->width + kv_width(options),
        .gradient_step = input.out,
    };
    TR_TRY(tr_device_attention_backward(call->device, &attention));
    TR_TRY(turn(call, projected, true));
    return tr_layer_product_backward(call, &input, call->x[0], projected, call->dx[0]);
}

const struct tr_layer_class tr_layer_attention = {
    .name = "attention",
    .help = "multi-head self-attention over the tokens of each example",
    TR_ENTRY_OPTIONS(table, struct options),
    .inputs = 1,
    .skips_gradients = true,
    .projections = projections,
    .build = build,
    .forward = forward,
    .extend = extend,
    .extends = extends,
    .memory = memory_of,
    .longest = longest,
    .backward = backward,
};
