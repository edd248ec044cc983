/* Random kills and stops: every job ends with the hash of the undisturbed one. With --long many of them, or
 * as many as the variable TRIREME_TEST_KILLS says. */
#include "living/job.h"

#include "base/threads/clock.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

static int kills = 3, stops = 1;

#define PARTS 3

static void start(struct job *job, int workers, const char *strategy, const char *out, const char *timeout)
{
    char count[8];
    snprintf(count, sizeof count, "%d", workers);
    job_start(job, "-n", count, "--restarts", "1000", "train", "job.yaml", "--continue", "-o", out, "--log",
              "none", "-t", "1", "--timeout", timeout, "--strategy", strategy, NULL);
}

static void expect_hash(struct job *job)
{
    int code = job_end(job);
    if (code != 0 || !strstr(job->session.text[0], job_hash())) {
        session_show(&job->session);
        fail_msg("exit code %d, expected the hash %s", code, job_hash());
    }
    job_expect_gone(job, 5);
    job_release(job);
}

/* Waits until nothing of an attempt is left, so that whatever comes is of the next one. */
static void wait_for_end(const pid_t *processes, int count)
{
    for (int i = 0; i < count; i++)
        while (processes[i] > 0 && kill(processes[i], 0) == 0)
            nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
}

/* Kills ranks of a running job at random moments, of starting and ending, too; returns how many it met. */
static int kill_ranks(struct job *job, int workers, int count)
{
    int met = 0;
    while (met < count) {
        int rank = chance(workers);
        pid_t process = job_wait_for_rank(job, rank, chance(1000));
        if (job_processes(job) == 0) break;
        pid_t others[JOB_RANKS];
        for (int i = 0; i < workers; i++) others[i] = job_rank(job, i);
        if (!process || kill(process, SIGKILL) != 0) continue;
        met++;
        wait_for_end(others, workers);
    }
    return met;
}

/* Parts of one run on changing numbers of workers, under changing strategies. All but the last end by a
   signal to the launcher. */
static void kills_leave_no_trace(void **state)
{
    (void)state;
    static const int workers[PARTS] = {3, 2, 4}, ends[PARTS] = {SIGKILL, SIGTERM, 0};
    static const char *const strategies[PARTS] = {"allreduce", "pipeline,stages=2",
                                                  "parameter-server,mode=sync"};
    int met = 0;
    skip_without_transport();
    /* Many kills take the steps of some seconds each, also of fast ones, and the last part must make what is
       left. */
    job_write(kills > 12 ? 1000 * kills : 4000 * kills);
    for (int part = 0; part < PARTS; part++) {
        struct job job;
        start(&job, workers[part], strategies[part], "killed", "60000");
        job.session.patience += 10 * kills;
        met += kill_ranks(&job, workers[part], (kills + part) / PARTS);
        if (part == PARTS - 1) {
            expect_hash(&job);
            break;
        }
        job_wait_for_rank(&job, 0, chance(500));
        session_signal(&job.session, ends[part]);
        int code = job_end(&job);
        if (ends[part] == SIGKILL)
            assert_int_equal(code, -SIGKILL);
        else if (code != 3 && code != 0 && code != 128 + SIGTERM) {
            session_show(&job.session);
            fail_msg("exit code %d after SIGTERM", code);
        }
        job_expect_gone(&job, 10);
        job_release(&job);
    }
    print_message("%d of %d kills met a process\n", met, kills);
    /* A busy machine may end a part before its kill comes: of few kills one is enough. */
    assert_true(kills > 12 ? 3 * met >= 2 * kills : met > 0);
}

/* ---- every strategy ---- */

enum ends_with { HASH_OF_ONE, OWN_HASH, NO_HASH };

static const struct {
    const char *strategy;
    int ranks;
    enum ends_with hash;
} strategies[] = {
    {"allreduce", 3, HASH_OF_ONE},
    {"pipeline,stages=2", 2, HASH_OF_ONE},
    {"parameter-server,mode=sync,servers=2", 4, HASH_OF_ONE},
    {"local-sgd,replicas=2,every=4", 2, OWN_HASH},
    {"parameter-server,mode=async", 3, NO_HASH},
    {"parameter-server,mode=bounded", 3, NO_HASH},
    {"parameter-server,mode=backup,backup=1", 3, NO_HASH},
};
#define STRATEGIES ((int)(sizeof strategies / sizeof strategies[0]))

