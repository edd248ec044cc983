/* Jobs that go on without processes that are killed at random moments: one launch, no restart, the hash of
 * the undisturbed run. With --long many of them. */
#include "living/job.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static int jobs = 2;

static void start(struct job *job, int workers, const char *out)
{
    char count[8];
    snprintf(count, sizeof count, "%d", workers);
    job_start(job, "-n", count, "--on-loss", "shrink", "train", "job.yaml", "-o", out, "--log", "none", "-t",
              "1", NULL);
}

/* Whether somebody said it, in words that `text` holds. */
static bool was_said(const struct job *job, const char *text)
{
    return strstr(job->session.text[0], text) || strstr(job->session.text[1], text);
}

/* Waits until the job trains: what dies before cannot be done without. */
static void wait_for_beginning(struct job *job)
{
    while (!was_said(job, "\noutput ")) session_read(&job->session);
}

static void the_others_go_on(void **state)
{
    (void)state;
    enum { WORKERS = 4 };
    job_write(3000);
    for (int i = 0; i < jobs; i++) {
        struct job job;
        char out[32];
        bool dead[WORKERS] = {false};
        int killed = 0, wanted = 1 + chance(WORKERS - 1);
        snprintf(out, sizeof out, "losses%d", i);
        start(&job, WORKERS, out);
        wait_for_beginning(&job);
        while (killed < wanted) {
            int rank = 1 + chance(WORKERS - 1);
            if (dead[rank]) continue;
            pid_t process = job_wait_for_rank(&job, rank, chance(400));
            if (!process || kill(process, SIGKILL) != 0) break; /* it is over */
            dead[rank] = true;
            killed++;
        }
        int code = job_end(&job);
        if (code != 0 || !was_said(&job, job_hash())) {
            session_show(&job.session);
            fail_msg("%d of %d processes were killed: exit code %d, expected the hash %s", killed, WORKERS,
                     code, job_hash());
        }
        if (was_said(&job, "restart 1")) fail_msg("the job was started again");
        if (killed > 0 && !was_said(&job, "ranks go on")) {
            session_show(&job.session);
            fail_msg("%d processes were killed, and nobody said so", killed);
        }
        print_message("%d of %d processes were killed\n", killed, WORKERS);
        job_expect_gone(&job, 10);
        job_release(&job);
    }
}

/* The first process reports and saves: without it the job ends, and starts again where it may. */
static void the_first_one_is_needed(void **state)
{
    (void)state;
    struct job job;
    job_write(3000);
    job_start(&job, "-n", "3", "--on-loss", "shrink", "--restarts", "3", "train", "job.yaml", "-o", "first",
              "--log", "none", "-t", "1", NULL);
    wait_for_beginning(&job);
    pid_t process = job_wait_for_rank(&job, 0, chance(300));
    if (process) kill(process, SIGKILL);
    int code = job_end(&job);
    if (code != 0 || !was_said(&job, job_hash()) || (process && !was_said(&job, "restart 1 of 3"))) {
        session_show(&job.session);
        fail_msg("exit code %d, expected a restart and the hash %s", code, job_hash());
    }
    job_expect_gone(&job, 10);
    job_release(&job);
}

/* Whoever is left heeds a stop, and the run goes on from there. */
static void the_others_stop_as_ever(void **state)
{
    (void)state;
    struct job job;
    job_write(20000);
    start(&job, 4, "stops");
    wait_for_beginning(&job);
    pid_t process = job_wait_for_rank(&job, 2, 100);
    assert_true(process > 0);
    assert_int_equal(kill(process, SIGKILL), 0);
    while (!was_said(&job, "ranks go on")) session_read(&job.session);
    session_signal(&job.session, SIGTERM);
    int code = job_end(&job);
    if (code != 3) session_show(&job.session);
    assert_int_equal(code, 3);
    job_expect_gone(&job, 10);
    job_release(&job);
}

int main(int count, char **arguments)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_others_go_on),
        cmocka_unit_test(the_first_one_is_needed),
        cmocka_unit_test(the_others_stop_as_ever),
    };
    if (job_argument(count, arguments, "--long")) jobs = 20;
    chance_begin();
    return cmocka_run_group_tests_name("living.losses", tests, place_make, place_remove);
}
