/* What tables of practice bring: classes by name, values that are not there, columns of no use. */
#include "data/support.h"

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
    for (int i = 0; i < count; i++)
        if (features[i] != wanted[i])
            fail_msg("row %d, feature %d: %g, not %g", (int)index, i, (double)features[i], (double)wanted[i]);
}

static int32_t class_of(const tr_source *source, int64_t index)
{
    int32_t label = -1;
    assert_int_equal(tr_source_read(source, index, NULL, 0, NULL, &label), TR_OK);
    return label;
}

static void expect_classes(const tr_source *source, int count, const char *const *names)
{
    const struct tr_source_info *info = tr_source_info(source);
    assert_int_equal(info->classes, count);
    for (int i = 0; i < count; i++) assert_string_equal(info->class_names[i], names[i]);
}

static char *state_of(const tr_source *source)
{
    const char *name;
    char *state;
    assert_int_equal(tr_source_state(source, &name, &state), TR_OK);
    return state;
}

/* Names are numbered in the order of their bytes, whatever the order of the rows; with and without a header,
   quoted, in any column. */
static void test_names_of_classes(void **unused)
{
    (void)unused;
    static const char *const names[] = {"iris", "rose", "rose garden"};
    static const struct {
        const char *text, *options;
    } forms[] = {
        {"1,2,rose\n3,4,iris\n5,6,rose garden\n", ""},
        {"x,y,flower\n1,2,rose\n3,4,iris\n5,6,\"rose garden\"\n", ""},
        {"x\ty\tflower\n1\t2\trose\n3\t4\tiris\n5\t6\trose garden\n", ", label: name"},
        {"flower;x;y\nrose;1;2\niris;3;4\nrose garden;5;6\n", ", label_columns: flower"},
        {"rose;1;2\niris;3;4\nrose garden;5;6\n", ", label_columns: 0"},
    };
    for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++) {
        char description[128];
        write_text("flowers", forms[i].text);
        snprintf(description, sizeof description, "{csv: {path: flowers%s}}", forms[i].options);
        tr_source *source = must_open(description);
        assert_int_equal(tr_source_info(source)->count, 3);
        expect_classes(source, 3, names);
        expect_row(source, 2, 2, (const float[]){5, 6});
        assert_int_equal(class_of(source, 0), 1);
        assert_int_equal(class_of(source, 1), 0);
        assert_int_equal(class_of(source, 2), 2);
        tr_source_close(&source);
    }
}

/* Labels that look like numbers are names where that is said. */
static void test_numbers_as_names(void **unused)
{
    (void)unused;
    static const char *const names[] = {"10", "5", "None"};
    write_text("table", "a,b\n1,5\n2,10\n3,None\n4,10\n");
    tr_source *source = must_open("{csv: {path: table, label: name, missing: skip}}");
    expect_classes(source, 2, names);
    assert_int_equal(tr_source_info(source)->skipped, 1);
    assert_int_equal(class_of(source, 0), 1);
    assert_int_equal(class_of(source, 2), 0);
    tr_source_close(&source);
    source = must_open("{csv: {path: table, missing: skip}}"); /* else they are numbers */
    assert_int_equal(tr_source_info(source)->classes, 11);
    assert_null(tr_source_info(source)->class_names);
    tr_source_close(&source);
}

