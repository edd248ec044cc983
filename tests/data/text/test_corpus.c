/* Running text in windows: what they hold, how a file is shared out, what is refused. */
#include "base/alloc.h"
#include "data/support.h"
#include "data/text/vocabulary.h"
#include "support/files/npy.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* "tokens | labels". */
static void expect_window(tr_source *source, int64_t index, const char *wanted)
{
    int32_t tokens[16], labels[16];
    int64_t length;
    char text[256] = "";
    assert_true(tr_source_capacity(source) <= 16);
    assert_int_equal(tr_source_read(source, index, tokens, 16, &length, labels), TR_OK);
    for (int64_t i = 0; i < length; i++) sprintf(text + strlen(text), "%d ", tokens[i]);
    strcat(text, "|");
    for (int64_t i = 0; i < length; i++) sprintf(text + strlen(text), " %d", labels[i]);
    assert_string_equal(text, wanted);
}

static char *state_of(tr_source *source)
{
    const char *name;
    char *text;
    assert_int_equal(tr_source_state(source, &name, &text), TR_OK);
    assert_string_equal(name, "vocabulary.txt");
    return text;
}

/* Descending count, ties by bytes: b 3, a 2, then the line feed and the character of two bytes. */
static void test_characters(void **unused)
{
    (void)unused;
    write_text("a.txt", "abb\n\xc3\xa9"
                        "ba");
    tr_source *source = must_open("{corpus: {path: a.txt, window: 3}}");
    const struct tr_source_info *info = tr_source_info(source);
    assert_int_equal(info->count, 2);
    assert_int_equal(info->features, TR_FEATURE_TOKENS);
    assert_int_equal(info->labels, TR_LABEL_TOKENS);
    assert_int_equal(info->vocabulary, 5);
    assert_int_equal(info->classes, 5);
    assert_int_equal(info->max_tokens, 3);
    expect_window(source, 0, "2 1 1 | 1 1 3");
    expect_window(source, 1, "3 4 1 | 4 1 2");
    char *state = state_of(source), *shown;
    assert_string_equal(state, "trireme vocabulary 1, 5 classes, 6 lines\n"
                               "lower_case 0 max_tokens 0 unit characters\n"
                               "<unknown>\nU+0062\nU+0061\nU+000A\nU+00E9\n");
    assert_int_equal(tr_source_show(source, 1, 1, 80, &shown), TR_OK);
    assert_string_equal(shown, "[1] : \\n\xc3\xa9"
                               "b\n");
    tr_text_free(shown);
    tr_text_free(state);
    tr_source_close(&source);
}

static void test_strides_and_units(void **unused)
{
    (void)unused;
    write_text("a.txt", "abb\nzzba");
    tr_source *source = must_open("{corpus: {path: a.txt, window: 3, stride: 1}}");
    assert_int_equal(tr_source_info(source)->count, 5);
    expect_window(source, 4, "3 3 1 | 3 1 2");
    tr_source_close(&source);
    source = must_open("{corpus: {path: a.txt, window: 4, stride: 3}}");
    assert_int_equal(tr_source_info(source)->count, 2);
    tr_source_close(&source);
    static const uint8_t bytes[] = {0, 255, 10, 200, 0, 7};
    write_file("b.bin", bytes, sizeof bytes);
    source = must_open("{corpus: {path: b.bin, unit: bytes, window: 2}}");
    assert_int_equal(tr_source_info(source)->vocabulary, 256);
    expect_window(source, 1, "10 200 | 200 0");
    char *state = state_of(source);
    assert_string_equal(state, "trireme vocabulary 1, 256 classes, 1 lines\n"
                               "lower_case 0 max_tokens 0 unit bytes\n");
    tr_text_free(state);
    tr_source_close(&source);
    write_text("c.txt", "The cat\nsaw  the dog");
    source = must_open("{corpus: {path: c.txt, unit: words, window: 2, lower_case: true}}");
    expect_window(source, 0, "1 2 | 2 4");
    expect_window(source, 1, "4 1 | 1 3");
    tr_source_close(&source);
}

