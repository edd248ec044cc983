/* One attempt at a job: what the user's signals do, what a child begins with, and what is left where
 * something is short. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "cli/launch/steps.h"
#include "refuse.h"

#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>

/* ---- signals ---- */

static void hang_up(struct cli_job *job)
{
    assert_int_equal(quits, 0);
    attempt_clock += 1;
    raise(SIGHUP);
    (void)job;
}

static void insist_at_once(struct cli_job *job)
{
    assert_int_equal(stops, 1);
    attempt_clock += 0.3;
    raise(SIGTERM);
    (void)job;
}

static void insist(struct cli_job *job)
{
    assert_int_equal(quits, 0);
    assert_false(job->end->stop_twice);
    attempt_clock += 0.1;
    raise(SIGTERM);
}

static void insist_again(struct cli_job *job)
{
    assert_int_equal(quits, 1);
    assert_true(job->end->stop_twice);
    raise(SIGINT);
}

static const char stopping[] = "finishing the step, saving (once more: leave at once)\n";

static void a_second_signal_ends_it(void **state)
{
    static const step steps[] = {interrupt, insist_at_once, hang_up, insist, insist_again, NULL};
    (void)state;
    struct cli_job_end end = run((struct cli_job_orders){0}, steps);
    assert_int_equal(stops, 1);
    assert_int_equal(quits, 2);
    assert_int_equal(end.stop_signal, SIGINT);
    assert_int_equal(attempt_count(attempt_said(), stopping), 1);
}

/* What came twice at the same time is one request. */
static void one_request_is_one(void **state)
{
    static const step steps[] = {interrupt, insist_at_once, NULL};
    (void)state;
    struct cli_job_end end = run((struct cli_job_orders){0}, steps);
    assert_int_equal(quits, 0);
    assert_false(end.stop_twice);
}

static int number;

static void raise_it(struct cli_job *job)
{
    (void)job;
    raise(number);
}

static void each_signal_stops(void **state)
{
    static const int each[] = {SIGINT, SIGTERM, SIGHUP, SIGUSR1};
    static const step steps[] = {raise_it, NULL};
    (void)state;
    for (int i = 0; i < 4; i++) {
        number = each[i];
        struct cli_job_end end = run((struct cli_job_orders){0}, steps);
        assert_int_equal(end.stop_signal, number);
        assert_int_equal(stops, 1);
        assert_false(end.stop_twice);
    }
    number = SIGCHLD; /* that is none */
    assert_int_equal(run((struct cli_job_orders){0}, steps).stop_signal, 0);
}

/* A pause ends with a signal, or with its time; the clock stands still, so only no time ends by itself. */
static void pauses_end_with_a_signal(void **state)
{
    (void)state;
    assert_int_equal(cli_job_pause(0), 0);
    raise(SIGHUP);
    assert_int_equal(cli_job_pause(1000), SIGHUP);
    raise(SIGTERM);
    assert_int_equal(cli_job_pause(0), SIGTERM);
    assert_int_equal(cli_job_pause(-1), 0);
}

/* In a process of its own, since it is done once: what the user ignores stays ignored, and ends of children
   are seen where nobody asked for them before. */
