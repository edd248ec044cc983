/* Jobs that standardize their columns: whoever predicts gives the numbers of the data set as they are, to the
 * predictor and to what is exported alike. */
#include "export/onnx/file.h"
#include "export/onnx/rules.h"
#include "export/onnx/run.h"
#include "export/c/program.h"
#include "io/proto/onnx.pb-c.h"
#include "trireme/arrays.h"
#include "support/training.h"

#include "base/text/text.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

enum { ROWS = 60, COLUMNS = 3 };

static char run[SCRATCH_PATH];
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

static void write_table(void)
{
    struct tr_text text = TR_TEXT_INIT;
    char *bytes;
    for (int i = 0; i < ROWS; i++)
        tr_text_addf(&text, "%.9g,%.9g,%.9g,%.9g\n", (double)row[i][0], (double)row[i][1], (double)row[i][2],
                     0.01 * (double)row[i][0] - (double)row[i][2]);
    must_train(tr_text_finish(&text, &bytes));
    must_train(tr_file_write_atomic(NULL, scratch_in("table.csv"), bytes, strlen(bytes)));
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
    const char *path = scratch_in("columns.yaml");
    must_train(tr_file_write_atomic(NULL, path, model, sizeof model - 1));
    job_begin(&job, path);
    job_set(&job, standardize);
    job.settings.out = scratch_join(run, scratch_place, name);
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
    const char *path = scratch_in("columns.c");
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
    const char *path = scratch_in("columns.onnx");
    export_as("onnx", path);
    must_train(tr_file_read(path, 1 << 20, &content));
    Onnx__ModelProto *model = onnx__model_proto__unpack(NULL, content.size, (const uint8_t *)content.data);
    tr_file_content_free(&content);
    assert_non_null(model);
    const Onnx__GraphProto *graph = model->graph;
    onnx_expect_sound(graph);
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
    const char *text = export_as("torch", scratch_in("columns.py"));
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
    assert_null(strstr(export_as("torch", scratch_in("plain.py")), "prepare"));
    assert_null(strstr(export_as("c", scratch_in("plain.c")), "deviation"));
    const char *path = scratch_in("plain.onnx");
    struct tr_file_content content;
    export_as("onnx", path);
    must_train(tr_file_read(path, 1 << 20, &content));
    Onnx__ModelProto *model = onnx__model_proto__unpack(NULL, content.size, (const uint8_t *)content.data);
    tr_file_content_free(&content);
    assert_non_null(model);
    assert_string_equal(model->graph->node[0]->op_type, "Gemm");
    onnx_expect_sound(model->graph);
    onnx__model_proto__free_unpacked(model, NULL);
}

/* ---- names and gaps ---- */

enum { NAMED = 5 };
static const char *const named[NAMED] = {"red,1.5,7", "\"dark */ blue\",NA,9", ",2,8", "green,0.25,",
                                         "pink,3,5"};
/* The same as a caller gives it: dark blue, green and red in the order of their bytes. */
static const float given[NAMED][COLUMNS] = {
    {2, 1.5f, 7}, {0, NAN, 9}, {NAN, 2, 8}, {1, 0.25f, NAN}, {-1, 3, 5}};

static void begin_named(bool standardize)
{
    struct tr_text text = TR_TEXT_INIT;
    struct job job;
    struct outcome outcome;
    static const char model[] = "name: columns\n"
                                "data: {train: {csv: {path: named.csv, label: value, categories: 0, missing: "
                                "mean, standardize: %s}}}\n"
                                "layers: [{dense: {units: 4, activation: tanh}}, {dense: 1}]\n"
                                "loss: mean_squared_error\n"
                                "optimizer: {rule: adam, rate: 0.1}\n"
                                "train: {batch: 20, steps: 20, log_every: 0}\n";
    char *bytes, file[sizeof model + 8];
    for (int i = 0; i < ROWS; i++) tr_text_addf(&text, "%s,%d\n", named[i % 4], i % 4);
    must_train(tr_text_finish(&text, &bytes));
    must_train(tr_file_write_atomic(NULL, scratch_in("named.csv"), bytes, strlen(bytes)));
    tr_text_free(bytes);
    const char *path = scratch_in("named.yaml");
    snprintf(file, sizeof file, model, standardize ? "true" : "false");
    must_train(tr_file_write_atomic(NULL, path, file, strlen(file)));
    job_begin(&job, path);
    job.settings.out = scratch_join(run, scratch_place, "named");
    must_train(tr_file_remove(NULL, run));
    job_outcome(&job, &outcome);
    if (outcome.status != TR_OK) fail_msg("%s", outcome.message);
}

