/* Signals during long work, as a process gets them: the first asks, the second leaves, others do nothing;
 * what was before comes back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "cli/launch/launched.h"
#include "cli/program/apart.h"
#include "cli/program/signals.h"
#include "cli/terminal/output.h"
#include "train/setup/stop.h"

static const int each[] = {SIGINT, SIGTERM, SIGHUP, SIGUSR1};

static char said[8192];

/* Runs the function in a process of its own; returns its code, or minus the signal that ended it. What it
   writes to stderr is in `said`. */
static int run(int (*function)(int number), int number)
{
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        for (int i = 0; i < 4; i++) signal(each[i], SIG_DFL);
        dup2(ends[1], STDERR_FILENO);
        close(ends[0]);
        close(ends[1]);
        _exit(function(number));
    }
    return apart_end(child, ends, said, sizeof said);
}

static bool has_default(int number)
{
    struct sigaction action;
    return sigaction(number, NULL, &action) == 0 && action.sa_handler == SIG_DFL;
}

/* All signals but the four have their default, except for those that this program began without. */
static int others_changed(bool before)
{
    static bool was[65];
    int changed = 0;
    for (int i = 1; i < 32; i++) {
        bool now = has_default(i);
        if (before) was[i] = now;
        if (i != SIGINT && i != SIGTERM && i != SIGHUP && i != SIGUSR1) changed += now != was[i];
    }
    return changed;
}

/* ---- one signal ---- */

static int hear_one(int number)
{
    others_changed(true);
    cli_output_name("work");
    cli_signals_catch(NULL, "ending soon");
    if (cli_signals_received() != 0) return 1;
    errno = 77;
    raise(number);
    if (errno != 77) return 2;
    if (cli_signals_received() != number) return 3;
    raise(number == SIGHUP ? SIGINT : SIGHUP); /* at the same time: no second request */
    if (cli_signals_received() != number) return 4;
    cli_signals_release();
    for (int i = 0; i < 4; i++)
        if (!has_default(each[i])) return 5;
    return others_changed(false) ? 6 : 0;
}

static void the_first_is_heard(void **state)
{
    (void)state;
    for (int i = 0; i < 4; i++) {
        assert_int_equal(run(hear_one, each[i]), 0);
        assert_string_equal(said, "trireme work: ending soon (once more: leave at once)\n");
    }
}

static int hear_in_silence(int number)
{
    cli_signals_catch(NULL, NULL);
    raise(number);
    return cli_signals_received() == number ? 0 : 1;
}

/* A stop is set by a later signal and by one that has come; another job begins without one. */
static int stop_work(int number)
{
    tr_stop *early, *late;
    if (tr_stop_create(&early) != TR_OK || tr_stop_create(&late) != TR_OK) return 1;
    cli_signals_catch(NULL, NULL);
    cli_signals_stop(early);
    if (tr_stop_check(early, "it") != TR_OK) return 2;
    raise(number);
    if (tr_stop_check(early, "it") != TR_EINTERRUPTED) return 3;
    cli_signals_stop(late);
    if (tr_stop_check(late, "it") != TR_EINTERRUPTED) return 4;
    cli_signals_release();
    tr_stop_set(late, 0);
    cli_signals_catch(NULL, NULL);
    raise(number);
    return tr_stop_check(late, "it") == TR_OK ? 0 : 5;
}

static void work_is_stopped(void **state)
{
    (void)state;
    for (int i = 0; i < 4; i++) assert_int_equal(run(stop_work, each[i]), 0);
}

static int hear_again(int number)
{
    cli_signals_catch(NULL, "one");
    raise(number);
    cli_signals_release();
    cli_signals_catch(NULL, "two");
    if (cli_signals_received() != 0) return 1;
    raise(SIGHUP);
    return cli_signals_received() == SIGHUP ? 0 : 2;
}

static int say_much(int number)
{
    static char notice[300];
    memset(notice, 'x', sizeof notice - 1);
    cli_signals_catch(NULL, notice);
    raise(number);
    return 0;
}