/* Other data take the numbers of the training data's names. */
static void test_names_are_shared(void **unused)
{
    (void)unused;
    static const char *const names[] = {"a", "b", "c"};
    write_text("train", "1,b\n2,c\n3,a\n");
    write_text("test", "1,c\n2,b\n");
    write_text("strange", "1,c\n2,bb\n");
    write_text("numbers", "1,0\n2,1\n");
    tr_source *train = must_open("{csv: {path: train}}"), *test = NULL;
    char *state = state_of(train), *again;
    assert_string_equal(state, "trireme scaling 1, 3 classes, 1 lines\n0 1\n"
                               "trireme classes 1, 3 classes, 3 lines\na\nb\nc\n");
    assert_int_equal(tr_source_open("{csv: {path: test}}", test_directory(), state, &test), TR_OK);
    expect_classes(test, 3, names);
    assert_int_equal(class_of(test, 0), 2);
    assert_int_equal(class_of(test, 1), 1);
    again = state_of(test);
    assert_string_equal(again, state);
    tr_text_free(again);
    tr_source_close(&test);
    assert_int_equal(tr_source_open("{csv: {path: strange}}", test_directory(), state, &test), TR_EFORMAT);
    assert_non_null(
        strstr(tr_error_message(), "strange:2:3: label \"bb\" is none of a, b, c; did you mean \"b\"?"));
    assert_int_equal(tr_source_open("{csv: {path: numbers}}", test_directory(), state, &test), TR_EFORMAT);
    assert_non_null(strstr(tr_error_message(), "numbers:1:3: label \"0\" is none of a, b, c"));
    for (size_t length = 0; length < strlen(state); length++) {
        char *cut = strndup(state, length);
        tr_status status = tr_source_open("{csv: {path: test}}", test_directory(), cut, &test);
        /* A cut between the two parts leaves a whole state of another model. */
        if (status == TR_OK) fail_msg("a state of %zu bytes was taken", length);
        assert_true(status == TR_EFORMAT);
        free(cut);
    }
    static const char *const bad[] = {
        "trireme scaling 1, 2 classes, 1 lines\n0 1\ntrireme classes 1, 2 classes, 2 lines\nb\na\n",
        "trireme scaling 1, 2 classes, 1 lines\n0 1\ntrireme classes 1, 2 classes, 2 lines\na\na\n",
        "trireme scaling 1, 2 classes, 1 lines\n0 1\ntrireme classes 1, 2 classes, 2 lines\na\nb\nc\n",
        "trireme scaling 1, 2 classes, 1 lines\n0 1\ntrireme words 1, 2 classes, 2 lines\na\nb\n",
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_int_equal(tr_source_open("{csv: {path: test}}", test_directory(), bad[i], &test), TR_EFORMAT);
    tr_source_close(&train);
    tr_text_free(state);
    /* Of many classes the nearest alone is told; up to 20 are listed. */
    for (int count = 20; count <= 21; count++) {
        char table[512] = "";
        for (int i = 0; i < count; i++) sprintf(table + strlen(table), "%d,name%02d\n", i, i);
        write_text("train", table);
        train = must_open("{csv: {path: train}}");
        state = state_of(train);
        write_text("strange", "1,nane07\n");
        assert_int_equal(tr_source_open("{csv: {path: strange}}", test_directory(), state, &test),
                         TR_EFORMAT);
        const char *told = strstr(tr_error_message(), "strange:1:3: label \"nane07\" is none of ");
        assert_non_null(told);
        assert_non_null(strstr(told, "; did you mean \"name07\"?"));
        assert_int_equal(strstr(told, "name00, ") != NULL, count == 20);
        assert_int_equal(strstr(told, "the 21 classes of the training data") != NULL, count == 21);
        tr_source_close(&train);
        tr_text_free(state);
    }
    assert_int_equal(tr_source_open("{csv: {path: test, label: name}}", test_directory(),
                                    "trireme scaling 1, 2 classes, 1 lines\n0 1\n", &test),
                     TR_EMISMATCH);
}

static void test_what_is_wrong_with_labels(void **unused)
{
    (void)unused;
    write_text("mixed", "1,0\n2,one\n3,2\n");
    expect_refusal(
        "{csv: {path: mixed}}", TR_EFORMAT,
        "mixed:2:3: field 1 \"one\" is not a number; the labels of other rows are: correct it, or set "
        "label: name where all are names");
    write_text("empty", "1,a\n2,\n");
    expect_refusal("{csv: {path: empty}}", TR_EFORMAT,
                   "empty:2:3: field 1 \"\" is missing; give the label, or set missing: skip");
    write_text("two", "1,a\n2,b\n");
    expect_refusal("{csv: {path: two, classes: 3}}", TR_EFORMAT, "2 classes by name, but classes is 3");
    tr_source *two = must_open("{csv: {path: two, classes: 2}}");
    assert_int_equal(tr_source_info(two)->classes, 2);
    tr_source_close(&two);
    char *many = calloc(1, 100000);
    for (int i = 0; i <= 4096; i++) sprintf(many + strlen(many), "%d,n%d\n", i, i);
    write_text("many", many);
    free(many);
    expect_refusal("{csv: {path: many}}", TR_EFORMAT,
                   "many:4097:6: there are more than 4096 different labels");
}

/* Sentences and words in the place of numbers: the way out is named. */
static void test_what_is_no_table_of_numbers(void **unused)
{
    (void)unused;
    write_text("films", "text,label\nwhat a fine film,1\nquite bad,0\n");
    expect_refusal("{csv: {path: films}}", TR_EFORMAT,
                   "films:2:1: column \"text\": \"what a fine film\" is not a number; tables hold numbers: "
                   "sentences with a "
                   "class each are read by the format `text`");
    write_text("words", "colour,size,label\nred,1,0\nblue,2,1\n");
    expect_refusal("{csv: {path: words}}", TR_EFORMAT,
                   "words:2:1: column \"colour\": \"red\" is not a number; write numbers, name the column in "
                   "categories, or leave it out by "
                   "skip_columns");
    /* A name of 70 letters is cut to 60; a column without a name has a number. */
    write_text("names",
               "size,aaaaaaaaaabbbbbbbbbbccccccccccddddddddddeeeeeeeeeeffffffffffgggggggggg,\"\",label\n"
               "1,2,3,0\n1,red,3,0\n");
    expect_refusal("{csv: {path: names}}", TR_EFORMAT,
                   "names:3:3: column \"aaaaaaaaaabbbbbbbbbbccccccccccddddddddddeeeeeeeeeeffffffffff\": "
                   "\"red\" is not a number");
    write_text("names", "size,\"\",label\n1,red,0\n");
    expect_refusal("{csv: {path: names}}", TR_EFORMAT, "names:2:3: field 1 \"red\" is not a number");
    tr_source *source = must_open("{csv: {path: words, skip_columns: colour}}");
    assert_int_equal(tr_source_info(source)->floats, 1);
    expect_row(source, 1, 1, (const float[]){2});
    tr_source_close(&source);
    write_text("bare", "red,1,0\nblue,2,1\n");
    source = must_open("{csv: {path: bare, skip_columns: 0}}");
    assert_int_equal(tr_source_info(source)->count, 2);
    tr_source_close(&source);
    expect_refusal("{csv: {path: words, skip_columns: weight}}", TR_EINVAL, "skipped column \"weight\"");
    expect_refusal("{csv: {path: words, skip_columns: label}}", TR_EINVAL, "is the label");
    expect_refusal("{csv: {path: words, skip_columns: [colour, size]}}", TR_EFORMAT, "no feature columns");
    write_text("sentences", "good film, really\n");
    expect_refusal("{text: {path: sentences}}", TR_EFORMAT, "or take the format csv for a table of numbers");
}

#define GAPS "x,y,label\n1,,0\n?,4,1\n3,NA,0\n5,8,1\nnan,null,0\n"

static void test_gaps(void **unused)
{
    (void)unused;
    write_text("gaps", GAPS);
    expect_refusal("{csv: {path: gaps}}", TR_EFORMAT,
                   "gaps:2:3: column \"y\": \"\" is empty; set missing: skip, mean or constant");
    tr_source *source = must_open("{csv: {path: gaps, missing: skip}}");
    assert_int_equal(tr_source_info(source)->count, 1);
    assert_int_equal(tr_source_info(source)->skipped, 4);
    expect_row(source, 0, 2, (const float[]){5, 8});
    tr_source_close(&source);
    source = must_open("{csv: {path: gaps, missing: constant, missing_value: -1}}");
    assert_int_equal(tr_source_info(source)->count, 5);
    expect_row(source, 0, 2, (const float[]){1, -1});
    expect_row(source, 4, 2, (const float[]){-1, -1});
    tr_source_close(&source);
    source = must_open("{csv: {path: gaps, missing: mean}}");
    expect_row(source, 0, 2, (const float[]){1, 6});
    expect_row(source, 1, 2, (const float[]){3, 4});
    expect_row(source, 4, 2, (const float[]){3, 6});
    char *state = state_of(source);
    assert_string_equal(state, "trireme scaling 1, 2 classes, 2 lines\n0 1 3\n0 1 6\n");
    tr_source_close(&source);

    /* The means of the training data stand in other data, too. */
    write_text("test", "x,y,label\n,10,0\n20,,1\n");
    assert_int_equal(tr_source_open("{csv: {path: test, missing: mean}}", test_directory(), state, &source),
                     TR_OK);
    expect_row(source, 0, 2, (const float[]){3, 10});
    expect_row(source, 1, 2, (const float[]){20, 6});
    char *again = state_of(source);
    assert_string_equal(again, state);
    tr_source_close(&source);
    tr_text_free(again);
    tr_text_free(state);
    static const char *const bad[] = {"trireme scaling 1, 2 classes, 2 lines\n0 1 3\n0 1\n",
                                      "trireme scaling 1, 2 classes, 2 lines\n0 1\n0 1 3\n",
                                      "trireme scaling 1, 2 classes, 2 lines\n0 1 3 4\n0 1 3 4\n"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_int_equal(
            tr_source_open("{csv: {path: test, missing: mean}}", test_directory(), bad[i], &source),
            TR_EFORMAT);
    assert_int_equal(tr_source_open("{csv: {path: test, missing: mean}}", test_directory(),
                                    "trireme scaling 1, 2 classes, 2 lines\n0 1\n0 1\n", &source),
                     TR_EMISMATCH);
    write_text("never", "1,,0\n2,,1\n");
    write_text("gap", "1,,0\n2,3,1\n"); /* a gap in the first line makes no header of it */
    source = must_open("{csv: {path: gap, missing: constant}}");
    assert_int_equal(tr_source_info(source)->count, 2);
    tr_source_close(&source);
    expect_refusal("{csv: {path: never, missing: mean, header: no}}", TR_EFORMAT, "feature 1");
    expect_refusal("{csv: {path: never, missing: skip, header: no}}", TR_EFORMAT, "every row misses a value");
}

/* What is filled in is standardized like the rest: the mean becomes 0. */
static void test_gaps_and_scaling(void **unused)
{
    (void)unused;
    write_text("gaps", "1,0\n,1\n3,0\n");
    tr_source *source = must_open("{csv: {path: gaps, missing: mean, standardize: true}}");
    float root = (float)(1 / sqrt(2.0 / 3));
    expect_row(source, 0, 1, (const float[]){-root});
    expect_row(source, 1, 1, (const float[]){0});
    expect_row(source, 2, 1, (const float[]){root});
    tr_source_close(&source);
}

static void test_sentences_with_names(void **unused)
{
    (void)unused;
    static const char *const names[] = {"bad", "good"};
    write_text("train", "what a film\tgood\nnever again\tbad\nnot again\tbad\n");
    write_text("test", "again\tgood\n");
    tr_source *train = must_open("{text: {path: train}}"), *test = NULL;
    expect_classes(train, 2, names);
    assert_int_equal(class_of(train, 0), 1);
    assert_int_equal(class_of(train, 2), 0);
    char *state = state_of(train);
    assert_non_null(strstr(state, "\ntrireme classes 1, 2 classes, 2 lines\nbad\ngood\n"));
    assert_int_equal(tr_source_open("{text: {path: test}}", test_directory(), state, &test), TR_OK);
    expect_classes(test, 2, names);
    assert_int_equal(class_of(test, 0), 1);
    tr_source_close(&test);
    write_text("test", "again\tfine\n");
    assert_int_equal(tr_source_open("{text: {path: test}}", test_directory(), state, &test), TR_EFORMAT);
    assert_non_null(strstr(tr_error_message(), "label \"fine\" is none of bad, good"));
    tr_source_close(&train);
    tr_text_free(state);
    write_text("hole", "what a film\tgood\nnever again\t\n");
    expect_refusal("{text: {path: hole}}", TR_EFORMAT, "hole:2:13: no label after the tab");
}

static void test_allocation_failures(void **unused)
{
    (void)unused;
    static const char *const descriptions[] = {"{csv: {path: table, missing: mean, standardize: true}}",
                                               "{text: {path: words}}"};
    write_text("table", "a,b,c\n1,,x\n3,4,y\n,5,z\n");
    write_text("words", "one two\tx\nthree\ty\n");
    for (size_t i = 0; i < sizeof descriptions / sizeof descriptions[0]; i++)
        expect_out_of_memory(descriptions[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names_of_classes),
        cmocka_unit_test(test_numbers_as_names),
        cmocka_unit_test(test_names_are_shared),
        cmocka_unit_test(test_what_is_wrong_with_labels),
        cmocka_unit_test(test_what_is_no_table_of_numbers),
        cmocka_unit_test(test_gaps),
        cmocka_unit_test(test_gaps_and_scaling),
        cmocka_unit_test(test_sentences_with_names),
        cmocka_unit_test(test_allocation_failures),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
