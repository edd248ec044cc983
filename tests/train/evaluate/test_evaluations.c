/* What evaluations tell: plain losses, each state of a run once. */
#include "support/training.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

static const struct family *everything(void)
{
    int i = 0;
    while (strcmp(families[i].name, "everything") != 0) i++;
    return &families[i];
}

/* The mean of -log p over the labels of a data set, from the probabilities that the predictor gives. */
static double cross_entropy(tr_predictor *predictor, const tr_source *source)
{
    struct tr_predict_info info = TR_PREDICT_INFO_INIT;
    must_train(tr_predictor_info(predictor, &info));
    float output[16];
    assert_true(info.outputs <= 16);
    double sum = 0;
    int64_t count = tr_source_info(source)->count;
    for (int64_t i = 0; i < count; i++) {
        int32_t label;
        must_train(tr_predictor_source(predictor, source, i, 1, output));
        must_train(tr_source_read(source, i, NULL, 0, NULL, &label));
        sum -= log((double)output[label]);
    }
    return sum / (double)count;
}

/* The fraction of examples whose label is among the two likeliest classes. */
static double among_two(tr_predictor *predictor, const tr_source *source)
{
    struct tr_predict_info info = TR_PREDICT_INFO_INIT;
    must_train(tr_predictor_info(predictor, &info));
    float output[16];
    int64_t among = 0, count = tr_source_info(source)->count;
    for (int64_t i = 0; i < count; i++) {
        int32_t label;
        int before = 0;
        must_train(tr_predictor_source(predictor, source, i, 1, output));
        must_train(tr_source_read(source, i, NULL, 0, NULL, &label));
        for (int k = 0; k < info.outputs; k++)
            before += output[k] > output[label] || (output[k] == output[label] && k < label);
        among += before < 2;
    }
    return (double)among / (double)count;
}

/* For each class the fraction of its examples that are answered so. */
static void expect_recall(tr_predictor *predictor, const tr_source *source)
{
    const struct tr_metrics *metrics = tr_predictor_metrics(predictor);
    int64_t of[16] = {0}, right[16] = {0}, count = tr_source_info(source)->count;
    float output[16];
    int column = 0;
    assert_true(metrics && metrics->outputs <= 16);
    while (strcmp(metrics->column[column], "recall") != 0) assert_true(++column < metrics->columns);
    for (int64_t i = 0; i < count; i++) {
        int32_t label, answer = 0;
        must_train(tr_predictor_source(predictor, source, i, 1, output));
        must_train(tr_source_read(source, i, NULL, 0, NULL, &label));
        for (int32_t k = 1; k < metrics->outputs; k++)
            if (output[k] > output[answer]) answer = k;
        of[label]++;
        right[label] += answer == label;
    }
    for (int64_t k = 0; k < metrics->outputs; k++)
        if (of[k] > 0)
            assert_true(fabs(metrics->table[k * metrics->columns + column] -
                             (double)right[k] / (double)of[k]) < 1e-9);
}

static double metric_of(const struct tr_metrics *metrics, const char *name)
{
    for (int i = 0; metrics && i < metrics->count; i++)
        if (strcmp(metrics->metric[i].name, name) == 0) return metrics->metric[i].value;
    fail_msg("there is no %s", name);
    return 0;
}

/* The job's targets are smoothed in training, and in training alone. */
static void evaluated_losses_are_not_smoothed(void **state)
{
    (void)state;
    char run[SCRATCH_PATH];
    struct job job;
    struct outcome outcome;
    family_job(&job, everything(), family_place);
    job_set(&job, "train.top_k=2");
    job.settings.out = scratch_join(run, family_place, "smoothed");
    job_outcome(&job, &outcome);
    must_train(outcome.status);
    struct tr_predict_settings settings = TR_PREDICT_SETTINGS_INIT;
    settings.checkpoint = run;
    settings.threads = 1;
    tr_predictor *predictor;
    tr_source *source;
    double loss, accuracy;
    must_train(tr_predictor_create(&settings, &predictor));
    must_train(tr_predictor_open_data(predictor, "test", &source));
    must_train(tr_predictor_evaluate(predictor, source, &loss, &accuracy, NULL));
    double expected = cross_entropy(predictor, source);
    const double two = metric_of(tr_predictor_metrics(predictor), "top_2");
    assert_true(two < 1);
    expect_recall(predictor, source);
    assert_true(fabs(two - among_two(predictor, source)) < 1e-9);
    tr_source_close(&source);
    tr_predictor_destroy(&predictor);
    if (fabs(loss - expected) > 1e-5 * expected) fail_msg("loss %.9g instead of %.9g", loss, expected);
    assert_true(outcome.evaluated_loss == loss);
}

struct seen {
    int evaluations;
    int64_t step[8];
};

static int listen(void *user, const struct tr_train_event *event)
{
    struct seen *seen = user;
    if (event->kind != TR_EVENT_EVALUATION) return 0;
    assert_string_equal(event->name, "test");
    assert_true(seen->evaluations < 8);
    seen->step[seen->evaluations++] = event->step;
    return 0;
}

