/* trireme launch: what becomes of attempts that end in different ways, here by a stand-in for mpirun: which
 * are followed by another, what is said of each, and what the next one is given. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/files/file.h"
#include "cli/launch/mpi.h"
#include "cli/session.h"

/* The stand-in: `say` writes a note; n is the number of the attempt. It writes whether it is to continue. */
#define STAND_IN                                                                                             \
    "#!/bin/sh\n"                                                                                            \
    "say() { printf '\\036%s %s\\n' \"$TRIREME_LAUNCHED\" \"$*\" >&2; }\n"                                   \
    "n=$(($(cat n) + 1)); echo $n > n; echo \"${TRIREME_CONTINUE:-no}\" >> continues\n"

static void write_stand_in(const char *script)
{
    char text[2048];
    (void)mkdir("stand-in", 0700);
    assert_true(snprintf(text, sizeof text, "%s%s\n", STAND_IN, script) < (int)sizeof text);
    write_text("stand-in/mpirun", text);
    assert_int_equal(chmod("stand-in/mpirun", 0755), 0);
    write_text("n", "0\n");
    write_text("continues", "");
}

static const char *const *environment(void)
{
    static char path[8192];
    static const char *const variables[] = {path, NULL};
    char here[512];
    assert_non_null(getcwd(here, sizeof here));
    snprintf(path, sizeof path, "PATH=%s/stand-in:%s", here, getenv("PATH"));
    return variables;
}

static void expect_file(const char *name, const char *expected)
{
    struct tr_file_content content;
    assert_int_equal(tr_file_read(name, 1 << 16, &content), TR_OK);
    if (content.size != strlen(expected) || memcmp(content.data, expected, content.size) != 0)
        fail_msg("%s has \"%.*s\", not \"%s\"", name, (int)content.size, (const char *)content.data,
                 expected);
    tr_file_content_free(&content);
}

static int launch(struct session *session, const char *restarts, const char *option, const char *value,
                  const char *script)
{
    write_stand_in(script);
    return run_with(session, (struct setup){.environment = environment()}, "launch", "--transport", "mpi",
                    "-n", "3", "--restarts", restarts, option, value, "train", "tiny.yaml", "-o", "attempts",
                    NULL);
}