static void ignored_signals_stay_ignored(void **state)
{
    static const step steps[] = {raise_it, NULL};
    (void)state;
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        struct sigaction action;
        struct cli_job_end end;
        struct cli_job_orders orders = {0};
        signal(SIGINT, SIG_IGN);
        signal(SIGCHLD, SIG_IGN);
        if (cli_job_prepare() != TR_OK) _exit(10);
        if (sigaction(SIGCHLD, NULL, &action) != 0 || action.sa_handler != SIG_DFL) _exit(11);
        number = SIGINT;
        next = steps;
        if (attempt_run(&launcher, &orders, &end) != TR_OK || end.stop_signal != 0) _exit(12);
        number = SIGTERM;
        next = steps;
        if (attempt_run(&launcher, &orders, &end) != TR_OK || end.stop_signal != SIGTERM) _exit(13);
        _exit(0);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

/* ---- children ---- */

/* What /proc says of the signals of the process. */
static unsigned long long signals_of(const char *what)
{
    char line[256];
    unsigned long long set = 0;
    FILE *file = fopen("/proc/self/status", "r");
    while (file && fgets(line, sizeof line, file))
        if (strncmp(line, what, strlen(what)) == 0) set = strtoull(line + strlen(what) + 1, NULL, 16);
    if (file) fclose(file);
    return set;
}

static void children_begin_with_nothing(void **state)
{
    (void)state;
    for (int holds = 0; holds < 2; holds++) {
        int ends[2], status;
        char text[32] = "";
        assert_int_equal(pipe(ends), 0);
        pid_t parent = getpid(), child = fork();
        assert_true(child >= 0);
        if (child == 0) {
            int death = 0;
            char byte;
            cli_job_become_child(parent, SIGTERM, ends[1], holds);
            if (read(STDIN_FILENO, &byte, 1) != 0) _exit(20);
            if (prctl(PR_GET_PDEATHSIG, &death) != 0 || death != SIGTERM) _exit(21);
            if (signals_of("SigBlk:") != (holds ? 1ull << (SIGUSR1 - 1) : 0)) _exit(22);
            fprintf(stderr, "to the pipe");
            _exit(0);
        }
        close(ends[1]);
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFEXITED(status));
        assert_int_equal(WEXITSTATUS(status), 0);
        assert_int_equal(read(ends[0], text, sizeof text - 1), strlen("to the pipe"));
        assert_string_equal(text, "to the pipe");
        close(ends[0]);
    }
    /* Whose parent has ended meanwhile. */
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        cli_job_become_child(1, SIGKILL, STDERR_FILENO, false);
        _exit(0);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), CLI_JOB_NOT_STARTED);
}

/* ---- shortage ---- */

/* Without memory to watch it, a job that was started is ended first. */
static void say_nothing(struct cli_job *job)
{
    (void)job;
}

static void without_memory_nothing_goes_on(void **state)
{
    static const step steps[] = {say_nothing, NULL};
    int ended = 0;
    (void)state;
    for (int64_t at = 0, done = 0; !done; at++) {
        struct cli_job_orders orders = {0};
        struct cli_job_end end;
        const int64_t live = tr_alloc_live();
        starts = stops = quits = looks = finishes = 0;
        next = steps;
        raise(SIGHUP); /* no pause lasts */
        refuse_begin(at);
        tr_status status = attempt_run(&launcher, &orders, &end);
        done = refuse_end();
        assert_int_equal(status, done ? TR_OK : TR_ENOMEM);
        assert_int_equal(finishes, looks > 0);
        if (!done && finishes) ended++;
        if (!done) assert_int_equal(quits, finishes);
        if (finishes) assert_int_equal(looks, 2);
        cli_job_pause(0);
        if (writer >= 0) close(writer);
        writer = -1;
        assert_int_equal(tr_alloc_live(), live);
    }
    assert_true(ended > 0);
}

static void without_descriptors_there_is_no_pipe(void **state)
{
    struct rlimit before, limit;
    (void)state;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    const int open = descriptors_open();
    for (int more = 0; more < 2; more++) {
        struct cli_job job = {0};
        int end = -1;
        limit = before;
        limit.rlim_cur = descriptors_limit(more);
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
        tr_status status = cli_job_output(&job, &end);
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
        assert_int_equal(status, TR_EIO);
        assert_non_null(strstr(tr_error_message(), "no pipe for a process: "));
        assert_int_equal(job.outputs, 0);
        assert_int_equal(end, -1);
        tr_free(job.output);
        assert_int_equal(descriptors_open(), open);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_second_signal_ends_it),
        cmocka_unit_test(one_request_is_one),
        cmocka_unit_test(each_signal_stops),
        cmocka_unit_test(pauses_end_with_a_signal),
        cmocka_unit_test(ignored_signals_stay_ignored),
        cmocka_unit_test(children_begin_with_nothing),
        cmocka_unit_test(without_memory_nothing_goes_on),
        cmocka_unit_test(without_descriptors_there_is_no_pipe),
    };
    return cmocka_run_group_tests_name("cli.job_signals", tests, attempt_prepare, attempt_drop);
}
