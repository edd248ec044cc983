/* Vocabularies by themselves: which units a text has, in which order they are numbered, how texts and numbers
 * become each other, and which states are refused.
 */
#include "base/alloc.h"
#include "base/fail.h"
#include "data/bpe/bytes.h"
#include "data/text/vocabulary.h"
#include "data/text/vocabulary_internal.h"
#include "refuse.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#define LENGTH(array) ((int)(sizeof(array) / sizeof((array)[0])))

static tr_vocabulary *make(enum tr_unit unit, bool lower_case, int32_t max_tokens, const char *text,
                           int64_t min_count, int32_t max_words)
{
    tr_vocabulary *vocabulary;
    assert_int_equal(tr_vocabulary_create(unit, lower_case, max_tokens, &vocabulary), TR_OK);
    assert_int_equal(tr_vocabulary_count(vocabulary, text, strlen(text)), TR_OK);
    assert_int_equal(tr_vocabulary_settle(vocabulary, min_count, max_words), TR_OK);
    return vocabulary;
}

static void expect_words(const tr_vocabulary *vocabulary, const char *const *words, int count)
{
    assert_int_equal(tr_vocabulary_size(vocabulary), count);
    for (int i = 0; i < count; i++) assert_string_equal(tr_vocabulary_word(vocabulary, i), words[i]);
}

static void expect_tokens(const tr_vocabulary *vocabulary, const char *text, const int32_t *wanted,
                          int64_t count)
{
    int32_t *tokens;
    int64_t got;
    assert_int_equal(tr_vocabulary_encode_all(vocabulary, text, strlen(text), &tokens, &got), TR_OK);
    assert_int_equal(got, count);
    assert_int_equal(tr_vocabulary_tokens(vocabulary, text, strlen(text)), count);
    for (int64_t i = 0; i < count; i++)
        if (tokens[i] != wanted[i]) fail_msg("\"%s\": token %d is %d", text, (int)i, (int)tokens[i]);
    tr_free(tokens);
}

#define EXPECT(vocabulary, text, ...)                                                                        \
    expect_tokens(vocabulary, text, (const int32_t[]){__VA_ARGS__}, LENGTH(((const int32_t[]){__VA_ARGS__})))

/* ---- numbering ---- */

/* By descending count, then by their bytes; a word comes before its extensions. */
static void words_are_numbered_by_count(void **unused)
{
    static const char text[] = "b ab a\tc\nb  ab Ab abc\v\f\rb ";
    (void)unused;
    tr_vocabulary *vocabulary = make(TR_UNIT_WORDS, false, 0, text, 1, 0);
    expect_words(vocabulary, (const char *const[]){"<unknown>", "b", "ab", "Ab", "a", "abc", "c"}, 7);
    EXPECT(vocabulary, "b x abc Ab ", 1, 0, 5, 3);
    assert_true(tr_vocabulary_has_unknown(vocabulary));
    tr_vocabulary_destroy(&vocabulary);
    assert_null(vocabulary);
    vocabulary = make(TR_UNIT_WORDS, true, 0, text, 1, 0);
    expect_words(vocabulary, (const char *const[]){"<unknown>", "ab", "b", "a", "abc", "c"}, 6);
    EXPECT(vocabulary, "AB aBC [ @ B", 1, 4, 0, 0, 2);
    assert_true(tr_vocabulary_folds(vocabulary));
    tr_vocabulary_destroy(&vocabulary);
    vocabulary = make(TR_UNIT_WORDS, false, 0, text, 2, 0);
    expect_words(vocabulary, (const char *const[]){"<unknown>", "b", "ab"}, 3);
    tr_vocabulary_destroy(&vocabulary);
    vocabulary = make(TR_UNIT_WORDS, false, 0, text, 1, 4);
    expect_words(vocabulary, (const char *const[]){"<unknown>", "b", "ab", "Ab"}, 4);
    tr_vocabulary_destroy(&vocabulary);
    vocabulary = make(TR_UNIT_WORDS, false, 0, "", 1, 0);
    expect_words(vocabulary, (const char *const[]){"<unknown>"}, 1);
    EXPECT(vocabulary, "x", 0);
    tr_vocabulary_destroy(&vocabulary);
    tr_vocabulary_destroy(&vocabulary);
}