/* All that is said of attempts, their number, and whether each continues. */
static const struct {
    const char *restarts, *script;
    int code;
    const char *said, *continues;
} cases[] = {
    {"0", "say started 1; say begun 0; say ended 0; exit 0", 0, "", "no\n"},
    {"5", "say started 1; say begun 0; say ended 3; exit 0", 3, "", "no\n"},
    {"5", "say started 1; say begun 0; say ended 2; exit 0", 2, "", "no\n"},
    {"5", "say started 1; say begun 0; say ended 4; exit 0", 4, "", "no\n"},
    {"5", "say started 1; say begun 0; say ended 5; exit 0", 5, "", "no\n"},
    /* What never began will not later. */
    {"5", "exit 1", 2, "trireme launch: mpirun could not start the processes; what it says is above\n",
     "no\n"},
    {"5", "say started 1; exit 2", 2, "", "no\n"},
    /* A loss. */
    {"0", "say started 1; say begun 0; exit 1", 1,
     "trireme launch: the job was lost at step 0 or soon after: it failed with exit code 1\n", "no\n"},
    {"0", "say started 1; exit 1", 1, "trireme launch: the job was lost: it failed with exit code 1\n",
     "no\n"},
    {"1", "say started 1; exit 1", 1,
     "trireme launch: the job was lost: it failed with exit code 1\n"
     "trireme launch: restart 1 of 1 in 0.5 s, from the beginning\n"
     "trireme launch: the job was lost: it failed with exit code 1\n",
     "no\nno\n"},
    {"0", "say started 1; say begun 0; say step 7; exit 137", 1,
     "trireme launch: the job was lost at step 7 or soon after: a process was ended by signal 9\n", "no\n"},
    {"0", "say started 1; say begun 0; exit 129", 1,
     "trireme launch: the job was lost at step 0 or soon after: a process was ended by signal 1\n", "no\n"},
    {"0", "say started 1; say begun 5; kill -9 $$", 1,
     "trireme launch: the job was lost at step 5 or soon after: mpirun was ended by signal 9\n", "no\n"},
    /* Where it began, the next one goes on. */
    {"3", "say started 1; say begun 0; [ $n = 2 ] && say ended 0; [ $n = 2 ]", 0,
     "trireme launch: the job was lost at step 0 or soon after: it failed with exit code 1\n"
     "trireme launch: restart 1 of 3 in 0.5 s, from the beginning\n",
     "no\ntrue\n"},
    {"3", "say started 1; say begun 0; say saved 8; [ $n = 2 ] && say ended 0; [ $n = 2 ]", 0,
     "trireme launch: the job was lost at step 8 or soon after: it failed with exit code 1\n"
     "trireme launch: restart 1 of 3 in 0.5 s, from the checkpoint of step 8\n",
     "no\ntrue\n"},
    /* Also if it cannot be started once more at first: a host may come back. */
    {"3", "[ $n = 2 ] && exit 1; say started 1; say begun 0; [ $n = 3 ] && say ended 0; [ $n = 3 ]", 0,
     "trireme launch: the job was lost at step 0 or soon after: it failed with exit code 1\n"
     "trireme launch: restart 1 of 3 in 0.5 s, from the beginning\n"
     "trireme launch: mpirun could not start the processes; what it says is above\n"
     "trireme launch: restart 2 of 3 in 1 s, from the beginning\n",
     "no\ntrue\ntrue\n"},
    /* Pauses grow without progress, and what one attempt saved holds for those after it. */
    {"3", "say started 1; say begun 0; [ $n = 2 ] && say saved 8; [ $n = 4 ] && say ended 0; [ $n = 4 ]", 0,
     "trireme launch: the job was lost at step 0 or soon after: it failed with exit code 1\n"
     "trireme launch: restart 1 of 3 in 0.5 s, from the beginning\n"
     "trireme launch: the job was lost at step 8 or soon after: it failed with exit code 1\n"
     "trireme launch: restart 2 of 3 in 0.5 s, from the checkpoint of step 8\n"
     "trireme launch: the job was lost at step 0 or soon after: it failed with exit code 1\n"
     "trireme launch: restart 3 of 3 in 1 s, from the checkpoint of step 8\n",
     "no\ntrue\ntrue\ntrue\n"},
    /* Nobody would see another attempt. */
    {"2", "say started 1; say begun 0; say unheard 0; exit 1", 1,
     "trireme launch: the job was lost at step 0 or soon after: it failed with exit code 1\n"
     "trireme launch: standard output takes nothing; the job is not started again\n",
     "no\n"},
    {"0", "say started 1; say begun 0; say unheard 0; exit 1", 1,
     "trireme launch: the job was lost at step 0 or soon after: it failed with exit code 1\n", "no\n"},
};

static void attempts_are_followed_by_others(void **state)
{
    (void)state;
    skip_without_mpi();
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct session session;
        int code = launch(&session, cases[i].restarts, "-t", "1", cases[i].script);
        if (code != cases[i].code || strcmp(session.text[1], cases[i].said) != 0) {
            session_show(&session);
            fail_msg("case %zu: code %d, not %d with \"%s\"", i, code, cases[i].code, cases[i].said);
        }
        expect_file("continues", cases[i].continues);
        session_release(&session);
    }
}

static void other_hosts_are_thought_of(void **state)
{
    (void)state;
    skip_without_mpi();
    struct session session;
    write_text("hosts", "a slots=3\n");
    static const char *const options[][2] = {{"--hosts", "a:3"}, {"--hostfile", "hosts"}};
    for (int i = 0; i < 2; i++) {
        assert_int_equal(launch(&session, "0", options[i][0], options[i][1], "exit 1"), 2);
        assert_string_equal(
            session.text[1],
            "trireme launch: mpirun could not start the processes; what it says is above (are the "
            "names of the hosts right, can they be reached by ssh without a password, is the "
            "program there?)\n");
        session_release(&session);
    }
}

/* A job that went on with fewer processes is stopped once it has saved, and begins again with all, as often
   as it may be started again. */
static void jobs_grow_again(void **state)
{
    (void)state;
    skip_without_mpi();
    struct session session;
    static const char script[] = "trap 'say ended 3; exit 3' USR1; say started 1; say begun $((10 * n - "
                                 "10)); [ $n = 3 ] && say ended 0 && "
                                 "exit 0; say saved $((10 * n)); say fewer 2; i=0; while [ $i -lt 100 ]; do "
                                 "sleep 0.02; i=$((i + 1)); done; "
                                 "say ended 0; exit 0";
    int code = launch(&session, "2", "--on-loss", "shrink", script);
    if (code != 0) session_show(&session);
    assert_int_equal(code, 0);
    assert_string_equal(
        session.text[1],
        "trireme launch: restart 1 of 2 with all 3 processes, from the checkpoint of step 10\n"
        "trireme launch: restart 2 of 2 with all 3 processes, from the checkpoint of step 20\n");
    expect_file("continues", "no\ntrue\ntrue\n");
    session_release(&session);
    /* The last one that is allowed goes on with fewer to its end, and so does one that need not grow. */
    code = launch(&session, "1", "--on-loss", "shrink", script);
    assert_int_equal(code, 0);
    assert_string_equal(
        session.text[1],
        "trireme launch: restart 1 of 1 with all 3 processes, from the checkpoint of step 10\n");
    expect_file("n", "2\n");
    session_release(&session);
    code = launch(&session, "2", "--on-loss", "stop", script);
    assert_int_equal(code, 0);
    assert_string_equal(session.text[1], "");
    session_release(&session);
}

