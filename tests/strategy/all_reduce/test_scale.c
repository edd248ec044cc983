/* What a step takes of messages and their bytes, counted on up to 256 ranks that are threads, apart and on
 * hosts: both grow with W log W, and the hash of all-reduce stays that of one process.
 */
#include "sanitized.h"
#include "support/training.h"

#include "support/comm_thread/thread.h"
#include "train/loop/trainer.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#define MOST  256
#define SHORT 2 /* steps of one run, */
#define LONG  4 /* and of another: the difference is that of steps alone */

struct member {
    const struct tr_train_settings *settings;
    tr_comm *comm;
    pthread_t thread;
    struct outcome outcome;
    struct tr_comm_statistics moved;
};

static void *run_rank(void *user)
{
    struct member *rank = user;
    tr_trainer *trainer = NULL;
    rank->outcome = (struct outcome){.status = trainer_create(rank->settings, rank->comm, &trainer)};
    if (rank->outcome.status == TR_OK) {
        trainer_outcome(trainer, &rank->outcome);
        if (rank->outcome.status == TR_OK) must_train(tr_trainer_hash(trainer, rank->outcome.hash));
    } else {
        snprintf(rank->outcome.message, sizeof rank->outcome.message, "%s", tr_error_message());
        tr_comm_abort(rank->comm, rank->outcome.message);
    }
    tr_comm_statistics(rank->comm, &rank->moved);
    tr_trainer_destroy(&trainer);
    tr_comm_destroy(&rank->comm);
    return NULL;
}

struct moved {
    int64_t messages, bytes;
};

/* What all ranks sent; `hash` gets the root's. */
static struct moved run(struct job *job, int size, int a_host, int64_t steps, char hash[65])
{
    static struct member member[MOST];
    struct tr_comm_settings patience = TR_COMM_SETTINGS_INIT;
    tr_comm *comm[MOST];
    int host[MOST] = {0};
    struct moved all = {0};
    for (int r = 0; r < size; r++) host[r] = r / a_host;
    job->settings.steps = steps;
    must_train(tr_comm_thread_create(size, host, &patience, comm));
    for (int r = 0; r < size; r++) {
        member[r] = (struct member){.settings = &job->settings, .comm = comm[r]};
        assert_int_equal(pthread_create(&member[r].thread, NULL, run_rank, &member[r]), 0);
    }
    for (int r = 0; r < size; r++) pthread_join(member[r].thread, NULL);
    for (int r = 0; r < size; r++) {
        if (member[r].outcome.status != TR_OK)
            fail_msg("rank %d of %d: %s", r, size, member[r].outcome.message);
        all.messages += member[r].moved.messages_sent;
        all.bytes += member[r].moved.bytes_sent;
    }
    snprintf(hash, 65, "%s", member[0].outcome.hash);
    return all;
}

/* Of a step, by the difference of a longer and a shorter run. */
static struct moved of_a_step(struct job *job, int size, int a_host, char hash[2][65])
{
    struct moved longer = run(job, size, a_host, LONG, hash[0]),
                 shorter = run(job, size, a_host, SHORT, hash[1]);
    return (struct moved){(longer.messages - shorter.messages) / (LONG - SHORT),
                          (longer.bytes - shorter.bytes) / (LONG - SHORT)};
}

static int log_of(int ranks)
{
    int log = 0;
    while (1 << log < ranks) log++;
    return log;
}

/* On one host, where numbers are read in shared memory, and of replicas apart, whose reports are as many as
   the ranks. */
static void bytes_of_a_step(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        bool replicas; /* one a rank, which the name ends with */
    } strategies[] = {
        {"allreduce,bucket=0,factors=never", false},
        {"local-sgd,every=1,replicas=", true},
        {"easgd,every=1,replicas=", true},
    };
    static const int sizes[] = {8, 32, 64, 128, 256};
    struct job job;
    family_job(&job, &families[0], family_place);
    job_set(&job, "layers=[{flatten: null}, {dense: 10}]");
    job_set(&job, "train.batch=256");
    job_set(&job, "train.microbatches=256");
    job.settings.set = job.set;
    for (int s = 0; s < 3; s++)
        for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
            int size = sizes[i], log = log_of(size);
            if (SANITIZED && size > 64) continue;
            char hash[2][65], strategy[64];
            snprintf(strategy, sizeof strategy, "%s", strategies[s].name);
            if (strategies[s].replicas) snprintf(strategy, sizeof strategy, "%s%d", strategies[s].name, size);
            job.settings.strategy = strategy;
            int64_t bytes = of_a_step(&job, size, size, hash).bytes;
            print_message("%s on %3d ranks: %lld bytes a step\n", strategy, size, (long long)bytes);
            if (bytes > 128 * size * log || bytes < size)
                fail_msg("%s on %d ranks: %lld bytes a step", strategy, size, (long long)bytes);
        }
}

static void messages_of_a_step(void **state)
{
    (void)state;
    static const struct {
        int size, a_host;
    } cases[] = {{4, 1}, {8, 1}, {16, 1}, {64, 1}, {32, 8}, {64, 16}};
    struct job job;
    family_job(&job, &families[0], family_place);
    job_set(&job, "layers=[{flatten: null}, {dense: {units: 16, activation: relu}}, {dense: 10}]");
    job_set(&job, "train.batch=64");
    job_set(&job, "train.microbatches=64");
    struct outcome alone;
    job.settings.steps = LONG;
    job_outcome(&job, &alone);
    assert_int_equal(alone.status, TR_OK);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        int size = cases[i].size, a_host = cases[i].a_host, log = log_of(size), few = size <= 4;
        char hash[2][65];
        job.settings.strategy = "allreduce,bucket=0,factors=never";
        int64_t step = of_a_step(&job, size, a_host, hash).messages;
        /* The loss and the reports; one bucket, whose sums and shares go round by round; on hosts, places and
           that it is over. */
        int64_t words = few ? 2 * size * (size - 1) : 4 * (size - 1);
        int64_t rounds = few ? 2 * (size - 1) : 2 * log, within = a_host > 1 ? 2 * log_of(a_host) : 0;
        print_message("%2d ranks, %2d a host: %lld messages a step\n", size, a_host, (long long)step);
        if (step > words + size * (rounds + within) || step < words + size)
            fail_msg("%d ranks, %d a host: %lld messages a step", size, a_host, (long long)step);
        assert_string_equal(alone.hash, hash[0]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(messages_of_a_step),
                                       cmocka_unit_test(bytes_of_a_step)};
    return cmocka_run_group_tests_name("strategy.scale", tests, family_place_make, family_place_remove);
}
