/* The figure that judges a run: its names, in which direction it is better, and which evaluations have it. */
#include "job/file/monitor.h"

#include "base/alloc.h"
#include "scratch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

static void figures_have_a_direction(void **state)
{
    static const struct {
        const char *monitor, *figure;
        bool rises;
    } cases[] = {
        {NULL, "loss", false},
        {"loss", "loss", false},
        {"perplexity", "perplexity", false},
        {"mae", "mae", false},
        {"rmse", "rmse", false},
        {"mae_0", "mae_0", false},
        {"mae_11", "mae_11", false},
        {"r2", "r2", true},
        {"accuracy", "accuracy", true},
        {"macro_f1", "f1", true},
        {"f1", "f1", true},
        {"macro_precision", "precision", true},
        {"accuracy_1", "accuracy_1", true},
        {"macro", "macro", true},
        {"roc_auc", "roc_auc", true},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_string_equal(tr_monitor_figure(cases[i].monitor), cases[i].figure);
        assert_int_equal(tr_monitor_rises(cases[i].monitor), cases[i].rises);
        assert_true(tr_monitor_cost(cases[i].monitor, 0.25) == (cases[i].rises ? -0.25 : 0.25));
    }
}

static void names_are_known_without_a_job(void **state)
{
    static const char *const good[] = {
        "loss",           "accuracy",    "perplexity", "precision", "recall",   "f1",
        "roc_auc",        "exact_match", "mae",        "rmse",      "r2",       "mean_iou",
        "pixel_accuracy", "top_5",       "accuracy_0", "mae_3",     "macro_f1",
    };
    static const char *const bad[] = {"", "top_", "top_x", "accuracy_", "mae_one", "top", "macro_", "f2"};
    (void)state;
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++)
        assert_int_equal(tr_monitor_check_name("--by", good[i]), TR_OK);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_int_equal(tr_monitor_check_name("--by", bad[i]), TR_EINVAL);
    assert_string_equal(tr_error_message(),
                        "--by \"f2\" is none of loss, accuracy, perplexity, precision, recall, f1, roc_auc, "
                        "exact_match, mae, rmse, r2, mean_iou, pixel_accuracy; did you mean \"f1\"?");
}

static tr_status open_with(const char *text, const char *monitor)
{
    char set[64];
    const char *const sets[] = {set};
    const struct tr_job_settings settings = {.set = sets, .set_count = 1};
    const struct tr_job_text model = {text, strlen(text), "m.yaml", scratch_place};
    struct tr_job *job = NULL;
    snprintf(set, sizeof set, "train.monitor=%s", monitor);
    const tr_status status = tr_job_open_text(&model, &settings, &job);
    tr_job_destroy(&job);
    return status;
}

#define TRAIN      "optimizer: {rule: sgd, rate: 1}\ntrain: {batch: 2, steps: 1, evaluate_every: 1"
#define DATA(more) "data: {train: {csv: {path: t.csv" more "}}, validation: {csv: {path: t.csv" more "}}}\n"

/* Evaluations of each kind of job have these figures and no others; macro_ is a mean over classes. */
static void jobs_have_figures(void **state)
{
    static const struct {
        const char *text, *figures; /* as they are listed */
        bool macro;                 /* whether classes have a mean */
    } cases[] = {
        {DATA("") "layers: [dense: 3]\n" TRAIN "}",
         "loss, accuracy, precision, recall, f1, roc_auc, perplexity", true},
        {DATA("") "layers: [dense: 3]\n" TRAIN ", top_k: 2}",
         "loss, accuracy, top_2, precision, recall, f1, roc_auc, perplexity", true},
        {DATA("") "layers: [dense: 3]\n" TRAIN ", top_k: 3}",
         "loss, accuracy, precision, recall, f1, roc_auc, perplexity", true},
        {DATA(", label: value") "layers: [dense: 1]\nloss: mean_squared_error\n" TRAIN "}",
         "loss, mae, rmse, r2", false},
        {DATA(", label: value") "layers: [dense: 1]\nloss: binary_cross_entropy\n" TRAIN "}",
         "loss, accuracy, exact_match, precision, recall, f1, roc_auc", true},
        {DATA(", label: value, label_columns: [1, 2]") "layers: [dense: 4]\n"
                                                       "loss: [{kind: softmax_cross_entropy, outputs: 3}, "
                                                       "{kind: huber, outputs: 1}]\n" TRAIN "}",
         "loss, accuracy, accuracy_0, mae_1", false},
    };
    (void)state;
    scratch_write_text("t.csv", "1,0,0\n2,1,1\n3,2,1\n");
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char listed[256], name[32], text[512];
        snprintf(text, sizeof text, "name: n\n%s", cases[i].text);
        assert_int_equal(open_with(text, "nothing"), TR_EINVAL);
        snprintf(listed, sizeof listed,
                 "monitor: figure \"nothing\" is none of %s (what evaluations of this network measure)",
                 cases[i].figures);
        if (!strstr(tr_error_message(), listed))
            fail_msg("\"%s\" has not \"%s\"", tr_error_message(), listed);
        for (const char *at = cases[i].figures; *at; at += strspn(at, ", ")) {
            const size_t length = strcspn(at, ",");
            snprintf(name, sizeof name, "%.*s", (int)length, at);
            if (open_with(text, name) != TR_OK) fail_msg("%s: %s", name, tr_error_message());
            at += length;
        }
        assert_int_equal(open_with(text, "macro_loss"), TR_EINVAL);
        assert_int_equal(open_with(text, "macro_accuracy"), TR_EINVAL);
        for (int k = 0; k < 3; k++) {
            static const char *const means[] = {"precision", "recall", "f1"};
            snprintf(name, sizeof name, "macro_%s", means[k]);
            assert_int_equal(open_with(text, name), cases[i].macro ? TR_OK : TR_EINVAL);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(figures_have_a_direction),
        cmocka_unit_test(names_are_known_without_a_job),
        cmocka_unit_test(jobs_have_figures),
    };
    return cmocka_run_group_tests_name("job.monitor", tests, scratch_place_make, scratch_place_remove);
}
