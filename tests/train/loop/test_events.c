/* What a listener hears: figures that follow from each other, progress between reports, warnings, and the
 * last words of a run. */
#include "support/files/event_files.h"
#include "train/loop/told_job.h"

#include "base/fail.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

static int make(void **state)
{
    scratch_place_make(state);
    told_job_make(scratch_place);
    return 0;
}

/* ---- single steps ---- */

static void a_step_tells_its_figures(void **state)
{
    (void)state;
    struct job job;
    told_job_begin(&job, "tiny.yaml");
    tr_trainer *trainer = job_trainer(&job);
    for (int step = 1; step <= 5; step++) {
        struct tr_train_event event = TR_TRAIN_EVENT_INIT;
        must_train(tr_trainer_step(trainer, &event));
        const int64_t examples = 2;
        assert_int_equal(event.kind, TR_EVENT_STEP);
        assert_int_equal(event.step, step);
        assert_int_equal(event.steps, 8);
        near(event.epoch, step / 3.0);
        assert_int_equal(event.examples, step % 3 == 0 ? 1 : examples);
        near(event.rate, 0.01);
        assert_true(event.loss > 0 && isfinite(event.loss));
        assert_true(isnan(event.perplexity) && isnan(event.tokens_per_second));
        assert_true(event.seconds > 0);
        near(event.examples_per_second * event.seconds, (double)event.examples);
        assert_string_equal(event.name, "");
        assert_string_equal(event.hash, "");
    }
    tr_trainer_destroy(&trainer);
}

/* Of the bias and the weights, by hand, for all rows at once; *loss becomes theirs. */
static double norm_by_hand(tr_trainer *trainer, double *loss)
{
    static const double rows[5][3] = {{1, 2, 3}, {2, -1, 1}, {-1, 3, 2}, {0.5, 0.25, 0.75}, {1, 1, 2}};
    double gradient[3] = {0};
    float weights[2], bias[1];
    must_train(tr_trainer_parameter(trainer, "dense1.weights", weights, 2));
    must_train(tr_trainer_parameter(trainer, "dense1.bias", bias, 1));
    *loss = 0;
    for (int i = 0; i < 5; i++) {
        double error =
            rows[i][0] * (double)weights[0] + rows[i][1] * (double)weights[1] + (double)bias[0] - rows[i][2];
        *loss += error * error / 5;
        for (int k = 0; k < 3; k++) gradient[k] += 2 * error * (k < 2 ? rows[i][k] : 1) / 5;
    }
    return sqrt(gradient[0] * gradient[0] + gradient[1] * gradient[1] + gradient[2] * gradient[2]);
}

static void norms_are_of_the_gradient(void **state)
{
    (void)state;
    struct job job;
    struct event_file file;
    struct tr_train_event event = TR_TRAIN_EVENT_INIT;
    char board[SCRATCH_PATH];
    double loss, norm;
    told_job_begin(&job, "tiny.yaml");
    job_set(&job, "optimizer.clip_norm=1e6"); /* known where it may have to be clipped */
    job_set(&job, "train.batch=5");
    tr_trainer *trainer = job_trainer(&job);
    norm = norm_by_hand(trainer, &loss);
    must_train(tr_trainer_step(trainer, &event));
    if (!(fabs(event.gradient_norm - norm) <= 1e-5 * norm))
        fail_msg("the norm is %g, by hand %g", event.gradient_norm, norm);
    if (!(fabs(event.loss - loss) <= 1e-5 * loss)) fail_msg("the loss is %g, by hand %g", event.loss, loss);
    tr_trainer_destroy(&trainer);
    /* And for TensorBoard in any case. */
    told_job_begin(&job, "tiny.yaml");
    job_set(&job, "train.batch=5");
    job.settings.steps = 1;
    job.settings.tensorboard = scratch_join(board, scratch_place, "board");
    trainer = job_trainer(&job);
    norm = norm_by_hand(trainer, &loss);
    must_train(tr_trainer_run(trainer, NULL, NULL));
    tr_trainer_destroy(&trainer);
    event_file_of(board, 0, 1, &file);
    const Tensorboard__Summary__Value *value = event_file_find(&file, "optimizer/gradient_norm", 1);
    assert_non_null(value);
    if (!(fabs((double)value->simple_value - norm) <= 1e-5 * norm))
        fail_msg("the norm is %g, by hand %g", (double)value->simple_value, norm);
    event_file_release(&file);
}

static void tokens_are_counted(void **state)
{
    (void)state;
    struct job job;
    told_job_begin(&job, "tags.yaml");
    tr_trainer *trainer = job_trainer(&job);
    struct tr_train_event event = TR_TRAIN_EVENT_INIT;
    must_train(tr_trainer_step(trainer, &event));
    assert_int_equal(event.examples > 0, 1);
    near(event.perplexity, exp(event.loss));
    /* Seven labelled tokens in three examples. */
    near(event.tokens_per_second / event.examples_per_second, 7.0 / 3);
    tr_trainer_destroy(&trainer);
}

/* ---- reports and progress ---- */