static void characters_are_numbered_by_count(void **unused)
{
    (void)unused;
    tr_vocabulary *vocabulary =
        make(TR_UNIT_CHARACTERS, false, 0, "b\xc3\xa9 \xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80z\xff", 1, 0);
    expect_words(vocabulary,
                 (const char *const[]){"<unknown>", "\xc3\xa9", " ", "b", "z", "\xe2\x82\xac",
                                       "\xf0\x9f\x98\x80", "\xff"},
                 8);
    EXPECT(vocabulary, "\xc3\xa9z?\xf0\x9f\x98\x80\xe2\x82", 1, 4, 0, 6, 0, 0);
    tr_vocabulary_destroy(&vocabulary);
    vocabulary = make(TR_UNIT_BYTES, true, 0, "anything", 1, 0);
    assert_int_equal(tr_vocabulary_size(vocabulary), 256);
    assert_false(tr_vocabulary_has_unknown(vocabulary));
    EXPECT(vocabulary, "aZ[\xff", 'a', 'z', '[', 0xff);
    tr_vocabulary_destroy(&vocabulary);
}

/* More words than half of the first table, each found by itself; and as many ids. */
static void large_vocabularies_find_all(void **unused)
{
    enum { MANY = 9000 };
    static char text[MANY * 8];
    (void)unused;
    size_t length = 0;
    for (int i = 0; i < MANY; i++) length += (size_t)sprintf(text + length, "%d ", i * 7 % MANY);
    tr_vocabulary *vocabulary = make(TR_UNIT_WORDS, false, 0, text, 1, 0), *copy;
    assert_int_equal(tr_vocabulary_size(vocabulary), MANY + 1);
    char *state;
    int32_t classes = 0;
    assert_int_equal(tr_vocabulary_write(vocabulary, 5, &state), TR_OK);
    assert_int_equal(tr_vocabulary_read(state, &copy, &classes), TR_OK);
    assert_int_equal(classes, 5);
    tr_free(state);
    for (int32_t token = 1; token <= MANY; token++) {
        const char *word = tr_vocabulary_word(vocabulary, token);
        EXPECT(vocabulary, word, token);
        EXPECT(copy, word, token);
        if (token > 1) assert_true(strcmp(tr_vocabulary_word(vocabulary, token - 1), word) < 0);
    }
    tr_vocabulary_destroy(&copy);
    tr_vocabulary_destroy(&vocabulary);
    assert_int_equal(tr_vocabulary_create(TR_UNIT_IDS, false, 0, &vocabulary), TR_OK);
    assert_int_equal(tr_vocabulary_settle_ids(vocabulary, MANY), TR_OK);
    assert_int_equal(tr_vocabulary_size(vocabulary), MANY);
    for (int32_t i = 0; i < MANY; i += 7) {
        char decimal[16];
        snprintf(decimal, sizeof decimal, "%d", (int)i);
        EXPECT(vocabulary, decimal, i);
    }
    assert_int_equal(tr_vocabulary_no_id(vocabulary, "0 8999 17", 9), -1);
    assert_int_equal(tr_vocabulary_no_id(vocabulary, "0 9000 17", 9), 1);
    assert_int_equal(tr_vocabulary_no_id(vocabulary, "-1", 2), 0);
    assert_int_equal(tr_vocabulary_no_id(vocabulary, "5 07", 4), 1);
    assert_int_equal(tr_vocabulary_no_id(vocabulary, "07", 1), -1); /* the end counts */
    tr_vocabulary_destroy(&vocabulary);
}

/* Words that are too long are no words. */
static void words_have_a_largest_size(void **unused)
{
    static char text[2 * VOCABULARY_WORD_MAX + 2];
    (void)unused;
    memset(text, 'x', sizeof text - 1);
    text[VOCABULARY_WORD_MAX - 1] = ' ';
    tr_vocabulary *vocabulary = make(TR_UNIT_WORDS, true, 0, text, 1, 0);
    assert_int_equal(tr_vocabulary_size(vocabulary), 2);
    EXPECT(vocabulary, text, 1, 0);
    tr_vocabulary_destroy(&vocabulary);
}

/* ---- places ---- */

