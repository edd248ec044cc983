/* What a run does when: the rate of each step, evaluations, early ends and checkpoints, against what the
 * model file asks for.
 */
#include "support/training.h"

#include "base/alloc.h"
#include "train/loop/trainer.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

/* ---- a run, as its listener sees it ---- */

#define STEPS 24
struct told {
    tr_trainer *trainer;
    int64_t reported[STEPS], evaluated[STEPS], kept[STEPS]; /* at which steps */
    int reports, evaluations, checkpoints;
    double rate[STEPS];     /* of each report */
    double accuracy;        /* of the last evaluation */
    const char *set[STEPS]; /* of each evaluation */
    double loss[STEPS];     /* of each evaluation */
    double distance[STEPS]; /* that the parameters moved before each report, after the first */
    float *before, *after;
};

static void measure_distance(struct told *told)
{
    int64_t floats = tr_variables_floats(trainer_variables(told->trainer));
    double sum = 0;
    must_train(tr_variables_store(trainer_variables(told->trainer), TR_ARENA_PARAMETERS, told->after));
    for (int64_t i = 0; i < floats; i++) {
        double moved = (double)told->after[i] - (double)told->before[i];
        sum += moved * moved;
    }
    told->distance[told->reports] = sqrt(sum);
    memcpy(told->before, told->after, (size_t)floats * sizeof *told->before);
}

static int hear(void *user, const struct tr_train_event *event)
{
    struct told *told = user;
    switch (event->kind) {
    case TR_EVENT_STEP:
        assert_true(told->reports < STEPS);
        if (told->before) measure_distance(told);
        told->rate[told->reports] = event->rate;
        told->reported[told->reports++] = event->step;
        break;
    case TR_EVENT_EVALUATION:
        assert_true(told->evaluations < STEPS);
        told->loss[told->evaluations] = event->loss;
        told->accuracy = event->accuracy;
        told->set[told->evaluations] = event->name;
        told->evaluated[told->evaluations++] = event->step;
        break;
    case TR_EVENT_CHECKPOINT:
        assert_true(told->checkpoints < STEPS);
        told->kept[told->checkpoints++] = event->step;
        break;
    default:
        break;
    }
    return 0;
}

/* Runs a job to its end; returns the step it came to. */
static int64_t run(struct job *job, struct told *told)
{
    struct tr_train_info info = TR_TRAIN_INFO_INIT;
    *told = (struct told){.trainer = job_trainer(job)};
    must_train(tr_trainer_run(told->trainer, hear, told));
    must_train(tr_trainer_info(told->trainer, &info));
    tr_trainer_destroy(&told->trainer);
    return info.step;
}

static void expect_steps(const char *what, const int64_t *got, int count, const int64_t *expected)
{
    for (int i = 0; i < count || expected[i] != 0; i++)
        if (i >= count || got[i] != expected[i])
            fail_msg("%s number %d after step %lld, expected is %lld", what, i + 1,
                     i < count ? (long long)got[i] : -1, (long long)expected[i]);
}

/* A network of a few numbers on values that it cannot reach, so that gradients stay large. */
static void values_job(struct job *job)
{
    static char path[SCRATCH_PATH];
    char data[SCRATCH_PATH];
    static const char model[] = "name: policy\n"
                                "data:\n"
                                "  train: {csv: {path: policy.csv, label: value}}\n"
                                "  test: {csv: {path: policy.csv, label: value}}\n"
                                "layers: [{dense: 3}, {dense: 1}]\n"
                                "loss: mean_squared_error\n"
                                "optimizer: {rule: sgd, rate: 0.2}\n"
                                "train: {batch: 4, microbatches: 2, steps: 12, log_every: 1}\n";
    static const char values[] = "a,b,y\n1,2,5000\n2,-1,6000\n-1,3,7000\n0.5,0.25,8000\n";
    must_train(tr_file_write_atomic(NULL, scratch_join(data, scratch_place, "policy.csv"), values,
                                    sizeof values - 1));
    must_train(tr_file_write_atomic(NULL, scratch_join(path, scratch_place, "policy.yaml"), model,
                                    sizeof model - 1));
    job_begin(job, path);
}

