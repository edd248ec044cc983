/* Columns of names as features: the numbers that they become, what is unknown and what is missing, and the
 * state that other data sets read them by.
 */
#include "base/alloc.h"
#include "data/support.h"
#include "data/tables/categories.h"
#include "data/tables/scaling.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void expect_row(const tr_source *source, int64_t index, int count, const float *wanted)
{
    float features[16];
    int64_t length;
    assert_int_equal(tr_source_read(source, index, features, 16, &length, NULL), TR_OK);
    assert_int_equal(length, count);
    assert_int_equal(tr_source_info(source)->floats, count);
    for (int i = 0; i < count; i++)
        if (features[i] != wanted[i])
            fail_msg("row %d, number %d: %g, not %g", (int)index, i, (double)features[i], (double)wanted[i]);
}

static tr_source *must_open_with(const char *description, const char *state)
{
    tr_source *source;
    if (tr_source_open(description, test_directory(), state, &source) != TR_OK)
        fail_msg("%s", tr_error_message());
    return source;
}

static void expect_refusal_with(const char *description, const char *state, tr_status status,
                                const char *part)
{
    tr_source *source;
    assert_int_equal(tr_source_open(description, test_directory(), state, &source), status);
    if (!strstr(tr_error_message(), part)) fail_msg("%s", tr_error_message());
}

static char *state_of(const tr_source *source)
{
    const char *name;
    char *state;
    assert_int_equal(tr_source_state(source, &name, &state), TR_OK);
    return state;
}

#define ROW(...)                                                                                             \
    (const float[])                                                                                          \
    {                                                                                                        \
        __VA_ARGS__                                                                                          \
    }

static const char birds[] = "island,mass,sex,kind\n"
                            "Dream,1,male,a\n"
                            "Biscoe,3,female,b\n"
                            "\"Big, far\",5,male,a\n"
                            "Dream,7,NA,b\n";

/* In the order of their bytes, in the place of the column, with and without a header. */
static void test_names_become_numbers(void **unused)
{
    (void)unused;
    write_text("birds", birds);
    write_text("bare", strchr(birds, '\n') + 1);
    static const char *const forms[] = {
        "{csv: {path: birds, categories: [sex, island], missing: constant}}",
        "{csv: {path: birds, categories: [0, 2], missing: mean}}",
        "{csv: {path: bare, categories: [2, 0], missing: mean, header: no}}",
        "{csv: {path: bare, categories: [0, 2], missing: constant}}",
    };
    for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++) {
        tr_source *source = must_open(forms[i]);
        assert_int_equal(tr_source_info(source)->count, 4);
        expect_row(source, 0, 6, ROW(0, 0, 1, 1, 0, 1)); /* Big, far; Biscoe; Dream; mass; female; male */
        expect_row(source, 1, 6, ROW(0, 1, 0, 3, 1, 0));
        expect_row(source, 2, 6, ROW(1, 0, 0, 5, 0, 1));
        expect_row(source, 3, 6, ROW(0, 0, 1, 7, 0, 0)); /* a sex that is missing is none of them */
        tr_source_close(&source);
    }
}

/* Numbers are scaled and filled in, and names are not. */
static void test_numbers_beside_names(void **unused)
{
    (void)unused;
    write_text("mixed", "a,1,1\nb,NA,0\na,5,1\nNA,9,0\n"); /* 1, 5, 5, 9: mean 5, deviation sqrt(8) */
    tr_source *source = must_open("{csv: {path: mixed, categories: 0, missing: mean, standardize: true}}");
    const float far = (float)(4 / sqrt(8));
    expect_row(source, 0, 3, ROW(1, 0, -far));
    expect_row(source, 1, 3, ROW(0, 1, 0));
    expect_row(source, 2, 3, ROW(1, 0, 0));
    expect_row(source, 3, 3, ROW(0, 0, far));
    tr_source_close(&source);
}

