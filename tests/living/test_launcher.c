/* What the launcher does when it or its processes are in trouble, or asked to stop, and stragglers. */
#include "living/job.h"

#include "base/threads/clock.h"

#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

static void start(struct job *job, const char *out)
{
    job_start(job, "-n", "3", "train", "job.yaml", "--overwrite", "-o", out, "--log", "none", "-t", "1",
              NULL);
    session_wait_for(&job->session, 0, "output ");
}

static void killed_launchers_leave_nothing(void **state)
{
    (void)state;
    skip_without_transport();
    struct job job;
    start(&job, "orphans");
    session_signal(&job.session, SIGKILL);
    assert_int_equal(job_end(&job), -SIGKILL);
    job_expect_gone(&job, 5);
    job_release(&job);
}

static void a_terminated_job_can_be_taken_up(void **state)
{
    (void)state;
    skip_without_transport();
    struct job job;
    start(&job, "terminated");
    session_signal(&job.session, SIGTERM);
    int code = job_end(&job);
    if (code != 3 || !strstr(job.session.text[1], "stopped after step ")) session_show(&job.session);
    assert_int_equal(code, 3);
    job_expect_gone(&job, 0.5);
    job_release(&job);
    job_start(&job, "-n", "2", "train", "--resume", "terminated", "--log", "none", "-t", "1", NULL);
    assert_int_equal(job_end(&job), 0);
    assert_string_equal(hash_in(job.session.text[0]), job_hash());
    job_release(&job);
}

/* Also before mpirun has processes to hand it to. */
static void a_stop_while_it_starts_is_heeded(void **state)
{
    (void)state;
    skip_without_transport();
    for (int i = 0; i < 10; i++) {
        struct job job;
        struct timespec pause = {0, 1000000 + 12000000 * i};
        job_start(&job, "-n", "2", "train", "job.yaml", "--overwrite", "-o", "early", "--log", "none", "-t",
                  "1", NULL);
        nanosleep(&pause, NULL);
        session_signal(&job.session, SIGINT);
        int code = job_end(&job);
        /* 130: it was stopped before there was anything to save, or a handler for the signal. */
        if (code != 3 && code != 130 && code != -SIGINT) {
            session_show(&job.session);
            fail_msg("exit code %d after SIGINT at %d ms", code, 1 + 12 * i);
        }
        job_expect_gone(&job, 5);
        job_release(&job);
    }
}

static void a_second_signal_ends_it_at_once(void **state)
{
    (void)state;
    skip_without_transport();
    struct job job;
    job_start(&job, "-n", "2", "train", "job.yaml", "--overwrite", "-o", "twice", "-t", "1", "--log", "none",
              NULL);
    session_wait_for(&job.session, 0, "output ");
    assert_int_equal(kill(job_rank(&job, 0), SIGSTOP), 0); /* it answers nothing any more */
    session_signal(&job.session, SIGINT);
    session_wait_for(&job.session, 1, "once more: leave at once");
    double begin = tr_clock_seconds();
    struct timespec pause = {0, 400000000};
    nanosleep(&pause, NULL);
    session_signal(&job.session, SIGINT);
    assert_int_equal(job_end(&job), 130);
    assert_true(tr_clock_seconds() - begin < 15);
    job_expect_gone(&job, 0.5);
    job_release(&job);
}

/* Somebody who is slow is waited for, however much longer than the time-out that takes. */
static void slow_processes_are_never_thrown_out(void **state)
{
    (void)state;
    static const char *const delays[][2] = {{"--slow", "1:5"}, {"--slow", "1:3000"}, {"--seed-delays", "7"}};
    char hash[65];
    skip_without_transport();
    struct session alone;
    assert_int_equal(run(&alone, "train", "job.yaml", "-o", "slow", "--overwrite", "--steps", "2", NULL), 0);
    memcpy(hash, hash_in(alone.text[0]), sizeof hash);
    session_release(&alone);
    for (size_t i = 0; i < sizeof delays / sizeof delays[0]; i++) {
        struct job job;
        job_start(&job, "-n", "3", "train", "job.yaml", "-o", "slow", "--overwrite", "--steps", "2", "-t",
                  "1", "--timeout", "1500", delays[i][0], delays[i][1], NULL);
        int code = job_end(&job);
        if (code != 0 || strcmp(hash_in(job.session.text[0]), hash) != 0) session_show(&job.session);
        assert_int_equal(code, 0);
        assert_string_equal(hash_in(job.session.text[0]), hash);
        job_release(&job);
    }
}

static void asynchronous_jobs_spare_a_worker(void **state)
{
    (void)state;
    static const int signals[] = {SIGKILL, SIGSTOP};
    skip_without_transport();
    for (int i = 0; i < 2; i++) {
        struct job job;
        job_start(&job, "-n", "3", "train", "job.yaml", "--overwrite", "-o", "spared", "--log", "none", "-t",
                  "1", "--strategy", "parameter-server,mode=async", "--timeout", "2000", NULL);
        session_wait_for(&job.session, 0, "output ");
        assert_int_equal(kill(job_wait_for_rank(&job, 1, 100), signals[i]), 0);
        int code = job_end(&job);
        if (code != 0 || !strstr(job.session.text[1], "going on without it")) session_show(&job.session);
        assert_int_equal(code, 0);
        assert_non_null(strstr(job.session.text[1], "going on without it"));
        assert_null(strstr(job.session.text[1], "PMIX"));
        hash_in(job.session.text[0]);
        job_expect_gone(&job, 0.5);
        job_release(&job);
    }
}

