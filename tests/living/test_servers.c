/* Parameter servers as processes: a worker of an asynchronous job may die or hang, and the others go on;
 * without a server or the root all stop and say so, and a restart goes on from the checkpoint. */
#include "living/job.h"

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

#define STEPS 6000

/* Three workers, of which rank 0 is the root, and two servers. */
#define SERVED "-n", "5", "train", "job.yaml", "-t", "1", "--strategy"
#define ASYNC  "parameter-server,servers=2,mode=async"

static void expect(const struct job *job, int which, const char *part)
{
    if (strstr(job->session.text[which], part)) return;
    session_show(&job->session);
    fail_msg("\"%s\" was not said", part);
}

static void expect_end(struct job *job, int code)
{
    int got = job_end(job);
    if (got != code) session_show(&job->session);
    assert_int_equal(got, code);
    job_expect_gone(job, 10);
}

/* Waits until the run is well under way, and hits a rank of it. */
static void hit(struct job *job, int rank, int number)
{
    session_wait_for(&job->session, 0, "\noutput ");
    pid_t process = job_wait_for_rank(job, rank, 300 + chance(500));
    assert_true(process > 0);
    assert_int_equal(kill(process, number), 0);
}

static void kill_a_worker(const char *how)
{
    struct job job;
    job_start(&job, SERVED, ASYNC, "-o", how, NULL);
    hit(&job, 1, SIGKILL);
    expect_end(&job, 0);
    expect(&job, 1, "worker 1 on host ");
    expect(&job, 1, "going on without it");
    expect(&job, 0, "\nhash ");
    job_release(&job);
    /* What was saved is whole. */
    struct session session;
    int code = run(&session, "train", "--resume", how, "--strategy", "allreduce", "--steps", "6010", "-t",
                   "1", NULL);
    if (code != 0) session_show(&session);
    assert_int_equal(code, 0);
    session_release(&session);
}

static void a_dead_worker_is_gone_without(void **state)
{
    (void)state;
    skip_without_transport();
    job_write(STEPS);
    kill_a_worker("shared");
    if (strcmp(job_transport, "mpi") != 0) return;
    setenv("OMPI_MCA_pml", "ob1", 1);
    setenv("OMPI_MCA_btl", "tcp,self", 1);
    kill_a_worker("tcp");
    unsetenv("OMPI_MCA_pml");
    unsetenv("OMPI_MCA_btl");
}

static void wait_until_gone(pid_t process)
{
    for (int i = 0; kill(process, 0) == 0; i++) {
        if (i == 600) fail_msg("process %d does not leave", (int)process);
        nanosleep(&(struct timespec){.tv_nsec = 100000000}, NULL);
    }
}

/* A worker that hangs is taken for dead, and leaves by itself when it comes to life again. The launcher gives
   processes 10 s to leave a job that is lost, and this one is not. */
static void a_hung_worker_is_gone_without(void **state)
{
    (void)state;
    struct job job;
    skip_without_transport();
    job_write(1000 * STEPS);
    job_start(&job, SERVED, ASYNC, "-o", "hung", "--timeout", "3000", NULL);
    session_wait_for(&job.session, 0, "\noutput ");
    pid_t process = job_wait_for_rank(&job, 2, 300);
    assert_true(process > 0);
    assert_int_equal(kill(process, SIGSTOP), 0);
    session_wait_for(&job.session, 1, "going on without it");
    assert_int_equal(kill(process, SIGCONT), 0);
    wait_until_gone(process);
    nanosleep(&(struct timespec){.tv_sec = 13}, NULL);
    session_signal(&job.session, SIGINT);
    expect_end(&job, 3);
    expect(&job, 1, "worker 2 on host ");
    expect(&job, 1, "stopped after step ");
    job_release(&job);
}

/* Rank 3 is the first server, rank 4 the second. */
static void nothing_goes_on_without_a_server_or_the_root(void **state)
{
    (void)state;
    static const int victims[] = {0, 3, 4};
    skip_without_transport();
    job_write(1000 * STEPS);
    for (size_t i = 0; i < sizeof victims / sizeof victims[0]; i++) {
        struct job job;
        char name[64], out[16];
        snprintf(name, sizeof name, "rank %d on host ", victims[i]);
        snprintf(out, sizeof out, "server%zu", i);
        job_start(&job, SERVED, ASYNC, "-o", out, NULL);
        hit(&job, victims[i], SIGKILL);
        assert_int_not_equal(job_end(&job), 0);
        job_expect_gone(&job, 10);
        expect(&job, 1, name);
        expect(&job, 1, "died");
        expect(&job, 1, "after step ");
        job_release(&job);
    }
}

static void a_restart_goes_on_without_the_dead_server(void **state)
{
    (void)state;
    struct job job;
    skip_without_transport();
    job_write(STEPS);
    job_start(&job, "--restarts", "3", SERVED, ASYNC, "-o", "again", NULL);
    hit(&job, 4, SIGKILL);
    expect_end(&job, 0);
    expect(&job, 1, "restart 1 of");
    expect(&job, 0, "\nhash ");
    job_release(&job);
}

/* The hash of one process, with real processes, too. */
static void synchronous_servers_keep_the_hash(void **state)
{
    (void)state;
    skip_without_transport();
    job_write(60);
    for (int servers = 1; servers <= 2; servers++) {
        struct job job;
        char strategy[48], out[16];
        snprintf(strategy, sizeof strategy, "parameter-server,servers=%d", servers);
        snprintf(out, sizeof out, "sync%d", servers);
        job_start(&job, "-n", "4", "train", "job.yaml", "-t", "1", "--strategy", strategy, "-o", out, NULL);
        expect_end(&job, 0);
        expect(&job, 0, job_hash());
        job_release(&job);
    }
}

int main(int count, char **arguments)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(synchronous_servers_keep_the_hash),
        cmocka_unit_test(a_dead_worker_is_gone_without),
        cmocka_unit_test(a_hung_worker_is_gone_without),
        cmocka_unit_test(nothing_goes_on_without_a_server_or_the_root),
        cmocka_unit_test(a_restart_goes_on_without_the_dead_server),
    };
    const struct CMUnitTest with_mpi[] = {
        cmocka_unit_test(a_dead_worker_is_gone_without),
        cmocka_unit_test(a_hung_worker_is_gone_without),
    };
    job_argument(count, arguments, "");
    chance_begin();
    if (strcmp(job_transport, "mpi") == 0)
        return cmocka_run_group_tests_name("living.servers_mpi", with_mpi, place_make, place_remove);
    return cmocka_run_group_tests_name("living.servers", tests, place_make, place_remove);
}
