/* Whole runs on OpenCL devices: the hash of the cpu device, for every family, several ranks on one device,
 * ranks on different ones, parameters on the other device, and checkpoints that change devices.
 */
#include "support/gpu/opencl.h"
#include "support/ranks.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

enum { STEPS = 3 };

static void begin(struct job *job, int family)
{
    family_job(job, &families[family], family_place);
    job_set(job, "train.log_every=3"); /* step 3 can begin before step 2 is judged */
    job->settings.steps = STEPS;
    job->settings.set = job->set;
    job->settings.program_cache = TEST_PROGRAMS;
}

static void expect_hash(struct job *job, const char *device, const struct outcome *expected, const char *how)
{
    struct outcome got;
    job->settings.device = device;
    job_outcome(job, &got);
    expect_same(expected, &got, how);
}

static void every_family_has_the_hash_of_the_cpu(void **state)
{
    (void)state;
    for (int family = 0; family < family_count; family++) {
        struct job job;
        struct outcome expected;
        begin(&job, family);
        job.settings.device = "cpu";
        job_outcome(&job, &expected);
        expect_hash(&job, "opencl", &expected, families[family].name);
    }
}

/* Strategies whose hash is that of one process, on ranks that each take a device of the list in turn. */
static void ranks_have_it_too(void **state)
{
    static const struct {
        const char *strategy, *device, *holder, *shares;
        int ranks;
        bool apart;
    } runs[] = {
        {"allreduce", "opencl", "opencl", NULL, 2, false},
        {"allreduce", "opencl", "opencl", NULL, 2, true},
        {"allreduce", "cpu,opencl", NULL, "auto", 2, false},
        {"allreduce", "opencl,cpu", "cpu", "1,3,1", 3, true},
        {"parameter-server", "cpu,opencl", NULL, "3,1", 3, false},
        {"pipeline", "opencl,cpu", NULL, NULL, 2, false},
    };
    struct job job;
    struct outcome expected;
    (void)state;
    begin(&job, 0);
    job.settings.steps = 5; /* shares change after 4 */
    job.settings.device = "cpu";
    job_outcome(&job, &expected);
    for (size_t i = 0; i < sizeof runs / sizeof runs[0]; i++) {
        struct rank ranks[RANKS];
        struct tr_train_settings settings = job.settings;
        char how[160];
        settings.strategy = runs[i].strategy;
        settings.device = runs[i].device;
        settings.parameters_on = runs[i].holder;
        settings.shares = runs[i].shares;
        snprintf(how, sizeof how, "%s on %d ranks%s, computing on %s, parameters on %s", runs[i].strategy,
                 runs[i].ranks, runs[i].apart ? " apart" : "", runs[i].device,
                 runs[i].holder ? runs[i].holder : "it");
        run_ranks(&settings, runs[i].ranks, runs[i].apart, ranks);
        expect_well(ranks, runs[i].ranks, how);
        assert_string_equal(ranks[0].outcome.hash, expected.hash);
        /* which is faster here is not known */
        if (runs[i].shares && strcmp(runs[i].shares, "auto") != 0)
            assert_int_equal(ranks[0].outcome.shared, 1);
    }
}

/* The times of layers are the device's, and no step waits for them: what the thread does meanwhile is under
   other causes, and all together is the time of the run. */
static void a_profile_has_the_times_of_the_device(void **state)
{
    const struct tr_train_profile *profile;
    struct outcome outcome;
    struct job job;
    double layers = 0;
    (void)state;
    begin(&job, 0);
    job.settings.device = "opencl";
    job.settings.profile = true;
    tr_trainer *trainer = job_trainer(&job);
    trainer_outcome(trainer, &outcome);
    assert_int_equal(outcome.status, TR_OK);
    must_train(tr_trainer_profile(trainer, &profile));
    assert_true(profile->layer_count > 5);
    for (int i = 0; i < profile->layer_count; i++) {
        const struct tr_profile_layer *layer = &profile->layers[i];
        assert_true(layer->calls > 0 && layer->calls % STEPS == 0);
        assert_true(layer->forward_seconds > 0);
        layers += layer->forward_seconds + layer->backward_seconds;
    }
    const double *seconds = profile->rank[0].seconds;
    assert_true(seconds[TR_CAUSE_UPDATE] > 0);
    assert_true(layers <= seconds[TR_CAUSE_FORWARD] + seconds[TR_CAUSE_BACKWARD] + 1e-9);
    tr_trainer_destroy(&trainer);
}

/* Stops after each step, and goes on from the checkpoint on the other device. */
static void checkpoints_change_devices(void **state)
{
    static const char *const devices[] = {"opencl", "cpu", "opencl"};
    char out[SCRATCH_PATH];
    struct job job;
    struct outcome expected, got;
    (void)state;
    begin(&job, 4); /* averages, statistics, momentum */
    job.settings.device = "cpu";
    job_outcome(&job, &expected);
    job.settings.out = scratch_join(out, family_place, "changes");
    for (int step = 1; step <= STEPS; step++) {
        job.settings.steps = step;
        job.settings.device = devices[step - 1];
        job.settings.continues = step > 1;
        job.settings.resume_changed = true; /* the number of steps */
        job_outcome(&job, &got);
        assert_string_equal(got.message, "");
        assert_int_equal(got.step, step);
    }
    assert_string_equal(got.hash, expected.hash);
}

int main(int count, char **arguments)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_family_has_the_hash_of_the_cpu),
        cmocka_unit_test(ranks_have_it_too),
        cmocka_unit_test(a_profile_has_the_times_of_the_device),
        cmocka_unit_test(checkpoints_change_devices),
    };
    if (!opencl_is_here()) return 0;
    if (count > 1) cmocka_set_test_filter(arguments[1]);
    return cmocka_run_group_tests_name("opencl", tests, family_place_make, family_place_remove);
}
