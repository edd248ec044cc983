/* Fields of a line: which separator it has, where fields begin and end, which say nothing, and which column a
 * name may have meant. What lies behind the end of a line or a field is not looked at.
 */
#include "base/fail.h"
#include "data/files/lines.h"
#include "data/tables/csv_fields.h"
#include "refuse.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#define LENGTH(array) ((int)(sizeof(array) / sizeof((array)[0])))

static void separators_are_guessed(void **unused)
{
    static const struct {
        const char *line;
        char separator;
    } cases[] = {
        {"a,b", ','},     {"a;b", ';'},     {"a\tb", '\t'},   {"a b", ' '},     {"", ' '},
        {"a b,c", ','},   {"a,b;c", ','},   {"a;b,c", ';'},   {"a\tb;c", '\t'}, {"1,2", ','},
        {"1,5;2,5", ';'}, {"1,5\t2", '\t'}, {"1,5 2,5", ','}, {"1,2,a;b", ','}, {"1,2;a", ';'},
        {"x,5;1", ','},   {"5,x;1", ','},   {",1;2", ','},    {"1,;2", ','},    {"1,", ','},
        {"1,5", ','},     {"1,5,6;7", ';'},
    };
    (void)unused;
    for (int i = 0; i < LENGTH(cases); i++) {
        char line[32];
        const size_t length = strlen(cases[i].line);
        for (const char *behind = ";5\t"; *behind; behind++) {
            memset(line, *behind, sizeof line);
            memcpy(line, cases[i].line, length);
            if (tr_csv_guess(line, length) != cases[i].separator)
                fail_msg("\"%s\": '%c'", cases[i].line, tr_csv_guess(line, length));
        }
    }
}

static struct tr_csv_field field_of(const char *text)
{
    return (struct tr_csv_field){text, strlen(text)};
}

static void decimal_commas_are_known(void **unused)
{
    static const char *const yes[] = {"3,14", "-3,14", "+0,5", "10,0"};
    static const char *const no[] = {"",     "3",    "3.14",  ",14",  "3,",   "-,1", "1,2,3",
                                     "3,1x", "x3,1", "--3,1", "3-,1", "3, 1", "-"};
    (void)unused;
    for (int i = 0; i < LENGTH(yes); i++) assert_true(tr_csv_has_decimal_comma(field_of(yes[i])));
    for (int i = 0; i < LENGTH(no); i++)
        if (tr_csv_has_decimal_comma(field_of(no[i]))) fail_msg("%s", no[i]);
    assert_false(tr_csv_has_decimal_comma((struct tr_csv_field){"3,14", 2})); /* ends with the comma */
    assert_false(tr_csv_has_decimal_comma((struct tr_csv_field){"3,14", 1}));
}

static void some_fields_say_nothing(void **unused)
{
    static const char *const yes[] = {"",    "?",   "na",   "NA",   "N/A",  "n/a",
                                      "NaN", "nan", "null", "NULL", "none", "None"};
    static const char *const no[] = {"0", "??", "n", "nane", "non", "nonex", "nulls", "nil", "-", " "};
    (void)unused;
    for (int i = 0; i < LENGTH(yes); i++) assert_true(tr_csv_is_missing(field_of(yes[i])));
    for (int i = 0; i < LENGTH(no); i++) assert_false(tr_csv_is_missing(field_of(no[i])));
    assert_true(tr_csv_is_missing((struct tr_csv_field){"nanx", 3}));
}

/* ---- splitting ---- */

#define MOST 6

static const struct {
    const char *line;
    char separator;
    int32_t count;
    const char *fields[MOST];
} split_lines[] = {
    {"a,b,c", ',', 3, {"a", "b", "c"}},
    {"", ',', 1, {""}},
    {",", ',', 2, {"", ""}},
    {"a,,c,", ',', 4, {"a", "", "c", ""}},
    {"  a\t , b b ,c  ", ',', 3, {"a", "b b", "c"}},
    {"\"a,b\",c", ',', 2, {"a,b", "c"}},
    {"\"a\"\"b\" ,c", ',', 2, {"a\"\"b", "c"}},
    {"  \"\"  ,\"\"", ',', 2, {"", ""}},
    {"\"\"\"\"", ',', 1, {"\"\""}},
    {"a\"b,c", ',', 2, {"a\"b", "c"}},
    {"\"a \" , b", ',', 2, {"a ", "b"}},
    {"a;b,c", ';', 2, {"a", "b,c"}},
    {"a\tb \tc", '\t', 3, {"a", "b", "c"}},
    {"\t\t", '\t', 3, {"", "", ""}},
    {"\"a\"\t\"b\"", '\t', 2, {"a", "b"}},
    {"a  b   c", ' ', 3, {"a", "b", "c"}},
    {"  a b  ", ' ', 2, {"a", "b"}},
    {"a  ", ' ', 1, {"a"}},
    {"   ", ' ', 1, {""}},
    {"\"a b\" c", ' ', 2, {"a b", "c"}},
    {"a \"b\"", ' ', 2, {"a", "b"}},
};

static struct tr_lines line_of(const char *text)
{
    struct tr_lines lines = tr_lines_of("here", text, strlen(text));
    if (!tr_lines_next(&lines)) lines.line = text;
    return lines;
}

