/* Evaluations, predictions and texts without memory: whichever allocation is refused, the caller learns it,
 * nothing is left behind, and the next call works. */
#include "support/training.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "refuse.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

static const struct {
    const char *name, *model;
} models[] = {
    {"numbers", "data: {train: {csv: {path: numbers.csv, label: value, missing: mean, standardize: true}}}\n"
                "layers: [{dense: 1}]\nloss: mean_squared_error\n"},
    {"words", "data: {train: {text: {path: words.tsv}}}\n"
              "layers: [{embedding: 3}, {lstm: 4}, last, {dense: 2}]\n"},
    {"language", "data: {train: {corpus: {path: words.tsv, window: 4}}}\n"
                 "layers: [{embedding: 3}, {lstm: 4}, {dense: 20}]\n"},
};
enum { NUMBERS, TEXTS, LANGUAGE, MODELS };

static void write_model(int i)
{
    char file[64], path[SCRATCH_PATH];
    struct tr_text text = TR_TEXT_INIT;
    tr_text_addf(&text,
                 "name: %s\n%soptimizer: {rule: sgd, rate: 0.01, ema: 0.5}\n"
                 "train: {batch: 2, steps: 2, evaluate_batch: 2}\n",
                 models[i].name, models[i].model);
    snprintf(file, sizeof file, "%s.yaml", models[i].name);
    must_write(scratch_join(path, scratch_place, file), &text);
}

static void begin(struct job *job, int i)
{
    static char path[SCRATCH_PATH];
    char file[64];
    snprintf(file, sizeof file, "%s.yaml", models[i].name);
    job_begin(job, scratch_join(path, scratch_place, file));
    job->settings.set = job->set;
}

static int make(void **state)
{
    scratch_place_make(state);
    scratch_write_text("numbers.csv", "a,b,y\n1,2,3\n2,-1,1\n-1,NA,2\n1,1,1\n");
    scratch_write_text("words.tsv", "one two\t0\nthree\t1\ntwo three one\t1\n");
    for (int i = 0; i < MODELS; i++) {
        struct job job;
        struct outcome outcome;
        char out[SCRATCH_PATH];
        write_model(i);
        begin(&job, i);
        job.settings.out = scratch_join(out, scratch_place, models[i].name);
        job_outcome(&job, &outcome);
        must_train(outcome.status);
    }
    return 0;
}

static tr_predictor *load(int i)
{
    struct tr_predict_settings settings = TR_PREDICT_SETTINGS_INIT;
    tr_predictor *predictor;
    char out[SCRATCH_PATH];
    settings.checkpoint = scratch_join(out, scratch_place, models[i].name);
    settings.threads = 1;
    must_train(tr_predictor_create(&settings, &predictor));
    return predictor;
}

static int count_rows(void *user, const struct tr_prediction *prediction)
{
    *(int64_t *)user += prediction->rows;
    return 0;
}

static int count_bytes(void *user, const char *piece, size_t length)
{
    (void)piece;
    *(int64_t *)user += (int64_t)length;
    return 0;
}

/* ---- what is asked of a predictor; each returns its status, and counts what it got ---- */

static tr_status evaluate(tr_predictor *predictor, int64_t *got)
{
    tr_source *source;
    double loss, accuracy;
    int64_t confusion[20 * 20];
    tr_status status = tr_predictor_open_data(predictor, "train", &source);
    if (status != TR_OK) return status;
    status = tr_predictor_evaluate(predictor, source, &loss, &accuracy, confusion);
    *got = status == TR_OK;
    tr_source_close(&source);
    return status;
}

static tr_status run_ranges(tr_predictor *predictor, int64_t *got)
{
    static const struct tr_example_range ranges[] = {{2, 3}, {0, 3}};
    tr_source *source;
    tr_status status = tr_predictor_open_data(predictor, "train", &source);
    if (status != TR_OK) return status;
    status = tr_predictor_run(predictor, source, ranges, 2, count_rows, got);
    tr_source_close(&source);
    return status;
}

static tr_status open_table(tr_predictor *predictor, int64_t *got)
{
    tr_source *source;
    float output[3];
    tr_status status = tr_predictor_open_file(predictor, scratch_in("numbers.csv"), &source);
    if (status != TR_OK) return status;
    status = tr_predictor_source(predictor, source, 1, 3, output);
    *got = tr_source_info(source)->count;
    tr_source_close(&source);
    return status;
}

static tr_status open_lines(tr_predictor *predictor, int64_t *got)
{
    tr_source *source;
    float output[6];
    tr_status status = tr_predictor_open_file(predictor, scratch_in("words.tsv"), &source);
    if (status != TR_OK) return status;
    status = tr_predictor_source(predictor, source, 0, 3, output);
    *got = tr_source_info(source)->count;
    tr_source_close(&source);
    return status;
}

static tr_status generate(tr_predictor *predictor, int64_t *got)
{
    struct tr_generate_settings settings = TR_GENERATE_SETTINGS_INIT;
    settings.prompt = "one ";
    settings.tokens = 6;
    return tr_predictor_generate(predictor, &settings, count_bytes, got);
}