/* Names behind numbers and between them. */
static void test_names_between_numbers(void **unused)
{
    (void)unused;
    write_text("between", "1,a,10,x,0\n3,b,30,x,0\n"); /* means 2 and 20, deviations 1 and 10 */
    tr_source *source =
        must_open("{csv: {path: between, categories: [1, 3], standardize: true, missing: mean}}");
    expect_row(source, 0, 5, ROW(-1, 1, 0, -1, 1));
    expect_row(source, 1, 5, ROW(1, 0, 1, 1, 1));
    char *state = state_of(source);
    assert_non_null(strstr(state, " 5 lines\n2 1 2\n0 1 0.5\n0 1 0.5\n20 10 20\n0 1 1\n"));
    tr_free(state);
    tr_source_close(&source);
}

/* A name that is missing is none of them, also where nothing else is there. */
static void test_a_lonely_column(void **unused)
{
    (void)unused;
    write_text("lonely", "a,1\n,0\nb,0\n");
    tr_source *source = must_open("{csv: {path: lonely, categories: 0, missing: constant, header: no}}");
    expect_row(source, 0, 2, ROW(1, 0));
    expect_row(source, 1, 2, ROW(0, 0));
    expect_row(source, 2, 2, ROW(0, 1));
    char *state = state_of(source);
    tr_source_close(&source);
    source = must_open_with("{csv: {path: lonely, categories: 0, missing: constant, header: no}}", state);
    expect_row(source, 2, 2, ROW(0, 1));
    tr_source_close(&source);
    tr_free(state);
    write_text("lonely", "a,1\n,0\n"); /* with a single name */
    source = must_open("{csv: {path: lonely, categories: 0, missing: constant, header: no}}");
    state = state_of(source);
    tr_source_close(&source);
    source = must_open_with("{csv: {path: lonely, categories: 0, missing: constant, header: no}}", state);
    expect_row(source, 0, 1, ROW(1));
    expect_row(source, 1, 1, ROW(0));
    tr_source_close(&source);
    expect_refusal_with(
        "{csv: {path: lonely, missing: constant, header: no}}", state, TR_EMISMATCH,
        "feature 0 (counted from 0, without labels) is a number, the model was trained with names");
    tr_free(state);
}

/* Another data set has the names of the first; others are none of them, or stop. */
static void test_other_data(void **unused)
{
    (void)unused;
    write_text("birds", birds);
    write_text("more", "island,mass,sex,kind\nDream,2,female,a\nTorgersen,4,male,b\n,6,male,a\n");
    tr_source *first = must_open("{csv: {path: birds, categories: [island, sex], missing: constant}}"),
              *source;
    char *state = state_of(first);
    tr_source_close(&first);
    assert_non_null(strstr(state,
                           "trireme categories 1, 0 classes, 8 lines\n3\nBig, far\nBiscoe\nDream\n0\n2\n"
                           "female\nmale\n"));
    source = must_open_with("{csv: {path: more, categories: [island, sex], missing: constant}}", state);
    expect_row(source, 0, 6, ROW(0, 0, 1, 2, 1, 0));
    expect_row(source, 1, 6, ROW(0, 0, 0, 4, 0, 1)); /* an island that nobody knows */
    expect_row(source, 2, 6, ROW(0, 0, 0, 6, 0, 1)); /* and none */
    char *again = state_of(source);
    assert_string_equal(again, state); /* what is written is what was read */
    tr_free(again);
    tr_source_close(&source);
    expect_refusal_with("{csv: {path: more, categories: [island, sex], missing: constant, unknown: stop}}",
                        state, TR_EFORMAT,
                        "more:3:1: column \"island\": \"Torgersen\" is no name of the training data; set "
                        "unknown: zeros, or correct it");
    assert_null(strstr(tr_error_message(), "skip_columns")); /* it is in categories */
    expect_refusal_with("{csv: {path: more, categories: [island, sex]}}", state, TR_EFORMAT,
                        "more:4:1: column \"island\": \"\" is missing; set missing: skip, mean or constant");
    source = must_open_with("{csv: {path: more, categories: [island, sex], missing: skip}}", state);
    assert_int_equal(tr_source_info(source)->count, 2);
    tr_source_close(&source);
    expect_refusal_with(
        "{csv: {path: more, categories: [island], missing: constant}}", state, TR_EMISMATCH,
        "feature 2 (counted from 0, without labels) is a number, the model was trained with names "
        "there");
    expect_refusal_with(
        "{csv: {path: more, categories: [island, mass], skip_columns: sex, missing: constant}}", state,
        TR_EMISMATCH, "has 2 features, the model was trained with 3");
    expect_refusal_with(
        "{csv: {path: more, categories: [island, mass, sex], missing: constant}}", state, TR_EMISMATCH,
        "feature 1 (counted from 0, without labels) is of names, the model was trained with numbers");
    tr_free(state);
}

