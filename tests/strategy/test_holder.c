/* One device computes, another holds the parameters and updates them: the same bits, under all strategies;
 * and with a device whose memory is its own, by copies. */
#include "support/ranks.h"
#include "support/operations/shadow.h"

#include "job/step/mirror.h"
#include "strategy/strategy.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#define STEPS 5

static void begin(struct job *job, int family, const char *place)
{
    family_job(job, &families[family], place);
    job_set(job, "train.microbatches=4");
    job->settings.set = job->set;
    job->settings.steps = STEPS;
}

static void every_strategy_takes_another_holder(void **state)
{
    (void)state;
    static const struct {
        const char *strategy;
        int ranks;
    } cases[] = {
        {"allreduce", 1}, {"allreduce", 3}, {"parameter-server,mode=sync", 3}, {"pipeline,stages=2", 2}};
    static const char *const devices[][2] = {{"cpu", "ref"}, {"ref", "cpu"}};
    char place[SCRATCH_PATH];
    scratch_make(place);
    family_files(place);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        for (int d = 0; d < 2; d++) {
            struct job job;
            struct outcome alone;
            struct rank ranks[RANKS];
            char how[80];
            begin(&job, 0, place);
            job_outcome(&job, &alone);
            assert_int_equal(alone.status, TR_OK);
            job.settings.strategy = cases[i].strategy;
            job.settings.device = devices[d][0];
            job.settings.parameters_on = devices[d][1];
            snprintf(how, sizeof how, "%s, %s computes, %s holds", cases[i].strategy, devices[d][0],
                     devices[d][1]);
            if (cases[i].ranks > 1) {
                run_ranks(&job.settings, cases[i].ranks, false, ranks);
                expect_ranks(&alone, ranks, cases[i].ranks, how);
            } else {
                struct outcome got;
                job_outcome(&job, &got);
                expect_same(&alone, &got, how);
            }
        }
    scratch_remove(place);
}

/* ---- a device with memory of its own, as accelerators have ---- */

static tr_device *make_far(void)
{
    tr_device *device;
    must_train(shadow_create(0, NULL, &device));
    return device;
}

static void train(const struct job *job, tr_device *device, tr_device *holder, char hash[TR_SHA256_TEXT])
{
    struct tr_job_settings settings = {
        .set = job->settings.set, .set_count = job->settings.set_count, .steps = STEPS};
    struct tr_strategy_settings choice = {.holder = holder};
    struct tr_job *own;
    tr_strategy *strategy;
    must_train(tr_job_open(job->settings.model, &settings, &own));
    must_train(tr_job_open_set(own, TR_SET_TRAIN));
    must_train(tr_strategy_create(device, own, NULL, &choice, &strategy));
    tr_variables *variables = tr_strategy_variables(strategy);
    assert_ptr_equal(tr_variables_device(variables), holder ? holder : device);
    must_train(tr_variables_initialize(variables, (uint64_t)own->file.seed));
    must_train(tr_strategy_begin(strategy));
    must_train(tr_strategy_connect(strategy, 0));
    for (int64_t step = 0; step < STEPS; step++) {
        struct tr_step_figures figures;
        must_train(tr_strategy_step(strategy, step, 0, &figures));
    }
    must_train(tr_variables_hash(variables, hash));
    tr_strategy_destroy(&strategy);
    tr_job_destroy(&own);
}

static void far_devices_get_copies(void **state)
{
    (void)state;
    char place[SCRATCH_PATH];
    scratch_make(place);
    family_files(place);
    for (int f = 0; f < family_count; f++) {
        struct job job;
        char expected[TR_SHA256_TEXT], got[TR_SHA256_TEXT];
        tr_device *near = NULL, *far = make_far();
        must_train(tr_device_create("ref", 0, NULL, &near));
        begin(&job, f, place);
        train(&job, near, NULL, expected);
        train(&job, far, near, got);
        if (strcmp(expected, got) != 0)
            fail_msg("%s: the far device computes, the near one holds", families[f].name);
        train(&job, near, far, got);
        if (strcmp(expected, got) != 0)
            fail_msg("%s: the near device computes, the far one holds", families[f].name);
        tr_device_destroy(&far);
        tr_device_destroy(&near);
    }
    scratch_remove(place);
}

/* Fails the test unless memory of a device holds what the host's does. */
static void assert_far_equal(tr_device *device, const void *far, const void *expected, size_t bytes)
{
    void *got = malloc(bytes);
    assert_non_null(got);
    must_train(tr_device_to_host(device, got, far, bytes));
    must_train(tr_device_wait(device));
    assert_memory_equal(got, expected, bytes);
    free(got);
}

static void what_a_mirror_shows_is_as_new_as_it_was_renewed(void **state)
{
    (void)state;
    char place[SCRATCH_PATH];
    struct job job;
    struct tr_job *own;
    tr_device *near, *far = make_far();
    tr_variables *variables;
    tr_mirror *mirror, *direct;
    scratch_make(place);
    family_files(place);
    begin(&job, 0, place);
    struct tr_job_settings settings = {.set = job.settings.set, .set_count = job.settings.set_count};
    must_train(tr_device_create("ref", 0, NULL, &near));
    must_train(tr_job_open(job.settings.model, &settings, &own));
    must_train(tr_variables_create(near, own->model, &own->optimizer, NULL, &variables));
    must_train(tr_variables_initialize(variables, 7));
    must_train(tr_variables_begin_step(variables, 3));
    must_train(tr_mirror_create(variables, far, &mirror));
    must_train(tr_mirror_create(variables, near, &direct));
    must_train(tr_mirror_renew(mirror, TR_ARENA_PARAMETERS));
    must_train(tr_mirror_renew(direct, TR_ARENA_PARAMETERS));
    size_t bytes = (size_t)tr_variables_floats(variables) * sizeof(float);
    float *arena = tr_variables_arena(variables, TR_ARENA_PARAMETERS);
    assert_ptr_equal(tr_mirror_parameters(direct), arena);
    assert_ptr_not_equal(tr_mirror_parameters(mirror), arena);
    assert_far_equal(far, tr_mirror_parameters(mirror), arena, bytes);
    assert_far_equal(far, tr_mirror_scalars(mirror), tr_variables_scalars(variables),
                     sizeof(struct tr_step_scalars));
    arena[0] += 1;
    float before;
    must_train(tr_device_to_host(far, &before, tr_mirror_parameters(mirror), sizeof before));
    must_train(tr_device_wait(far));
    assert_true(before != arena[0]);
    must_train(tr_mirror_renew(mirror, TR_ARENA_PARAMETERS));
    assert_far_equal(far, tr_mirror_parameters(mirror), arena, bytes);
    const float *gradient;
    must_train(tr_mirror_gradient(mirror, tr_mirror_parameters(mirror), 16, &gradient));
    assert_ptr_not_equal(gradient, arena);
    assert_memory_equal(gradient, arena, 16 * sizeof *gradient);
    must_train(tr_mirror_gradient(direct, arena, 16, &gradient));
    assert_ptr_equal(gradient, arena);
    tr_mirror_destroy(&direct);
    tr_mirror_destroy(&mirror);
    tr_variables_destroy(&variables);
    tr_job_destroy(&own);
    tr_device_destroy(&near);
    tr_device_destroy(&far);
    scratch_remove(place);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_strategy_takes_another_holder),
        cmocka_unit_test(far_devices_get_copies),
        cmocka_unit_test(what_a_mirror_shows_is_as_new_as_it_was_renewed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