static void lines_are_split(void **unused)
{
    (void)unused;
    for (int i = 0; i < LENGTH(split_lines); i++)
        for (int32_t room = 0; room <= MOST; room++) {
            struct tr_csv_field fields[MOST + 1] = {{0}};
            int32_t count;
            const struct tr_lines lines = line_of(split_lines[i].line);
            assert_int_equal(tr_csv_split(&lines, split_lines[i].separator, fields, room, &count), TR_OK);
            if (count != split_lines[i].count) fail_msg("\"%s\": %d fields", split_lines[i].line, (int)count);
            for (int32_t k = 0; k <= MOST; k++) {
                if (k >= room || k >= count) {
                    assert_null(fields[k].at);
                    continue;
                }
                const char *wanted = split_lines[i].fields[k];
                if (fields[k].length != strlen(wanted) || memcmp(fields[k].at, wanted, fields[k].length) != 0)
                    fail_msg("\"%s\": field %d is \"%.*s\"", split_lines[i].line, (int)k,
                             (int)fields[k].length, fields[k].at);
            }
        }
}

static void bad_quotes_are_refused(void **unused)
{
    static const struct {
        const char *line, *message;
    } cases[] = {
        {"\"a", "here:1:1: a quote that is not closed on its line"},
        {"a,\"", "here:1:3: a quote that is not closed on its line"},
        {"a,\"b\"\"", "a quote that is not closed on its line"},
        {"\"a\"b,c", "here:1:4: text after a closed quote"},
        {"\"a\" \"b\"", "here:1:5: text after a closed quote"},
    };
    (void)unused;
    for (int i = 0; i < LENGTH(cases); i++) {
        struct tr_csv_field fields[4];
        int32_t count;
        const struct tr_lines lines = line_of(cases[i].line);
        assert_int_equal(tr_csv_split(&lines, ',', fields, 4, &count), TR_EFORMAT);
        if (!strstr(tr_error_message(), cases[i].message))
            fail_msg("%s: %s", cases[i].line, tr_error_message());
    }
}

/* ---- numbers ---- */

static void faults_of_numbers_are_told(void **unused)
{
    char digits[80];
    double number = 0;
    (void)unused;
    assert_string_equal(tr_csv_number(field_of(""), &number), "is empty");
    assert_string_equal(tr_csv_number(field_of("x"), &number), "is not a number");
    assert_string_equal(tr_csv_number((struct tr_csv_field){"1\0e", 3}, &number), "is not a number");
    assert_string_equal(tr_csv_number(field_of("1e999"), &number), "is too large");
    memset(digits, '1', sizeof digits);
    assert_null(tr_csv_number((struct tr_csv_field){digits, 63}, &number));
    assert_true(number > 1.1e62 && number < 1.2e62);
    assert_string_equal(tr_csv_number((struct tr_csv_field){digits, 64}, &number), "is not a number");
    for (size_t length = 1; length < 20; length++) { /* whatever follows */
        assert_null(tr_csv_number((struct tr_csv_field){digits, length}, &number));
        double wanted = 0;
        for (size_t i = 0; i < length; i++) wanted = wanted * 10 + 1;
        assert_true(number > wanted * (1 - 1e-15) && number < wanted * (1 + 1e-15));
    }
}

/* ---- columns ---- */

static void expect_column(const char *column, const struct tr_csv_field *fields, int32_t count, bool header,
                          const char *wanted)
{
    assert_int_equal(tr_csv_no_column("here", "label", column, fields, count, header), TR_EINVAL);
    assert_string_equal(tr_error_message(), wanted);
}

static void names_of_columns_are_proposed(void **unused)
{
    static struct tr_csv_field many[1026];
    static char names[1026][16], long_name[400], message[700];
    const struct tr_csv_field few[] = {field_of("price"), field_of("count"), field_of("")};
    (void)unused;
    expect_column(
        "pricy", few, 3, true,
        "here: label column \"pricy\" is neither a name in the first line nor a number from 0 to 2; did you "
        "mean \"price\"?");
    expect_column(
        "pricy", few, 3, false,
        "here: label column \"pricy\" is neither a name in the first line nor a number from 0 to 2");
    expect_column(
        "something", few, 1, true,
        "here: label column \"something\" is neither a name in the first line nor a number from 0 to 0");
    for (int i = 0; i < 1026; i++) {
        snprintf(names[i], sizeof names[i], "c%d", 1000000 + i * 37 % 1026);
        many[i] = field_of(i == 1023 ? "nearest" : i == 1024 ? "furthest" : names[i]);
    }
    expect_column("nearst", many, 1026, true,
                  "here: label column \"nearst\" is neither a name in the first line nor a number from 0 to "
                  "1025; did you "
                  "mean \"nearest\"?");
    expect_column(
        "furthst", many, 1026, true, /* beyond those that are searched */
        "here: label column \"furthst\" is neither a name in the first line nor a number from 0 to 1025");
    /* of a long name only the beginning */
    memset(long_name, 'x', sizeof long_name - 1);
    const struct tr_csv_field long_one = field_of(long_name);
    char column[256] = "";
    memset(column, 'x', 255);
    snprintf(message, sizeof message,
             "here: label column \"%s\" is neither a name in the first line nor a number from 0 to 0; did "
             "you mean "
             "\"%sx\"?",
             column, column);
    tr_csv_no_column("here", "label", column, &long_one, 1, true);
    assert_memory_equal(tr_error_message(), message, 300);
    for (int64_t at = 0, done = 0; !done; at++) {
        const int64_t live = tr_alloc_live();
        refuse_begin(at);
        assert_int_equal(tr_csv_no_column("here", "label", "pricy", few, 3, true), TR_EINVAL);
        done = refuse_end();
        assert_int_equal(tr_alloc_live(), live);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(separators_are_guessed),        cmocka_unit_test(decimal_commas_are_known),
        cmocka_unit_test(some_fields_say_nothing),       cmocka_unit_test(lines_are_split),
        cmocka_unit_test(bad_quotes_are_refused),        cmocka_unit_test(faults_of_numbers_are_told),
        cmocka_unit_test(names_of_columns_are_proposed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
