/* The ONNX export: what is written is a whole file of the format and says what the network is. That others
 * run it with the same results is shown in tests/interop/test_onnx.py. */
#include "export/onnx/graph.h"

#include "base/alloc.h"
#include "base/files/file.h"
#include "base/numbers/hash.h"
#include "base/text/text.h"
#include "export/onnx/file.h"
#include "export/onnx/rules.h"
#include "io/proto/onnx.pb-c.h"
#include "refuse.h"
#include "scratch.h"
#include "support/networks.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

static char path[SCRATCH_PATH];

static int set_up(void **state)
{
    scratch_place_make(state);
    scratch_join(path, scratch_place, "network.onnx");
    return 0;
}

static const struct tr_onnx_settings settings = {"digits", "a network of the tests"};

/* What ONNX has always had. */
static const char *const known[] = {
    "dense_forward",
    "conv_forward",
    "winograd_forward",
    "activation_forward",
    "add",
    "scale",
    "pool_forward",
    "softmax_forward",
    "layer_norm_forward",
    "batch_norm_infer",
    "embedding_forward",
    "lstm_forward",
    "sequence_last_forward",
    "load_images",
    "rms_norm_forward",
    "group_norm_forward",
    "grouped_conv_forward",
    "grouped_conv_backward_data",
    "multiply",
    NULL,
};

/* NULL where the format refuses the network. */
static Onnx__ModelProto *export_network(const struct network *network, const struct tr_op_load_images *images)
{
    struct trial trial;
    struct tr_trace *trace;
    struct tr_intake intake = {.count = 1, .part = {{.name = ""}}};
    if (images) {
        intake.part[0].images = *images;
        intake.part[0].stored = (struct tr_shape){3, {images->in_h, images->in_w, images->channels}, false};
    }
    trial_make(&trial, network, "ref", 2, 1);
    tr_status status = tr_trace_create(trial.model, trial.parameters, images ? &intake : NULL, &trace);
    if (status == TR_OK) status = onnx_write_trace(trace, &settings, path);
    if (status == TR_EUNSUPPORTED) refusal_of_a_new_operation("ONNX", known);
    tr_trace_destroy(&trace);
    trial_release(&trial);
    if (status == TR_EUNSUPPORTED) return NULL;
    must(status);
    return onnx_read(path);
}

/* ---- what every file keeps to ---- */

static void check_model(const Onnx__ModelProto *model)
{
    const Onnx__GraphProto *graph = model->graph;
    assert_int_equal(model->ir_version, 8);
    assert_int_equal(model->n_opset_import, 1);
    assert_int_equal(model->opset_import[0]->version, 13);
    assert_string_equal(model->producer_name, "trireme");
    assert_string_equal(model->doc_string, settings.origin);
    assert_string_equal(graph->name, settings.name);
    onnx_expect_sound(graph);
}

/* A new kind of layer fails here until it has a network; one with a new operation may be refused by name. */
static void test_every_layer(void **state)
{
    (void)state;
    networks_have_every_layer();
    for (int i = 0; i < network_count; i++) {
        Onnx__ModelProto *model = export_network(&networks[i], NULL);
        if (!model) continue;
        check_model(model);
        onnx__model_proto__free_unpacked(model, NULL);
    }
}

/* ---- what single files say ---- */

static void describe_value(const char *what, const Onnx__ValueInfoProto *value, struct tr_text *text)
{
    tr_text_addf(text, "%s %s", what, value->name);
    for (size_t i = 0; i < value->type->tensor_type->shape->n_dim; i++) {
        const Onnx__TensorShapeProto__Dimension *size = value->type->tensor_type->shape->dim[i];
        if (size->dim_param)
            tr_text_addf(text, " %s", size->dim_param);
        else
            tr_text_addf(text, " %d", (int)size->dim_value);
    }
    tr_text_add(text, "\n");
}

