/* Tables of numbers. */
#include "base/text/log.h"
#include "data/source.h"
#include "data/tables/csv_fields.h"
#include "data/support.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void expect_row(tr_source *source, int64_t index, int count, const float *wanted)
{
    float features[16];
    int64_t length;
    assert_int_equal(tr_source_read(source, index, features, 16, &length, NULL), TR_OK);
    assert_int_equal(length, count);
    assert_memory_equal(features, wanted, (size_t)count * sizeof(float));
}

static int32_t class_of(tr_source *source, int64_t index)
{
    int32_t label = -1;
    assert_int_equal(tr_source_read(source, index, NULL, 0, NULL, &label), TR_OK);
    return label;
}

/* The same table in the forms that programs write. */
static void test_forms(void **unused)
{
    (void)unused;
    static const char *const forms[] = {
        "1.5,-2,0\n3,4e1,2\n",
        "a,b,c\n1.5,-2,0\n3,4e1,2\n",
        "a\tb\tc\n1.5\t-2\t0\n3\t4e1\t2",
        "\"a\";\"b\";\"c\"\n1.5;-2;0\n3;4e1;2\n",
        "1.5 -2   0\n  3 4e1 2 \n",
        ("\xef\xbb\xbf"
         "a, b, c\r\n1.5, -2, 0\r\n\r\n 3 ,\"40\", 2 \r\n\r\n"),
        "\n1.5,-2,0\n\n3,40,2\n\n",
    };
    for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++) {
        write_text("table", forms[i]);
        tr_source *source = must_open("{csv: {path: table}}");
        const struct tr_source_info *info = tr_source_info(source);
        assert_int_equal(info->count, 2);
        assert_int_equal(info->features, TR_FEATURE_FLOATS);
        assert_int_equal(info->floats, 2);
        assert_int_equal(info->labels, TR_LABEL_CLASS);
        assert_int_equal(info->classes, 3);
        expect_row(source, 0, 2, (const float[]){1.5f, -2});
        expect_row(source, 1, 2, (const float[]){3, 40});
        assert_int_equal(class_of(source, 0), 0);
        assert_int_equal(class_of(source, 1), 2);
        assert_int_equal(((const struct tr_source *)source)->unpacked, 2 * (2 + 1) * sizeof(float));
        tr_source_close(&source);
    }
}

static void test_columns(void **unused)
{
    (void)unused;
    write_text("table", "y,x1,x2,y2\n0,1,2,3\n1,4,5,6\n");
    tr_source *source = must_open("{csv: {path: table, label_columns: y}}");
    assert_int_equal(tr_source_info(source)->floats, 3);
    expect_row(source, 1, 3, (const float[]){4, 5, 6});
    assert_int_equal(class_of(source, 1), 1);
    tr_source_close(&source);
    source = must_open("{csv: {path: table, label: value, label_columns: [3, y]}}");
    assert_int_equal(tr_source_info(source)->values, 2);
    expect_row(source, 0, 2, (const float[]){1, 2});
    float values[2];
    assert_int_equal(tr_source_read(source, 1, NULL, 0, NULL, values), TR_OK);
    assert_true(values[0] == 1 && values[1] == 6); /* in the order of the table */
    tr_source_close(&source);
    source = must_open("{csv: {path: table, label: none}}");
    assert_int_equal(tr_source_info(source)->floats, 4);
    assert_int_equal(tr_source_info(source)->labels, TR_LABEL_NONE);
    tr_source_close(&source);
    expect_refusal("{csv: {path: table, label_columns: z}}", TR_EINVAL, "label column \"z\"");
    expect_refusal("{csv: {path: table, label_columns: 4}}", TR_EINVAL, "from 0 to 3");
    expect_refusal("{csv: {path: table, label_columns: [y, 0]}}", TR_EINVAL, "named twice");
    expect_refusal("{csv: {path: table, label_columns: [y, x1]}}", TR_EINVAL, "a class has one");
    expect_refusal("{csv: {path: table, label: none, label_columns: y}}", TR_EINVAL, "label is none");
    expect_refusal("{csv: {path: table, separator: tab}}", TR_EFORMAT, "no feature columns");
    expect_refusal("{csv: {path: table, header: no}}", TR_EFORMAT,
                   "table:1:1: field 0 \"y\" is not a number");
    expect_refusal("{csv: {path: table, classes: 1}}", TR_EFORMAT, "table:2:7: label 3");
}

