/* Metrics of the less common kinds of outputs: several losses, pixels, whole texts, vectors; where they end
 * because there would be too much, and how they are told. */
#include "train/evaluate/case_metrics.h"

#include "base/alloc.h"
#include "base/text/json.h"
#include "refuse.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#define CLASSES "softmax_cross_entropy"

static char *told(const struct tr_metrics *metrics)
{
    struct tr_json_writer json;
    char *line;
    tr_json_begin(&json, false);
    tr_metrics_add(&json, metrics);
    assert_int_equal(tr_json_finish(&json, &line), TR_OK);
    return line;
}

/* Three classes; two values; two questions; probabilities of two classes. */
static void each_loss_has_a_figure(void **state)
{
    (void)state;
    /* Answers, then targets: a class, two values, two questions, two probabilities. */
    static const float answers[] = {.1f, .6f, .3f, 1,    2, .9f, .2f, .4f, .6f, 1, 3, 2.5f, 1, 1, .3f, .7f,
                                    .5f, .2f, .3f, 0,    0, .1f, .7f, .9f, .1f, 2, 1, 0,    0, 1, .6f, .4f,
                                    .2f, .2f, .6f, 1.5f, 4, .6f, .6f, .2f, .8f, 2, 1, 2,    1, 0, .9f, .1f,
                                    0,   0,   1,   1,    1, .4f, .4f, .5f, .4f, 0, 1, 1,    1, 0, .2f, .1f};
    static const struct tr_evaluated_row rows[4] = {{0}};
    struct tr_loss heads[4] = {{.outputs = 3}, {.outputs = 2}, {.outputs = 2}, {.outputs = 2}};
    struct case_job made;
    make_job(&made, "heads", 9, 5);
    heads[0].kind = case_loss(CLASSES);
    heads[1].kind = case_loss("mean_absolute_error");
    heads[2].kind = case_loss("binary_cross_entropy");
    heads[3].kind = case_loss("soft_cross_entropy");
    made.model.loss.head = heads;
    made.model.loss.head_count = 4;
    assert_int_equal(tr_metrics_width(&made.job, 4), 16);
    struct tr_metrics *metrics = measure(&made, 4, rows, answers, 1);
    assert_int_equal(metrics->count, 4);
    near(metric(metrics, "accuracy_0"), 2.0 / 4);
    near(metric(metrics, "mae_1"), (2 + 0.5 + 1 + 0 + 0.5 + 2 + 0 + 0) / 8);
    near(metric(metrics, "accuracy_2"), (1 + 0 + 1 + 1 + 1 + 0 + 0 + 1) / 8.0);
    near(metric(metrics, "accuracy_3"), 3.0 / 4);
    assert_int_equal(metrics->columns, 0);
    char *line = told(metrics);
    assert_string_equal(line, "{\"metrics\":{\"accuracy_0\":0.5,\"mae_1\":0.75,\"accuracy_2\":0.625,"
                              "\"accuracy_3\":0.75}}");
    tr_free(line);
    tr_metrics_destroy(&metrics);
}

/* Of equal numbers the first is the answer, and of equal probabilities the first is asked for. */
static void the_first_of_equals_counts(void **state)
{
    (void)state;
    static const float answers[] = {.2f, .4f, .4f, .5f, .5f, 1, .5f, .5f,
                                    .2f, .4f, .4f, .9f, .1f, 2, .5f, .5f};
    static const struct tr_evaluated_row rows[2] = {{0}};
    struct tr_loss heads[2] = {{.outputs = 3}, {.outputs = 2}};
    struct case_job made;
    make_job(&made, "heads", 5, 5);
    heads[0].kind = case_loss(CLASSES);
    heads[1].kind = case_loss("soft_cross_entropy");
    made.model.loss.head = heads;
    made.model.loss.head_count = 2;
    struct tr_metrics *metrics = measure(&made, 2, rows, answers, 1);
    near(metric(metrics, "accuracy_0"), 0.5);
    near(metric(metrics, "accuracy_1"), 1);
    tr_metrics_destroy(&metrics);
}

