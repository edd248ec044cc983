/* Byte-level BPE: where texts are cut, how bytes merge, what training chooses, which files are refused. The
 * tokens of whole vocabularies are judged in tests/interop by other libraries.
 */
#include "base/alloc.h"
#include "base/fail.h"
#include "data/bpe/bpe.h"
#include "data/bpe/unicode.h"
#include "data/bpe/bytes.h"
#include "data/support.h"
#include "trireme/tokenizer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LENGTH(array) ((int)(sizeof(array) / sizeof((array)[0])))

/* ---- cutting ---- */

/* Pieces as the expressions of split.h give them, with a bar between two. */
static const struct {
    enum tr_bpe_pattern pattern;
    const char *pieces;
} cuts[] = {
    {TR_BPE_GPT2, "it|'s| we|'ll| 12345|!?| a|  | b|\n\n  "},
    {TR_BPE_GPT2, "I|'|LL| don|'t| \xc3\xa9t\xc3\xa9|\xc2\xa0|x|\n |\t|y"},
    {TR_BPE_GPT2, "a|\xc2\xb2\xe2\x85\xa8|\xcc\x81\xff|b|   | c"}, /* numbers of categories No and Nl; a mark
                                                                      and a bad byte */
    {TR_BPE_CL100K, "it|'s| we|'LL| |123|45|!?\n\n| a|  | b|\n\n|  "},
    {TR_BPE_CL100K, "hello|123|4|world| again|'\xc5\xbf|a"},
    {TR_BPE_GPT2, "a| '"}, /* what could go on ends the text */
    {TR_BPE_CL100K, "!"},
    {TR_BPE_CL100K, "x| '"},
    {TR_BPE_QWEN2, "(\n"},
    {TR_BPE_GPT2, "I|'m| he|'d| isn|'t| we|'ve| x|'|rx| x|'|lx| x|'|ee| x|'s"},
    {TR_BPE_GPT2, "x|'|r"}, /* whatever follows the end */
    {TR_BPE_GPT2, "x|'|l"},
    {TR_BPE_GPT2, "x|'|\xc5\xbf"},
    {TR_BPE_CL100K, "I|'M| he|'D| isn|'t| we|'VE| x|'rx| x|'lx| x|'ee| x|'s"},
    {TR_BPE_CL100K, "x|'r"},
    {TR_BPE_CL100K, "x|'l"},
    {TR_BPE_CL100K, "x|'\xc5\x81"},
    {TR_BPE_CL100K, "x|'\xc4\xbf"},
    {TR_BPE_CL100K, "x|'\xc5"},
    {TR_BPE_CL100K, "x|'\xc5\xbf|(word|\tword| \n \n| | ...\r\n| y"},
    {TR_BPE_CL100K, "\xe2\x82\xac"
                    "euro| \xe2\x82\xac|9|\xc2\xa0word|\n\n| "},
    {TR_BPE_QWEN2, "it|'re| |1|2|3|4|!| '|d|  "},
};

/* Whatever lies behind the end of the text. */
static void test_pieces(void **unused)
{
    static const char behind_it[] = "\0a1! \n'le\xbf";
    (void)unused;
    for (int n = 0; n < LENGTH(cuts) * (LENGTH(behind_it) - 1); n++) {
        const int i = n % LENGTH(cuts);
        char text[256] = "", got[256] = "";
        char *end = text;
        const char *behind;
        for (const char *c = cuts[i].pieces; *c; c++)
            if (*c != '|') *end++ = *c;
        memset(end, behind_it[n / LENGTH(cuts)], 4);
        for (const char *at = text; at < end; at = behind) {
            behind = tr_bpe_split(cuts[i].pattern, at, end);
            assert_true(behind > at && behind <= end);
            sprintf(got + strlen(got), "%s%.*s", at == text ? "" : "|", (int)(behind - at), at);
        }
        assert_string_equal(got, cuts[i].pieces);
    }
}

