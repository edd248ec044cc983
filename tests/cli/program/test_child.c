/* Another command as a child: what is heard of it and what is not, how it ended, what it said last, its end
 * by time. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "base/threads/clock.h"
#include "cli/program/child.h"
#include "cli/program/exit_codes.h"
#include "cli/program/signals.h"
#include "refuse.h"
#include "support/files/descriptors.h"

#define PATIENCE 20 /* seconds, on any machine */

static bool no_process; /* fork() finds no room */

pid_t __real_fork(void);
pid_t __wrap_fork(void);

pid_t __wrap_fork(void)
{
    if (!no_process) return __real_fork();
    errno = EAGAIN;
    return -1;
}

/* The values of "n" that were heard, in their order. */
struct heard {
    int count;
    int64_t n[16];
};

static void hear(void *user, const struct tr_json_value *object)
{
    struct heard *heard = user;
    if (heard->count < 16) heard->n[heard->count] = tr_json_integer_or(object, "n", -1);
    heard->count++;
}

/* Runs a script of the shell to its end. */
static struct cli_child child_of(const char *script, double seconds, struct heard *heard)
{
    struct cli_arguments arguments = {0};
    struct cli_child child = {
        .hear = hear, .user = heard, .stop_at = seconds > 0 ? tr_clock_seconds() + seconds : 0};
    *heard = (struct heard){0};
    cli_arguments_add(&arguments, "/bin/sh");
    cli_arguments_add(&arguments, "-c");
    cli_arguments_add(&arguments, "%s", script);
    const int64_t live = tr_alloc_live();
    assert_int_equal(cli_child_run(&child, &arguments), TR_OK);
    assert_int_equal(tr_alloc_live(), live);
    cli_arguments_release(&arguments);
    return child;
}

static void objects_of_lines_are_heard(void **state)
{
    (void)state;
    struct heard heard;
    struct cli_child child = child_of("echo '{\"n\":1}'; echo; echo 'words {\"n\":2}'; echo '{\"n\":3'; "
                                      "printf '{\"n\"'; sleep 0.2; echo ':4}'; echo '{\"n\":5}{'; "
                                      "printf '{\"n\":6}\\n{\"n\":7}\\n'; printf '{\"n\":8}'",
                                      0, &heard);
    assert_int_equal(child.code, 0);
    assert_int_equal(heard.count, 4); /* the last line has no end */
    static const int64_t expected[] = {1, 4, 6, 7};
    assert_memory_equal(heard.n, expected, sizeof expected);
}

/* A line of more than a mebibyte is no object; those after it are. */
static void endless_lines_are_left_out(void **state)
{
    (void)state;
    struct heard heard;
    child_of(
        "printf '{\"n\":1,\"t\":\"'; head -c 1100000 /dev/zero | tr '\\0' a; echo '\"}'; "
        "printf '{\"n\":2,\"t\":\"'; head -c 1000000 /dev/zero | tr '\\0' a; echo '\"}'; echo '{\"n\":3}'",
        0, &heard);
    assert_int_equal(heard.count, 2);
    assert_int_equal(heard.n[0], 2);
    assert_int_equal(heard.n[1], 3);
}

static void expect_explained(const char *script, int code, const char *expected)
{
    struct heard heard;
    char text[512];
    struct cli_child child = child_of(script, 0, &heard);
    assert_int_equal(child.code, code);
    assert_false(child.stopped || child.out_of_time);
    cli_child_explain(&child, text, sizeof text);
    assert_string_equal(text, expected);
}

static void the_last_line_explains(void **state)
{
    (void)state;
    expect_explained("exit 0", 0, "exit code 0");
    expect_explained("exit 4", 4, "exit code 4");
    expect_explained("kill -9 $$", -9, "ended by signal 9");
    expect_explained("echo first >&2; echo last >&2; exit 2", 2, "last");
    expect_explained("printf 'first\\nlast\\n\\n\\n' >&2; exit 2", 2, "last");
    expect_explained("printf x >&2", 0, "x");
    expect_explained("echo >&2; exit 3", 3, "exit code 3");
    expect_explained("echo not here; kill -15 $$", -15, "ended by signal 15");
    struct heard heard;
    struct cli_child child = child_of("echo abcdefgh >&2; exit 1", 0, &heard);
    char small[6];
    cli_child_explain(&child, small, sizeof small);
    assert_string_equal(small, "abcde");
}

