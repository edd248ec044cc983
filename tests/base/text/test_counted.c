/* Counts with their nouns, in the singular and the plural. */
#include "base/text/counted.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <stdint.h>
#include <string.h>

static void nouns_have_their_plural(void **state)
{
    (void)state;
    static const struct {
        int64_t count;
        const char *noun, *text;
    } cases[] = {
        {0, "step", "0 steps"},
        {1, "step", "1 step"},
        {2, "step", "2 steps"},
        {-1, "step", "-1 steps"},
        {INT64_MAX, "step", "9223372036854775807 steps"},
        {1, "loss", "1 loss"},
        {2, "loss", "2 losses"},
        {2, "box", "2 boxes"},
        {2, "batch", "2 batches"},
        {2, "mesh", "2 meshes"},
        {2, "path", "2 paths"},
        {2, "h", "2 hs"},
        {1, "entry", "1 entry"},
        {2, "entry", "2 entries"},
        {2, "day", "2 days"},
        {2, "key", "2 keys"},
        {2, "", "2 s"},
    };
    char text[TR_COUNTED_SIZE];
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_ptr_equal(tr_counted(cases[i].count, cases[i].noun, text), text);
        assert_string_equal(text, cases[i].text);
    }
}

/* The longest count and noun fit; of longer nouns so much stays. */
static void long_nouns_are_cut(void **state)
{
    (void)state;
    char text[TR_COUNTED_SIZE], noun[60], expected[TR_COUNTED_SIZE] = "-9223372036854775808 ";
    const size_t begin = strlen(expected);
    for (size_t length = 49; length <= 51; length++) {
        const size_t kept = length < 50 ? length : 50;
        memset(noun, 'n', length);
        noun[length] = '\0';
        memset(expected + begin, 'n', kept);
        strcpy(expected + begin + kept, "s");
        assert_string_equal(tr_counted(INT64_MIN, noun, text), expected);
        noun[length - 1] = 'y';
        strcpy(expected + begin + kept - 1, "ies");
        assert_string_equal(tr_counted(INT64_MIN, noun, text), expected);
    }
}

/* In the long form thousands are apart. */
static void thousands_are_apart(void **state)
{
    (void)state;
    char text[TR_COUNTED_SIZE];
    assert_ptr_equal(tr_counted_long(10000, "example", text), text);
    assert_string_equal(text, "10,000 examples");
    assert_string_equal(tr_counted_long(1, "example", text), "1 example");
    assert_string_equal(tr_counted_long(999, "entry", text), "999 entries");
    assert_string_equal(
        tr_counted_long(INT64_MIN, "a noun of fifty bytes, which is as long as it can be", text),
        "-9,223,372,036,854,775,808 a noun of fifty bytes, which is as long as it can s");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(thousands_are_apart),
        cmocka_unit_test(nouns_have_their_plural),
        cmocka_unit_test(long_nouns_are_cut),
    };
    return cmocka_run_group_tests_name("base.counted", tests, NULL, NULL);
}
