/* Microbatches that are shared unequally: given speeds and measured ones, with the hash of one process and
 * its evaluations; what cannot be read, or is not the same on all ranks, is refused. */
#include "support/ranks.h"

#include "base/alloc.h"
#include "base/files/file.h"
#include "strategy/class.h"
#include "support/comm_thread/thread.h"
#include "train/observe/digests.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

static void begin(struct job *job, int family)
{
    family_job(job, &families[family], family_place);
    job_set(job, "train.microbatches=7");
    job_set(job, "train.evaluate_every=2");
    job_set(job, "train.steps=7");
    job->settings.set = job->set;
}

/* A share that is no node of the tree, factors and the whole gradient, averages, one pass and several. */
static void bits_and_evaluations_stay(void **state)
{
    static const struct {
        const char *strategy, *shares, *slow, *set;
        int ranks;
    } runs[] = {
        {"allreduce,factors=always", "2,5", NULL, NULL, 2},
        {"allreduce,factors=always", "auto", "0:60", NULL, 2},
        {"allreduce,bucket=0.01", "1,1,9", NULL, "train.pass=1", 3},
        {"allreduce", "auto", "1:60", "optimizer.clip_norm=0.1", 3},
        {"parameter-server", "5,1", NULL, NULL, 3},
        {"parameter-server,servers=2", "auto", "1:60", "train.pass=2", 4},
    };
    (void)state;
    for (int family = 0; family <= 4; family += 4)
        for (size_t i = 0; i < sizeof runs / sizeof runs[0]; i++) {
            struct rank ranks[RANKS];
            struct outcome alone;
            struct job job;
            char how[200];
            begin(&job, family);
            if (runs[i].set) job_set(&job, runs[i].set);
            job_outcome(&job, &alone);
            if (alone.status != TR_OK) fail_msg("%s alone: %s", families[family].name, alone.message);
            job.settings.strategy = runs[i].strategy;
            job.settings.shares = runs[i].shares;
            job.settings.slow = runs[i].slow;
            for (int apart = 0; apart < 2; apart++) {
                snprintf(how, sizeof how, "%s, %s on %d ranks%s, shares %s", families[family].name,
                         runs[i].strategy, runs[i].ranks, apart ? " apart" : "", runs[i].shares);
                run_ranks(&job.settings, runs[i].ranks, apart, ranks);
                expect_ranks(&alone, ranks, runs[i].ranks, how);
                const struct outcome *root = &ranks[0].outcome;
                assert_int_equal(root->evaluations, alone.evaluations);
                if (root->evaluated_loss != alone.evaluated_loss) fail_msg("%s: evaluates to others", how);
                if (strcmp(root->losses, alone.losses) != 0) fail_msg("%s: losses on the way differ", how);
                if (root->shared != 1) fail_msg("%s: shares told %d times", how, root->shared);
            }
        }
}

/* Digests name the microbatches that ranks compute at the time. */
static void digests_follow_the_shares(void **state)
{
    struct job job;
    struct outcome alone;
    struct rank ranks[RANKS];
    struct tr_file_content expected, got;
    char out[2][SCRATCH_PATH], path[SCRATCH_PATH];
    (void)state;
    begin(&job, 0);
    job.settings.record_digests = 1;
    job.settings.out = scratch_join(out[0], family_place, "digests-alone");
    job_outcome(&job, &alone);
    assert_int_equal(alone.status, TR_OK);
    job.settings.out = scratch_join(out[1], family_place, "digests-shared");
    job.settings.shares = "auto";
    job.settings.slow = "0:60";
    run_ranks(&job.settings, 2, false, ranks);
    expect_ranks(&alone, ranks, 2, "with digests");
    assert_int_equal(ranks[0].outcome.shared, 1);
    must_train(tr_file_read(scratch_join(path, out[0], TR_DIGESTS_FILE), 1 << 28, &expected));
    must_train(tr_file_read(scratch_join(path, out[1], TR_DIGESTS_FILE), 1 << 28, &got));
    assert_int_equal(expected.size, got.size);
    assert_memory_equal(expected.data, got.data, got.size);
    tr_file_content_free(&expected);
    tr_file_content_free(&got);
}