static void what_is_said_is_the_callers(void **state)
{
    (void)state;
    assert_int_equal(run(hear_in_silence, SIGTERM), 0);
    assert_string_equal(said, "");
    assert_int_equal(run(hear_again, SIGTERM), 0);
    assert_non_null(strstr(said, "one (once more: leave at once)\n"));
    assert_non_null(strstr(said, "two (once more: leave at once)\n"));
    assert_int_equal(run(say_much, SIGTERM), 0);
    assert_true(strlen(said) > 100 && strlen(said) < 300);
    assert_int_equal(said[strlen(said) - 1], 'x'); /* it is cut */
}

/* ---- a second one ---- */

static int hear_two(int number)
{
    cli_signals_catch(NULL, "ending soon");
    raise(SIGTERM);
    usleep(310000);
    raise(number);
    return 9;
}

static void a_second_one_leaves(void **state)
{
    (void)state;
    for (int i = 0; i < 4; i++) {
        bool leaves = each[i] == SIGINT || each[i] == SIGTERM;
        assert_int_equal(run(hear_two, each[i]), leaves ? 128 + each[i] : 9);
        assert_string_equal(said, leaves ? "trireme: ending soon (once more: leave at once)\n\n"
                                         : "trireme: ending soon (once more: leave at once)\n");
    }
}

/* ---- what is ignored ---- */

static int ignore_one(int number)
{
    signal(number, SIG_IGN);
    cli_signals_catch(NULL, "ending soon");
    raise(number);
    if (cli_signals_received() != 0) return 1;
    raise(number == SIGTERM ? SIGINT : SIGTERM);
    if (cli_signals_received() != (number == SIGTERM ? SIGINT : SIGTERM)) return 2;
    cli_signals_release();
    raise(number);
    return has_default(number) ? 3 : 0;
}

static int ignore_all(int number)
{
    (void)number;
    others_changed(true);
    cli_signals_catch(NULL, "ending soon");
    cli_signals_ignore();
    for (int k = 0; k < 2; k++)
        for (int i = 0; i < 4; i++) raise(each[i]);
    return cli_signals_received() != 0 ? 1 : others_changed(false) ? 2 : 0;
}

static void what_is_ignored_stays_so(void **state)
{
    (void)state;
    for (int i = 0; i < 4; i++) assert_int_equal(run(ignore_one, each[i]), 0);
    assert_int_equal(run(ignore_all, 0), 0);
    assert_string_equal(said, "");
}

/* ---- a signal that comes early ---- */

static int hold_one(int number)
{
    sigset_t pending;
    cli_signals_hold();
    raise(number); /* a launcher may forward it at any moment */
    if (sigpending(&pending) != 0 || !sigismember(&pending, number)) return 1;
    cli_signals_catch(NULL, "ending soon");
    return cli_signals_received() == number ? 0 : 2;
}

static void what_came_early_waits(void **state)
{
    (void)state;
    assert_int_equal(run(hold_one, SIGUSR1), 0);
    assert_int_equal(run(hold_one, SIGTERM), -SIGTERM); /* others do not */
}

/* ---- in a process of a launcher ---- */

static int stop_a_process(int number)
{
    cli_launched_begin("token");
    cli_signals_catch(NULL, "ending soon");
    raise(number);
    cli_launched_note(CLI_NOTE_SAVED, INT64_MAX);
    cli_launched_step(4);
    cli_launched_step(5); /* sooner than a second after the last */
    cli_launched_note(CLI_NOTE_ENDED, -3);
    return 0;
}

static int tell_nobody(int number)
{
    cli_launched_begin(NULL);
    cli_signals_catch(NULL, NULL);
    raise(number);
    cli_launched_note(CLI_NOTE_SAVED, 3);
    cli_launched_step(4);
    return 0;
}

static int tell_all(int number)
{
    (void)number;
    cli_launched_begin("other");
    for (int kind = 0; kind < CLI_NOTE_KINDS; kind++) cli_launched_note((enum cli_note_kind)kind, 7 * kind);
    return 0;
}

