/* Models from text: shapes, names, parameters, and what is said about texts that make none. */
#include "support/networks.h"

#include "base/alloc.h"
#include "base/hash.h"
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
    {"average_pool", "[average_pool: 2]", "7x6x3", 0, "3x3x3", ""},
    {"average_pool", "[average_pool: {size: 2, padding: same}]", "7x6x3", 0, "4x3x3", ""},
    {"average_pool", "[average_pool: {size: 3, stride: 1, pad: 1}]", "7x6x3", 0, "7x6x3", ""},
    {"batch_norm", "[batch_norm]", "5x4x3", 0, "5x4x3", "gamma 3 beta 3 running_mean 3 running_var 3"},
    {"batch_norm", "[batch_norm]", "9", 0, "9", "gamma 9 beta 9 running_mean 9 running_var 9"},
    {"conv", "[conv: {filters: 32, kernel: 5}]", "28x28x1", 0, "24x24x32", "weights 5x5x1x32 bias 32"},
    {"conv", "[conv: {filters: 32, kernel: 5, padding: same}]", "28x28x1", 0, "28x28x32",
     "weights 5x5x1x32 bias 32"},
    {"conv", "[conv: {filters: 4, kernel: [3, 1], stride: [2, 3], use_bias: false}]", "9x10x2", 0, "4x4x4",
     "weights 3x1x2x4"},
    {"conv", "[conv: {filters: 4, kernel: 3, stride: 2, padding: same}]", "9x10x2", 0, "5x5x4",
     "weights 3x3x2x4 bias 4"},
    {"conv", "[conv: {filters: 1, kernel: 3, dilation: 2}]", "9x10x2", 0, "5x6x1", "weights 3x3x2x1 bias 1"},
    {"conv", "[conv: {filters: 1, kernel: 3, pad: 2}]", "9x10x2", 0, "11x12x1", "weights 3x3x2x1 bias 1"},
    {"dense", "[dense: 10]", "784", 0, "10", "weights 784x10 bias 10"},
    {"dense", "[dense: {units: 10, use_bias: false}]", "4x5x3", 0, "10", "weights 60x10"},
    {"dense", "[dense: 7, last]", "tokens x 5", 0, "tokens x 7", "weights 5x7 bias 7"},
    {"dropout", "[dropout: 0.5, tanh]", "4x5x3", 0, "4x5x3", ""},
    {"embedding", "[embedding: 6, last]", "tokens", 100, "tokens x 6", "weights 100x6"},
    {"embedding", "[embedding: {width: 6, vocabulary: 120}, last]", "tokens", 100, "tokens x 6",
     "weights 120x6"},
    {"flatten", "[flatten, tanh]", "4x5x3", 0, "60", ""},
    {"gelu", "[gelu]", "4x5x3", 0, "4x5x3", ""},
    {"last", "[last, tanh]", "tokens x 3", 0, "3", ""},
    {"layer_norm", "[layer_norm]", "4x5x3", 0, "4x5x3", "gamma 60 beta 60"},
    {"layer_norm", "[layer_norm, last]", "tokens x 6", 0, "tokens x 6", "gamma 6 beta 6"},
    {"leaky_relu", "[leaky_relu: 0.2]", "5", 0, "5", ""},
    {"lstm", "[lstm: 8, last]", "tokens x 3", 0, "tokens x 8", "weights 3x32 recurrent_weights 8x32 bias 32"},
    {"max_pool", "[max_pool]", "7x6x3", 0, "3x3x3", ""},
    {"max_pool", "[max_pool: {size: [2, 3], stride: [1, 2], padding: same}]", "7x6x3", 0, "7x3x3", ""},
    {"relu", "[relu, last]", "tokens x 3", 0, "tokens x 3", ""},
    {"sigmoid", "[sigmoid]", "5", 0, "5", ""},
    {"softmax", "[softmax]", "4x5x3", 0, "4x5x3", ""},
    {"tanh", "[tanh]", "5", 0, "5", ""},
};
#define SHAPE_CASES (sizeof shape_cases / sizeof shape_cases[0])

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

