/* The stderr of several processes through their launcher: one message once, whoever reports it; lines of
 * others as they come; notes to those that they are for.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "cli/launch/lines.h"

#define NOTE "\036"

static struct cli_said said;
static struct cli_lines lines[2];
static int heard;
static struct cli_note last;
static FILE *file;
static int before;

static void hear(void *user, const struct cli_note *note)
{
    assert_ptr_equal(user, &heard);
    heard++;
    last = *note;
}

/* From here on stderr goes to a file. */
static void begin(void)
{
    heard = 0;
    cli_said_begin(&said, "token", hear, &heard);
    for (int i = 0; i < 2; i++) cli_lines_begin(&lines[i], &said, -1);
    file = tmpfile();
    assert_non_null(file);
    before = dup(STDERR_FILENO);
    assert_int_equal(dup2(fileno(file), STDERR_FILENO), STDERR_FILENO);
}

static void say(int process, const char *text)
{
    cli_lines_add(&lines[process], text, strlen(text));
}

/* Ends it; what was printed must be this. */
static void expect(const char *expected)
{
    static char text[3 * CLI_LINE_MOST];
    for (int i = 0; i < 2; i++) cli_lines_end(&lines[i]);
    cli_said_end(&said);
    assert_int_equal(dup2(before, STDERR_FILENO), STDERR_FILENO);
    close(before);
    rewind(file);
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    fclose(file);
    assert_string_equal(text, expected);
}

/* Of itself, or of another that gave up for it, by way of a third. */
static void a_message_is_printed_once(void **state)
{
    (void)state;
    begin();
    say(0, "trireme train: disk full\n");
    say(1, "trireme train: disk full\n");
    say(1, "trireme train: rank 0 on host a gave up: disk full\n");
    say(0, "trireme train: rank 1 gave up: rank 0 on host a gave up: disk full\n");
    say(1, "trireme train: disk not full\n");
    expect("trireme train: disk full\ntrireme train: disk not full\n");
    begin();
    say(1, "trireme train: rank 0 gave up: no memory\n");
    say(0, "trireme train: no memory\n");
    expect("trireme train: rank 0 gave up: no memory\n");
}

static void others_may_repeat_themselves(void **state)
{
    (void)state;
    begin();
    say(0, "debugger: stopped\n");
    say(1, "debugger: stopped\n");
    say(0, "\n");
    say(0, "\n");
    say(1, "[a] PMIX ERROR: BAD-PARAM in file ../../../src/event/pmix_event_notification.c at line 1\n");
    expect("debugger: stopped\ndebugger: stopped\n\n\n");
}

/* Messages that are long past come again. */
static void some_messages_are_remembered(void **state)
{
    char line[64], expected[64 * (CLI_LINES_KEPT + 2)] = "";
    (void)state;
    begin();
    for (int i = 0; i <= CLI_LINES_KEPT; i++) {
        snprintf(line, sizeof line, "trireme train: message %d\n", i);
        say(0, line);
        if (i + 1 == CLI_LINES_KEPT) say(1, "trireme train: message 0\n"); /* is known */
        strcat(expected, line);
    }
    say(1, "trireme train: message 0\n");
    strcat(expected, "trireme train: message 0\n");
    expect(expected);
}

/* In pieces, of two processes at a time, with bytes 0 between. */
static void lines_come_in_pieces(void **state)
{
    (void)state;
    begin();
    say(0, "one");
    say(1, "two\nth");
    cli_lines_add(&lines[0], " and\0 a half\n", 13);
    say(1, "ree");
    cli_lines_flush(&lines[1]); /* nothing came for a while */
    say(0, "four\n");
    say(1, " in all\n");
    say(0, "unended");
    expect("two\none and a half\nthreefour\n in all\nunended");
}

/* Longer lines than are kept together are passed on as they are. */
static void long_lines_are_whole(void **state)
{
    static char line[2 * CLI_LINE_MOST];
    (void)state;
    memset(line, 'x', sizeof line - 2);
    line[sizeof line - 2] = '\n';
    begin();
    say(0, line);
    expect(line);
}

/* Nobody reads stderr any more: the launcher goes on with its work. */
static void nowhere_to_print(void **state)
{
    (void)state;
    begin();
    const int full = open("/dev/full", O_WRONLY);
    assert_true(full >= 0 && dup2(full, STDERR_FILENO) == STDERR_FILENO);
    close(full);
    say(0, "trireme train: one\ntwo");
    cli_lines_flush(&lines[0]);
    say(0, NOTE);
    expect("");
}

static void notes_are_heard(void **state)
{
    (void)state;
    begin();
    say(0, NOTE "token step 12\n");
    assert_int_equal(heard, 1);
    assert_int_equal(last.number, 12);
    say(0, NOTE "token st");
    cli_lines_flush(&lines[0]); /* the rest will come */
    say(0, "ep 13\nnext\n");
    assert_int_equal(heard, 2);
    assert_int_equal(last.number, 13);
    say(1, NOTE "other step 14\n"); /* of another launcher */
    say(1, NOTE "token step many\n");
    assert_int_equal(heard, 2);
    expect("next\n" NOTE "other step 14\n" NOTE "token step many\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_message_is_printed_once),
        cmocka_unit_test(others_may_repeat_themselves),
        cmocka_unit_test(some_messages_are_remembered),
        cmocka_unit_test(lines_come_in_pieces),
        cmocka_unit_test(long_lines_are_whole),
        cmocka_unit_test(nowhere_to_print),
        cmocka_unit_test(notes_are_heard),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
