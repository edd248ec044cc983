/* One run, one hash, on any number of ranks: jobs of every family on 1 to 4 ranks, which share memory or only
 * exchange messages, and from checkpoints made by another number of ranks. */
#include "support/ranks.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "support/comm_thread/thread.h"
#include "comm/transport.h"
#include "train/loop/trainer.h"

#include <setjmp.h>
#include <stdatomic.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
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

/* Buckets of all sizes, with what decides when a bucket is complete and what becomes of it: passes that are
   added in the last one, several nodes of the tree in one pass, norms that need the whole gradient. */
static void buckets_keep_the_hash(void **state)
{
    (void)state;
    static const char *const sizes[] = {"allreduce,bucket=0", "allreduce,bucket=0.0001",
                                        "allreduce,bucket=0.01"};
    static const char *const variants[] = {"train.pass=0", "train.pass=1", "train.pass=2",
                                           "optimizer.clip_norm=0.5", "train.on_nonfinite=skip"};
    char place[SCRATCH_PATH];
    scratch_make(place);
    family_files(place);
    for (size_t v = 0; v < sizeof variants / sizeof variants[0]; v++) {
        struct job job;
        struct outcome alone;
        /* Statistics of batch norm, and weights that several layers lie between. */
        family_job(&job, &families[4], place);
        job_set(&job, "train.microbatches=7"); /* 3 ranks: nodes of 2; 1 and 1; 1 and 2 */
        job_set(&job, variants[v]);
        job_outcome(&job, &alone);
        assert_int_equal(alone.status, TR_OK);
        for (size_t b = 0; b < sizeof sizes / sizeof sizes[0]; b++)
            for (int size = 2; size <= 4; size++) {
                struct rank ranks[RANKS];
                char how[160];
                snprintf(how, sizeof how, "%s, %s, %d ranks", sizes[b], variants[v], size);
                job.settings.strategy = sizes[b];
                run_ranks(&job.settings, size, (size + (int)b) % 2, ranks);
                expect_ranks(&alone, ranks, size, how);
            }
    }
    scratch_remove(place);
}

/* Runs the job on some ranks; returns what the root read of the others' memory. */
static int64_t expect_hash_of(const struct outcome *alone, struct job *job, const char *strategy, int size,
                              const char *variant)
{
    struct rank ranks[RANKS];
    char how[160];
    snprintf(how, sizeof how, "%s, %s, %d ranks", strategy, variant, size);
    job->settings.strategy = strategy;
    run_ranks(&job->settings, size, false, ranks);
    expect_ranks(alone, ranks, size, how);
    return ranks[0].outcome.rank[0].bytes_shared;
}

/* The same over several hosts; with factors other bytes move between them, unless the norm of the whole
   gradient is wanted. */
static void expect_other_bytes(const struct outcome *alone, struct job *job, int size, int apart,
                               const char *variant)
{
    static const char *const strategies[] = {"allreduce,factors=always,bucket=0.01",
                                             "allreduce,factors=never,bucket=0.01"};
    int64_t sent[2] = {0};
    for (int i = 0; i < 2; i++) {
        struct rank ranks[RANKS];
        char how[160];
        snprintf(how, sizeof how, "%s, %s, %d ranks, apart %d", strategies[i], variant, size, apart);
        job->settings.strategy = strategies[i];
        run_ranks(&job->settings, size, apart, ranks);
        expect_ranks(alone, ranks, size, how);
        for (int r = 0; r < size; r++) sent[i] += ranks[0].outcome.rank[r].bytes_sent;
    }
    if ((sent[0] == sent[1]) != (strstr(variant, "clip") != NULL))
        fail_msg("%s, %d ranks: %lld bytes with factors and %lld without", variant, size, (long long)sent[0],
                 (long long)sent[1]);
}