/* Of seven microbatches, by the figures that are told. */
static void what_is_given_is_told(void **state)
{
    static const struct {
        const char *shares, *text;
        int ranks;
    } runs[] = {
        {"6,1", "ranks 0 to 1 compute 6, 1 of 7 microbatches", 2},
        {"0.5,1.5e2", "ranks 0 to 1 compute 1, 6 of 7 microbatches", 2},
        {"1,2,1", "ranks 0 to 2 compute 2, 4, 1 of 7 microbatches", 3},
        {"1,1,1", "ranks 0 to 2 compute 2, 2, 3 of 7 microbatches", 3},
    };
    struct job job;
    (void)state;
    begin(&job, 0);
    job.settings.steps = 1;
    for (size_t i = 0; i < sizeof runs / sizeof runs[0]; i++) {
        struct rank ranks[RANKS];
        job.settings.shares = runs[i].shares;
        run_ranks(&job.settings, runs[i].ranks, false, ranks);
        expect_well(ranks, runs[i].ranks, runs[i].shares);
        assert_string_equal(ranks[0].outcome.shares, runs[i].text);
    }
    job.settings.shares = "equal";
    struct rank ranks[RANKS];
    run_ranks(&job.settings, 2, false, ranks);
    expect_well(ranks, 2, "equal");
    assert_int_equal(ranks[0].outcome.shared, 0);
}

static void others_are_refused(void **state)
{
    static const struct {
        const char *shares, *reason;
    } wrong[] = {
        {"3", "speeds of 1 workers are given, the job has 2"},
        {"3,1,1", "speeds of 3 workers are given, the job has 2"},
        {"3,", "\"\""},
        {"3,x", "\"x\" is not a number"},
        {"3,0", "a speed of 0"},
        {"-1,1", "a speed of -1"},
        {"1,1e300", "a speed of 1e+300"},
        {"fast", "\"fast\" is not a number; give equal, auto, or the speed of each worker"},
        {"", "speeds of 1 workers"},
    };
    struct job job;
    (void)state;
    begin(&job, 0);
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        struct rank ranks[RANKS];
        job.settings.shares = wrong[i].shares;
        run_ranks(&job.settings, 2, false, ranks);
        assert_int_equal(ranks[0].outcome.status, TR_EINVAL);
        if (!strstr(ranks[0].outcome.message, wrong[i].reason))
            fail_msg("\"%s\": %s", wrong[i].shares, ranks[0].outcome.message);
    }
}

