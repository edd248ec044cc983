/* Labelled sentences and vocabularies. */
#include "data/support.h"
#include "data/text/vocabulary.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void expect_tokens(tr_source *source, int64_t index, const char *wanted, int32_t wanted_label)
{
    int32_t tokens[64], label = -1;
    int64_t length;
    char text[256] = "";
    assert_true(tr_source_capacity(source) <= 64);
    assert_int_equal(tr_source_read(source, index, tokens, 64, &length, &label), TR_OK);
    for (int64_t i = 0; i < length; i++) sprintf(text + strlen(text), "%s%d", i > 0 ? " " : "", tokens[i]);
    assert_string_equal(text, wanted);
    assert_int_equal(label, wanted_label);
}

static char *state_of(tr_source *source)
{
    const char *name;
    char *text;
    assert_int_equal(tr_source_state(source, &name, &text), TR_OK);
    assert_string_equal(name, "vocabulary.txt");
    return text;
}

/* Numbers go by descending count, ties by bytes; 0 is what is unknown. */
static void test_vocabulary_order(void **unused)
{
    (void)unused;
    write_text("a.tsv", "b a b\t1\nc  a B b \t0\n a zz\t1");
    tr_source *source = must_open("{text: {path: a.tsv}}");
    const struct tr_source_info *info = tr_source_info(source);
    assert_int_equal(info->count, 3);
    assert_int_equal(info->features, TR_FEATURE_TOKENS);
    assert_int_equal(info->labels, TR_LABEL_CLASS);
    assert_int_equal(info->classes, 2);
    assert_int_equal(info->vocabulary, 6);
    assert_int_equal(info->max_tokens, 4);
    expect_tokens(source, 0, "2 1 2", 1);
    expect_tokens(source, 1, "4 1 3 2", 0);
    expect_tokens(source, 2, "1 5", 1);
    char *state = state_of(source);
    assert_string_equal(state, "trireme vocabulary 1, 2 classes, 7 lines\nlower_case 0 max_tokens 0\n"
                               "<unknown>\na\nb\nB\nc\nzz\n");
    tr_text_free(state);
    tr_source_close(&source);
}

static void test_options(void **unused)
{
    (void)unused;
    write_text("a.tsv", "b a b\t1\nc  a B b \t0\n a zz\t1\n");
    tr_source *source = must_open("{text: {path: a.tsv, lower_case: true, min_count: 2}}");
    assert_int_equal(tr_source_info(source)->vocabulary, 3);
    expect_tokens(source, 1, "0 2 1 1", 0);
    tr_source_close(&source);
    source = must_open("{text: {path: a.tsv, max_words: 2, max_tokens: 2}}");
    assert_int_equal(tr_source_info(source)->vocabulary, 2);
    assert_int_equal(tr_source_info(source)->max_tokens, 2);
    expect_tokens(source, 0, "0 1", 1);
    expect_tokens(source, 1, "0 1", 0);
    tr_source_close(&source);
    source = must_open("{text: {path: a.tsv, classes: 5}}");
    assert_int_equal(tr_source_info(source)->classes, 5);
    tr_source_close(&source);
    write_text("b.txt", "only words\r\nand more\r\n");
    source = must_open("{text: {path: b.txt, labels: false}}");
    assert_int_equal(tr_source_info(source)->labels, TR_LABEL_NONE);
    assert_int_equal(tr_source_info(source)->count, 2);
    expect_tokens(source, 0, "3 4", -1);
    tr_source_close(&source);
}

