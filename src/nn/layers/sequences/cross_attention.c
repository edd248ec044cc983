/* cross_attention: attention with two inputs (Vaswani et al. 2017): queries are projections of the first,
 * keys and values of the second, the memory. Each token sees the whole memory.
 *
 * Where both inputs have the same number of tokens, queries, keys and values are laid out side by side, as in
 * `attention`; where they follow from two texts, they stay apart. The bits are the same.
 */
#include "nn/layers/common.h"
#include "nn/layers/product.h"
#include "nn/layers/sequences/heads.h"
#include "nn/layers/table.h"

struct options {
    struct tr_string_list with;
    int64_t heads, width, kv_heads;
    float dropout;
    bool use_bias;
    const tr_config *weights, *memory_weights, *output_weights;
};

enum { WEIGHTS, MEMORY_WEIGHTS, OUTPUT_WEIGHTS, BIAS, MEMORY_BIAS, OUTPUT_BIAS };
/* QUERIES and KEYS as the projections give them, keys with values; PROJECTED both side by side; STATISTICS
   the shift of each head's scores, then one over their sum; GRADIENTS those of PROJECTED, of ATTENDED, of
   QUERIES and of KEYS. Apart, PROJECTED does not exist: KEY_GRADIENTS are those of KEYS, as the operation
   leaves them and as they are laid out; GRADIENTS are those of ATTENDED, and twice of QUERIES, likewise. */
enum { QUERIES, KEYS, PROJECTED, ATTENDED, STATISTICS, GRADIENTS };
enum { KEY_GRADIENTS = PROJECTED };

static const struct tr_option table[] = {
    TR_LAYER_WITH_OPTION(struct options,
                         "the memory: the layer whose tokens those of the previous layer attend to; or give "
                         "`from`"),
    {"heads", TR_OPTION_INT64, offsetof(struct options, heads), NULL, 1, 1 << 16, NULL,
     "number of heads: parts of the vectors that attend separately"},
    {"width", TR_OPTION_INT64, offsetof(struct options, width), "0", 0, 1 << 20, NULL,
     "width of queries, all heads together; 0: that of the first input"},
    {"kv_heads", TR_OPTION_INT64, offsetof(struct options, kv_heads), "0", 0, 1 << 16, NULL,
     "heads of keys and values, each shared by `heads` / `kv_heads` neighbouring heads of queries; 0: "
     "`heads`"},
    {"dropout", TR_OPTION_FLOAT, offsetof(struct options, dropout), "0", 0, 0.9999, NULL,
     "fraction of the attention weights that are dropped in training"},
    {"use_bias", TR_OPTION_BOOL, offsetof(struct options, use_bias), "true", 0, 0, NULL,
     "add biases to the projections"},
    {"weights", TR_OPTION_NODE, offsetof(struct options, weights), "glorot_uniform", 0, 0, NULL,
     "initializer of the projection to queries"},
    {"memory_weights", TR_OPTION_NODE, offsetof(struct options, memory_weights), "glorot_uniform", 0, 0, NULL,
     "initializer of the projection of the memory to keys and values"},
    {"output_weights", TR_OPTION_NODE, offsetof(struct options, output_weights), "glorot_uniform", 0, 0, NULL,
     "initializer of the output projection"},
};

/* Numbers of a token. */
struct sizes {
    int64_t in, memory; /* of the inputs */
    int64_t query, key; /* of its queries; of its keys and, equally, its values */
};

static struct sizes sizes_of(const struct tr_layer *layer)
{
    const struct options *options = layer->options;
    return (struct sizes){
        .in = tr_shape_count(&layer->in[0]),
        .memory = tr_shape_count(&layer->in[1]),
        .query = options->width,
        .key = options->width / options->heads * options->kv_heads,
    };
}