static void units_have_places(void **unused)
{
    static const char text[] = " ab  c\xc3\xa9 d";
    size_t begin[4] = {9, 9, 9, 9}, end[4] = {9, 9, 9, 9};
    (void)unused;
    tr_vocabulary *vocabulary = make(TR_UNIT_WORDS, false, 2, text, 1, 0);
    assert_int_equal(tr_vocabulary_spans(vocabulary, text, 10, 2, begin, end), 3);
    assert_int_equal(begin[0], 1);
    assert_int_equal(end[0], 3);
    assert_int_equal(begin[1], 5);
    assert_int_equal(end[1], 8);
    assert_int_equal(begin[2], 9);
    assert_int_equal(end[2], 9);
    assert_int_equal(tr_vocabulary_reach(vocabulary, text, 10, 0), 0);
    assert_int_equal(tr_vocabulary_reach(vocabulary, text, 10, 1), 3);
    assert_int_equal(tr_vocabulary_reach(vocabulary, text, 10, 2), 8);
    assert_int_equal(tr_vocabulary_reach(vocabulary, text, 10, 9), 10);
    assert_int_equal(tr_vocabulary_length(vocabulary, text, 10), 2); /* cut */
    assert_int_equal(tr_vocabulary_length(vocabulary, text, 3), 1);
    assert_int_equal(tr_vocabulary_tokens(vocabulary, text, 10), 3);
    assert_ptr_equal(tr_vocabulary_misfit(vocabulary, "a\0b", 3), memchr("a\0b", 0, 3));
    assert_null(tr_vocabulary_misfit(vocabulary, "\xff", 1));
    tr_vocabulary_destroy(&vocabulary);
    vocabulary = make(TR_UNIT_CHARACTERS, false, 0, text, 1, 0);
    assert_int_equal(tr_vocabulary_spans(vocabulary, text + 5, 5, 4, begin, end), 4);
    assert_int_equal(begin[1], 1);
    assert_int_equal(end[1], 3);
    assert_int_equal(tr_vocabulary_reach(vocabulary, text + 5, 5, 2), 3);
    assert_int_equal(tr_vocabulary_length(vocabulary, text, 10), 9);
    static const char bad[] = "a\xc3\xa9\xff", cut[] = "ab\xc3\xa9", zero[] = "a\0b";
    assert_ptr_equal(tr_vocabulary_misfit(vocabulary, bad, 4), bad + 3);
    assert_null(tr_vocabulary_misfit(vocabulary, bad, 3));
    assert_ptr_equal(tr_vocabulary_misfit(vocabulary, cut, 3), cut + 2);
    assert_ptr_equal(tr_vocabulary_misfit(vocabulary, zero, 3), zero + 1);
    tr_vocabulary_destroy(&vocabulary);
    vocabulary = make(TR_UNIT_BYTES, false, 0, "", 1, 0);
    assert_null(tr_vocabulary_misfit(vocabulary, bad, 4));
    assert_int_equal(tr_vocabulary_no_id(vocabulary, "x", 1), -1);
    tr_vocabulary_destroy(&vocabulary);
}

/* ---- texts of tokens ---- */

static void expect_text(const tr_vocabulary *vocabulary, const int32_t *tokens, int64_t count, bool begun,
                        const char *decoded, const char *shown)
{
    struct tr_text text = TR_TEXT_INIT;
    tr_text_add(&text, ">");
    tr_vocabulary_decode(vocabulary, tokens, count, begun, &text);
    assert_string_equal(text.bytes + 1, decoded);
    tr_text_release(&text);
    if (!shown) return;
    tr_text_add(&text, ">");
    tr_vocabulary_show(vocabulary, tokens, count, &text);
    assert_string_equal(text.bytes + 1, shown);
    tr_text_release(&text);
}