/* Test data are read with the words, the settings and the classes of the training data. */
static void test_state_is_shared(void **unused)
{
    (void)unused;
    write_text("train.tsv", "Good film\t2\nbad Film\t0\n");
    write_text("test.tsv", "good unheard film film film\t1\n");
    tr_source *train = must_open("{text: {path: train.tsv, lower_case: true, max_tokens: 4}}"), *test = NULL;
    char *state = state_of(train);
    assert_int_equal(tr_source_open("{text: {path: test.tsv}}", test_directory(), state, &test), TR_OK);
    const struct tr_source_info *info = tr_source_info(test);
    assert_int_equal(info->vocabulary, tr_source_info(train)->vocabulary);
    assert_int_equal(info->classes, 3);
    expect_tokens(test, 0, "3 0 1 1", 1);
    char *again = state_of(test);
    assert_string_equal(state, again);
    tr_text_free(again);
    tr_source_close(&test);
    write_text("test.tsv", "good\t3\n");
    assert_int_equal(tr_source_open("{text: {path: test.tsv}}", test_directory(), state, &test), TR_EFORMAT);

    /* as a predictor uses it */
    tr_vocabulary *vocabulary;
    int32_t classes, tokens[8];
    assert_int_equal(tr_vocabulary_read(state, &vocabulary, &classes), TR_OK);
    assert_int_equal(classes, 3);
    const char *line = "  FILM is good";
    assert_int_equal(tr_vocabulary_length(vocabulary, line, strlen(line)), 3);
    tr_vocabulary_encode(vocabulary, line, strlen(line), 3, tokens);
    assert_int_equal(tokens[0], 1);
    assert_int_equal(tokens[1], 0);
    assert_int_equal(tokens[2], 3);
    assert_string_equal(tr_vocabulary_word(vocabulary, 3), "good");
    assert_string_equal(tr_vocabulary_word(vocabulary, 0), "<unknown>");
    tr_vocabulary_destroy(&vocabulary);
    assert_null(vocabulary);
    tr_text_free(state);
    tr_source_close(&train);
}

static void test_damaged_state(void **unused)
{
    (void)unused;
    write_text("train.tsv", "good film\t1\nbad film\t0\n");
    tr_source *train = must_open("{text: {path: train.tsv}}");
    char *state = state_of(train);
    tr_source_close(&train);
    tr_vocabulary *vocabulary = NULL;
    int32_t classes;
    for (size_t length = 0; length < strlen(state); length++) {
        char *cut = strndup(state, length);
        assert_int_equal(tr_vocabulary_read(cut, &vocabulary, &classes), TR_EFORMAT);
        assert_non_null(strstr(tr_error_message(), "vocabulary.txt:"));
        free(cut);
    }
    static const char *const bad[] = {
        "trireme vocabulary 1, 2 classes, 3 lines\nlower_case 0 max_tokens 0\n<unknown>\na\nb\n",
        "trireme vocabulary 1, 2 classes, 4 lines\nlower_case 0 max_tokens 0\n<unknown>\na\na\n",
        "trireme vocabulary 1, 2 classes, 3 lines\nlower_case 0 max_tokens 0\n<unknown>\na b\n",
        "trireme vocabulary 1, 2 classes, 3 lines\nlower_case 0 max_tokens 0\n<unknown>\n\n",
        "trireme vocabulary 1, 2 classes, 3 lines\nlower_case 2 max_tokens 0\n<unknown>\na\n",
        "trireme vocabulary 1, 2 classes, 3 lines\nlower_case 0 max_tokens -1\n<unknown>\na\n",
        "trireme vocabulary 1, 2 classes, 3 lines\nlower_case 0 max_tokens 0\na\nb\n",
        "trireme vocabulary 1, -2 classes, 3 lines\nlower_case 0 max_tokens 0\n<unknown>\na\n",
        "trireme vocabulary 1, 2 classes, 99999999999 lines\nlower_case 0 max_tokens 0\n<unknown>\na\n",
        "trireme vocabulary 2, 2 classes, 3 lines\nlower_case 0 max_tokens 0\n<unknown>\na\n",
        "trireme vocabulary 1, 2 classes, 2 lines\nlower_case 0 max_tokens 0 unit ids\nids 0\n",
        "trireme vocabulary 1, 2 classes, 2 lines\nlower_case 0 max_tokens 0 unit ids\nids 5 6\n",
        "trireme vocabulary 1, 2 classes, 2 lines\nlower_case 0 max_tokens 0 unit ids\nids 1048577\n",
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        if (tr_vocabulary_read(bad[i], &vocabulary, &classes) != TR_EFORMAT) fail_msg("accepted: %s", bad[i]);
    }
    assert_int_equal(tr_vocabulary_read("trireme classes 1, 1 classes, 1 lines\na\n", &vocabulary, &classes),
                     TR_EMISMATCH);
    tr_text_free(state);
}

static void refuse(const char *text, const char *part)
{
    write_text("bad.tsv", text);
    expect_refusal("{text: {path: bad.tsv}}", TR_EFORMAT, part);
}

