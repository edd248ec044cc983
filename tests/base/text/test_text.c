/* Numbers are read strictly and whatever the locale, written so that they read back, and words find their
 * neighbours. */
#include "base/text/text.h"

#include "refuse.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <float.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static void integers_are_strict(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int64_t value;
    } good[] = {{"0", 0},
                {"-0", 0},
                {"+7", 7},
                {"007", 7},
                {"0x1F", 31},
                {"-0xff", -255},
                {"0XabCDEF", 11259375},
                {"0xA", 10},
                {"0xf", 15},
                {"0xF", 15},
                {"-0x8000000000000000", INT64_MIN},
                {"9223372036854775807", INT64_MAX},
                {"-9223372036854775808", INT64_MIN},
                {"0x7fffffffffffffff", INT64_MAX}};
    static const char *const bad[] = {"",
                                      "-",
                                      "+",
                                      "0x",
                                      "1 ",
                                      " 1",
                                      "1.0",
                                      "1e3",
                                      "1_0",
                                      "12a",
                                      "--1",
                                      "0xg",
                                      "0xG",
                                      "0x`",
                                      "0x@",
                                      "0x:",
                                      "0x/",
                                      "-0x8000000000000001",
                                      "+-1",
                                      "a",
                                      "1,0",
                                      "9223372036854775808",
                                      "-9223372036854775809",
                                      "0x8000000000000000",
                                      "100000000000000000000000000000000000"};
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        int64_t value = 42;
        assert_null(tr_text_int64(good[i].text, &value));
        assert_true(value == good[i].value);
    }
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        int64_t value = 42;
        assert_non_null(tr_text_int64(bad[i], &value));
        assert_int_equal(value, 42);
    }
    int64_t value;
    assert_string_equal(tr_text_int64("12a", &value), "is not an integer");
    assert_string_equal(tr_text_int64("9223372036854775808", &value), "is too large");
    assert_string_equal(tr_text_int64("99999999999999999999999", &value), "is too large");
    assert_string_equal(tr_text_int64("99999999999999999999999x", &value), "is not an integer");
    assert_string_equal(tr_text_int64("-9223372036854775809", &value), "is too far below 0");
}

static void check_numbers(void)
{
    static const struct {
        const char *text;
        double value;
    } good[] = {{"1e-3", 1e-3},
                {"0.5", 0.5},
                {".5", 0.5},
                {"5.", 5},
                {"-2.5E+2", -250},
                {"0x10", 16},
                {"0x1p-3", 0.125},
                {"1/255", 1.0 / 255},
                {"-1/4", -0.25},
                {"1e2/1e3", 0.1},
                {"0", 0},
                {"-0.0", 0},
                {"0e999", 0},
                {"4.9e-324", 0x1p-1074},
                {"1.7976931348623157e308", DBL_MAX},
                {"0x0p99", 0}};
    static const char *const bad[] = {"",      "nan",   "inf",     "-inf",        "infinity",     "NaN",
                                      "1,5",   "1.5 ",  " 1",      "1e",          "1e+",          ".",
                                      "-",     "e5",    "0x",      "0x.",         "1/",           "/2",
                                      "1/0",   "1/2/3", "1//2",    "1e999",       "-1e999",       "1e-400",
                                      "1_000", "0x1p",  "0x1e+3x", "1e308/1e-10", "1e-300/1e300", "5f",
                                      "1d0",   "1.2.3", "0/0"};
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        double value = 42;
        assert_null(tr_text_double(good[i].text, &value));
        assert_true(value == good[i].value);
    }
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        double value = 42;
        if (!tr_text_double(bad[i], &value)) fail_msg("\"%s\" was read as %g", bad[i], value);
        assert_true(value == 42);
    }
    static const char *const reasons[][2] = {
        {"1e999", "is too large"},
        {"-1e999", "is too large"},
        {"1e308/1e-10", "is too large"},
        {"1e-400", "is too small to be told from 0"},
        {"1e-300/1e300", "is too small to be told from 0"},
        {"1/0", "divides by 0"},
        {"0/0", "divides by 0"},
        {"1/x", "is not a number"},
        {"1x", "is not a number"},
        {"nan", "is not a number"},
    };
    for (size_t i = 0; i < sizeof reasons / sizeof reasons[0]; i++) {
        double value;
        assert_string_equal(tr_text_double(reasons[i][0], &value), reasons[i][1]);
    }
    float single = 42;
    assert_string_equal(tr_text_float("1e39", &single), "is too large");
    assert_string_equal(tr_text_float("-1e39", &single), "is too large");
    assert_string_equal(tr_text_float("1e-46", &single), "is too small to be told from 0");
    assert_null(tr_text_float("0", &single));
    assert_true(single == 0);
    assert_null(tr_text_float("1/3", &single));
    assert_true(single == (float)(1.0 / 3));
    assert_non_null(tr_text_float("1e39", &single));
    assert_non_null(tr_text_float("1e-46", &single));
    assert_true(single == (float)(1.0 / 3));
}