/* Weights of all dense layers from factors. */
static void factors_keep_the_hash(void **state)
{
    (void)state;
    static const char *const names[] = {"mnist-cnn", "mnist-mlp", "sst2-lstm"};
    /* Ranks of different numbers of rows, batches with fewer rows, some ranks without any; several passes. */
    static const char *const variants[] = {"train.pass=0", "train.pass=1", "train.batch=33",
                                           "optimizer={rule: adam, rate: 1e-3, ema: 0.9}",
                                           "optimizer.clip_norm=0.5"};
    char place[SCRATCH_PATH];
    scratch_make(place);
    family_files(place);
    for (size_t n = 0; n < sizeof names / sizeof names[0]; n++)
        for (size_t v = 0; v < sizeof variants / sizeof variants[0]; v++) {
            struct job job;
            struct outcome alone;
            const struct family *family = families;
            while (strcmp(family->name, names[n]) != 0) family++;
            family_job(&job, family, place);
            job_set(&job, "train.microbatches=7");
            job_set(&job, variants[v]);
            job_outcome(&job, &alone);
            assert_int_equal(alone.status, TR_OK);
            int64_t with = expect_hash_of(&alone, &job, "allreduce,factors=always", 2, variants[v]);
            int64_t without = expect_hash_of(&alone, &job, "allreduce,factors=never", 2, variants[v]);
            expect_hash_of(&alone, &job, "allreduce,factors=always,bucket=0.0001", 3, variants[v]);
            expect_hash_of(&alone, &job, "allreduce,factors=always", 4, variants[v]);
            for (int apart = 1; apart <= 2; apart++)
                expect_other_bytes(&alone, &job, 3 + (int)v % 2, apart, variants[v]);
            /* They were used, unless the norm of the whole gradient is wanted. */
            if ((with == without) != (strstr(variants[v], "clip") != NULL))
                fail_msg("%s, %s: %lld bytes with factors and %lld without", names[n], variants[v],
                         (long long)with, (long long)without);
        }
    scratch_remove(place);
}

/* Weights that are formed in several pieces, by several threads. */
static void large_factors_keep_the_hash(void **state)
{
    (void)state;
    char place[SCRATCH_PATH];
    struct job job;
    struct outcome alone;
    struct rank ranks[RANKS];
    scratch_make(place);
    family_files(place);
    family_job(&job, &families[0], place);
    job_set(&job, "layers=[{flatten: null}, {dense: {units: 1502, activation: relu}}, {dense: 10}]");
    job_set(&job, "train.microbatches=4");
    job_outcome(&job, &alone);
    assert_int_equal(alone.status, TR_OK);
    job.settings.strategy = "allreduce";
    for (int threads = 1; threads <= 2; threads++) {
        job.settings.threads = threads;
        run_ranks(&job.settings, 2, false, ranks);
        expect_ranks(&alone, ranks, 2, "large weights");
        /* Less than the gradient of a rank's share. */
        int64_t steps = (int64_t)ranks[0].outcome.step;
        assert_true(ranks[0].outcome.rank[0].bytes_shared < steps * 784 * 1502 / 2 * (int64_t)sizeof(float));
        /* Between hosts: rows, which are a few hundredths, and shares of the weights. */
        run_ranks(&job.settings, 2, 1, ranks);
        expect_ranks(&alone, ranks, 2, "large weights, apart");
        int64_t weights = steps * 784 * 1502 * (int64_t)sizeof(float);
        assert_in_range(ranks[0].outcome.rank[0].bytes_sent, weights / 2, weights * 6 / 10);
    }
    scratch_remove(place);
}

/* Runs a job to its failure, and looks at the parameters then. */
static void *run_to_failure(void *user)
{
    struct rank *rank = user;
    tr_trainer *trainer;
    must_train(trainer_create(rank->settings, rank->comm, &trainer));
    trainer_outcome(trainer, &rank->outcome);
    must_train(tr_trainer_hash(trainer, rank->outcome.hash));
    tr_trainer_destroy(&trainer);
    tr_comm_destroy(&rank->comm);
    return NULL;
}

/* A loss that is not finite is found before anything was applied, on every rank. */
static void bad_losses_apply_nothing(void **state)
{
    (void)state;
    char place[SCRATCH_PATH];
    scratch_make(place);
    family_files(place);
    struct job job;
    struct outcome alone;
    struct rank ranks[RANKS];
    family_job(&job, &families[0], place);
    job_set(&job, "train.microbatches=4");
    job_set(&job, "optimizer={rule: sgd, rate: 1e30}");
    job.settings.set = job.set;
    job.settings.strategy = "allreduce,bucket=0.01";
    tr_trainer *trainer = job_trainer(&job);
    trainer_outcome(trainer, &alone);
    assert_int_not_equal(alone.status, TR_OK);
    must_train(tr_trainer_hash(trainer, alone.hash));
    tr_trainer_destroy(&trainer);
    run_ranks_by(run_to_failure, &job.settings, 3, false, ranks);
    for (int r = 0; r < 3; r++) {
        assert_int_equal(ranks[r].outcome.status, alone.status);
        assert_int_equal(ranks[r].outcome.step, alone.step);
        assert_string_equal(ranks[r].outcome.hash, alone.hash);
    }
    assert_string_equal(ranks[0].outcome.message, alone.message);
    scratch_remove(place);
}

