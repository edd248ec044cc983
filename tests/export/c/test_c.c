/* The C export: what compilers make of it gives the bits of the devices, for every kind of layer and for
 * small versions of the model files that ship; what it cannot say is refused. */
#include "export/c/network.h"

#include "base/alloc.h"
#include "base/files/file.h"
#include "base/numbers/mathf.h"
#include "export/c/program.h"
#include "refuse.h"
#include "scratch.h"
#include "support/networks.h"
#include "support/files/npy.h"
#include "support/training.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <string.h>

typedef void predict_values(const float *input, float *output, float *workspace);
typedef int32_t predict_tokens(const int32_t *tokens, int32_t length, float *output, float *workspace);
typedef void to_probabilities(const float *scores, float *probabilities);

static int set_up(void **state)
{
    scratch_place_make(state);
    family_files(scratch_place);
    return 0;
}

/* ---- networks, against passes ---- */

static tr_status write_trace(const struct tr_trace *trace, const char *name, const char *path)
{
    struct tr_c_settings settings = {name, "file */ of \"tests\"\\\n/*", "a */ test\nof /* comments \\",
                                     NULL};
    struct tr_file_writer writer;
    must(tr_file_begin(NULL, path, TR_FILE_REPLACE, 0, &writer));
    tr_status status = tr_c_write(trace, &settings, &writer);
    if (status == TR_OK)
        status = tr_file_finish(&writer, false);
    else
        tr_file_abandon(&writer);
    return status;
}

static void expect_bits(const char *network, const char *compiler, int64_t example, int64_t count,
                        const float *expected, const float *got)
{
    for (int64_t k = 0; k < count; k++)
        if (memcmp(&expected[k], &got[k], sizeof(float)) != 0)
            fail_msg("%s, %s: output %d of example %d is %a instead of %a", network, compiler, (int)k,
                     (int)example, got[k], expected[k]);
}

#define WORKSPACE (1 << 20)
#define MOST_ROWS 32

static void compare_trial(const struct trial *trial, const char *network, const char *compiler,
                          const char *path, const float *expected)
{
    int64_t outputs = tr_shape_count(&trial->model->output), width = tr_shape_count(&trial->model->input);
    bool of_tokens = trial->model->output.sequence;
    void *program = program_open(compiler, path);
    void (*predict)(void) = program_function(program, "net_7_x_predict");
    float *workspace = tr_alloc(WORKSPACE, sizeof *workspace),
          *output = tr_alloc((size_t)(MOST_ROWS * outputs), sizeof *output);
    for (int64_t i = 0; i < trial->examples; i++) {
        int64_t first = of_tokens ? trial->offset[i] : i;
        int64_t rows = of_tokens ? trial->offset[i + 1] - trial->offset[i] : 1;
        assert_true(rows <= MOST_ROWS);
        memset(workspace, 0xff, WORKSPACE * sizeof *workspace); /* NaN: nothing may be left from elsewhere */
        if (trial->model->input.sequence)
            assert_int_equal(((predict_tokens *)predict)(trial->token + trial->offset[i],
                                                         trial->offset[i + 1] - trial->offset[i], output,
                                                         workspace),
                             trial->offset[i + 1] - trial->offset[i]);
        else
            ((predict_values *)predict)(trial->input + i * width, output, workspace);
        expect_bits(network, compiler, i, rows * outputs, expected + first * outputs, output);
    }
    tr_free(output);
    tr_free(workspace);
    program_close(program);
}

/* What C has always had. */
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
    "position_forward",
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

static void compare_network(const struct network *network)
{
    struct trial trial;
    struct tr_trace *trace;
    char path[SCRATCH_PATH];
    trial_make(&trial, network, "cpu", 9, 1);
    float *expected = trial_output(&trial);
    must(tr_trace_create(trial.model, trial.parameters, NULL, &trace));
    tr_status status = write_trace(trace, "7-x", scratch_join(path, scratch_place, "net.c"));
    if (status == TR_EUNSUPPORTED)
        refusal_of_a_new_operation("C", known);
    else
        must(status);
    for (const char *const *compiler = program_compilers(); status == TR_OK && *compiler; compiler++)
        compare_trial(&trial, network->name, *compiler, path, expected);
    tr_trace_destroy(&trace);
    tr_free(expected);
    trial_release(&trial);
}

