/* Jobs that go on without processes that are killed at random moments: one launch, no restart, the hash of
 * the undisturbed run. With --long many of them. */
#include "living/job.h"

#include "base/threads/clock.h"
#include "base/files/file.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#define NEXT_SECONDS 60.0 /* from a death to the next step, at most */

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
    skip_without_transport();
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
            int rank = chance(WORKERS);
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

/* ---- what the journal has ---- */

/* Finds the next line of the journal that has `part`, from `from` on; NULL where there is none. Reads the
   file into `content`, which is released before. */
static const char *find_line(const char *directory, size_t from, const char *part,
                             struct tr_file_content *content)
{
    char path[64];
    snprintf(path, sizeof path, "%s/journal.jsonl", directory);
    tr_file_content_free(content);
    if (tr_file_read(path, 1 << 26, content) != TR_OK || content->size < from) return NULL;
    return strstr(content->data + from, part);
}

/* Every step has one line, in order; each checkpoint, too. */
static void expect_whole_journal(const char *directory, int steps)
{
    struct tr_file_content content = {0};
    const char *at = find_line(directory, 0, "\"event\":\"step\"", &content);
    for (int step = 1; step <= steps; step++) {
        char expected[48];
        snprintf(expected, sizeof expected, "\"event\":\"step\",\"step\":%d,", step);
        if (!at || strncmp(at, expected, strlen(expected)) != 0)
            fail_msg("%s: expected %s, found %.48s", directory, expected, at ? at : "nothing");
        at = strstr(at + 1, "\"event\":\"step\"");
    }
    if (at) fail_msg("%s: a step too many: %.48s", directory, at);
    for (int step = 0, before = 0; (at = strstr(at ? at + 1 : content.data, "\"event\":\"checkpoint\""));
         before = step)
        if (sscanf(at, "\"event\":\"checkpoint\",\"step\":%d", &step) != 1 || step <= before)
            fail_msg("%s: checkpoint of step %d after that of %d", directory, step, before);
    tr_file_content_free(&content);
}

/* Kills a rank and returns the seconds until the journal has the next step. */
static double kill_and_wait(struct job *job, const char *directory, int rank)
{
    struct tr_file_content content = {0};
    pid_t process = job_wait_for_rank(job, rank, 200);
    find_line(directory, 0, "", &content);
    size_t from = content.size;
    const char *at = NULL;
    double began = tr_clock_seconds(), end = began + NEXT_SECONDS;
    assert_true(process > 0);
    assert_int_equal(kill(process, SIGKILL), 0);
    while (!at && tr_clock_seconds() < end) {
        nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
        at = find_line(directory, from, "ranks go on", &content);
        if (at) at = strstr(at, "\"event\":\"step\"");
    }
    double seconds = tr_clock_seconds() - began;
    if (!at) session_show(&job->session);
    assert_non_null(at);
    tr_file_content_free(&content);
    return seconds;
}

/* The first process reports and saves; when it dies, the next one does, and the journal has each line once.
 */
static void the_first_one_may_die(void **state)
{
    (void)state;
    enum { STEPS = 3000 };
    struct job job;
    skip_without_transport();
    job_write(STEPS);
    job_start(&job, "-n", "4", "--on-loss", "shrink", "train", "job.yaml", "-o", "first", "--log", "none",
              "--set", "train.log_every=1", "-t", "1", NULL);
    wait_for_beginning(&job);
    for (int rank = 0; rank < 3; rank++) {
        static const char *const whose[] = {"the root's", "the next root's", "the third root's"};
        print_message("from %s death to the next step: %.2f s\n", whose[rank],
                      kill_and_wait(&job, "first", rank));
    }
    int code = job_end(&job);
    if (code != 0 || !was_said(&job, job_hash()) || was_said(&job, "restart 1")) {
        session_show(&job.session);
        fail_msg("exit code %d, expected the hash %s", code, job_hash());
    }
    expect_whole_journal("first", STEPS);
    job_expect_gone(&job, 10);
    job_release(&job);
}

static int ranks_alive(const struct job *job, int workers)
{
    int count = 0;
    for (int r = 0; r < workers; r++) count += job_rank(job, r) != 0;
    return count;
}

/* Once it has saved, a job that may start again goes on with all its processes, from where it was. */
static void all_go_on_from_a_checkpoint(void **state)
{
    (void)state;
    enum { WORKERS = 4, STEPS = 3000 };
    struct job job;
    skip_without_transport();
    job_write(STEPS);
    job_start(&job, "-n", "4", "--on-loss", "shrink", "--restarts", "2", "train", "job.yaml", "-o", "grows",
              "--log", "none", "--set", "train.log_every=1", "-t", "1", NULL);
    wait_for_beginning(&job);
    pid_t process = job_wait_for_rank(&job, 0, 100);
    assert_true(process > 0);
    assert_int_equal(kill(process, SIGKILL), 0);
    while (!was_said(&job, "with all 4 processes")) session_read(&job.session);
    assert_true(was_said(&job, "3 of 4 ranks go on"));
    int most = 0;
    for (double end = tr_clock_seconds() + NEXT_SECONDS; most < WORKERS && tr_clock_seconds() < end;)
        if (job_wait_for_rank(&job, WORKERS - 1, 10)) most = ranks_alive(&job, WORKERS);
    int code = job_end(&job);
    if (code != 0 || !was_said(&job, job_hash()) || most != WORKERS || was_said(&job, "restart 2")) {
        session_show(&job.session);
        fail_msg("exit code %d with up to %d processes, expected the hash %s", code, most, job_hash());
    }
    expect_whole_journal("grows", STEPS);
    job_expect_gone(&job, 10);
    job_release(&job);
}

/* Whoever is left heeds a stop, and the run goes on from there. */
static void the_others_stop_as_ever(void **state)
{
    (void)state;
    struct job job;
    skip_without_transport();
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
        cmocka_unit_test(the_first_one_may_die),
        cmocka_unit_test(all_go_on_from_a_checkpoint),
        cmocka_unit_test(the_others_stop_as_ever),
    };
    if (job_argument(count, arguments, "--long")) jobs = 20;
    if (strcmp(job_transport, "mpi") == 0) jobs = 1;
    chance_begin();
    return cmocka_run_group_tests_name("living.losses", tests, place_make, place_remove);
}