static void check_round_trips(void)
{
    char text[TR_TEXT_NUMBER_SIZE];
    assert_string_equal(tr_text_from_double(0.1, text), "0.1");
    assert_string_equal(tr_text_from_double(1e-3, text), "0.001");
    assert_string_equal(tr_text_from_double(1e300, text), "1e+300");
    assert_string_equal(tr_text_from_float(0.1f, text), "0.1");
    assert_string_equal(tr_text_from_float(FLT_MAX, text), "3.4028235e+38");
    uint64_t bits = 0x9E3779B97F4A7C15;
    for (int i = 0; i < 20000; i++) {
        bits = bits * 6364136223846793005u + 1442695040888963407u;
        double value, back = 0;
        memcpy(&value, &bits, sizeof value);
        if (!isfinite(value)) continue;
        assert_null(tr_text_double(tr_text_from_double(value, text), &back));
        assert_memory_equal(&value, &back, sizeof value);
        float single, single_back = 0;
        memcpy(&single, &bits, sizeof single);
        if (!isfinite(single)) continue;
        assert_null(tr_text_float(tr_text_from_float(single, text), &single_back));
        assert_memory_equal(&single, &single_back, sizeof single);
    }
}

static void numbers_are_strict(void **state)
{
    (void)state;
    check_numbers();
    check_round_trips();
}

static void numbers_do_not_depend_on_the_locale(void **state)
{
    (void)state;
    static const char *const names[] = {"de_DE.UTF-8", "fr_FR.UTF-8", "pl_PL.UTF-8", "ps_AF.UTF-8",
                                        "ru_RU.UTF-8"};
    int found = 0;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (!setlocale(LC_ALL, names[i])) continue;
        found++;
        check_numbers();
        check_round_trips();
    }
    setlocale(LC_ALL, "C");
    if (found == 0) {
        print_message("no locale with a decimal comma is installed\n");
        skip();
    }
}

static void truth_has_six_words(void **state)
{
    (void)state;
    static const char *const words[] = {"false", "true", "no", "yes", "off", "on"};
    bool value = false;
    for (int i = 0; i < 6; i++) {
        value = i % 2 == 0;
        assert_null(tr_text_bool(words[i], &value));
        assert_int_equal(value, i % 2);
    }
    assert_string_equal(tr_text_bool("True", &value), "is neither true nor false");
    assert_non_null(tr_text_bool("1", &value));
    assert_non_null(tr_text_bool("", &value));
}

static void distances_are_those_of_typing(void **state)
{
    (void)state;
    static const struct {
        const char *a, *b;
        int distance;
    } cases[] = {{"", "", 0},
                 {"", "abc", 3},
                 {"kernel", "kernel", 0},
                 {"kernl", "kernel", 1},
                 {"kernel", "kerenl", 1},
                 {"rate", "reat", 2},
                 {"ab", "ba", 1},
                 {"abc", "bac", 1},
                 {"abc", "acb", 1},
                 {"learning-rate", "LEARNING_RATE", 0},
                 {"sitting", "kitten", 3},
                 {"abcd", "dcba", 3},
                 {"units", "filters", 5}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_int_equal(tr_text_distance(cases[i].a, cases[i].b), cases[i].distance);
        assert_int_equal(tr_text_distance(cases[i].b, cases[i].a), cases[i].distance);
    }
    char longest[64], longer[65];
    memset(longest, 'x', 63);
    longest[63] = '\0';
    memset(longer, 'x', 64);
    longer[64] = '\0';
    assert_int_equal(tr_text_distance(longest, ""), 63);
    assert_int_equal(tr_text_distance(longer, ""), INT32_MAX);
    assert_int_equal(tr_text_distance(longest, longest), 0);
    for (int i = 0; i < 63; i++) {
        char other[64];
        memcpy(other, longest, sizeof other);
        other[i] = 'y';
        assert_int_equal(tr_text_distance(longest, other), 1);
        assert_int_equal(tr_text_distance(other + i, longest), 1 + i);
        if (i == 0) continue;
        other[i - 1] = 'z';
        assert_int_equal(tr_text_distance(longest, other), 2);
        assert_int_equal(tr_text_distance(longest + 1, other), 2);
    }
    static const char *const words[] = {"units", "activation", "weights", "bias"};
    assert_string_equal(tr_text_nearest("unit", words, 4), "units");
    assert_string_equal(tr_text_nearest("wieghts", words, 4), "weights");
    assert_string_equal(tr_text_nearest("activtaion", words, 4), "activation");
    assert_null(tr_text_nearest("momentum", words, 4));
    assert_null(tr_text_nearest(longer, words, 4));
    assert_null(tr_text_nearest("units", words, 0));
    /* One error for every three letters, and one at least. */
    static const char *const names[] = {"ab", "abcde", "abcdefghi"};
    assert_string_equal(tr_text_nearest("ax", names, 1), "ab");
    assert_null(tr_text_nearest("xx", names, 1));
    assert_string_equal(tr_text_nearest("abcdx", names + 1, 1), "abcde");
    assert_null(tr_text_nearest("abcxx", names + 1, 1));
    assert_string_equal(tr_text_nearest("abcdefxxx", names + 2, 1), "abcdefghi");
    assert_null(tr_text_nearest("abcdexxxx", names + 2, 1));
    /* Of several the nearest, of equally near ones the first. */
    static const char *const near[] = {"rates", "rater", "rate", "rat"};
    assert_string_equal(tr_text_nearest("rate", near, 4), "rate");
    assert_string_equal(tr_text_nearest("ratex", near, 4), "rates");
}

