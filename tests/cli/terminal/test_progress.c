/* The progress line: fits every width, keeps the most important fields, says what it knows. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "cli/terminal/progress.h"

#include <math.h>

static const struct cli_progress half = {
    .step = 10000,
    .steps = 20000,
    .loss = 0.125,
    .accuracy = 0.961,
    .examples_per_second = 1650.4,
    .seconds_left = 305,
};

/* The line, in static storage. */
static const char *line_of(const struct cli_progress *progress, int width, bool unicode, bool color)
{
    static char line[1024];
    struct tr_text text = TR_TEXT_INIT;
    cli_progress_line(progress, width, (struct cli_progress_style){unicode, color}, &text);
    assert_false(text.failed);
    assert_true(text.length < sizeof line);
    memcpy(line, text.bytes ? text.bytes : "", text.length + 1);
    tr_text_release(&text);
    return line;
}

/* Columns that a terminal needs: no escape sequences, UTF-8 characters once. */
static int columns_of(const char *line)
{
    int columns = 0;
    for (; *line; line++) {
        if (*line == '\033') {
            line += strcspn(line, "m");
        } else {
            columns += ((unsigned char)*line & 0xc0) != 0x80;
        }
    }
    return columns;
}

static void test_everything_on_a_wide_terminal(void **state)
{
    (void)state;
    assert_string_equal(
        line_of(&half, 130, false, false),
        "[==============>             ]   50%  step 10,000/20,000  loss 0.1250  accuracy 0.961  "
        "1,650 examples/s  5 min 05 s left");
}

static void test_rates_are_rounded(void **state)
{
    (void)state;
    struct cli_progress progress = half;
    progress.examples_per_second = 99.6;
    assert_non_null(strstr(line_of(&progress, 130, false, false), "  100 examples/s  "));
    progress.examples_per_second = 0.4;
    assert_non_null(strstr(line_of(&progress, 130, false, false), "  0 examples/s  "));
    progress.examples_per_second = 0; /* as long as nothing is known */
    assert_null(strstr(line_of(&progress, 130, false, false), "examples/s"));
}

static void test_never_wider_than_the_terminal(void **state)
{
    (void)state;
    struct cli_progress progress = half;
    for (int step = 0; step <= 20000; step += 1000) {
        progress.step = step;
        for (int width = 1; width < 200; width++)
            for (int style = 0; style < 4; style++) {
                int columns = columns_of(line_of(&progress, width, style & 1, style & 2));
                assert_true(columns < width);
            }
    }
}

static void test_narrow_terminals_keep_what_matters(void **state)
{
    (void)state;
    assert_string_equal(line_of(&half, 5, false, false), " 50%");
    assert_string_equal(line_of(&half, 4, false, false), "");
    assert_string_equal(line_of(&half, 18, false, false), " 50%  loss 0.1250");
    assert_string_equal(line_of(&half, 17, false, false), "[====>   ]   50%");
    assert_string_equal(line_of(&half, 14, false, false), " 50%");
    assert_string_equal(line_of(&half, 38, false, false), " 50%  step 10,000/20,000  loss 0.1250");
}

static void test_unknown_figures_are_left_out(void **state)
{
    (void)state;
    struct cli_progress progress = {
        .step = 0, .steps = 10, .loss = 1.5, .accuracy = NAN, .examples_per_second = 0, .seconds_left = -1};
    assert_string_equal(line_of(&progress, 40, false, false), "[>     ]    0%  step  0/10  loss 1.5000");
}

static void test_the_bar_is_full_at_the_end_only(void **state)
{
    (void)state;
    struct cli_progress progress = half;
    progress.step = 19999;
    assert_non_null(strstr(line_of(&progress, 130, false, false), ">]"));
    progress.step = 20000;
    assert_non_null(strstr(line_of(&progress, 130, false, false), "==]"));
    assert_non_null(strstr(line_of(&progress, 130, false, false), "100%"));
}

/* A job of one step, and one whose number of steps is not known. */
static void test_few_steps(void **state)
{
    (void)state;
    struct cli_progress progress = half;
    progress.steps = progress.step = 1;
    progress.seconds_left = 0;
    assert_string_equal(line_of(&progress, 60, false, false),
                        "100%  step 1/1  loss 0.1250  accuracy 0.961  0 ms left");
    progress.steps = 0;
    assert_string_equal(line_of(&progress, 17, false, false), "[>       ]    0%");
}

static void test_color_only_where_wanted(void **state)
{
    (void)state;
    assert_non_null(strstr(line_of(&half, 130, true, true), "\033["));
    assert_null(strchr(line_of(&half, 130, true, false), '\033'));
    assert_null(strchr(line_of(&half, 130, false, false), '\033'));
}

static void test_figures(void **state)
{
    (void)state;
    char buffer[CLI_FIGURE_SIZE];
    assert_string_equal(cli_figure(0.5, buffer), "0.5000");
    assert_string_equal(cli_figure(29.03125, buffer), "29.0312");
    assert_string_equal(cli_figure(0, buffer), "0.0000");
    assert_string_equal(cli_figure(123456, buffer), "1.235e+05");
    assert_string_equal(cli_figure(0.00001, buffer), "1.000e-05");
    assert_string_equal(cli_figure(-0.00001, buffer), "-1.000e-05");
    assert_string_equal(cli_figure(INFINITY, buffer), "inf");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_everything_on_a_wide_terminal),
        cmocka_unit_test(test_rates_are_rounded),
        cmocka_unit_test(test_never_wider_than_the_terminal),
        cmocka_unit_test(test_narrow_terminals_keep_what_matters),
        cmocka_unit_test(test_unknown_figures_are_left_out),
        cmocka_unit_test(test_the_bar_is_full_at_the_end_only),
        cmocka_unit_test(test_few_steps),
        cmocka_unit_test(test_color_only_where_wanted),
        cmocka_unit_test(test_figures),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
