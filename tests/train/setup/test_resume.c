/* Runs that were stopped and taken up again, on other threads, instruction sets and sizes of a pass, end as
 * the undisturbed ones: same hash, same optimizer to the last byte. What would end otherwise is refused.
 */
#include "support/training.h"

#include "checkpoint/checkpoint.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

static char place[SCRATCH_PATH], data[SCRATCH_PATH];

/* A fresh directory for the checkpoints of one run. */
static const char *fresh(char path[SCRATCH_PATH], const char *name)
{
    scratch_join(path, place, name);
    if (tr_file_is_directory(path)) scratch_remove(path);
    return path;
}

static void expect_same_file(const char *one, const char *other, const char *name, const char *how)
{
    char path[SCRATCH_PATH];
    struct tr_file_content a, b;
    must_train(tr_file_read(scratch_join(path, one, name), 64 << 20, &a));
    must_train(tr_file_read(scratch_join(path, other, name), 64 << 20, &b));
    if (a.size != b.size || memcmp(a.data, b.data, a.size) != 0) {
        size_t at = 0;
        while (at < a.size && at < b.size && a.data[at] == b.data[at]) at++;
        fail_msg("%s: %s of %s and %s differ at byte %zu of %zu", how, name, one, other, at, a.size);
    }
    tr_file_content_free(&a);
    tr_file_content_free(&b);
}

/* ---- the same end from every step ---- */

struct variant {
    const char *name;
    int family;
    const char *set[4];
};

static const struct variant variants[] = {
    {"Adam", 0, {NULL}},
    {"Adam, wide", 1, {NULL}},
    {"SGD with averages and a decaying rate", 2, {NULL}},
    {"AdamW with a cycle",
     2,
     {"optimizer={rule: adamw, rate: 2e-3, weight_decay: 0.1, clip_norm: 1, schedule: {kind: one_cycle, "
      "rise: 0.4}}"}},
    {"an LSTM", 3, {NULL}},
    {"momentum, statistics, averages, dropout, augmentation", 4, {NULL}},
    {"one example a step", 2, {"train.batch=1", "train.microbatches=1", "train.steps=5"}},
};

static void variant_job(struct job *job, const struct variant *variant)
{
    family_job(job, &families[variant->family], data);
    for (int i = 0; i < 4 && variant->set[i]; i++) job_set(job, variant->set[i]);
}

struct stop {
    tr_trainer *trainer;
    int64_t at;
};

static int stop_at(void *user, const struct tr_train_event *event)
{
    struct stop *stop = user;
    if (event->kind == TR_EVENT_STEP && event->step == stop->at) tr_trainer_stop(stop->trainer);
    return 0;
}

/* Begins the run and ends it after `step` steps, alternately as a signal does and through single steps. */
static void run_until(const struct variant *variant, const char *out, int64_t step)
{
    struct job job;
    variant_job(&job, variant);
    job.settings.out = out;
    job_set(&job, "train.log_every=1");
    tr_trainer *trainer = job_trainer(&job);
    if (step % 2) {
        struct stop stop = {trainer, step};
        tr_status status = tr_trainer_run(trainer, stop_at, &stop);
        if (status != TR_EINTERRUPTED)
            fail_msg("stopped at step %lld: %s", (long long)step, tr_status_name(status));
        assert_non_null(strstr(tr_error_message(), out));
    } else {
        for (int64_t i = 0; i < step; i++) must_train(tr_trainer_step(trainer, NULL));
        must_train(tr_trainer_save(trainer, NULL));
    }
    struct tr_train_info info = TR_TRAIN_INFO_INIT;
    must_train(tr_trainer_info(trainer, &info));
    assert_int_equal(info.step, step);
    tr_trainer_destroy(&trainer);
}