static void tokens_become_texts(void **unused)
{
    (void)unused;
    tr_vocabulary *vocabulary = make(TR_UNIT_WORDS, false, 0, "b b a", 1, 0);
    assert_int_equal(tr_vocabulary_boundary(vocabulary), -1);
    tr_vocabulary_add_boundary(vocabulary);
    assert_int_equal(tr_vocabulary_boundary(vocabulary), 3);
    assert_int_equal(tr_vocabulary_size(vocabulary), 4);
    expect_text(vocabulary, (const int32_t[]){3, 1, 0, 2, 3}, 5, false, "b <unknown> a", "b <unknown> a");
    expect_text(vocabulary, (const int32_t[]){1, 2}, 2, true, " b a", NULL);
    expect_text(vocabulary, NULL, 0, false, "", "");
    tr_vocabulary_destroy(&vocabulary);
    vocabulary = make(TR_UNIT_CHARACTERS, false, 0, "aa\n\t\x7f\x1f\xc3\xa9", 1, 0); /* a, then by bytes */
    expect_text(vocabulary, (const int32_t[]){1, 0, 2, 3, 4, 5, 6}, 7, true,
                "a\xef\xbf\xbd\t\n\x1f\x7f\xc3\xa9", "a\xef\xbf\xbd\\t\\n\\x1f\\x7f\xc3\xa9");
    tr_vocabulary_destroy(&vocabulary);
    vocabulary = make(TR_UNIT_BYTES, false, 0, "", 1, 0);
    expect_text(vocabulary, (const int32_t[]){'a', 0xc3, 0xa9, 0xff, 0xc3}, 5, true, "a\xc3\xa9\xff\xc3",
                "a\xc3\xa9\\xff\\xc3");
    expect_text(vocabulary, (const int32_t[]){'a', 0, 'b'}, 3, false, "a", "a\\x00b");
    tr_vocabulary_destroy(&vocabulary);
    assert_int_equal(tr_vocabulary_create(TR_UNIT_IDS, false, 0, &vocabulary), TR_OK);
    assert_int_equal(tr_vocabulary_settle_ids(vocabulary, 20), TR_OK);
    expect_text(vocabulary, (const int32_t[]){0, 19, 3}, 3, false, "0 19 3", "0 19 3");
    tr_vocabulary_destroy(&vocabulary);
}

/* Numbers of the network that the tokenizer does not have say nothing. */
static void subwords_become_texts(void **unused)
{
    struct tr_text file = TR_TEXT_INIT;
    tr_vocabulary *vocabulary;
    tr_bpe *bpe;
    (void)unused;
    tr_text_add(&file, "{\"pre_tokenizer\": {\"type\": \"ByteLevel\"}, \"model\": {\"vocab\": {");
    add_bytes(&file, -1);
    tr_text_add(&file, "}, \"merges\": []}}");
    assert_int_equal(tr_bpe_parse(file.bytes, file.length, "here", &bpe), TR_OK);
    tr_text_release(&file);
    assert_int_equal(tr_vocabulary_create(TR_UNIT_BPE, false, 0, &vocabulary), TR_OK);
    tr_vocabulary_settle_bpe(vocabulary, &bpe, 300);
    assert_null(bpe);
    assert_int_equal(tr_vocabulary_size(vocabulary), 300);
    assert_int_equal(tr_vocabulary_boundary(vocabulary), -1);
    expect_text(vocabulary, (const int32_t[]){'o', 256, 'n', 299, 'e', 255}, 6, true, "one\xff", "one\\xff");
    tr_vocabulary_destroy(&vocabulary);
}

/* ---- states ---- */

#define FIFTEEN(x)   x x x x x x x x x x x x x x x
#define LONGEST_WORD FIFTEEN("seventeen-letters") /* 255 bytes, none of them blank */
#define HEAD(lines)  "trireme vocabulary 1, 2 classes, " #lines " lines\n"

