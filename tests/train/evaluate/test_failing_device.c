/* Evaluations, predictions and texts on a device that fails: whichever operation, copy or wait it is, the
 * caller learns it, nothing is left behind, and the next call works.
 */
#include "support/operations/failing.h"
#include "train/evaluate/questions.h"

#include "base/alloc.h"
#include "refuse.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

static void each_operation(void **state)
{
    (void)state;
    for (int i = 0; i < question_count; i++) {
        int64_t first = 0;
        failing_operation = -1;
        tr_predictor *predictor = question_load(questions[i].model, "failing");
        must_train(questions[i].ask(predictor, &first));
        tr_predictor_destroy(&predictor);
        for (int at = 0, done = 0; !done; at++) {
            const int64_t live = tr_alloc_live();
            int64_t got = 0;
            failing_operation = -1;
            predictor = question_load(questions[i].model, "failing");
            operation_calls = 0;
            failing_operation = at;
            const tr_status status = questions[i].ask(predictor, &got);
            done = operation_calls <= at;
            /* When all is there, a wait of the clean-up may fail. */
            const bool whole = status == TR_OK && got == first;
            if (done ? !whole : !whole && status != TR_EUNSUPPORTED)
                fail_msg("%s, operation %d: %s", questions[i].name, at, tr_status_name(status));
            failing_operation = -1;
            got = 0;
            must_train(questions[i].ask(predictor, &got));
            assert_int_equal(got, first);
            tr_predictor_destroy(&predictor);
            assert_int_equal(tr_alloc_live(), live);
        }
    }
    failing_operation = -1;
}
/* Of a trainer's predictor, too, which takes the parameters from the device. */
static tr_status create(tr_trainer *trainer, int i, tr_predictor **out)
{
    struct tr_predict_settings settings = TR_PREDICT_SETTINGS_INIT;
    if (!trainer) return question_create(i, "failing", out);
    settings.use_average = 1;
    settings.device = "failing";
    settings.threads = 1;
    return tr_trainer_predictor(trainer, &settings, out);
}

static void each_operation_of_a_creation(void **state)
{
    (void)state;
    struct job job;
    question_job(&job, 0);
    job.settings.device = "failing";
    failing_operation = -1;
    tr_trainer *trainer = job_trainer(&job);
    must_train(tr_trainer_step(trainer, NULL));
    for (int of_trainer = 0; of_trainer < 2; of_trainer++) {
        for (int at = 0, done = 0; !done; at++) {
            const int64_t live = tr_alloc_live();
            tr_predictor *predictor;
            operation_calls = 0;
            failing_operation = at;
            const tr_status status = create(of_trainer ? trainer : NULL, 0, &predictor);
            done = operation_calls <= at;
            failing_operation = -1;
            assert_int_equal(status, done ? TR_OK : TR_EUNSUPPORTED);
            assert_true((predictor != NULL) == done);
            tr_predictor_destroy(&predictor);
            if (at > 0) assert_int_equal(tr_alloc_live(), live);
            assert_true(!done || at > 0);
        }
    }
    tr_trainer_destroy(&trainer);
}
static int count_warnings(void *user, const struct tr_train_event *event)
{
    int *warnings = user;
    *warnings += event->kind == TR_EVENT_WARNING;
    return 0;
}

/* Watched in every way. Operation `at` fails; *done: there was none. */
static tr_status train(int i, int at, const char *out, const char *shown, int *warnings, bool *done)
{
    struct job job;
    tr_trainer *trainer;
    question_job(&job, i);
    job_set(&job, "train.microbatches=2");
    job_set(&job, "train.log_every=1");
    job_set(&job, "train.prefetch=0");
    job.settings.device = "failing";
    job.settings.out = out;
    job.settings.tensorboard = shown;
    job.settings.histograms = 1;
    job.settings.record_digests = 1;
    job.settings.receipt = true;
    operation_calls = 0;
    failing_operation = at;
    tr_status status = tr_trainer_create(&job.settings, &trainer);
    if (status == TR_OK) status = tr_trainer_run(trainer, count_warnings, warnings);
    *done = operation_calls <= at;
    failing_operation = -1;
    tr_trainer_destroy(&trainer);
    return status;
}

static void check_run(int i, bool memory)
{
    char out[SCRATCH_PATH], shown[SCRATCH_PATH];
    const tr_status refusal = memory ? TR_ENOMEM : TR_EUNSUPPORTED;
    bool done = false;
    int at = 0;
    scratch_join(out, scratch_place, "out");
    scratch_join(shown, scratch_place, "shown");
    for (; !done; at += memory ? 3 : 1) {
        const int64_t live = tr_alloc_live();
        int warnings = 0;
        if (memory) refuse_begin(at);
        const tr_status status = train(i, memory ? -1 : at, out, shown, &warnings, &done);
        if (memory) done = refuse_end();
        /* What is only shown, or told to a journal, is no reason to end. */
        const bool told = status == refusal || (status == TR_OK && warnings == 1);
        if (done ? status != TR_OK || warnings > 0 : !told)
            fail_msg("%s %d: %s, %d warnings", memory ? "allocation" : "operation", at,
                     tr_status_name(status), warnings);
        assert_int_equal(tr_alloc_live(), live);
        if (tr_file_is_directory(out)) scratch_remove(out);
        if (tr_file_is_directory(shown)) scratch_remove(shown);
    }
    assert_true(at > 50);
}

static void each_operation_of_a_run(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) check_run(i, false);
}

/* Where what is watched must be copied. */
static void memory_of_a_run(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) check_run(i, true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_operation),
        cmocka_unit_test(each_operation_of_a_creation),
        cmocka_unit_test(each_operation_of_a_run),
        cmocka_unit_test(memory_of_a_run),
    };
    return cmocka_run_group_tests(tests, questions_make, scratch_place_remove);
}