/* Each character of ASCII after one of each class: a piece of GPT-2 that ends with a letter takes letters,
 * one that ends with a digit digits, and the rest is of neither class. */
static void test_classes_of_ascii(void **unused)
{
    static const char *const before[] = {"b", "1", "#"};
    (void)unused;
    for (int c = 1; c < 128; c++) {
        const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'), digit = c >= '0' && c <= '9',
                   space = c == ' ' || (c >= '\t' && c <= '\r');
        const int class = letter ? 0 : digit ? 1 : space ? -1 : 2;
        for (int k = 0; k < LENGTH(before); k++) {
            const char text[] = {before[k][0], (char)c, '\0'};
            const char *behind = tr_bpe_split(TR_BPE_GPT2, text, text + 2);
            if (behind - text != (class == k ? 2 : 1)) fail_msg("character %d after \"%s\"", c, before[k]);
        }
    }
}

/* Of the Unicode Standard, Annex 15: figures 3 to 6, and a long row of marks. */
static void test_composition(void **unused)
{
    static const char *const pairs[][2] = {
        {"\xe2\x84\xab", "\xc3\x85"},                             /* ANGSTROM SIGN */
        {"\xe2\x84\xa6", "\xce\xa9"},                             /* OHM SIGN */
        {"s\xcc\xa3\xcc\x87", "\xe1\xb9\xa9"},                    /* two marks */
        {"\xe1\xb8\x8b\xcc\xa3", "\xe1\xb8\x8d\xcc\x87"},         /* in another order */
        {"q\xcc\x87\xcc\xa3", "q\xcc\xa3\xcc\x87"},               /* order alone */
        {"\xe1\x84\x92\xe1\x85\xa1\xe1\x86\xab", "\xed\x95\x9c"}, /* Hangul */
        {"\xef\xac\x81", "\xef\xac\x81"},                         /* compatibility stays */
        {"\xe0\xa5\x98", "\xe0\xa4\x95\xe0\xa4\xbc"},             /* excluded from composition */
        {"a\xff\xcc\x81", "a\xff\xcc\x81"},                       /* no character */
        {"a\xcc\x85\xcc\x81", "a\xcc\x85\xcc\x81"},               /* a mark of the same class between */
    };
    (void)unused;
    for (int i = 0; i < LENGTH(pairs); i++) {
        struct tr_text text = TR_TEXT_INIT;
        tr_unicode_compose(pairs[i][0], strlen(pairs[i][0]), &text);
        assert_false(text.failed);
        assert_string_equal(text.bytes, pairs[i][1]);
        tr_text_release(&text);
    }
    struct tr_text marks = TR_TEXT_INIT, text = TR_TEXT_INIT;
    tr_text_add(&marks, "x");
    for (int i = 0; i < 100000; i++) tr_text_add(&marks, i % 2 ? "\xcc\xa3" : "\xcc\x87");
    tr_unicode_compose(marks.bytes, marks.length, &text);
    assert_int_equal(text.length,
                     marks.length); /* dots below come first, and x takes one from above: U+1E8B */
    assert_memory_equal(text.bytes, "\xe1\xba\x8b\xcc\xa3\xcc\xa3", 7);
    assert_memory_equal(text.bytes + text.length - 2, "\xcc\x87", 2);
    tr_text_release(&text);
    tr_text_release(&marks);
}

/* ---- training ---- */

static void train_file(const char *text, int32_t tokens, int64_t least, const char *special)
{
    struct tr_tokenizer_settings settings = TR_TOKENIZER_SETTINGS_INIT;
    char path[256];
    const char *paths[] = {path};
    tr_tokenizer *tokenizer;
    write_file("train.txt", text, strlen(text));
    snprintf(path, sizeof path, "%s", test_path("train.txt"));
    settings.tokens = tokens;
    settings.least = least;
    settings.paths = paths;
    settings.path_count = 1;
    settings.special = &special;
    settings.special_count = special != NULL;
    if (tr_tokenizer_train(&settings, &tokenizer) != TR_OK) fail_msg("%s", tr_error_message());
    assert_int_equal(tr_tokenizer_save(tokenizer, test_path("tokenizer.json")), TR_OK);
    tr_tokenizer_destroy(&tokenizer);
}