static void test_standardize(void **unused)
{
    (void)unused;
    write_text("train", "1,5,0\n2,5,1\n3,5,0\n4,5,1\n");
    write_text("test", "2.5,6,0\n");
    tr_source *train = must_open("{csv: {path: train, standardize: true}}"), *test = NULL;
    double sum = 0, squares = 0;
    for (int64_t i = 0; i < 4; i++) {
        float features[2];
        assert_int_equal(tr_source_read(train, i, features, 2, NULL, NULL), TR_OK);
        sum += (double)features[0];
        squares += (double)features[0] * (double)features[0];
        assert_true(features[1] == 0); /* a constant column stays finite */
    }
    assert_true(fabs(sum) < 1e-6 && fabs(squares - 4) < 1e-6);
    const char *name;
    char *state;
    assert_int_equal(tr_source_state(train, &name, &state), TR_OK);
    assert_string_equal(name, "scaling.txt");
    assert_int_equal(tr_source_open("{csv: {path: test}}", test_directory(), state, &test), TR_OK);
    expect_row(test, 0, 2, (const float[]){0, 1});
    assert_int_equal(tr_source_info(test)->classes, 2);
    char *again;
    assert_int_equal(tr_source_state(test, &name, &again), TR_OK);
    assert_string_equal(again, state);
    tr_text_free(again);
    tr_source_close(&test);

    write_text("narrow", "1,0\n");
    assert_int_equal(tr_source_open("{csv: {path: narrow}}", test_directory(), state, &test), TR_EMISMATCH);
    assert_non_null(strstr(tr_error_message(), "has 1 features, the model was trained with 2"));
    for (size_t length = 0; length < strlen(state); length++) {
        char *cut = strndup(state, length);
        assert_int_equal(tr_source_open("{csv: {path: test}}", test_directory(), cut, &test), TR_EFORMAT);
        free(cut);
    }
    assert_int_equal(tr_source_open("{csv: {path: test}}", test_directory(),
                                    "trireme scaling 1, 2 classes, 2 lines\n0 1\n0 0\n", &test),
                     TR_EFORMAT);
    tr_text_free(state);
    tr_source_close(&train);
}

static void refuse(const char *text, const char *part)
{
    write_text("bad", text);
    expect_refusal("{csv: {path: bad}}", TR_EFORMAT, part);
}

static void test_bad_tables(void **unused)
{
    (void)unused;
    refuse("1,2,0\n3,4\n", "bad:2:1: 2 columns; the first line has 3");
    refuse("1,2,0\n3,4,0,0\n", "bad:2:1: 4 columns; the first line has 3");
    refuse("1,2,0\n3,x,0\n", "bad:2:3: field 1 \"x\" is not a number");
    refuse("1,2,0\n3,1234567890123456789012345678901234567890x,0\n",
           "bad:2:3: field 1 \"1234567890123456789012345678901234567890\" is not a number");
    refuse("1,2,0\n3,A,0\n",
           "is not a number; write numbers, name the column in categories, or leave it out");
    refuse("1,2,0\n3,z,0\n",
           "is not a number; write numbers, name the column in categories, or leave it out");
    refuse("1,2,0\n3,a Z,0\n",
           "is not a number; tables hold numbers: sentences with a class each are read by");
    refuse("1,2,0\n3,4-5,0\n", "bad:2:3: field 1 \"4-5\" is not a number");
    assert_null(strchr(tr_error_message(), ';')); /* nothing to advise */
    refuse("1,2,0\n3,4,5-6\n", "bad:2:5: field 2 \"5-6\" is not a number");
    assert_null(strchr(tr_error_message(), ';'));
    write_text("bad", "1,2,0\n3,4,z\n");
    expect_refusal("{csv: {path: bad, label: value}}", TR_EFORMAT, "\"z\" is not a number; write numbers");
    assert_null(strstr(tr_error_message(), "label: name"));
    expect_refusal("{csv: {path: bad, label_columns: -1}}", TR_EINVAL,
                   "label column \"-1\" is neither a name in the first line nor a number from 0 to 2");
    refuse("1,2,0\n3,,0\n", "bad:2:3: field 1 \"\" is empty");
    refuse("1,2,0\n3,nan,0\n", "is not a number");
    refuse("1,2,0\n3,inf,0\n", "is not a number");
    refuse("1,2,0\n3,1e400,0\n", "is too large");
    refuse("1,2,0\n3,1e39,0\n", "is too large for a float");
    refuse("1,2,0\n3,4,0.5\n", "label 0.5 is not a whole number");
    refuse("1,2,0\n3,4,-1\n", "label -1 is not a whole number");
    refuse("1,2,0\n3,4,1e30\n", "label 1e+30 is not a whole number");
    refuse("1,2,0\n\"3,4,0\n", "bad:2:1: a quote that is not closed");
    refuse("1,2,0\n\"3\"\"x,4,0\n", "bad:2:1: a quote that is not closed");
    refuse("1,2,0\n\"3\"x,4,0\n", "bad:2:4: text after a closed quote");
    write_file("bad", "1,2,0\n3,4\0,0\n", 13);
    expect_refusal("{csv: {path: bad}}", TR_EFORMAT, "bad:2:3");
}