static void describe_attribute(const Onnx__AttributeProto *attribute, struct tr_text *text)
{
    tr_text_addf(text, " %s=", attribute->name);
    if (attribute->has_f) tr_text_addf(text, "%g", (double)attribute->f);
    if (attribute->has_i) tr_text_addf(text, "%d", (int)attribute->i);
    for (size_t i = 0; i < attribute->n_ints; i++)
        tr_text_addf(text, "%s%d", i ? "," : "", (int)attribute->ints[i]);
}

/* The graph as lines, without its numbers. Free with tr_free(). */
static char *describe(const Onnx__GraphProto *graph)
{
    struct tr_text text = TR_TEXT_INIT;
    char *lines;
    for (size_t i = 0; i < graph->n_input; i++) describe_value("in", graph->input[i], &text);
    for (size_t i = 0; i < graph->n_node; i++) {
        const Onnx__NodeProto *node = graph->node[i];
        tr_text_addf(&text, "%s", node->op_type);
        for (size_t k = 0; k < node->n_input; k++) tr_text_addf(&text, " %s", node->input[k]);
        tr_text_add(&text, " ->");
        for (size_t k = 0; k < node->n_output; k++) tr_text_addf(&text, " %s", node->output[k]);
        for (size_t k = 0; k < node->n_attribute; k++) describe_attribute(node->attribute[k], &text);
        tr_text_add(&text, "\n");
    }
    for (size_t i = 0; i < graph->n_output; i++) describe_value("out", graph->output[i], &text);
    must(tr_text_finish(&text, &lines));
    return lines;
}

static void expect_graph(const struct network *network, const struct tr_op_load_images *images,
                         const char *expected)
{
    Onnx__ModelProto *model = export_network(network, images);
    check_model(model);
    char *lines = describe(model->graph);
    assert_string_equal(lines, expected);
    tr_free(lines);
    onnx__model_proto__free_unpacked(model, NULL);
}

static void test_a_convolutional_network(void **state)
{
    (void)state;
    static const struct network network = {"small", "5x6x2", 0,
                                           "layers:\n"
                                           "- conv: {filters: 3, kernel: [2, 3], stride: [2, 1], padding: "
                                           "same, activation: leaky_relu, slope: 0.25}\n"
                                           "- max_pool: 2\n"
                                           "- flatten\n"
                                           "- dropout: 0.5\n"
                                           "- dense: {units: 2, name: class, use_bias: false}\n"};
    static const struct tr_op_load_images images = {
        .in_h = 8, .in_w = 4, .out_h = 5, .out_w = 6, .channels = 2, .scale = {0.5f, 0.25f}, .shift = {1, 1}};
    expect_graph(
        &network, &images,
        "in input batch 2 8 4\n"
        "Slice input input/first input/end input/axes -> input/Slice\n"
        "Pad input/Slice input/pads -> input/Pad\n"
        "Mul input/Pad input/scale -> input/Mul\n"
        "Add input/Mul input/shift -> input/Add\n"
        "Conv input/Add conv1.weights conv1.bias -> conv1/Conv kernel_shape=2,3 strides=2,1 pads=0,1,1,1\n"
        "LeakyRelu conv1/Conv -> conv1/LeakyRelu alpha=0.25\n"
        "MaxPool conv1/LeakyRelu -> max_pool1/MaxPool kernel_shape=2,2 strides=2,2 pads=0,0,0,0\n"
        "Flatten max_pool1/MaxPool -> class/Flatten axis=1\n"
        "Gemm class/Flatten class.weights -> logits\n"
        "Softmax logits -> probabilities axis=-1\n"
        "out logits batch 2\n"
        "out probabilities batch 2\n");
}

/* Images are joined along their channels, which ONNX has second; what was an image no more, along its
 * columns. */
