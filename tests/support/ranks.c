#include "support/ranks.h"

#include "base/threads/clock.h"
#include "comm/class.h"
#include "comm/transport.h"
#include "support/comm_thread/thread.h"
#include "train/loop/trainer.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>

static void *run_rank(void *user)
{
    struct rank *rank = user;
    tr_trainer *trainer = NULL;
    rank->outcome = (struct outcome){.status = trainer_create(rank->settings, rank->comm, &trainer)};
    if (rank->outcome.status == TR_OK) {
        trainer_outcome(trainer, &rank->outcome);
        /* Only the root reports; the parameters are on every rank. */
        if (rank->outcome.status == TR_OK)
            rank->outcome.status = tr_trainer_hash(trainer, rank->outcome.hash); /* short of memory, for
                                                                                    example */
    } else {
        snprintf(rank->outcome.message, sizeof rank->outcome.message, "%s", tr_error_message());
        tr_comm_abort(rank->comm, rank->outcome.message);
    }
    tr_trainer_destroy(&trainer);
    tr_comm_destroy(&rank->comm);
    return NULL;
}

static enum ranks_kind kind = RANKS_ARE_THREADS;

void ranks_become(enum ranks_kind wanted)
{
    kind = wanted;
}

bool ranks_are_processes(void)
{
    return kind == RANKS_ARE_PROCESSES;
}

void *ranks_shared(size_t size)
{
    void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(memory, MAP_FAILED);
    return memory;
}

void ranks_unshare(void *memory, size_t size)
{
    if (memory) munmap(memory, size);
}

void ranks_die(tr_comm *comm)
{
    if (ranks_are_processes()) raise(SIGKILL);
    tr_comm_thread_kill(comm);
}

static void run_threads(void *(*run)(void *), int size, int apart, struct rank *ranks)
{
    static const int hosts[][RANKS] = {{0}, {0, 1, 2, 3, 4, 5, 6, 7}, {0, 0, 1, 1, 2, 2, 3, 3}};
    struct tr_comm_settings patience = TR_COMM_SETTINGS_INIT;
    tr_comm *comms[RANKS];
    must_train(tr_comm_thread_create(size, hosts[apart], &patience, comms));
    /* So few would exchange directly; many ranks must get the same result. */
    for (int r = 0; apart && size > 2 && r < size; r++) comms[r]->routing = TR_ROUTING_TREE;
    for (int r = 0; r < size; r++) {
        ranks[r].comm = comms[r];
        assert_int_equal(pthread_create(&ranks[r].thread, NULL, run, &ranks[r]), 0);
    }
    for (int r = 0; r < size; r++) pthread_join(ranks[r].thread, NULL);
}

/* ---- processes ---- */

#define DEADLINE 600 /* seconds for all ranks of a run */

/* A rank's process: joins, runs, and leaves its outcome. */
static void be_process(void *(*run)(void *), tr_local_group *group, struct rank *rank, int number,
                       struct outcome *outcome)
{
    struct tr_comm_settings patience = TR_COMM_SETTINGS_INIT;
    char ticket[TR_LOCAL_TICKET_SIZE];
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    /* A failed check ends the process; otherwise it would continue with the later tests. */
    setenv("CMOCKA_TEST_ABORT", "1", 1);
    must_train(tr_local_group_ticket(group, number, ticket, sizeof ticket));
    must_train(tr_comm_local_create(ticket, &patience, &rank->comm));
    run(rank);
    *outcome = rank->outcome;
    _exit(0);
}

/* Waits for all; those that take too long are killed, and then the test fails. */
static void wait_for_all(tr_local_group *group, pid_t *process, int size)
{
    double end = tr_clock_seconds() + DEADLINE;
    bool late = false;
    for (int running = size; running > 0;) {
        for (int r = 0; r < size; r++) {
            if (process[r] == 0 || waitpid(process[r], NULL, WNOHANG) != process[r]) continue;
            process[r] = 0;
            running--;
            tr_local_group_ended(group, r);
        }
        if (running > 0) nanosleep(&(struct timespec){.tv_nsec = 500000}, NULL);
        if (late || tr_clock_seconds() < end) continue;
        late = true;
        for (int r = 0; r < size; r++)
            if (process[r] > 0) kill(process[r], SIGKILL);
    }
    if (late) fail_msg("%d ranks took longer than %d s", size, DEADLINE);
}