static void test_every_class_has_a_shape_case(void **state)
{
    (void)state;
    int count;
    const struct tr_layer_class *const *classes = tr_layer_classes(&count);
    for (int c = 0; c < count; c++) {
        size_t i = 0;
        while (i < SHAPE_CASES && strcmp(shape_cases[i].class, classes[c]->name) != 0) i++;
        if (i == SHAPE_CASES) fail_msg("layer \"%s\" has no row in shape_cases; add one", classes[c]->name);
        if (c > 0) assert_true(strcmp(classes[c - 1]->name, classes[c]->name) < 0);
        assert_ptr_equal(tr_layer_class_find(classes[c]->name), classes[c]);
        assert_true(classes[c]->help && *classes[c]->help);
    }
    assert_null(tr_layer_class_find("no such layer"));
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
            left += model->layers[k].relu_left_to_consumer;
            taken += model->layers[k].relu_of_input;
        }
        if (left != cases[i].fused || taken != cases[i].fused)
            fail_msg("%s: relu left to %d, taken by %d consumers", cases[i].layers, left, taken);
        tr_model_destroy(&model);
    }
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
        total += parameter->count;
    }
    assert_in_range(model->arena_floats, end, end + GRAIN - 1);
    assert_int_equal(model->arena_floats % GRAIN, 0);
    assert_int_equal(model->parameter_total, total);
    assert_int_equal(total, 3 * 3 * 2 * 3 + 3 + 4 * 3 + 36 * 17 + 17 + 17 * 16 + 16 + 16 * 5 + 5);
    tr_model_destroy(&model);
}

/* What a parameter's initializer works with. */
static void test_fans(void **state)
{
    (void)state;
    struct tr_model *model = build("layers: [conv: {filters: 7, kernel: [3, 2]}, dense: 11]", "6x5x2", 0);
    const struct tr_parameter *conv = &model->parameters[0], *dense = &model->parameters[2];
    assert_int_equal(conv->fan_in, 3 * 2 * 2);
    assert_int_equal(conv->fan_out, 3 * 2 * 7);
    assert_int_equal(dense->fan_in, 4 * 4 * 7);
    assert_int_equal(dense->fan_out, 11);
    assert_int_equal(conv->kind, TR_PARAMETER_WEIGHT);
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
    {"layers:\n- quux: 3\n", "4", 0, {"test.yaml:2", "\"quux\"", "inspect --layers"}},
    {"layers:\n- [1, 2]\n", "4", 0, {"test.yaml:2", "a layer is written as", "a list"}},
    {"layers:\n- dense: 4\n  relu:\n", "4", 0, {"test.yaml:2", "a layer is written as"}},
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
    {"layers:\n- dense: 4\n- add\n", "4", 0, {"test.yaml:3", "add", "with"}},
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
    {"layers:\n- dense: 9\n- conv: {filters: 2, kernel: 3}\n",
     "6x6x1",
     0,
     {"test.yaml:3", "layer \"conv1\"", "wants images", "its input is 9"}},
    {"layers:\n- max_pool: 2\n", "16", 0, {"layer \"max_pool1\"", "wants images", "16"}},
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
    {"layers:\n- lstm: 8\n", "12", 0, {"layer \"lstm1\"", "wants a sequence", "12"}},
    {"layers:\n- last\n", "12", 0, {"layer \"last1\"", "wants a sequence", "12"}},
    {"layers:\n- embedding: 8\n- batch_norm\n",
     "tokens",
     9,
     {"layer \"batch_norm1\"", "tokens x 8", "layer_norm"}},
    {"layers:\n- embedding: 8\n- lstm: 4\n", "tokens", 9, {"output is a sequence", "tokens x 4", "last"}},
    {"layers:\n- dense: 1\n", "4", 0, {"softmax_cross_entropy", "at least 2 outputs", "1"}},
    {"layers: [dense: 2]\nloss: softmax_crossentropy\n",
     "4",
     0,
     {"test.yaml:2", "softmax_crossentropy", "softmax_cross_entropy"}},
    {"layers: [dense: 2]\nloss: {kind: mean_squared_error, label_smoothing: 0.1}\n",
     "4",
     0,
     {"test.yaml:2", "label_smoothing", "softmax_cross_entropy only"}},
    {"layers: [dense: 2]\nloss: {label_smoothing: 1}\n", "4", 0, {"test.yaml:2", "label_smoothing", "1"}},
    {"layers: [flatten]", "4", 0, {"test.yaml:1", "compute nothing"}},
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

static void test_too_many_layers(void **state)
{
    (void)state;
    struct tr_text text = TR_TEXT_INIT;
    tr_text_add(&text, "layers: [dense: 4");
    for (int i = 0; i < 4096; i++) tr_text_add(&text, ", tanh");
    tr_text_add(&text, "]");
    char *bytes;
    must(tr_text_finish(&text, &bytes));
    struct tr_model *model;
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
            if (status == TR_OK) status = tr_pass_memory(model, &limits, &bytes);
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
        cmocka_unit_test(test_every_class_has_a_shape_case),
        cmocka_unit_test(test_shapes),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_connections),
        cmocka_unit_test(test_fused_relu),
        cmocka_unit_test(test_arena),
        cmocka_unit_test(test_fans),
        cmocka_unit_test(test_initialization_does_not_depend_on_shares),
        cmocka_unit_test(test_initialization_depends_on_seed_and_parameter),
        cmocka_unit_test(test_hash),
        cmocka_unit_test(test_mistakes),
        cmocka_unit_test(test_too_many_layers),
        cmocka_unit_test(test_failing_allocations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