static tr_bpe *open_trained(void)
{
    tr_bpe *bpe;
    if (tr_bpe_open(test_path("tokenizer.json"), &bpe) != TR_OK) fail_msg("%s", tr_error_message());
    return bpe;
}

static void expect_token(const tr_bpe *bpe, int32_t token, const char *text)
{
    size_t length;
    const char *bytes = tr_bpe_token(bpe, token, &length);
    if (length != strlen(text) || memcmp(bytes, text, length) != 0)
        fail_msg("token %d is \"%.*s\", not \"%s\"", (int)token, (int)length, bytes, text);
}

/* By hand: pieces "abab" twice and " abc" three times. ab comes 7 times; then " ab" and "abc" as " ab", "c":
   (" ", ab) 3, (ab, c) 3, (ab, ab) 2. Of the two the one whose left token has the least number: the blank's
   letter U+0120 is number 220 of the alphabet, ab is the 257th. */
static void test_training(void **unused)
{
    (void)unused;
    train_file("abab<|x|>abab abc abc abc", 262, 1, "<|x|>");
    tr_bpe *bpe = open_trained();
    assert_int_equal(tr_bpe_size(bpe), 261); /* no further pair */
    expect_token(bpe, 0, "<|x|>");
    expect_token(bpe, 1, "!");
    expect_token(bpe, 1 + 94, "\xa1");
    expect_token(bpe, 257, "ab");
    expect_token(bpe, 258, " ab");
    expect_token(bpe, 259, " abc");
    expect_token(bpe, 260, "abab");
    int32_t *tokens;
    int64_t count;
    assert_int_equal(tr_bpe_encode(bpe, "ababab<|x|> abx", 15, &tokens, &count), TR_OK);
    const int32_t x = tr_bpe_find(bpe, "x", 1), wanted[] = {260, 257, 0, 258, x};
    assert_int_equal(count, LENGTH(wanted));
    assert_memory_equal(tokens, wanted, sizeof wanted);
    tr_free(tokens);
    tr_bpe_destroy(&bpe);
    train_file("abab<|x|>abab abc abc abc", 262, 3, "<|x|>");
    bpe = open_trained();
    assert_int_equal(tr_bpe_size(bpe), 260); /* (ab, ab) comes twice only */
    tr_bpe_destroy(&bpe);
}

/* ---- encoding ---- */

/* As the definition says: the least rank, the leftmost of equal ones, one merge at a time. */
static int64_t merge_plainly(const tr_bpe *bpe, const char *piece, size_t length, int32_t *tokens)
{
    int64_t count = 0;
    for (size_t i = 0; i < length; i++) tokens[count++] = tr_bpe_find(bpe, piece + i, 1);
    for (;;) {
        int32_t left, right, made, best = INT32_MAX, product = 0;
        int64_t place = 0;
        for (int64_t i = 0; i + 1 < count; i++)
            for (int32_t rank = 0; rank < tr_bpe_merges(bpe) && rank < best; rank++) {
                tr_bpe_merge(bpe, rank, &left, &right, &made);
                if (left != tokens[i] || right != tokens[i + 1]) continue;
                best = rank;
                place = i;
                product = made;
            }
        if (best == INT32_MAX) return count;
        tokens[place] = product;
        memmove(tokens + place + 1, tokens + place + 2, (size_t)(--count - place - 1) * sizeof *tokens);
    }
}

