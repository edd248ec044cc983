/* Jobs that mpirun starts, here by a stand-in for it: how it and its processes are asked to stop, and when
 * those that do not end are ended. The test turns the clock: a moment before the end of a time all still run.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "cli/launch/stand_in.h"

#include <fcntl.h>
#include <signal.h>

/* The listener waits for an event; then it turns the clock to `time` seconds later less a moment, listens to
   some notes, and turns it to that time. */
#define MOMENT 0.1
#define NOTES  5

static double since; /* the clock at the event; 0: it has not come */
static double span;
static int notes_before, notes_after; /* that came before and after the time was over */

static void await(double time)
{
    since = 0;
    span = time;
    notes_before = notes_after = 0;
}

static void pass(bool event)
{
    if (since == 0) {
        if (!event) return;
        since = attempt_clock;
        attempt_clock = since + span - MOMENT;
    } else if (attempt_clock < since + span) {
        if (++notes_before == NOTES) attempt_clock = since + span + MOMENT;
    } else {
        notes_after++;
        /* What is known only later takes as long again. */
        if (notes_after % 50 == 0) attempt_clock += span;
    }
}

static void expect_passed(void)
{
    if (since == 0 || notes_before < NOTES)
        fail_msg("it ended before its time, after %d notes; %s", notes_before, attempt_said());
}

/* ---- stops ---- */

static void stop_when_begun(struct cli_job *job, const struct cli_note *note)
{
    (void)job;
    if (note->kind == CLI_NOTE_BEGUN) raise(SIGINT);
}

static void stop_when_started(struct cli_job *job, const struct cli_note *note)
{
    (void)job;
    if (note->kind == CLI_NOTE_STARTED) raise(SIGTERM);
}

static void mpirun_is_told_to_stop(void **state)
{
    (void)state;
    struct cli_job_end end =
        stand_in_run((struct cli_job_orders){0}, "trap 'exit 3' USR1; say started $$; say begun 0; go_on",
                     stop_when_begun);
    assert_int_equal(end.code, 3);
    assert_int_equal(end.stop_signal, SIGINT);
    /* Again once the job has begun, since nobody may have heard it before. */
    end = stand_in_run((struct cli_job_orders){0},
                       "n=0; trap 'n=$((n + 1)); if [ $n = 2 ]; then exit 3; fi; say begun 0' USR1; "
                       "say started $$; go_on",
                       stop_when_started);
    assert_int_equal(end.code, 3);
    assert_int_equal(end.stop_signal, SIGTERM);
}

/* The second request ends it in good order, the third at once. */
static void insist(struct cli_job *job, const struct cli_note *note)
{
    stop_when_begun(job, note);
    if (note->kind != CLI_NOTE_SAVED || job->end->stop_signal == 0) return;
    attempt_clock += 0.4;
    raise(SIGINT);
}

static void who_insists_ends_mpirun(void **state)
{
    (void)state;
    struct cli_job_end end = stand_in_run((struct cli_job_orders){0},
                                          "trap '' USR1; trap 'exit 9' TERM; say started $$; say begun 0; "
                                          "while :; do say saved 1; sleep 0.02; done",
                                          insist);
    assert_true(end.stop_twice);
    assert_int_equal(end.signal, 0); /* it has left by itself */
    end = stand_in_run(
        (struct cli_job_orders){0},
        "trap '' USR1 TERM; say started $$; say begun 0; while :; do say saved 1; sleep 0.02; done", insist);
    assert_true(end.stop_twice);
    assert_int_equal(end.signal, SIGKILL);
    assert_true(attempt_clock < 1003);
}

/* A first process says that it heard, a second one does not, of an mpirun that passes nothing on. */
static void wait_to_be_heard(struct cli_job *job, const struct cli_note *note)
{
    stop_when_begun(job, note);
    pass(job->end->stop_signal != 0);
}