static int use_a_long_token(int number)
{
    static char token[200];
    memset(token, 'x', (size_t)number);
    cli_launched_begin(token);
    return 0;
}

/* The lines are notes for the launcher with this token, of these kinds and numbers. */
static void expect_notes(const char *token, const struct cli_note *notes, int count)
{
    char *at = said;
    for (int i = 0; i < count; i++) {
        struct cli_note note = {CLI_NOTE_KINDS, 0};
        char *end = strchr(at, '\n');
        assert_non_null(end);
        *end = '\0';
        if (!cli_note_read(at, token, &note) || note.kind != notes[i].kind ||
            (notes[i].number != 0 && note.number != notes[i].number))
            fail_msg("line %d: \"%s\"", i, at);
        assert_false(cli_note_read(at, "toke", &note));
        at = end + 1;
    }
    assert_string_equal(at, "");
}

static void notes_go_to_the_launcher(void **state)
{
    (void)state;
    static const struct cli_note notes[] = {{CLI_NOTE_STARTED, 0},
                                            {CLI_NOTE_STOPPING, 0},
                                            {CLI_NOTE_SAVED, INT64_MAX},
                                            {CLI_NOTE_STEP, 4},
                                            {CLI_NOTE_ENDED, -3}};
    struct cli_note all[CLI_NOTE_KINDS + 1] = {{CLI_NOTE_STARTED, 0}};
    assert_int_equal(run(stop_a_process, SIGUSR1), 0);
    char *notice = strstr(said, "trireme: ending soon (once more: leave at once)\n");
    assert_non_null(notice);
    size_t length = strcspn(notice, "\n") + 1;
    memmove(notice, notice + length, strlen(notice + length) + 1);
    expect_notes("token", notes, 5);
    assert_int_equal(run(tell_nobody, SIGUSR1), 0);
    assert_string_equal(said, "");
    assert_int_equal(run(tell_all, 0), 0);
    for (int kind = 0; kind < CLI_NOTE_KINDS; kind++)
        all[kind + 1] = (struct cli_note){(enum cli_note_kind)kind, 7 * kind};
    expect_notes("other", all, CLI_NOTE_KINDS + 1);
    /* A note is whole, or there is none. */
    assert_int_equal(run(use_a_long_token, 100), 0);
    assert_int_equal(said[0], CLI_NOTE_MARK);
    assert_int_equal(said[strlen(said) - 1], '\n');
    assert_int_equal(run(use_a_long_token, 160), 0);
    assert_string_equal(said, "");
}

static void lines_of_others_are_no_notes(void **state)
{
    static const char *const others[] = {"",
                                         "\036",
                                         "token step 1",
                                         " token step 1",
                                         "\036toke step 1",
                                         "\036tokens step 1",
                                         "\036token  step 1",
                                         "\036token step",
                                         "\036token step ",
                                         "\036token step1",
                                         "\036token steps 1",
                                         "\036token ste 1",
                                         "\036token step 1 2",
                                         "\036token step x",
                                         "\036token step 9223372036854775808",
                                         "\036token none 1"};
    (void)state;
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        struct cli_note note = {CLI_NOTE_KINDS, 77};
        if (cli_note_read(others[i], "token", &note)) fail_msg("\"%s\" is a note", others[i]);
        assert_int_equal(note.kind, CLI_NOTE_KINDS);
        assert_int_equal(note.number, 77);
    }
    struct cli_note note;
    assert_true(cli_note_read("\036token step -9223372036854775808", "token", &note));
    assert_true(note.kind == CLI_NOTE_STEP && note.number == INT64_MIN);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_is_heard),       cmocka_unit_test(what_is_said_is_the_callers),
        cmocka_unit_test(work_is_stopped),          cmocka_unit_test(a_second_one_leaves),
        cmocka_unit_test(what_is_ignored_stays_so), cmocka_unit_test(what_came_early_waits),
        cmocka_unit_test(notes_go_to_the_launcher), cmocka_unit_test(lines_of_others_are_no_notes),
    };
    return cmocka_run_group_tests_name("cli.signals", tests, NULL, NULL);
}