/* Shapes and names that the shared networks lack. */
static const struct network more[] = {
    {"tanh alone", "5", 0, "layers: [{dense: {units: 3, activation: tanh}}]"},
    {"a copy of the input", "4", 0, "layers: [{dropout: 0.5}]"},
    {"nothing private", "4", 0, "layers: [{dense: 3}]"},
    {"a token's vector at the end", "tokens", 7, "layers: [{embedding: 3}, last]"},
    {"memory at the end", "tokens", 7, "layers: [{embedding: 3}, {lstm: 4}, last, {dropout: 0.5}]"},
    {"names that C knows", "4", 0,
     "layers:\n"
     "- dense: {units: 4, name: float}\n"
     "- tanh: {name: output}\n"
     "- dense: {units: 4, name: a-b}\n"
     "- dense: {units: 4, name: a_b}\n"
     "- add: {with: a-b, name: plus}\n"
     "- dense: {units: 4, name: plus_bias}\n"
     "- dense: {units: 4, name: \"3*x\"}\n"
     "- layer_norm: {name: batch_norm}\n"
     "- dense: {units: 2, name: \"\xc3\xa9t\xc3\xa9\"}\n"},
};
/* Texts of up to 6 tokens: all behind the second one have the vector of the second place. */
static const struct network longer_than_positions[] = {
    {"a text of tokens beyond the positions", "tokens", 7,
     "layers:\n"
     "- embedding: {width: 4, weights: {normal: 0.7}, name: words}\n"
     "- position: {length: 2, weights: {normal: 0.7}, name: x}\n"
     "- attention: {heads: 2, causal: true}\n"
     "- add: x\n"
     "- unembedding: words\n"},
    {"a text beyond the positions", "tokens", 7,
     "layers:\n"
     "- embedding: {width: 4, weights: {normal: 0.7}}\n"
     "- position: {length: 2, weights: {normal: 0.7}}\n"
     "- attention: {heads: 1, causal: true}\n"
     "- attention: {heads: 2, causal: true}\n"
     "- last\n"
     "- dense: 3\n"},
    {"a text beyond the positions, of tokens that see those behind them", "tokens", 7,
     "layers:\n"
     "- embedding: {width: 4, weights: {normal: 0.7}}\n"
     "- position: {length: 2, weights: {normal: 0.7}}\n"
     "- attention: 2\n"
     "- global_average_pool\n"
     "- dense: 3\n"},
};
enum { MORE = sizeof more / sizeof more[0] };

/* Every kind of layer is in one of the networks: a new kind fails here until it has a network. A network with
   a new operation may be refused by name. */
static void test_every_layer_gives_the_same_bits(void **state)
{
    (void)state;
    networks_have_every_layer();
    for (int i = 0; i < network_count; i++) compare_network(&networks[i]);
}

static void test_odd_networks(void **state)
{
    (void)state;
    for (int i = 0; i < MORE; i++) compare_network(&more[i]);
}

static void test_texts_longer_than_the_positions(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof longer_than_positions / sizeof longer_than_positions[0]; i++)
        compare_network(&longer_than_positions[i]);
}

