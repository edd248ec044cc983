/* Models from text: shapes, names, parameters, and what is said about texts that make none. */
#include "support/networks.h"

#include "base/alloc.h"
#include "base/numbers/hash.h"
#include "refuse.h"

#include <openssl/evp.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

static struct tr_model *build(const char *text, const char *input, int64_t vocabulary)
{
    struct tr_model *model;
    must(network_build(text, input, vocabulary, &model));
    return model;
}

/* ---- shapes ---- */

/* One layer, named after its class and 1, over an input. Texts end with something that a loss accepts where
   the layer's own output is none; the shapes are the first layer's. */
struct shape_case {
    const char *class, *layers, *input;
    int64_t vocabulary;
    const char *output, *parameters;
};

static const struct shape_case shape_cases[] = {
    {"add", "[tanh: {name: a}, add: a]", "3x4x2", 0, "3x4x2", ""},
    {"add", "[tanh: {name: a}, add: {from: [a, a, a, input, a, a, a, a]}]", "5", 0, "5", ""},
    {"attention", "[attention: 3, last]", "tokens x 6", 0, "tokens x 6",
     "weights 6x18 output_weights 6x6 bias 18 output_bias 6"},
    {"attention", "[attention: {heads: 2, width: 4, rotary: 10000, use_bias: false}, last]", "tokens x 6", 0,
     "tokens x 6", "weights 6x12 output_weights 4x6"},
    {"average_pool", "[average_pool: 2]", "7x6x3", 0, "3x3x3", ""},
    {"average_pool", "[average_pool: {size: 2, padding: same}]", "7x6x3", 0, "4x3x3", ""},
    {"average_pool", "[average_pool: {size: 3, stride: 1, pad: 1}]", "7x6x3", 0, "7x6x3", ""},
    {"batch_norm", "[batch_norm]", "5x4x3", 0, "5x4x3", "gamma 3 beta 3 running_mean 3 running_var 3"},
    {"batch_norm", "[batch_norm]", "9", 0, "9", "gamma 9 beta 9 running_mean 9 running_var 9"},
    {"concat", "[tanh: {name: a}, concat: a]", "3x4x2", 0, "3x4x4", ""},
    {"concat",
     "[dense: {units: 3, name: a}, dense: {units: 2, from: input, name: b}, concat: {from: [a, b, a]}]", "5",
     0, "8", ""},
    {"concat", "[tanh: {name: a}, concat: a, last]", "tokens x 3", 0, "tokens x 6", ""},
    {"bidirectional", "[bidirectional: 8, last]", "tokens x 3", 0, "tokens x 16",
     "forward.weights 3x32 forward.recurrent_weights 8x32 forward.bias 32 "
     "backward.weights 3x32 backward.recurrent_weights 8x32 backward.bias 32"},
    {"conv1d", "[conv1d: {filters: 5, kernel: 3}, last]", "tokens x 2", 0, "tokens x 5",
     "weights 3x2x5 bias 5"},
    {"conv", "[conv: {filters: 32, kernel: 5}]", "28x28x1", 0, "24x24x32", "weights 5x5x1x32 bias 32"},
    {"conv", "[conv: {filters: 32, kernel: 5, padding: same}]", "28x28x1", 0, "28x28x32",
     "weights 5x5x1x32 bias 32"},
    {"conv", "[conv: {filters: 4, kernel: [3, 1], stride: [2, 3], use_bias: false}]", "9x10x2", 0, "4x4x4",
     "weights 3x1x2x4"},
    {"conv", "[conv: {filters: 4, kernel: 3, stride: 2, padding: same}]", "9x10x2", 0, "5x5x4",
     "weights 3x3x2x4 bias 4"},
    {"conv", "[conv: {filters: 1, kernel: 3, dilation: 2}]", "9x10x2", 0, "5x6x1", "weights 3x3x2x1 bias 1"},
    {"conv", "[conv: {filters: 1, kernel: 3, pad: 2}]", "9x10x2", 0, "11x12x1", "weights 3x3x2x1 bias 1"},
    {"conv", "[conv: {filters: 8, kernel: 3, groups: 4, padding: same}]", "9x10x4", 0, "9x10x8",
     "weights 3x3x1x8 bias 8"},
    {"conv", "[conv: {filters: 4, kernel: [3, 2], groups: 2, use_bias: false}]", "9x10x6", 0, "7x9x4",
     "weights 3x2x3x4"},
    {"conv_transpose", "[conv_transpose: {filters: 6, kernel: 2, stride: 2, groups: 3}]", "4x5x9", 0,
     "8x10x6", "weights 2x2x2x9"},
    {"conv1d", "[conv1d: {filters: 4, kernel: 3, groups: 2}, last]", "tokens x 6", 0, "tokens x 4",
     "weights 3x3x4 bias 4"},
    {"conv1d", "[tokens, conv1d: {filters: 4, kernel: 3, stride: 2}, last]", "5x1x6", 0, "tokens x 4",
     "weights 3x6x4 bias 4"},
    {"cross_attention",
     "[conv1d: {filters: 4, kernel: 1, name: m}, tanh: {from: input}, cross_attention: {with: m, heads: 3}, "
     "last]",
     "tokens x 6", 0, "tokens x 6",
     "weights 6x6 memory_weights 4x12 output_weights 6x6 bias 6 memory_bias 12 output_bias 6"},
    {"cross_attention",
     "[cross_attention: {from: [input, input], heads: 4, kv_heads: 2, width: 8, use_bias: false}, last]",
     "tokens x 6", 0, "tokens x 6", "weights 6x8 memory_weights 6x8 output_weights 8x6"},
    {"dense", "[dense: 10]", "784", 0, "10", "weights 784x10 bias 10"},
    {"dense", "[dense: {units: 10, use_bias: false}]", "4x5x3", 0, "10", "weights 60x10"},
    {"dense", "[dense: 7, last]", "tokens x 5", 0, "tokens x 7", "weights 5x7 bias 7"},
    {"dropout", "[dropout: 0.5, tanh]", "4x5x3", 0, "4x5x3", ""},
    {"embedding", "[embedding: 6, last]", "tokens", 100, "tokens x 6", "weights 100x6"},
    {"embedding", "[embedding: {width: 6, vocabulary: 120}, last]", "tokens", 100, "tokens x 6",
     "weights 120x6"},
    {"flatten", "[flatten, tanh]", "4x5x3", 0, "60", ""},
    {"gelu", "[gelu]", "4x5x3", 0, "4x5x3", ""},
    {"global_average_pool", "[global_average_pool]", "7x6x3", 0, "3", ""},
    {"global_average_pool", "[global_average_pool]", "tokens x 3", 0, "3", ""},
    {"global_max_pool", "[global_max_pool]", "7x6x3", 0, "3", ""},
    {"gru", "[gru: 8, last]", "tokens x 3", 0, "tokens x 8",
     "weights 3x24 recurrent_weights 8x24 bias 24 recurrent_bias 24"},
    {"first", "[first, tanh]", "tokens x 3", 0, "3", ""},
    {"last", "[last, tanh]", "tokens x 3", 0, "3", ""},
    {"layer_norm", "[layer_norm]", "4x5x3", 0, "4x5x3", "gamma 60 beta 60"},
    {"layer_norm", "[layer_norm, last]", "tokens x 6", 0, "tokens x 6", "gamma 6 beta 6"},
    {"leaky_relu", "[leaky_relu: 0.2]", "5", 0, "5", ""},
    {"lstm", "[lstm: 8, last]", "tokens x 3", 0, "tokens x 8", "weights 3x32 recurrent_weights 8x32 bias 32"},
    {"max_pool", "[max_pool]", "7x6x3", 0, "3x3x3", ""},
    {"max_pool", "[max_pool: {size: [2, 3], stride: [1, 2], padding: same}]", "7x6x3", 0, "7x3x3", ""},
    {"position", "[position: 9, last]", "tokens x 3", 0, "tokens x 3", "weights 9x3"},
    {"relu", "[relu, last]", "tokens x 3", 0, "tokens x 3", ""},
    {"relu6", "[relu6]", "4x5x3", 0, "4x5x3", ""},
    {"reshape", "[reshape: [2, 3, 2], tanh]", "12", 0, "2x3x2", ""},
    {"group_norm", "[{group_norm: 3}]", "4x5x6", 0, "4x5x6", "gamma 6 beta 6"},
    {"group_norm", "[{group_norm: 2}, last]", "tokens x 6", 0, "tokens x 6", "gamma 6 beta 6"},
    {"hard_swish", "[hard_swish]", "4x5x3", 0, "4x5x3", ""},
    {"multiply", "[dense: {units: 5, name: a}, {multiply: {from: [a, input]}}]", "5", 0, "5", ""},
    {"multiply", "[global_average_pool, {multiply: input}]", "4x5x3", 0, "4x5x3", ""},
    {"rms_norm", "[rms_norm]", "4x5x3", 0, "4x5x3", "gamma 60"},
    {"rms_norm", "[rms_norm, last]", "tokens x 6", 0, "tokens x 6", "gamma 6"},
    {"instance_norm", "[instance_norm]", "4x5x6", 0, "4x5x6", "gamma 6 beta 6"},
    {"stochastic_depth", "[stochastic_depth: 0.5, tanh]", "4x5x3", 0, "4x5x3", ""},
    {"silu", "[silu, last]", "tokens x 3", 0, "tokens x 3", ""},
    {"sigmoid", "[sigmoid]", "5", 0, "5", ""},
    {"slice", "[slice: {begin: 2, size: 3}]", "5", 0, "3", ""},
    {"slice", "[slice: {begin: 0, size: 2}, last]", "tokens x 5", 0, "tokens x 2", ""},
    {"softmax", "[softmax]", "4x5x3", 0, "4x5x3", ""},
    {"tanh", "[tanh]", "5", 0, "5", ""},
    {"tokens", "[tokens, last]", "4x5x3", 0, "tokens x 3", ""},
    {"unembedding", "[embedding: {width: 4, name: e}, unembedding: e]", "tokens", 7, "tokens x 7", ""},
    {"upsample", "[upsample: [2, 3]]", "4x5x3", 0, "8x15x3", ""},
    {"conv_transpose", "[conv_transpose: {filters: 6, kernel: [3, 2], stride: 2}]", "4x5x3", 0, "9x10x6",
     "weights 3x2x6x3"},
    {"conv_transpose", "[conv_transpose: {filters: 2, kernel: 4, stride: 2, pad: 1}]", "4x5x3", 0, "8x10x2",
     "weights 4x4x2x3"},
    {"conv_transpose", "[conv_transpose: {filters: 2, kernel: 2, stride: 3, padding: same}]", "4x5x3", 0,
     "12x15x2", "weights 2x2x2x3"},
};
#define SHAPE_CASES (sizeof shape_cases / sizeof shape_cases[0])