/* A row that is bad while names are learned is so when numbers are read, too. */
static void test_bad_names(void **unused)
{
    static const char bad[] = "a,1,0\nb\0c,2,1\nd,3,0\n";
    (void)unused;
    write_file("bad", bad, sizeof bad - 1);
    tr_source *source = must_open("{csv: {path: bad, categories: 0, on_bad_record: skip, max_bad: 1}}");
    assert_int_equal(tr_source_info(source)->count, 2);
    expect_row(source, 0, 3, ROW(1, 0, 1));
    expect_row(source, 1, 3, ROW(0, 1, 3));
    tr_source_close(&source);
}

enum { NAMES = 4096, COLUMNS = (1 << 20) / NAMES };

/* Columns of so many names each, and perhaps one of numbers. */
static void write_names(int names, bool number)
{
    char *text = malloc((size_t)names * (8 * COLUMNS + 8)), *at = text;
    assert_non_null(text);
    for (int i = 0; i < names; i++) {
        for (int k = 0; k < COLUMNS; k++) at += sprintf(at, "n%d,", i);
        at += sprintf(at, "%s%d\n", number ? "7," : "", i % 2);
    }
    write_file("names", text, (size_t)(at - text));
    free(text);
}

/* Each name is a number of a row. */
static void test_names_have_limits(void **unused)
{
    char description[COLUMNS * 5 + 64] = "{csv: {path: names, categories: [0";
    (void)unused;
    for (int k = 1; k < COLUMNS; k++)
        snprintf(description + strlen(description), sizeof description - strlen(description), ", %d", k);
    strcat(description, "]}}");
    write_names(NAMES, false);
    tr_source *source = must_open(description);
    assert_int_equal(tr_source_info(source)->floats, 1 << 20);
    tr_source_close(&source);
    write_names(NAMES, true);
    expect_refusal(description, TR_EFORMAT,
                   "names: the names of its categories make 1048577 numbers a row; at most 1048576 can be");
    write_names(NAMES + 1, false);
    expect_refusal(description, TR_EFORMAT,
                   "names:4097:1: field 0 has more than 4096 names, too many for categories");
}

static void test_wrong_columns(void **unused)
{
    (void)unused;
    write_text("birds", birds);
    expect_refusal("{csv: {path: birds, categories: islan}}", TR_EINVAL, "did you mean \"island\"?");
    expect_refusal("{csv: {path: birds, categories: [kind]}}", TR_EINVAL,
                   "column \"kind\" of categories is the label; name features there");
    expect_refusal("{csv: {path: birds, categories: [sex], skip_columns: [sex]}}", TR_EINVAL,
                   "column \"sex\" of categories is skipped");
    write_text("nameless", "x,y,z\n,1,0\n?,2,1\n");
    expect_refusal("{csv: {path: nameless, categories: [x], missing: constant}}", TR_EFORMAT,
                   "feature 0 (counted from 0, without labels) has no name in any row");
    char *many = malloc(1 << 20), *at = many + sprintf(many, "\"full name\",size,y\n");
    for (int i = 0; i < 4097; i++) at += sprintf(at, "n%d,%d,0\n", i, i);
    write_text("many", many);
    expect_refusal("{csv: {path: many, categories: full name}}", TR_EFORMAT,
                   "many:4098:1: column \"full name\" has more than 4096 names, too many for categories");
    write_text("many", strchr(many, '\n') + 1);
    free(many);
    expect_refusal("{csv: {path: many, categories: 0}}", TR_EFORMAT,
                   "many:4097:1: field 0 has more than 4096 names, too many for categories");
}