/* Each worker has a microbatch at least. */
static void workers_without_work_are_refused(void **state)
{
    static const struct {
        const char *strategy;
        int most;
        const char *reason; /* with one more */
    } cases[] = {
        {"allreduce", 3, "4 ranks share 3 microbatches"},
        {"allreduce,factors=always", 3, "4 ranks share 3 microbatches"},
        {"parameter-server,servers=2", 5, "4 workers share 3 microbatches"},
        {"pipeline,stages=1", 3, "4 replicas of the pipeline share 3 microbatches"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct job job;
        struct rank ranks[RANKS];
        begin(&job, 0);
        job_set(&job, "train.microbatches=3");
        job.settings.steps = 1;
        job.settings.strategy = cases[i].strategy;
        run_ranks(&job.settings, cases[i].most, false, ranks);
        expect_well(ranks, cases[i].most, cases[i].strategy);
        run_ranks(&job.settings, cases[i].most + 1, false, ranks);
        for (int r = 0; r <= cases[i].most; r++) {
            assert_int_equal(ranks[r].outcome.status, TR_EINVAL);
            if (!strstr(ranks[r].outcome.message, cases[i].reason))
                fail_msg("%s: \"%s\" lacks \"%s\"", cases[i].strategy, ranks[r].outcome.message,
                         cases[i].reason);
        }
    }
}

/* Ranks that were started with different shares do not divide anything. */
static void all_ranks_must_have_the_same(void **state)
{
    struct job job;
    struct rank ranks[RANKS];
    (void)state;
    begin(&job, 0);
    struct tr_train_settings other = job.settings;
    job.settings.shares = "3,1";
    other.shares = "auto";
    const struct tr_train_settings *each[] = {&job.settings, &other};
    run_ranks_each(each, 2, false, ranks);
    for (int r = 0; r < 2; r++) {
        assert_true(ranks[r].outcome.status != TR_OK);
        if (!strstr(ranks[r].outcome.message, "shares 3,1")) fail_msg("%s", ranks[r].outcome.message);
    }
}

/* Ranks compare their speeds after 4, 16 and 64 steps, and then after each 256; else nothing is sent. */
static void speeds_are_compared_now_and_then(void **state)
{
    static const struct tr_comm_settings settings = {.timeout = 60, .patience = 60};
    static const int64_t due[] = {4, 16, 64, 256, 512, 768};
    int64_t bound[] = {0, 1}, heard = 0;
    double seconds[1] = {0};
    struct tr_job job = {.train = {.batch = 1}};
    struct tr_step_figures figures = {.examples = 1};
    tr_strategy strategy = {.job = &job, .size = 1};
    size_t found = 0;
    (void)state;
    strategy.shares = (struct tr_shares){.measures = true, .workers = 1, .bound = bound, .seconds = seconds};
    assert_int_equal(tr_comm_thread_create(1, NULL, &settings, &strategy.comm), TR_OK);
    for (int64_t step = 1; step < 1000; step++) {
        struct tr_comm_statistics statistics;
        assert_int_equal(tr_shares_end_step(&strategy, &figures), TR_OK);
        tr_comm_statistics(strategy.comm, &statistics);
        if (statistics.operations == heard) continue;
        heard = statistics.operations;
        assert_true(found < sizeof due / sizeof due[0]);
        assert_int_equal(step, due[found++]);
    }
    assert_int_equal(found, sizeof due / sizeof due[0]);
    tr_comm_destroy(&strategy.comm);
}

/* ---- refused memory ---- */

static atomic_llong left; /* allocations that are still allowed */

static int refuse_one(size_t size, void *user)
{
    (void)size;
    (void)user;
    return atomic_fetch_sub(&left, 1) == 0;
}

/* How many allocations a run makes of which number `refused` is refused, which is well if it ends in good
   order on all ranks and leaves nothing behind. */
static long long allocations(const struct job *job, long long refused, const char *hash)
{
    struct rank ranks[RANKS];
    int64_t live = tr_alloc_live();
    bool told = false;
    atomic_store(&left, refused);
    tr_alloc_set_hook(refuse_one, NULL);
    run_ranks(&job->settings, 2, false, ranks);
    tr_alloc_set_hook(NULL, NULL);
    assert_int_equal(tr_alloc_live(), live);
    for (int r = 0; r < 2; r++) {
        const struct outcome *outcome = &ranks[r].outcome;
        told |= outcome->status == TR_ENOMEM;
        if (outcome->status == TR_OK && hash) assert_string_equal(outcome->hash, hash);
        if (outcome->status != TR_OK && outcome->status != TR_ENOMEM && outcome->status != TR_EPEER)
            fail_msg("allocation %lld refused, rank %d: %s", refused, r, outcome->message);
    }
    assert_true(told || (ranks[0].outcome.status == TR_OK && ranks[1].outcome.status == TR_OK));
    return refused - atomic_load(&left);
}

/* Those that a run makes between its fourth step and its fifth, when shares change, are the last but for what
   all runs do in the end. */
static void memory_may_be_refused_when_shares_change(void **state)
{
    struct job job;
    struct outcome alone;
    (void)state;
    begin(&job, 4);
    job_set(&job, "train.evaluate_every=0");
    job_set(&job, "train.steps=5");
    job_outcome(&job, &alone);
    assert_int_equal(alone.status, TR_OK);
    job.settings.strategy = "allreduce,factors=always";
    job.settings.shares = "auto";
    job.settings.slow = "0:60";
    job.settings.steps = 4;
    long long before = allocations(&job, 1LL << 40, NULL);
    job.settings.steps = 5;
    long long all = allocations(&job, 1LL << 40, alone.hash);
    assert_true(all > before);
    for (long long at = before - 40; at < all; at += 8) allocations(&job, at, alone.hash);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bits_and_evaluations_stay),
        cmocka_unit_test(digests_follow_the_shares),
        cmocka_unit_test(what_is_given_is_told),
        cmocka_unit_test(speeds_are_compared_now_and_then),
        cmocka_unit_test(memory_may_be_refused_when_shares_change),
        cmocka_unit_test(others_are_refused),
        cmocka_unit_test(workers_without_work_are_refused),
        cmocka_unit_test(all_ranks_must_have_the_same),
    };
    return cmocka_run_group_tests_name("shares", tests, family_place_make, family_place_remove);
}