static void test_bad_lines(void **unused)
{
    (void)unused;
    refuse("", "the set is empty");
    refuse("good\t1\nno label\n", "bad.tsv:2:9: no tab");
    refuse("good\t1\t2\n", "bad.tsv:1:7: a second tab");
    refuse("good\tx\nbad\t0\n", "label \"x\" is not an integer");
    refuse("good\t\n", "bad.tsv:1:6: label \"\"");
    refuse("good\t1.5\n", "not an integer");
    refuse("good\t-1\n", "label -1 is not in 0 to");
    refuse("good\t99999999999999999999\n", "label \"99999999999999999999\"");
    refuse("good\t1\n\t0\n", "bad.tsv:2:1: no words");
    refuse("good\t1\n\v \f\t0\n", "bad.tsv:2:1: no words");
    refuse("good\t1\n\nmore\t0\n", "bad.tsv:2:1: no tab");
    write_file("bad.tsv", "go\0od\t1\n", 8);
    expect_refusal("{text: {path: bad.tsv}}", TR_EFORMAT, "bad.tsv:1:3: a byte 0");
    write_text("bad.tsv", "good\t2\n");
    expect_refusal("{text: {path: bad.tsv, classes: 2}}", TR_EFORMAT, "label 2 is not in 0 to 1");
    expect_refusal("{text: {path: bad.tsv, labels: false}}", TR_EFORMAT, "set labels: true");
    expect_refusal("{text: {path: none.tsv}}", TR_ENOTFOUND, "none.tsv");
}

/* Texts that another program has made numbers of. */
static void test_ids(void **unused)
{
    (void)unused;
    write_text("ids.tsv", "2 9 0\t1\n7\t0\n");
    tr_source *source = must_open("{text: {path: ids.tsv, unit: ids, ids: 10}}"), *again = NULL;
    char *state = state_of(source);
    assert_int_equal(tr_source_info(source)->vocabulary, 10);
    expect_tokens(source, 0, "2 9 0", 1);
    expect_tokens(source, 1, "7", 0);
    write_text("more.tsv", "9 8\t1\n");
    assert_int_equal(tr_source_open("{text: {path: more.tsv}}", test_directory(), state, &again), TR_OK);
    expect_tokens(again, 0, "9 8", 1);
    tr_source_close(&again);
    tr_source_close(&source);
    tr_text_free(state);
    expect_refusal("{text: {path: ids.tsv, unit: ids, ids: 9}}", TR_EFORMAT,
                   "token 1 of the text is no number");
    expect_refusal("{text: {path: ids.tsv, unit: ids}}", TR_EINVAL, "set ids");
    write_text("ids.tsv", "2 x\t1\n");
    expect_refusal("{text: {path: ids.tsv, unit: ids, ids: 9}}", TR_EFORMAT,
                   "token 1 of the text is no number");
}

static void test_skip(void **unused)
{
    (void)unused;
    char text[4096] = "";
    for (int i = 0; i < 100; i++)
        sprintf(text + strlen(text), i == 40 ? "bad line\n" : "word%d\t%d\n", i, i % 3);
    write_text("some.tsv", text);
    expect_refusal("{text: {path: some.tsv}}", TR_EFORMAT, "some.tsv:41");
    expect_refusal("{text: {path: some.tsv, on_bad_record: skip}}", TR_EFORMAT, "1 of 100 records are bad");
    tr_source *source = must_open("{text: {path: some.tsv, on_bad_record: skip, max_bad: 0.01}}");
    assert_int_equal(tr_source_info(source)->count, 99);
    assert_int_equal(tr_source_info(source)->skipped, 1);
    assert_int_equal(tr_source_info(source)->vocabulary, 100);
    int32_t label;
    assert_int_equal(tr_source_read(source, 40, NULL, 0, NULL, &label), TR_OK);
    assert_int_equal(label, 41 % 3);
    tr_source_close(&source);
}

/* The tokens and labels of an example. */
static void expect_next(tr_source *source, int64_t index, const char *wanted)
{
    int32_t tokens[16], label[16];
    int64_t length;
    char text[256] = "";
    assert_int_equal(tr_source_read(source, index, tokens, 16, &length, label), TR_OK);
    for (int64_t i = 0; i < length; i++)
        sprintf(text + strlen(text), "%s%d>%d", i > 0 ? " " : "", tokens[i], label[i]);
    assert_string_equal(text, wanted);
}

/* A boundary, the last token of the vocabulary, comes in front of each text and after it; the labels are the
   tokens that follow. A text that is cut has no end. */
