/* Processes that the launcher starts itself: what they share, open and leave behind, what reaches them from a
 * terminal, and what becomes of them and of others when the launcher or one of them dies. */
#include "living/job.h"

#include <dirent.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#define RANKS 3

static void start(struct job *job, const char *out, const char *steps)
{
    job_start(job, "-n", "3", "train", "job.yaml", "--overwrite", "-o", out, "--steps", steps, "--set",
              "train.log_every=1000", "-t", "1", NULL);
    session_wait_for(&job->session, 0, "step ");
}

static void end_by(struct job *job, int number, int code)
{
    session_signal(&job->session, number);
    int got = job_end(job);
    if (got != code) session_show(&job->session);
    assert_int_equal(got, code);
    job_expect_gone(job, 10);
}

/* ---- what there is of them ---- */

/* Whether something that a process has open or mapped would be seen by others, or stay. */
static bool leaves_traces(const char *name, const char *here)
{
    static const char *const elsewhere[] = {"socket:", "/dev/shm/", "/tmp/", "/run/", "/var/tmp/"};
    if (strncmp(name, here, strlen(here)) == 0) return false;
    for (size_t i = 0; i < sizeof elsewhere / sizeof elsewhere[0]; i++)
        if (strncmp(name, elsewhere[i], strlen(elsewhere[i])) == 0) return true;
    return false;
}

static int count_traces(pid_t process, const char *here)
{
    char path[64], line[4096];
    int count = 0;
    snprintf(path, sizeof path, "/proc/%d/fd", (int)process);
    DIR *open = opendir(path);
    assert_non_null(open);
    for (struct dirent *entry; (entry = readdir(open));) {
        ssize_t length = readlinkat(dirfd(open), entry->d_name, line, sizeof line - 1);
        line[length > 0 ? length : 0] = '\0';
        if (leaves_traces(line, here)) print_error("open: %s\n", line);
        count += leaves_traces(line, here);
    }
    closedir(open);
    snprintf(path, sizeof path, "/proc/%d/maps", (int)process);
    FILE *maps = fopen(path, "r");
    assert_non_null(maps);
    while (fgets(line, sizeof line, maps)) {
        const char *name = strchr(line, '/');
        if (name && leaves_traces(name, here) && !strstr(name, TRIREME_PROGRAM)) {
            print_error("mapped: %s", name);
            count++;
        }
    }
    fclose(maps);
    return count;
}

/* No port, no socket, no file outside of the run's own directory and the cache of data, which is left out
 * here. */
static void nothing_is_opened_that_others_can_see(void **state)
{
    (void)state;
    struct job job;
    char here[4096];
    assert_non_null(getcwd(here, sizeof here));
    job_start(&job, "-n", "3", "train", "job.yaml", "--overwrite", "-o", "seen", "--steps", "1000000",
              "--set", "train.log_every=1000", "-t", "1", "--no-data-cache", NULL);
    session_wait_for(&job.session, 0, "step ");
    for (int rank = 0; rank < RANKS; rank++) {
        pid_t process = job_rank(&job, rank);
        assert_true(process > 0);
        assert_int_equal(count_traces(process, here), 0);
    }
    assert_int_equal(count_traces(job.session.process, here), 0);
    assert_int_equal(job_processes(&job), RANKS + 1); /* nobody else */
    end_by(&job, SIGTERM, 3);
    job_release(&job);
}

/* ---- deaths ---- */

/* Also of processes that are stopped, and could not find out by themselves. */
static void the_launchers_death_ends_them(void **state)
{
    (void)state;
    struct job job;
    start(&job, "orphans", "1000000");
    assert_int_equal(kill(job_rank(&job, 1), SIGSTOP), 0);
    end_by(&job, SIGKILL, -SIGKILL);
    job_release(&job);
}

static void a_death_is_told_with_its_cause(void **state)
{
    (void)state;
    struct job job;
    start(&job, "told", "1000000");
    assert_int_equal(kill(job_rank(&job, 1), SIGKILL), 0);
    int code = job_end(&job);
    const char *said = job.session.text[1];
    if (code != 1 || !strstr(said, "rank 1 was ended by signal 9") || !strstr(said, "rank 1 on host "))
        session_show(&job.session);
    assert_int_equal(code, 1);
    assert_non_null(strstr(said, "rank 1 on host ")); /* by the others, with the step */
    assert_non_null(strstr(said, "after step "));
    assert_non_null(strstr(said, "rank 1 was ended by signal 9")); /* by the launcher */
    job_expect_gone(&job, 5);
    job_release(&job);
}

/* What keeps rank 0 from beginning is what all give as the reason, and is shown once. */
static void a_cause_is_told_once(void **state)
{
    (void)state;
    static const char cause[] = "\"taken\" is in use by another process";
    struct job other, job;
    start(&other, "taken", "1000000");
    job_start(&job, "-n", "3", "train", "job.yaml", "-o", "taken", "--continue", "-t", "1", NULL);
    int code = job_end(&job);
    const char *text = job.session.text[1], *said = strstr(text, cause);
    if (code != 1 || !said || strstr(said + 1, cause) || strstr(text, "died")) session_show(&job.session);
    assert_int_equal(code, 1);
    assert_non_null(said);
    assert_null(strstr(said + 1, cause));
    assert_null(strstr(text, "died"));
    assert_non_null(strstr(text, "the job was lost: it failed with exit code 1"));
    job_expect_gone(&job, 5);
    job_release(&job);
    end_by(&other, SIGTERM, 3);
    job_release(&other);
}