static void figures_are_for_people(void **state)
{
    (void)state;
    char text[TR_TEXT_NUMBER_SIZE];
    assert_string_equal(tr_text_from_count(0, text), "0");
    assert_string_equal(tr_text_from_count(999, text), "999");
    assert_string_equal(tr_text_from_count(3274634, text), "3,274,634");
    assert_string_equal(tr_text_from_count(-1000, text), "-1,000");
    assert_string_equal(tr_text_from_count(INT64_MIN, text), "-9,223,372,036,854,775,808");
    assert_string_equal(tr_text_from_count(-1, text), "-1");
    assert_string_equal(tr_text_from_count(1000, text), "1,000");
    assert_string_equal(tr_text_from_count(-100000, text), "-100,000");
    assert_string_equal(tr_text_from_bytes(0, text), "0 bytes");
    assert_string_equal(tr_text_from_bytes(1, text), "1 byte");
    assert_string_equal(tr_text_from_bytes(2, text), "2 bytes");
    assert_string_equal(tr_text_from_bytes(1023, text), "1023 bytes");
    assert_string_equal(tr_text_from_bytes(1024, text), "1.0 KiB");
    assert_string_equal(tr_text_from_bytes(1536, text), "1.5 KiB");
    assert_string_equal(tr_text_from_bytes(1048524, text), "1023.9 KiB");
    assert_string_equal(tr_text_from_bytes(1048525, text), "1.0 MiB");
    assert_string_equal(tr_text_from_bytes(INT64_C(3) << 30, text), "3.0 GiB");
    assert_string_equal(tr_text_from_bytes(INT64_C(5) << 40, text), "5.0 TiB");
    assert_string_equal(tr_text_from_bytes(INT64_C(7) << 50, text), "7.0 PiB");
    assert_string_equal(tr_text_from_bytes(1048575, text), "1.0 MiB");
    assert_string_equal(tr_text_from_bytes(INT64_MAX, text), "8.0 EiB");
    assert_string_equal(tr_text_from_seconds(0.0004, text), "0 ms");
    assert_string_equal(tr_text_from_seconds(0, text), "0 ms");
    assert_string_equal(tr_text_from_seconds(0.85, text), "850 ms");
    assert_string_equal(tr_text_from_seconds(0.9994, text), "999 ms");
    assert_string_equal(tr_text_from_seconds(0.9995, text), "1.0 s");
    assert_string_equal(tr_text_from_seconds(0.9996, text), "1.0 s");
    assert_string_equal(tr_text_from_seconds(4.24, text), "4.2 s");
    assert_string_equal(tr_text_from_seconds(59.94, text), "59.9 s");
    assert_string_equal(tr_text_from_seconds(59.95, text), "1 min 00 s");
    assert_string_equal(tr_text_from_seconds(59.96, text), "1 min 00 s");
    assert_string_equal(tr_text_from_seconds(187, text), "3 min 07 s");
    assert_string_equal(tr_text_from_seconds(3599.4, text), "59 min 59 s");
    assert_string_equal(tr_text_from_seconds(3599.5, text), "1 h 00 min");
    assert_string_equal(tr_text_from_seconds(7500, text), "2 h 05 min");
    assert_string_equal(tr_text_from_seconds(9e14, text), "250000000000 h 00 min");
    assert_string_equal(tr_text_from_seconds(1e15, text), "unknown");
    assert_string_equal(tr_text_from_seconds(-1, text), "unknown");
    assert_string_equal(tr_text_from_seconds(NAN, text), "unknown");
}