/* Takes the run up in another way for every step, and without the model file for some. */
static void take_up(const struct variant *variant, const char *out, int64_t step, struct outcome *outcome)
{
    static const char *const passes[] = {"train.pass=1", "train.pass=0", "train.pass=2"};
    const char *const *isas = training_isas();
    int count = 0;
    while (isas[count]) count++;
    struct job job;
    variant_job(&job, variant);
    if (step % 3 == 0) job_begin(&job, NULL);
    job.settings.resume = job.settings.out = out;
    job.settings.threads = 1 + (int)(step % 4);
    job.settings.isa = isas[step % count];
    if (step % 5 == 4) job.settings.device = "ref";
    job_set(&job, passes[step % 3]);
    job_set(&job, "train.prefetch=2");
    job_set(&job, "train.log_every=1");
    tr_trainer *trainer = job_trainer(&job);
    struct tr_train_info info = TR_TRAIN_INFO_INIT;
    must_train(tr_trainer_info(trainer, &info));
    assert_int_equal(info.step, step);
    assert_string_equal(info.resume_warnings, "");
    assert_non_null(strstr(info.resumed, out));
    trainer_outcome(trainer, outcome);
    tr_trainer_destroy(&trainer);
}

static void test_from_every_step(void **state)
{
    (void)state;
    for (size_t v = 0; v < sizeof variants / sizeof variants[0]; v++) {
        const struct variant *variant = &variants[v];
        char whole[SCRATCH_PATH], parts[SCRATCH_PATH], how[128];
        struct outcome expected, got;
        struct job job;
        variant_job(&job, variant);
        job_set(&job, "train.log_every=1");
        job.settings.out = fresh(whole, "whole");
        job_outcome(&job, &expected);
        if (expected.status != TR_OK) fail_msg("%s: %s", variant->name, expected.message);
        assert_int_equal(expected.checkpoints, 1);
        for (int64_t step = 1; step < expected.step; step++) {
            snprintf(how, sizeof how, "%s, stopped after step %lld", variant->name, (long long)step);
            run_until(variant, fresh(parts, "parts"), step);
            take_up(variant, parts, step, &got);
            assert_int_equal(got.steps_seen, expected.steps_seen - (uint64_t)step);
            memcpy(got.losses, expected.losses, sizeof got.losses); /* it saw only a part of them */
            got.evaluations = expected.evaluations;
            expect_same(&expected, &got, how);
            if (got.loss != expected.loss)
                fail_msg("%s: last loss %.17g, not %.17g", how, got.loss, expected.loss);
            expect_same_file(expected.checkpoint, got.checkpoint, "parameters.safetensors", how);
            expect_same_file(expected.checkpoint, got.checkpoint, "optimizer.safetensors", how);
        }
    }
}

/* Stopped at every step of the way. */
static void test_many_times(void **state)
{
    (void)state;
    const struct variant *variant = &variants[5];
    struct outcome expected, got = {0};
    struct job job;
    variant_job(&job, variant);
    job_outcome(&job, &expected);
    char out[SCRATCH_PATH];
    run_until(variant, fresh(out, "parts"), 1);
    for (int64_t step = 1; step < expected.step - 1; step++) {
        variant_job(&job, variant);
        job.settings.resume = job.settings.out = out;
        job.settings.threads = 1 + (int)(step % 3);
        tr_trainer *trainer = job_trainer(&job);
        must_train(tr_trainer_step(trainer, NULL));
        must_train(tr_trainer_save(trainer, NULL));
        tr_trainer_destroy(&trainer);
    }
    take_up(variant, out, expected.step - 1, &got);
    assert_string_equal(got.hash, expected.hash);
}

static void test_finished_run(void **state)
{
    (void)state;
    char out[SCRATCH_PATH];
    struct outcome expected, got;
    struct job job;
    variant_job(&job, &variants[0]);
    job.settings.out = fresh(out, "whole");
    job_outcome(&job, &expected);
    job.settings.resume = out;
    job_outcome(&job, &got);
    assert_int_equal(got.steps_seen, 0);
    assert_int_equal(got.checkpoints, 0); /* it has been saved */
    memcpy(got.losses, expected.losses, sizeof got.losses);
    expect_same(&expected, &got, "a finished run, taken up");
}

/* One that ends with a checkpoint which is not the newest of its directory saves it anew: later ones are of
   an abandoned continuation. */
static void test_abandoned_steps(void **state)
{
    (void)state;
    char out[SCRATCH_PATH], older[SCRATCH_PATH];
    struct outcome got;
    struct job job;
    int64_t latest;
    variant_job(&job, &variants[0]);
    job_set(&job, "train.checkpoint_every=2");
    job.settings.out = fresh(out, "whole");
    job_outcome(&job, &got);
    must_train(got.status);
    assert_int_equal(tr_checkpoint_latest(out, &latest), TR_OK);
    assert_int_equal(latest, 7);
    job.settings.resume = scratch_join(older, out, "checkpoint-00000006");
    job.settings.steps = 6;
    job_outcome(&job, &got);
    must_train(got.status);
    assert_int_equal(got.steps_seen, 0);
    assert_int_equal(got.checkpoints, 1);
    assert_int_equal(tr_checkpoint_latest(out, &latest), TR_OK);
    assert_int_equal(latest, 6);
}