static void a_lost_server_is_a_lost_job(void **state)
{
    (void)state;
    skip_without_transport();
    struct job job;
    job_start(&job, "-n", "3", "--restarts", "1", "train", "job.yaml", "--overwrite", "-o", "served", "--log",
              "none", "-t", "1", "--strategy", "parameter-server,mode=async", NULL);
    session_wait_for(&job.session, 0, "output ");
    assert_int_equal(kill(job_wait_for_rank(&job, 2, 100), SIGKILL), 0);
    int code = job_end(&job);
    if (code != 0 || !strstr(job.session.text[1], "restart 1 of 1")) session_show(&job.session);
    assert_int_equal(code, 0);
    assert_non_null(strstr(job.session.text[1], "rank 2 on host "));
    assert_non_null(strstr(job.session.text[1], "after step "));
    assert_non_null(strstr(job.session.text[1], "restart 1 of 1"));
    job_expect_gone(&job, 0.5);
    job_release(&job);
}

static void restarts_run_out(void **state)
{
    (void)state;
    skip_without_transport();
    struct job job;
    job_start(&job, "-n", "2", "--restarts", "1", "train", "job.yaml", "--overwrite", "-o", "ends", "--log",
              "none", "-t", "1", NULL);
    for (int i = 0; i < 2; i++) {
        if (i > 0) session_wait_for(&job.session, 1, "restart 1 of 1 in ");
        pid_t process = job_wait_for_rank(&job, 1, 0);
        assert_int_equal(kill(process, SIGKILL), 0);
    }
    assert_int_equal(job_end(&job), 1);
    const char *first = strstr(job.session.text[1], "the job was lost");
    if (!first || !strstr(first + 1, "the job was lost")) session_show(&job.session);
    assert_non_null(first);
    assert_non_null(strstr(first + 1, "the job was lost"));
    assert_null(strstr(job.session.text[1], "restart 2"));
    job_expect_gone(&job, 0.5);
    job_release(&job);
}

static void what_cannot_be_mended_is_not_tried_again(void **state)
{
    (void)state;
    skip_without_transport();
    struct job job;
    job_start(&job, "-n", "5", "--restarts", "3", "train", "job.yaml", "-o", "many", NULL);
    int code = job_end(&job);
    assert_null(strstr(job.session.text[1], "restart"));
    const char *said = strstr(job.session.text[1], "5 ranks share 4 microbatches");
    if (code != 2 || !said || strstr(said + 1, "5 ranks share")) session_show(&job.session);
    assert_int_equal(code, 2);
    assert_non_null(said);
    assert_null(strstr(said + 1, "5 ranks share")); /* by all, but shown once */
    job_release(&job);
}

static void placement_is_told_first(void **state)
{
    (void)state;
    skip_without_transport();
    struct job job;
    job_start(&job, "-n", "3", "train", "job.yaml", "-o", "placed", "--steps", "1", "-t", "1", "--placement",
              NULL);
    assert_int_equal(job_end(&job), 0);
    const char *text = job.session.text[0], *table = strstr(text, "allreduce strategy, 3 processes\n");
    assert_non_null(table);
    assert_non_null(strstr(table, "\n   2  "));
    assert_non_null(strstr(table, "worker"));
    assert_non_null(strstr(table, "0 to 1"));
    assert_true(table < strstr(text, "\nhash "));
    job_release(&job);
}

static int make(void **state)
{
    int code = place_make(state);
    job_write(2000);
    return code;
}

int main(int count, char **arguments)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(killed_launchers_leave_nothing),
        cmocka_unit_test(a_terminated_job_can_be_taken_up),
        cmocka_unit_test(a_stop_while_it_starts_is_heeded),
        cmocka_unit_test(a_second_signal_ends_it_at_once),
        cmocka_unit_test(slow_processes_are_never_thrown_out),
        cmocka_unit_test(asynchronous_jobs_spare_a_worker),
        cmocka_unit_test(a_lost_server_is_a_lost_job),
        cmocka_unit_test(restarts_run_out),
        cmocka_unit_test(what_cannot_be_mended_is_not_tried_again),
        cmocka_unit_test(placement_is_told_first),
    };
    const struct CMUnitTest with_mpi[] = {
        cmocka_unit_test(killed_launchers_leave_nothing),
        cmocka_unit_test(a_terminated_job_can_be_taken_up),
        cmocka_unit_test(a_stop_while_it_starts_is_heeded),
        cmocka_unit_test(a_second_signal_ends_it_at_once),
        cmocka_unit_test(asynchronous_jobs_spare_a_worker),
        cmocka_unit_test(a_lost_server_is_a_lost_job),
        cmocka_unit_test(what_cannot_be_mended_is_not_tried_again),
    };
    job_argument(count, arguments, "");
    if (strcmp(job_transport, "mpi") == 0)
        return cmocka_run_group_tests_name("living.launcher_mpi", with_mpi, make, place_remove);
    return cmocka_run_group_tests_name("living.launcher", tests, make, place_remove);
}
