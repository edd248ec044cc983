/* A mapped file that loses its end while it is read: the program names it and leaves; what is no such file
 * ends it as ever. And what is written over a progress line, on a terminal: this, the launcher's lines,
 * notices of stops.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/files/file.h"
#include "cli/launch/lines.h"
#include "cli/launch/lost_file.h"
#include "cli/program/exit_codes.h"
#include "cli/program/apart.h"
#include "cli/program/signals.h"
#include "cli/terminal/output.h"
#include "scratch.h"

static char said[8192];

/* A terminal that changes nothing that is written to it. */
static void open_terminal(int ends[2])
{
    struct termios settings;
    ends[0] = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    assert_true(ends[0] >= 0);
    assert_int_equal(grantpt(ends[0]), 0);
    assert_int_equal(unlockpt(ends[0]), 0);
    ends[1] = open(ptsname(ends[0]), O_RDWR | O_NOCTTY | O_CLOEXEC);
    assert_true(ends[1] >= 0);
    assert_int_equal(tcgetattr(ends[1], &settings), 0);
    settings.c_oflag &= ~(tcflag_t)OPOST;
    assert_int_equal(tcsetattr(ends[1], TCSANOW, &settings), 0);
}

/* Runs the function in a process of its own, whose stderr is a pipe or a terminal of this kind (TERM);
   returns its code, or minus the signal that ended it. What it writes is in `said`. */
static int run(int (*function)(void), const char *terminal)
{
    int ends[2];
    if (terminal)
        open_terminal(ends);
    else
        assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        setenv("TERM", terminal ? terminal : "xterm", 1);
        signal(SIGBUS, SIG_DFL);
        signal(SIGTERM, SIG_DFL);
        dup2(ends[1], STDERR_FILENO);
        cli_output_name("work");
        _exit(function());
    }
    return apart_end(child, ends, said, sizeof said);
}

/* ---- a lost file ---- */

static char path[SCRATCH_PATH];

/* Maps two pages, of which the second one is taken away. */
static int lose_the_end(void)
{
    static char bytes[8192];
    struct tr_file_map map;
    cli_lost_file_catch();
    if (tr_file_write_atomic(NULL, path, bytes, sizeof bytes) != TR_OK) return 90;
    if (tr_file_map(path, &map) != TR_OK) return 91;
    if (truncate(path, 1) != 0) return 92;
    const volatile uint8_t *data = map.data;
    if (data[0] != 0) return 93;
    return data[5000] == 0 ? 94 : 95;
}

/* A file of whose mapping nothing is known. */
static int lose_another(void)
{
    cli_lost_file_catch();
    int file = memfd_create("test", 0);
    if (ftruncate(file, 8192) != 0) return 90;
    const volatile char *data = mmap(NULL, 8192, PROT_READ, MAP_SHARED, file, 0);
    if (data == MAP_FAILED || ftruncate(file, 0) != 0) return 91;
    return data[0] == 0 ? 94 : 95;
}

static int raise_it(void)
{
    cli_lost_file_catch();
    raise(SIGBUS);
    return 94;
}

#define LOST                                                                                                 \
    "\": was cut short, or its disk failed, while it was being read; restore the file and start again\n"

static void lost_files_are_named(void **state)
{
    char expected[2000];
    (void)state;
    scratch_join(path, scratch_place, "file");
    assert_int_equal(run(lose_the_end, NULL), CLI_EXIT_FAILED);
    snprintf(expected, sizeof expected, "trireme work: \"%s" LOST, path);
    assert_string_equal(said, expected);
    assert_int_equal(run(lose_the_end, "xterm"), CLI_EXIT_FAILED);
    snprintf(expected, sizeof expected, "\r\033[Ktrireme work: \"%s" LOST, path);
    assert_string_equal(said, expected);
    assert_int_equal(run(lose_the_end, "dumb"), CLI_EXIT_FAILED);
    assert_string_equal(said, expected + strlen("\r\033[K"));
    /* A name that a terminal would obey. */
    scratch_join(path, scratch_place, "f\033[31mile");
    assert_int_equal(run(lose_the_end, NULL), CLI_EXIT_FAILED);
    snprintf(expected, sizeof expected, "trireme work: \"%s/f?[31mile" LOST, scratch_place);
    assert_string_equal(said, expected);
}

static void other_faults_end_it_as_ever(void **state)
{
    (void)state;
    assert_int_equal(run(lose_another, NULL), -SIGBUS);
    assert_string_equal(said, "");
    assert_int_equal(run(raise_it, NULL), -SIGBUS);
    assert_string_equal(said, "");
}

/* ---- over a progress line ---- */

static void hear(void *user, const struct cli_note *note)
{
    (void)user, (void)note;
}

static int pass_lines_on(void)
{
    static struct cli_said all;
    static struct cli_lines lines;
    cli_said_begin(&all, "token", hear, NULL);
    cli_lines_begin(&lines, &all, -1);
    cli_lines_add(&lines, "one\ntw", 6);
    cli_lines_flush(&lines);
    cli_lines_add(&lines, "o\n\036token step 3\nthr", 19);
    cli_lines_end(&lines);
    cli_said_end(&all);
    return 0;
}

static int be_stopped(void)
{
    cli_signals_catch(NULL, "ending");
    raise(SIGTERM);
    return 0;
}

static void lines_replace_a_progress_line(void **state)
{
    (void)state;
    assert_int_equal(run(pass_lines_on, "xterm"), 0);
    assert_string_equal(said, "\r\033[Kone\n\r\033[Ktwo\n\r\033[Kthr"); /* once for a line */
    assert_int_equal(run(pass_lines_on, NULL), 0);
    assert_string_equal(said, "one\ntwo\nthr");
    assert_int_equal(run(pass_lines_on, "dumb"), 0);
    assert_string_equal(said, "one\ntwo\nthr");
    assert_int_equal(run(be_stopped, "xterm"), 0);
    assert_string_equal(said, "\r\033[Ktrireme work: ending (once more: leave at once)\n");
    assert_int_equal(run(be_stopped, "dumb"), 0);
    assert_string_equal(said, "trireme work: ending (once more: leave at once)\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lost_files_are_named),
        cmocka_unit_test(other_faults_end_it_as_ever),
        cmocka_unit_test(lines_replace_a_progress_line),
    };
    return cmocka_run_group_tests_name("cli.lost_file", tests, scratch_place_make, scratch_place_remove);
}
