/* Jobs with joined data and several losses: what is exported takes each source as its data set has it, and
 * gives what the predictor gives. */
#include "base/text/text.h"
#include "export/onnx/rules.h"
#include "export/c/program.h"
#include "io/proto/onnx.pb-c.h"
#include "support/training.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

enum { ROWS = 40, LEFT = 5 * 6, RIGHT = 4 * 7 * 2, FACTS = 3, INPUTS = LEFT + RIGHT + FACTS, OUTPUTS = 6 };

static char run[SCRATCH_PATH];
static float row[ROWS][INPUTS]; /* left, right, facts, as they are in the data */
static float expected[ROWS][OUTPUTS];

static const char model[] =
    "name: joined\n"
    "data:\n"
    "  train: &set\n"
    "    join:\n"
    "      sources:\n"
    "        facts: {csv: {path: facts.csv, label: value, label_columns: [3, 4, 5, 6], standardize: true}}\n"
    "        left: {idx: {images: left.idx}}\n"
    "        right: {idx: {images: right.idx}}\n"
    "  test: *set\n"
    "input: {crop: [3, 5], scale: 1/64, shift: 0.25}\n"
    "layers:\n"
    "- conv: {filters: 3, kernel: 3, activation: tanh, from: left}\n"
    "- global_average_pool: {name: a}\n"
    "- dense: {units: 4, activation: tanh, from: right, name: b}\n"
    "- concat: {from: [a, b, facts]}\n"
    "- dense: {units: 8, activation: tanh, name: shared}\n"
    "- dense: {units: 3, from: shared, name: kind}\n"
    "- dense: {units: 2, from: shared, name: questions}\n"
    "- dense: {units: 1, from: shared, name: price}\n"
    "- concat: {from: [kind, questions, price]}\n"
    "loss:\n"
    "- {kind: softmax_cross_entropy, outputs: 3}\n"
    "- {kind: binary_cross_entropy, outputs: 2}\n"
    "- {kind: huber, outputs: 1, weight: 0.5}\n"
    "optimizer: {rule: adam, rate: 0.01}\n"
    "train: {batch: 20, steps: 30, log_every: 0}\n";

static void write_images(const char *name, const uint8_t *head, size_t length, int first, int count)
{
    uint8_t bytes[32 + ROWS * (LEFT + RIGHT)];
    memcpy(bytes, head, length);
    for (int i = 0; i < ROWS; i++)
        for (int k = 0; k < count; k++) bytes[length++] = (uint8_t)row[i][first + k];
    must_train(tr_file_write_atomic(NULL, scratch_in(name), bytes, length));
}

static void write_data(void)
{
    static const uint8_t left[] = {0, 0, 8, 3, 0, 0, 0, ROWS, 0, 0, 0, 5, 0, 0, 0, 6};
    static const uint8_t right[] = {0, 0, 8, 4, 0, 0, 0, ROWS, 0, 0, 0, 4, 0, 0, 0, 7, 0, 0, 0, 2};
    struct tr_text text = TR_TEXT_INIT;
    char *bytes;
    for (int i = 0; i < ROWS; i++) {
        for (int k = 0; k < LEFT + RIGHT; k++) row[i][k] = (float)((i * 31 + k * 57 + i * k) % 256);
        row[i][LEFT + RIGHT] = (float)(40000 + 17 * (i * 7 % ROWS));
        row[i][LEFT + RIGHT + 1] = (float)(1e-3 * (i % 11));
        row[i][LEFT + RIGHT + 2] = (float)(-5 + 0.25 * (i * i % 13));
        for (int k = LEFT + RIGHT; k < INPUTS; k++) tr_text_addf(&text, "%.9g,", (double)row[i][k]);
        tr_text_addf(&text, "%d,%d,%d,%g\n", i % 3, i % 2, i % 7 > 3, 0.1 * (i % 11));
    }
    must_train(tr_text_finish(&text, &bytes));
    must_train(tr_file_write_atomic(NULL, scratch_in("facts.csv"), bytes, strlen(bytes)));
    tr_text_free(bytes);
    write_images("left.idx", left, sizeof left, 0, LEFT);
    write_images("right.idx", right, sizeof right, LEFT, RIGHT);
}

/* Trains, and notes what the predictor makes of the data. */
static int set_up(void **state)
{
    struct job job;
    struct outcome outcome;
    struct tr_predict_settings settings = TR_PREDICT_SETTINGS_INIT;
    tr_predictor *predictor;
    tr_source *source;
    scratch_place_make(state);
    write_data();
    must_train(tr_file_write_atomic(NULL, scratch_in("joined.yaml"), model, sizeof model - 1));
    job_begin(&job, scratch_in("joined.yaml"));
    job.settings.out = settings.checkpoint = scratch_join(run, scratch_place, "run");
    job_outcome(&job, &outcome);
    if (outcome.status != TR_OK) fail_msg("%s", outcome.message);
    settings.threads = 1;
    must_train(tr_predictor_create(&settings, &predictor));
    must_train(tr_predictor_open_data(predictor, "test", &source));
    must_train(tr_predictor_source(predictor, source, 0, ROWS, expected[0]));
    tr_source_close(&source);
    tr_predictor_destroy(&predictor);
    return 0;
}

static void export_as(const char *format, const char *path, struct tr_file_content *content)
{
    struct tr_export_settings settings = TR_EXPORT_SETTINGS_INIT;
    tr_exporter *exporter;
    settings.checkpoint = run;
    settings.name = "net";
    must_train(tr_exporter_create(&settings, &exporter));
    must_train(tr_exporter_write(exporter, format, path));
    tr_exporter_destroy(&exporter);
    must_train(tr_file_read(path, 1 << 20, content));
}

