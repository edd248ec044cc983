/* Beginning with parameters of another run: which are taken, what is said of the rest, and when nothing
 * fits. */
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

#define HEAD "name: job\ndata: {train: {csv: {path: numbers.csv, label: value}}}\nloss: mean_squared_error\n"
#define TAIL "optimizer: {rule: sgd, rate: 0.01}\ntrain: {batch: 2, steps: 2}\n"

static void write_job(const char *file, const char *layers, const char *more)
{
    struct tr_text text = TR_TEXT_INIT;
    char path[SCRATCH_PATH];
    tr_text_addf(&text, HEAD "layers: [%s]\n" TAIL "%s", layers, more);
    must_write(scratch_join(path, scratch_place, file), &text);
}

static void begin(struct job *job, const char *file)
{
    static char path[SCRATCH_PATH];
    job_begin(job, scratch_join(path, scratch_place, file));
    job->settings.journal = "";
}

static char from[SCRATCH_PATH];

static int make(void **state)
{
    struct job job;
    struct outcome outcome;
    scratch_place_make(state);
    scratch_write_text("numbers.csv", "a,b,y\n1,2,3\n2,-1,1\n-1,3,2\n");
    write_job("first.yaml", "{dense: {units: 3, name: one}}, {dense: {units: 1, name: two}}", "");
    write_job("wider.yaml", "{dense: {units: 3, name: one}}, {dense: {units: 4, name: two}}, {dense: 1}", "");
    write_job("many.yaml",
              "{dense: {units: 3, name: one}}, {dense: {units: 3, name: a}}, {dense: {units: 3, name: b}}, "
              "{dense: {units: 3, name: c}}, {dense: {units: 1, name: d}}",
              "");
    write_job("other.yaml", "{dense: {units: 5, name: x}}, {dense: {units: 1, name: y}}", "");
    begin(&job, "first.yaml");
    job.settings.out = scratch_join(from, scratch_place, "first");
    job_outcome(&job, &outcome);
    must_train(outcome.status);
    return 0;
}

static void expect_start(const char *file, const char *part)
{
    struct job job;
    struct tr_train_info info = TR_TRAIN_INFO_INIT;
    float taken[6], own[6];
    begin(&job, "first.yaml");
    job.settings.resume = from;
    tr_trainer *trainer = job_trainer(&job);
    must_train(tr_trainer_parameter(trainer, "one.weights", taken, 6));
    tr_trainer_destroy(&trainer);
    begin(&job, file);
    job.settings.from = from;
    trainer = job_trainer(&job);
    must_train(tr_trainer_info(trainer, &info));
    if (!strstr(info.start, part)) fail_msg("%s: \"%s\" lacks \"%s\"", file, info.start, part);
    assert_int_equal(info.step, 0);
    must_train(tr_trainer_parameter(trainer, "one.weights", own, 6));
    assert_memory_equal(own, taken, sizeof own);
    tr_trainer_destroy(&trainer);
}

static void what_is_new_is_said(void **state)
{
    (void)state;
    expect_start("first.yaml", "first/checkpoint-00000002: 4 of 4 parameters\n");
    expect_start("wider.yaml",
                 "first/checkpoint-00000002: 2 of 6 parameters, new are two.weights F32[3,4] (there "
                 "F32[3,1]), two.bias F32[4] (there F32[1]), dense3.weights F32[4,1], dense3.bias F32[1]\n");
    expect_start(
        "many.yaml",
        ": 2 of 10 parameters, new are a.weights F32[3,3], a.bias F32[3], b.weights F32[3,3], b.bias "
        "F32[3], c.weights F32[3,3], c.bias F32[3] and 2 more\n");
}

static void nothing_in_common_is_an_error(void **state)
{
    (void)state;
    struct job job;
    tr_trainer *trainer;
    begin(&job, "other.yaml");
    job.settings.from = from;
    job.settings.set = job.set;
    assert_int_equal(tr_trainer_create(&job.settings, &trainer), TR_EMISMATCH);
    assert_non_null(
        strstr(tr_error_message(),
               "first/checkpoint-00000002\" has nothing in common with the network, which has "
               "x.weights F32[2,5], x.bias F32[5], y.weights F32[5,1], y.bias F32[1]; give layers "
               "that are the same the same `name`"));
    job.settings.from = scratch_in("missing");
    assert_int_equal(tr_trainer_create(&job.settings, &trainer), TR_ENOTFOUND);
    assert_non_null(strstr(tr_error_message(), "missing"));
}

static void from_memory_it_is_the_same(void **state)
{
    (void)state;
    struct job job;
    struct tr_train_info info = TR_TRAIN_INFO_INIT;
    void *bytes;
    size_t size;
    float taken[6], own[6];
    begin(&job, "first.yaml");
    job.settings.resume = from;
    tr_trainer *trainer = job_trainer(&job);
    must_train(tr_trainer_parameter(trainer, "one.weights", taken, 6));
    must_train(tr_trainer_save_state(trainer, &bytes, &size));
    tr_trainer_destroy(&trainer);
    begin(&job, "wider.yaml");
    job.settings.from_state = (struct tr_run_state){.bytes = bytes, .size = size};
    trainer = job_trainer(&job);
    must_train(tr_trainer_info(trainer, &info));
    assert_non_null(strstr(info.start, "(memory): 2 of 6 parameters, new are two.weights"));
    must_train(tr_trainer_parameter(trainer, "one.weights", own, 6));
    assert_memory_equal(own, taken, sizeof own);
    tr_trainer_destroy(&trainer);
    tr_state_free(bytes);
}

static void every_allocation_fails(void **state)
{
    (void)state;
    for (int64_t at = 0, done = 0; !done; at++) {
        struct job job;
        tr_trainer *trainer = NULL;
        const int64_t live = tr_alloc_live();
        begin(&job, "many.yaml");
        job.settings.from = from;
        job.settings.set = job.set;
        refuse_begin(at);
        const tr_status status = tr_trainer_create(&job.settings, &trainer);
        done = refuse_end();
        if (status != (done ? TR_OK : TR_ENOMEM))
            fail_msg("allocation %lld: %s: %s", (long long)at, tr_status_name(status), tr_error_message());
        tr_trainer_destroy(&trainer);
        assert_int_equal(tr_alloc_live(), live);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_new_is_said),
        cmocka_unit_test(nothing_in_common_is_an_error),
        cmocka_unit_test(from_memory_it_is_the_same),
        cmocka_unit_test(every_allocation_fails),
    };
    return cmocka_run_group_tests(tests, make, scratch_place_remove);
}