/* Whoever compiles the file says how long texts may be, and hears of those that are longer. */
static void test_the_longest_text_may_be_chosen(void **state)
{
    (void)state;
    enum { MOST = 4 };
    struct trial trial;
    struct tr_trace *trace;
    char path[SCRATCH_PATH], compiler[128];
    float output[MOST_ROWS * 7];
    bool cut = false;
    trial_make(&trial, &longer_than_positions[0], "cpu", 9, 1);
    float *expected = trial_output(&trial), *workspace = tr_alloc(WORKSPACE, sizeof *workspace);
    must(tr_trace_create(trial.model, trial.parameters, NULL, &trace));
    must(write_trace(trace, "net", scratch_join(path, scratch_place, "chosen.c")));
    snprintf(compiler, sizeof compiler, "%s -DNET_TOKENS=%d", program_compilers()[0], MOST);
    void *program = program_open(compiler, path);
    void (*predict)(void) = program_function(program, "net_predict");
    for (int64_t i = 0; i < trial.examples; i++) {
        const int32_t first = trial.offset[i], length = trial.offset[i + 1] - first;
        const int32_t taken = length < MOST ? length : MOST;
        cut |= length > MOST;
        memset(workspace, 0xff, WORKSPACE * sizeof *workspace);
        assert_int_equal(((predict_tokens *)predict)(trial.token + first, length, output, workspace), taken);
        expect_bits("a text that is cut", compiler, i, taken * 7, expected + first * 7, output);
    }
    assert_true(cut);
    program_close(program);
    tr_trace_destroy(&trace);
    tr_free(workspace);
    tr_free(expected);
    trial_release(&trial);
}

/* ---- jobs, against predictors ---- */

struct exported {
    char checkpoint[SCRATCH_PATH], path[SCRATCH_PATH];
    tr_predictor *predictor;
    tr_source *source;
};

static void export_job(struct job *job, const char *place, struct exported *exported)
{
    struct outcome outcome;
    struct tr_export_settings settings = TR_EXPORT_SETTINGS_INIT;
    struct tr_predict_settings predict = TR_PREDICT_SETTINGS_INIT;
    tr_exporter *exporter;
    scratch_join(exported->checkpoint, scratch_place, place);
    scratch_join(exported->path, scratch_place, "network.c");
    job->settings.out = exported->checkpoint;
    job_outcome(job, &outcome);
    if (outcome.status != TR_OK) fail_msg("%s: %s", place, outcome.message);
    settings.checkpoint = predict.checkpoint = exported->checkpoint;
    settings.name = "net";
    predict.threads = 1;
    must_train(tr_exporter_create(&settings, &exporter));
    must_train(tr_exporter_write(exporter, "c", exported->path));
    tr_exporter_destroy(&exporter);
    must_train(tr_predictor_create(&predict, &exported->predictor));
    must_train(tr_predictor_open_data(exported->predictor, "test", &exported->source));
}

/* Example `index` as the function takes it; `features` as the source keeps it. */
static void run_example(void *program, const struct exported *exported, int64_t index, void *features,
                        float *input, float *output, float *workspace)
{
    struct tr_predict_info info = TR_PREDICT_INFO_INIT;
    int64_t length;
    must_train(tr_predictor_info(exported->predictor, &info));
    must_train(tr_source_read(exported->source, index, features, tr_source_capacity(exported->source),
                              &length, NULL));
    void (*predict)(void) = program_function(program, "net_predict");
    if (info.features == TR_FEATURE_TOKENS) {
        ((predict_tokens *)predict)(features, (int32_t)length, output, workspace);
    } else {
        for (int64_t k = 0; k < length; k++)
            input[k] =
                info.features == TR_FEATURE_FLOATS ? ((float *)features)[k] : (float)((uint8_t *)features)[k];
        ((predict_values *)predict)(input, output, workspace);
    }
    ((to_probabilities *)program_function(program, "net_probabilities"))(output, output);
}

static void compare_job(const struct exported *exported, const char *name, const char *compiler)
{
    struct tr_predict_info info = TR_PREDICT_INFO_INIT;
    must_train(tr_predictor_info(exported->predictor, &info));
    int64_t count = tr_source_info(exported->source)->count, outputs = info.outputs;
    size_t capacity = (size_t)tr_source_capacity(exported->source);
    float *expected = tr_alloc((size_t)(count * outputs), sizeof *expected), output[64];
    void *features = tr_alloc(capacity, sizeof(int32_t));
    float *input = tr_alloc(capacity, sizeof *input), *workspace = tr_alloc(1 << 20, sizeof *workspace);
    void *program = program_open(compiler, exported->path);
    must_train(tr_predictor_source(exported->predictor, exported->source, 0, count, expected));
    for (int64_t i = 0; i < count; i++) {
        run_example(program, exported, i, features, input, output, workspace);
        expect_bits(name, compiler, i, outputs, expected + i * outputs, output);
    }
    program_close(program);
    tr_free(workspace);
    tr_free(input);
    tr_free(features);
    tr_free(expected);
}

