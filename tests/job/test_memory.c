/* The bytes that sets and gradients say they take of a device are those that the device was asked for: on a
 * device with memory of its own, for every family of jobs.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "support/shadow.h"
#include "support/training.h"

#include "refuse.h"

#include "job/feed/resident.h"
#include "job/step/gradient.h"
#include "train/loop/trainer.h"

/* What the device was asked for since. */
static int64_t taken_since(int64_t begin)
{
    return (int64_t)shadow_taken - begin;
}

/* The job of a family, whose data are open as long as its trainer is there. */
static tr_trainer *open_job(const struct family *family, const char *pass)
{
    struct job job;
    family_job(&job, family, family_place);
    job_set(&job, "train.microbatches=4");
    job_set(&job, pass);
    job.settings.set = job.set;
    return job_trainer(&job);
}

static void a_set_takes_what_it_says(void **state)
{
    int kept = 0;
    (void)state;
    for (int f = 0; f < family_count; f++) {
        tr_trainer *trainer = open_job(&families[f], "train.pass=0");
        const tr_source *source = trainer_job(trainer)->source[TR_SET_TRAIN];
        struct tr_resident resident;
        tr_device *device;
        int64_t expected;
        must_train(shadow_create(1, NULL, &device));
        int64_t begin = (int64_t)shadow_taken;
        must_train(tr_resident_expect(device, source, &expected));
        assert_int_equal(taken_since(begin), 0);
        must_train(tr_resident_make(device, source, true, true, true, &resident));
        if (taken_since(begin) != expected || (int64_t)resident.memory != expected)
            fail_msg("%s: %lld bytes are expected and %zu told, %lld are taken", families[f].name,
                     (long long)expected, resident.memory, (long long)taken_since(begin));
        assert_int_equal(resident.here, expected > 0);
        kept += expected > 0;
        tr_resident_release(&resident);
        assert_int_equal(taken_since(begin), 0);
        /* Where memory is missing, nothing is kept, nor is it on a later try that succeeds. */
        bool done = false;
        for (int64_t at = 0; !done; at++) {
            const int64_t live = tr_alloc_live();
            refuse_begin(at);
            const tr_status status = tr_resident_make(device, source, true, true, true, &resident);
            done = refuse_end();
            assert_int_equal(status, done ? TR_OK : TR_ENOMEM);
            tr_resident_release(&resident);
            assert_int_equal(taken_since(begin), 0);
            assert_int_equal(tr_alloc_live(), live);
        }
        /* Half of what is free is enough, and not a byte less: then nothing is expected, nor taken. */
        shadow_room = 2 * expected;
        must_train(tr_resident_expect(device, source, &expected));
        assert_int_equal(2 * expected, shadow_room);
        shadow_room = 2 * expected - 1;
        must_train(tr_resident_expect(device, source, &expected));
        must_train(tr_resident_make(device, source, true, true, true, &resident));
        assert_int_equal(expected, 0);
        assert_int_equal(taken_since(begin), 0);
        tr_resident_release(&resident);
        shadow_room = INT64_MAX;
        tr_device_destroy(&device);
        tr_trainer_destroy(&trainer);
    }
    assert_true(kept > 2);
}

/* In one pass, and in several, which need slots to wait in. */
static void a_gradient_takes_what_it_says(void **state)
{
    static const char *const passes[] = {"train.pass=0", "train.pass=1"};
    (void)state;
    for (int f = 0; f < family_count; f++)
        for (size_t p = 0; p < sizeof passes / sizeof passes[0]; p++) {
            tr_trainer *trainer = open_job(&families[f], passes[p]);
            const struct tr_job *job = trainer_job(trainer);
            const struct tr_gradient_part part = {.end = job->train.microbatches,
                                                  .end_step = job->train.steps};
            tr_variables *variables;
            tr_gradient *gradient;
            tr_device *device;
            must_train(shadow_create(1, NULL, &device));
            must_train(tr_variables_create(device, job->model, &job->optimizer, NULL, &variables));
            int64_t begin = (int64_t)shadow_taken;
            must_train(tr_gradient_create(device, job, variables, &part, NULL, &gradient));
            if (taken_since(begin) != (int64_t)tr_gradient_memory(gradient))
                fail_msg("%s, %s: %zu bytes are told, %lld are taken", families[f].name, passes[p],
                         tr_gradient_memory(gradient), (long long)taken_since(begin));
            tr_gradient_destroy(&gradient);
            assert_int_equal(taken_since(begin), 0);
            tr_variables_destroy(&variables);
            tr_device_destroy(&device);
            tr_trainer_destroy(&trainer);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_set_takes_what_it_says),
        cmocka_unit_test(a_gradient_takes_what_it_says),
    };
    return cmocka_run_group_tests_name("job.memory", tests, family_place_make, family_place_remove);
}
