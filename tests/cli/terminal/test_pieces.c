/* The pieces that output for people is made of: cells and columns, folded lines, figures and bars, each at
 * its limits. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "cli/terminal/columns.h"
#include "cli/terminal/progress.h"

#include <math.h>

/* ---- columns ---- */

static const struct cli_column columns[] = {{"first", 9, 0}, {"second", 9, 2}, {"third", 9, 1}};

static void expect_layout(size_t name, int width, size_t expected_name, uint32_t hidden)
{
    const struct cli_layout layout = cli_layout_make(columns, 3, 0, name, 6, width);
    if (layout.name != expected_name || layout.hidden != hidden)
        fail_msg("name %zu in %d: %zu, hidden %u", name, width, layout.name, layout.hidden);
}

/* 27 columns of figures and 6 of a tail. Names are shortened to no less than 12 before columns are hidden,
   and those that may not go stay. */
static void columns_go_where_there_is_no_room(void **state)
{
    (void)state;
    expect_layout(20, 0, 20, 0);
    expect_layout(20, -1, 20, 0);
    expect_layout(20, 53, 20, 0);
    expect_layout(20, 52, 19, 0);
    expect_layout(20, 45, 12, 0);
    expect_layout(20, 44, 20, 2);
    expect_layout(20, 43, 19, 2);
    expect_layout(20, 36, 12, 2);
    expect_layout(20, 35, 20, 2 + 4);
    expect_layout(20, 27, 12, 2 + 4);
    expect_layout(20, 26, 12, 2 + 4);
    expect_layout(20, 1, 12, 2 + 4);
    expect_layout(5, 38, 5, 0);
    expect_layout(5, 37, 5, 2);
    expect_layout(5, 3, 5, 2 + 4);
    expect_layout(12, 45, 12, 0);
    /* Of three that may be hidden the first is the least important one. */
    static const struct cli_column other[] = {{"first", 9, 3}, {"second", 9, 1}, {"third", 9, 2}};
    static const uint32_t hidden[] = {0, 1, 1 + 4, 1 + 4 + 2};
    for (int i = 0; i < 4; i++)
        assert_int_equal(cli_layout_make(other, 3, 0, 5, 6, 38 - 9 * i).hidden, hidden[i]);
}

static void expect_text(struct tr_text *text, const char *expected)
{
    char *line = cli_columns_end(text);
    assert_string_equal(line, expected);
    tr_free(line);
}

static void cells_are_padded(void **state)
{
    (void)state;
    struct tr_text text = TR_TEXT_INIT;
    cli_column_left(&text, "ab", 4);
    cli_column_right(&text, "ab", 4);
    cli_column_left(&text, "abcd", 4);
    cli_column_right(&text, "abcd", 4);
    cli_column_right(&text, "abcde", 4);
    cli_column_left(&text, "|", 4);
    expect_text(&text, "ab    ababcdabcdabcde|");
    struct cli_layout layout = cli_layout_make(columns, 3, 4, 6, 0, 100);
    text = (struct tr_text)TR_TEXT_INIT;
    cli_layout_heads(&layout, &text, "name");
    expect_text(&text, "name      first   second");
    text = (struct tr_text)TR_TEXT_INIT;
    cli_layout_name(&layout, &text, "sixsix");
    cli_layout_cell(&layout, &text, 0, "1");
    cli_layout_cell(&layout, &text, 2, "hidden");
    expect_text(&text, "sixsix        1");
    text = (struct tr_text)TR_TEXT_INIT;
    cli_layout_name(&layout, &text, "sevenxx");
    cli_layout_cell(&layout, &text, 1, "2");
    expect_text(&text, "sevenxx\n              2");
    layout.hidden = 7;
    text = (struct tr_text)TR_TEXT_INIT;
    cli_layout_add_hidden(&layout, 0, &text);
    expect_text(&text, "first, second, third");
    text = (struct tr_text)TR_TEXT_INIT;
    cli_layout_add_hidden(&layout, 3, &text);
    expect_text(&text, "third");
    text = (struct tr_text)TR_TEXT_INIT;
    tr_text_add(&text, "  ");
    expect_text(&text, "");
}

static void servers_are_told_apart(void **state)
{
    (void)state;
    char buffer[CLI_WORKERS_SIZE];
    assert_string_equal(cli_workers_text(2, 2, buffer), "2");
    assert_string_equal(cli_workers_text(2, 3, buffer), "2+1");
    assert_string_equal(cli_workers_text(4, 1, buffer), "4");
    assert_string_equal(cli_workers_text(1024, 2048, buffer), "1024+1024");
}

/* ---- the progress line ---- */

static void figures_change_their_form_at_limits(void **state)
{
    (void)state;
    static const struct {
        double value;
        const char *text;
    } cases[] = {
        {0, "0.0000"},
        {0.001, "0.0010"},
        {0.000999, "9.990e-04"},
        {-0.001, "-0.0010"},
        {99999, "99999.0000"},
        {1e5, "1.000e+05"},
        {-1e5, "-1.000e+05"},
        {-99999.5, "-99999.5000"},
        {INFINITY, "inf"},
        {-INFINITY, "-inf"},
        {NAN, "nan"},
        {-NAN, "nan"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char buffer[CLI_FIGURE_SIZE];
        assert_string_equal(cli_figure(cases[i].value, buffer), cases[i].text);
    }
}

static void expect_progress(const struct cli_progress *progress, int width, struct cli_progress_style style,
                            const char *expected)
{
    struct tr_text text = TR_TEXT_INIT;
    cli_progress_line(progress, width, style, &text);
    assert_string_equal(text.bytes ? text.bytes : "", expected);
    tr_text_release(&text);
}

static void bars_are_drawn_to_the_last_column(void **state)
{
    (void)state;
    const struct cli_progress_style plain = {false, false}, drawn = {true, false}, coloured = {true, true};
    struct cli_progress progress = {.step = 1, .steps = 2, .loss = NAN, .accuracy = NAN, .seconds_left = -1};
    expect_progress(&progress, 26, plain, "[===>   ]   50%  step 1/2");
    expect_progress(&progress, 25, plain, "[===>  ]   50%  step 1/2");
    expect_progress(&progress, 24, plain, " 50%  step 1/2");
    expect_progress(&progress, 15, plain, " 50%  step 1/2");
    expect_progress(&progress, 14, plain, " 50%");
    expect_progress(&progress, 60, drawn, "━━━━━━━━━━━━━━━╸──────────────   50%  step 1/2");
    expect_progress(&progress, 60, coloured,
                    "\033[32m━━━━━━━━━━━━━━━╸\033[0m\033[2m──────────────\033[0m   50%  step 1/2");
    progress.step = 2;
    expect_progress(&progress, 60, drawn, "━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━  100%  step 2/2");
    progress.step = 3; /* more than were ordered: the bar ends */
    expect_progress(&progress, 60, plain, "[============================]  150%  step 3/2");
    progress = (struct cli_progress){.loss = NAN, .accuracy = 0.5, .seconds_left = 0};
    expect_progress(&progress, 60, plain, "[>       ]    0%  step 0/0  accuracy 0.500  0 ms left");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(columns_go_where_there_is_no_room),
        cmocka_unit_test(cells_are_padded),
        cmocka_unit_test(servers_are_told_apart),
        cmocka_unit_test(figures_change_their_form_at_limits),
        cmocka_unit_test(bars_are_drawn_to_the_last_column),
    };
    return cmocka_run_group_tests_name("cli.pieces", tests, NULL, NULL);
}