static void start_many(struct job *job, const char *const more[2], const char *steps)
{
    job_start(job, "-n", "64", "train", "job.yaml", "-o", "many", "--overwrite", "--steps", steps, "-s",
              more[0], "-s", more[1], NULL);
}

/* Far more processes than processors: the hash of one, and a stop. */
static void many_processes_share_the_hash(void **state)
{
    (void)state;
    static const char *const more[] = {"train.batch=64", "train.microbatches=64"};
    char hash[65];
    struct session alone;
    int code = run(&alone, "train", "job.yaml", "-o", "many", "--overwrite", "--steps", "3", "-s", more[0],
                   "-s", more[1], NULL);
    if (code != 0) session_show(&alone);
    assert_int_equal(code, 0);
    memcpy(hash, hash_in(alone.text[0]), sizeof hash);
    session_release(&alone);
    struct job job;
    start_many(&job, more, "3");
    code = job_end(&job);
    if (code != 0) session_show(&job.session);
    assert_int_equal(code, 0);
    assert_string_equal(hash_in(job.session.text[0]), hash);
    job_expect_gone(&job, 10);
    job_release(&job);
    start_many(&job, more, "1000000");
    session_wait_for(&job.session, 0, "step ");
    end_by(&job, SIGTERM, 3);
    job_release(&job);
}

static void kill_a_rank(struct job *job)
{
    assert_int_equal(kill(job_rank(job, 1), SIGKILL), 0);
}

static void inherited_children_are_left_alone(void **state)
{
    (void)state;
    job_expect_strangers_alive(kill_a_rank);
}

/* ---- a terminal ---- */

static void type(struct job *job, const char *keys)
{
    assert_int_equal(write(job->session.terminal, keys, strlen(keys)), strlen(keys));
}

/* Ctrl-C goes to the whole group of the terminal: once is a single request to stop, not one for each process.
 */
static void an_interrupt_from_a_terminal_is_one(void **state)
{
    (void)state;
    struct job job;
    job_columns = 100;
    start(&job, "interrupted", "1000000");
    type(&job, "\003");
    int code = job_end(&job);
    const char *text = job.session.text[0], *said = strstr(text, "finishing the step, saving");
    if (code != 3 || !said || !strstr(text, "stopped after step ")) session_show(&job.session);
    assert_int_equal(code, 3);
    assert_non_null(said);
    assert_null(strstr(said + 1, "finishing the step"));
    assert_non_null(strstr(text, "stopped after step "));
    job_expect_gone(&job, 5);
    job_release(&job);
    job_columns = 0;
}

static void a_second_interrupt_ends_it(void **state)
{
    (void)state;
    struct job job;
    job_columns = 100;
    start(&job, "twice", "1000000");
    assert_int_equal(kill(job_rank(&job, 1), SIGSTOP), 0); /* it answers nothing any more */
    type(&job, "\003");
    session_wait_for(&job.session, 0, "once more: leave at once");
    nanosleep(&(struct timespec){.tv_nsec = 400000000}, NULL);
    type(&job, "\003");
    int code = job_end(&job);
    if (code != 130) session_show(&job.session);
    assert_int_equal(code, 130);
    job_expect_gone(&job, 5);
    job_release(&job);
    job_columns = 0;
}

/* Ctrl-Z and fg: all stand still together, and nobody is taken for dead. */
static void a_stopped_group_goes_on(void **state)
{
    (void)state;
    struct job job;
    job_start(&job, "-n", "3", "train", "job.yaml", "--overwrite", "-o", "paused", "--timeout", "1000", "-t",
              "1", "--log", "none", NULL);
    session_wait_for(&job.session, 0, "output ");
    pid_t group = getpgid(job.session.process);
    assert_int_equal(getpgid(job_rank(&job, 2)), group);
    assert_int_equal(kill(-group, SIGSTOP), 0);
    nanosleep(&(struct timespec){.tv_sec = 2}, NULL);
    assert_int_equal(kill(-group, SIGCONT), 0);
    int code = job_end(&job);
    if (code != 0) session_show(&job.session);
    assert_int_equal(code, 0);
    assert_string_equal(hash_in(job.session.text[0]), job_hash());
    job_release(&job);
}

static int make(void **state)
{
    int code = place_make(state);
    job_write(2000);
    return code;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_is_opened_that_others_can_see),
        cmocka_unit_test(the_launchers_death_ends_them),
        cmocka_unit_test(a_death_is_told_with_its_cause),
        cmocka_unit_test(inherited_children_are_left_alone),
        cmocka_unit_test(an_interrupt_from_a_terminal_is_one),
        cmocka_unit_test(a_second_interrupt_ends_it),
        cmocka_unit_test(a_stopped_group_goes_on),
        cmocka_unit_test(a_cause_is_told_once),
        cmocka_unit_test(many_processes_share_the_hash),
    };
    return cmocka_run_group_tests_name("living.local", tests, make, place_remove);
}