static tr_status declare_parameters(struct tr_layer *layer, struct tr_builder *builder, const struct sizes *n)
{
    const struct options *options = layer->options;
    TR_TRY(tr_heads_weights(layer, builder, options->weights, "weights", n->in, n->query, n->query));
    TR_TRY(tr_heads_weights(layer, builder, options->memory_weights, "memory_weights", n->memory, 2 * n->key,
                            n->query));
    TR_TRY(
        tr_heads_weights(layer, builder, options->output_weights, "output_weights", n->query, n->in, n->in));
    if (!options->use_bias) return TR_OK;
    TR_TRY(tr_layer_vector(layer, builder, "bias", TR_PARAMETER_BIAS, "0", n->query));
    TR_TRY(tr_layer_vector(layer, builder, "memory_bias", TR_PARAMETER_BIAS, "0", 2 * n->key));
    return tr_layer_vector(layer, builder, "output_bias", TR_PARAMETER_BIAS, "0", n->in);
}

static tr_status check(const struct tr_layer *layer, const struct tr_builder *builder)
{
    const struct options *options = layer->options;
    char text[TR_SHAPE_TEXT];
    if (layer->input_count != 2)
        return tr_fail(TR_EINVAL, "takes two inputs, tokens and the memory that they attend to, not %d",
                       layer->input_count);
    for (int k = 0; k < 2; k++)
        if (!layer->in[k].sequence)
            return tr_fail(TR_EINVAL,
                           "needs sequences of vectors, \"%s\" gives %s; use it after layers over tokens",
                           tr_builder_input(builder, layer, k), tr_shape_text(&layer->in[k], text));
    return tr_heads_check(options->width, options->heads, options->kv_heads);
}

/* The numbers from one row to the next of the gradients that attention leaves, where they are apart. */
static int64_t gradient_step(const struct sizes *n)
{
    return n->query > 2 * n->key ? n->query : 2 * n->key;
}

/* A buffer of so many floats for each token of an input. */
static void add_buffer_of(struct tr_layer *layer, enum tr_buffer_unit unit, int64_t floats, bool forward_only,
                          bool backward_only)
{
    tr_layer_buffer(layer, (struct tr_buffer){
                               .unit = unit,
                               .bytes = floats * (int64_t)sizeof(float),
                               .forward_only = forward_only,
                               .backward_only = backward_only,
                           });
}

static void add_buffer(struct tr_layer *layer, int64_t floats, bool forward_only, bool backward_only)
{
    add_buffer_of(layer, TR_PER_ROW, floats, forward_only, backward_only);
}

static void add_buffers(struct tr_layer *layer, const struct sizes *n)
{
    const int64_t heads = ((const struct options *)layer->options)->heads, keys = 2 * n->key;
    const int64_t projected = n->query + keys, step = gradient_step(n);
    const bool apart = tr_layer_is_apart(layer);
    add_buffer(layer, n->query, !apart, false);                                        /* QUERIES */
    add_buffer_of(layer, apart ? TR_PER_MEMORY_ROW : TR_PER_ROW, keys, !apart, false); /* KEYS */
    if (apart)
        add_buffer_of(layer, TR_PER_MEMORY_ROW, step + (step > keys ? keys : 0), false, true);
    else
        add_buffer(layer, projected, false, false);                                       /* PROJECTED */
    add_buffer(layer, n->query, false, false);                                            /* ATTENDED */
    add_buffer(layer, 2 * heads, false, false);                                           /* STATISTICS */
    add_buffer(layer, n->query + (apart ? step + n->query : 2 * projected), false, true); /* GRADIENTS */
}

static tr_status build(struct tr_layer *layer, struct tr_builder *builder)
{
    struct options *options = layer->options;
    if (options->width == 0) options->width = tr_shape_count(&layer->in[0]);
    if (options->kv_heads == 0) options->kv_heads = options->heads;
    TR_TRY(check(layer, builder));
    const struct sizes n = sizes_of(layer);
    layer->out = (struct tr_shape){1, {n.in}, true};
    layer->flops = 2 * (2 * n.in * n.query + 2 * n.memory * n.key);
    layer->keeps_input = true;
    add_buffers(layer, &n);
    return declare_parameters(layer, builder, &n);
}

/* The products with the parameters of a layer. */
struct products {
    struct tr_layer_product query, key, output;
};

