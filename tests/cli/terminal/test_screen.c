/* Lines above a progress line: it is taken away before each, drawn again below it, and never shows what a
 * terminal would obey.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "cli/terminal/screen.h"
#include "refuse.h"

static char *written;
static size_t size;

/* A screen whose output is kept; as in a terminal of 80 columns, or elsewhere. */
static struct cli_screen begin(bool interactive)
{
    FILE *stream = open_memstream(&written, &size);
    assert_non_null(stream);
    return (struct cli_screen){.stream = stream, .interactive = interactive};
}

static void expect(struct cli_screen *screen, const char *expected)
{
    cli_screen_end(screen);
    fclose(screen->stream);
    assert_string_equal(written, expected);
    free(written);
}

#define CLEAR "\r\033[K"

static void lines_stand_above_the_status(void **state)
{
    (void)state;
    const int64_t live = tr_alloc_live();
    struct cli_screen screen = begin(true);
    cli_screen_line(&screen, "before");
    cli_screen_status(&screen, "1 of 2");
    cli_screen_line(&screen, "between");
    cli_screen_line(&screen, "");
    expect(&screen, "before\n"
                    "\r1 of 2\033[K" CLEAR "between\n1 of 2" CLEAR "\n1 of 2" CLEAR);
    assert_int_equal(tr_alloc_live(), live);
    /* It is gone once, at the end. */
    screen = begin(true);
    cli_screen_line(&screen, "alone");
    expect(&screen, "alone\n");
}

static void nothing_is_drawn_elsewhere(void **state)
{
    (void)state;
    const struct cli_progress progress = {
        .step = 1, .steps = 2, .loss = NAN, .accuracy = NAN, .seconds_left = -1};
    struct cli_screen screen = begin(false);
    cli_screen_status(&screen, "1 of 2");
    cli_screen_progress(&screen, &progress);
    cli_screen_renew(&screen, &progress);
    cli_screen_line(&screen, "a line");
    expect(&screen, "a line\n");
}

/* It is not drawn again at once; what a line draws below itself is the newest that was given. */
static void progress_is_renewed_for_lines(void **state)
{
    (void)state;
    const struct cli_progress
        first = {.step = 1, .steps = 4, .loss = NAN, .accuracy = NAN, .seconds_left = -1},
        second = {.step = 2, .steps = 4, .loss = NAN, .accuracy = NAN, .seconds_left = -1};
    const int64_t live = tr_alloc_live();
    struct cli_screen screen = begin(true);
    cli_screen_renew(&screen, &first); /* nothing is shown yet */
    cli_screen_progress(&screen, &first);
    cli_screen_renew(&screen, &second);
    cli_screen_line(&screen, "a line");
    expect(&screen, "\r[=======>                    ]   25%  step 1/4\033[K" CLEAR
                    "a line\n[==============>             ]   50%  step 2/4" CLEAR);
    assert_int_equal(tr_alloc_live(), live);
}

static void what_a_terminal_obeys_is_masked(void **state)
{
    (void)state;
    struct cli_screen screen = begin(true);
    cli_screen_status(&screen, "a\033[31mb");
    cli_screen_line(&screen, "c\033d\te");
    expect(&screen, "\ra?[31mb\033[K" CLEAR "c?d\te\na?[31mb" CLEAR);
}

/* The next one stands in its place; it comes once it is due again. */
static void statuses_replace_each_other(void **state)
{
    (void)state;
    const int64_t live = tr_alloc_live();
    struct cli_screen screen = begin(true);
    cli_screen_status(&screen, "the first");
    nanosleep(&(struct timespec){0, 120000000}, NULL);
    cli_screen_status(&screen, "2nd");
    expect(&screen, "\rthe first\033[K\r2nd\033[K" CLEAR);
    assert_int_equal(tr_alloc_live(), live);
}

/* A status has one column less than the terminal. */
static void long_statuses_are_cut(void **state)
{
    (void)state;
    for (int length = 78; length <= 81; length++) {
        char status[100] = "", expected[200];
        struct cli_screen screen = begin(true);
        memset(status, 'x', (size_t)length);
        cli_screen_status(&screen, status);
        snprintf(expected, sizeof expected, "\r%.79s\033[K" CLEAR, status);
        expect(&screen, expected);
    }
}

static void texts_are_lines(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"one\ntwo\n", "one\ntwo\n"}, {"one\n\ntwo", "one\n\ntwo\n"}, {"", ""}, {"\n", "\n"}};
    const int64_t live = tr_alloc_live();
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct cli_screen screen = begin(false);
        assert_int_equal(cli_screen_text(&screen, tr_strdup(cases[i][0])), TR_OK);
        expect(&screen, cases[i][1]);
    }
    struct cli_screen screen = begin(false);
    assert_int_equal(cli_screen_text(&screen, NULL), TR_ENOMEM);
    expect(&screen, "");
    assert_int_equal(tr_alloc_live(), live);
}

/* A line is not lost for want of memory; then nothing stands below it. */
static void lines_need_no_memory(void **state)
{
    (void)state;
    int refused = 0;
    for (int64_t at = 0, done = 0; !done; at++) {
        const int64_t live = tr_alloc_live();
        struct cli_screen screen = begin(true);
        cli_screen_status(&screen, "1 of 2");
        refuse_begin(at);
        cli_screen_line(&screen, "a line");
        done = refuse_end();
        refused += !done;
        expect(&screen,
               done ? "\r1 of 2\033[K" CLEAR "a line\n1 of 2" CLEAR : "\r1 of 2\033[K" CLEAR "a line\n");
        assert_int_equal(tr_alloc_live(), live);
    }
    assert_true(refused > 0);
    /* Nor does it matter what became of the status: it is drawn whole, or by the next one. */
    for (int64_t at = 0, done = 0; !done; at++) {
        const int64_t live = tr_alloc_live();
        struct cli_screen screen = begin(true);
        refuse_begin(at);
        cli_screen_status(&screen, "1 of 2");
        done = refuse_end();
        cli_screen_line(&screen, "a line");
        expect(&screen, at == 0 ? "a line\n"
                        : done  ? "\r1 of 2\033[K" CLEAR "a line\n1 of 2" CLEAR
                                : CLEAR "a line\n1 of 2" CLEAR);
        assert_int_equal(tr_alloc_live(), live);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_stand_above_the_status),
        cmocka_unit_test(nothing_is_drawn_elsewhere),
        cmocka_unit_test(progress_is_renewed_for_lines),
        cmocka_unit_test(what_a_terminal_obeys_is_masked),
        cmocka_unit_test(statuses_replace_each_other),
        cmocka_unit_test(long_statuses_are_cut),
        cmocka_unit_test(texts_are_lines),
        cmocka_unit_test(lines_need_no_memory),
    };
    return cmocka_run_group_tests_name("cli.screen", tests, NULL, NULL);
}