static void compare_and_close(struct exported *exported, const char *name)
{
    for (const char *const *compiler = program_compilers(); *compiler; compiler++)
        compare_job(exported, name, *compiler);
    tr_source_close(&exported->source);
    tr_predictor_destroy(&exported->predictor);
}

static void test_model_files_give_the_same_bits(void **state)
{
    (void)state;
    for (int i = 0; i < family_count; i++) {
        struct job job;
        struct exported exported;
        family_job(&job, &families[i], scratch_place);
        if (strcmp(families[i].name, "language") == 0) continue; /* texts: test_c_texts.c */
        export_job(&job, families[i].name, &exported);
        compare_and_close(&exported, families[i].name);
    }
}

/* What lies outside of the image is black. */
static void test_a_part_larger_than_the_image(void **state)
{
    (void)state;
    struct job job;
    struct exported exported;
    family_job(&job, &families[2], scratch_place);
    job_set(&job, "input.pad=2");
    job_set(&job, "input.crop=[31, 27]");
    job_set(&job, "input.scale=1/64");
    job_set(&job, "input.shift=0.25");
    export_job(&job, "larger", &exported);
    compare_and_close(&exported, "larger");
}

/* Images of numbers come as they are stored, as a row, of which a part is larger than the image. */
static void test_images_of_numbers(void **state)
{
    (void)state;
    enum { ROWS = 8, VALUES = 6 * 5 * 2 };
    static const char model[] =
        "name: numbers\ndata: {train: {npy: {features: numbers.npy, labels: numbers-class.npy}},"
        " test: {npy: {features: numbers.npy, labels: numbers-class.npy}}}\n"
        "input: {crop: [8, 3], pad: 1, scale: [0.5, 3], shift: [-1, 2], rotate: 10}\n"
        "layers: [{conv: {filters: 3, kernel: 2, activation: tanh}}, {dense: 3}]\n"
        "optimizer: {rule: sgd, rate: 0.1}\ntrain: {batch: 4, steps: 3}\n";
    float number[ROWS * VALUES];
    uint8_t class[ROWS];
    for (int i = 0; i < ROWS * VALUES; i++) number[i] = (float)(i * 29 % 101) / 50 - 1;
    for (int i = 0; i < ROWS; i++) class[i] = (uint8_t)(i % 3);
    struct job job;
    struct exported exported;
    char path[SCRATCH_PATH];
    npy_write(scratch_join(path, scratch_place, "numbers.npy"), "<f4", "8, 6, 5, 2", number, sizeof number);
    npy_write(scratch_join(path, scratch_place, "numbers-class.npy"), "|u1", "8,", class, sizeof class);
    must_train(
        tr_file_write_atomic(NULL, scratch_join(path, scratch_place, "numbers.yaml"), model, strlen(model)));
    job_begin(&job, path);
    export_job(&job, "numbers", &exported);
    compare_and_close(&exported, "numbers");
}

