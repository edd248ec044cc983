/* Runs with adapters, and runs that compute layers again: one hash on every device, number of threads and
 * ranks, strategy and after a stop; a base that is not the one that a run began with is refused.
 */
#include "support/ranks.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#define LANGUAGE 5

static const char adapters[] =
    "adapters={rank: 2, alpha: 3, dropout: 0.2, on: [attention, attention.value], train: [layer_norm1]}";
static char base[SCRATCH_PATH], other_base[SCRATCH_PATH];

static void make_base(const char *name, char path[SCRATCH_PATH], const char *seed)
{
    struct job job;
    struct outcome outcome;
    family_job(&job, &families[LANGUAGE], family_place);
    job_set(&job, seed);
    job_set(&job, "train.steps=3");
    job.settings.out = scratch_join(path, family_place, name);
    job_outcome(&job, &outcome);
    if (outcome.status != TR_OK) fail_msg("%s", outcome.message);
}

static int set_up(void **state)
{
    int failed = family_place_make(state);
    if (failed) return failed;
    make_base("base", base, "seed=5");
    make_base("other", other_base, "seed=6");
    return 0;
}

static void adapted_job(struct job *job)
{
    family_job(job, &families[LANGUAGE], family_place);
    job_set(job, adapters);
    job->settings.from = base;
}

static void expect_hash(const char *expected, struct job *job, int ranks, const char *how)
{
    struct rank rank[RANKS];
    struct outcome alone;
    job->settings.set = job->set;
    if (ranks == 1)
        job_outcome(job, &alone);
    else
        run_ranks(&job->settings, ranks, 0, rank);
    const struct outcome *got = ranks == 1 ? &alone : &rank[0].outcome;
    if (got->status != TR_OK) fail_msg("%s: %s", how, got->message);
    if (strcmp(got->hash, expected) != 0) fail_msg("%s: hash %s instead of %s", how, got->hash, expected);
}

static void test_one_hash(void **state)
{
    (void)state;
    static const struct {
        const char *device, *strategy, *set;
        int threads, ranks;
    } ways[] = {
        {"ref", NULL, NULL, 1, 1},
        {"cpu", NULL, NULL, 3, 1},
        {"cpu", NULL, "train.pass=1", 2, 1},
        {"cpu", NULL, "train.recompute=true", 2, 1},
        {"ref", NULL, "train.recompute=[attention1, layer_norm1, lstm1]", 1, 1},
        {"cpu", NULL, NULL, 1, 2},
        {"cpu", NULL, NULL, 1, 3},
        {"cpu", "pipeline", NULL, 1, 2},
        {"cpu", "pipeline", "train.recompute=true", 1, 2},
        {"cpu", "parameter-server", NULL, 1, 3},
        /* Memory that nobody else can touch: the base is copied there. */
        {"shadow", NULL, "train.recompute=true", 2, 1},
        {"shadow", "pipeline", NULL, 1, 2},
    };
    struct job job;
    struct outcome expected, plain;
    adapted_job(&job);
    job_outcome(&job, &expected);
    if (expected.status != TR_OK) fail_msg("%s", expected.message);
    family_job(&job, &families[LANGUAGE], family_place);
    job.settings.from = base;
    job_outcome(&job, &plain);
    assert_string_not_equal(plain.hash, expected.hash);
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
        char how[160];
        adapted_job(&job);
        job.settings.device = ways[i].device;
        job.settings.threads = ways[i].threads;
        job.settings.strategy = ways[i].strategy;
        if (ways[i].set) job_set(&job, ways[i].set);
        snprintf(how, sizeof how, "%s, %d threads, %d ranks, %s, %s", ways[i].device, ways[i].threads,
                 ways[i].ranks, ways[i].strategy ? ways[i].strategy : "", ways[i].set ? ways[i].set : "");
        expect_hash(expected.hash, &job, ways[i].ranks, how);
    }
}

/* Batch norm, dropout and augmentation, of runs whose layers are computed again. */
static void test_recompute(void **state)
{
    (void)state;
    for (int f = 0; f < family_count; f++) {
        struct job job;
        struct outcome expected;
        family_job(&job, &families[f], family_place);
        job_outcome(&job, &expected);
        if (expected.status != TR_OK) fail_msg("%s", expected.message);
        for (int ranks = 1; ranks <= 2; ranks++) {
            char how[96];
            family_job(&job, &families[f], family_place);
            job_set(&job, "train.recompute=true");
            snprintf(how, sizeof how, "%s, %d ranks, recompute", families[f].name, ranks);
            expect_hash(expected.hash, &job, ranks, how);
        }
    }
}

static tr_status run_to(const char *out, const char *steps, const char *resume, struct outcome *outcome)
{
    struct job job;
    if (resume) {
        job_begin(&job, NULL);
        job.settings.resume = resume;
    } else {
        adapted_job(&job);
    }
    job_set(&job, steps);
    job.settings.out = out;
    job_outcome(&job, outcome);
    return outcome->status;
}

static void test_resume(void **state)
{
    (void)state;
    char out[SCRATCH_PATH];
    struct job job;
    struct outcome expected, got;
    adapted_job(&job);
    job_outcome(&job, &expected);
    scratch_join(out, family_place, "stopped");
    if (run_to(out, "train.steps=3", NULL, &got) != TR_OK) fail_msg("%s", got.message);
    if (run_to(out, "train.steps=6", out, &got) != TR_OK) fail_msg("%s", got.message);
    assert_string_equal(got.hash, expected.hash);
}

static void refuse(const char *set, const char *from, const char *part)
{
    struct job job;
    struct outcome got;
    family_job(&job, &families[LANGUAGE], family_place);
    job_set(&job, set);
    job.settings.from = from;
    job_outcome(&job, &got);
    if (got.status == TR_OK || !strstr(got.message, part))
        fail_msg("%s: %s", set, got.status == TR_OK ? "is taken" : got.message);
}

static void test_refused(void **state)
{
    (void)state;
    char out[SCRATCH_PATH], changed[SCRATCH_PATH + 32];
    struct job job;
    struct outcome got;
    refuse("adapters={rank: 2}", NULL, "as adapters.base");
    refuse("adapters={rank: 2, base: nowhere}", NULL, "adapters.base");
    refuse("adapters={rank: 13}", base, "rank of at most 12");
    refuse("train.recompute=[attention7]", NULL, "attention7");
    /* A base that has other layers. */
    family_job(&job, &families[LANGUAGE], family_place);
    job_set(&job, adapters);
    job_set(&job, "layers.places.length=13");
    job.settings.from = base;
    job_outcome(&job, &got);
    assert_int_equal(got.status, TR_EMISMATCH);
    assert_non_null(strstr(got.message, "adapters.train"));
    /* Another one than that of the run. */
    scratch_join(out, family_place, "of-base");
    if (run_to(out, "train.steps=3", NULL, &got) != TR_OK) fail_msg("%s", got.message);
    snprintf(changed, sizeof changed, "adapters.base=%s", other_base);
    assert_int_equal(run_to(out, changed, out, &got), TR_EMISMATCH);
    assert_non_null(strstr(got.message, "that it began with"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_hash),
        cmocka_unit_test(test_recompute),
        cmocka_unit_test(test_resume),
        cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, set_up, family_place_remove);
}