/* The same as it would learn nothing, so that no evaluation is better than the first. */
static void idle_job(struct job *job)
{
    values_job(job);
    job_set(job, "optimizer.rate=1e-30");
    job_set(job, "train.evaluate_every=1");
}

/* ---- the rate ---- */

/* With a gradient that is clipped to a norm of 1 each update goes as far as its rate: what is reported is
 * what was applied, and both are what the schedule's formula gives. */
static void the_rate_is_that_of_the_update(void **state)
{
    (void)state;
    /* (t + 1) / 3 while t < 3, times 0.8 ^ t, for t = 0, 1, ... */
    static const double factor[] = {1.0 / 3, 0.8 * 2 / 3, 0.64, 0.512, 0.4096, 0.32768};
    struct job job;
    values_job(&job);
    job_set(&job, "optimizer.clip_norm=1");
    job_set(&job, "optimizer.schedule={kind: exponential, decay: 0.8, every: 1, warmup: 3}");
    job_set(&job, "train.steps=6");
    struct told told = {.trainer = job_trainer(&job)};
    size_t floats = (size_t)tr_variables_floats(trainer_variables(told.trainer));
    told.before = tr_alloc_zero(floats, sizeof(float));
    told.after = tr_alloc_zero(floats, sizeof(float));
    assert_true(told.before && told.after);
    must_train(tr_variables_store(trainer_variables(told.trainer), TR_ARENA_PARAMETERS, told.before));
    must_train(tr_trainer_run(told.trainer, hear, &told));
    assert_int_equal(told.reports, 6);
    for (int i = 0; i < 6; i++) {
        double expected = 0.2 * factor[i];
        if (fabs(told.rate[i] - expected) > 1e-12 * expected)
            fail_msg("step %d: rate %.17g was reported, expected is %.17g", i + 1, told.rate[i], expected);
        if (fabs(told.distance[i] - expected) > 1e-4 * expected)
            fail_msg("step %d: the update went %.9g far, its rate is %.9g", i + 1, told.distance[i],
                     expected);
    }
    tr_trainer_destroy(&told.trainer);
    tr_free(told.before);
    tr_free(told.after);
}

static void a_single_step_tells_its_rate(void **state)
{
    (void)state;
    struct job job;
    values_job(&job);
    job_set(&job, "optimizer.clip_norm=1");
    job_set(&job, "optimizer.schedule={kind: step, milestones: [1, 3], factor: 0.5}");
    tr_trainer *trainer = job_trainer(&job);
    static const double expected[] = {0.2, 0.1, 0.1, 0.05, 0.05};
    for (int i = 0; i < 5; i++) {
        struct tr_train_event event = TR_TRAIN_EVENT_INIT;
        must_train(tr_trainer_step(trainer, &event));
        assert_int_equal(event.step, i + 1);
        assert_true(event.rate == expected[i]);
    }
    tr_trainer_destroy(&trainer);
}

/* ---- early ends ---- */

/* After so many evaluations that are no better than the best, not one later; equal is not better. */
static void patience_counts_evaluations(void **state)
{
    (void)state;
    struct job job;
    struct told told;
    for (int patience = 1; patience <= 3; patience++) {
        char set[32];
        snprintf(set, sizeof set, "train.patience=%d", patience);
        idle_job(&job);
        job_set(&job, set);
        assert_int_equal(run(&job, &told), 1 + patience);
    }
    idle_job(&job);
    assert_int_equal(run(&job, &told), 12);
    /* Evaluations count, not steps. */
    idle_job(&job);
    job_set(&job, "train.evaluate_every=3");
    job_set(&job, "train.patience=2");
    assert_int_equal(run(&job, &told), 9);
}