static void write_array(const char *name, const char *type, const void *data, size_t size, int count)
{
    char shape[32];
    snprintf(shape, sizeof shape, "%d,", count);
    npy_write(test_path(name), type, shape, data, size);
}

/* Numbers of another program's tokens, in every form that they come in. */
static void test_ids(void **unused)
{
    (void)unused;
    static const uint8_t pairs[] = {3, 0, 1, 1, 0, 0, 44, 1, 9, 0};
    static const int64_t large[] = {3, 257, 0, 300, 9};
    static const uint8_t high_first[] = {0, 0, 0, 3, 0, 0, 1, 1, 0, 0, 0, 0, 0, 0, 1, 44, 0, 0, 0, 9};
    write_file("ids.bin", pairs, sizeof pairs);
    write_array("ids8.npy", "<i8", large, sizeof large, 5);
    write_array("ids4.npy", ">u4", high_first, sizeof high_first, 5);
    static const char *const files[] = {"ids.bin", "ids8.npy", "ids4.npy"};
    for (int i = 0; i < 3; i++) {
        char text[128];
        snprintf(text, sizeof text, "{corpus: {path: %s, unit: ids, ids: 301, window: 2}}", files[i]);
        tr_source *source = must_open(text), *part = NULL;
        assert_int_equal(tr_source_info(source)->vocabulary, 301);
        assert_int_equal(tr_source_info(source)->count, 2);
        expect_window(source, 0, "3 257 | 257 0");
        expect_window(source, 1, "0 300 | 300 9");
        char *state = state_of(source), *shown;
        assert_string_equal(state, "trireme vocabulary 1, 301 classes, 1 lines\n"
                                   "lower_case 0 max_tokens 0 unit ids\n");
        assert_int_equal(tr_source_show(source, 1, 1, 80, &shown), TR_OK);
        assert_string_equal(shown, "[1] : 0 300\n");
        tr_text_free(shown);
        snprintf(text, sizeof text, "{corpus: {path: %s, unit: ids, window: 1, begin: 0.4}}", files[i]);
        assert_int_equal(tr_source_open(text, test_directory(), state, &part), TR_OK);
        expect_window(part, 0, "0 | 300");
        tr_source_close(&part);
        assert_int_equal(tr_source_open("{corpus: {path: ids.bin, unit: bytes, window: 1}}", test_directory(),
                                        state, &part),
                         TR_EMISMATCH);
        tr_text_free(state);
        tr_source_close(&source);
    }
    expect_refusal("{corpus: {path: ids.bin, unit: ids, window: 1}}", TR_EINVAL, "set ids");
    expect_refusal("{corpus: {path: ids.bin, unit: ids, ids: 300, window: 1}}", TR_EFORMAT,
                   "token 3 is 300, there are 300 ids");
    write_array("minus.npy", "<i8", (const int64_t[]){1, -1, 2}, 24, 3);
    expect_refusal("{corpus: {path: minus.npy, unit: ids, ids: 9, window: 1}}", TR_EFORMAT,
                   "token 1 is negative");
    write_array("real.npy", "<f8", (const double[]){1, 2, 3}, 24, 3);
    expect_refusal("{corpus: {path: real.npy, unit: ids, ids: 9, window: 1}}", TR_EUNSUPPORTED,
                   "no integers");
    write_file("odd.bin", pairs, 7);
    expect_refusal("{corpus: {path: odd.bin, unit: ids, ids: 9, window: 1}}", TR_EFORMAT, "7 bytes");
    expect_refusal("{corpus: {path: ids.bin, unit: ids, ids: 301, window: 5}}", TR_EFORMAT, "5 tokens");
}

