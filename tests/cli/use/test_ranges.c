/* Ranges of examples on a command line: which they are, and which are none. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "cli/use/ranges.h"
#include "refuse.h"

#define COUNT 7 /* examples */

static void ranges_have_both_ends(void **state)
{
    static const struct {
        const char *text;
        int count;
        struct tr_example_range range[3];
    } cases[] = {
        {NULL, 1, {{0, 7}}},  {"5", 1, {{5, 6}}},   {"6", 1, {{6, 7}}},
        {"2-2", 1, {{2, 3}}}, {"0-6", 1, {{0, 7}}}, {"3-", 1, {{3, 7}}},
        {"6-", 1, {{6, 7}}},  {"0", 1, {{0, 1}}},   {"4-5,1,0-", 3, {{4, 6}, {1, 2}, {0, 7}}},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct tr_example_range *ranges;
        int64_t count;
        if (cli_ranges_read(cases[i].text, COUNT, "data", &ranges, &count) != TR_OK)
            fail_msg("%s: %s", cases[i].text, tr_error_message());
        assert_int_equal(count, cases[i].count);
        for (int k = 0; k < cases[i].count; k++)
            if (ranges[k].first != cases[i].range[k].first || ranges[k].end != cases[i].range[k].end)
                fail_msg("%s: %d to %d", cases[i].text, (int)ranges[k].first, (int)ranges[k].end);
        tr_free(ranges);
    }
}

static void others_are_refused(void **state)
{
    static const char *const cases[][2] = {
        {"7", "no example 7; data has 7"},
        {"0-7", "no example 7"},
        {"7-", "no example 7"},
        {"3-1", "\"3-1\" goes down; write 1-3"},
        {"a", "\"a\" is no range"},
        {"-3", "\"-3\" is no range"},
        {"1-2x,3", "\"1-2x\" is no range"},
        {"1-x", "\"1-x\" is no range"},
        {"", "\"\" is no range"},
        {"1,,2", "\"\" is no range"},
        {"1,", "\"\" is no range"},
        {"9223372036854775807", "no example 9223372036854775807; data has 7"},
        {"9223372036854775808", "\"9223372036854775808\" is no range"},
        {"99999999999999999999", "\"99999999999999999999\" is no range"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const int64_t live = tr_alloc_live();
        struct tr_example_range *ranges;
        int64_t count;
        assert_int_equal(cli_ranges_read(cases[i][0], COUNT, "data", &ranges, &count), TR_EINVAL);
        assert_null(ranges);
        if (!strstr(tr_error_message(), cases[i][1])) fail_msg("%s: %s", cases[i][0], tr_error_message());
        assert_int_equal(tr_alloc_live(), live);
    }
}

static void without_memory_there_are_none(void **state)
{
    (void)state;
    for (int64_t at = 0, done = 0; !done; at++) {
        const int64_t live = tr_alloc_live();
        struct tr_example_range *ranges;
        int64_t count;
        refuse_begin(at);
        const tr_status status = cli_ranges_read("1,2-3", COUNT, "data", &ranges, &count);
        done = refuse_end();
        assert_int_equal(status, done ? TR_OK : TR_ENOMEM);
        if (done) tr_free(ranges);
        assert_int_equal(tr_alloc_live(), live);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranges_have_both_ends),
        cmocka_unit_test(others_are_refused),
        cmocka_unit_test(without_memory_there_are_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