static struct products products_of(const struct tr_layer *layer, const struct sizes *n)
{
    const bool biased = ((const struct options *)layer->options)->use_bias;
    return (struct products){
        .query = {n->in, n->query, WEIGHTS, biased ? BIAS : -1},
        .key = {n->memory, 2 * n->key, MEMORY_WEIGHTS, biased ? MEMORY_BIAS : -1},
        .output = {n->query, n->in, OUTPUT_WEIGHTS, biased ? OUTPUT_BIAS : -1},
    };
}

static tr_status copy_of(const struct tr_layer_call *call, const int32_t *offset, int64_t width,
                         const float *x, int64_t x_step, float *y, int64_t y_step)
{
    const struct tr_op_sequence_copy op = {call->examples, width, x_step, y_step, false, offset, x, y};
    return tr_device_sequence_copy(call->device, &op);
}

static tr_status copy(const struct tr_layer_call *call, int64_t width, const float *x, int64_t x_step,
                      float *y, int64_t y_step)
{
    return copy_of(call, call->offset, width, x, x_step, y, y_step);
}

/* The call with the memory's rows in place of its own. */
static struct tr_layer_call of_memory(const struct tr_layer_call *call)
{
    struct tr_layer_call memory = *call;
    memory.rows = call->memory_rows;
    memory.offset = call->memory_offset;
    memory.cut = call->memory_cut;
    return memory;
}

static struct tr_attention describe(const struct tr_layer_call *call, const struct sizes *n)
{
    const struct options *options = call->layer->options;
    const float *projected = call->buffer[PROJECTED];
    struct tr_attention at = tr_heads_attention(call, options->width, options->heads, options->kv_heads,
                                                options->dropout, call->buffer[STATISTICS]);
    at.q = projected;
    at.k = projected + n->query;
    at.v = at.k + n->key;
    at.q_step = at.kv_step = n->query + 2 * n->key;
    return at;
}

/* The same where the memory is apart. */
static struct tr_attention describe_apart(const struct tr_layer_call *call, const struct sizes *n,
                                          const float *keys)
{
    struct tr_attention at = describe(call, n);
    at.key_offset = call->memory_offset;
    at.q = call->buffer[QUERIES];
    at.q_step = n->query;
    at.k = keys;
    at.v = keys + n->key;
    at.kv_step = 2 * n->key;
    return at;
}

/* The output from the keys and values of the memory. */
static tr_status attend_apart(const struct tr_layer_call *call, const struct sizes *n, const float *keys)
{
    const struct products with = products_of(call->layer, n);
    TR_TRY(tr_layer_product_forward(call, &with.query, call->x[0], call->buffer[QUERIES]));
    const struct tr_op_attention_forward op = {describe_apart(call, n, keys), call->buffer[ATTENDED]};
    TR_TRY(tr_device_attention_forward(call->device, &op));
    return tr_layer_product_forward(call, &with.output, call->buffer[ATTENDED], call->y);
}

static tr_status forward_apart(const struct tr_layer_call *call, const struct sizes *n, float *keys)
{
    const struct products with = products_of(call->layer, n);
    const struct tr_layer_call memory = of_memory(call);
    TR_TRY(tr_layer_product_forward(&memory, &with.key, call->x[1], keys));
    return attend_apart(call, n, keys);
}

static tr_status backward_apart(const struct tr_layer_call *call, const struct sizes *n)
{
    const struct products with = products_of(call->layer, n);
    const struct tr_layer_call memory = of_memory(call);
    const int64_t step = gradient_step(n), keys = 2 * n->key;
    float *attended = call->buffer[GRADIENTS], *dq = attended + call->rows * n->query;
    float *queries = dq + call->rows * step, *dk = call->buffer[KEY_GRADIENTS];
    float *of_keys = step > keys ? dk + call->memory_rows * step : dk;
    TR_TRY(tr_layer_product_backward(call, &with.output, call->buffer[ATTENDED], call->dy, attended));
    const struct tr_op_attention_backward op = {
        .at = describe_apart(call, n, call->buffer[KEYS]),
        .y = call->buffer[ATTENDED],
        .dy = attended,
        .dq = dq,
        .dk = dk,
        .dv = dk + n->key,
        .gradient_step = step,
    };
    TR_TRY(tr_device_attention_backward(call->device, &op));
    TR_TRY(copy(call, n->query, dq, step, queries, n->query));
    if (step > keys) TR_TRY(copy_of(call, call->memory_offset, keys, dk, step, of_keys, keys));
    TR_TRY(tr_layer_product_backward(&memory, &with.key, call->x[1], of_keys, call->dx[1]));
    return tr_layer_product_backward(call, &with.query, call->x[0], queries, call->dx[0]);
}