static void test_more_steps(void **state)
{
    (void)state;
    char out[SCRATCH_PATH];
    struct outcome expected, got;
    struct job job;
    variant_job(&job, &variants[4]);
    job.settings.steps = 10;
    job_outcome(&job, &expected);
    assert_int_equal(expected.step, 10);
    variant_job(&job, &variants[4]);
    job.settings.out = fresh(out, "parts");
    job_outcome(&job, &got);
    assert_int_equal(got.step, 6);
    job.settings.resume = out;
    job.settings.steps = 10;
    job_outcome(&job, &got);
    assert_int_equal(got.steps_seen, 4);
    assert_string_equal(got.hash, expected.hash);
}

/* ---- early stops ---- */

static void early_job(struct job *job, const char *condition)
{
    family_job(job, &families[2], data);
    job_set(job, "input.scale=1/255");
    job_set(job, "optimizer={rule: sgd, rate: 0.6}");
    job_set(job, "train.steps=40");
    job_set(job, "train.evaluate_every=1");
    job_set(job, condition);
}

static void check_early_stop(const char *condition)
{
    char out[SCRATCH_PATH], how[96];
    struct outcome expected, got;
    struct job job;
    early_job(&job, condition);
    job.settings.out = fresh(out, "whole");
    job_outcome(&job, &expected);
    if (expected.status != TR_OK) fail_msg("%s: %s", condition, expected.message);
    if (expected.step < 4 || expected.step == 40)
        fail_msg("%s: ended after step %lld, which does not test much", condition, (long long)expected.step);
    for (int64_t step = 1; step <= expected.step; step++) {
        snprintf(how, sizeof how, "%s, taken up after step %lld", condition, (long long)step);
        early_job(&job, condition);
        job.settings.out = fresh(out, "parts");
        job_set(&job, "train.checkpoint_every=1");
        tr_trainer *trainer = job_trainer(&job);
        struct stop stop = {trainer, step};
        (void)tr_trainer_run(trainer, stop_at, &stop);
        tr_trainer_destroy(&trainer);
        job.settings.resume = out;
        job_outcome(&job, &got);
        if (got.status != TR_OK) fail_msg("%s: %s", how, got.message);
        if (got.step != expected.step)
            fail_msg("%s: ended after step %lld, the undisturbed run after %lld", how, (long long)got.step,
                     (long long)expected.step);
        assert_string_equal(got.hash, expected.hash);
    }
}

static void test_patience(void **state)
{
    (void)state;
    check_early_stop("train.patience=3");
}

static void test_until_accuracy(void **state)
{
    (void)state;
    check_early_stop("train.until_accuracy=0.55");
}

/* ---- refusals ---- */

static void start(char out[SCRATCH_PATH])
{
    run_until(&variants[0], fresh(out, "parts"), 3);
}

/* Tries to take up what start() left, with one change. */
static void try_with(const char *out, const char *assignment, bool changed, struct outcome *outcome)
{
    struct job job;
    variant_job(&job, &variants[0]);
    job.settings.resume = out;
    job.settings.resume_changed = changed;
    if (assignment) job_set(&job, assignment);
    job_outcome(&job, outcome);
}

static void expect_refusal(const struct outcome *outcome, const char *about, tr_status status,
                           const char *const *says)
{
    if (outcome->status != status)
        fail_msg("%s: %s (%s), should be %s", about, tr_status_name(outcome->status), outcome->message,
                 tr_status_name(status));
    for (int i = 0; says[i]; i++)
        if (!strstr(outcome->message, says[i]))
            fail_msg("%s: \"%s\" does not say \"%s\"", about, outcome->message, says[i]);
}

static void digest_of(const char *assignment, char digest[65])
{
    struct job job;
    struct tr_train_info info = TR_TRAIN_INFO_INIT;
    variant_job(&job, &variants[0]);
    if (assignment) job_set(&job, assignment);
    tr_trainer *trainer = job_trainer(&job);
    must_train(tr_trainer_info(trainer, &info));
    snprintf(digest, 65, "%s", info.digest);
    tr_trainer_destroy(&trainer);
}

