/* Jobs that standardize their columns: whoever predicts gives the numbers of the data set as they are, to the
 * predictor and to what is exported alike. */
#include "export/program.h"
#include "io/proto/onnx.pb-c.h"
#include "support/training.h"

#include "base/text/text.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

enum { ROWS = 60, COLUMNS = 3 };

static char scratch[SCRATCH_PATH], run[SCRATCH_PATH];
static float row[ROWS][COLUMNS];
static double mean[COLUMNS], deviation[COLUMNS]; /* of the columns, as the test finds them */
static float expected[ROWS];                     /* what the network makes of the rows of the data set */

/* Columns of very different sizes, one of them far from 0 for its width. */
static void make_rows(void)
{
    for (int i = 0; i < ROWS; i++) {
        row[i][0] = (float)(40000 + 17 * (i * 7 % ROWS));
        row[i][1] = (float)(1e-3 * (i % 11));
        row[i][2] = (float)(-5 + 0.25 * (i * i % 13));
    }
    for (int k = 0; k < COLUMNS; k++) {
        double sum = 0, squares = 0;
        for (int i = 0; i < ROWS; i++) sum += (double)row[i][k];
        mean[k] = sum / ROWS;
        for (int i = 0; i < ROWS; i++)
            squares += ((double)row[i][k] - mean[k]) * ((double)row[i][k] - mean[k]);
        deviation[k] = sqrt(squares / ROWS);
    }
}

static const char *in_scratch(const char *name)
{
    static char path[4][SCRATCH_PATH];
    static int next;
    return scratch_join(path[next++ % 4], scratch, name);
}

static void write_table(void)
{
    struct tr_text text = TR_TEXT_INIT;
    char *bytes;
    for (int i = 0; i < ROWS; i++)
        tr_text_addf(&text, "%.9g,%.9g,%.9g,%.9g\n", (double)row[i][0], (double)row[i][1], (double)row[i][2],
                     0.01 * (double)row[i][0] - (double)row[i][2]);
    must_train(tr_text_finish(&text, &bytes));
    must_train(tr_file_write_atomic(NULL, in_scratch("table.csv"), bytes, strlen(bytes)));
    tr_text_free(bytes);
}

static void train(const char *standardize, const char *name)
{
    static const char model[] = "name: columns\n"
                                "data:\n"
                                "  train: {csv: {path: table.csv, label: value}}\n"
                                "  test: {csv: {path: table.csv, label: value}}\n"
                                "layers: [{dense: {units: 4, activation: tanh}}, {dense: 1}]\n"
                                "loss: mean_squared_error\n"
                                "optimizer: {rule: adam, rate: 0.1}\n"
                                "train: {batch: 20, steps: 60, log_every: 0}\n";
    struct job job;
    struct outcome outcome;
    const char *path = in_scratch("columns.yaml");
    must_train(tr_file_write_atomic(NULL, path, model, sizeof model - 1));
    job_begin(&job, path);
    job_set(&job, standardize);
    job.settings.out = scratch_join(run, scratch, name);
    must_train(tr_file_remove(NULL, run)); /* of an earlier test */
    job_outcome(&job, &outcome);
    if (outcome.status != TR_OK) fail_msg("%s", outcome.message);
}

static tr_predictor *predictor(void)
{
    struct tr_predict_settings settings = TR_PREDICT_SETTINGS_INIT;
    tr_predictor *out;
    settings.checkpoint = run;
    settings.threads = 1;
    must_train(tr_predictor_create(&settings, &out));
    return out;
}

/* Trains, and notes what the network makes of its own data set. */
static void begin(const char *standardize, const char *name)
{
    tr_source *source;
    train(standardize, name);
    tr_predictor *own = predictor();
    must_train(tr_predictor_open_data(own, "test", &source));
    must_train(tr_predictor_source(own, source, 0, ROWS, expected));
    tr_source_close(&source);
    tr_predictor_destroy(&own);
}

static struct tr_file_content written;

/* Writes the network; the text of the file stays until the next one. */
static const char *export_as(const char *format, const char *path)
{
    struct tr_export_settings settings = TR_EXPORT_SETTINGS_INIT;
    tr_exporter *exporter;
    settings.checkpoint = run;
    settings.name = "net";
    must_train(tr_exporter_create(&settings, &exporter));
    must_train(tr_exporter_write(exporter, format, path));
    tr_exporter_destroy(&exporter);
    tr_file_content_free(&written);
    must_train(tr_file_read(path, 1 << 20, &written));
    return written.data;
}

static void expect_bits(const char *how, int i, float got)
{
    if (memcmp(&got, &expected[i], sizeof got) != 0)
        fail_msg("%s: %a instead of %a for row %d", how, (double)got, (double)expected[i], i);
}

static void the_predictor_takes_rows_as_they_are(void **state)
{
    (void)state;
    static const char *const switches[] = {"data.train.csv.standardize=true",
                                           "data.train.csv.standardize=false"};
    for (int s = 0; s < 2; s++) {
        float output;
        begin(switches[s], s ? "plain" : "scaled");
        tr_predictor *own = predictor();
        for (int i = 0; i < ROWS; i++) {
            must_train(tr_predictor_floats(own, row[i], &output));
            expect_bits(switches[s], i, output);
        }
        tr_predictor_destroy(&own);
    }
    /* The targets lie between 400 and 420: the network has learned something. */
    begin(switches[0], "scaled");
    for (int i = 0; i < ROWS; i++) assert_true(fabsf(expected[i]) > 1);
}