/* The hash that the job ends with undisturbed; "" where none is promised. */
static void expected_hash(int strategy, char hash[65])
{
    struct session session;
    hash[0] = '\0';
    if (strategies[strategy].hash == HASH_OF_ONE) strcpy(hash, job_hash());
    if (strategies[strategy].hash != OWN_HASH) return;
    int code = run(&session, "train", "job.yaml", "-o", "own", "--overwrite", "-t", "1", "--strategy",
                   strategies[strategy].strategy, NULL);
    if (code != 0) session_show(&session);
    assert_int_equal(code, 0);
    strcpy(hash, hash_in(session.text[0]));
    session_release(&session);
}

/* One rank or the launcher gets a signal at a random moment: the job goes on to its end, or leaves as the
 * manual says. */
static void disturb(int strategy, const char *hash)
{
    static int number;
    struct job job;
    char out[32];
    int ranks = strategies[strategy].ranks, victim = chance(ranks + 1);
    snprintf(out, sizeof out, "disturbed%d", number++);
    start(&job, ranks, strategies[strategy].strategy, out, "60000");
    job_wait_for_rank(&job, 0, chance(1500));
    pid_t process = victim < ranks ? job_rank(&job, victim) : job.session.process;
    int signal = victim < ranks ? SIGKILL : SIGTERM;
    if (process > 0) kill(process, signal);
    int code = job_end(&job);
    bool stopped = signal == SIGTERM && (code == 3 || code == 128 + SIGTERM);
    bool well = code == 0 && (!*hash || strstr(job.session.text[0], hash));
    if (!stopped && !well) {
        session_show(&job.session);
        fail_msg("%s, signal %d to %d: exit code %d, expected the hash %s", strategies[strategy].strategy,
                 signal, victim, code, *hash ? hash : "of any kind");
    }
    job_expect_gone(&job, 10);
    job_release(&job);
}

static void every_strategy_can_be_disturbed(void **state)
{
    (void)state;
    skip_without_transport();
    job_write(800);
    for (int strategy = 0; strategy < STRATEGIES; strategy++) {
        char hash[65];
        expected_hash(strategy, hash);
        for (int i = 0; i < 1 + kills / STRATEGIES; i++) disturb(strategy, hash);
    }
}

/* Reads until the root has told `count` times that a run begins. */
static void wait_for_beginning(struct job *job, int count)
{
    for (;;) {
        int seen = 0;
        for (const char *at = job->session.text[0]; (at = strstr(at, "\noutput ")); at++) seen++;
        if (seen >= count) return;
        session_read(&job->session);
    }
}

static void stopped_processes_are_found_and_named(void **state)
{
    (void)state;
    struct job job;
    skip_without_transport();
    job_write(1500 * (stops + 1));
    start(&job, 3, "allreduce", "stopped", "1500");
    for (int i = 0; i < stops; i++) {
        char name[80];
        int rank = chance(3);
        wait_for_beginning(&job, i + 1);
        pid_t process = job_wait_for_rank(&job, rank, chance(400));
        double begin = tr_clock_seconds();
        assert_true(process > 0);
        assert_int_equal(kill(process, SIGSTOP), 0);
        snprintf(name, sizeof name, "restart %d of", i + 1);
        session_wait_for(&job.session, 1, name);
        double took = tr_clock_seconds() - begin;
        snprintf(name, sizeof name, ": rank %d on host", rank);
        if (!strstr(job.session.text[1], name) || !strstr(job.session.text[1], "after step ") ||
            !strstr(job.session.text[1], "not been heard of")) {
            session_show(&job.session);
            fail_msg("rank %d was stopped, and not named", rank);
        }
        print_message("rank %d was stopped; the job was over after %.1f s\n", rank, took);
        if (took > 15) fail();
    }
    expect_hash(&job);
}

int main(int count, char **arguments)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kills_leave_no_trace),
        cmocka_unit_test(every_strategy_can_be_disturbed),
        cmocka_unit_test(stopped_processes_are_found_and_named),
    };
    const struct CMUnitTest with_mpi[] = {
        cmocka_unit_test(kills_leave_no_trace),
        cmocka_unit_test(stopped_processes_are_found_and_named),
    };
    if (job_argument(count, arguments, "--long")) {
        kills = 20;
        stops = 5;
    }
    const char *more = getenv("TRIREME_TEST_KILLS"); /* a number of them */
    if (more) kills = atoi(more);
    if (strcmp(job_transport, "mpi") == 0 && !more) kills = 2;
    chance_begin();
    if (strcmp(job_transport, "mpi") == 0)
        return cmocka_run_group_tests_name("living.kills_mpi", with_mpi, place_make, place_remove);
    return cmocka_run_group_tests(tests, place_make, place_remove);
}
