/* How much of a text is read: the longest example, the most columns of a table, the most words of a state,
 * and marks of byte order.
 */
#include "base/alloc.h"
#include "data/support.h"
#include "data/text/vocabulary.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A line of so many words, and perhaps a label. */
static void write_words(const char *name, int words, const char *end)
{
    char *text = malloc(2 * (size_t)words + 8);
    assert_non_null(text);
    for (int i = 0; i < words; i++) memcpy(text + 2 * i, "w ", 2);
    strcpy(text + 2 * words, end);
    write_text(name, text);
    free(text);
}

static void expect_longest(const char *description, int32_t tokens)
{
    tr_source *source = must_open(description);
    assert_int_equal(tr_source_info(source)->max_tokens, tokens);
    tr_source_close(&source);
}

/* A boundary in front of a text counts. */
static void texts_have_a_largest_length(void **state)
{
    (void)state;
    write_words("words", TR_TOKENS_MAX, "\t1\n");
    expect_longest("{text: {path: words}}", TR_TOKENS_MAX);
    write_words("words", TR_TOKENS_MAX + 1, "\t1\n");
    expect_refusal("{text: {path: words}}", TR_EFORMAT,
                   "words:1:1: 1048577 words; set max_tokens to cut long texts");
    expect_longest("{text: {path: words, max_tokens: 1048576}}", TR_TOKENS_MAX);
    write_words("words", TR_TOKENS_MAX - 1, "\n");
    expect_longest("{text: {path: words, next: true}}", TR_TOKENS_MAX);
    write_words("words", TR_TOKENS_MAX, "\n");
    expect_refusal("{text: {path: words, next: true}}", TR_EFORMAT,
                   "words:1:1: 1048576 words; set max_tokens to cut long texts");
}

/* A row of so many fields: words, and a label. */
static void write_row(int fields)
{
    char *text = malloc(2 * (size_t)fields + 1);
    assert_non_null(text);
    for (int i = 0; i < fields; i++) memcpy(text + 2 * i, "1,", 2);
    text[2 * fields - 1] = '\n';
    text[2 * fields] = 0;
    write_text("row", text);
    free(text);
}

static void tables_have_most_columns(void **state)
{
    (void)state;
    write_row(65536);
    expect_longest("{text: {path: row, layout: table}}", 1);
    write_row(65537);
    expect_refusal("{text: {path: row, layout: table}}", TR_EFORMAT, "row:1:1: more than 65536 columns");
}

/* So many lines that a state may have no words for all of them. */
static void states_have_most_words(void **state)
{
    (void)state;
    char *text = malloc(TR_VOCABULARY_MAX + 256);
    assert_non_null(text);
    for (int more = 0; more < 2; more++) {
        tr_vocabulary *vocabulary = NULL;
        int32_t classes;
        const int used =
            sprintf(text, "trireme vocabulary 1, 2 classes, %d lines\nlower_case 0 max_tokens 0\n",
                    TR_VOCABULARY_MAX + more);
        memset(text + used, '\n', TR_VOCABULARY_MAX);
        text[used + TR_VOCABULARY_MAX] = 0;
        assert_int_equal(tr_vocabulary_read(text, &vocabulary, &classes), TR_EFORMAT);
        assert_non_null(strstr(tr_error_message(), more ? "too many words" : "is not <unknown>"));
    }
    free(text);
}

/* A mark of byte order is no part of a text, but bytes are all there. */
static void marks_are_passed_over(void **state)
{
    static const struct {
        const char *unit;
        int count; /* windows of one token */
    } cases[] = {{"characters", 3}, {"bytes", 6}, {"words", 1}};
    (void)state;
    write_text("marked", "\xef\xbb\xbf"
                         "a bc");
    for (int i = 0; i < 3; i++) {
        char description[64];
        snprintf(description, sizeof description, "{corpus: {path: marked, unit: %s, window: 1}}",
                 cases[i].unit);
        tr_source *source = must_open(description);
        assert_int_equal(tr_source_info(source)->count, cases[i].count);
        tr_source_close(&source);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts_have_a_largest_length),
        cmocka_unit_test(tables_have_most_columns),
        cmocka_unit_test(states_have_most_words),
        cmocka_unit_test(marks_are_passed_over),
    };
    return cmocka_run_group_tests_name("data.text_limits", tests, NULL, NULL);
}