/* Of much output the end is kept, however it comes. */
static void the_end_of_much_is_kept(void **state)
{
    (void)state;
    static const char *const scripts[] = {
        "head -c 100000 /dev/zero | tr '\\0' a >&2; echo the end >&2",
        ("for i in 1 2 3 4 5 6 7 8 9; do head -c 1000 /dev/zero | tr '\\0' a >&2; sleep 0.01; done; echo the "
         "end >&2"),
        "head -c 4090 /dev/zero | tr '\\0' b >&2; sleep 0.2; echo athe end >&2",
    };
    for (size_t i = 0; i < sizeof scripts / sizeof scripts[0]; i++) {
        struct heard heard;
        struct cli_child child = child_of(scripts[i], 0, &heard);
        assert_int_equal(strlen(child.last_words), sizeof child.last_words - 1);
        assert_string_equal(child.last_words + sizeof child.last_words - 1 - strlen("athe end\n"),
                            "athe end\n");
    }
}

/* It is asked once its time is over, and what it does then counts. */
static void time_ends(void **state)
{
    (void)state;
    struct heard heard;
    struct cli_child child =
        child_of("trap 'echo \"{\\\"n\\\":1}\"; exit 3' TERM; while :; do sleep 0.05; done", 0.3, &heard);
    assert_int_equal(child.code, 3);
    assert_true(child.out_of_time);
    assert_false(child.stopped);
    assert_int_equal(heard.count, 1);
    /* Once, however long it then takes. */
    child = child_of(
        "n=0; i=0; trap 'n=$((n+1))' TERM; while [ $i -lt 12 ]; do sleep 0.1; i=$((i+1)); done; exit $n", 0.3,
        &heard);
    assert_int_equal(child.code, 1);
    child = child_of("exit 0", 1000, &heard);
    assert_false(child.out_of_time);
}

static void hear_and_signal(void *user, const struct tr_json_value *object)
{
    hear(user, object);
    raise(SIGTERM);
}

/* A signal to this program is passed on as a request, also when the time was over before. */
static void a_signal_ends_it(void **state)
{
    (void)state;
    for (int late = 0; late < 2; late++) {
        struct heard heard = {0};
        struct cli_arguments arguments = {0};
        struct cli_child child = {.hear = hear_and_signal, .user = &heard};
        cli_arguments_add(&arguments, "/bin/sh");
        cli_arguments_add(&arguments, "-c");
        cli_arguments_add(&arguments, late ? "trap 'echo \"{\\\"n\\\":1}\"; sleep 0.5; exit 3' TERM; "
                                             "while :; do sleep 0.05; done"
                                           : "trap 'exit 3' TERM; echo '{\"n\":1}'; "
                                             "while :; do sleep 0.05; done");
        if (late) child.stop_at = tr_clock_seconds() + 1;
        cli_signals_catch(NULL, NULL);
        assert_int_equal(cli_child_run(&child, &arguments), TR_OK);
        assert_int_equal(child.code, 3);
        assert_true(child.stopped);
        assert_int_equal(child.out_of_time, late);
        cli_signals_catch(NULL, NULL); /* forgets it */
        cli_signals_release();
        cli_arguments_release(&arguments);
    }
}

/* Returns once nobody has the other end of the pipe. */
static void expect_nobody(int end)
{
    struct pollfd polled = {end, POLLIN, 0};
    char byte;
    if (poll(&polled, 1, 1000 * PATIENCE) != 1) fail_msg("a process is left");
    assert_int_equal(read(end, &byte, 1), 0);
}

/* One that does not end is killed, with all that it has started. */
static void it_is_killed_in_the_end(void **state)
{
    (void)state;
    int ends[2];
    struct heard heard = {0};
    struct cli_arguments arguments = {0};
    const double began = tr_clock_seconds();
    struct cli_child child = {.hear = hear, .user = &heard, .kill_at = began + 0.4};
    cli_arguments_add(&arguments, "/bin/sh");
    cli_arguments_add(&arguments, "-c");
    cli_arguments_add(&arguments, "trap '' TERM; sleep 1000 & while :; do sleep 0.05; done");
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(cli_child_start(&child, &arguments), TR_OK);
    close(ends[1]);
    do cli_child_wait(&(struct cli_child *){&child}, 1);
    while (!cli_child_attend(&child));
    assert_int_equal(child.code, -SIGKILL);
    assert_false(child.stopped || child.out_of_time);
    assert_true(tr_clock_seconds() - began >= 0.4);
    assert_true(child.kill_at - began > 50); /* no second time at once */
    expect_nobody(ends[0]);
    close(ends[0]);
    cli_arguments_release(&arguments);
}