/* Evaluations that are better do not use it up: four steps that learn, then none. */
static void better_evaluations_cost_no_patience(void **state)
{
    (void)state;
    struct job job;
    struct told told;
    values_job(&job);
    job_set(&job, "optimizer.clip_norm=1");
    job_set(&job, "optimizer.schedule={kind: exponential, decay: 1e-30, every: 4, staircase: true}");
    job_set(&job, "train.evaluate_every=1");
    job_set(&job, "train.patience=3");
    /* Evaluations 1 to 4 are better each, 5 to 7 are not. */
    assert_int_equal(run(&job, &told), 7);
}

/* Where a run ends that evaluates after every step, by the meaning of patience. */
static int64_t end_of(const double *losses, int steps, int patience)
{
    double best = INFINITY;
    int since = 0;
    for (int i = 0; i < steps; i++) {
        since = losses[i] < best ? 0 : since + 1;
        if (losses[i] < best) best = losses[i];
        if (since == patience) return i + 1;
    }
    return steps;
}

/* Losses that fall, rise, fall again while they are still above the best, and come below it, more than once:
   each step learns from one example alone. */
static void patience_is_about_the_best_loss(void **state)
{
    (void)state;
    struct job job;
    struct told told;
    int rises = 0, falls_above = 0, renewals = 0;
    values_job(&job);
    job_set(&job, "layers=[dense: 1]");
    job_set(&job, "optimizer.rate=0.05");
    job_set(&job, "train.batch=1");
    job_set(&job, "train.microbatches=1");
    job_set(&job, "train.evaluate_every=1");
    job.settings.steps = STEPS - 1;
    run(&job, &told);
    struct told all = told;
    double best = all.loss[0];
    for (int i = 1; i < STEPS - 1; i++) {
        rises += all.loss[i] > all.loss[i - 1];
        falls_above += all.loss[i] < all.loss[i - 1] && all.loss[i] >= best;
        renewals += all.loss[i] < best && all.loss[i - 1] > best;
        if (all.loss[i] < best) best = all.loss[i];
    }
    assert_true(rises > 0 && falls_above > 0 && renewals > 1);
    for (int patience = 1; patience < STEPS; patience++) {
        char set[32];
        snprintf(set, sizeof set, "train.patience=%d", patience);
        job_set(&job, set);
        assert_int_equal(run(&job, &told), end_of(all.loss, STEPS - 1, patience));
    }
}

/* To reach an accuracy is to have it or more. */
static void the_wanted_accuracy_ends_a_run(void **state)
{
    (void)state;
    char set[64], out[SCRATCH_PATH];
    struct job job;
    struct told told;
    family_job(&job, &families[2], scratch_place);
    job_set(&job, "optimizer.rate=1e-30");
    job_set(&job, "train.evaluate_every=2");
    int64_t all = run(&job, &told);
    double accuracy = told.accuracy;
    assert_true(accuracy > 0 && accuracy < 1);
    snprintf(set, sizeof set, "train.until_accuracy=%.17g", accuracy);
    job_set(&job, set);
    job.settings.out = scratch_join(out, scratch_place, "accuracy");
    assert_int_equal(run(&job, &told), 2);
    /* It has ended: taken up, it ends at once. */
    job.settings.resume = out;
    assert_int_equal(run(&job, &told), 2);
    assert_int_equal(told.reports, 0);
    job.settings.resume = job.settings.out = NULL;
    snprintf(set, sizeof set, "train.until_accuracy=%.17g", nextafter(accuracy, 1));
    assert_int_equal(run(&job, &told), all);
}

