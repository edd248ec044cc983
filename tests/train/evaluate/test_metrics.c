/* Metrics by hand: small cases whose figures anyone can count. Larger ones are judged by scikit-learn
 * (tests/interop/test_metrics.py). */
#include "train/evaluate/case_metrics.h"

#include "base/alloc.h"
#include "train/evaluate/evaluate.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <math.h>
#include <cmocka.h>

/* Losses of tokens have a mean, an accuracy and a perplexity, and no more. */
static void tokens_have_none(void **state)
{
    (void)state;
    static const struct tr_evaluated_row rows[] = {{3, 2, -1, -1, -1, 3}, {1, 0, -1, -1, -1, 1}};
    struct tr_metrics *metrics;
    struct case_job made;
    make_job(&made, "softmax_cross_entropy", 3, 2);
    made.model.output.sequence = true;
    assert_int_equal(tr_metrics_width(&made.job, 2), 0);
    assert_int_equal(tr_metrics_make(&made.job, 2, rows, NULL, 1, &metrics), TR_OK);
    assert_null(metrics);
    struct tr_evaluation evaluation = tr_evaluation_of(rows, 2);
    near(evaluation.loss, 1);
    near(evaluation.accuracy, 0.5);
    /* Of no labels both are 0. */
    static const struct tr_evaluated_row bare[] = {{0, 0, -1, -1, -1, 0}};
    evaluation = tr_evaluation_of(bare, 1);
    near(evaluation.loss, 0);
    near(evaluation.accuracy, 0);
}

/* Three classes, of which the third is expected once and never answered. */
static void classes_are_counted(void **state)
{
    (void)state;
    static const float answers[] = {.5f, .3f, .2f, .1f, .6f, .3f, .4f, .4f,
                                    .2f, .3f, .5f, .2f, .2f, .5f, .3f};
    static const int32_t labels[] = {0, 1, 1, 1, 2}, answered[] = {0, 1, 0, 1, 1};
    struct tr_evaluated_row rows[5];
    struct case_job made;
    make_job(&made, "softmax_cross_entropy", 3, 2);
    assert_int_equal(tr_metrics_width(&made.job, 5), 3);
    for (int i = 0; i < 5; i++)
        rows[i] = (struct tr_evaluated_row){
            0, 0, labels[i], answered[i], tr_metrics_place(answers + 3 * i, 3, labels[i]), 1};
    assert_int_equal(rows[2].place, 1); /* the first of equals stands before it */
    struct tr_metrics *metrics = measure(&made, 5, rows, answers, 1);
    near(metric(metrics, "top_2"), 1);
    near(of_output(metrics, 0, "precision"), 1.0 / 2);
    near(of_output(metrics, 0, "recall"), 1);
    near(of_output(metrics, 1, "precision"), 2.0 / 3);
    near(of_output(metrics, 1, "recall"), 2.0 / 3);
    near(of_output(metrics, 2, "precision"), 0);
    near(of_output(metrics, 2, "f1"), 0);
    near(of_output(metrics, 1, "support"), 3);
    near(metric(metrics, "precision"), (1.0 / 2 + 2.0 / 3) / 3);
    near(metric(metrics, "f1"), (2.0 / 3 + 2.0 / 3) / 3);
    /* Class 0: .5 above all others. Class 1: .6, .4, .5 against .3 and .5: 5 of 6 pairs, one of them half. */
    near(of_output(metrics, 0, "roc_auc"), 1);
    near(of_output(metrics, 1, "roc_auc"), (2 + 1 + 1.5) / 6);
    /* Class 2: .3 against .2, .3, .2, .2. */
    near(of_output(metrics, 2, "roc_auc"), 3.5 / 4);
    near(metric(metrics, "roc_auc"), (1 + 4.5 / 6 + 3.5 / 4) / 3);
    near(metric(metrics, "perplexity"), 2.718281828459045);
    tr_metrics_destroy(&metrics);
    assert_null(metrics);
}