static void run_processes(void *(*run)(void *), int size, struct rank *ranks)
{
    struct outcome *outcomes = ranks_shared(RANKS * sizeof *outcomes);
    tr_local_group *group;
    pid_t process[RANKS];
    must_train(tr_local_group_create(size, &group));
    for (int r = 0; r < size; r++) {
        outcomes[r] = (struct outcome){.status = TR_EPEER, .message = "the rank's process ended early"};
        process[r] = fork();
        assert_true(process[r] >= 0);
        if (process[r] == 0) be_process(run, group, &ranks[r], r, &outcomes[r]);
    }
    wait_for_all(group, process, size);
    tr_local_group_destroy(&group);
    for (int r = 0; r < size; r++) ranks[r].outcome = outcomes[r];
    ranks_unshare(outcomes, RANKS * sizeof *outcomes);
}

static void run_all(void *(*run)(void *), const struct tr_train_settings *const *settings, int size,
                    int apart, struct rank *ranks)
{
    assert_true(size <= RANKS);
    for (int r = 0; r < size; r++) ranks[r] = (struct rank){.settings = settings[r], .user = ranks[r].user};
    if (ranks_are_processes())
        run_processes(run, size, ranks);
    else
        run_threads(run, size, apart, ranks);
}

void run_ranks_each(const struct tr_train_settings *const *settings, int size, int apart, struct rank *ranks)
{
    run_all(run_rank, settings, size, apart, ranks);
}

void run_ranks_by(void *(*run)(void *), const struct tr_train_settings *settings, int size, int apart,
                  struct rank *ranks)
{
    const struct tr_train_settings *each[RANKS];
    for (int r = 0; r < RANKS; r++) each[r] = settings;
    run_all(run, each, size, apart, ranks);
}

void run_ranks(const struct tr_train_settings *settings, int size, int apart, struct rank *ranks)
{
    run_ranks_by(run_rank, settings, size, apart, ranks);
}

void expect_well(const struct rank *ranks, int size, const char *how)
{
    for (int r = 0; r < size; r++)
        if (ranks[r].outcome.status != TR_OK) fail_msg("%s, rank %d: %s", how, r, ranks[r].outcome.message);
}

void expect_ranks(const struct outcome *expected, const struct rank *ranks, int size, const char *how)
{
    expect_well(ranks, size, how);
    for (int r = 0; r < size; r++)
        if (strcmp(expected->hash, ranks[r].outcome.hash) != 0)
            fail_msg("%s, rank %d: hash %s, expected is %s", how, r, ranks[r].outcome.hash, expected->hash);
}

void expect_hash_by(const struct outcome *alone, job_beginner *begin, const char *const *set,
                    const char *strategy, int size, int apart, const char *what)
{
    struct job job;
    struct rank ranks[RANKS];
    if (alone->status != TR_OK) fail_msg("%s: %s", what, alone->message);
    begin(&job, set);
    job.settings.strategy = strategy;
    job.settings.set = job.set;
    run_ranks(&job.settings, size, apart, ranks);
    expect_ranks(alone, ranks, size, what);
}

void expect_shared_hash(const struct outcome *alone, job_beginner *begin, const char *const *set,
                        const char *what)
{
    expect_hash_by(alone, begin, set, "allreduce", 3, 0, what);
    expect_hash_by(alone, begin, set, "parameter-server,servers=2", 4, 1, what);
    expect_hash_by(alone, begin, set, "pipeline", 2, 0, what);
}

void expect_variants(const struct outcome *alone, job_beginner *begin, const char *const *set,
                     const struct job_variant *variants, size_t count, const char *what)
{
    for (size_t i = 0; i < count; i++) {
        struct job job;
        struct outcome other;
        begin(&job, set);
        job_set(&job, variants[i].set);
        job.settings.device = variants[i].device;
        job.settings.isa = variants[i].isa;
        job_outcome(&job, &other);
        if (other.status != TR_OK) fail_msg("%s, %s: %s", what, variants[i].set, other.message);
        if (strcmp(other.hash, alone->hash) != 0) fail_msg("%s, %s: another hash", what, variants[i].set);
    }
}