/* The graph's output for a row, up to rounding. */
static void expect_of_graph(const Onnx__GraphProto *graph, const float *values, float answer)
{
    static struct onnx_run graph_run;
    double *x = onnx_give(&graph_run, "input", 2, (const int64_t[]){1, COLUMNS});
    for (int i = 0; i < COLUMNS; i++) x[i] = (double)values[i];
    onnx_run(graph, &graph_run);
    const double got = onnx_find(&graph_run, "output")->v[0];
    if (!(fabs(got - (double)answer) <= 1e-4 * fmax(1, fabs((double)answer))))
        fail_msg("%g instead of %g", got, (double)answer);
    onnx_release(&graph_run);
}

static void names_and_gaps_enter_everywhere(void **state)
{
    (void)state;
    begin_named(true);
    tr_predictor *own = predictor();
    struct tr_predict_info info = TR_PREDICT_INFO_INIT;
    float answer[NAMED], value;
    must_train(tr_predictor_info(own, &info));
    assert_int_equal(info.floats, COLUMNS);
    assert_int_equal(tr_predictor_category_count(own, 0), 3);
    assert_int_equal(tr_predictor_category_count(own, 1), 0);
    assert_int_equal(tr_predictor_category_count(own, 3), 0);
    assert_int_equal(tr_predictor_category_count(own, -1), 0);
    assert_string_equal(tr_predictor_category_name(own, 0, 1), "green");
    assert_null(tr_predictor_category_name(own, 0, 3));
    must_train(tr_predictor_category(own, 0, "red", &value));
    assert_true(value == 2);
    must_train(tr_predictor_category(own, 0, "pink", &value));
    assert_true(value == -1);
    assert_int_equal(tr_predictor_category(own, 1, "red", &value), TR_ENOTFOUND);
    for (int i = 0; i < NAMED; i++) must_train(tr_predictor_floats(own, given[i], &answer[i]));
    assert_true(answer[0] != answer[4]);

    /* Rows in memory as a data set, gaps and all. */
    float seen[NAMED];
    struct tr_arrays arrays = TR_ARRAYS_INIT;
    tr_source *source = NULL, *view = NULL;
    arrays.features = (struct tr_array){
        .data = given, .type = TR_ARRAY_FLOAT32, .dimensions = 2, .shape = {NAMED, COLUMNS}};
    must_train(tr_source_from_arrays(&arrays, &source));
    must_train(tr_predictor_view(own, source, &view));
    must_train(tr_predictor_source(own, view, 0, NAMED, seen));
    assert_memory_equal(seen, answer, sizeof seen);
    tr_source_close(&view);
    tr_source_close(&source);
    tr_predictor_destroy(&own);

    const char *path = scratch_in("named.c");
    const char *text = export_as("c", path);
    assert_non_null(strstr(text, "0 dark __ blue, 1 green, 2 red; -1 is none of them. */"));
    for (const char *const *compiler = program_compilers(); *compiler; compiler++) {
        void *program = program_open(*compiler, path);
        void (*predict)(void) = program_function(program, "net_predict");
        for (int i = 0; i < NAMED; i++) {
            float output, workspace[64];
            ((predict_values *)predict)(given[i], &output, workspace);
            if (memcmp(&output, &answer[i], sizeof output) != 0)
                fail_msg("%s: %a instead of %a for row %d", *compiler, (double)output, (double)answer[i], i);
        }
        program_close(program);
    }

    text = export_as("torch", scratch_in("named.py"));
    assert_non_null(strstr(text, "torch.isnan(values)"));
    assert_non_null(strstr(text, "names = {0: [b\"dark */ blue\", b\"green\", b\"red\"]}"));

    static const char *const operations[] = {"IsNaN", "Where", "Gather", "Equal", "Cast", "Equal",
                                             "Where", "Sub",   "Sub",    "Div",   "Gemm"};
    export_as("onnx", scratch_in("named.onnx"));
    Onnx__ModelProto *model = onnx_read(scratch_in("named.onnx"));
    for (size_t i = 0; i < sizeof operations / sizeof operations[0]; i++)
        assert_string_equal(model->graph->node[i]->op_type, operations[i]);
    onnx_expect_sound(model->graph);
    for (int i = 0; i < NAMED; i++) expect_of_graph(model->graph, given[i], answer[i]);
    onnx__model_proto__free_unpacked(model, NULL);
}