static tr_status name_word(tr_predictor *predictor, int64_t *got)
{
    char *word;
    const tr_status status = tr_predictor_word(predictor, 1, &word);
    if (status != TR_OK) return status;
    *got = (int64_t)strlen(word);
    tr_text_free(word);
    return status;
}

static const struct {
    const char *name;
    int model;
    tr_status (*ask)(tr_predictor *predictor, int64_t *got);
    int64_t expected; /* -1: whatever comes without refusals */
} questions[] = {
    {"evaluate numbers", NUMBERS, evaluate, 1},
    {"evaluate texts", TEXTS, evaluate, 1},
    {"evaluate language", LANGUAGE, evaluate, 1},
    {"numbers in ranges", NUMBERS, run_ranges, 4},
    {"texts in ranges", TEXTS, run_ranges, 4},
    {"a table", NUMBERS, open_table, 4},
    {"lines", TEXTS, open_lines, 3},
    {"generate", LANGUAGE, generate, -1},
    {"word", TEXTS, name_word, 3},
};

static void predictors(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof questions / sizeof questions[0]; i++) {
        int64_t first = 0, again = 0;
        tr_predictor *predictor = load(questions[i].model);
        must_train(questions[i].ask(predictor, &first)); /* it keeps what it made on the way */
        if (questions[i].expected >= 0) assert_int_equal(first, questions[i].expected);
        for (int64_t at = 0, done = 0; !done; at++) {
            int64_t got = 0;
            refuse_begin(at);
            const tr_status status = questions[i].ask(predictor, &got);
            done = refuse_end();
            if (status != (done ? TR_OK : TR_ENOMEM))
                fail_msg("%s, allocation %lld: %s", questions[i].name, (long long)at, tr_status_name(status));
            if (done) assert_int_equal(got, first);
        }
        must_train(questions[i].ask(predictor, &again));
        assert_int_equal(again, first);
        tr_predictor_destroy(&predictor);
    }
}

/* The first question, for which a predictor still makes its parts. */
static void fresh_predictors(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof questions / sizeof questions[0]; i++) {
        for (int64_t at = 0, done = 0; !done; at++) {
            const int64_t live = tr_alloc_live();
            int64_t got = 0;
            tr_predictor *predictor = load(questions[i].model);
            refuse_begin(at);
            const tr_status status = questions[i].ask(predictor, &got);
            done = refuse_end();
            if (status != (done ? TR_OK : TR_ENOMEM))
                fail_msg("%s, allocation %lld: %s", questions[i].name, (long long)at, tr_status_name(status));
            tr_predictor_destroy(&predictor);
            if (tr_alloc_live() != live)
                fail_msg("%s, allocation %lld leaves blocks behind", questions[i].name, (long long)at);
        }
    }
}

/* Of a trainer: its predictor, with and without averages, and its evaluation. */
static void trainers(void **state)
{
    (void)state;
    for (int averaged = 0; averaged < 2; averaged++) {
        struct job job;
        struct tr_predict_settings settings = TR_PREDICT_SETTINGS_INIT;
        struct tr_train_event event = TR_TRAIN_EVENT_INIT;
        const float example[] = {1, 2};
        float answer, again;
        tr_predictor *predictor;
        begin(&job, NUMBERS);
        tr_trainer *trainer = job_trainer(&job);
        must_train(tr_trainer_step(trainer, NULL));
        settings.use_average = averaged;
        settings.threads = 1;
        must_train(tr_trainer_predictor(trainer, &settings, &predictor));
        must_train(tr_predictor_floats(predictor, example, &answer));
        tr_predictor_destroy(&predictor);
        must_train(tr_trainer_evaluate(trainer, "train", &event));
        const double loss = event.loss;
        for (int64_t at = 0, done = 0; !done; at++) {
            const int64_t live = tr_alloc_live();
            refuse_begin(at);
            tr_status status = tr_trainer_predictor(trainer, &settings, &predictor);
            done = refuse_end();
            assert_int_equal(status, done ? TR_OK : TR_ENOMEM);
            assert_true((predictor != NULL) == done);
            if (done) must_train(tr_predictor_floats(predictor, example, &again));
            tr_predictor_destroy(&predictor);
            assert_int_equal(tr_alloc_live(), live);
        }
        assert_memory_equal(&answer, &again, sizeof answer);
        for (int64_t at = 0, done = 0; !done; at++) {
            refuse_begin(at);
            const tr_status status = tr_trainer_evaluate(trainer, "train", &event);
            done = refuse_end();
            assert_int_equal(status, done ? TR_OK : TR_ENOMEM);
        }
        assert_true(event.loss == loss);
        assert_int_equal(tr_trainer_evaluate(trainer, "test", &event), TR_ENOTFOUND);
        tr_trainer_destroy(&trainer);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(predictors),
        cmocka_unit_test(fresh_predictors),
        cmocka_unit_test(trainers),
    };
    return cmocka_run_group_tests(tests, make, scratch_place_remove);
}
