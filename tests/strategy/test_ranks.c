/* One run, one hash, on any number of ranks: jobs of every family on 1 to 4 ranks, which share memory or only
 * exchange messages, and from checkpoints made by another number of ranks. */
#include "support/ranks.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

static void every_family_has_one_hash(void **state)
{
    (void)state;
    char place[SCRATCH_PATH];
    scratch_make(place);
    family_files(place);
    for (int f = 0; f < family_count; f++) {
        struct job job;
        struct outcome alone;
        family_job(&job, &families[f], place);
        job_set(&job, "train.microbatches=5");
        job_outcome(&job, &alone);
        assert_int_equal(alone.status, TR_OK);
        for (int size = 1; size <= 4; size++)
            for (int apart = 0; apart < 2; apart++) {
                struct rank ranks[RANKS];
                char how[160];
                snprintf(how, sizeof how, "%s on %d ranks%s", families[f].name, size, apart ? " apart" : "");
                run_ranks(&job.settings, size, apart, ranks);
                expect_ranks(&alone, ranks, size, how);
            }
    }
    scratch_remove(place);
}

static void options_keep_the_hash(void **state)
{
    (void)state;
    static const char *const variants[] = {
        "optimizer.clip_norm=0.5", "train.on_nonfinite=skip", "train.pass=1",
        "train.batch=23",          "optimizer.ema=0.9",
    };
    char place[SCRATCH_PATH];
    scratch_make(place);
    family_files(place);
    for (size_t i = 0; i < sizeof variants / sizeof variants[0]; i++) {
        struct job job;
        struct outcome alone;
        struct rank ranks[RANKS];
        family_job(&job, &families[0], place);
        job_set(&job, "train.microbatches=4");
        job_set(&job, variants[i]);
        job_outcome(&job, &alone);
        assert_int_equal(alone.status, TR_OK);
        run_ranks(&job.settings, 3, false, ranks);
        expect_ranks(&alone, ranks, 3, variants[i]);
    }
    scratch_remove(place);
}

/* Saved by some ranks half-way, taken up by others. */
static void checkpoints_do_not_know_ranks(void **state)
{
    (void)state;
    static const int sizes[][2] = {{1, 3}, {3, 1}, {4, 2}};
    char place[SCRATCH_PATH], out[SCRATCH_PATH + 8];
    scratch_make(place);
    family_files(place);
    struct job job;
    struct outcome alone;
    family_job(&job, &families[0], place);
    job_set(&job, "train.microbatches=4");
    job_set(&job, "optimizer.ema=0.9");
    job.settings.steps = 6;
    job_outcome(&job, &alone);
    assert_int_equal(alone.status, TR_OK);
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        struct rank ranks[RANKS];
        snprintf(out, sizeof out, "%s/run%zu", place, i);
        struct tr_train_settings settings = job.settings;
        settings.out = out;
        settings.steps = 3;
        run_ranks(&settings, sizes[i][0], false, ranks);
        expect_well(ranks, sizes[i][0], "half-way");
        settings.resume = out;
        settings.steps = 6;
        run_ranks(&settings, sizes[i][1], true, ranks);
        expect_ranks(&alone, ranks, sizes[i][1], "resumed on another number of ranks");
    }
    scratch_remove(place);
}

static void differences_are_refused(void **state)
{
    (void)state;
    char place[SCRATCH_PATH];
    scratch_make(place);
    family_files(place);
    struct job jobs[2];
    const struct tr_train_settings *settings[2];
    struct rank ranks[RANKS];
    for (int r = 0; r < 2; r++) {
        family_job(&jobs[r], &families[0], place);
        job_set(&jobs[r], "train.microbatches=4");
        job_set(&jobs[r], r ? "optimizer.rate=0.5" : "optimizer.rate=0.25");
        jobs[r].settings.set = jobs[r].set;
        settings[r] = &jobs[r].settings;
    }
    run_ranks_each(settings, 2, false, ranks);
    for (int r = 0; r < 2; r++) {
        assert_int_equal(ranks[r].outcome.status, TR_EMISMATCH);
        assert_non_null(strstr(ranks[r].outcome.message, "settings"));
    }
    scratch_remove(place);
}

static void too_many_ranks_are_refused(void **state)
{
    (void)state;
    char place[SCRATCH_PATH];
    scratch_make(place);
    family_files(place);
    struct job job;
    struct rank ranks[RANKS];
    family_job(&job, &families[0], place);
    job_set(&job, "train.microbatches=2");
    job.settings.set = job.set;
    run_ranks(&job.settings, 3, false, ranks);
    for (int r = 0; r < 3; r++) {
        assert_int_equal(ranks[r].outcome.status, TR_EINVAL);
        assert_non_null(strstr(ranks[r].outcome.message, "3 ranks share 2 microbatches"));
    }
    scratch_remove(place);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_family_has_one_hash),     cmocka_unit_test(options_keep_the_hash),
        cmocka_unit_test(checkpoints_do_not_know_ranks), cmocka_unit_test(differences_are_refused),
        cmocka_unit_test(too_many_ranks_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