/* A run that is taken up knows how much patience it had spent. */
static void patience_outlives_a_checkpoint(void **state)
{
    (void)state;
    struct job job;
    struct told told;
    char out[SCRATCH_PATH];
    scratch_join(out, scratch_place, "patience");
    idle_job(&job);
    job_set(&job, "train.patience=4");
    job.settings.out = out;
    job.settings.steps = 3; /* two evaluations without a better loss */
    assert_int_equal(run(&job, &told), 3);
    job.settings.resume = out;
    job.settings.steps = 12;
    assert_int_equal(run(&job, &told), 5);
    /* It had ended: taken up, it ends at once. */
    assert_int_equal(run(&job, &told), 5);
    assert_int_equal(told.reports, 0);
}

/* ---- every so many steps ---- */

static void things_come_when_they_are_due(void **state)
{
    (void)state;
    struct job job;
    struct told told;
    char out[SCRATCH_PATH];
    values_job(&job);
    job_set(&job, "optimizer.clip_norm=1");
    job_set(&job, "train.log_every=5");
    job_set(&job, "train.evaluate_every=4");
    job_set(&job, "train.checkpoint_every=5");
    job_set(&job, "train.checkpoint_seconds=0");
    job.settings.out = scratch_join(out, scratch_place, "due");
    assert_int_equal(run(&job, &told), 12);
    /* The first and the last step are reported, too; the last is kept, and tested. */
    expect_steps("report", told.reported, told.reports, (const int64_t[]){1, 5, 10, 12, 0});
    expect_steps("checkpoint", told.kept, told.checkpoints, (const int64_t[]){5, 10, 12, 0});
    assert_true(told.evaluations >= 3);
    expect_steps("evaluation", told.evaluated, 3, (const int64_t[]){4, 8, 12, 0});
    assert_int_equal(told.evaluated[told.evaluations - 1], 12);
}

/* Nothing that comes every so many steps comes where it was turned off. */
static void what_is_turned_off_stays_away(void **state)
{
    (void)state;
    struct job job;
    struct told told;
    char out[SCRATCH_PATH];
    values_job(&job);
    job_set(&job, "optimizer.clip_norm=1");
    job_set(&job, "train.log_every=0");
    job_set(&job, "train.evaluate_every=0");
    job_set(&job, "train.checkpoint_every=0");
    job_set(&job, "train.checkpoint_seconds=0");
    job.settings.out = scratch_join(out, scratch_place, "off");
    assert_int_equal(run(&job, &told), 12);
    assert_int_equal(told.reports, 0);
    expect_steps("checkpoint", told.kept, told.checkpoints, (const int64_t[]){12, 0});
    expect_steps("evaluation", told.evaluated, told.evaluations, (const int64_t[]){12, 0});
}

/* By the clock: with no time between them a checkpoint follows every step. */
static void checkpoints_come_by_the_clock(void **state)
{
    (void)state;
    struct job job;
    struct told told;
    char out[SCRATCH_PATH];
    values_job(&job);
    job_set(&job, "optimizer.clip_norm=1");
    job_set(&job, "train.checkpoint_seconds=1e-9");
    job_set(&job, "train.steps=4");
    job.settings.out = scratch_join(out, scratch_place, "clock");
    assert_int_equal(run(&job, &told), 4);
    expect_steps("checkpoint", told.kept, told.checkpoints, (const int64_t[]){1, 2, 3, 4, 0});
}

static int stop_at_five(void *user, const struct tr_train_event *event)
{
    struct told *told = user;
    hear(user, event);
    if (event->kind == TR_EVENT_STEP && event->step == 5) tr_trainer_stop(told->trainer);
    return 0;
}

static void a_stopped_run_saves_its_last_step(void **state)
{
    (void)state;
    struct job job;
    char out[SCRATCH_PATH];
    values_job(&job);
    job_set(&job, "optimizer.clip_norm=1");
    job.settings.out = scratch_join(out, scratch_place, "stopped");
    struct told told = {.trainer = job_trainer(&job)};
    assert_int_equal(tr_trainer_run(told.trainer, stop_at_five, &told), TR_EINTERRUPTED);
    expect_steps("checkpoint", told.kept, told.checkpoints, (const int64_t[]){5, 0});
    tr_trainer_destroy(&told.trainer);
}

