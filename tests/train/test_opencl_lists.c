/* Whole runs on an OpenCL device whose launches become lists: the hash of the cpu device, and from step to
 * step the same launches, so that nearly all of them are in lists.
 */
#include "device/cpu/cpu.h"
#include "device/gpu/internal.h"
#include "support/gpu/counting.h"
#include "support/gpu/opencl.h"
#include "support/ranks.h"
#include "support/training.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

/* ---- a device that counts, with lists also where they spare nothing ---- */

static tr_status create(const struct tr_device_choice *choice, tr_device **out)
{
    static struct gpu_api api;
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&lock);
    if (!api.name) api = gpu_counting(&gpu_api_opencl, true);
    pthread_mutex_unlock(&lock);
    return gpu_device_create(&api, choice, out);
}

static const struct tr_device_kind counted = {.name = "opencl", .help = "counts launches", .create = create};

static const struct tr_entry *const entries[] = {&tr_device_kind_cpu.entry, &counted.entry, NULL};

const struct tr_registry tr_device_kinds = {.kind = "device", .entries = entries};

/* ---- runs ---- */

static void begin(struct job *job, const struct family *family, int steps)
{
    family_job(job, family, family_place);
    job_set(job, "train.log_every=5");
    job->settings.steps = steps;
    job->settings.set = job->set;
    job->settings.program_cache = TEST_PROGRAMS;
}

static void run(struct job *job, const char *device, struct outcome *outcome)
{
    did_nothing();
    job->settings.device = device;
    job_outcome(job, outcome);
}

/* In steps that are like others before them launches are those of others before them, be they the last of an
   epoch: numbers that change from step to step are in the device's memory. Texts make no two steps the same:
   there the lists follow, and no more of them are recorded. */
static void what_steps_launch_is_in_lists(void **state)
{
    enum { STEPS = 6 };
    (void)state;
    for (int i = 0; i < family_count; i++) {
        const char *name = families[i].name;
        bool ragged = strcmp(name, "sst2-lstm") == 0;
        int before = ragged ? 34 : 22; /* by then the last batch of an epoch has come often enough */
        struct job job;
        struct outcome expected, got;
        begin(&job, &families[i], before);
        run(&job, "opencl", &got);
        assert_string_equal(got.message, "");
        int launches = did.launches, lists = did.lists, built = did.built, changed = did.changed;
        begin(&job, &families[i], before + STEPS);
        run(&job, "opencl", &got);
        launches = did.launches - launches;
        lists = did.lists - lists;
        built = did.built - built;
        changed = did.changed - changed;
        run(&job, "cpu", &expected);
        expect_same(&expected, &got, name);
        if (lists < STEPS || launches > 2 * STEPS || built != 0 || (changed > 0) != ragged)
            fail_msg("%s: %d steps have %d lists and %d launches, %d are recorded and %d launches changed",
                     name, STEPS, lists, launches, built, changed);
    }
}

static void ranks_have_lists_of_their_own(void **state)
{
    struct rank ranks[RANKS];
    struct outcome expected;
    struct job job;
    (void)state;
    begin(&job, &families[0], 9);
    run(&job, "cpu", &expected);
    did_nothing();
    job.settings.device = "opencl";
    run_ranks(&job.settings, 2, 0, ranks);
    expect_well(ranks, 2, "two ranks on opencl");
    assert_string_equal(ranks[0].outcome.hash, expected.hash);
    assert_true(did.lists > 2 * 9);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_steps_launch_is_in_lists),
        cmocka_unit_test(ranks_have_lists_of_their_own),
    };
    if (!opencl_is_here()) return 0;
    return cmocka_run_group_tests_name("lists of launches", tests, family_place_make, family_place_remove);
}