/* While text is generated the memory does not change: its keys and values are kept. */
static tr_status extend(const struct tr_layer_call *call)
{
    const struct sizes n = sizes_of(call->layer);
    return call->past->rows == 0 ? forward_apart(call, &n, call->memory)
                                 : attend_apart(call, &n, call->memory);
}

static bool extends(const struct tr_layer *layer)
{
    return layer->tokens_in == 0 && layer->tokens_memory == TR_TOKENS_OF_SECOND;
}

/* Of so many tokens of the memory. */
static int64_t memory_of(const struct tr_layer *layer, int64_t tokens)
{
    const struct sizes n = sizes_of(layer);
    return tokens * 2 * n.key * (int64_t)sizeof(float);
}

static tr_status forward(const struct tr_layer_call *call)
{
    const struct sizes n = sizes_of(call->layer);
    if (tr_layer_is_apart(call->layer)) return forward_apart(call, &n, call->buffer[KEYS]);
    const struct products with = products_of(call->layer, &n);
    const int64_t step = n.query + 2 * n.key;
    float *projected = call->buffer[PROJECTED];
    TR_TRY(tr_layer_product_forward(call, &with.query, call->x[0], call->buffer[QUERIES]));
    TR_TRY(tr_layer_product_forward(call, &with.key, call->x[1], call->buffer[KEYS]));
    TR_TRY(copy(call, n.query, call->buffer[QUERIES], n.query, projected, step));
    TR_TRY(copy(call, 2 * n.key, call->buffer[KEYS], 2 * n.key, projected + n.query, step));
    const struct tr_op_attention_forward op = {describe(call, &n), call->buffer[ATTENDED]};
    TR_TRY(tr_device_attention_forward(call->device, &op));
    return tr_layer_product_forward(call, &with.output, call->buffer[ATTENDED], call->y);
}

static tr_status backward(const struct tr_layer_call *call)
{
    const struct sizes n = sizes_of(call->layer);
    if (tr_layer_is_apart(call->layer)) return backward_apart(call, &n);
    const struct products with = products_of(call->layer, &n);
    const int64_t step = n.query + 2 * n.key;
    float *projected = call->buffer[GRADIENTS], *attended = projected + call->rows * step;
    float *queries = attended + call->rows * n.query, *keys = queries + call->rows * n.query;
    TR_TRY(tr_layer_product_backward(call, &with.output, call->buffer[ATTENDED], call->dy, attended));
    const struct tr_op_attention_backward op = {
        .at = describe(call, &n),
        .y = call->buffer[ATTENDED],
        .dy = attended,
        .dq = projected,
        .dk = projected + n.query,
        .dv = projected + n.query + n.key,
        .gradient_step = step,
    };
    TR_TRY(tr_device_attention_backward(call->device, &op));
    TR_TRY(copy(call, n.query, projected, step, queries, n.query));
    TR_TRY(copy(call, 2 * n.key, projected + n.query, step, keys, 2 * n.key));
    TR_TRY(tr_layer_product_backward(call, &with.key, call->x[1], keys, call->dx[1]));
    return tr_layer_product_backward(call, &with.query, call->x[0], queries, call->dx[0]);
}

const struct tr_layer_class tr_layer_cross_attention = {
    .name = "cross_attention",
    .help = "multi-head attention of the tokens of one layer to those of another",
    TR_ENTRY_OPTIONS(table, struct options),
    .inputs = 2,
    .two_lengths = true,
    .build = build,
    .forward = forward,
    .extend = extend,
    .extends = extends,
    .memory = memory_of,
    .backward = backward,
};