/* Where ranks exchange messages, each sends 2 (W - 1) / W of the parameters in a step. */
static void bytes_are_those_of_the_parameters(void **state)
{
    (void)state;
    enum { PARAMETERS = 784 * 50 + 50 + 500 + 10 };
    static const char *const sizes[] = {"allreduce,bucket=0", "allreduce,bucket=0.02", "allreduce"};
    char place[SCRATCH_PATH];
    scratch_make(place);
    family_files(place);
    struct job job;
    struct rank ranks[RANKS];
    family_job(&job, &families[2], place);
    job_set(&job, "train.microbatches=8");
    job_set(&job, "train.batch=32");
    job.settings.set = job.set;
    for (size_t b = 0; b < sizeof sizes / sizeof sizes[0]; b++)
        for (int size = 2; size <= 8; size *= 2) {
            job.settings.strategy = sizes[b];
            run_ranks(&job.settings, size, true, ranks);
            expect_well(ranks, size, sizes[b]);
            const struct outcome *root = &ranks[0].outcome;
            double expected = 4.0 * PARAMETERS * 2 * (size - 1) / size * (double)root->step;
            for (int r = 0; r < size; r++) {
                double sent = (double)root->rank[r].bytes_sent;
                if (sent < 0.95 * expected || sent > 1.05 * expected)
                    fail_msg("%s: rank %d of %d sent %.0f bytes, expected are %.0f", sizes[b], r, size, sent,
                             expected);
            }
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
        settings.strategy = "allreduce,bucket=0.002";
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

/* ---- failures within a step ---- */

static tr_status fail_later(void *user, const float *gradient, int64_t begin, int64_t end)
{
    int *updates = user;
    (void)gradient, (void)begin, (void)end;
    return ++*updates < 20 ? TR_OK : tr_fail(TR_EIO, "the device is on fire");
}

static void *run_until_fire(void *user)
{
    struct rank *rank = user;
    tr_trainer *trainer;
    int updates = 0;
    rank->outcome.status = trainer_create(rank->settings, rank->comm, &trainer);
    if (rank->outcome.status == TR_OK) {
        if (tr_comm_rank(rank->comm) == 2)
            tr_strategy_observe(trainer_strategy(trainer), TR_OBSERVER_PROBE,
                                (struct tr_strategy_observer){.update = fail_later, .user = &updates});
        rank->outcome.status = tr_trainer_run(trainer, NULL, NULL);
        snprintf(rank->outcome.message, sizeof rank->outcome.message, "%s", tr_error_message());
    }
    tr_trainer_destroy(&trainer);
    tr_comm_destroy(&rank->comm);
    return NULL;
}

/* The device of a rank fails while buckets of the step are under way: all ranks end, name it, and leave
   nothing that messages could still reach. */
static void a_failure_within_a_step_ends_all(void **state)
{
    (void)state;
    static const int hosts[] = {0, 1, 2};
    static const char *const strategies[] = {"allreduce,bucket=0.002", "parameter-server",
                                             "local-sgd,replicas=3"};
    char place[SCRATCH_PATH];
    int64_t live = tr_alloc_live();
    scratch_make(place);
    family_files(place);
    for (size_t i = 0; i < sizeof strategies / sizeof strategies[0]; i++)
        for (int apart = 0; apart < 2; apart++) {
            struct job job;
            struct rank ranks[3] = {{0}};
            struct tr_comm_settings patience = TR_COMM_SETTINGS_INIT;
            tr_comm *comms[3];
            family_job(&job, &families[0], place);
            job_set(&job, "train.microbatches=3");
            job.settings.set = job.set;
            job.settings.strategy = strategies[i];
            job.settings.steps = 1000;
            must_train(tr_comm_thread_create(3, apart ? hosts : NULL, &patience, comms));
            for (int r = 0; r < 3; r++) {
                ranks[r].settings = &job.settings;
                ranks[r].comm = comms[r];
                assert_int_equal(pthread_create(&ranks[r].thread, NULL, run_until_fire, &ranks[r]), 0);
            }
            for (int r = 0; r < 3; r++) pthread_join(ranks[r].thread, NULL);
            for (int r = 0; r < 3; r++) {
                const struct outcome *outcome = &ranks[r].outcome;
                if (outcome->status == TR_OK || !strstr(outcome->message, "the device is on fire"))
                    fail_msg("%s, rank %d: status %d, \"%s\"", strategies[i], r, (int)outcome->status,
                             outcome->message);
            }
        }
    scratch_remove(place);
    assert_int_equal(tr_alloc_live(), live);
}

/* Rank 1 dies in a step in which rank 0 is late: what it sent still waits to be fetched when its memory is
   released. */
struct death {
    tr_comm *victim;
    int layers;               /* that rank 0 has seen */
    atomic_bool gone, looked; /* rank 1 released its memory; rank 0 has gone on */
};

static struct death death;

static void nap(double seconds)
{
    nanosleep(&(struct timespec){.tv_nsec = (long)(seconds * 1e9)}, NULL);
}

static tr_status come_late(void *user, const struct tr_layer *layer, const float *output, int64_t count)
{
    (void)user, (void)layer, (void)output, (void)count;
    if (++death.layers != 10) return TR_OK;
    nap(0.2); /* the other has computed, sent what it can, and waits */
    tr_comm_thread_kill(death.victim);
    while (!death.gone) nap(0.001);
    return TR_OK;
}

static void *run_until_death(void *user)
{
    struct rank *rank = user;
    bool late = tr_comm_rank(rank->comm) == 0;
    tr_trainer *trainer;
    rank->outcome.status = trainer_create(rank->settings, rank->comm, &trainer);
    if (rank->outcome.status == TR_OK) {
        if (late)
            tr_strategy_observe(trainer_strategy(trainer), TR_OBSERVER_PROBE,
                                (struct tr_strategy_observer){.layer = come_late});
        rank->outcome.status = tr_trainer_run(trainer, NULL, NULL);
        snprintf(rank->outcome.message, sizeof rank->outcome.message, "%s", tr_error_message());
    }
    if (late) death.looked = true;
    tr_trainer_destroy(&trainer);
    if (!late) death.gone = true;
    while (!death.looked) nap(0.001); /* messages live until the communicator ends */
    tr_comm_destroy(&rank->comm);
    return NULL;
}

/* A sanitizer sees what this is about: that nobody reads memory which a strategy has released. */
static void released_memory_is_out_of_reach(void **state)
{
    (void)state;
    static const int hosts[] = {0, 1};
    char place[SCRATCH_PATH];
    struct job job;
    struct rank ranks[2] = {{0}};
    struct tr_comm_settings patience = TR_COMM_SETTINGS_INIT;
    tr_comm *comms[2];
    int64_t live = tr_alloc_live();
    scratch_make(place);
    family_files(place);
    family_job(&job, &families[0], place);
    job_set(&job, "train.microbatches=2");
    job.settings.set = job.set;
    job.settings.strategy = "allreduce,bucket=0.002";
    job.settings.steps = 1000;
    must_train(tr_comm_thread_create(2, hosts, &patience, comms));
    death.victim = comms[1];
    for (int r = 0; r < 2; r++) {
        ranks[r].settings = &job.settings;
        ranks[r].comm = comms[r];
        assert_int_equal(pthread_create(&ranks[r].thread, NULL, run_until_death, &ranks[r]), 0);
    }
    for (int r = 0; r < 2; r++) pthread_join(ranks[r].thread, NULL);
    assert_true(death.gone);
    assert_int_equal(ranks[1].outcome.status, TR_EPEER);
    assert_non_null(strstr(ranks[1].outcome.message, "was killed on purpose"));
    assert_int_equal(ranks[0].outcome.status, TR_EPEER);
    assert_non_null(strstr(ranks[0].outcome.message, "rank 1 on host thread-host-1 died"));
    scratch_remove(place);
    assert_int_equal(tr_alloc_live(), live);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_family_has_one_hash),
        cmocka_unit_test(buckets_keep_the_hash),
        cmocka_unit_test(factors_keep_the_hash),
        cmocka_unit_test(large_factors_keep_the_hash),
        cmocka_unit_test(bad_losses_apply_nothing),
        cmocka_unit_test(bytes_are_those_of_the_parameters),
        cmocka_unit_test(options_keep_the_hash),
        cmocka_unit_test(checkpoints_do_not_know_ranks),
        cmocka_unit_test(differences_are_refused),
        cmocka_unit_test(too_many_ranks_are_refused),
        cmocka_unit_test(a_failure_within_a_step_ends_all),
        cmocka_unit_test(released_memory_is_out_of_reach),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