/* Nor is it left when this program ends, however that may be. */
static void it_ends_with_this_program(void **state)
{
    (void)state;
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    pid_t program = fork();
    assert_true(program >= 0);
    if (program == 0) {
        struct heard heard = {0};
        struct cli_arguments arguments = {0};
        struct cli_child child = {.hear = hear, .user = &heard};
        cli_arguments_add(&arguments, "/bin/sh");
        cli_arguments_add(&arguments, "-c");
        cli_arguments_add(&arguments, "echo '{\"n\":1}'; exec sleep 1000");
        if (cli_child_start(&child, &arguments) != TR_OK) _exit(1);
        while (heard.count == 0) {
            cli_child_wait(&(struct cli_child *){&child}, 1);
            if (cli_child_attend(&child)) _exit(2);
        }
        raise(SIGKILL);
    }
    close(ends[1]);
    int status;
    assert_int_equal(waitpid(program, &status, 0), program);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    expect_nobody(ends[0]);
    close(ends[0]);
}

/* Variables that are for this process are not the child's, and its input is empty. */
static void a_child_begins_anew(void **state)
{
    (void)state;
    struct heard heard;
    static const char *const gone[] = {"TRIREME_TRANSPORT", "TRIREME_LOCAL", "TRIREME_LAUNCHED",
                                       "TRIREME_THREADS"};
    for (int i = 0; i < 4; i++) setenv(gone[i], "set", 1);
    setenv("TRIREME_OTHER", "kept", 1);
    struct cli_child child = child_of("echo $TRIREME_TRANSPORT$TRIREME_LOCAL$TRIREME_LAUNCHED$TRIREME_THREADS"
                                      "$TRIREME_OTHER$(cat) >&2",
                                      0, &heard);
    assert_string_equal(child.last_words, "kept\n");
    for (int i = 0; i < 4; i++) unsetenv(gone[i]);
    unsetenv("TRIREME_OTHER");
}

static void what_is_no_program_fails(void **state)
{
    (void)state;
    struct heard heard = {0};
    struct cli_arguments arguments = {0};
    struct cli_child child = {.hear = hear, .user = &heard};
    cli_arguments_add(&arguments, "/nowhere/program");
    assert_int_equal(cli_child_run(&child, &arguments), TR_OK);
    assert_int_equal(child.code, CLI_EXIT_FAILED);
    cli_arguments_release(&arguments);
}

/* Without descriptors there is no pipe, and none is left of an attempt, nor of a child that has ended. */
static void descriptors_are_not_lost(void **state)
{
    (void)state;
    struct rlimit before, limit;
    const int open = descriptors_open();
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    for (int more = 0; more <= 4; more++) {
        struct heard heard = {0};
        struct cli_arguments arguments = {0};
        struct cli_child child = {.hear = hear, .user = &heard};
        cli_arguments_add(&arguments, "/bin/true");
        limit = before;
        limit.rlim_cur = descriptors_limit(more);
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
        const tr_status status = cli_child_run(&child, &arguments);
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
        assert_int_equal(status, more < 4 ? TR_EIO : TR_OK);
        if (status != TR_OK) assert_non_null(strstr(tr_error_message(), "no pipe for a run: "));
        cli_arguments_release(&arguments);
        assert_int_equal(descriptors_open(), open);
    }
    struct cli_arguments arguments = {0};
    struct cli_child child = {.hear = hear};
    cli_arguments_add(&arguments, "/bin/true");
    no_process = true;
    const tr_status status = cli_child_run(&child, &arguments);
    no_process = false;
    assert_int_equal(status, TR_ENOMEM);
    assert_string_equal(tr_error_message(), "a run cannot be started: Resource temporarily unavailable");
    cli_arguments_release(&arguments);
    assert_int_equal(descriptors_open(), open);
}

