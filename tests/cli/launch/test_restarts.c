/* trireme launch --restarts: pauses between attempts that come no further, what each begins with, and a stop
 * in a pause. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <time.h>

#include <cmocka.h>

#include "base/files/file.h"
#include "cli/session.h"
#include "living/job.h"

/* Kills process `rank` of the attempt that runs, and waits until this is said. */
static void lose(struct job *job, int rank, const char *then)
{
    const pid_t process = job_wait_for_rank(job, rank, 0);
    assert_true(process > 0);
    assert_int_equal(kill(process, SIGKILL), 0);
    session_wait_for(&job->session, 1, then);
}

/* Nothing was saved: a stop in a pause ends the launch as a stop before the training does. */
static void pauses_grow_without_progress(void **state)
{
    (void)state;
    struct job job;
    job_start(&job, "-n", "2", "--restarts", "4", "train", "tiny.yaml", "-o", "lost", "--log", "none",
              "--quiet", "--steps", "1000000000", "-t", "1", NULL);
    lose(&job, 1, "trireme launch: restart 1 of 4 in 0.5 s, from the beginning\n");
    lose(&job, 1, "trireme launch: restart 2 of 4 in 1 s, from the beginning\n");
    lose(&job, 0, "trireme launch: restart 3 of 4 in 2 s, from the beginning\n");
    session_signal(&job.session, SIGINT);
    const int code = job_end(&job);
    if (code != 130) session_show(&job.session);
    assert_int_equal(code, 130);
    assert_non_null(strstr(job.session.text[1], ": rank 1 was ended by signal 9\n"));
    assert_null(strstr(job.session.text[1], "can be resumed"));
    assert_null(strstr(job.session.text[1], "restart 4"));
    job_expect_gone(&job, 5);
    job_release(&job);
}

/* Waits until the run has saved. */
static void wait_for_checkpoint(const char *path)
{
    for (int i = 0; i < 6000 && !tr_file_exists(path); i++) nanosleep(&(struct timespec){0, 10000000}, NULL);
    assert_true(tr_file_exists(path));
}

/* Where there is a checkpoint the next attempt begins with it, and so does whoever stops the launch in a
 * pause. */
static void checkpoints_are_taken_up(void **state)
{
    (void)state;
    struct job job;
    job_start(&job, "-n", "2", "--restarts", "4", "train", "tiny.yaml", "-o", "kept", "--log", "none",
              "--steps", "1000000000", "-t", "1", "--set", "train.checkpoint_every=200", NULL);
    wait_for_checkpoint("kept/checkpoint-00000200");
    lose(&job, 1, "restart 1 of 4 in 0.5 s, from the checkpoint of step ");
    session_wait_for(&job.session, 0, "\nresumed     kept/checkpoint-");
    lose(&job, 1, "restart 2 of 4 in ");
    session_signal(&job.session, SIGTERM);
    const int code = job_end(&job);
    if (code != 3) session_show(&job.session);
    assert_int_equal(code, 3);
    assert_non_null(
        strstr(job.session.text[1], "trireme launch: stopped; the last checkpoint can be resumed\n"));
    assert_null(strstr(job.session.text[1], "from the beginning"));
    job_expect_gone(&job, 5);
    job_release(&job);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pauses_grow_without_progress),
        cmocka_unit_test(checkpoints_are_taken_up),
    };
    return cmocka_run_group_tests(tests, place_make, place_remove);
}