/* A class that occurs as an answer alone counts, one that never occurs does not. */
static void pixels_are_counted(void **state)
{
    (void)state;
    /* For each class: right, answered, expected. */
    static const float answers[] = {3, 1, 0, 0, 4, 2, 1, 0, 5, 2, 0, 0, 1, 0, 0, 0, 3, 1, 0, 0, 1, 3, 0, 0};
    static const struct tr_evaluated_row rows[2] = {{0}};
    struct case_job made;
    make_job(&made, CLASSES, 4 * 7, 5);
    made.model.loss.pixels = 7;
    made.model.loss.per = TR_LOSS_PER_PIXEL;
    assert_int_equal(tr_metrics_width(&made.job, 2), 12);
    struct tr_metrics *metrics = measure(&made, 2, rows, answers, 1);
    assert_int_equal(metrics->outputs, 4);
    assert_int_equal(metrics->columns, 4);
    near(of_output(metrics, 0, "iou"), 4 / 9.0);
    near(of_output(metrics, 0, "precision"), 4 / 7.0);
    near(of_output(metrics, 0, "recall"), 4 / 6.0);
    near(of_output(metrics, 0, "support"), 6);
    near(of_output(metrics, 1, "iou"), 1 / 7.0);
    near(of_output(metrics, 1, "precision"), 1 / 3.0);
    near(of_output(metrics, 1, "recall"), 1 / 5.0);
    near(of_output(metrics, 2, "iou"), 0);
    near(of_output(metrics, 2, "precision"), 0);
    near(of_output(metrics, 2, "recall"), 0);
    near(of_output(metrics, 3, "support"), 0);
    near(metric(metrics, "mean_iou"), (4 / 9.0 + 1 / 7.0) / 3);
    near(metric(metrics, "pixel_accuracy"), 5 / 11.0);
    assert_int_equal(metrics->count, 2);
    tr_metrics_destroy(&metrics);
    /* No pixel has a label or an answer. */
    static const float none[24] = {0};
    metrics = measure(&made, 2, rows, none, 1);
    assert_true(isnan(metric(metrics, "mean_iou")));
    near(metric(metrics, "pixel_accuracy"), 0);
    tr_metrics_destroy(&metrics);
}

static void texts_are_right_as_a_whole(void **state)
{
    (void)state;
    static const struct tr_evaluated_row rows[] = {
        {1, 3, -1, -1, -1, 3}, {1, 2, -1, -1, -1, 3}, {1, 1, -1, -1, -1, 1}, {1, 0, -1, -1, -1, 2}};
    struct tr_metrics *metrics;
    struct case_job made;
    make_job(&made, CLASSES, 3, 2);
    made.model.output.sequence = true;
    strcpy(made.job.parts.second, "source");
    assert_int_equal(tr_metrics_width(&made.job, 4), 0);
    metrics = measure(&made, 4, rows, NULL, 1);
    assert_int_equal(metrics->count, 1);
    near(metric(metrics, "exact_match"), 2.0 / 4);
    char *line = told(metrics);
    assert_string_equal(line, "{\"metrics\":{\"exact_match\":0.5}}");
    tr_free(line);
    tr_metrics_destroy(&metrics);
    assert_int_equal(tr_metrics_make(&made.job, 0, rows, NULL, 1, &metrics), TR_OK);
    assert_null(metrics);
    tr_metrics_destroy(&metrics);
    line = told(NULL);
    assert_string_equal(line, "{}");
    tr_free(line);
    refuse_begin(0);
    const tr_status status = tr_metrics_make(&made.job, 4, rows, NULL, 1, &metrics);
    refuse_end();
    assert_int_equal(status, TR_ENOMEM);
    assert_null(metrics);
}

static void vectors_have_none(void **state)
{
    (void)state;
    static const struct tr_evaluated_row rows[2] = {{0}};
    struct tr_metrics *metrics;
    struct case_job made;
    make_job(&made, "triplet", 3, 2);
    assert_int_equal(tr_metrics_width(&made.job, 2), 0);
    assert_int_equal(tr_metrics_make(&made.job, 2, rows, NULL, 1, &metrics), TR_OK);
    assert_null(metrics);
}

/* A loss that is no mean of logarithms has no perplexity. */
static void only_entropies_have_a_perplexity(void **state)
{
    (void)state;
    static const struct tr_evaluated_row rows[] = {{0, 1, 0, 0, 0}, {0, 0, 1, 0, 1}};
    struct case_job made;
    make_job(&made, "focal", 3, 2);
    struct tr_metrics *metrics = measure(&made, 2, rows, NULL, 1);
    assert_false(has_metric(metrics, "perplexity"));
    near(metric(metrics, "top_2"), 1);
    tr_metrics_destroy(&metrics);
    make_job(&made, CLASSES, 3, 1);
    metrics = measure(&made, 2, rows, NULL, 0);
    near(metric(metrics, "perplexity"), 1);
    near(metric(metrics, "top_1"), 0.5);
    tr_metrics_destroy(&metrics);
}

/* Of two classes the curve is that of the second. */
static void curves(void **state)
{
    (void)state;
    static const float answers[] = {.9f, .1f, .4f, .6f, .7f, .3f, .2f, .8f},
                       no_number[] = {.9f, .1f, .4f, .6f, .7f, .3f, .2f, NAN};
    static const struct tr_evaluated_row rows[] = {
        {0, 1, 0, 0, 0, 1}, {0, 0, 0, 1, 1, 1}, {0, 0, 1, 0, 1, 1}, {0, 1, 1, 1, 0, 1}};
    struct case_job made;
    make_job(&made, CLASSES, 2, 5);
    struct tr_metrics *metrics = measure(&made, 4, rows, answers, 1);
    near(of_output(metrics, 0, "roc_auc"), 3.0 / 4);
    near(of_output(metrics, 1, "roc_auc"), 3.0 / 4);
    near(metric(metrics, "roc_auc"), 3.0 / 4);
    tr_metrics_destroy(&metrics);
    metrics = measure(&made, 4, rows, no_number, 1);
    near(of_output(metrics, 0, "roc_auc"), 3.0 / 4);
    assert_true(isnan(of_output(metrics, 1, "roc_auc")));
    assert_true(isnan(metric(metrics, "roc_auc")));
    tr_metrics_destroy(&metrics);
    /* Where all are of one class there are no pairs. */
    metrics = measure(&made, 2, rows, answers, 1);
    assert_true(isnan(of_output(metrics, 0, "roc_auc")));
    assert_true(isnan(of_output(metrics, 1, "roc_auc")));
    tr_metrics_destroy(&metrics);
}