/* Every way to cut a file gives a clear answer, never a wrong number of columns. */
static void test_every_truncation(void **unused)
{
    (void)unused;
    static const char text[] = "x,y,label\n1.25,-3,0\n\"7\",8e-1,2\n";
    for (size_t size = 0; size < sizeof text - 1; size++) {
        write_file("cut", text, size);
        tr_source *source = NULL;
        tr_status status = tr_source_open("{csv: {path: cut}}", test_directory(), NULL, &source);
        if (status == TR_OK) {
            assert_in_range(tr_source_info(source)->count, 1, 2);
            tr_source_close(&source);
        } else {
            assert_int_equal(status, TR_EFORMAT);
            assert_non_null(strstr(tr_error_message(), "cut"));
        }
    }
}

static void test_skip(void **unused)
{
    (void)unused;
    char text[4096] = "x,label\n";
    for (int i = 0; i < 100; i++) sprintf(text + strlen(text), i % 50 == 7 ? "%d;%d\n" : "%d,%d\n", i, i % 4);
    write_text("some", text);
    expect_refusal("{csv: {path: some}}", TR_EFORMAT, "some:9:1");
    expect_refusal("{csv: {path: some, on_bad_record: skip}}", TR_EFORMAT, "2 of 100 records are bad");
    tr_source *source = must_open("{csv: {path: some, on_bad_record: skip, max_bad: 0.02}}");
    assert_int_equal(tr_source_info(source)->count, 98);
    assert_int_equal(tr_source_info(source)->skipped, 2);
    for (int64_t i = 0; i < 98; i++) {
        int64_t original = i + (i >= 7) + (i >= 56);
        expect_row(source, i, 1, (const float[]){(float)original});
        assert_int_equal(class_of(source, i), original % 4);
    }
    tr_source_close(&source);
}

/* Numbers are the nearest doubles, as the C library reads them, in every form. */
static void test_numbers(void **unused)
{
    (void)unused;
    static const char *const good[] = {"0",
                                       "-0",
                                       "7",
                                       "-7",
                                       "123456789012345",
                                       "0.1",
                                       ".5",
                                       "5.",
                                       "-.25",
                                       "3.14159",
                                       "0.000000000000001",
                                       "1e5",
                                       "1E-5",
                                       "+3",
                                       "0x10",
                                       "9007199254740993",
                                       "0.30000000000000004",
                                       "123456789.123456789"};
    static const char *const bad[] = {"", ".", "-", "--1", "1.2.3", "1,5", "abc", "1e", "0x", "1 2", "1e999"};
    double number;
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        struct tr_csv_field field = {good[i], strlen(good[i])};
        const char *wrong = tr_csv_number(field, &number);
        if (wrong) fail_msg("%s %s", good[i], wrong);
        double expected = strtod(good[i], NULL);
        assert_memory_equal(&number, &expected, sizeof number);
    }
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct tr_csv_field field = {bad[i], strlen(bad[i])};
        if (!tr_csv_number(field, &number)) fail_msg("accepted \"%s\"", bad[i]);
    }
    uint32_t random = 1;
    for (int i = 0; i < 20000; i++) {
        char text[32];
        random = random * 1664525 + 1013904223;
        snprintf(text, sizeof text, "%.*f", (int)(random >> 29),
                 (double)(int32_t)random / (1 << (random >> 8 & 15)));
        struct tr_csv_field field = {text, strlen(text)};
        assert_null(tr_csv_number(field, &number));
        double expected = strtod(text, NULL);
        assert_memory_equal(&number, &expected, sizeof number);
    }
}