/* Validation data are for looking on the way, test data for the end. */
static void validation_comes_first(void **state)
{
    (void)state;
    struct job job;
    struct told told;
    char set[2 * SCRATCH_PATH], path[SCRATCH_PATH];
    must_train(tr_file_write_atomic(NULL, scratch_join(path, scratch_place, "seen.csv"),
                                    "a,b,y\n1,1,1\n1,1,1\n", 18));
    values_job(&job);
    job_set(&job, "optimizer.clip_norm=1");
    snprintf(set, sizeof set, "data.validation={csv: {path: %s, label: value}}", path);
    job_set(&job, set);
    job_set(&job, "train.evaluate_every=6");
    run(&job, &told);
    expect_steps("evaluation", told.evaluated, told.evaluations, (const int64_t[]){6, 12, 12, 0});
    for (int i = 0; i < 3; i++) assert_string_equal(told.set[i], i < 2 ? "validation" : "test");
}

/* With averages that hardly move, evaluations see the network as it was at first, however much it learns. */
static void evaluations_are_of_averages(void **state)
{
    (void)state;
    for (int averaged = 0; averaged < 2; averaged++) {
        struct job job;
        struct tr_train_event before = TR_TRAIN_EVENT_INIT, after = TR_TRAIN_EVENT_INIT;
        values_job(&job);
        job_set(&job, "layers=[dense: 1]");
        job_set(&job, "optimizer.rate=0.05");
        if (averaged) job_set(&job, "optimizer.ema=0.999999");
        tr_trainer *trainer = job_trainer(&job);
        must_train(tr_trainer_evaluate(trainer, "test", &before));
        for (int step = 0; step < 8; step++) must_train(tr_trainer_step(trainer, NULL));
        must_train(tr_trainer_evaluate(trainer, "test", &after));
        assert_true((after.loss > 0.99 * before.loss) == (averaged == 1));
        tr_trainer_destroy(&trainer);
    }
}

/* ---- what the caller says ---- */

static void a_seed_and_steps_of_the_caller_count(void **state)
{
    (void)state;
    struct job job;
    struct outcome file, caller, set;
    values_job(&job);
    job_set(&job, "optimizer.clip_norm=1");
    job_set(&job, "train.steps=0");
    job_set(&job, "train.epochs=7");
    job_outcome(&job, &file);
    assert_int_equal(file.step, 7);
    job.settings.steps = 3;
    job_outcome(&job, &file);
    assert_int_equal(file.step, 3);
    job.settings.has_seed = true;
    job.settings.seed = 77;
    job_outcome(&job, &caller);
    job.settings.has_seed = false;
    job_set(&job, "seed=77");
    job_outcome(&job, &set);
    assert_string_equal(caller.hash, set.hash);
    assert_string_not_equal(caller.hash, file.hash);
}

static int make(void **state)
{
    scratch_place_make(state);
    family_files(scratch_place);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_rate_is_that_of_the_update),
        cmocka_unit_test(a_single_step_tells_its_rate),
        cmocka_unit_test(patience_counts_evaluations),
        cmocka_unit_test(better_evaluations_cost_no_patience),
        cmocka_unit_test(patience_is_about_the_best_loss),
        cmocka_unit_test(the_wanted_accuracy_ends_a_run),
        cmocka_unit_test(patience_outlives_a_checkpoint),
        cmocka_unit_test(things_come_when_they_are_due),
        cmocka_unit_test(what_is_turned_off_stays_away),
        cmocka_unit_test(checkpoints_come_by_the_clock),
        cmocka_unit_test(a_stopped_run_saves_its_last_step),
        cmocka_unit_test(validation_comes_first),
        cmocka_unit_test(evaluations_are_of_averages),
        cmocka_unit_test(a_seed_and_steps_of_the_caller_count),
    };
    return cmocka_run_group_tests_name("train.policy", tests, make, scratch_place_remove);
}