/* Pieces of all lengths, short ones and such as take the heap. */
static void test_merging(void **unused)
{
    enum { MOST = 300 };
    static char text[4000];
    uint32_t random = 1;
    (void)unused;
    for (size_t i = 0; i < sizeof text - 1; i++) {
        random = random * 1664525 + 1013904223;
        text[i] = "abcab "[random >> 16 & 7 ? (random >> 20) % 5 : 5];
    }
    train_file(text, 420, 1, NULL);
    tr_bpe *bpe = open_trained();
    assert_true(tr_bpe_merges(bpe) > 100);
    for (size_t length = 1; length < MOST; length += length < 70 ? 1 : 37) {
        char piece[MOST];
        int32_t plain[MOST], *tokens;
        int64_t count;
        for (size_t i = 0; i < length; i++) {
            random = random * 1664525 + 1013904223;
            piece[i] = "abcab"[(random >> 20) % 5];
        }
        const int64_t wanted = merge_plainly(bpe, piece, length, plain);
        assert_int_equal(tr_bpe_encode(bpe, piece, length, &tokens, &count), TR_OK);
        assert_int_equal(count, wanted);
        assert_memory_equal(tokens, plain, (size_t)count * sizeof *tokens);
        tr_free(tokens);
    }
    tr_bpe_destroy(&bpe);
}

/* ---- files ---- */

/* A tokenizer.json of all bytes, more tokens, and these members. */
static void write_tokenizer(const char *tokens, const char *merges, const char *pattern, const char *members,
                            const char *added)
{
    struct tr_text text = TR_TEXT_INIT;
    tr_text_add(&text, "{\"model\": {\"type\": \"BPE\", \"vocab\": {");
    add_bytes(&text, -1);
    tr_text_addf(&text, "%s}, \"merges\": [%s]%s}, \"pre_tokenizer\": %s%s}", tokens, merges, members,
                 pattern, added);
    write_file("tokenizer.json", text.bytes, text.length);
    tr_text_release(&text);
}

#define BYTE_LEVEL "{\"type\": \"ByteLevel\", \"add_prefix_space\": false}"

/* Both forms of merges; and a piece that is a token, which merges would not make. */
static void test_merges_and_wholes(void **unused)
{
    (void)unused;
    for (int whole = 0; whole < 2; whole++) {
        int32_t *tokens;
        int64_t count;
        write_tokenizer(", \"ab\": 300, \"abc\": 301, \"bc\": 302", "\"b c\", [\"a\", \"b\"]", BYTE_LEVEL,
                        whole ? ", \"ignore_merges\": true" : "", "");
        tr_bpe *bpe = open_trained();
        assert_int_equal(tr_bpe_size(bpe), 303);
        assert_int_equal(tr_bpe_encode(bpe, "abc", 3, &tokens, &count), TR_OK);
        assert_int_equal(count, whole ? 1 : 2);
        assert_int_equal(tokens[count - 1], whole ? 301 : 302);
        tr_free(tokens);
        char *once, *twice;
        tr_bpe *copy;
        assert_int_equal(tr_bpe_write(bpe, &once), TR_OK);
        assert_int_equal(tr_bpe_parse(once, strlen(once), "once", &copy), TR_OK);
        assert_int_equal(tr_bpe_write(copy, &twice), TR_OK);
        assert_string_equal(once, twice);
        tr_free(once);
        tr_free(twice);
        tr_bpe_destroy(&copy);
        tr_bpe_destroy(&bpe);
    }
}