static void reports_are_of_the_steps_since_the_last_one(void **state)
{
    (void)state;
    static const int64_t reported[] = {1, 3, 6, 8};
    static const int64_t examples[] = {2, 3, 5, 4}; /* since the report before */
    struct job job;
    struct heard heard = {.steps = 0};
    char hash[65];
    told_job_begin(&job, "tiny.yaml");
    tr_trainer *trainer = job_trainer(&job);
    must_train(tr_trainer_run(trainer, hear, &heard));
    must_train(tr_trainer_hash(trainer, hash));
    assert_int_equal(heard.steps, 4);
    for (int i = 0; i < 4; i++) {
        const double before = i ? heard.step[i - 1].seconds : 0;
        assert_int_equal(heard.step[i].step, reported[i]);
        near(heard.step[i].examples_per_second * (heard.step[i].seconds - before), (double)examples[i]);
    }
    assert_int_equal(heard.ends, 1);
    assert_int_equal(heard.end.step, 8);
    assert_true(heard.end.seconds >= heard.step[3].seconds);
    assert_string_equal(heard.hash, hash);
    assert_int_equal(heard.others, 0);
    tr_trainer_destroy(&trainer);
}

/* Between reports, which this job has none of after the first, there is progress; its third ends the run. */
static void progress_is_told_without_reports(void **state)
{
    (void)state;
    struct job job;
    struct heard heard = {.steps = 0};
    told_job_begin(&job, "tiny.yaml");
    job_set(&job, "train.log_every=1000000000");
    job.settings.steps = 1000000000;
    tr_trainer *trainer = job_trainer(&job);
    assert_int_equal(tr_trainer_run(trainer, hear, &heard), TR_EINTERRUPTED);
    char text[96];
    assert_int_equal(heard.steps, 1);
    assert_int_equal(heard.step[0].step, 1);
    assert_int_equal(heard.ends, 0);
    for (int i = 0; i < 3; i++) {
        const struct tr_train_event *now = &heard.progress[i], *last = i ? &heard.progress[i - 1] : NULL;
        const double seconds = now->seconds - (last ? last->seconds : 0);
        const int64_t before = last ? last->step : 0, steps = now->step - before;
        /* Every third batch has one example, the others have two. */
        const int64_t examples = 2 * steps - (now->step / 3 - before / 3);
        assert_true(seconds > 0.099);
        near(now->examples_per_second * seconds, (double)examples);
        assert_true(isfinite(now->loss));
    }
    snprintf(text, sizeof text, "stopped after step %lld of 1000000000; nothing was saved",
             (long long)heard.progress[2].step);
    assert_string_equal(tr_error_message(), text);
    tr_trainer_destroy(&trainer);
}

/* ---- warnings and ends ---- */

static int keep_warning(void *user, const struct tr_train_event *event)
{
    if (event->kind == TR_EVENT_WARNING) snprintf(user, 512, "%s", event->name);
    return event->kind == TR_EVENT_WARNING;
}

static void skipped_steps_are_named(void **state)
{
    (void)state;
    struct job job;
    char warning[512] = "";
    told_job_begin(&job, "tiny.yaml");
    job_set(&job, "optimizer.rate=1e30");
    job_set(&job, "train.on_nonfinite=skip");
    job.settings.out = scratch_in("skipped");
    tr_trainer *trainer = job_trainer(&job);
    assert_int_equal(tr_trainer_run(trainer, keep_warning, warning), TR_EINTERRUPTED);
    assert_string_equal(warning, "step 2 was skipped: its loss or gradient is not finite");
    assert_non_null(strstr(tr_error_message(), "stopped after step 2 of 8; resume from "));
    assert_non_null(strstr(tr_error_message(), "skipped"));
    tr_trainer_destroy(&trainer);
}

static void a_step_that_is_not_finite_is_named(void **state)
{
    (void)state;
    struct job job;
    char warning[512] = "";
    told_job_begin(&job, "tiny.yaml");
    job_set(&job, "optimizer.rate=1e30");
    tr_trainer *trainer = job_trainer(&job);
    assert_int_equal(tr_trainer_run(trainer, keep_warning, warning), TR_ENONFINITE);
    assert_non_null(
        strstr(tr_error_message(), "step 2: the loss is not finite; the first bad tensor is the "));
    assert_non_null(strstr(tr_error_message(), ". Lower optimizer.rate, or set optimizer.clip_norm; "
                                               "checkpoints are from before this step"));
    tr_trainer_destroy(&trainer);
}

static void a_plateau_is_told(void **state)
{
    (void)state;
    struct job job;
    char warning[512] = "";
    told_job_begin(&job, "tiny.yaml");
    job_set(&job, "optimizer.rate=5"); /* the loss grows */
    job_set(&job, "data.test={csv: {path: tiny.csv, label: value}}");
    job_set(&job, "optimizer.schedule={kind: plateau, patience: 1, factor: 0.25}");
    job_set(&job, "train.evaluate_every=1");
    tr_trainer *trainer = job_trainer(&job);
    assert_int_equal(tr_trainer_run(trainer, keep_warning, warning), TR_EINTERRUPTED);
    assert_string_equal(warning, "step 3: no better loss, so the learning rate falls to 1.25");
    tr_trainer_destroy(&trainer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_step_tells_its_figures),
        cmocka_unit_test(norms_are_of_the_gradient),
        cmocka_unit_test(tokens_are_counted),
        cmocka_unit_test(reports_are_of_the_steps_since_the_last_one),
        cmocka_unit_test(progress_is_told_without_reports),
        cmocka_unit_test(skipped_steps_are_named),
        cmocka_unit_test(a_step_that_is_not_finite_is_named),
        cmocka_unit_test(a_plateau_is_told),
    };
    return cmocka_run_group_tests(tests, make, scratch_place_remove);
}