/* Means take the place of gaps, with scaling and without, in what is exported, too. */
static void gaps_are_means(void **state)
{
    (void)state;
    static const float gaps[3][COLUMNS] = {{2, NAN, 7}, {0, 1.5f, NAN}, {1, NAN, NAN}};
    static const float means[3][COLUMNS] = {{2, 1.25f, 7}, {0, 1.5f, 8}, {1, 1.25f, 8}};
    for (int standardize = 0; standardize < 2; standardize++) {
        begin_named(standardize);
        tr_predictor *own = predictor();
        float with_gap, filled;
        for (int i = 0; i < 3; i++) {
            must_train(tr_predictor_floats(own, gaps[i], &with_gap));
            must_train(tr_predictor_floats(own, means[i], &filled));
            assert_true(isfinite(filled));
            if (with_gap != filled) fail_msg("row %d: %g, not %g", i, (double)with_gap, (double)filled);
        }
        assert_non_null(strstr(export_as("torch", scratch_in("gaps.py")), "torch.isnan(values)"));
        export_as("onnx", scratch_in("gaps.onnx"));
        Onnx__ModelProto *model = onnx_read(scratch_in("gaps.onnx"));
        for (int i = 0; i < 3; i++) {
            must_train(tr_predictor_floats(own, means[i], &filled));
            expect_of_graph(model->graph, gaps[i], filled);
        }
        onnx__model_proto__free_unpacked(model, NULL);
        const char *path = scratch_in("gaps.c");
        export_as("c", path);
        if (!program_compilers()[0]) skip();
        void *program = program_open(program_compilers()[0], path);
        void (*predict)(void) = program_function(program, "net_predict");
        for (int i = 0; i < 3; i++) {
            float output, workspace[64];
            must_train(tr_predictor_floats(own, means[i], &filled));
            ((predict_values *)predict)(gaps[i], &output, workspace);
            assert_true(output == filled);
        }
        program_close(program);
        tr_predictor_destroy(&own);
    }
}

/* Where means are all that the data set gives, exported programs take them, too. */
static void means_alone_enter(void **state)
{
    (void)state;
    if (!program_compilers()[0]) skip();
    const float gap[COLUMNS] = {row[0][0], NAN, row[0][2]};
    const float full[COLUMNS] = {row[0][0], (float)mean[1], row[0][2]};
    float answer, filled, output, workspace[64];
    begin("data.train.csv.missing=mean", "means");
    tr_predictor *own = predictor();
    must_train(tr_predictor_floats(own, gap, &answer));
    must_train(tr_predictor_floats(own, full, &filled));
    tr_predictor_destroy(&own);
    assert_true(isfinite(answer) && answer == filled);
    const char *path = scratch_in("means.c");
    export_as("c", path);
    void *program = program_open(program_compilers()[0], path);
    void (*predict)(void) = program_function(program, "net_predict");
    ((predict_values *)predict)(gap, &output, workspace);
    program_close(program);
    assert_true(output == answer);
}

static int set_up(void **state)
{
    scratch_place_make(state);
    make_rows();
    write_table();
    return 0;
}

static int tear_down(void **state)
{
    tr_file_content_free(&written);
    return scratch_place_remove(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_predictor_takes_rows_as_they_are),
        cmocka_unit_test(programs_of_c_take_rows_as_they_are),
        cmocka_unit_test(graphs_take_rows_as_they_are),
        cmocka_unit_test(modules_prepare_rows),
        cmocka_unit_test(nothing_is_scaled_that_was_not),
        cmocka_unit_test(names_and_gaps_enter_everywhere),
        cmocka_unit_test(gaps_are_means),
        cmocka_unit_test(means_alone_enter),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