static void too_much_is_not_kept(void **state)
{
    (void)state;
    const int64_t most = INT64_C(1) << 24; /* floats */
    struct case_job made;
    make_job(&made, CLASSES, 100, 5);
    assert_int_equal(tr_metrics_width(&made.job, 1), 100);
    assert_int_equal(tr_metrics_width(&made.job, most / 100), 100);
    assert_int_equal(tr_metrics_width(&made.job, most / 100 + 1), 0);
    assert_int_equal(tr_metrics_width(&made.job, 0), 0);
    make_job(&made, CLASSES, 101, 5);
    assert_int_equal(tr_metrics_width(&made.job, 1), 0);
    make_job(&made, "mean_squared_error", 101, 5);
    assert_int_equal(tr_metrics_width(&made.job, 1), 202);
    make_job(&made, "mean_squared_error", 8, 5);
    assert_int_equal(tr_metrics_width(&made.job, most / 16), 16);
    assert_int_equal(tr_metrics_width(&made.job, most / 16 + 1), 0);
}

static void outputs_are_told_one_by_one(void **state)
{
    (void)state;
    static const float answers[] = {1, 2, 1, 4, 3, 2, 3, 2};
    static float many[2 * 101];
    static const struct tr_evaluated_row rows[2] = {{0}};
    static char *names[] = {"low", "high"};
    struct case_job made;
    make_job(&made, "mean_squared_error", 2, 5);
    made.job.input.classes.item = names;
    made.job.input.classes.count = 2;
    struct tr_metrics *metrics = measure(&made, 2, rows, answers, 0);
    assert_string_equal(metrics->name[1], "high");
    char *line = told(metrics);
    assert_string_equal(line, "{\"metrics\":{\"mae\":0.5,\"rmse\":0.7071067811865476,\"r2\":0},"
                              "\"outputs\":{\"name\":[\"low\",\"high\"],\"mae\":[0,1],"
                              "\"rmse\":[0,1.4142135623730951],\"r2\":[1,-1]}}");
    tr_free(line);
    tr_metrics_destroy(&metrics);
    made.job.input.classes.count = 1; /* names of something else */
    metrics = measure(&made, 2, rows, answers, 0);
    assert_null(metrics->name);
    line = told(metrics);
    assert_null(strstr(line, "name"));
    assert_non_null(strstr(line, "\"outputs\":{\"mae\":[0,1]"));
    tr_free(line);
    tr_metrics_destroy(&metrics);
    for (int outputs = 100; outputs <= 101; outputs++) {
        make_job(&made, "mean_squared_error", outputs, 5);
        metrics = measure(&made, 1, rows, many, 0);
        line = told(metrics);
        assert_true((strstr(line, "outputs") != NULL) == (outputs == 100));
        tr_free(line);
        tr_metrics_destroy(&metrics);
    }
    make_job(&made, "mean_squared_error", 1, 5);
    metrics = measure(&made, 2, rows, many, 0);
    line = told(metrics);
    assert_string_equal(line, "{\"metrics\":{\"mae\":0,\"rmse\":0,\"r2\":1}}");
    tr_free(line);
    tr_metrics_destroy(&metrics);
}

static void without_memory_there_is_an_error(void **state)
{
    (void)state;
    static const float answers[] = {1, 2, 1, 4, 3, 2, 3, 2};
    static const struct tr_evaluated_row rows[2] = {{0}};
    struct case_job made;
    make_job(&made, "mean_squared_error", 2, 5);
    for (int64_t at = 0, done = 0; !done; at++) {
        struct tr_metrics *metrics;
        const int64_t live = tr_alloc_live();
        refuse_begin(at);
        const tr_status status = tr_metrics_make(&made.job, 2, rows, answers, 0, &metrics);
        done = refuse_end();
        assert_int_equal(status, done ? TR_OK : TR_ENOMEM);
        assert_true((metrics != NULL) == done);
        tr_metrics_destroy(&metrics);
        assert_int_equal(tr_alloc_live(), live);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_loss_has_a_figure),
        cmocka_unit_test(the_first_of_equals_counts),
        cmocka_unit_test(pixels_are_counted),
        cmocka_unit_test(texts_are_right_as_a_whole),
        cmocka_unit_test(vectors_have_none),
        cmocka_unit_test(only_entropies_have_a_perplexity),
        cmocka_unit_test(curves),
        cmocka_unit_test(too_much_is_not_kept),
        cmocka_unit_test(outputs_are_told_one_by_one),
        cmocka_unit_test(without_memory_there_is_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