static void test_joined_layers(void **state)
{
    (void)state;
    static const struct network network = {"joined", "4x4x2", 0,
                                           "layers:\n"
                                           "- relu: {name: a}\n"
                                           "- conv: {filters: 3, kernel: 1, from: input, name: b}\n"
                                           "- concat: {from: [a, b], name: images}\n"
                                           "- dense: {units: 2, name: c}\n"
                                           "- dense: {units: 3, from: images, name: d}\n"
                                           "- concat: {from: [c, d], name: rows}\n"};
    expect_graph(&network, NULL,
                 "in input batch 2 4 4\n"
                 "Relu input -> a/Relu\n"
                 "Conv input b.weights b.bias -> b/Conv kernel_shape=1,1 strides=1,1 pads=0,0,0,0\n"
                 "Concat a/Relu b/Conv -> images/Concat axis=1\n"
                 "Flatten images/Concat -> c/Flatten axis=1\n"
                 "Gemm c/Flatten c.weights c.bias -> c/Gemm\n"
                 "Flatten images/Concat -> d/Flatten axis=1\n"
                 "Gemm d/Flatten d.weights d.bias -> d/Gemm\n"
                 "Concat c/Gemm d/Gemm -> logits axis=-1\n"
                 "Softmax logits -> probabilities axis=-1\n"
                 "out logits batch 5\n"
                 "out probabilities batch 5\n");
}

static void test_a_recurrent_network(void **state)
{
    (void)state;
    static const struct network network = {"small", "tokens", 9,
                                           "layers:\n"
                                           "- embedding: 4\n"
                                           "- lstm: 3\n"
                                           "- lstm: 2\n"
                                           "- last\n"
                                           "- dense: {units: 2, activation: tanh}\n"};
    expect_graph(
        &network, NULL,
        "in tokens batch time\n"
        "in lengths batch\n"
        "Transpose tokens -> embedding1/Transpose perm=1,0\n"
        "Gather embedding1.weights embedding1/Transpose -> embedding1/Gather\n"
        "Cast lengths -> lstm1/Cast to=6\n"
        "LSTM embedding1/Gather lstm1.weights lstm1.recurrent_weights lstm1.bias lstm1/Cast -> lstm1/LSTM"
        " hidden_size=3\n"
        "Squeeze lstm1/LSTM lstm1/direction_axis -> lstm1/Squeeze\n"
        "LSTM lstm1/Squeeze lstm2.weights lstm2.recurrent_weights lstm2.bias lstm1/Cast ->  lstm2/LSTM_last"
        " hidden_size=2\n"
        "Squeeze lstm2/LSTM_last lstm2/last_axis -> lstm2/Squeeze\n"
        "Gemm lstm2/Squeeze dense1.weights dense1.bias -> dense1/Gemm\n"
        "Tanh dense1/Gemm -> logits\n"
        "Softmax logits -> probabilities axis=-1\n"
        "out logits batch 2\n"
        "out probabilities batch 2\n");
}

/* A convolution's weights and those of a dense layer behind it, place by place. */
static void test_numbers_change_places(void **state)
{
    (void)state;
    struct trial trial;
    static const struct network network = {"small", "3x2x2", 0,
                                           "layers: [{conv: {filters: 3, kernel: [2, 1]}}, {dense: 2}]"};
    Onnx__ModelProto *model = export_network(&network, NULL);
    trial_make(&trial, &network, "ref", 2, 1);
    const struct tr_parameter *parameters = trial.model->parameters;
    const float *kernel = trial.parameters + parameters[0].offset,
                *dense = trial.parameters + parameters[2].offset;
    const float *theirs = (const float *)model->graph->initializer[0]->raw_data.data;
    assert_string_equal(model->graph->initializer[0]->name, "conv1.weights");
    for (int o = 0; o < 3; o++)
        for (int i = 0; i < 2; i++)
            for (int h = 0; h < 2; h++)
                assert_true(theirs[(o * 2 + i) * 2 + h] == kernel[(h * 2 + i) * 3 + o]);
    theirs = (const float *)model->graph->initializer[2]->raw_data.data;
    assert_string_equal(model->graph->initializer[2]->name, "dense1.weights");
    for (int c = 0; c < 3; c++)
        for (int pixel = 0; pixel < 4; pixel++)
            for (int o = 0; o < 2; o++)
                assert_true(theirs[(c * 4 + pixel) * 2 + o] == dense[(pixel * 3 + c) * 2 + o]);
    trial_release(&trial);
    onnx__model_proto__free_unpacked(model, NULL);
}