/* ---- stops ---- */

static int stop(struct session *session, const char *script, int number)
{
    const char *const arguments[] = {"launch", "--transport", "mpi",       "-n", "2",        "--restarts",
                                     "3",      "train",       "tiny.yaml", "-o", "attempts", NULL};
    write_stand_in(script);
    session_start(session, &(struct setup){.arguments = arguments, .environment = environment()});
    session_wait_for(session, 1, "ready\n");
    session_signal(session, number);
    return session_end(session);
}

static void stops_end_all_attempts(void **state)
{
    (void)state;
    skip_without_mpi();
    static const char finishing[] = "trireme launch: finishing the step, saving (once more: leave at once)\n";
    static const struct {
        const char *script;
        int number, code;
        const char *said;
    } stops[] = {
        /* The root says how it ended. */
        {"trap 'say ended 3; exit 0' USR1; say started 1; say begun 0; echo ready >&2; while :; do sleep "
         "0.02; done",
         SIGTERM, 3, ""},
        /* Before it began: as the signal would have ended it. */
        {"trap 'exit 1' USR1; echo ready >&2; while :; do sleep 0.02; done", SIGTERM, 143,
         "trireme launch: stopped before the training began\n"},
        {"trap 'exit 1' USR1; say started 1; echo ready >&2; while :; do sleep 0.02; done", SIGINT, 130,
         "trireme launch: stopped before the training began\n"},
        /* A job that was lost as it was stopped is not begun again. */
        {"trap 'exit 1' USR1; say started 1; say begun 4; echo ready >&2; while :; do sleep 0.02; done",
         SIGINT, 1, "trireme launch: the job was lost at step 4 or soon after: it failed with exit code 1\n"},
    };
    for (size_t i = 0; i < sizeof stops / sizeof stops[0]; i++) {
        struct session session;
        char expected[300];
        int code = stop(&session, stops[i].script, stops[i].number);
        snprintf(expected, sizeof expected, "ready\n%s%s", finishing, stops[i].said);
        if (code != stops[i].code || strcmp(session.text[1], expected) != 0) {
            session_show(&session);
            fail_msg("case %zu: code %d, not %d with \"%s\"", i, code, stops[i].code, expected);
        }
        expect_file("n", "1\n");
        session_release(&session);
    }
}

/* In a pause: what is saved can be taken up. */
static void stops_end_pauses(void **state)
{
    (void)state;
    skip_without_mpi();
    for (int saves = 0; saves < 2; saves++) {
        struct session session;
        const char *const arguments[] = {"launch", "--transport", "mpi",       "-n", "2",        "--restarts",
                                         "9",      "train",       "tiny.yaml", "-o", "attempts", NULL};
        write_stand_in(saves ? "say started 1; say begun 0; say saved 5; exit 1"
                             : "say started 1; say begun 0; exit 1");
        session_start(&session, &(struct setup){.arguments = arguments, .environment = environment()});
        session_wait_for(&session, 1, "restart 3 of 9 in 2 s");
        session_signal(&session, SIGINT);
        int code = session_end(&session);
        if (code != (saves ? 3 : 130)) session_show(&session);
        assert_int_equal(code, saves ? 3 : 130);
        assert_int_equal(
            strstr(session.text[1], "trireme launch: stopped; the last checkpoint can be resumed\n") != NULL,
            saves);
        expect_file("n", "3\n");
        session_release(&session);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(attempts_are_followed_by_others),
        cmocka_unit_test(other_hosts_are_thought_of),
        cmocka_unit_test(jobs_grow_again),
        cmocka_unit_test(stops_end_all_attempts),
        cmocka_unit_test(stops_end_pauses),
    };
    return cmocka_run_group_tests_name("cli.attempts", tests, place_make, place_remove);
}