/* Read as docs/reference/checkpoints.md says. */
static void the_checkpoint_tells_the_scaling(void **state)
{
    (void)state;
    static const char head[] = "facts\ntrireme scaling 1, 0 classes, 3 lines\n";
    char path[SCRATCH_PATH];
    struct tr_file_content content;
    must_train(tr_file_read(scratch_join(path, run, "checkpoint-00000030/sources.txt"), 1 << 16, &content));
    char *at = strstr(content.data, head);
    assert_non_null(at);
    at += strlen(head);
    for (int k = LEFT + RIGHT; k < INPUTS; k++) {
        double sum = 0, squares = 0;
        for (int i = 0; i < ROWS; i++) sum += (double)row[i][k];
        for (int i = 0; i < ROWS; i++) {
            const double away = (double)row[i][k] - sum / ROWS;
            squares += away * away;
        }
        const double mean = strtod(at, &at), deviation = strtod(at, &at);
        assert_true(fabs(mean - sum / ROWS) <= 1e-12 * fabs(mean));
        assert_true(fabs(deviation - sqrt(squares / ROWS)) <= 1e-9 * deviation);
    }
    tr_file_content_free(&content);
}

typedef void predict_values(const float *input, float *output, float *workspace);
typedef void to_probabilities(const float *scores, float *probabilities);

/* Images before numbers, whatever the order in the file. */
static void programs_of_c_give_what_the_predictor_gives(void **state)
{
    (void)state;
    struct tr_file_content content;
    const char *path = scratch_in("joined.c");
    export_as("c", path, &content);
    assert_non_null(strstr(content.data, "#define NET_INPUTS    89\n"));
    assert_non_null(strstr(content.data, "left: an image, height 5, width 6, channels 1"));
    assert_non_null(strstr(content.data, "facts: 3 numbers as in the data"));
    tr_file_content_free(&content);
    for (const char *const *compiler = program_compilers(); *compiler; compiler++) {
        void *program = program_open(*compiler, path);
        void (*predict)(void) = program_function(program, "net_predict");
        void (*answer)(void) = program_function(program, "net_probabilities");
        for (int i = 0; i < ROWS; i++) {
            float output[OUTPUTS], workspace[4096];
            ((predict_values *)predict)(row[i], output, workspace);
            ((to_probabilities *)answer)(output, output);
            for (int k = 0; k < OUTPUTS; k++)
                if (memcmp(&output[k], &expected[i][k], sizeof output[k]) != 0)
                    fail_msg("%s: output %d of example %d is %a, the predictor gives %a", *compiler, k, i,
                             (double)output[k], (double)expected[i][k]);
        }
        program_close(program);
    }
}

static void expect_port(const Onnx__ValueInfoProto *value, const char *name, int rank, const int *size)
{
    const Onnx__TensorShapeProto *shape = value->type->tensor_type->shape;
    assert_string_equal(value->name, name);
    assert_int_equal(shape->n_dim, rank + 1); /* the batch is the first */
    for (int i = 0; i < rank; i++) assert_int_equal(shape->dim[i + 1]->dim_value, size[i]);
}

static void graphs_have_an_input_for_each_source(void **state)
{
    (void)state;
    static const int left[] = {1, 5, 6}, right[] = {2, 4, 7}, facts[] = {3}, outputs[] = {OUTPUTS};
    struct tr_file_content content;
    export_as("onnx", scratch_in("joined.onnx"), &content);
    Onnx__ModelProto *read = onnx__model_proto__unpack(NULL, content.size, (const uint8_t *)content.data);
    tr_file_content_free(&content);
    assert_non_null(read);
    const Onnx__GraphProto *graph = read->graph;
    onnx_expect_sound(graph);
    assert_int_equal(graph->n_input, 3);
    expect_port(graph->input[0], "left", 3, left);
    expect_port(graph->input[1], "right", 3, right);
    expect_port(graph->input[2], "facts", 1, facts);
    assert_int_equal(graph->n_output, 2);
    expect_port(graph->output[0], "output", 1, outputs);
    expect_port(graph->output[1], "probabilities", 1, outputs);
    int softmax = 0, sigmoid = 0, subtract = 0;
    for (size_t i = 0; i < graph->n_node; i++) {
        softmax += strcmp(graph->node[i]->op_type, "Softmax") == 0;
        sigmoid += strcmp(graph->node[i]->op_type, "Sigmoid") == 0;
        subtract += strcmp(graph->node[i]->op_type, "Sub") == 0;
    }
    assert_int_equal(softmax, 1);
    assert_int_equal(sigmoid, 1);
    assert_int_equal(subtract, 2); /* the mean, in two parts */
    onnx__model_proto__free_unpacked(read, NULL);
}

static void modules_prepare_all_sources(void **state)
{
    (void)state;
    static const char *const wanted[] = {
        "    def prepare(left, right, facts):\n",
        "        x = ((facts.to(torch.float64) - mean) / deviation).to(torch.float32)\n",
        "        x = F.pad(x, (0, -1, -1, -1))\n",
        ("        part = torch.split(scores, (3, 2, 1), -1)\n"
         "        return torch.cat((torch.softmax(part[0], -1), torch.sigmoid(part[1]), part[2]), -1)\n"),
    };
    struct tr_file_content content;
    export_as("torch", scratch_in("joined.py"), &content);
    for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++)
        if (!strstr(content.data, wanted[i])) fail_msg("no\n%sin\n%s", wanted[i], content.data);
    tr_file_content_free(&content);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_checkpoint_tells_the_scaling),
        cmocka_unit_test(programs_of_c_give_what_the_predictor_gives),
        cmocka_unit_test(graphs_have_an_input_for_each_source),
        cmocka_unit_test(modules_prepare_all_sources),
    };
    return cmocka_run_group_tests(tests, set_up, scratch_place_remove);
}
