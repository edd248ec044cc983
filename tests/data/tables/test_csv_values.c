/* One example as a line of numbers: numbers, names and missing values by their columns, messages with line
 * and column, headers, and memory that there is none of.
 */
#include "base/fail.h"
#include "data/tables/csv_values.h"
#include "refuse.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define COLUMNS 3

/* Column 1 has two names. */
static int32_t names_of(const void *user, int32_t column)
{
    (void)user;
    return column == 1 ? 2 : 0;
}

static tr_status find(const void *user, int32_t column, const char *name, float *value)
{
    (void)user;
    assert_int_equal(column, 1);
    *value = strcmp(name, "green") == 0 ? 1 : 0;
    if (*value == 1 || strcmp(name, "red") == 0) return TR_OK;
    return tr_fail(TR_EINVAL, "there is no name \"%s\"", name);
}

static const struct tr_csv_namer namer = {names_of, find, NULL};

static tr_status read_line(const char *line, bool named, float *values)
{
    struct tr_lines lines = tr_lines_of("given", line, strlen(line));
    assert_true(tr_lines_next(&lines));
    return tr_csv_values(&lines, ',', COLUMNS, named ? &namer : NULL, values);
}

static void test_values(void **state)
{
    static const struct {
        const char *line;
        bool named;
        float values[COLUMNS];
    } cases[] = {
        {"1.5,2,-3", false, {1.5F, 2, -3}},
        {" 1e3 , \"7\" ,0", false, {1000, 7, 0}},
        {"3.4e38,-3.4e38,1e-3", false, {3.4e38F, -3.4e38F, 1e-3F}},
        {"?,,NA", false, {NAN, NAN, NAN}},
        {"4,green,5", true, {4, 1, 5}},
        {"4,\"red\",5", true, {4, 0, 5}},
        {"none,?,5", true, {NAN, NAN, 5}},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        float values[COLUMNS] = {99, 99, 99};
        if (read_line(cases[i].line, cases[i].named, values) != TR_OK) fail_msg("%s", tr_error_message());
        for (int k = 0; k < COLUMNS; k++)
            if (isnan(cases[i].values[k]) ? !isnan(values[k]) : values[k] != cases[i].values[k])
                fail_msg("%s: number %d is %g", cases[i].line, k, (double)values[k]);
    }
}

#define TEN "xxxxxxxxxx"

static void test_refusals(void **state)
{
    static const struct {
        const char *line;
        bool named;
        const char *message;
    } cases[] = {
        {"1,2", false, "given:1:1: 2 numbers, the network takes 3"},
        {"1,red,2,3", true, "given:1:1: 4 values, the network takes 3"},
        {"1,2,1e39", false, "given:1:5: field 2 \"1e39\" is too large"},
        {"-1e39,2,3", false, "given:1:1: field 0 \"-1e39\" is too large"},
        {"1,red,3", false, "given:1:3: field 1 \"red\" "},
        {"1,blue,3", true, "given:1:3: there is no name \"blue\""},
        {"1,2," TEN TEN TEN TEN "y", false, "field 2 \"" TEN TEN TEN TEN "\" "},
        {"1,\"2,3", false, "given:1:3: "},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        float values[COLUMNS];
        assert_int_equal(read_line(cases[i].line, cases[i].named, values), TR_EFORMAT);
        if (!strstr(tr_error_message(), cases[i].message))
            fail_msg("%s: \"%s\" lacks \"%s\"", cases[i].line, tr_error_message(), cases[i].message);
    }
}

static int32_t all_have_names(const void *user, int32_t column)
{
    (void)user;
    (void)column;
    return 1;
}

static void test_headers(void **state)
{
    static const struct {
        const char *line;
        bool named, names;
    } cases[] = {
        {"a,b,c", false, true}, {"a,5,c", false, false},  {"a,b,5", false, false}, {"a,?,c", false, false},
        {"a,5,c", true, true},  {"a,red,5", true, false}, {"a,\"b", false, false},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct tr_lines lines = tr_lines_of("given", cases[i].line, strlen(cases[i].line));
        assert_true(tr_lines_next(&lines));
        if (tr_csv_is_names(&lines, ',', cases[i].named ? &namer : NULL) != cases[i].names)
            fail_msg("%s%s", cases[i].line, cases[i].names ? " is no header" : " is a header");
    }
    /* A line of columns of names alone may be an example. */
    static const struct tr_csv_namer all = {all_have_names, find, NULL};
    struct tr_lines lines = tr_lines_of("given", "a,b", 3);
    assert_true(tr_lines_next(&lines));
    assert_false(tr_csv_is_names(&lines, ',', &all));
}

static void test_no_memory(void **state)
{
    (void)state;
    for (int64_t at = 0, done = 0; !done; at++) {
        float values[COLUMNS];
        const int64_t live = tr_alloc_live();
        refuse_begin(at);
        const tr_status status = read_line("1,green,3", true, values);
        done = refuse_end();
        assert_int_equal(status, done ? TR_OK : TR_ENOMEM);
        assert_int_equal(tr_alloc_live(), live);
        assert_true(!done || at >= 2); /* the fields, and the name */
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_values),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_headers),
        cmocka_unit_test(test_no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