/* Without probabilities there is what follows from the rows; a class that never occurs does not count. */
static void rows_alone_give_most(void **state)
{
    (void)state;
    static const struct tr_evaluated_row rows[] = {{0, 1, 0, 0, 0}, {0, 0, 1, 0, 1}};
    struct case_job made;
    make_job(&made, "softmax_cross_entropy", 3, 3);
    struct tr_metrics *metrics = measure(&made, 2, rows, NULL, 0);
    near(metric(metrics, "precision"), 1.0 / 4);
    near(metric(metrics, "recall"), 1.0 / 2);
    assert_false(has_metric(metrics, "roc_auc"));
    assert_false(has_metric(metrics, "top_3")); /* there are no more classes */
    tr_metrics_destroy(&metrics);
}

static void questions_are_counted(void **state)
{
    (void)state;
    /* Probabilities, then truths. */
    static const float answers[] = {.9f, .2f, 1, 0, .6f, .7f, 0, 1, .4f, .6f, 1, 1, .1f, .3f, 0, 1};
    struct tr_evaluated_row rows[4] = {{0}};
    struct case_job made;
    make_job(&made, "binary_cross_entropy", 2, 5);
    assert_int_equal(tr_metrics_width(&made.job, 4), 4);
    struct tr_metrics *metrics = measure(&made, 4, rows, answers, 0);
    near(metric(metrics, "exact_match"), 1.0 / 4);
    near(of_output(metrics, 0, "precision"), 1.0 / 2);
    near(of_output(metrics, 0, "recall"), 1.0 / 2);
    near(of_output(metrics, 0, "roc_auc"), 3.0 / 4);
    near(of_output(metrics, 1, "recall"), 2.0 / 3);
    near(of_output(metrics, 1, "roc_auc"), 1);
    near(metric(metrics, "f1"), (1.0 / 2 + 4.0 / 5) / 2);
    tr_metrics_destroy(&metrics);
}

static void values_are_measured(void **state)
{
    (void)state;
    static const float answers[] = {1, 5, 2, 5, 2, 5, 4, 5, 6, 6, 6, 5}; /* answer, answer, truth, truth */
    struct tr_evaluated_row rows[3] = {{0}};
    struct case_job made;
    make_job(&made, "mean_squared_error", 2, 5);
    struct tr_metrics *metrics = measure(&made, 3, rows, answers, 0);
    near(of_output(metrics, 0, "mae"), (1 + 2 + 0) / 3.0);
    near(of_output(metrics, 0, "rmse"), sqrt(5 / 3.0));
    near(of_output(metrics, 0, "r2"), 1 - 5 / 8.0);
    near(of_output(metrics, 1, "r2"), 0); /* the truth never changes, and was missed once */
    near(metric(metrics, "r2"), (1 - 5 / 8.0) / 2);
    near(metric(metrics, "mae"), (1 + 1 / 3.0) / 2);
    tr_metrics_destroy(&metrics);
}

static void what_is_undefined_is_not_a_number(void **state)
{
    (void)state;
    static const float answers[] = {.9f, 1, .6f, 1}; /* all yes */
    static const struct tr_evaluated_row rows[2] = {{0}};
    struct case_job made;
    struct tr_json_writer json;
    char *line;
    make_job(&made, "binary_cross_entropy", 1, 5);
    struct tr_metrics *metrics = measure(&made, 2, rows, answers, 0);
    assert_true(isnan(metric(metrics, "roc_auc")));
    tr_json_begin(&json, false);
    tr_metrics_add(&json, metrics);
    assert_int_equal(tr_json_finish(&json, &line), TR_OK);
    assert_string_equal(
        line, "{\"metrics\":{\"exact_match\":1,\"precision\":1,\"recall\":1,\"f1\":1,\"roc_auc\":null}}");
    tr_free(line);
    tr_metrics_destroy(&metrics);
    /* Too much to keep: values cannot be measured then. */
    assert_int_equal(tr_metrics_width(&made.job, INT64_C(1) << 40), 0);
    assert_int_equal(tr_metrics_make(&made.job, 2, rows, NULL, 0, &metrics), TR_OK);
    assert_null(metrics);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tokens_have_none),     cmocka_unit_test(classes_are_counted),
        cmocka_unit_test(rows_alone_give_most), cmocka_unit_test(questions_are_counted),
        cmocka_unit_test(values_are_measured),  cmocka_unit_test(what_is_undefined_is_not_a_number),
    };
    return cmocka_run_group_tests_name("metrics", tests, NULL, NULL);
}