typedef void predict_values(const float *input, float *output, float *workspace);

static void programs_of_c_take_rows_as_they_are(void **state)
{
    (void)state;
    begin("data.train.csv.standardize=true", "scaled");
    const char *path = in_scratch("columns.c");
    export_as("c", path);
    for (const char *const *compiler = program_compilers(); *compiler; compiler++) {
        void *program = program_open(*compiler, path);
        void (*predict)(void) = program_function(program, "net_predict");
        for (int i = 0; i < ROWS; i++) {
            float output, workspace[64];
            ((predict_values *)predict)(row[i], &output, workspace);
            expect_bits(*compiler, i, output);
        }
        program_close(program);
    }
}

static const float *constant(const Onnx__GraphProto *graph, const char *name)
{
    for (size_t i = 0; i < graph->n_initializer; i++) {
        const Onnx__TensorProto *tensor = graph->initializer[i];
        if (strcmp(tensor->name, name) != 0) continue;
        assert_int_equal(tensor->raw_data.len, COLUMNS * sizeof(float));
        return (const float *)(const void *)tensor->raw_data.data;
    }
    fail_msg("there is no constant %s", name);
    return NULL;
}

/* The entry of the graph by hand, in floats as its runtimes compute it. */
static void graphs_take_rows_as_they_are(void **state)
{
    (void)state;
    static const char *const operations[] = {"Sub", "Sub", "Div", "Gemm"};
    struct tr_file_content content;
    begin("data.train.csv.standardize=true", "scaled");
    const char *path = in_scratch("columns.onnx");
    export_as("onnx", path);
    must_train(tr_file_read(path, 1 << 20, &content));
    Onnx__ModelProto *model = onnx__model_proto__unpack(NULL, content.size, (const uint8_t *)content.data);
    tr_file_content_free(&content);
    assert_non_null(model);
    const Onnx__GraphProto *graph = model->graph;
    for (size_t i = 0; i < 4; i++) assert_string_equal(graph->node[i]->op_type, operations[i]);
    assert_string_equal(graph->node[0]->input[0], "input");
    assert_string_equal(graph->node[3]->input[0], graph->node[2]->output[0]);
    const float *first = constant(graph, graph->node[0]->input[1]),
                *rest = constant(graph, graph->node[1]->input[1]),
                *divisor = constant(graph, graph->node[2]->input[1]);
    for (int i = 0; i < ROWS; i++)
        for (int k = 0; k < COLUMNS; k++) {
            volatile float centred = row[i][k] - first[k];
            float scaled = (centred - rest[k]) / divisor[k];
            double right = ((double)row[i][k] - mean[k]) / deviation[k];
            if (fabs((double)scaled - right) > 3e-7 * (1 + fabs(right)))
                fail_msg("column %d of row %d is %.9g, not %.9g", k, i, (double)scaled, right);
        }
    onnx__model_proto__free_unpacked(model, NULL);
}

static void modules_prepare_rows(void **state)
{
    (void)state;
    char number[TR_TEXT_NUMBER_SIZE];
    begin("data.train.csv.standardize=true", "scaled");
    const char *text = export_as("torch", in_scratch("columns.py"));
    assert_non_null(strstr(text, "    def prepare(values):\n"));
    for (int k = 0; k < COLUMNS; k++) {
        assert_non_null(strstr(text, tr_text_from_double(mean[k], number)));
        assert_non_null(strstr(text, tr_text_from_double(deviation[k], number)));
    }
}

/* Rows that were taken as they are stay as they are. */
static void nothing_is_scaled_that_was_not(void **state)
{
    (void)state;
    begin("data.train.csv.standardize=false", "plain");
    assert_null(strstr(export_as("torch", in_scratch("plain.py")), "prepare"));
    assert_null(strstr(export_as("c", in_scratch("plain.c")), "deviation"));
    const char *path = in_scratch("plain.onnx");
    struct tr_file_content content;
    export_as("onnx", path);
    must_train(tr_file_read(path, 1 << 20, &content));
    Onnx__ModelProto *model = onnx__model_proto__unpack(NULL, content.size, (const uint8_t *)content.data);
    tr_file_content_free(&content);
    assert_non_null(model);
    assert_string_equal(model->graph->node[0]->op_type, "Gemm");
    onnx__model_proto__free_unpacked(model, NULL);
}

static int set_up(void **state)
{
    (void)state;
    scratch_make(scratch);
    make_rows();
    write_table();
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    tr_file_content_free(&written);
    scratch_remove(scratch);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_predictor_takes_rows_as_they_are),
        cmocka_unit_test(programs_of_c_take_rows_as_they_are),
        cmocka_unit_test(graphs_take_rows_as_they_are),
        cmocka_unit_test(modules_prepare_rows),
        cmocka_unit_test(nothing_is_scaled_that_was_not),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