static void test_shapes_are_told(void **state)
{
    (void)state;
    static const struct {
        struct tr_shape shape;
        const char *text;
    } cases[] = {{{.rank = 0}, "scalar"},
                 {{.rank = 1, .size = {5}}, "5"},
                 {{.rank = 3, .size = {4, 5, 3}}, "4x5x3"},
                 {{.rank = 1, .size = {6}, .sequence = true}, "tokens x 6"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[TR_SHAPE_TEXT];
        assert_string_equal(tr_shape_text(&cases[i].shape, text), cases[i].text);
    }
}

static const struct tr_layer *layer_of_class(const struct tr_model *model, const char *class)
{
    for (int i = 0; i < model->layer_count; i++)
        if (strcmp(model->layers[i].class->name, class) == 0) return &model->layers[i];
    fail_msg("no layer \"%s\"", class);
    return NULL;
}

/* "weights 5x5x1x32 bias 32", without the layer's name. */
static const char *parameters_text(const struct tr_model *model, const struct tr_layer *layer, char *text,
                                   size_t size)
{
    size_t used = 0;
    *text = 0;
    for (int i = 0; i < layer->parameter_count; i++) {
        const struct tr_parameter *parameter = &model->parameters[layer->parameter[i]];
        char shape[TR_SHAPE_TEXT];
        size_t prefix = strlen(layer->name);
        assert_int_equal(strncmp(parameter->name, layer->name, prefix), 0);
        assert_int_equal(parameter->name[prefix], '.');
        used += (size_t)snprintf(text + used, size - used, "%s%s %s", i ? " " : "",
                                 parameter->name + prefix + 1, tr_shape_text(&parameter->shape, shape));
        assert_true(used < size);
    }
    return text;
}

static void test_shapes(void **state)
{
    (void)state;
    for (size_t i = 0; i < SHAPE_CASES; i++) {
        const struct shape_case *c = &shape_cases[i];
        char text[256], shape[TR_SHAPE_TEXT], parameters[256];
        snprintf(text, sizeof text, "layers: %s", c->layers);
        struct tr_model *model = build(text, c->input, c->vocabulary);
        const struct tr_layer *layer = layer_of_class(model, c->class);
        if (strcmp(tr_shape_text(&layer->out, shape), c->output) != 0)
            fail_msg("%s over %s: output is %s, should be %s", c->layers, c->input, shape, c->output);
        if (strcmp(parameters_text(model, layer, parameters, sizeof parameters), c->parameters) != 0)
            fail_msg("%s over %s: parameters are \"%s\", should be \"%s\"", c->layers, c->input, parameters,
                     c->parameters);
        tr_model_destroy(&model);
    }
}

/* Operations of an example's forward pass, or of a token's, counted by hand: a multiply-add is two of them.
   Layers that only move numbers have none. */
static void test_operations_are_counted(void **state)
{
    (void)state;
    static const struct {
        const char *class, *layers, *input;
        int64_t vocabulary, operations;
    } cases[] = {
        {"add", "[tanh: {name: a}, add: a]", "3x4x2", 0, 24},
        {"add", "[tanh: {name: a}, add: {from: [a, input, a]}]", "5", 0, 2 * 5},
        {"attention", "[attention: {heads: 2, width: 4}, last]", "tokens x 6", 0, 2 * (3 * 6 * 4 + 4 * 6)},
        {"average_pool", "[average_pool: {size: [2, 3], stride: 2}]", "7x6x3", 0, 3 * 2 * 3 * 2 * 3},
        {"batch_norm", "[batch_norm]", "5x4x3", 0, 8 * 60},
        {"bidirectional", "[bidirectional: 8, last]", "tokens x 3", 0, 2 * 2 * 4 * 8 * (3 + 8)},
        {"concat", "[tanh: {name: a}, concat: a]", "3x4x2", 0, 0},
        {"conv1d", "[conv1d: {filters: 5, kernel: 3}, last]", "tokens x 2", 0, 2 * 3 * 2 * 5},
        {"conv", "[conv: {filters: 32, kernel: 5}]", "28x28x1", 0, 2 * 5 * 5 * 24 * 24 * 32},
        {"conv", "[conv: {filters: 4, kernel: [3, 1], stride: [2, 3]}]", "9x10x2", 0, 2 * 3 * 2 * 4 * 4 * 4},
        {"conv_transpose", "[conv_transpose: {filters: 6, kernel: [3, 2], stride: 2}]", "4x5x3", 0,
         2 * 3 * 2 * 3 * 6 * 4 * 5},
        {"dense", "[dense: 10]", "784", 0, 2 * 784 * 10},
        {"dense", "[dense: 7, last]", "tokens x 5", 0, 2 * 5 * 7},
        {"dropout", "[dropout: 0.5, tanh]", "4x5x3", 0, 60},
        {"embedding", "[embedding: 6, last]", "tokens", 100, 0},
        {"flatten", "[flatten, tanh]", "4x5x3", 0, 0},
        {"gelu", "[gelu]", "4x5x3", 0, 60},
        {"global_average_pool", "[global_average_pool]", "7x6x3", 0, 7 * 6 * 3},
        {"group_norm", "[{group_norm: 3}]", "4x5x6", 0, 8 * 120},
        {"gru", "[gru: 8, last]", "tokens x 3", 0, 2 * 3 * 8 * (3 + 8)},
        {"last", "[last, tanh]", "tokens x 3", 0, 0},
        {"layer_norm", "[layer_norm]", "4x5x3", 0, 8 * 60},
        {"lstm", "[lstm: 8, last]", "tokens x 3", 0, 2 * 4 * 8 * (3 + 8)},
        {"max_pool", "[max_pool]", "7x6x3", 0, 3 * 3 * 3 * 2 * 2},
        {"position", "[position: 9, last]", "tokens x 3", 0, 3},
        {"relu", "[relu, last]", "tokens x 3", 0, 3},
        {"reshape", "[reshape: [2, 3, 2], tanh]", "12", 0, 0},
        {"rms_norm", "[rms_norm]", "4x5x3", 0, 4 * 60},
        {"softmax", "[softmax]", "4x5x3", 0, 4 * 60},
        {"unembedding", "[embedding: {width: 4, name: e}, unembedding: e]", "tokens", 7, 2 * 4 * 7},
        {"attention", "[attention: {heads: 4, kv_heads: 2, width: 8}, last]", "tokens x 6", 0,
         2 * (6 * 8 + 2 * 6 * 4 + 8 * 6)},
        {"conv1d", "[conv1d: {filters: 4, kernel: 3, groups: 2}, last]", "tokens x 6", 0, 2 * 3 * 3 * 4},
        /* three outputs for five tokens */
        {"conv1d", "[tokens, conv1d: {filters: 10, kernel: 3, stride: 2}, last]", "5x1x6", 0,
         2 * 3 * 6 * 10 * 3 / 5},
        {"conv", "[conv: {filters: 8, kernel: 3, groups: 4, padding: same}]", "9x10x4", 0,
         2 * 9 * 1 * 8 * 9 * 10},
        {"conv_transpose", "[conv_transpose: {filters: 6, kernel: 2, stride: 2, groups: 3}]", "4x5x9", 0,
         2 * 2 * 2 * 9 * 2 * 4 * 5},
        {"cross_attention",
         "[cross_attention: {from: [input, input], heads: 4, kv_heads: 2, width: 8}, last]", "tokens x 6", 0,
         2 * (6 * 8 + 2 * 6 * 4 + 8 * 6)},
        {"first", "[first, tanh]", "tokens x 3", 0, 0},
        {"global_average_pool", "[global_average_pool]", "tokens x 3", 0, 3},
        {"global_max_pool", "[global_max_pool]", "7x6x3", 0, 7 * 6 * 3},
        {"hard_swish", "[hard_swish]", "4x5x3", 0, 60},
        {"instance_norm", "[instance_norm]", "4x5x6", 0, 8 * 120},
        {"leaky_relu", "[leaky_relu: 0.2]", "5", 0, 5},
        {"multiply", "[global_average_pool, {multiply: input}]", "4x5x3", 0, 60},
        {"relu6", "[relu6]", "4x5x3", 0, 60},
        {"sigmoid", "[sigmoid]", "5", 0, 5},
        {"silu", "[silu, last]", "tokens x 3", 0, 3},
        {"slice", "[slice: {begin: 2, size: 3}]", "5", 0, 0},
        {"stochastic_depth", "[stochastic_depth: 0.5, tanh]", "4x5x3", 0, 60},
        {"tanh", "[tanh]", "5", 0, 5},
        {"tokens", "[tokens, last]", "4x5x3", 0, 0},
        {"upsample", "[upsample: [2, 3]]", "4x5x3", 0, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[256];
        snprintf(text, sizeof text, "layers: %s", cases[i].layers);
        struct tr_model *model = build(text, cases[i].input, cases[i].vocabulary);
        const struct tr_layer *layer = layer_of_class(model, cases[i].class);
        if (layer->flops != cases[i].operations)
            fail_msg("%s over %s: %lld operations, should be %lld", cases[i].layers, cases[i].input,
                     (long long)layer->flops, (long long)cases[i].operations);
        tr_model_destroy(&model);
    }
}

static void test_every_class_has_a_shape_case(void **state)
{
    (void)state;
    for (int c = 0; tr_layer_classes.entries[c]; c++) {
        const char *name = tr_layer_classes.entries[c]->name;
        size_t i = 0;
        while (i < SHAPE_CASES && strcmp(shape_cases[i].class, name) != 0) i++;
        if (i == SHAPE_CASES)
            fail_msg("layer \"%s\" has no row in shape_cases; add one to tests/nn/test_model.c", name);
    }
}

/* ---- matrices of hidden layers ---- */

static void test_hidden_matrices(void **state)
{
    (void)state;
    static const struct {
        const char *layers, *input;
        int64_t vocabulary;
        const char *found; /* name and sizes of each */
    } cases[] = {
        {"[dense: {units: 5, name: a}, batch_norm, dense: {units: 2, name: b}]", "3", 0, "a.weights 3x5;"},
        {"[conv: {filters: 4, kernel: 3, name: a}, flatten, dense: {units: 2, name: b}, softmax]", "6x6x2", 0,
         "a.weights 18x4;"},
        {"[embedding: {width: 4, name: e}, position: 8, gru: {units: 5, name: g}, dense: {units: 3, name: "
         "d}]",
         "tokens", 9, "g.weights 4x15;g.recurrent_weights 5x15;"},
        /* two outputs, and what only looks like a third one */
        {"[dense: {units: 5, name: trunk}, dense: {units: 2, name: a}, dense: {units: 4, from: trunk, name: "
         "b}, "
         "dense: {units: 3, name: c}, concat: {from: [a, c]}]",
         "3", 0, "trunk.weights 3x5;b.weights 5x4;"},
        {"[embedding: {width: 4, name: e}, dense: {units: 4, name: d}, unembedding: e]", "tokens", 7,
         "d.weights 4x4;"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[256], found[256] = "";
        snprintf(text, sizeof text, "layers: %s", cases[i].layers);
        struct tr_model *model = build(text, cases[i].input, cases[i].vocabulary);
        for (int k = 0; k < model->parameter_count; k++) {
            int64_t in, out;
            if (!tr_model_hidden_matrix(model, k, &in, &out)) continue;
            size_t used = strlen(found);
            snprintf(found + used, sizeof found - used, "%s %dx%d;", model->parameters[k].name, (int)in,
                     (int)out);
        }
        assert_string_equal(found, cases[i].found);
        tr_model_destroy(&model);
    }
}

/* A hundred sums of the two layers before each: from the first to the last lead more ways than can be walked.
 */
static void test_hidden_matrices_of_many_ways(void **state)
{
    (void)state;
    char text[8192];
    int64_t in, out;
    size_t used =
        (size_t)snprintf(text, sizeof text, "layers: [dense: {units: 3, name: a0}, relu: {name: a1}");
    for (int i = 2; i < 102; i++)
        used += (size_t)snprintf(text + used, sizeof text - used, ", add: {with: a%d, name: a%d}", i - 2, i);
    snprintf(text + used, sizeof text - used, "]");
    struct tr_model *model = build(text, "3", 0);
    assert_false(tr_model_hidden_matrix(model, 0, &in, &out));
    tr_model_destroy(&model);
}

/* ---- layers of others ---- */

/* A layer that asks for as many parameters and buffers as its options say. */
struct greedy_options {
    int32_t parameters, buffers;
};
static const struct tr_option greedy_table[] = {
    {"parameters", TR_OPTION_INT32, offsetof(struct greedy_options, parameters), "0", 0, 100, NULL,
     "how many"},
    {"buffers", TR_OPTION_INT32, offsetof(struct greedy_options, buffers), "0", 0, 100, NULL, "how many"},
};

static tr_status greedy_build(struct tr_layer *layer, struct tr_builder *builder)
{
    const struct greedy_options *options = layer->options;
    const struct tr_shape one = {1, {1}, false};
    const struct tr_initializer zeros = {.kind = TR_INIT_ZEROS};
    char name[16];
    layer->out = layer->in[0];
    for (int i = 0; i < options->parameters; i++) {
        snprintf(name, sizeof name, "p%d", i);
        tr_status status = tr_builder_parameter(builder, layer, name, TR_PARAMETER_WEIGHT, one, &zeros, 1, 1);
        if (status != TR_OK) return status;
    }
    for (int i = 0; i < options->buffers; i++)
        tr_layer_buffer(layer, (struct tr_buffer){TR_PER_ROW, 4, 0, false});
    return TR_OK;
}

static const struct tr_layer_class greedy = {.name = "greedy",
                                             .help = "takes much",
                                             TR_ENTRY_OPTIONS(greedy_table, struct greedy_options),
                                             .inputs = 1,
                                             .build = greedy_build};
static const struct tr_layer_class crowded = {
    .name = "crowded", .help = "takes many inputs", .inputs = TR_LAYER_INPUTS + 1, .build = greedy_build};
static const struct tr_entry *const strange_entries[] = {&greedy.entry, &crowded.entry, NULL};
static const struct tr_registry strange_layers = {"layer", "`greedy`", NULL, strange_entries};

static tr_status build_strange(const char *text, struct tr_model **model)
{
    tr_config *root;
    struct tr_model_input input = {{1, {3}, false}, 0};
    must(tr_config_parse(text, strlen(text), "m.yaml", &root));
    tr_status status = tr_model_build_of(&strange_layers, root, &input, model);
    tr_config_destroy(&root);
    return status;
}

/* Up to the limits a layer may ask; beyond them it is told, and nothing else is overwritten. */
static void test_limits_of_a_layer(void **state)
{
    (void)state;
    struct tr_model *model;
    char text[128];
    snprintf(text, sizeof text, "layers: [greedy: {parameters: %d, buffers: %d}]", TR_LAYER_PARAMETERS,
             TR_LAYER_BUFFERS);
    must(build_strange(text, &model));
    assert_int_equal(model->layers[0].parameter_count, TR_LAYER_PARAMETERS);
    assert_true(model->layers[0].parameter_count >= 5);
    for (int i = 0; i < TR_LAYER_PARAMETERS; i++) assert_int_equal(model->layers[0].parameter[i], i);
    assert_int_equal(model->layers[0].buffer_count, TR_LAYER_BUFFERS);
    tr_model_destroy(&model);

    snprintf(text, sizeof text, "layers: [greedy: {name: wide, parameters: %d}]", TR_LAYER_PARAMETERS + 1);
    assert_int_equal(build_strange(text, &model), TR_EINVAL);
    assert_non_null(strstr(tr_error_message(),
                           "layer \"wide\": needs more than 14 parameters (\"p14\" is one "
                           "too many); raise TR_LAYER_PARAMETERS in nn/layer.h"));

    snprintf(text, sizeof text, "layers: [greedy: {name: wide, buffers: %d}]", TR_LAYER_BUFFERS + 1);
    assert_int_equal(build_strange(text, &model), TR_EINVAL);
    assert_non_null(strstr(tr_error_message(), "layer \"wide\": needs 15 buffers, a layer has at most 14"));

    assert_int_equal(build_strange("layers: [crowded]", &model), TR_EINVAL);
    assert_non_null(strstr(tr_error_message(), "layers take 1 to 8 inputs, \"crowded\" wants 9"));
}

/* ---- names and connections ---- */

static void test_names(void **state)
{
    (void)state;
    struct tr_model *model = build(
        "layers: [dense: 4, relu, dense: {units: 4, name: middle}, relu: {name: r}, dense: 4, relu]", "3", 0);
    static const char *const names[] = {"dense1", "relu1", "middle", "r", "dense3", "relu3"};
    assert_int_equal(model->layer_count, 6);
    for (int i = 0; i < 6; i++) assert_string_equal(model->layers[i].name, names[i]);
    assert_string_equal(model->parameters[2].name, "middle.weights");
    tr_model_destroy(&model);
}

static void test_connections(void **state)
{
    (void)state;
    struct tr_model *model = build("layers:\n"
                                   "- dense: {units: 6, name: a}\n" /* 0 */
                                   "- flatten: {name: f}\n"         /* 1: alias of 0 */
                                   "- tanh\n"                       /* 2 */
                                   "- add: f\n"                     /* 3 */
                                   "- add: a\n"                     /* 4 */
                                   "- flatten\n",                   /* 5: alias of 4 */
                                   "2x3x1", 0);
    assert_int_equal(model->layers[0].input[0], -1);
    assert_int_equal(model->layers[3].input[0], 2);
    assert_int_equal(model->layers[3].input[1], 1);
    assert_int_equal(model->layers[4].input[1], 0);
    assert_int_equal(tr_model_source(model, 1), 0);
    assert_int_equal(tr_model_source(model, 5), 4);
    assert_int_equal(tr_model_source(model, -1), -1);
    assert_int_equal(tr_model_consumers(model, 0), 3); /* tanh and add by the alias, add by its name */
    assert_int_equal(tr_model_consumers(model, 2), 1);
    assert_int_equal(tr_model_consumers(model, 4), 0);
    assert_int_equal(tr_model_consumers(model, -1), 1);
    tr_model_destroy(&model);
}

/* A relu's gradient is left to a max pool only where nobody else takes the relu's output. */
static void test_fused_relu(void **state)
{
    (void)state;
    static const struct {
        const char *layers;
        bool fused;
    } cases[] = {
        {"[conv: {filters: 2, kernel: 1, activation: relu}, max_pool: 2]", true},
        {"[conv: {filters: 2, kernel: 1}, relu, max_pool: 2]", true},
        {"[conv: {filters: 2, kernel: 1, activation: leaky_relu}, max_pool: 2]", false},
        {"[conv: {filters: 2, kernel: 1, activation: relu}, average_pool: 2]", false},
        {"[conv: {filters: 2, kernel: 1, activation: relu}, dropout: 0.5, max_pool: 2]", false},
        {"[conv: {filters: 2, kernel: 1, activation: relu, name: a}, max_pool: {size: 2, stride: 1, padding: "
         "same}, "
         "add: a]",
         false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[256];
        snprintf(text, sizeof text, "layers: %s", cases[i].layers);
        struct tr_model *model = build(text, "4x4x1", 0);
        int left = 0, taken = 0;
        for (int k = 0; k < model->layer_count; k++) {
            left += model->layers[k].relu.left_to_consumer;
            taken += model->layers[k].relu.of_input;
        }
        if (left != cases[i].fused || taken != cases[i].fused)
            fail_msg("%s: relu left to %d, taken by %d consumers", cases[i].layers, left, taken);
        tr_model_destroy(&model);
    }
}

/* Which definition a convolution takes follows from its shape, unless the model file says so. */
static void test_algorithms(void **state)
{
    (void)state;
    static const struct {
        const char *conv, *input, *algorithm, *reason;
    } cases[] = {
        {"filters: 16, kernel: 3", "8x8x16", "winograd", "3x3 from 16 to 16 channels"},
        {"filters: 40, kernel: 3, padding: same", "6x6x20", "winograd", "3x3 from 20 to 40 channels"},
        {"filters: 16, kernel: 5", "12x12x17", "winograd", "5x5 from 17 to 16 channels"},
        {"filters: 16, kernel: 5", "11x12x16", "direct", "fewer than 8x8 outputs"},
        {"filters: 16, kernel: 5", "12x11x16", "direct", "fewer than 8x8 outputs"},
        {"filters: 16, kernel: 7, padding: same", "8x8x16", "direct", "kernel 7x7, not 3x3 or 5x5"},
        {"filters: 15, kernel: 3", "8x8x16", "direct", "fewer than 16 channels"},
        {"filters: 16, kernel: 3", "8x8x15", "direct", "fewer than 16 channels"},
        {"filters: 16, kernel: 3", "7x8x16", "direct", "fewer than 6x6 outputs"},
        {"filters: 16, kernel: 3", "8x7x16", "direct", "fewer than 6x6 outputs"},
        {"filters: 16, kernel: [3, 5]", "8x8x16", "direct", "kernel 3x5, not 3x3 or 5x5"},
        {"filters: 16, kernel: 3, stride: [2, 1]", "16x8x16", "direct", "stride 2x1"},
        {"filters: 16, kernel: 3, dilation: 2", "16x16x16", "direct", "dilation 2x2"},
        {"filters: 16, kernel: 3, algorithm: direct", "8x8x16", "direct", "as the model file says"},
        {"filters: 1, kernel: 3, algorithm: winograd", "4x5x1", "winograd", "as the model file says"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[256];
        snprintf(text, sizeof text, "layers: [conv: {%s}]", cases[i].conv);
        struct tr_model *model = build(text, cases[i].input, 0);
        assert_string_equal(model->layers[0].algorithm, cases[i].algorithm);
        assert_string_equal(model->layers[0].reason, cases[i].reason);
        tr_model_destroy(&model);
    }
    struct tr_model *model = build("layers: [dense: 3]", "4", 0);
    assert_null(model->layers[0].algorithm);
    tr_model_destroy(&model);
}

/* ---- parameters ---- */

#define GRAIN 16

static void test_arena(void **state)
{
    (void)state;
    struct tr_model *model = build(
        "layers: [conv: {filters: 3, kernel: 3}, batch_norm, dense: 17, dense: 16, dense: 5]", "6x5x2", 0);
    int64_t end = 0, total = 0;
    for (int i = 0; i < model->parameter_count; i++) {
        const struct tr_parameter *parameter = &model->parameters[i];
        assert_int_equal(parameter->offset % GRAIN, 0);
        assert_in_range(parameter->offset, end, end + GRAIN - 1);
        assert_int_equal(parameter->count, tr_shape_count(&parameter->shape));
        end = parameter->offset + parameter->count;
        /* What is not learned is no parameter that people count. */
        if (parameter->kind != TR_PARAMETER_STATISTIC) total += parameter->count;
    }
    assert_in_range(model->arena_floats, end, end + GRAIN - 1);
    assert_int_equal(model->arena_floats % GRAIN, 0);
    assert_int_equal(model->parameter_total, total);
    assert_int_equal(total, 3 * 3 * 2 * 3 + 3 + 2 * 3 + 36 * 17 + 17 + 17 * 16 + 16 + 16 * 5 + 5);
    tr_model_destroy(&model);
}

/* What an initializer works with: the numbers that one output sees, and the outputs that one number reaches.
 */
static void test_fans(void **state)
{
    static const struct {
        const char *layers, *input;
        int vocabulary, parameter;
        int64_t in, out;
    } cases[] = {
        {"[conv: {filters: 7, kernel: [3, 2]}]", "6x5x2", 0, 0, 3 * 2 * 2, 3 * 2 * 7},
        {"[conv: {filters: 12, kernel: 3, groups: 4}]", "9x10x8", 0, 0, 9 * 2, 9 * 3},
        {"[conv_transpose: {filters: 6, kernel: 2, stride: 2, groups: 3}]", "4x5x9", 0, 0, 4 * 3, 4 * 2},
        {"[conv1d: {filters: 4, kernel: 3, groups: 2}, last]", "tokens x 6", 0, 0, 3 * 3, 3 * 2},
        {"[dense: 11]", "4x4x7", 0, 0, 4 * 4 * 7, 11},
        {"[lstm: 8, last]", "tokens x 3", 0, 0, 3, 8},
        {"[lstm: 8, last]", "tokens x 3", 0, 1, 8, 8},
        {"[gru: 5, last]", "tokens x 3", 0, 0, 3, 5},
        {"[embedding: 4, last]", "tokens", 7, 0, 7, 4},
        {"[position: 9, last]", "tokens x 3", 0, 0, 9, 3},
        {"[attention: {heads: 4, kv_heads: 2, width: 8}, last]", "tokens x 6", 0, 0, 6, 8},
        {"[attention: {heads: 4, kv_heads: 2, width: 8}, last]", "tokens x 6", 0, 1, 8, 6},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[160];
        snprintf(text, sizeof text, "layers: %s", cases[i].layers);
        struct tr_model *model = build(text, cases[i].input, cases[i].vocabulary);
        const struct tr_parameter *parameter = &model->parameters[cases[i].parameter];
        if (parameter->fan_in != cases[i].in || parameter->fan_out != cases[i].out)
            fail_msg("%s: %lld in, %lld out", cases[i].layers, (long long)parameter->fan_in,
                     (long long)parameter->fan_out);
        assert_int_equal(parameter->kind, TR_PARAMETER_WEIGHT);
        tr_model_destroy(&model);
    }
    struct tr_model *model = build("layers: [dense: 11]", "5", 0);
    assert_int_equal(model->parameters[1].kind, TR_PARAMETER_BIAS);
    tr_model_destroy(&model);
}

#define WITH_MANY_INITIALIZERS                                                                               \
    "layers: [conv: {filters: 3, kernel: 3, weights: he_normal, bias: 0.1}, batch_norm, "                    \
    "dense: {units: 17, weights: {truncated_normal: 0.1}, bias: {uniform: 0.3}}, dense: {units: 5, "         \
    "weights: {normal: 1}}]"

static void test_initialization_does_not_depend_on_shares(void **state)
{
    (void)state;
    struct tr_model *model = build(WITH_MANY_INITIALIZERS, "6x5x2", 0);
    size_t floats = (size_t)model->arena_floats;
    float *whole = tr_alloc(floats, sizeof *whole), *parts = tr_alloc(floats, sizeof *parts);
    assert_true(whole && parts);
    memset(whole, 0xff, floats * sizeof *whole);
    tr_model_initialize(model, 5, 0, 1, whole);
    static const int shares[] = {2, 3, 7, 16, 1000};
    for (size_t i = 0; i < sizeof shares / sizeof shares[0]; i++) {
        memset(parts, 0xff, floats * sizeof *parts);
        for (int share = shares[i] - 1; share >= 0; share--)
            tr_model_initialize(model, 5, share, shares[i], parts);
        for (size_t k = 0; k < floats; k++)
            if (memcmp(&whole[k], &parts[k], sizeof *whole) != 0)
                fail_msg("float %zu is %a by one and %a by %d shares", k, (double)whole[k], (double)parts[k],
                         shares[i]);
    }
    const float zero = 0;
    int64_t end = 0;
    for (int i = 0; i <= model->parameter_count; i++) {
        int64_t next = i < model->parameter_count ? model->parameters[i].offset : model->arena_floats;
        for (; end < next; end++) assert_memory_equal(&whole[end], &zero, sizeof zero); /* gaps */
        if (i < model->parameter_count) end += model->parameters[i].count;
    }
    tr_free(whole);
    tr_free(parts);
    tr_model_destroy(&model);
}

/* Ranges as strategies cut arenas: within parameters, over several of them, over gaps, of nothing. */
static void test_initialization_of_a_range(void **state)
{
    (void)state;
    struct tr_model *model = build(WITH_MANY_INITIALIZERS, "6x5x2", 0);
    const int64_t floats = model->arena_floats;
    float *whole = tr_alloc((size_t)floats, sizeof *whole), *part = tr_alloc((size_t)floats, sizeof *part);
    assert_true(whole && part);
    tr_model_initialize(model, 5, 0, 1, whole);
    for (int64_t begin = 0; begin <= floats; begin += TR_MODEL_GRAIN)
        for (int64_t end = begin; end <= floats; end += 5 * TR_MODEL_GRAIN) {
            memset(part, 0xff, (size_t)floats * sizeof *part);
            for (int share = 0; share < 3; share++)
                tr_model_initialize_range(model, 5, begin, end, share, 3, part);
            for (int64_t k = 0; k < floats; k++) {
                uint32_t bits, untouched = UINT32_MAX;
                memcpy(&bits, &part[k], sizeof bits);
                if (k < begin || k >= end ? bits != untouched
                                          : memcmp(&whole[k], &part[k], sizeof *part) != 0)
                    fail_msg("float %d of %d to %d is %a", (int)k, (int)begin, (int)end, (double)part[k]);
            }
        }
    tr_free(whole);
    tr_free(part);
    tr_model_destroy(&model);
}

static void test_initialization_depends_on_seed_and_parameter(void **state)
{
    (void)state;
    struct tr_model *model =
        build("layers: [dense: {units: 16, weights: {normal: 1}}, dense: {units: 16, weights: "
              "{normal: 1}}]",
              "16", 0);
    float values[2][2 * (256 + 16)];
    assert_int_equal(model->arena_floats, 2 * (256 + 16));
    tr_model_initialize(model, 1, 0, 1, values[0]);
    tr_model_initialize(model, 2, 0, 1, values[1]);
    int same_for_seeds = 0, same_for_layers = 0;
    for (int i = 0; i < 256; i++) {
        same_for_seeds += values[0][i] == values[1][i];
        same_for_layers += values[0][i] == values[0][model->parameters[2].offset + i];
    }
    assert_in_range(same_for_seeds, 0, 1);
    assert_in_range(same_for_layers, 0, 1);
    tr_model_destroy(&model);
}

/* ---- hash ---- */

static void hash_parameter(EVP_MD_CTX *context, const char *line, const float *values, size_t count)
{
    assert_int_equal(EVP_DigestUpdate(context, line, strlen(line)), 1);
    for (size_t i = 0; i < count; i++) {
        uint32_t bits;
        memcpy(&bits, &values[i], sizeof bits);
        unsigned char bytes[4] = {(unsigned char)bits, (unsigned char)(bits >> 8),
                                  (unsigned char)(bits >> 16), (unsigned char)(bits >> 24)};
        assert_int_equal(EVP_DigestUpdate(context, bytes, sizeof bytes), 1);
    }
}

/* The formula of model.h, spelled out with libcrypto alone. */
static void test_hash(void **state)
{
    (void)state;
    struct tr_model *model =
        build("layers: [conv: {filters: 3, kernel: 2, name: eye}, dense: 5]", "4x3x2", 0);
    float *values = tr_alloc((size_t)model->arena_floats, sizeof *values);
    assert_non_null(values);
    tr_model_initialize(model, 9, 0, 1, values);
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    assert_true(context && EVP_DigestInit_ex(context, EVP_sha256(), NULL) == 1);
    hash_parameter(context, "eye.weights 2x2x2x3\n", values + model->parameters[0].offset, 24);
    hash_parameter(context, "eye.bias 3\n", values + model->parameters[1].offset, 3);
    hash_parameter(context, "dense1.weights 18x5\n", values + model->parameters[2].offset, 90);
    hash_parameter(context, "dense1.bias 5\n", values + model->parameters[3].offset, 5);
    unsigned char digest[32];
    char expected[65], got[TR_SHA256_TEXT];
    assert_int_equal(EVP_DigestFinal_ex(context, digest, NULL), 1);
    for (int i = 0; i < 32; i++) snprintf(expected + 2 * i, 3, "%02x", digest[i]);
    must(tr_model_hash(model, values, got));
    assert_string_equal(got, expected);
    /* One bit anywhere changes it, save in the gaps, which are no parameters. */
    uint32_t *bits = (uint32_t *)(void *)(values + model->parameters[3].offset + 4);
    *bits ^= 1;
    must(tr_model_hash(model, values, got));
    assert_string_not_equal(got, expected);
    *bits ^= 1;
    values[model->parameters[1].offset + 3] = 1;
    must(tr_model_hash(model, values, got));
    assert_string_equal(got, expected);
    EVP_MD_CTX_free(context);
    tr_free(values);
    tr_model_destroy(&model);
}

/* ---- mistakes ---- */

struct mistake {
    const char *text, *input;
    int64_t vocabulary;
    const char *says[4]; /* parts of the message */
};

static const struct mistake mistakes[] = {
    {"loss: softmax_cross_entropy", "4", 0, {"test.yaml", "`layers:`", "at least one layer"}},
    {"layers: []", "4", 0, {"test.yaml:1", "at least one layer"}},
    {"layers: dense", "4", 0, {"test.yaml:1", "layers"}},
    {"layers:\n- dense: 4\n- dens: 3\n", "4", 0, {"test.yaml:3", "layers[1]", "\"dens\"", "\"dense\""}},
    {"layers:\n- quux: 3\n",
     "4",
     0,
     {"test.yaml:2", "\"quux\"", "is none of add, attention", "write `relu` or"}},
    {"layers:\n- [1, 2]\n", "4", 0, {"test.yaml:2", "stands where a choice of layer is expected", "a list"}},
    {"layers:\n- dense: 4\n  relu:\n", "4", 0, {"test.yaml:2", "stands where a choice of layer is expected"}},
    {"layers:\n- dense: {units: 4, activatoin: relu}\n", "4", 0, {"test.yaml:2", "activatoin", "activation"}},
    {"layers:\n- dense: {units: 4, activation: rleu}\n", "4", 0, {"test.yaml:2", "rleu", "relu"}},
    {"layers:\n- dense\n", "4", 0, {"test.yaml:2", "dense", "units"}},
    {"layers:\n- dense: many\n", "4", 0, {"test.yaml:2", "dense", "\"many\" is not an integer"}},
    {"layers:\n- dense: 0\n", "4", 0, {"test.yaml:2", "dense", "0"}},
    {"layers:\n- dense: 4.5\n", "4", 0, {"test.yaml:2", "dense", "4.5"}},
    {"layers:\n- dropout: 1.5\n- dense: 2\n", "4", 0, {"test.yaml:2", "dropout", "1.5"}},
    {"layers:\n- dense: {units: 4, weights: {normall: 1}}\n", "4", 0, {"test.yaml:2", "normall", "normal"}},
    {"layers:\n- dense: {units: 4, name: a.b}\n", "4", 0, {"test.yaml:2", "\"a.b\"", "none of them"}},
    {"layers:\n- dense: {units: 4, name: a}\n- dense: {units: 4, name: a}\n",
     "4",
     0,
     {"test.yaml:3", "two layers", "\"a\""}},
    {"layers:\n- dense: {units: 4, name: dense2}\n- dense: 4\n",
     "4",
     0,
     {"test.yaml:3", "two layers", "\"dense2\""}},
    {"layers:\n- dense: 4\n- add: nobody\n", "4", 0, {"test.yaml:3", "\"nobody\"", "earlier layer"}},
    {"layers:\n- dense: 4\n- add: {with: late}\n- dense: {units: 4, name: late}\n",
     "4",
     0,
     {"test.yaml:3", "\"late\""}},
    {"layers:\n- dense: 4\n- add\n", "4", 0, {"test.yaml:3", "add takes 2 inputs or more and has 1", "with"}},
    {"layers:\n- dense: {units: 4, name: left}\n- tanh\n- add: lefd\n",
     "4",
     0,
     {"test.yaml:4", "no layer \"lefd\"", "Did you mean \"left\"?"}},
    {"layers:\n- dense: {units: 4, name: a}\n- tanh\n- add: {with: a, from: [a, a]}\n",
     "4",
     0,
     {"test.yaml:4", "either from", "or with"}},
    {"layers:\n- dense: {units: 4, name: a}\n- tanh: {from: [a, input]}\n",
     "4",
     0,
     {"test.yaml:3", "tanh takes one input, from names 2", "add or concat"}},
    {"layers:\n- dense: {units: 4, name: a}\n- tanh\n- add: {from: [a, a, a, a, a, a, a, a, a]}\n",
     "4",
     0,
     {"test.yaml:4", "at most 8 inputs"}},
    {"layers:\n- dense: {units: 4, name: idle}\n- dense: {units: 4, from: input}\n",
     "4",
     0,
     {"test.yaml:2", "layer \"idle\"", "no later layer takes its output"}},
    {"layers:\n- conv: {filters: 2, kernel: 1, name: image}\n- flatten\n- concat: image\n",
     "4x4x2",
     0,
     {"test.yaml:4", "cannot join shapes 32 and 4x4x2 (of \"image\")", "flatten"}},
    {"layers:\n- lstm: 4\n- last\n",
     "tokens",
     9,
     {"test.yaml:2",
      "layer \"lstm1\": cannot take the tokens of \"input\"; give them vectors by an embedding first"}},
    {"layers:\n- relu: {name: a}\n- embedding: 4\n- last\n",
     "tokens",
     9,
     {"layer \"a\": cannot take the tokens of \"input\""}},
    {"layers:\n- last\n- dense: 2\n", "tokens", 9, {"layer \"last1\": cannot take the tokens"}},
    {"layers:\n- embedding: {width: 4, name: e}\n- concat: {from: [e, input]}\n- last\n",
     "tokens",
     9,
     {"test.yaml:3", "layer \"concat1\": cannot take the tokens of \"input\""}},
    {"layers:\n- embedding: {width: 4, name: e}\n- cross_attention: {from: [e, input], heads: 2}\n- last\n",
     "tokens",
     9,
     {"layer \"cross_attention1\": cannot take the tokens of \"input\""}},
    {"layers:\n- tanh: {name: a}\n- conv: {filters: 2, kernel: 1}\n- concat: a\n- flatten\n- dense: 2\n",
     "1024x1024x1048574",
     0,
     {"test.yaml:4", "layer \"concat1\"", "output", "2^40"}},
    {"layers:\n- embedding: 3\n- flatten\n- last\n",
     "tokens",
     9,
     {"test.yaml:3", "layer \"flatten1\"", "tokens x 3", "leaves as it is"}},
    {"layers:\n- slice: {begin: 3, size: 2}\n", "4", 0, {"test.yaml:2", "numbers 3 to 4", "has 4"}},
    {"layers:\n- slice: {begin: 0, size: 2}\n", "4x4x2", 0, {"test.yaml:2", "wants vectors", "4x4x2"}},
    {"layers:\n- upsample: 2\n- flatten\n", "9", 0, {"test.yaml:2", "needs images", "9"}},
    {"layers:\n- upsample: 1\n- flatten\n", "3x3x1", 0, {"test.yaml:2", "repeats nothing"}},
    {"layers:\n- conv_transpose: {filters: 1, kernel: 2}\n", "9", 0, {"test.yaml:2", "needs images", "9"}},
    {"layers:\n- conv_transpose: {filters: 1, kernel: 3, pad: 2}\n- flatten\n",
     "2x2x1",
     0,
     {"test.yaml:2", "size below 1"}},
    {"layers:\n- reshape: [2, 2, 2]\n- tanh\n", "9", 0, {"test.yaml:2", "its input is 9", "2x2x2"}},
    {"layers:\n- reshape: [3, 3]\n- tanh\n",
     "9",
     0,
     {"test.yaml:2", "2 sizes", "height, width and channels"}},
    {"layers:\n- global_max_pool\n- dense: 2\n",
     "12",
     0,
     {"test.yaml:2", "needs an image or a sequence", "12"}},
    {"layers:\n- dense: {units: 4, name: a}\n- dense: 5\n- add: a\n",
     "4",
     0,
     {"test.yaml:4", "layer \"add1\"", "shapes 5 and 4", "\"a\""}},
    {"layers:\n- conv: {filters: 2, kernel: 3}\n- conv: {filters: 2, kernel: 5, name: big}\n",
     "6x6x1",
     0,
     {"test.yaml:3", "layer \"big\"", "height 5", "height of 4"}},
    {"layers:\n- conv: {filters: 2, kernel: [1, 9]}\n",
     "6x6x1",
     0,
     {"layer \"conv1\"", "width 9", "width of 6"}},
    {"layers:\n- conv: {filters: 2, kernel: 3, dilation: 3}\n",
     "6x6x1",
     0,
     {"layer \"conv1\"", "height 7", "of 6"}},
    {"layers:\n- conv: {filters: 2, kernel: 2, pad: 2}\n",
     "6x6x1",
     0,
     {"layer \"conv1\"", "pad 2", "height of 2"}},
    {"layers:\n- conv: {filters: 2, kernel: 4, algorithm: winograd}\n",
     "6x6x1",
     0,
     {"test.yaml:2:3: ", "layer \"conv1\": algorithm: winograd", "kernel 4x4",
      "write algorithm: auto or direct"}},
    {"layers:\n- conv: {filters: 2, kernel: 3, algorithm: winograd}\n",
     "6x3x1",
     0,
     {"layer \"conv1\"", "at least 2x2 outputs", "4x1 outputs"}},
    {"layers:\n- dense: 9\n- conv: {filters: 2, kernel: 3}\n",
     "6x6x1",
     0,
     {"test.yaml:3", "layer \"conv1\"", "needs images", "its input is 9"}},
    {"layers:\n- max_pool: 2\n", "16", 0, {"layer \"max_pool1\"", "needs images", "16"}},
    {"layers:\n- max_pool: 3\n", "2x2x1", 0, {"layer \"max_pool1\"", "height 3", "height of 2"}},
    {"layers:\n- embedding: 8\n- last\n", "tokens", 0, {"layer \"embedding1\"", "size of the vocabulary"}},
    {"layers:\n- embedding: {width: 8, vocabulary: 5}\n- last\n",
     "tokens",
     9,
     {"layer \"embedding1\"", "vocabulary is 5", "9 words"}},
    {"layers:\n- embedding: 8\n", "28x28x1", 0, {"layer \"embedding1\"", "wants tokens", "28x28x1"}},
    {"layers:\n- embedding: 8\n- embedding: 8\n",
     "tokens",
     9,
     {"layer \"embedding2\"", "wants tokens", "tokens x 8"}},
    {"layers:\n- lstm: 8\n", "12", 0, {"layer \"lstm1\"", "needs a sequence", "12"}},
    {"layers:\n- attention: 4\n", "12", 0, {"layer \"attention1\"", "needs a sequence", "12"}},
    {"layers:\n- dense: {units: 4, name: a}\n- dense: {units: 4, share: b}\n",
     "5",
     0,
     {"layer \"dense2\"", "no layer \"b\""}},
    {"layers:\n- dense: {units: 4, name: a}\n- dense: {units: 4, share: a, name: b}\n",
     "5",
     0,
     {"layer \"b\"", "\"weights\" are 4x4", "5x4"}},
    {"layers:\n- dense: {units: 5, name: a}\n- dense: {units: 5, use_bias: false, share: a, name: b}\n",
     "5",
     0,
     {"layer \"b\"", "has 1 parameters", "\"a\" has 2"}},
    {"layers:\n- dense: {units: 5, use_bias: false, name: a}\n- dense: {units: 5, share: a, name: b}\n",
     "5",
     0,
     {"layer \"b\"", "\"bias\" that \"a\" lacks"}},
    {"layers:\n- dense: {units: 5, name: a}\n- layer_norm: {share: a}\n",
     "5",
     0,
     {"layer \"layer_norm1\"", "kind dense and not layer_norm"}},
    {"layers:\n- relu: {name: a}\n- relu: {share: a}\n- dense: 2\n", "5", 0, {"layer \"relu2\"", "has none"}},
    {"layers:\n- batch_norm: {name: a}\n- batch_norm: {share: a}\n- dense: 2\n",
     "5",
     0,
     {"layer \"batch_norm2\"", "running statistics"}},
    {"layers:\n- bidirectional: {units: 2, name: a}\n- bidirectional: {units: 2, share: a}\n- last\n",
     "tokens x 4",
     0,
     {"layer \"bidirectional2\"", "cannot share"}},
    {"layers:\n- dense: {units: 5, name: a}\n- dense: {units: 5, share: a, frozen: true}\n",
     "5",
     0,
     {"layer \"dense2\"", "have no effect", "\"a\""}},
    {"layers:\n- last: {name: end}\n- cross_attention: {from: [input, end], heads: 2}\n",
     "tokens x 12",
     0,
     {"layer \"cross_attention1\"", "needs sequences", "\"end\" gives 12"}},
    {"layers:\n- cross_attention: {from: [input, input], heads: 5}\n",
     "tokens x 12",
     0,
     {"layer \"cross_attention1\"", "12", "5 heads"}},
    {"layers:\n- cross_attention: {from: [input, input], heads: 4, kv_heads: 3}\n",
     "tokens x 12",
     0,
     {"layer \"cross_attention1\"", "share 3 heads"}},
    {"layers:\n- cross_attention: {from: [input, input, input], heads: 2}\n",
     "tokens x 12",
     0,
     {"layer \"cross_attention1\"", "takes two inputs"}},
    {"layers:\n- conv1d: {filters: 4, kernel: 3, stride: 2}\n",
     "tokens x 12",
     0,
     {"layer \"conv1d1\"", "stride of 2", "leave out the stride"}},
    {"layers:\n- tokens: {name: all}\n- conv1d: {filters: 3, kernel: 3, stride: 2}\n- add: all\n",
     "5x1x3",
     0,
     {"layer \"add1\"", "3 tokens from \"conv1d1\"", "5 from \"all\""}},
    {"layers:\n- attention: 5\n", "tokens x 12", 0, {"layer \"attention1\"", "12", "5 heads", "multiple"}},
    {"layers:\n- attention: {heads: 4, kv_heads: 3}\n",
     "tokens x 12",
     0,
     {"layer \"attention1\"", "4 heads", "3 heads", "divisor"}},
    {"layers:\n- attention: {heads: 4, rotary_style: pairs}\n",
     "tokens x 8",
     0,
     {"layer \"attention1\"", "rotary_style", "rotary: 10000"}},
    {"layers:\n- attention: {heads: 4, rotary_factor: 2}\n",
     "tokens x 8",
     0,
     {"layer \"attention1\"", "rotary_factor", "rotary: 10000"}},
    {"layers:\n- attention: {heads: 4, rotary: 100, rotary_original: 64, rotary_high: 1}\n",
     "tokens x 8",
     0,
     {"layer \"attention1\"", "rotary_low", "rotary_high", "greater"}},
    {"layers:\n- attention: {heads: 4, rotary: 100, rotary_style: neighbours}\n",
     "tokens x 8",
     0,
     {"rotary_style", "neighbours", "halves"}},
    {"layers:\n- attention: {heads: 4, rotary: 100}\n",
     "tokens x 12",
     0,
     {"layer \"attention1\"", "pairs", "3 numbers"}},
    {"layers:\n- position: 4\n", "12", 0, {"layer \"position1\"", "needs a sequence", "12"}},
    {"layers:\n- last\n", "12", 0, {"layer \"last1\"", "needs a sequence", "12"}},
    {"layers:\n- dense: {units: 4, name: a}\n- multiply: input\n",
     "4x4x2",
     0,
     {"test.yaml:3", "layer \"multiply1\"", "shapes 4 and 4x4x2 (of \"input\")", "each of its channels"}},
    {"layers:\n- multiply: [input, input]\n",
     "6",
     0,
     {"layer \"multiply1\"", "two outputs, not 3", "after another"}},
    {"layers:\n- embedding: {width: 8, name: words}\n- last\n- multiply: words\n",
     "tokens",
     9,
     {"layer \"multiply1\"", "shapes 8 and tokens x 8"}},
    {"layers:\n- conv: {filters: 4, kernel: 3, groups: 3}\n",
     "5x4x6",
     0,
     {"layer \"conv1\"", "6 channels and 4 filters", "3 groups", "divisor of both"}},
    {"layers:\n- conv: {filters: 6, kernel: 3, groups: 3, algorithm: winograd}\n",
     "5x4x6",
     0,
     {"layer \"conv1\"", "1 group, not 3", "auto or direct"}},
    {"layers:\n- conv1d: {filters: 4, kernel: 3, groups: 4}\n",
     "tokens x 6",
     0,
     {"layer \"conv1d1\"", "6 channels and 4 filters", "4 groups"}},
    {"layers:\n- conv_transpose: {filters: 4, kernel: 3, groups: 4}\n",
     "5x4x6",
     0,
     {"layer \"conv_transpose1\"", "6 channels and 4 filters", "4 groups"}},
    {"layers:\n- instance_norm\n", "12", 0, {"layer \"instance_norm1\"", "needs images", "12", "layer_norm"}},
    {"layers:\n- max_pool: 4\n- instance_norm\n",
     "4x4x6",
     0,
     {"layer \"instance_norm1\"", "0 of every number", "1x1x6"}},
    {"layers:\n- stochastic_depth: 1\n", "4x4x6", 0, {"stochastic_depth", "0.9999"}},
    {"layers:\n- group_norm: 4\n",
     "5x4x6",
     0,
     {"layer \"group_norm1\"", "6 channels", "4 groups", "divisor"}},
    {"layers:\n- embedding: 8\n- batch_norm\n",
     "tokens",
     9,
     {"layer \"batch_norm1\"", "tokens x 8", "layer_norm"}},
    {"layers:\n- embedding: 8\n- lstm: 4\nloss: mean_squared_error\n",
     "tokens",
     9,
     {"output is a sequence", "tokens x 4", "mean_squared_error", "last"}},
    {"layers:\n- embedding: 8\n- lstm: 4\nloss: [{kind: softmax_cross_entropy, outputs: 4}]\n",
     "tokens",
     9,
     {"output is a sequence", "tokens x 4", "heads", "last"}},
    {"layers:\n- embedding: 8\n- lstm: 2\nloss: {class_weights: [1, 2, 3]}\n",
     "tokens",
     9,
     {"class_weights has 3 numbers", "2 outputs"}},
    {"layers:\n- embedding: 8\n- unembedding: words\n",
     "tokens",
     9,
     {"test.yaml:3", "no layer \"words\"", "embedding"}},
    {"layers:\n- embedding: 8\n- dense: {units: 8, name: d}\n- unembedding: d\n",
     "tokens",
     9,
     {"layer \"d\" is of kind dense", "embedding"}},
    {"layers:\n- embedding: {width: 8, name: e}\n- dense: 4\n- unembedding: e\n",
     "tokens",
     9,
     {"layer \"unembedding1\"", "4 numbers", "have 8"}},
    {"layers:\n- embedding: {width: 9, name: e}\n- unembedding: e\n- unembedding: e\n",
     "tokens",
     9,
     {"layer \"unembedding2\"", "another layer shares"}},
    {"layers:\n- dense: 1\n", "4", 0, {"softmax_cross_entropy", "at least 2 outputs", "1"}},
    {"layers: [dense: 2]\nloss: softmax_crossentropy\n",
     "4",
     0,
     {"test.yaml:2", "softmax_crossentropy", "softmax_cross_entropy"}},
    {"layers: [dense: 2]\nloss: {kind: mean_squared_error, label_smoothing: 0.1}\n",
     "4",
     0,
     {"test.yaml:2", "label_smoothing", "mean_squared_error has no label_smoothing"}},
    {"layers: [dense: 4]\nloss: [{kind: huber, outputs: 2}, {outputs: 3}]\n",
     "4",
     0,
     {"test.yaml:1", "layer \"dense1\"", "losses are of 5 outputs in all", "the network has 4"}},
    {"layers: [dense: 4]\nloss: [{kind: huber, outputs: 3}, {outputs: 1}]\n",
     "4",
     0,
     {"test.yaml:1", "softmax_cross_entropy needs at least 2 outputs"}},
    {"layers: [dense: 2]\nloss: [{kind: huber}]\n", "4", 0, {"test.yaml:2", "outputs", "is missing"}},
    {"layers: [dense: 2]\nloss: heads\n", "4", 0, {"test.yaml:2", "heads are written as a list"}},
    {"layers: [dense: 2]\nloss: []\n", "4", 0, {"test.yaml:2", "0 losses; 1 to 8"}},
    {"layers: [dense: 2]\nloss: {kind: huber, delta: 0}\n", "4", 0, {"test.yaml:2", "delta", "0"}},
    {"layers: [dense: 2]\nloss: {kind: mean_squared_error, delta: 2}\n",
     "4",
     0,
     {"test.yaml:2", "delta", "huber only"}},
    {"layers: [dense: 3]\nloss: {class_weights: [1, 2]}\n",
     "4",
     0,
     {"test.yaml:1", "layer \"dense1\"", "class_weights has 2 numbers", "3 outputs"}},
    {"layers: [dense: 2]\nloss: {kind: huber, class_weights: [1, 2]}\n",
     "4",
     0,
     {"test.yaml:2", "class_weights", "softmax_cross_entropy, binary_cross_entropy, focal only"}},
    {"layers: [dense: 2]\nloss: {label_smoothing: 1}\n", "4", 0, {"test.yaml:2", "label_smoothing", "1"}},
    {"layers: [flatten]", "4", 0, {"test.yaml:1", "compute nothing"}},
    {"layers:\n- dense: 4\n- relu: {frozen: true}\n",
     "4",
     0,
     {"test.yaml:3",
      "layer \"relu1\": has no parameters, so `frozen`, `rate_factor` and `decay_factor` have no effect; "
      "leave them out"}},
    {"layers:\n- dense: 4\n- relu: {rate_factor: 2}\n", "4", 0, {"layer \"relu1\": has no parameters"}},
    {"layers:\n- dense: 4\n- relu: {decay_factor: 2}\n", "4", 0, {"layer \"relu1\": has no parameters"}},
    {"layers:\n- dense: {units: 4, name: a}\n- dense: {units: 4, share: a, rate_factor: 2}\n",
     "4",
     0,
     {"layer \"dense2\": shares its parameters, so `frozen`"}},
    {"layers:\n- embedding: {width: 4, name: e}\n- unembedding: {embedding: e, name: u}\n"
     "- embedding: {width: 4, share: e, from: input}\n- last\n",
     "tokens",
     9,
     {"layer \"embedding2\": \"e\" shares its weights with an unembedding already"}},
    {"layers: [conv: {filters: 1, kernel: 1}]\nloss: {per: pixel}\n",
     "4x4x1",
     0,
     {"layer \"conv1\": softmax_cross_entropy needs at least 2 outputs for each pixel, the network has "
      "4x4x1"}},
    {"layers: [conv: {filters: 2, kernel: 1}]\nloss: {per: pixel, class_weights: [1, 2, 3]}\n",
     "4x4x1",
     0,
     {"class_weights has 3 numbers, the network 2 outputs for a pixel; give one for each"}},
    {"layers: [conv: {filters: 2, kernel: 2}]\nloss: {per: pixel}\n",
     "4x4x1",
     0,
     {"its output is 3x3x2, and the network's input 4x4x1: a loss per pixel wants scores for each pixel of "
      "the input"}},
    {"layers: [conv: {filters: 2, kernel: [1, 2]}]\nloss: {per: pixel}\n",
     "4x4x1",
     0,
     {"its output is 4x3x2"}},
    {"layers: [dense: 2]\nloss: {per: pixel}\n",
     "4x4x1",
     0,
     {"a loss per pixel compares height x width x classes, the network has 2; end it with a conv"}},
    {"layers: [reshape: [2, 2, 2]]\nloss: {per: pixel}\n", "8", 0, {"compute nothing"}},
    {"layers: [dense: 8, reshape: [2, 2, 2]]\nloss: {per: pixel}\n",
     "8",
     0,
     {"a loss per pixel is of networks that take an image, this one takes 8"}},
    {"layers: [conv: {filters: 2, kernel: 1}]\nloss: {per: pixel}\n",
     "4097x4096x1",
     0,
     {"a loss per pixel is of at most 2^24 pixels, the network's output is 4097x4096x2"}},
    {"layers:\n- dense: 200000000\n- dense: 200000000\n",
     "4",
     0,
     {"test.yaml:3", "layer \"dense2\"", "2^40"}},
};

static void test_mistakes(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof mistakes / sizeof mistakes[0]; i++) {
        const struct mistake *mistake = &mistakes[i];
        int64_t live = tr_alloc_live();
        struct tr_model *model = NULL;
        if (network_build(mistake->text, mistake->input, mistake->vocabulary, &model) != TR_EINVAL)
            fail_msg("taken for a model:\n%s", mistake->text);
        assert_null(model);
        for (size_t k = 0; k < 4 && mistake->says[k]; k++)
            if (!strstr(tr_error_message(), mistake->says[k]))
                fail_msg("the message \"%s\" does not say \"%s\"; it is about\n%s", tr_error_message(),
                         mistake->says[k], mistake->text);
        assert_int_equal(tr_alloc_live(), live);
    }
}

/* Names of up to TR_NAME_SIZE - 1 bytes, without points, slashes and blanks. */
static void test_names_have_limits(void **state)
{
    static const char *const bad[] = {"a.b", "a/b", "a b", "a\\tb", "a\\nb", "a\\\"b"};
    (void)state;
    for (int length = TR_NAME_SIZE - 1; length <= TR_NAME_SIZE; length++) {
        char text[256], name[TR_NAME_SIZE + 1];
        struct tr_model *model = NULL;
        memset(name, 'n', sizeof name);
        name[length] = 0;
        snprintf(text, sizeof text, "layers: [dense: {units: 2, name: %s}]", name);
        const tr_status status = network_build(text, "4", 0, &model);
        assert_int_equal(status, length < TR_NAME_SIZE ? TR_OK : TR_EINVAL);
        if (status == TR_OK) assert_string_equal(model->layers[0].name, name);
        if (status != TR_OK) assert_non_null(strstr(tr_error_message(), "must have fewer than "));
        tr_model_destroy(&model);
        /* Both directions have names, longer by "backward" and a point. */
        name[length - 9] = 0;
        snprintf(text, sizeof text, "layers: [bidirectional: {units: 2, name: %s}, last]", name);
        const tr_status longer = network_build(text, "tokens x 3", 0, &model);
        assert_int_equal(longer, length < TR_NAME_SIZE ? TR_OK : TR_EINVAL);
        if (longer != TR_OK)
            assert_non_null(
                strstr(tr_error_message(), "has a name too long for its directions; use at most "));
        tr_model_destroy(&model);
    }
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        char text[256];
        struct tr_model *model = NULL;
        snprintf(text, sizeof text, "layers: [dense: {units: 2, name: \"%s\"}]", bad[i]);
        assert_int_equal(network_build(text, "4", 0, &model), TR_EINVAL);
        assert_non_null(strstr(tr_error_message(), "none of them . / or blank"));
    }
}

static void test_too_many_layers(void **state)
{
    (void)state;
    struct tr_text text = TR_TEXT_INIT;
    struct tr_model *model;
    char *bytes;
    tr_text_add(&text, "layers: [dense: 4");
    for (int i = 0; i < 4095; i++) tr_text_add(&text, ", tanh");
    tr_text_add(&text, "]");
    must(tr_text_finish(&text, &bytes));
    model = build(bytes, "4", 0);
    assert_int_equal(model->layer_count, 4096);
    tr_model_destroy(&model);
    tr_free(bytes);
    text = (struct tr_text)TR_TEXT_INIT;
    tr_text_add(&text, "layers: [dense: 4");
    for (int i = 0; i < 4096; i++) tr_text_add(&text, ", tanh");
    tr_text_add(&text, "]");
    must(tr_text_finish(&text, &bytes));
    assert_int_equal(network_build(bytes, "4", 0, &model), TR_EINVAL);
    assert_non_null(strstr(tr_error_message(), "4097 layers"));
    tr_free(bytes);
}

/* Every allocation fails once: an error each time, and nothing stays behind. */
static void test_failing_allocations(void **state)
{
    (void)state;
    for (int i = 0; i < network_count; i++) {
        const struct network *network = &networks[i];
        tr_config *root;
        must(tr_config_parse(network->text, strlen(network->text), "test.yaml", &root));
        struct tr_model_input input = {network_shape(network->input), network->vocabulary};
        int64_t live = tr_alloc_live();
        bool done = false;
        for (int64_t at = 0; !done; at++) {
            struct tr_model *model = NULL;
            refuse_begin(at);
            tr_status status = tr_model_build(root, &input, &model);
            struct tr_pass_limits limits = {.training = true, .examples = 5, .tokens = 9, .microbatches = 2};
            size_t bytes;
            if (status == TR_OK) status = tr_pass_memory(NULL, model, &limits, &bytes);
            done = refuse_end();
            if (status != (done ? TR_OK : TR_ENOMEM))
                fail_msg("%s: allocation %lld refused gives %s: %s", network->name, (long long)at,
                         tr_status_name(status), tr_error_message());
            tr_model_destroy(&model);
            if (tr_alloc_live() != live)
                fail_msg("%s: allocation %lld refused leaves %lld blocks", network->name, (long long)at,
                         (long long)(tr_alloc_live() - live));
        }
        tr_config_destroy(&root);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shapes_are_told),
        cmocka_unit_test(test_every_class_has_a_shape_case),
        cmocka_unit_test(test_operations_are_counted),
        cmocka_unit_test(test_hidden_matrices),
        cmocka_unit_test(test_hidden_matrices_of_many_ways),
        cmocka_unit_test(test_limits_of_a_layer),
        cmocka_unit_test(test_shapes),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_connections),
        cmocka_unit_test(test_fused_relu),
        cmocka_unit_test(test_algorithms),
        cmocka_unit_test(test_arena),
        cmocka_unit_test(test_fans),
        cmocka_unit_test(test_initialization_does_not_depend_on_shares),
        cmocka_unit_test(test_initialization_of_a_range),
        cmocka_unit_test(test_initialization_depends_on_seed_and_parameter),
        cmocka_unit_test(test_hash),
        cmocka_unit_test(test_mistakes),
        cmocka_unit_test(test_names_have_limits),
        cmocka_unit_test(test_too_many_layers),
        cmocka_unit_test(test_failing_allocations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