static void test_allocation_failures(void **unused)
{
    (void)unused;
    write_text("table", "a,b,c\n1,2,0\n3,4,1\n");
    expect_out_of_memory("{csv: {path: table, standardize: true}}");
}

static char logged[1024];
static int lines_logged;

static void keep_line(void *user, enum tr_log_level level, const char *message)
{
    (void)user, (void)level;
    lines_logged++;
    snprintf(logged, sizeof logged, "%s", message);
}

/* A bad field in the first row makes a header of it, which is said. */
static void test_a_row_taken_for_a_header(void **unused)
{
    (void)unused;
    static const struct {
        const char *text, *options, *warning;
    } cases[] = {
        {"1,nan,0\n2,3,1\n", "",
         ":1: the line is taken for a header, since field 1 \"nan\" is no number, but 2 "
         "of 3 fields are"},
        {"\n1,,0\n2,3,1\n", "", ":2: the line is taken for a header"},
        {"1,1234567890123456789012345678901234567890x,0\n2,3,1\n", "",
         "field 1 \"1234567890123456789012345678901234567890\" is no number"},
        {"a,b,0\n2,3,1\n", "", "since field 0 \"a\" is no number, but 1 of 3 fields are"},
        {"1,2,price\n2,3,1\n", ", label: value",
         "since field 2 \"price\" is no number, but 2 of 3 fields are"},
        {"1,2,price\n2,3,1\n", ", label: none", "since field 2 \"price\" is no number"},
        {"1,nan,0\n2,3,1\n", ", header: yes", NULL},
        {"a,b,c\n2,3,1\n", "", NULL},
        {"1,2,0\n2,3,1\n", "", NULL},
    };
    tr_log_set_sink(keep_line, NULL, TR_LOG_WARNING);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char description[64];
        lines_logged = 0;
        write_text("header", cases[i].text);
        snprintf(description, sizeof description, "{csv: {path: header%s}}", cases[i].options);
        tr_source_close(&(tr_source *){must_open(description)});
        assert_int_equal(lines_logged, cases[i].warning ? 1 : 0);
        if (cases[i].warning && !strstr(logged, cases[i].warning)) fail_msg("%s", logged);
    }
    tr_log_set_sink(NULL, NULL, TR_LOG_WARNING);
}

/* How many rows were left out is said where some were. */
static void test_rows_left_out_are_told(void **unused)
{
    static const struct {
        const char *text, *says;
    } cases[] = {
        {"1,,0\n2,3,1\n4,,1\n", ": left out 2 of 3 rows, which miss values"},
        {"1,1,0\n2,3,1\n4,5,1\n", NULL},
    };
    (void)unused;
    tr_log_set_sink(keep_line, NULL, TR_LOG_INFO);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        lines_logged = 0;
        write_text("gaps", cases[i].text);
        tr_source_close(&(tr_source *){must_open("{csv: {path: gaps, missing: skip, header: no}}")});
        assert_int_equal(lines_logged, cases[i].says ? 1 : 0);
        if (cases[i].says && !strstr(logged, cases[i].says)) fail_msg("%s", logged);
    }
    tr_log_set_sink(NULL, NULL, TR_LOG_WARNING);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_forms),
        cmocka_unit_test(test_columns),
        cmocka_unit_test(test_standardize),
        cmocka_unit_test(test_bad_tables),
        cmocka_unit_test(test_every_truncation),
        cmocka_unit_test(test_a_row_taken_for_a_header),
        cmocka_unit_test(test_rows_left_out_are_told),
        cmocka_unit_test(test_skip),
        cmocka_unit_test(test_numbers),
        cmocka_unit_test(test_allocation_failures),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