static const struct {
    const char *tokens, *merges, *pattern, *members, *added;
    tr_status status;
    const char *part;
} refused[] = {
    {"", "", "{\"type\": \"Whitespace\"}", "", "", TR_EUNSUPPORTED, "pre_tokenizer Whitespace"},
    {"", "", "null", "", "", TR_EUNSUPPORTED, "pre_tokenizer"},
    {"", "", "{\"type\": \"ByteLevel\", \"add_prefix_space\": true}", "", "", TR_EUNSUPPORTED,
     "add_prefix_space"},
    {"", "", "{\"type\": \"ByteLevel\", \"use_regex\": false}", "", "", TR_EUNSUPPORTED, "without a pattern"},
    {"", "",
     "{\"type\": \"Sequence\", \"pretokenizers\": [{\"type\": \"Split\", \"behavior\": \"Isolated\", "
     "\"pattern\": "
     "{\"Regex\": \"[a-z]+\"}}, {\"type\": \"ByteLevel\", \"use_regex\": false}]}",
     "", "", TR_EUNSUPPORTED, "pattern [a-z]+"},
    {"", "", BYTE_LEVEL, ", \"byte_fallback\": true", "", TR_EUNSUPPORTED, "byte_fallback"},
    {"", "", BYTE_LEVEL, ", \"dropout\": 0.1", "", TR_EUNSUPPORTED, "dropout"},
    {"", "", BYTE_LEVEL, "", ", \"normalizer\": {\"type\": \"Lowercase\"}", TR_EUNSUPPORTED,
     "normalizer Lowercase"},
    {"", "", BYTE_LEVEL, "", ", \"added_tokens\": [{\"id\": 9, \"content\": \"x\", \"lstrip\": true}]",
     TR_EUNSUPPORTED, "lstrip"},
    {"", "", BYTE_LEVEL, "", ", \"added_tokens\": [{\"id\": -1, \"content\": \"x\"}]", TR_EFORMAT,
     "number of token"},
    {", \"ab\": 7", "", BYTE_LEVEL, "", "", TR_EFORMAT, "number 7 is that of two tokens"},
    {", \"ab\": 9999999", "", BYTE_LEVEL, "", "", TR_EFORMAT,
     "number of token \"ab\" is not within 0 and 1048575"},
    {", \"ab\": 1048576", "", BYTE_LEVEL, "", "", TR_EFORMAT, "not within 0 and 1048575"},
    {"", "\"a b\"", BYTE_LEVEL, "", "", TR_EFORMAT, "both together"},
    {"", "\"ab c\"", BYTE_LEVEL, "", "", TR_EFORMAT, "the first is no token"},
    {"", "\"abc\"", BYTE_LEVEL, "", "", TR_EFORMAT, "not two tokens"},
    {"", "[\"a\"]", BYTE_LEVEL, "", "", TR_EFORMAT, "no pair"},
};

static void test_refused(void **unused)
{
    (void)unused;
    for (int i = 0; i < LENGTH(refused); i++) {
        tr_bpe *bpe = NULL;
        write_tokenizer(refused[i].tokens, refused[i].merges, refused[i].pattern, refused[i].members,
                        refused[i].added);
        const tr_status status = tr_bpe_open(test_path("tokenizer.json"), &bpe);
        if (status != refused[i].status || !strstr(tr_error_message(), refused[i].part))
            fail_msg("case %d: status %d, \"%s\" lacks \"%s\"", i, (int)status, tr_error_message(),
                     refused[i].part);
    }
    static const char missing[] =
        "{\"pre_tokenizer\": " BYTE_LEVEL ", \"model\": {\"vocab\": {\"a\": 0}, \"merges\": []}}";
    tr_bpe *bpe = NULL;
    assert_int_equal(tr_bpe_parse(missing, strlen(missing), "x", &bpe), TR_EFORMAT);
    assert_non_null(strstr(tr_error_message(), "byte 0x00"));
    struct tr_tokenizer_settings settings = TR_TOKENIZER_SETTINGS_INIT;
    tr_tokenizer *tokenizer;
    const char *paths[] = {"nowhere"};
    assert_int_equal(tr_tokenizer_train(&settings, &tokenizer), TR_EINVAL);
    settings.paths = paths;
    settings.path_count = 1;
    assert_int_equal(tr_tokenizer_train(&settings, &tokenizer), TR_ENOTFOUND);
    settings.pattern = "o200k";
    assert_int_equal(tr_tokenizer_train(&settings, &tokenizer), TR_EINVAL);
    assert_non_null(strstr(tr_error_message(), "o200k"));
    settings.pattern = "gpt2";
    settings.tokens = 200;
    assert_int_equal(tr_tokenizer_train(&settings, &tokenizer), TR_EINVAL);
    assert_non_null(strstr(tr_error_message(), "256 bytes"));
}