/* ---- states ---- */

static void expect_no_state(const char *state, const char *part)
{
    struct tr_categories categories;
    assert_int_equal(tr_categories_read(state, &categories), TR_EFORMAT);
    tr_categories_release(&categories);
    if (!strstr(tr_error_message(), part)) fail_msg("%s", tr_error_message());
}

static void test_damaged_states(void **unused)
{
    (void)unused;
    struct tr_categories categories;
    assert_int_equal(tr_categories_read(NULL, &categories), TR_OK);
    assert_int_equal(categories.columns, 0);
    assert_int_equal(tr_categories_read("trireme scaling 1, 0 classes, 1 lines\n0 1\n", &categories), TR_OK);
    assert_int_equal(categories.columns, 0);
    expect_no_state("\ntrireme categories 1, 0 classes, 3 lines\n2\na\n", "ends too early");
    expect_no_state("\ntrireme categories 1, 0 classes, 2 lines\n2\na\n", "ends too early");
    expect_no_state("\ntrireme categories 1, 0 classes, 3 lines\n2\nb\na\n",
                    "categories:4: names do not ascend; take the file that was saved with the model");
    expect_no_state("\ntrireme categories 1, 0 classes, 2 lines\n0000000000000001\na\n",
                    "categories:2: is not the number of the names");
    expect_no_state("\ntrireme categories 1, 0 classes, 3 lines\n2\nab\na\n", "names do not ascend");
    expect_no_state("\ntrireme categories 1, 0 classes, 3 lines\n2\na\na\n", "names do not ascend");
    expect_no_state("\ntrireme categories 1, 0 classes, 1 lines\n5000\n", "is not the number of the names");
    expect_no_state("\ntrireme categories 1, 0 classes, 1 lines\n-1\n", "is not the number of the names");
    expect_no_state("\ntrireme categories 1, 0 classes, 0 lines\n", "has no columns");
    expect_no_state("\ntrireme categories 1, 0 classes, 1 lines\n0\nmore\n",
                    "more lines than its first line says");
    /* Names that make another row than the scaling is of. */
    struct tr_scaling scaling;
    int32_t classes;
    assert_int_equal(tr_scaling_read("trireme scaling 1, 0 classes, 1 lines\n0 1\n"
                                     "trireme categories 1, 0 classes, 3 lines\n2\na\nb\n",
                                     &scaling, &classes),
                     TR_EFORMAT);
    assert_non_null(strstr(tr_error_message(), "is of 1 numbers, its categories make 2"));
}

/* Rows of a caller: numbers of names, -1 for others, NaN for none. */
static void test_rows_of_callers(void **unused)
{
    (void)unused;
    struct tr_scaling scaling;
    int32_t classes;
    float row[4], given[][2] = {{1, 10}, {0, 20}, {-1, 30}, {NAN, 40}, {2, 50}};
    assert_int_equal(tr_scaling_read("trireme scaling 1, 0 classes, 3 lines\n0 1\n0 1\n10 5\n"
                                     "trireme categories 1, 0 classes, 4 lines\n2\na\nb\n0\n",
                                     &scaling, &classes),
                     TR_OK);
    assert_int_equal(tr_scaling_columns(&scaling), 2);
    for (int i = 0; i < 5; i++) {
        tr_scaling_apply(&scaling, 1, given[i], row);
        assert_true(row[0] == (i == 1) && row[1] == (i == 0) && row[2] == (given[i][1] - 10) / 5);
    }
    tr_scaling_release(&scaling);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names_become_numbers),
        cmocka_unit_test(test_numbers_beside_names),
        cmocka_unit_test(test_names_between_numbers),
        cmocka_unit_test(test_a_lonely_column),
        cmocka_unit_test(test_other_data),
        cmocka_unit_test(test_wrong_columns),
        cmocka_unit_test(test_names_have_limits),
        cmocka_unit_test(test_bad_names),
        cmocka_unit_test(test_damaged_states),
        cmocka_unit_test(test_rows_of_callers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