/* Training and validation share a file; what the latter alone has is unknown. */
static void test_parts_of_a_file(void **unused)
{
    (void)unused;
    write_text("a.txt", "aaaaaaaabz");
    tr_source *train = must_open("{corpus: {path: a.txt, window: 2, end: 0.9}}"), *test = NULL;
    assert_int_equal(tr_source_info(train)->count, 4); /* of 9 characters, 8 and the one behind */
    expect_window(train, 3, "1 1 | 1 2");
    char *state = state_of(train);
    assert_int_equal(tr_source_open("{corpus: {path: a.txt, unit: bytes, window: 1, begin: 0.8}}",
                                    test_directory(), state, &test),
                     TR_OK);
    assert_int_equal(tr_source_info(test)->vocabulary, 3);
    expect_window(test, 0, "2 | 0");
    tr_source_close(&test);
    tr_source_close(&train);
    /* The state of another kind of text is no vocabulary for this one. */
    assert_int_equal(tr_source_open("{corpus: {path: a.txt, window: 1}}", test_directory(),
                                    "trireme scaling 1, 0 classes, 0 lines\n", &test),
                     TR_EMISMATCH);
    tr_text_free(state);
}

static void test_refusals(void **unused)
{
    (void)unused;
    write_text("a.txt", "fine\nba\xc3(d");
    expect_refusal("{corpus: {path: a.txt, window: 2}}", TR_EFORMAT, "a.txt:2:3: byte 0xc3");
    write_file("b.txt", "a\0b", 3);
    expect_refusal("{corpus: {path: b.txt, window: 1}}", TR_EFORMAT, "b.txt:1:2: byte 0x00");
    expect_refusal("{corpus: {path: b.txt, unit: words, window: 1}}", TR_EFORMAT, "byte 0x00");
    write_text("c.txt", "abcd");
    expect_refusal("{corpus: {path: c.txt, window: 4}}", TR_EFORMAT, "4 tokens");
    expect_refusal("{corpus: {path: c.txt, window: 2, begin: 0.5}}", TR_EFORMAT, "2 tokens");
    expect_refusal("{corpus: {path: c.txt, window: 1, begin: 0.9, end: 0.1}}", TR_EFORMAT, "0 tokens");
    expect_refusal("{corpus: {path: c.txt}}", TR_EINVAL, "window");
    expect_refusal("{corpus: {path: c.txt, window: 0}}", TR_EINVAL, "window");
    expect_refusal("{corpus: {path: c.txt, window: 1, unit: letters}}", TR_EINVAL, "characters");
    write_text("d.txt", "");
    expect_refusal("{corpus: {path: d.txt, window: 1}}", TR_EFORMAT, "0 tokens");
}

/* Whatever a vocabulary encodes it decodes to the same text. */
static void test_there_and_back(void **unused)
{
    (void)unused;
    static const struct {
        enum tr_unit unit;
        const char *text, *back;
    } texts[] = {
        {TR_UNIT_WORDS, "one  two\none", "one two one"},
        {TR_UNIT_CHARACTERS, "a\n\xe2\x82\xac\xf0\x9f\x9a\xa3 \t", NULL},
        {TR_UNIT_BYTES, "a\n\xe2\xff", NULL},
    };
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        tr_vocabulary *made, *vocabulary;
        int32_t tokens[32], classes;
        char *state;
        const char *text = texts[i].text, *wanted = texts[i].back ? texts[i].back : text;
        size_t length = strlen(text);
        assert_int_equal(tr_vocabulary_create(texts[i].unit, false, 0, &made), TR_OK);
        assert_int_equal(tr_vocabulary_count(made, text, length), TR_OK);
        assert_int_equal(tr_vocabulary_settle(made, 1, 0), TR_OK);
        assert_int_equal(tr_vocabulary_write(made, 3, &state), TR_OK);
        assert_int_equal(tr_vocabulary_read(state, &vocabulary, &classes), TR_OK);
        assert_int_equal(classes, 3);
        int64_t count = tr_vocabulary_tokens(vocabulary, text, length);
        assert_true(count <= 32);
        tr_vocabulary_encode(vocabulary, text, length, count, tokens);
        struct tr_text back = TR_TEXT_INIT;
        tr_vocabulary_decode(vocabulary, tokens, count, false, &back);
        assert_string_equal(back.bytes, wanted);
        assert_int_equal(tr_vocabulary_reach(vocabulary, text, length, count), length);
        tr_text_release(&back);
        tr_free(state);
        tr_vocabulary_destroy(&made);
        tr_vocabulary_destroy(&vocabulary);
    }
}