static void strings_are_quoted(void **state)
{
    (void)state;
    static const struct {
        const char *plain, *quoted;
    } cases[] = {
        {"", "\"\""},
        {"a\"b\\c", "\"a\\\"b\\\\c\""},
        {"\n\t\r\x01\x7f", "\"\\n\\t\\r\\u0001\\u007f\""},
        {"gr\xC3\xBC\xC3\x9F \xF0\x9F\x9A\xA3", "\"gr\xC3\xBC\xC3\x9F \xF0\x9F\x9A\xA3\""},
        {"\xE2\x80\xA8", "\"\\u2028\""}, /* line separator */
        {"\xC2\x85", "\"\\u0085\""},     /* next line */
        {"\xE2\x80\xA9\xEF\xBB\xBF\xEF\xBF\xBE\xEF\xBF\xBF", "\"\\u2029\\ufeff\\ufffe\\uffff\""},
        /* the first and the last of each length */
        {"\xC2\xA0\xDF\xBF\xE0\xA0\x80\xEF\xBF\xBD", "\"\xC2\xA0\xDF\xBF\xE0\xA0\x80\xEF\xBF\xBD\""},
        {"\xC2\x80", "\"\\u0080\""},
        {"\xF0\x90\x80\x80\xF4\x8F\xBF\xBF", "\"\xF0\x90\x80\x80\xF4\x8F\xBF\xBF\""},
        {"\xF4\x90\x80\x80", "\"\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\""}, /* behind the last */
        {"\xFF", "\"\xEF\xBF\xBD\""},                                                 /* no UTF-8 */
        {"\xC0\xAF", "\"\xEF\xBF\xBD\xEF\xBF\xBD\""},                                 /* overlong */
        {"\xED\xA0\x80", "\"\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\""},                 /* surrogates */
        {"\xED\xBF\xBF", "\"\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\""},
        {"\xED\x9F\xBF\xEE\x80\x80", "\"\xED\x9F\xBF\xEE\x80\x80\""}, /* and the characters around them */
        {"\xE2\x82", "\"\xEF\xBF\xBD\xEF\xBF\xBD\""}};                /* cut */
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct tr_text text = TR_TEXT_INIT;
        char *out;
        tr_text_add_quoted(&text, cases[i].plain);
        assert_int_equal(tr_text_finish(&text, &out), TR_OK);
        assert_string_equal(out, cases[i].quoted);
        tr_free(out);
    }
}

/* The shell itself says whether it reads what was meant. */
static void words_are_quoted_for_the_shell(void **state)
{
    (void)state;
    static const char *const words[] = {"plain-1.yaml", "",        "two words", "it's", "$HOME",
                                        "`id`",         "a;b&c|d", "*",         "~",    "line\nfeed",
                                        "\\",           "\"",      "!x",        "#x",   "a=b:c"};
    struct tr_text text = TR_TEXT_INIT;
    tr_text_add_word(&text, words[0]);
    assert_string_equal(text.bytes, words[0]);
    tr_text_release(&text);
    tr_text_add_word(&text, words[3]);
    assert_string_equal(text.bytes, "'it'\\''s'");
    tr_text_release(&text);
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        char got[64] = "";
        tr_text_add(&text, "printf %s ");
        tr_text_add_word(&text, words[i]);
        FILE *shell = popen(text.bytes, "r");
        assert_non_null(shell);
        size_t length = fread(got, 1, sizeof got - 1, shell);
        got[length] = '\0';
        assert_int_equal(pclose(shell), 0);
        assert_string_equal(got, words[i]);
        tr_text_release(&text);
    }
}

static void failed_additions_are_remembered(void **state)
{
    (void)state;
    for (int64_t at = 0, done = 0; !done; at++) {
        int64_t live = tr_alloc_live();
        struct tr_text text = TR_TEXT_INIT;
        char *out;
        refuse_begin(at);
        for (int i = 0; i < 200; i++) tr_text_addf(&text, "%d,", i);
        tr_text_pad(&text, '.', 1000);
        tr_status status = tr_text_finish(&text, &out);
        done = refuse_end();
        assert_int_equal(status, done ? TR_OK : TR_ENOMEM);
        if (done) assert_int_equal(strlen(out), 1690);
        if (!done) assert_null(out);
        tr_free(out);
        assert_int_equal(tr_alloc_live(), live);
    }
    struct tr_text text = TR_TEXT_INIT;
    char *out;
    assert_int_equal(tr_text_finish(&text, &out), TR_OK);
    assert_string_equal(out, "");
    tr_free(out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(integers_are_strict),
        cmocka_unit_test(numbers_are_strict),
        cmocka_unit_test(numbers_do_not_depend_on_the_locale),
        cmocka_unit_test(truth_has_six_words),
        cmocka_unit_test(distances_are_those_of_typing),
        cmocka_unit_test(figures_are_for_people),
        cmocka_unit_test(strings_are_quoted),
        cmocka_unit_test(words_are_quoted_for_the_shell),
        cmocka_unit_test(failed_additions_are_remembered),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