static void test_other_settings_are_refused(void **state)
{
    (void)state;
    char out[SCRATCH_PATH];
    start(out);
    static const char *const changes[] = {"optimizer.rate=1e-3",   "seed=5",
                                          "train.batch=20",        "train.microbatches=4",
                                          "layers[5].dropout=0.4", "layers[4].units=34",
                                          "input.scale=1/256",     "loss={label_smoothing: 0.1}",
                                          "train.shuffle=false",   "optimizer.schedule=cosine"};
    for (size_t i = 0; i < sizeof changes / sizeof changes[0]; i++) {
        char here[65], there[65];
        struct outcome outcome;
        digest_of(NULL, there);
        digest_of(changes[i], here);
        here[16] = there[16] = 0;
        try_with(out, changes[i], false, &outcome);
        expect_refusal(&outcome, changes[i], TR_EMISMATCH,
                       (const char *const[]){"other settings", here, there, out, "`resume_changed`", NULL});
    }
}

static void test_other_data_are_refused(void **state)
{
    (void)state;
    char out[SCRATCH_PATH];
    struct outcome outcome;
    start(out);
    try_with(out, "data.train.idx={images: test-images, labels: test-labels, classes: 10}", false, &outcome);
    expect_refusal(&outcome, "other data", TR_EMISMATCH,
                   (const char *const[]){"other training data", "digest", out, NULL});
    try_with(out, "data.test.idx={images: train-images, labels: train-labels}", false, &outcome);
    assert_int_equal(outcome.status, TR_OK); /* only what trains matters */
}

static void test_other_networks_are_refused(void **state)
{
    (void)state;
    char out[SCRATCH_PATH];
    struct outcome outcome;
    start(out);
    try_with(out, "layers[4].units=34", true, &outcome);
    expect_refusal(&outcome, "another width", TR_EMISMATCH,
                   (const char *const[]){"dense1.weights", "33", "34", NULL});
    try_with(out, "layers[2].name=other", true, &outcome);
    expect_refusal(&outcome, "another name", TR_EMISMATCH, (const char *const[]){"other.weights", NULL});
    try_with(out, "optimizer={rule: sgd, rate: 1}", true, &outcome);
    expect_refusal(&outcome, "another optimizer", TR_EMISMATCH, (const char *const[]){"conv1.weights", NULL});
}

static void test_changes_on_demand(void **state)
{
    (void)state;
    char out[SCRATCH_PATH];
    struct outcome undisturbed, outcome;
    start(out);
    try_with(out, NULL, false, &undisturbed);
    assert_int_equal(undisturbed.status, TR_OK);
    try_with(out, "optimizer.rate=1e-3", true, &outcome);
    if (outcome.status != TR_OK) fail_msg("a changed rate that is allowed: %s", outcome.message);
    assert_int_equal(outcome.steps_seen, 4);
    assert_string_not_equal(outcome.hash, undisturbed.hash);
}

/* A schedule that lasts as long as the training is another one when that gets longer. */
static void test_more_steps_under_a_schedule_that_ends(void **state)
{
    (void)state;
    char out[SCRATCH_PATH];
    struct outcome outcome;
    run_until(&variants[3], fresh(out, "parts"), 4);
    struct job job;
    variant_job(&job, &variants[3]);
    job.settings.resume = out;
    job.settings.steps = 30;
    job_outcome(&job, &outcome);
    expect_refusal(&outcome, "a longer cycle", TR_EMISMATCH, (const char *const[]){"other settings", NULL});
}

static void test_nothing_there(void **state)
{
    (void)state;
    struct outcome outcome;
    char path[SCRATCH_PATH];
    try_with(scratch_join(path, place, "nothing"), NULL, false, &outcome);
    expect_refusal(&outcome, "no directory", TR_ENOTFOUND, (const char *const[]){path, NULL});
    try_with(data, NULL, false, &outcome);
    expect_refusal(&outcome, "no checkpoint", TR_ENOTFOUND, (const char *const[]){data, NULL});
    struct job job;
    job_begin(&job, NULL);
    job_outcome(&job, &outcome);
    expect_refusal(&outcome, "neither", TR_EINVAL, (const char *const[]){"model file", "checkpoint", NULL});
}