static const struct {
    const char *state, *message; /* of TR_EFORMAT; NULL: it is right */
} states[] = {
    {HEAD(3) "lower_case 1 max_tokens 9\n<unknown>\na\n", NULL},
    {HEAD(1) "lower_case 0 max_tokens 0 unit bytes\n", NULL},
    {HEAD(1) "lower_case 0 max_tokens 0 unit bytes boundary\n", NULL},
    {HEAD(1) "lower_case 0 max_tokens 0 unit ids\n", NULL},
    {HEAD(2) "lower_case 0 max_tokens 0 unit ids\nids 7\n", NULL},
    {HEAD(3) "lower_case 0 max_tokens 0 unit characters\n<unknown>\nU+0041\n", NULL},
    {HEAD(8) "lower_case 0 max_tokens 0 unit characters\n<unknown>\nU+0800\nU+07FF\nU+0080\nU+007F\nU+10000\n"
             "U+FFFF\n",
     NULL},
    {HEAD(4) "lower_case 0 max_tokens 0 unit characters boundary\n<unknown>\nU+10FFFF\nU+D7FF\n", NULL},
    {HEAD(1) "lower_case 0 max_tokens 0 unit ids\nmore\n", "more lines than its first line says"},
    {HEAD(2) "lower_case 0 max_tokens 0 unit ids\nids 7\nmore\n", "more lines than its first line says"},
    {HEAD(3) "lower_case 0 max_tokens 0\n<unknown>\n" LONGEST_WORD "\n", NULL},
    {HEAD(3) "lower_case 0 max_tokens 0\n<unknown>\n" LONGEST_WORD "x\n", "is not a word"},
    {HEAD(0), "vocabulary.txt:2: ends too early"},
    {HEAD(1) "lower_case 2 max_tokens 0\n", "vocabulary.txt:2: is not \"lower_case N max_tokens N\""},
    {HEAD(1) "lower_case 0 max_tokens -1\n", "is not \"lower_case N max_tokens N\""},
    {HEAD(1) "lower_case 0\n", "is not \"lower_case N max_tokens N\""},
    {HEAD(1) "max_tokens 0 lower_case 0\n", "is not \"lower_case N max_tokens N\""},
    {HEAD(1) "lower_case 0 max_tokens\n7\n", "is not \"lower_case N max_tokens N\""},
    {HEAD(1) "lower_case 0 max_tokens 0 unit syllables\n", "does not end with a unit that is known"},
    {HEAD(1) "lower_case 0 max_tokens 0 unit byte\n", "does not end with a unit that is known"},
    {HEAD(1) "lower_case 0 max_tokens 0 unit bytess\n", "does not end with a unit that is known"},
    {HEAD(1) "lower_case 0 max_tokens 0 Unit bytes\n", "does not end with a unit that is known"},
    {HEAD(1) "lower_case 0 max_tokens 0 bounds\n", "does not end with a unit that is known"},
    {HEAD(2) "lower_case 0 max_tokens 0\n<unknowm>\n", "vocabulary.txt:3: is not <unknown>"},
    {HEAD(1) "lower_case 0 max_tokens 0\n", "ends too early"},
    {HEAD(3) "lower_case 0 max_tokens 0\n<unknown>\na b\n",
     "vocabulary.txt:4: is not a word, or not the number of a character"},
    {HEAD(3) "lower_case 0 max_tokens 0\n<unknown>\n\n", "is not a word, or not the number of a character"},
    {HEAD(4) "lower_case 0 max_tokens 0\n<unknown>\na\na\n", "vocabulary.txt:5: repeats a word"},
    {HEAD(3) "lower_case 0 max_tokens 0\n<unknown>\na\nb\n", "has more lines than its first line says"},
    {HEAD(2) "lower_case 0 max_tokens 0 unit ids\nids 0\n", "does not say how many ids there are"},
    {HEAD(2) "lower_case 0 max_tokens 0 unit ids\nids 1048577\n", "does not say how many ids there are"},
    {HEAD(2) "lower_case 0 max_tokens 0 unit ids\nids 7 \n", "does not say how many ids there are"},
    {HEAD(2) "lower_case 0 max_tokens 0 unit ids\nid 7\n", "does not say how many ids there are"},
    {"trireme vocabulary 1, 0 classes, 1 lines\nlower_case 0 max_tokens 0 unit ids\n",
     "does not say how many ids"},
    {HEAD(2) "lower_case 0 max_tokens 0 unit bytes\nx\n", "has more lines than were expected"},
#define CHARACTER(line) HEAD(3) "lower_case 0 max_tokens 0 unit characters\n<unknown>\n" line "\n"
#define NO_CHARACTER    "is not a word, or not the number of a character"
    {CHARACTER("A"), NO_CHARACTER},
    {CHARACTER("U+41"), NO_CHARACTER},
    {CHARACTER("U+041"), NO_CHARACTER},
    {CHARACTER("U+00041"), NO_CHARACTER},
    {CHARACTER("U+004a"), NO_CHARACTER},
    {CHARACTER("u+0041"), NO_CHARACTER},
    {CHARACTER("U-0041"), NO_CHARACTER},
    {CHARACTER("U+0000"), NO_CHARACTER},
    {CHARACTER("U+D800"), NO_CHARACTER},
    {CHARACTER("U+110000"), NO_CHARACTER},
    {CHARACTER("U+1000000"), NO_CHARACTER},
    {CHARACTER("U+004G"), NO_CHARACTER},
};

