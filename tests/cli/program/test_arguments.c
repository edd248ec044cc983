/* Words of a command line that several commands read alike. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "cli/program/arguments.h"

static void times_have_units(void **state)
{
    static const struct {
        const char *text;
        double seconds;
    } times[] = {
        {"0", 0},
        {"1", 1},
        {"90", 90},
        {"90s", 90},
        {"0.5s", 0.5},
        {"5m", 300},
        {"1.5h", 5400},
        {"1/4h", 900},
        {"0x10m", 960},
        {"000000000000000000000000000001s", 1},
        {"0000000000000000000000000000001s", 1}, /* as long as a number may be */
        {"0000000000000000000000000000001", 1},
    };
    (void)state;
    for (size_t i = 0; i < sizeof times / sizeof times[0]; i++) {
        double seconds = -1;
        const char *wrong = cli_argument_seconds(times[i].text, &seconds);
        if (wrong) fail_msg("\"%s\" %s", times[i].text, wrong);
        if (seconds != times[i].seconds) fail_msg("\"%s\": %g", times[i].text, seconds);
    }
}

/* What is no time leaves the value as it was. */
static void other_words_are_no_times(void **state)
{
    static const struct {
        const char *text, *wrong;
    } words[] = {
        {"-1", "is negative"},
        {"-0.001h", "is negative"},
        {"", "is not a number"},
        {"s", "is not a number"},
        {"m5", "is not a number"},
        {"5ms", "is not a number"},
        {"5ss", "is not a number"},
        {"5d", "is not a number"},
        {"5 m", "is not a number"},
        {"5M", "is not a number"},
        {"ten", "is not a number"},
        {"00000000000000000000000000000001", "is too long"},
        {"00000000000000000000000000000001s", "is too long"},
        {"1e400h", "is too large"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        double seconds = -7;
        const char *wrong = cli_argument_seconds(words[i].text, &seconds);
        assert_non_null(wrong);
        assert_string_equal(wrong, words[i].wrong);
        assert_true(seconds == -7);
    }
}

static void a_word_may_ask_for_more(void **state)
{
    (void)state;
    assert_true(cli_is_verbose("-v") && cli_is_verbose("--verbose"));
    assert_false(cli_is_verbose("-V") || cli_is_verbose("-vv") || cli_is_verbose("verbose") ||
                 cli_is_verbose(""));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(times_have_units),
        cmocka_unit_test(other_words_are_no_times),
        cmocka_unit_test(a_word_may_ask_for_more),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
