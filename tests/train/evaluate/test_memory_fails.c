/* Evaluations, predictions and texts without memory: whichever allocation is refused, the caller learns it,
 * nothing is left behind, and the next call works. */
#include "train/evaluate/questions.h"

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

static void predictors(void **state)
{
    (void)state;
    for (int i = 0; i < question_count; i++) {
        int64_t first = 0, again = 0;
        tr_predictor *predictor = question_load(questions[i].model, NULL);
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
    for (int i = 0; i < question_count; i++) {
        for (int64_t at = 0, done = 0; !done; at++) {
            const int64_t live = tr_alloc_live();
            int64_t got = 0;
            tr_predictor *predictor = question_load(questions[i].model, NULL);
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
        question_job(&job, 0);
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
    return cmocka_run_group_tests(tests, questions_make, scratch_place_remove);
}