/* The bytes, behind the program's version that stands at their beginning. */
static void test_bytes(void **state)
{
    (void)state;
    static const char version[] = TRIREME_VERSION;
    static const uint8_t head[] = {
        0x08, 8, 0x12, 7, 't', 'r', 'i', 'r', 'e', 'm', 'e', 0x1a, sizeof version - 1};
    struct tr_file_content content;
    tr_sha256 *hash;
    char hex[TR_SHA256_TEXT];
    onnx__model_proto__free_unpacked(export_network(&networks[0], NULL), NULL);
    must(tr_file_read(path, 64 << 20, &content));
    size_t start = sizeof head + sizeof version - 1;
    assert_true(content.size > start);
    assert_memory_equal(content.data, head, sizeof head);
    assert_memory_equal(content.data + sizeof head, version, sizeof version - 1);
    must(tr_sha256_begin(&hash));
    tr_sha256_add(hash, content.data + start, content.size - start);
    must(tr_sha256_end(&hash, hex));
    assert_string_equal(hex, "dcc4db508ad5270c1f23c253eb05768dba733a7b1a9c3cf911a8611aa2c645ff");
    tr_file_content_free(&content);
}

/* ---- refusals ---- */

static void test_an_operation_without_counterpart(void **state)
{
    (void)state;
    struct trial trial;
    struct tr_trace *trace;
    trial_make(&trial, &networks[0], "ref", 2, 1);
    must(tr_trace_create(trial.model, trial.parameters, NULL, &trace));
    trace->item[1].kind = TR_TRACED_fill;
    assert_int_equal(onnx_write_trace(trace, &settings, path), TR_EUNSUPPORTED);
    assert_non_null(
        strstr(tr_error_message(), "layer \"max_pool1\" (max_pool) needs the operation \"fill\""));
    tr_trace_destroy(&trace);
    trial_release(&trial);
}

static void test_more_than_the_format_can_be(void **state)
{
    (void)state;
    tr_onnx *onnx;
    const int64_t size = INT32_MAX / 4 + 1;
    must(tr_onnx_create("large", "", &onnx));
    if (!tr_onnx_floats(onnx, "numbers", 1, &size)) skip(); /* a machine without so much address space */
    assert_int_equal(onnx_write(onnx, path), TR_EUNSUPPORTED);
    assert_non_null(strstr(tr_error_message(), "an ONNX file at most 2147483647"));
    tr_onnx_destroy(&onnx);
}

static void test_every_allocation_may_fail(void **state)
{
    (void)state;
    for (int n = 0; n < network_count; n++) {
        struct trial trial;
        struct tr_trace *trace;
        trial_make(&trial, &networks[n], "ref", 2, 1);
        tr_status expected = tr_trace_create(trial.model, trial.parameters, NULL, &trace);
        if (expected == TR_OK) expected = onnx_write_trace(trace, &settings, path);
        tr_trace_destroy(&trace);
        for (int64_t at = 0, done = 0; !done; at++) {
            const int64_t live = tr_alloc_live();
            refuse_begin(at);
            tr_status status = tr_trace_create(trial.model, trial.parameters, NULL, &trace);
            if (status == TR_OK) status = onnx_write_trace(trace, &settings, path);
            done = refuse_end();
            if (status != (done ? expected : TR_ENOMEM))
                fail_msg("%s, allocation %d: %d", networks[n].name, (int)at, (int)status);
            tr_trace_destroy(&trace);
            assert_int_equal(tr_alloc_live(), live);
        }
        trial_release(&trial);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_layer),
        cmocka_unit_test(test_a_convolutional_network),
        cmocka_unit_test(test_joined_layers),
        cmocka_unit_test(test_a_recurrent_network),
        cmocka_unit_test(test_numbers_change_places),
        cmocka_unit_test(test_bytes),
        cmocka_unit_test(test_an_operation_without_counterpart),
        cmocka_unit_test(test_more_than_the_format_can_be),
        cmocka_unit_test(test_every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, set_up, scratch_place_remove);
}