/* A child that has ended may leave processes with its outputs: nobody waits for these. */
static void what_it_leaves_is_not_waited_for(void **state)
{
    (void)state;
    struct heard heard = {0};
    struct cli_arguments arguments = {0};
    struct cli_child child = {.hear = hear, .user = &heard};
    const int open = descriptors_open();
    cli_arguments_add(&arguments, "/bin/sh");
    cli_arguments_add(&arguments, "-c");
    cli_arguments_add(&arguments, "echo '{\"n\":5}'; echo words >&2; sleep 1000 & exit 3");
    assert_int_equal(cli_child_run(&child, &arguments), TR_OK);
    assert_int_equal(child.code, 3);
    assert_int_equal(heard.n[0], 5);
    assert_string_equal(child.last_words, "words\n");
    assert_int_equal(descriptors_open(), open);
    assert_int_equal(kill(-child.process, SIGKILL), 0); /* it is in the child's group */
    cli_arguments_release(&arguments);
}

/* Words of up to 4,095 bytes are taken; a command that lacks one is not run. */
static void words_have_limits(void **state)
{
    (void)state;
    char word[5000];
    memset(word, 'x', sizeof word);
    for (int length = 4095; length <= 4096; length++) {
        struct cli_arguments arguments = {0};
        struct cli_child child = {0};
        cli_arguments_add(&arguments, "%s", "first");
        cli_arguments_add(&arguments, "%.*s", length, word);
        assert_int_equal(arguments.failed, length == 4096);
        cli_arguments_add(&arguments, "%d", 3);
        assert_int_equal(arguments.count, length == 4096 ? 2 : 3);
        assert_string_equal(arguments.item[0], "first");
        assert_string_equal(arguments.item[arguments.count - 1], "3");
        assert_null(arguments.item[arguments.count]);
        if (arguments.failed) {
            assert_int_equal(cli_child_start(&child, &arguments), TR_ENOMEM);
            assert_non_null(strstr(tr_error_message(), "memory is short, or a word too long"));
        }
        cli_arguments_release(&arguments);
    }
    for (int64_t at = 0, done = 0; !done; at++) {
        struct cli_arguments arguments = {0};
        const int64_t live = tr_alloc_live();
        refuse_begin(at);
        cli_arguments_add(&arguments, "a");
        cli_arguments_add(&arguments, "b");
        done = refuse_end();
        assert_int_equal(arguments.failed, !done);
        cli_arguments_release(&arguments);
        assert_int_equal(tr_alloc_live(), live);
    }
    struct cli_arguments arguments = {0};
    char self[4096] = "";
    cli_arguments_add_self(&arguments);
    assert_true(readlink("/proc/self/exe", self, sizeof self - 1) > 0);
    assert_string_equal(arguments.item[0], self);
    cli_arguments_release(&arguments);
}

static void statuses_have_codes(void **state)
{
    (void)state;
    static const struct {
        tr_status status;
        int code;
    } cases[] = {
        {TR_OK, 0},           {TR_EINVAL, 2},    {TR_EFORMAT, 2},      {TR_EMISMATCH, 2},
        {TR_EUNSUPPORTED, 2}, {TR_ENOTFOUND, 2}, {TR_EINTERRUPTED, 3}, {TR_ENONFINITE, 4},
        {TR_ECORRUPT, 5},     {TR_ENOMEM, 1},    {TR_EIO, 1},          {TR_EPEER, 1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        assert_int_equal(cli_exit_of(cases[i].status), cases[i].code);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(objects_of_lines_are_heard),
        cmocka_unit_test(endless_lines_are_left_out),
        cmocka_unit_test(the_last_line_explains),
        cmocka_unit_test(the_end_of_much_is_kept),
        cmocka_unit_test(time_ends),
        cmocka_unit_test(a_signal_ends_it),
        cmocka_unit_test(it_is_killed_in_the_end),
        cmocka_unit_test(it_ends_with_this_program),
        cmocka_unit_test(a_child_begins_anew),
        cmocka_unit_test(what_is_no_program_fails),
        cmocka_unit_test(descriptors_are_not_lost),
        cmocka_unit_test(what_it_leaves_is_not_waited_for),
        cmocka_unit_test(words_have_limits),
        cmocka_unit_test(statuses_have_codes),
    };
    return cmocka_run_group_tests_name("cli.child", tests, NULL, NULL);
}