/* The file is its own header: a program that includes it so, compiled together with it. */
static void test_declarations(void **state)
{
    (void)state;
    static const char program[] =
        "#define NET_7_X_DECLARATIONS\n"
        "#include \"declared.c\"\n"
        "int main(void)\n"
        "{\n"
        "    float input[NET_7_X_INPUTS] = {1, 2, 3, 4, 5, 6}, output[NET_7_X_OUTPUTS];\n"
        "    float workspace[NET_7_X_WORKSPACE];\n"
        "    net_7_x_predict(input, output, workspace);\n"
        "    net_7_x_probabilities(output, output);\n"
        "    return !(output[0] > 0 && output[0] < 1);\n"
        "}\n";
    struct trial trial;
    struct tr_trace *trace;
    char network[SCRATCH_PATH], source[SCRATCH_PATH], run[SCRATCH_PATH];
    trial_make(&trial, &networks[4], "ref", 1, 1);
    must(tr_trace_create(trial.model, trial.parameters, NULL, &trace));
    must(write_trace(trace, "7-x", scratch_join(network, scratch_place, "declared.c")));
    must(tr_file_write_atomic(NULL, scratch_join(source, scratch_place, "main.c"), program,
                              sizeof program - 1));
    for (const char *const *compiler = program_compilers(); *compiler; compiler++)
        program_run(*compiler, scratch_join(run, scratch_place, "main"), source, network);
    tr_trace_destroy(&trace);
    trial_release(&trial);
}

/* ---- functions ---- */

#define FUNCTIONS(X) X(exp) X(tanh) X(sigmoid) X(erf)

/* Every 997th float, through all exponents and both signs. */
static void compare_function(void *program, const char *name, float (*ours)(float))
{
    float (*theirs)(float) = (float (*)(float))program_function(program, name);
    for (uint64_t i = 0; i < (uint64_t)1 << 32; i += 997) {
        uint32_t bits = (uint32_t)i;
        float x, a, b;
        memcpy(&x, &bits, sizeof x);
        a = ours(x), b = theirs(x);
        if (memcmp(&a, &b, sizeof a) != 0 && !(isnan(a) && isnan(b)))
            fail_msg("%s(%a) is %a instead of %a", name, x, b, a);
    }
}

static void test_functions_give_the_same_bits(void **state)
{
    (void)state;
    struct tr_text text = TR_TEXT_INIT;
    struct tr_c_parts parts = {0};
    char path[SCRATCH_PATH], *source, *texts;
    must(tr_c_texts_unpack(&texts));
    tr_text_add(&text, "#include <math.h>\n#include <stdint.h>\n#include <string.h>\n");
#define DECLARE(name) tr_text_add(&text, "float call_" #name "(float x);\n");
    FUNCTIONS(DECLARE)
#undef DECLARE
#define USE(name) tr_c_parts_use(&parts, TR_C_##name);
    FUNCTIONS(USE)
#undef USE
    tr_c_parts_write(&parts, &(struct tr_c_names){"f", "F", "", texts}, &text);
    tr_free(texts);
#define DEFINE(name) tr_text_add(&text, "float call_" #name "(float x) { return f_" #name "(x); }\n");
    FUNCTIONS(DEFINE)
#undef DEFINE
    must(tr_text_finish(&text, &source));
    must(
        tr_file_write_atomic(NULL, scratch_join(path, scratch_place, "functions.c"), source, strlen(source)));
    tr_free(source);
    for (const char *const *compiler = program_compilers(); *compiler; compiler++) {
        void *program = program_open(*compiler, path);
        compare_function(program, "call_exp", tr_expf);
        compare_function(program, "call_tanh", tr_tanhf);
        compare_function(program, "call_sigmoid", tr_sigmoidf);
        compare_function(program, "call_erf", tr_erff);
        program_close(program);
    }
}

static void test_constants_are_exact(void **state)
{
    (void)state;
    static const float special[] = {
        0, -0.0f, 1, -1, 0x1p-149f, 0x1.fffffep127f, 0x1p-126f, -0x1.234566p-130f, 0.1f};
    char text[TR_C_CONSTANT];
    for (size_t i = 0; i < sizeof special / sizeof special[0] + 100000; i++) {
        uint32_t bits = (uint32_t)i * 2654435761u;
        float value, read;
        memcpy(&value, &bits, sizeof value);
        if (i < sizeof special / sizeof special[0]) value = special[i];
        if (!isfinite(value)) continue;
        tr_c_constant(value, text);
        read = strtof(text, NULL);
        if (memcmp(&value, &read, sizeof value) != 0) fail_msg("%a is written as %s", value, text);
    }
}

/* ---- refusals ---- */