static void who_has_not_heard_is_told_directly(void **state)
{
    (void)state;
    await(1);
    struct cli_job_end end =
        stand_in_run((struct cli_job_orders){0},
                     "trap : USR1\n"
                     "cat > job <<'END'\n" ATTEMPT_SHELL
                     "if [ $1 = 1 ]; then trap 'echo told >> first' USR1; say started $$; say stopping $$\n"
                     "until [ -e ended ]; do sleep 0.02; done; exit 3; fi\n"
                     "trap 'echo told >> second' USR1; say started $$; say begun 0\n"
                     "until [ -e second ]; do say step 1; sleep 0.02; done; sleep 0.5; echo > ended; exit 3\n"
                     "END\n"
                     "rm -f first second ended; touch first; sh job 1 & a=$!; sh job 2 & b=$!\n"
                     "until wait $a; [ $? = 3 ]; do :; done; until wait $b; [ $? = 3 ]; do :; done; exit 3",
                     wait_to_be_heard);
    expect_passed();
    assert_int_equal(end.code, 3);
    assert_string_equal(attempt_file("second"), "told\n"); /* once */
    assert_string_equal(attempt_file("first"), "");
}

/* ---- an mpirun that stays ---- */

static void pass_once_insisted(struct cli_job *job, const struct cli_note *note)
{
    if (!job->end->stop_twice) insist(job, note);
    pass(job->end->stop_twice);
}

static void an_mpirun_that_was_asked_has_some_time(void **state)
{
    (void)state;
    await(5);
    struct cli_job_end end = stand_in_run(
        (struct cli_job_orders){0},
        "trap '' USR1 TERM; say started $$; say begun 0; while :; do say saved 1; sleep 0.02; done",
        pass_once_insisted);
    expect_passed();
    assert_int_equal(end.signal, SIGKILL);
    assert_string_equal(end.whose, "mpirun");
}

static void pass_once_over(struct cli_job *job, const struct cli_note *note)
{
    (void)note;
    pass(job->over > 0);
}

static void an_mpirun_whose_job_is_over_is_killed(void **state)
{
    static const char *const over[] = {"ended 0", "lost 1"};
    (void)state;
    for (int i = 0; i < 2; i++) {
        char script[200];
        snprintf(script, sizeof script,
                 "trap 'echo asked >> asked' TERM; say started $$; say begun 0; say %s; go_on", over[i]);
        unlink("asked");
        await(10);
        struct cli_job_end end = stand_in_run((struct cli_job_orders){0}, script, pass_once_over);
        expect_passed();
        assert_int_equal(end.signal, SIGKILL);
        assert_int_equal(end.code, i == 0 ? CLI_EXIT_DONE : CLI_EXIT_FAILED);
        assert_int_equal(access("asked", F_OK), -1);
    }
}

/* Where others may go on it is asked first. */
static void an_mpirun_of_a_tolerant_job_is_asked(void **state)
{
    (void)state;
    await(10);
    struct cli_job_end end =
        stand_in_run((struct cli_job_orders){.tolerant = true},
                     "trap 'exit 1' TERM; say started $$; say begun 0; say ended 0; go_on", pass_once_over);
    expect_passed();
    assert_int_equal(end.signal, 0);
    assert_int_equal(end.code, CLI_EXIT_DONE);
    await(10);
    end = stand_in_run((struct cli_job_orders){.tolerant = true},
                       "trap 'echo asked >> asked' TERM; say started $$; say begun 0; say ended 0; go_on",
                       pass_once_over);
    expect_passed();
    assert_int_equal(end.signal, SIGKILL); /* but not for ever */
    assert_string_equal(attempt_file("asked"), "asked\n");
}

/* ---- processes that are gone ---- */

static void pass_from_the_beginning(struct cli_job *job, const struct cli_note *note)
{
    (void)job, (void)note;
    pass(true);
}

/* A process that ends before it is watched may live, as far as the launcher knows. */
#define WAIT_TO_BE_WATCHED "until [ -e watched ]; do sleep 0.02; done\n"

static void pass_once_fewer(struct cli_job *job, const struct cli_note *note)
{
    (void)job;
    if (note->kind == CLI_NOTE_STARTED) close(open("watched", O_WRONLY | O_CREAT, 0600));
    pass(note->kind == CLI_NOTE_FEWER);
}

/* The message of an mpirun that has no process. */
static void expect_explained(const char *what)
{
    char begin[200];
    const char *said = attempt_said();
    snprintf(begin, sizeof begin, ": mpirun %s and does not end; it is ended (Open MPI keeps files in /",
             what);
    if (!strstr(said, begin) || !strstr(said, " free, and may take 48.0 MiB for 2 processes)\n"))
        fail_msg("\"%s\" lacks \"%s\"", said, begin);
    assert_int_equal(attempt_count(said, "it is ended"), 1);
}

