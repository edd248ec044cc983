/* What a terminal says of itself, and what is assumed where it says nothing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <fcntl.h>
#include <locale.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include <cmocka.h>

#include "cli/terminal/terminal.h"

/* The end of a terminal that a program would write to; *other keeps it open. */
static int terminal_of(int *other)
{
    *other = posix_openpt(O_RDWR | O_NOCTTY);
    if (*other < 0 || grantpt(*other) != 0 || unlockpt(*other) != 0) skip();
    const int end = open(ptsname(*other), O_RDWR | O_NOCTTY);
    if (end < 0) skip();
    return end;
}

static void narrow_terminals_are_not_folded(void **state)
{
    static const struct {
        unsigned short columns;
        int width, fold;
    } cases[] = {{0, 80, 80}, {1, 1, 0}, {39, 39, 0}, {40, 40, 40}, {200, 200, 200}, {65535, 65535, 65535}};
    (void)state;
    int other, end = terminal_of(&other);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const struct winsize size = {.ws_row = 3, .ws_col = cases[i].columns};
        assert_int_equal(ioctl(end, TIOCSWINSZ, &size), 0);
        assert_int_equal(cli_terminal_width(end), cases[i].width);
        assert_int_equal(cli_terminal_fold(end), cases[i].fold);
    }
    close(end);
    close(other);
}

static void files_have_no_width(void **state)
{
    (void)state;
    const int file = open("/dev/null", O_RDWR);
    assert_true(file >= 0);
    assert_int_equal(cli_terminal_width(file), 80);
    assert_int_equal(cli_terminal_fold(file), 0);
    close(file);
}

/* Lines are drawn anew on a terminal that can do so. */
static void a_terminal_has_a_name(void **state)
{
    (void)state;
    int other, end = terminal_of(&other);
    const int file = open("/dev/null", O_RDWR);
    assert_int_equal(setenv("TERM", "xterm", 1), 0);
    assert_true(cli_terminal_interactive(end));
    assert_false(cli_terminal_interactive(file));
    assert_int_equal(setenv("TERM", "dumber", 1), 0);
    assert_true(cli_terminal_interactive(end));
    assert_int_equal(setenv("TERM", "dumb", 1), 0);
    assert_false(cli_terminal_interactive(end));
    assert_int_equal(setenv("TERM", "", 1), 0);
    assert_false(cli_terminal_interactive(end));
    assert_int_equal(unsetenv("TERM"), 0);
    assert_false(cli_terminal_interactive(end));
    close(file);
    close(end);
    close(other);
}

static void colours_can_be_refused(void **state)
{
    (void)state;
    assert_int_equal(unsetenv("NO_COLOR"), 0);
    assert_true(cli_terminal_color());
    assert_int_equal(setenv("NO_COLOR", "", 1), 0);
    assert_true(cli_terminal_color());
    assert_int_equal(setenv("NO_COLOR", "0", 1), 0);
    assert_false(cli_terminal_color());
}

static void characters_are_those_of_the_locale(void **state)
{
    (void)state;
    assert_non_null(setlocale(LC_ALL, "C"));
    assert_false(cli_terminal_unicode());
    if (!setlocale(LC_ALL, "C.UTF-8")) skip();
    assert_true(cli_terminal_unicode());
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(narrow_terminals_are_not_folded),
        cmocka_unit_test(files_have_no_width),
        cmocka_unit_test(a_terminal_has_a_name),
        cmocka_unit_test(colours_can_be_refused),
        cmocka_unit_test(characters_are_those_of_the_locale),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