/* ---- damage ---- */

static void flip_byte(const char *checkpoint, const char *name, size_t from_end)
{
    char path[SCRATCH_PATH];
    struct tr_file_content content;
    must_train(tr_file_read(scratch_join(path, checkpoint, name), 64 << 20, &content));
    content.data[content.size - from_end] ^= 0x10;
    must_train(tr_file_write_atomic(NULL, path, content.data, content.size));
    tr_file_content_free(&content);
}

static void test_damage_costs_no_more_than_its_checkpoint(void **state)
{
    (void)state;
    char out[SCRATCH_PATH];
    struct outcome expected, got, first;
    struct job job;
    variant_job(&job, &variants[0]);
    job_outcome(&job, &expected);
    variant_job(&job, &variants[0]);
    job.settings.out = fresh(out, "parts");
    job.settings.steps = 6;
    job_set(&job, "train.checkpoint_every=2");
    job_set(&job, "train.keep=3");
    job_outcome(&job, &first);
    assert_int_equal(first.checkpoints, 3);
    flip_byte(first.checkpoint, "parameters.safetensors", 9);
    job.settings.steps = 7;
    job.settings.resume = out;
    tr_trainer *trainer = job_trainer(&job);
    struct tr_train_info info = TR_TRAIN_INFO_INIT;
    must_train(tr_trainer_info(trainer, &info));
    assert_int_equal(info.step, 4);
    assert_non_null(strstr(info.resumed, "checkpoint-00000004"));
    assert_non_null(strstr(info.resume_warnings, "checkpoint-00000006"));
    assert_non_null(strstr(info.resume_warnings, "dense2")); /* whose tensor the byte belongs to */
    trainer_outcome(trainer, &got);
    tr_trainer_destroy(&trainer);
    assert_int_equal(got.status, TR_OK);
    assert_string_equal(got.hash, expected.hash);
    /* Named directly, a damaged checkpoint is an error. */
    run_until(&variants[0], fresh(out, "parts"), 2);
    char path[SCRATCH_PATH];
    scratch_join(path, out, "checkpoint-00000002");
    flip_byte(path, "optimizer.safetensors", 5);
    try_with(path, NULL, false, &got);
    expect_refusal(&got, "a damaged checkpoint", TR_ECORRUPT,
                   (const char *const[]){"optimizer.safetensors", NULL});
}

/* A checkpoint carries its job: it continues where the model file is gone, and in another working directory.
 */
static void test_without_the_model_file(void **state)
{
    (void)state;
    char out[SCRATCH_PATH];
    struct outcome expected, got;
    struct job job;
    variant_job(&job, &variants[4]);
    job_outcome(&job, &expected);
    run_until(&variants[4], fresh(out, "parts"), 3);
    job_begin(&job, NULL);
    job.settings.resume = out;
    job_outcome(&job, &got);
    assert_int_equal(got.status, TR_OK);
    assert_string_equal(got.hash, expected.hash);
    assert_true(got.evaluated_loss == expected.evaluated_loss); /* the test data are found, too */
}

static int make_place(void **state)
{
    (void)state;
    scratch_make(place);
    scratch_make(data);
    family_files(data);
    return 0;
}

static int remove_place(void **state)
{
    (void)state;
    scratch_remove(place);
    scratch_remove(data);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_from_every_step),
        cmocka_unit_test(test_many_times),
        cmocka_unit_test(test_finished_run),
        cmocka_unit_test(test_abandoned_steps),
        cmocka_unit_test(test_more_steps),
        cmocka_unit_test(test_patience),
        cmocka_unit_test(test_until_accuracy),
        cmocka_unit_test(test_other_settings_are_refused),
        cmocka_unit_test(test_other_data_are_refused),
        cmocka_unit_test(test_other_networks_are_refused),
        cmocka_unit_test(test_changes_on_demand),
        cmocka_unit_test(test_more_steps_under_a_schedule_that_ends),
        cmocka_unit_test(test_nothing_there),
        cmocka_unit_test(test_damage_costs_no_more_than_its_checkpoint),
        cmocka_unit_test(test_without_the_model_file),
    };
    return cmocka_run_group_tests(tests, make_place, remove_place);
}