static void test_bad_states(void **unused)
{
    (void)unused;
    static const char *const bad[] = {
        "trireme vocabulary 1, 0 classes, 2 lines\nlower_case 0 max_tokens 0 unit letters\n<unknown>\n",
        "trireme vocabulary 1, 0 classes, 2 lines\nlower_case 0 max_tokens 0 unit\n<unknown>\n",
        "trireme vocabulary 1, 0 classes, 2 lines\nlower_case 0 max_tokens 0 unit bytes\n<unknown>\n",
        "trireme vocabulary 1, 0 classes, 1 lines\nlower_case 0 max_tokens 0 unit ids\n",
        "trireme vocabulary 1, 1048577 classes, 1 lines\nlower_case 0 max_tokens 0 unit ids\n",
        "trireme vocabulary 1, 0 classes, 3 lines\nlower_case 0 max_tokens 0 unit characters\n<unknown>\na\n",
        "trireme vocabulary 1, 0 classes, 3 lines\nlower_case 0 max_tokens 0 unit "
        "characters\n<unknown>\nU+D800\n",
        "trireme vocabulary 1, 0 classes, 3 lines\nlower_case 0 max_tokens 0 unit "
        "characters\n<unknown>\nU+0000\n",
        "trireme vocabulary 1, 0 classes, 3 lines\nlower_case 0 max_tokens 0 unit "
        "characters\n<unknown>\nU+00041\n",
        "trireme vocabulary 1, 0 classes, 4 lines\nlower_case 0 max_tokens 0 unit "
        "characters\n<unknown>\nU+0041\nU+0041\n",
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        tr_vocabulary *vocabulary = NULL;
        int32_t classes;
        if (tr_vocabulary_read(bad[i], &vocabulary, &classes) != TR_EFORMAT) fail_msg("accepted: %s", bad[i]);
    }
}

/* ---- labels of tokens, and tables, in the format `text` ---- */

static void expect_labelled(tr_source *source, int64_t index, const char *wanted)
{
    expect_window(source, index, wanted);
}

static void test_tags(void **unused)
{
    (void)unused;
    write_text("a.tsv", "the dog runs\t0 1 2\nthe  runs\t0 -\n");
    tr_source *source = must_open("{text: {path: a.tsv, tags: true}}");
    const struct tr_source_info *info = tr_source_info(source);
    assert_int_equal(info->labels, TR_LABEL_TOKENS);
    assert_int_equal(info->classes, 3);
    expect_labelled(source, 0, "2 3 1 | 0 1 2");
    expect_labelled(source, 1, "2 1 | 0 -1");
    tr_source_close(&source);
    source = must_open("{text: {path: a.tsv, tags: true, max_tokens: 2}}");
    expect_labelled(source, 0, "2 3 | 0 1");
    tr_source_close(&source);
    write_text("b.tsv", "the dog\t0 1 2\n");
    expect_refusal("{text: {path: b.tsv, tags: true}}", TR_EFORMAT, "b.tsv:1:9: 3 labels for 2 tokens");
    write_text("c.tsv", "the dog\t0 x\n");
    expect_refusal("{text: {path: c.tsv, tags: true}}", TR_EFORMAT, "c.tsv:1:9: label \"x\"");
    expect_refusal("{text: {path: a.tsv, tags: true, labels: false}}", TR_EINVAL, "tags are labels");
}

