/* The grid of a convolution covers its target once, and balances a team. */
#include "device/cpu/conv_call.h"
#include "device/cpu/grid.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#define LENGTH(array) ((int)(sizeof(array) / sizeof(array)[0]))

static const struct {
    int threads;
    int64_t lines, image_lines, again, panels;
    double packing;
    int parts; /* expected */
} cases[] = {
    {1, 3, 3, 0, 16, 0.2, 1},   /* nobody to divide with */
    {2, 4, 4, 0, 16, 0.2, 1},   /* lines divide evenly, and are packed once */
    {2, 3, 3, 0, 16, 0.2, 2},   /* 3 x 8.2 instead of 2 x 16.2 */
    {2, 3, 3, 0, 2, 1.5, 1},    /* 2 x 3.5 instead of 3 x 2.5: packing twice is not worth it */
    {2, 3, 3, 0, 1, 0.2, 1},    /* a panel is not divided */
    {2, 2, 2, 1, 8, 0.2, 2},    /* 2 x 4.2 instead of the second line with the first again */
    {2, 2, 1, 1, 8, 0.2, 1},    /* two images have nothing to compute again */
    {2, 6, 3, 2, 8, 0.2, 1},    /* members begin with images */
    {4, 2, 2, 0, 8, 0.2, 2},    /* two lines, each for two members */
    {4, 1, 1, 0, 8, 0.2, 4},    /* one line for all */
    {6, 3, 3, 0, 4, 0.2, 2},    /* three lines by halves */
    {3, 300, 3, 0, 64, 0.2, 1}, /* many lines */
    {2, 0, 1, 0, 8, 0.2, 1},    /* nothing to do */
};

static void the_slowest_member_finishes_first(void **state)
{
    (void)state;
    for (int i = 0; i < LENGTH(cases); i++) {
        const int parts =
            cases[i].threads / cpu_conv_line_parts(cases[i].threads, cases[i].lines, cases[i].image_lines,
                                                   cases[i].again, cases[i].panels, cases[i].packing);
        if (parts != cases[i].parts)
            fail_msg("case %d: %d parts of the panels, expected %d", i, parts, cases[i].parts);
    }
}

#define MOST_LINES  9
#define MOST_PANELS 5

/* Counts, for each line and panel, the members that have it. */
static void expect_once(int line_parts, int size, int lines, int panels)
{
    int members[MOST_LINES][MOST_PANELS] = {{0}};
    struct cpu_balance *balance = cpu_balance_create(size);
    assert_non_null(balance);
    for (int member = 0; member < size; member++) {
        const struct cpu_part part = cpu_part(balance, line_parts, lines, panels, 1, member, size);
        for (int64_t l = part.row; l < part.row_end; l++)
            for (int64_t p = part.column; p < part.column_end; p++) members[l][p]++;
    }
    cpu_balance_destroy(balance);
    for (int l = 0; l < lines; l++)
        for (int p = 0; p < panels; p++)
            if (members[l][p] != 1)
                fail_msg("%d members, %d parts of the lines: line %d of %d and panel %d of %d has %d members",
                         size, line_parts, l, lines, p, panels, members[l][p]);
}

static void each_line_and_panel_has_one_member(void **state)
{
    (void)state;
    for (int threads = 1; threads <= 12; threads++)
        for (int parts = 1; parts <= threads; parts++) {
            if (threads % parts) continue;
            for (int lines = 0; lines <= MOST_LINES; lines++)
                for (int panels = 1; panels <= MOST_PANELS; panels++) {
                    expect_once(parts, threads, lines, panels);
                    expect_once(parts, 1, lines, panels); /* the caller alone */
                }
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_slowest_member_finishes_first),
        cmocka_unit_test(each_line_and_panel_has_one_member),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