/* ---- vocab.json and merges.txt ---- */

static void test_pair_of_files(void **unused)
{
    struct tr_text vocabulary = TR_TEXT_INIT;
    static const char merges[] = "#version: 0.2\n\xc4\xa0 a\n\xc4\xa0"
                                 "a b\n";
    (void)unused;
    tr_text_add(&vocabulary, "{");
    add_bytes(&vocabulary, -1);
    tr_text_add(&vocabulary, ", \"\xc4\xa0"
                             "a\": 256, \"\xc4\xa0"
                             "ab\": 257, \"<|endoftext|>\": 258}");
    write_file("vocab.json", vocabulary.bytes, vocabulary.length);
    write_file("merges.txt", merges, strlen(merges));
    tr_text_release(&vocabulary);
    tr_bpe *bpe;
    if (tr_bpe_open(test_path("vocab.json"), &bpe) != TR_OK) fail_msg("%s", tr_error_message());
    int32_t *tokens;
    int64_t count;
    assert_int_equal(tr_bpe_encode(bpe, "b ab<|endoftext|> ac", 20, &tokens, &count), TR_OK);
    const int32_t wanted[] = {'b', 257, 258, 256, 'c'};
    assert_int_equal(count, LENGTH(wanted));
    assert_memory_equal(tokens, wanted, sizeof wanted);
    assert_true(tr_bpe_is_added(bpe, 258));
    tr_free(tokens);
    tr_bpe_destroy(&bpe);
}

/* ---- a corpus ---- */

/* Windows of subwords; a second corpus by the state of the first needs no tokenizer. */
static void test_corpus(void **unused)
{
    int32_t tokens[4], labels[4];
    int64_t length;
    const char *name;
    char *state;
    (void)unused;
    train_file("abab<|x|>abab abc abc abc", 262, 1, "<|x|>");
    write_file("a.txt", "ababab<|x|> abc", 15);
    tr_source *source = must_open("{corpus: {path: a.txt, unit: bpe, tokenizer: tokenizer.json, window: 2}}");
    assert_int_equal(tr_source_info(source)->vocabulary, 261);
    assert_int_equal(tr_source_info(source)->count, 1);
    assert_int_equal(tr_source_read(source, 0, tokens, 4, &length, labels), TR_OK);
    assert_int_equal(length, 2);
    assert_int_equal(tokens[0], 260);
    assert_int_equal(tokens[1], 257);
    assert_int_equal(labels[1], 0);
    assert_int_equal(tr_source_state(source, &name, &state), TR_OK);
    tr_source *second;
    remove(test_path("tokenizer.json"));
    assert_int_equal(tr_source_open("{corpus: {path: a.txt, window: 3}}", test_directory(), state, &second),
                     TR_OK);
    assert_int_equal(tr_source_read(second, 0, tokens, 4, &length, labels), TR_OK);
    assert_int_equal(labels[2], 259);
    tr_source_close(&second);
    tr_source_close(&source);
    tr_text_free(state);
    expect_refusal("{corpus: {path: a.txt, unit: bpe, window: 2}}", TR_EINVAL, "set tokenizer");
    expect_refusal("{corpus: {path: a.txt, unit: bpe, tokenizer: tokenizer.json, window: 2}}", TR_ENOTFOUND,
                   "tokenizer.json");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pieces),      cmocka_unit_test(test_classes_of_ascii),
        cmocka_unit_test(test_composition), cmocka_unit_test(test_training),
        cmocka_unit_test(test_merging),     cmocka_unit_test(test_merges_and_wholes),
        cmocka_unit_test(test_refused),     cmocka_unit_test(test_pair_of_files),
        cmocka_unit_test(test_corpus),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