static void test_tables(void **unused)
{
    (void)unused;
    write_text("a.csv", "id,text,title,label\r\n"
                        "1,\"so, good \"\"film\"\"\nvery\",A b,1\r\n"
                        "2,bad,,0\n");
    tr_source *source =
        must_open("{text: {path: a.csv, layout: table, header: true, text_columns: [title, text]}}");
    const struct tr_source_info *info = tr_source_info(source);
    assert_int_equal(info->count, 2);
    assert_int_equal(info->classes, 2);
    char *shown;
    assert_int_equal(tr_source_show(source, 0, 2, 80, &shown), TR_OK);
    assert_string_equal(shown, "[0] 1: A b so, good \"film\" very\n[1] 0: bad\n");
    tr_text_free(shown);
    tr_source_close(&source);
    write_text("named.csv", "text,label\nso good,\"yes, very\"\nbad,no\n");
    source = must_open("{text: {path: named.csv, layout: table, header: true}}");
    info = tr_source_info(source);
    assert_int_equal(info->classes, 2);
    assert_string_equal(info->class_names[1], "yes, very");
    assert_int_equal(tr_source_show(source, 0, 2, 80, &shown), TR_OK);
    assert_string_equal(shown, "[0] 1 yes, very: so good\n[1] 0 no: bad\n");
    tr_text_free(shown);
    tr_source_close(&source);
    write_text("gap.csv", "so good,yes\nbad,\n");
    expect_refusal("{text: {path: gap.csv, layout: table}}", TR_EFORMAT, "no label in its column");
    write_text("b.csv", "1;\"x y\"\n0;z\n");
    source = must_open("{text: {path: b.csv, layout: table, separator: semicolon, text_columns: [\"1\"], "
                       "label_column: \"0\"}}");
    assert_int_equal(tr_source_info(source)->count, 2);
    tr_source_close(&source);
    expect_refusal("{text: {path: a.csv, layout: table, header: true, text_columns: body}}", TR_EFORMAT,
                   "no column \"body\"");
    expect_refusal("{text: {path: b.csv, layout: table, separator: semicolon, label_column: \"0\"}}",
                   TR_EFORMAT, "for text and label");
    write_text("c.csv", "a,1\n\"b,2\n");
    expect_refusal("{text: {path: c.csv, layout: table}}", TR_EFORMAT, "c.csv:2:1: a quote");
    write_text("d.csv", "a,1\n\"b\"c,2\n");
    expect_refusal("{text: {path: d.csv, layout: table}}", TR_EFORMAT, "d.csv:2:4: text after");
    write_text("e.csv", "a,1\nb,c,2\n");
    expect_refusal("{text: {path: e.csv, layout: table}}", TR_EFORMAT, "a row of 3 fields");
    source = must_open("{text: {path: e.csv, layout: table, on_bad_record: skip, max_bad: 0.5}}");
    assert_int_equal(tr_source_info(source)->count, 1);
    tr_source_close(&source);
}

static void test_objects(void **unused)
{
    (void)unused;
    write_text("a.jsonl",
               "{\"id\": 1, \"review\": {\"title\": \"A b\", \"text\": \"so, good\\nvery\"}, \"stars\": 1}\n"
               "{\"stars\": 0, \"review\": {\"text\": \"bad\"}, \"id\": 2}\n");
    tr_source *source = must_open("{text: {path: a.jsonl, layout: json, text_columns: [review.title, "
                                  "review.text], label_column: stars}}");
    char *shown;
    assert_int_equal(tr_source_info(source)->classes, 2);
    assert_int_equal(tr_source_show(source, 0, 2, 80, &shown), TR_OK);
    assert_string_equal(shown, "[0] 1: A b so, good very\n[1] 0: bad\n");
    tr_text_free(shown);
    tr_source_close(&source);
    expect_refusal("{text: {path: a.jsonl, layout: json, text_columns: body}}", TR_EFORMAT,
                   "a.jsonl:1:1: there is no column \"body\"; the table has 4 columns, the members here");
    write_text("b.jsonl",
               "{\"text\": \"so\", \"label\": 1}\n{\"text\": \"so\", \"label\": 1, \"other\": 2}\n");
    expect_refusal("{text: {path: b.jsonl, layout: json}}", TR_EFORMAT, "\"other\" is not in the first line");
    write_text("c.jsonl", "{\"text\": \"so\", \"label\": 1}\nso\n");
    expect_refusal("{text: {path: c.jsonl, layout: json}}", TR_EFORMAT, "c.jsonl:2:1: is no JSON object");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_characters), cmocka_unit_test(test_strides_and_units),
        cmocka_unit_test(test_ids),        cmocka_unit_test(test_parts_of_a_file),
        cmocka_unit_test(test_refusals),   cmocka_unit_test(test_there_and_back),
        cmocka_unit_test(test_bad_states), cmocka_unit_test(test_tags),
        cmocka_unit_test(test_tables),     cmocka_unit_test(test_objects),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