static void states_are_checked(void **unused)
{
    (void)unused;
    for (int i = 0; i < LENGTH(states); i++) {
        const int64_t live = tr_alloc_live();
        tr_vocabulary *vocabulary = NULL;
        int32_t classes = 0;
        const tr_status status = tr_vocabulary_read(states[i].state, &vocabulary, &classes);
        if (status != (states[i].message ? TR_EFORMAT : TR_OK) ||
            (status != TR_OK && !strstr(tr_error_message(), states[i].message)))
            fail_msg("%s: %s", states[i].state, status ? tr_error_message() : "accepted");
        if (status == TR_OK) { /* and is written in the same form */
            char *again;
            assert_int_equal(classes, 2);
            assert_int_equal(tr_vocabulary_boundary(vocabulary) >= 0,
                             strstr(states[i].state, " boundary") != NULL);
            assert_int_equal(tr_vocabulary_state_has_boundary(states[i].state),
                             strstr(states[i].state, " boundary") != NULL);
            assert_int_equal(tr_vocabulary_write(vocabulary, classes, &again), TR_OK);
            assert_string_equal(again, states[i].state);
            tr_free(again);
        }
        tr_vocabulary_destroy(&vocabulary);
        assert_int_equal(tr_alloc_live(), live);
    }
}

/* A boundary is told of vocabularies only, whole or not. */
static void boundaries_are_told(void **unused)
{
    static const char *const none[] = {
        "", "trireme vocabulary 1, 2 classes, 0 lines\n",
        "trireme vocabulary 1, 2 classes, 1 lines\n boundary",
        "trireme vocabulary 1, 2 classes, 1 lines\nboundary\n",
        "trireme scaling 1, 2 classes, 1 lines\nlower_case 0 max_tokens 0 boundary\n"};
    (void)unused;
    for (int i = 0; i < LENGTH(none); i++)
        if (tr_vocabulary_state_has_boundary(none[i])) fail_msg("%s", none[i]);
}

static void a_lack_of_memory_is_told(void **unused)
{
    static const char text[] = "the quick brown fox";
    (void)unused;
    for (int unit = TR_UNIT_WORDS; unit <= TR_UNIT_IDS; unit++)
        for (int64_t at = 0, done = 0; !done; at++) {
            const int64_t live = tr_alloc_live();
            tr_vocabulary *vocabulary = NULL, *copy = NULL;
            char *state = NULL;
            int32_t *tokens = NULL, classes;
            int64_t count;
            struct tr_text shown = TR_TEXT_INIT;
            refuse_begin(at);
            tr_status status = tr_vocabulary_create((enum tr_unit)unit, true, 0, &vocabulary);
            if (status == TR_OK && unit == TR_UNIT_IDS) status = tr_vocabulary_settle_ids(vocabulary, 30);
            if (status == TR_OK && unit != TR_UNIT_IDS)
                status = tr_vocabulary_count(vocabulary, text, strlen(text));
            if (status == TR_OK && unit != TR_UNIT_IDS) status = tr_vocabulary_settle(vocabulary, 1, 0);
            if (status == TR_OK) status = tr_vocabulary_write(vocabulary, 1, &state);
            if (status == TR_OK) status = tr_vocabulary_read(state, &copy, &classes);
            if (status == TR_OK) status = tr_vocabulary_encode_all(copy, text, strlen(text), &tokens, &count);
            if (status == TR_OK) {
                tr_vocabulary_show(copy, tokens, count, &shown);
                if (shown.failed) status = TR_ENOMEM;
            }
            done = refuse_end();
            assert_int_equal(status, done ? TR_OK : TR_ENOMEM);
            tr_text_release(&shown);
            tr_free(tokens);
            tr_free(state);
            tr_vocabulary_destroy(&copy);
            tr_vocabulary_destroy(&vocabulary);
            assert_int_equal(tr_alloc_live(), live);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(words_are_numbered_by_count), cmocka_unit_test(characters_are_numbered_by_count),
        cmocka_unit_test(large_vocabularies_find_all), cmocka_unit_test(words_have_a_largest_size),
        cmocka_unit_test(units_have_places),           cmocka_unit_test(tokens_become_texts),
        cmocka_unit_test(subwords_become_texts),       cmocka_unit_test(states_are_checked),
        cmocka_unit_test(boundaries_are_told),         cmocka_unit_test(a_lack_of_memory_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