/* An evaluation that is due after the last step is the test at the end. */
static void the_end_is_evaluated_once(void **state)
{
    (void)state;
    static const struct {
        const char *every;
        int evaluations;
        int64_t step[3];
    } cases[] = {
        {"train.evaluate_every=4", 2, {4, 8}},
        {"train.evaluate_every=3", 3, {3, 6, 8}},
        {"train.evaluate_every=0", 1, {8}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct job job;
        struct seen seen = {0};
        family_job(&job, everything(), family_place);
        job_set(&job, cases[i].every);
        tr_trainer *trainer = job_trainer(&job);
        must_train(tr_trainer_run(trainer, listen, &seen));
        assert_int_equal(seen.evaluations, cases[i].evaluations);
        for (int k = 0; k < seen.evaluations; k++) assert_int_equal(seen.step[k], cases[i].step[k]);
        /* Who runs what has ended is told how good it is. */
        seen = (struct seen){0};
        must_train(tr_trainer_run(trainer, listen, &seen));
        assert_int_equal(seen.evaluations, 1);
        assert_int_equal(seen.step[0], 8);
        tr_trainer_destroy(&trainer);
    }
}

struct sets {
    char text[256]; /* "validation@8 test@8 " */
};

static int list_sets(void *user, const struct tr_train_event *event)
{
    struct sets *sets = user;
    size_t used = strlen(sets->text);
    if (event->kind == TR_EVENT_EVALUATION)
        snprintf(sets->text + used, sizeof sets->text - used, "%s@%lld ", event->name,
                 (long long)event->step);
    return 0;
}

/* Validation data that nothing evaluated on the way are evaluated at the end, before the test data. */
static void validation_data_are_evaluated(void **state)
{
    (void)state;
    static const struct {
        const char *every, *expected;
    } cases[] = {
        {"train.evaluate_every=0", "validation@8 test@8 "},
        {"train.evaluate_every=4", "validation@4 validation@8 test@8 "},
        {"train.evaluate_every=3", "validation@3 validation@6 test@8 "},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct job job;
        struct sets sets = {""};
        family_job(&job, everything(), family_place);
        job_set(&job, "data.validation_split=0.25");
        job_set(&job, "train.steps=8");
        job_set(&job, cases[i].every);
        tr_trainer *trainer = job_trainer(&job);
        must_train(tr_trainer_run(trainer, list_sets, &sets));
        assert_string_equal(sets.text, cases[i].expected);
        tr_trainer_destroy(&trainer);
    }
}

/* The loss and the accuracy that were told last, of a step and of an evaluation. */
struct told {
    double step[2], evaluation[2];
};

static int keep_told(void *user, const struct tr_train_event *event)
{
    struct told *told = user;
    double *to = event->kind == TR_EVENT_STEP         ? told->step
                 : event->kind == TR_EVENT_EVALUATION ? told->evaluation
                                                      : NULL;
    if (!to) return 0;
    to[0] = event->loss;
    to[1] = event->accuracy;
    return 0;
}

/* A step over all examples that hardly moves the parameters has the figures of an evaluation of them, be they
 * evaluated all at once or few at a time. */
static void tokens_count_once(void **state)
{
    (void)state;
    static const char model[] =
        "name: tokens\ndata:\n  train: {corpus: {path: all.txt, window: 7}}\n"
        "  test: {corpus: {path: all.txt, window: 7}}\n"
        "layers: [{embedding: {width: 5, name: words}}, {lstm: 5}, {unembedding: words}]\n"
        "optimizer: {rule: sgd, rate: 1e-12}\n"
        "train: {batch: 4, microbatches: 1, steps: 1, log_every: 1}\n";
    static const char *const batches[] = {"train.evaluate_batch=1", "train.evaluate_batch=3",
                                          "train.evaluate_batch=100"};
    char path[SCRATCH_PATH];
    static const char text[] = "she sells sea shells by the sea";
    must_train(tr_file_write_atomic(NULL, scratch_join(path, family_place, "all.txt"), text, strlen(text)));
    for (size_t i = 0; i < sizeof batches / sizeof batches[0]; i++) {
        struct told told = {{0}, {0}};
        struct tr_train_settings settings = TR_TRAIN_SETTINGS_INIT;
        settings.model_text = model;
        settings.directory = family_place;
        settings.threads = 1;
        settings.set = &batches[i];
        settings.set_count = 1;
        tr_trainer *trainer;
        struct tr_train_info info = TR_TRAIN_INFO_INIT;
        must_train(tr_trainer_create(&settings, &trainer));
        must_train(tr_trainer_info(trainer, &info));
        assert_int_equal(info.train_examples, info.batch);
        must_train(tr_trainer_run(trainer, keep_told, &told));
        tr_trainer_destroy(&trainer);
        if (fabs(told.step[0] - told.evaluation[0]) > 1e-5 || fabs(told.step[1] - told.evaluation[1]) > 1e-6)
            fail_msg("%s: loss %g, accuracy %g; of the step they are %g, %g", batches[i], told.evaluation[0],
                     told.evaluation[1], told.step[0], told.step[1]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(evaluated_losses_are_not_smoothed),
        cmocka_unit_test(the_end_is_evaluated_once),
        cmocka_unit_test(validation_data_are_evaluated),
        cmocka_unit_test(tokens_count_once),
    };
    return cmocka_run_group_tests(tests, family_place_make, family_place_remove);
}