static void test_next(void **unused)
{
    (void)unused;
    write_text("a.txt", "b a b\na\nb a a b b a\n");
    tr_source *source = must_open("{text: {path: a.txt, next: true, max_tokens: 3}}"), *other = NULL;
    const struct tr_source_info *info = tr_source_info(source);
    assert_int_equal(info->labels, TR_LABEL_TOKENS);
    assert_int_equal(info->vocabulary, 4);
    assert_int_equal(info->classes, 4);
    assert_int_equal(info->max_tokens, 4);
    expect_next(source, 0, "3>2 2>1 1>2 2>3");
    expect_next(source, 1, "3>1 1>3");
    expect_next(source, 2, "3>2 2>1 1>1 1>-1");
    char *state = state_of(source), *shown;
    assert_string_equal(state,
                        "trireme vocabulary 1, 4 classes, 4 lines\nlower_case 0 max_tokens 3 boundary\n"
                        "<unknown>\na\nb\n");
    assert_int_equal(tr_source_show(source, 0, 1, 80, &shown), TR_OK);
    assert_non_null(strstr(shown, "b a b\n"));
    tr_text_free(shown);
    write_text("b.txt", "a c\n");
    assert_int_equal(tr_source_open("{text: {path: b.txt, next: true}}", test_directory(), state, &other),
                     TR_OK);
    assert_int_equal(tr_source_info(other)->vocabulary, 4);
    expect_next(other, 0, "3>1 1>0 0>3");
    tr_source_close(&other);
    assert_int_equal(tr_source_open("{text: {path: b.txt, labels: false}}", test_directory(), state, &other),
                     TR_EMISMATCH);
    assert_non_null(strstr(tr_error_message(), "the training data have next: true"));
    tr_text_free(state);
    tr_source_close(&source);

    /* Of bytes the boundary is number 256; of ids the one after the last. */
    source = must_open("{text: {path: b.txt, next: true, unit: bytes}}");
    assert_int_equal(tr_source_info(source)->vocabulary, 257);
    expect_next(source, 0, "256>97 97>32 32>99 99>256");
    tr_source_close(&source);
    write_text("c.txt", "4 0\n");
    source = must_open("{text: {path: c.txt, next: true, unit: ids, ids: 5}}");
    expect_next(source, 0, "5>4 4>0 0>5");
    state = state_of(source);
    assert_int_equal(tr_source_open("{text: {path: c.txt, next: true, unit: ids, ids: 5}}", test_directory(),
                                    state, &other),
                     TR_OK);
    assert_int_equal(tr_source_info(other)->vocabulary, 6);
    tr_source_close(&other);
    tr_text_free(state);
    tr_source_close(&source);
    expect_refusal("{text: {path: c.txt, next: true, tags: true}}", TR_EINVAL, "both labels of tokens");
}

static void test_long_words_are_unknown(void **unused)
{
    (void)unused;
    char text[1024];
    memset(text, 'x', sizeof text);
    strcpy(text + 600, " y\t0\n");
    write_text("long.tsv", text);
    tr_source *source = must_open("{text: {path: long.tsv}}");
    assert_int_equal(tr_source_info(source)->vocabulary, 2);
    expect_tokens(source, 0, "0 1", 0);
    tr_source_close(&source);
}

static void test_allocation_failures(void **unused)
{
    (void)unused;
    write_text("a.tsv", "b a b\t1\nc  a B b \t0\n a zz\t1\n");
    expect_out_of_memory("{text: {path: a.tsv}}");
}

static void test_sst2(void **unused)
{
    (void)unused;
    tr_source *train = NULL, *test = NULL;
    assert_int_equal(
        tr_source_open("{text: {path: train.tsv}}", TRIREME_SOURCE_DIR "/data/sst2", NULL, &train), TR_OK);
    assert_int_equal(tr_source_info(train)->count, 6920);
    assert_int_equal(tr_source_info(train)->classes, 2);
    char *state = state_of(train);
    assert_int_equal(
        tr_source_open("{text: {path: test.tsv}}", TRIREME_SOURCE_DIR "/data/sst2", state, &test), TR_OK);
    assert_int_equal(tr_source_info(test)->count, 1821);
    assert_int_equal(tr_source_info(test)->vocabulary, tr_source_info(train)->vocabulary);
    tr_text_free(state);
    tr_source_close(&test);
    tr_source_close(&train);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_vocabulary_order),
        cmocka_unit_test(test_options),
        cmocka_unit_test(test_state_is_shared),
        cmocka_unit_test(test_damaged_state),
        cmocka_unit_test(test_bad_lines),
        cmocka_unit_test(test_ids),
        cmocka_unit_test(test_skip),
        cmocka_unit_test(test_next),
        cmocka_unit_test(test_long_words_are_unknown),
        cmocka_unit_test(test_allocation_failures),
        cmocka_unit_test(test_sst2),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