static void test_a_parameter_that_is_no_number(void **state)
{
    (void)state;
    struct trial trial;
    struct tr_trace *trace;
    char path[SCRATCH_PATH];
    trial_make(&trial, &networks[0], "ref", 2, 1);
    must(tr_trace_create(trial.model, trial.parameters, NULL, &trace));
    trial.parameters[trial.model->parameters[2].offset + 3] = NAN;
    assert_int_equal(write_trace(trace, "net", scratch_join(path, scratch_place, "bad.c")), TR_ENONFINITE);
    assert_non_null(strstr(tr_error_message(), "element 3 of parameter \"conv2.weights\" is NaN"));
    tr_trace_destroy(&trace);
    trial_release(&trial);
}

static void test_an_operation_without_counterpart(void **state)
{
    (void)state;
    struct trial trial;
    struct tr_trace *trace;
    char path[SCRATCH_PATH];
    trial_make(&trial, &networks[0], "ref", 2, 1);
    must(tr_trace_create(trial.model, trial.parameters, NULL, &trace));
    trace->item[1].kind = TR_TRACED_fill;
    assert_int_equal(write_trace(trace, "net", scratch_join(path, scratch_place, "bad.c")), TR_EUNSUPPORTED);
    assert_non_null(
        strstr(tr_error_message(), "layer \"max_pool1\" (max_pool) needs the operation \"fill\""));
    tr_trace_destroy(&trace);
    trial_release(&trial);
}

static void test_a_failure_leaves_no_file(void **state)
{
    (void)state;
    struct job job;
    struct exported exported;
    struct tr_export_settings settings = TR_EXPORT_SETTINGS_INIT;
    tr_exporter *exporter;
    char path[SCRATCH_PATH];
    family_job(&job, &families[2], scratch_place);
    export_job(&job, "whole", &exported);
    settings.checkpoint = exported.checkpoint;
    must_train(tr_exporter_create(&settings, &exporter));
    assert_int_equal(tr_exporter_write(exporter, "c", scratch_join(path, scratch_place, "missing/net.c")),
                     TR_ENOTFOUND);
    assert_false(tr_file_exists(path));
    tr_exporter_destroy(&exporter);
    tr_source_close(&exported.source);
    tr_predictor_destroy(&exported.predictor);
}

static void test_every_allocation_may_fail(void **state)
{
    (void)state;
    for (int n = 0; n < network_count; n++) {
        struct trial trial;
        struct tr_trace *trace;
        char path[SCRATCH_PATH];
        scratch_join(path, scratch_place, "refused.c");
        trial_make(&trial, &networks[n], "ref", 2, 1);
        tr_status expected = tr_trace_create(trial.model, trial.parameters, NULL, &trace);
        if (expected == TR_OK) expected = write_trace(trace, "net", path);
        tr_trace_destroy(&trace);
        for (int64_t at = 0, done = 0; !done; at++) {
            const int64_t live = tr_alloc_live();
            refuse_begin(at);
            tr_status status = tr_trace_create(trial.model, trial.parameters, NULL, &trace);
            if (status == TR_OK) status = write_trace(trace, "net", path);
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
        cmocka_unit_test(test_every_layer_gives_the_same_bits),
        cmocka_unit_test(test_odd_networks),
        cmocka_unit_test(test_texts_longer_than_the_positions),
        cmocka_unit_test(test_the_longest_text_may_be_chosen),
        cmocka_unit_test(test_model_files_give_the_same_bits),
        cmocka_unit_test(test_a_part_larger_than_the_image),
        cmocka_unit_test(test_images_of_numbers),
        cmocka_unit_test(test_declarations),
        cmocka_unit_test(test_functions_give_the_same_bits),
        cmocka_unit_test(test_constants_are_exact),
        cmocka_unit_test(test_a_parameter_that_is_no_number),
        cmocka_unit_test(test_an_operation_without_counterpart),
        cmocka_unit_test(test_a_failure_leaves_no_file),
        cmocka_unit_test(test_every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, set_up, scratch_place_remove);
}
