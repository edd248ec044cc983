/* Single options set from texts: limits, what is replaced and what is added to. */
#include "base/options/option.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "refuse.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

struct thing {
    int32_t small, part;
    int64_t large;
    float rate;
    double fine;
    struct tr_int_list sizes;
    struct tr_float_list scales;
    struct tr_string_list names;
    char *label;
};

#define OPTION(KEY, TYPE, ...)                                                                               \
    {                                                                                                        \
        .key = #KEY, .type = TR_OPTION_##TYPE, .offset = offsetof(struct thing, KEY), .help = "a " #KEY,     \
        __VA_ARGS__                                                                                          \
    }
enum { SMALL, PART, LARGE, RATE, FINE, SIZES, SCALES, NAMES, LABEL, COUNT };
static const struct tr_option table[COUNT] = {
    OPTION(small, INT32, .fallback = "0"),
    OPTION(part, INT32, .fallback = "5", .least = -3, .most = 7),
    OPTION(large, INT64, .fallback = "0"),
    OPTION(rate, FLOAT, .fallback = "1", .least = 0, .most = INFINITY),
    OPTION(fine, DOUBLE, .fallback = "0", .least = 0, .most = 1, .flags = TR_OPTION_BELOW_MOST),
    OPTION(sizes, INT_LIST, .fallback = "4,5", .flags = TR_OPTION_QUIET),
    OPTION(scales, FLOAT_LIST, .fallback = "0.5", .flags = TR_OPTION_QUIET),
    OPTION(names, STRING_LIST, .fallback = "", .flags = TR_OPTION_QUIET),
    OPTION(label, STRING, .fallback = "none", .flags = TR_OPTION_QUIET),
};

static struct thing defaults(void)
{
    struct thing thing;
    memset(&thing, 0xff, sizeof thing);
    assert_int_equal(tr_options_defaults(table, COUNT, &thing), TR_OK);
    return thing;
}

static void set(struct thing *thing, int option, const char *text, const char *fault)
{
    char expected[256];
    const tr_status status = tr_option_set(&table[option], text, "--it", thing);
    if (status != (fault ? TR_EINVAL : TR_OK)) fail_msg("%s: %s", text, fault ? fault : tr_error_message());
    if (!fault) return;
    snprintf(expected, sizeof expected, "--it: %s (a %s)", fault, table[option].key);
    assert_string_equal(tr_error_message(), expected);
}

static void numbers_have_their_limits(void **state)
{
    (void)state;
    struct thing thing = defaults();
    set(&thing, SMALL, "2147483647", NULL);
    assert_int_equal(thing.small, INT32_MAX);
    set(&thing, SMALL, "2147483648", "2147483648 is out of range; allowed: -2147483648 .. 2147483647");
    assert_int_equal(thing.small, INT32_MAX);
    set(&thing, SMALL, "-2147483648", NULL);
    assert_int_equal(thing.small, INT32_MIN);
    set(&thing, SMALL, "-2147483649", "-2147483649 is out of range; allowed: -2147483648 .. 2147483647");
    set(&thing, PART, "-3", NULL);
    set(&thing, PART, "7", NULL);
    set(&thing, PART, "8", "8 is out of range; allowed: -3 .. 7");
    set(&thing, PART, "-4", "-4 is out of range; allowed: -3 .. 7");
    set(&thing, PART, "x", "\"x\" is not an integer");
    assert_int_equal(thing.part, 7);
    set(&thing, LARGE, "9223372036854775807", NULL);
    assert_true(thing.large == INT64_MAX);
    set(&thing, LARGE, "9223372036854775808", "\"9223372036854775808\" is too large");
    set(&thing, RATE, "0", NULL);
    set(&thing, RATE, "-1", "-1 is out of range; allowed: >= 0");
    set(&thing, RATE, "1e39", "\"1e39\" is too large");
    set(&thing, RATE, "1.17e-38",
        "1.17e-38 is too small: the least that 32-bit floats hold in full is 1.1755e-38");
    assert_true(thing.rate == 0);
    set(&thing, RATE, "1.1754943508222875e-38", NULL);
    assert_true(thing.rate == FLT_MIN);
    set(&thing, FINE, "0.5/1", NULL);
    set(&thing, FINE, "1", "1 is out of range; allowed: >= 0 and < 1");
    set(&thing, FINE, "0.9999999999", NULL);
    assert_true(thing.fine == 0.9999999999);
    tr_options_release(table, COUNT, &thing);
}

static void lists_of_numbers_are_replaced(void **state)
{
    (void)state;
    const int64_t live = tr_alloc_live();
    struct thing thing = defaults();
    assert_int_equal(thing.sizes.count, 2);
    for (int round = 0; round < 2; round++) {
        set(&thing, SIZES, "7,8,9", NULL);
        set(&thing, SCALES, "0.25,0.75", NULL);
        assert_int_equal(thing.sizes.count, 3);
        assert_int_equal(thing.sizes.item[2], 9);
        assert_int_equal(thing.scales.count, 2);
        assert_true(thing.scales.item[0] == 0.25f && thing.scales.item[1] == 0.75f);
        set(&thing, NAMES, round ? "b,c" : "a", NULL); /* to these one is added, commas or not */
        set(&thing, LABEL, round ? "second" : "first", NULL);
    }
    assert_int_equal(thing.names.count, 2);
    assert_string_equal(thing.names.item[0], "a");
    assert_string_equal(thing.names.item[1], "b,c");
    assert_string_equal(thing.label, "second");
    tr_options_release(table, COUNT, &thing);
    assert_int_equal(tr_alloc_live(), live);
}

/* Quiet options are left out where they have their fallback, whatever it is made of. */
static void quiet_options_are_compared(void **state)
{
    (void)state;
    const int64_t live = tr_alloc_live();
    struct thing thing = defaults();
    char *text;
    assert_int_equal(tr_options_dump(table, COUNT, &thing, &text), TR_OK);
    assert_string_equal(text, "{\"small\": 0, \"part\": 5, \"large\": 0, \"rate\": 1, \"fine\": 0}");
    tr_free(text);
    set(&thing, SIZES, "4", NULL);
    set(&thing, LABEL, "nine", NULL);
    for (int64_t at = 0, done = 0; !done; at++) {
        const int64_t before = tr_alloc_live();
        refuse_begin(at);
        const tr_status status = tr_options_dump(table, COUNT, &thing, &text);
        done = refuse_end();
        assert_int_equal(status, done ? TR_OK : TR_ENOMEM);
        if (done) assert_non_null(strstr(text, "\"fine\": 0, \"sizes\": [4], \"label\": \"nine\"}"));
        if (done) tr_free(text);
        assert_int_equal(tr_alloc_live(), before);
    }
    tr_options_release(table, COUNT, &thing);
    assert_int_equal(tr_alloc_live(), live);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_have_their_limits),
        cmocka_unit_test(lists_of_numbers_are_replaced),
        cmocka_unit_test(quiet_options_are_compared),
    };
    return cmocka_run_group_tests_name("base.option_set", tests, NULL, NULL);
}