static void an_mpirun_without_a_process_is_ended(void **state)
{
    (void)state;
    stand_in_forget();
    await(60);
    struct cli_job_end end = stand_in_run((struct cli_job_orders){0}, "go_on", pass_from_the_beginning);
    expect_passed();
    assert_int_equal(end.signal, SIGTERM);
    expect_explained("has no process yet");
    await(10);
    end = stand_in_run((struct cli_job_orders){0},
                       "cat > job <<'END'\n" ATTEMPT_SHELL "say started $$; say begun 0\n" WAIT_TO_BE_WATCHED
                       "END\nrm -f watched; sh job; say fewer 1; go_on",
                       pass_once_fewer);
    expect_passed();
    assert_int_equal(end.signal, SIGTERM);
    expect_explained("has no process any more");
    await(10);
    end = stand_in_run((struct cli_job_orders){0},
                       "cat > job <<'END'\n" ATTEMPT_SHELL "say started $$\n" WAIT_TO_BE_WATCHED
                       "END\nrm -f watched; sh job; say started $$; say fewer 1; go_on",
                       pass_once_fewer);
    expect_passed();
    assert_int_equal(end.signal, SIGTERM);
    expect_explained("lost a process before the job began");
}

/* Processes that cannot be watched may live, and those of other hosts are not seen. */
static void leave_after_much_time(struct cli_job *job, const struct cli_note *note)
{
    (void)job;
    if (note->kind != CLI_NOTE_STEP) return;
    attempt_clock += 50;
    if (attempt_clock > 1500) unlink("stay");
}

static void what_cannot_be_seen_is_left_alone(void **state)
{
    static const struct {
        struct cli_job_orders orders;
        const char *says;
    } cases[] = {
        {{.hosts = "a:2"}, ":"},
        {{.hostfile = "hosts"}, ":"},
        {{0}, "say started 999999999"},
        {{0}, "say started 1"},  /* that is not ours */
        {{0}, "say started $$"}, /* which lives */
        {{0}, "say started $$; say begun 0"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char script[300];
        stand_in_forget();
        snprintf(script, sizeof script,
                 "echo > stay; %s; while [ -e stay ]; do say step 1; sleep 0.02; done; exit 3",
                 cases[i].says);
        struct cli_job_end end = stand_in_run(cases[i].orders, script, leave_after_much_time);
        assert_int_equal(end.signal, 0);
        attempt_expect_said("");
    }
}

/* Processes that outlive mpirun. */
static void orphans_are_ended(void **state)
{
    (void)state;
    await(3);
    struct cli_job_end end =
        stand_in_run((struct cli_job_orders){0},
                     "cat > job <<'END'\n" ATTEMPT_SHELL "say started $$; say begun 0\n"
                     "while kill -0 $1 2>/dev/null; do sleep 0.02; done; sleep 0.2; echo $$ > orphan\n"
                     "say fewer 1; go_on\nEND\n"
                     "sh job $$ & sleep 0.2; exit 0",
                     pass_once_fewer);
    expect_passed();
    assert_int_equal(end.code, 0);
    int process = atoi(attempt_file("orphan"));
    char path[64], text[64] = "";
    snprintf(path, sizeof path, "/proc/%d/cmdline", process);
    FILE *file = fopen(path, "r"); /* a zombie has none */
    size_t length = file ? fread(text, 1, sizeof text, file) : 0;
    if (file) fclose(file);
    assert_int_equal(length, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(mpirun_is_told_to_stop),
        cmocka_unit_test(who_insists_ends_mpirun),
        cmocka_unit_test(who_has_not_heard_is_told_directly),
        cmocka_unit_test(an_mpirun_that_was_asked_has_some_time),
        cmocka_unit_test(an_mpirun_whose_job_is_over_is_killed),
        cmocka_unit_test(an_mpirun_of_a_tolerant_job_is_asked),
        cmocka_unit_test(an_mpirun_without_a_process_is_ended),
        cmocka_unit_test(what_cannot_be_seen_is_left_alone),
        cmocka_unit_test(orphans_are_ended),
    };
    return cmocka_run_group_tests_name("cli.mpi_deadlines", tests, attempt_place_make, attempt_place_drop);
}
