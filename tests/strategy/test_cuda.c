/* Whole runs by the layer for CUDA, on the stand-in for its driver: the hash of the cpu device, with ranks on
 * one device, on two, and in mixed fleets.
 */
#include "support/gpu/opencl.h"
#include "support/ranks.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

enum { STEPS = 5 }; /* shares change after 4; lists begin after 3 */

static void begin(struct job *job, int family)
{
    family_job(job, &families[family], family_place);
    job->settings.steps = STEPS;
    job->settings.set = job->set;
    job->settings.program_cache = TEST_PROGRAMS;
}

static void expect_hashes(int first, int last)
{
    for (int family = first; family < last; family++) {
        struct job job;
        struct outcome expected, got;
        begin(&job, family);
        job.settings.device = "cpu";
        job_outcome(&job, &expected);
        job.settings.device = "cuda";
        job_outcome(&job, &got);
        expect_same(&expected, &got, families[family].name);
    }
}

static void a_family_has_the_hash_of_the_cpu(void **state)
{
    (void)state;
    expect_hashes(0, 1);
}

static void every_family_has_it(void **state)
{
    (void)state;
    expect_hashes(1, family_count);
}

/* Strategies whose hash is that of one process, on ranks that each take a device of the list in turn. */
static void ranks_have_it_too(void **state)
{
    static const struct {
        const char *strategy, *device, *holder, *shares;
        int ranks;
        bool apart;
    } runs[] = {
        {"allreduce", "cuda:0", "cuda:0", NULL, 2, false},
        {"allreduce", "cuda", "cuda", NULL, 2, true},
        {"allreduce", "cpu,gpu", NULL, "auto", 2, false},
        {"allreduce", "cuda,cpu", "cpu", "1,3,1", 3, true},
        {"parameter-server", "cpu,cuda:1,cuda:0", NULL, NULL, 3, false},
        {"pipeline", "cuda,cpu", NULL, NULL, 2, false},
    };
    struct job job;
    struct outcome expected;
    (void)state;
    begin(&job, 0);
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
        snprintf(how, sizeof how, "%s on %d ranks%s, computing on %s", runs[i].strategy, runs[i].ranks,
                 runs[i].apart ? " apart" : "", runs[i].device);
        run_ranks(&settings, runs[i].ranks, runs[i].apart, ranks);
        expect_well(ranks, runs[i].ranks, how);
        assert_string_equal(ranks[0].outcome.hash, expected.hash);
    }
}

int main(int count, char **arguments)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_family_has_the_hash_of_the_cpu),
        cmocka_unit_test(ranks_have_it_too),
        cmocka_unit_test(every_family_has_it),
    };
    if (!opencl_is_here()) return 0;
    if (count > 1 && strcmp(arguments[1], "quick") == 0)
        return _cmocka_run_group_tests("cuda", tests, 2, family_place_make, family_place_remove);
    return cmocka_run_group_tests_name("cuda", tests, family_place_make, family_place_remove);
}
