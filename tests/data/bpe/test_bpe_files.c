/* Files of tokenizers: what each member of tokenizer.json means, what is refused and in which words, added
 * tokens, and vocab.json with merges.txt.
 */
#include "base/alloc.h"
#include "base/fail.h"
#include "data/bpe/bpe.h"
#include "data/bpe/bytes.h"
#include "data/support.h"
#include "refuse.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <string.h>

#define LENGTH(array) ((int)(sizeof(array) / sizeof((array)[0])))
#define BYTE_LEVEL    "{\"type\": \"ByteLevel\"}"

/* What a tokenizer.json may have besides all bytes; NULL: as in the plainest one. */
struct parts {
    const char *tokens, *merges, *model, *added, *normalizer, *cut;
};

static const char *or_else(const char *given, const char *otherwise)
{
    return given ? given : otherwise;
}

static struct tr_text file_of(const struct parts *parts)
{
    struct tr_text text = TR_TEXT_INIT;
    tr_text_addf(&text, "{\"added_tokens\": %s, \"normalizer\": %s, \"pre_tokenizer\": %s, \"model\": {",
                 or_else(parts->added, "null"), or_else(parts->normalizer, "null"),
                 or_else(parts->cut, BYTE_LEVEL));
    tr_text_addf(&text, "%s\"vocab\": {", or_else(parts->model, ""));
    add_bytes(&text, -1);
    tr_text_addf(&text, "%s}, \"merges\": [%s]}}", or_else(parts->tokens, ""), or_else(parts->merges, ""));
    assert_false(text.failed);
    return text;
}

static tr_status parse(const struct parts *parts, tr_bpe **out)
{
    struct tr_text text = file_of(parts);
    *out = NULL;
    const tr_status status = tr_bpe_parse(text.bytes, text.length, "here", out);
    tr_text_release(&text);
    return status;
}

static tr_bpe *must_parse(const struct parts *parts)
{
    tr_bpe *bpe;
    if (parse(parts, &bpe) != TR_OK) fail_msg("%s", tr_error_message());
    return bpe;
}

static void expect_tokens(const tr_bpe *bpe, const char *text, const int32_t *wanted, int64_t count)
{
    int32_t *tokens;
    int64_t got;
    assert_int_equal(tr_bpe_encode(bpe, text, strlen(text), &tokens, &got), TR_OK);
    if (got != count || memcmp(tokens, wanted, (size_t)count * sizeof *wanted) != 0)
        fail_msg("\"%s\": %lld tokens from %d on", text, (long long)got, (int)tokens[0]);
    tr_free(tokens);
}

#define EXPECT(bpe, text, ...)                                                                               \
    expect_tokens(bpe, text, (const int32_t[]){__VA_ARGS__}, LENGTH(((const int32_t[]){__VA_ARGS__})))

/* ---- what is refused ---- */

#define SPLIT(members)                                                                                       \
    "{\"type\": \"Sequence\", \"pretokenizers\": [{\"type\": \"Split\", " members "}, " BYTE_LEVEL "]}"
#define QWEN2                                                                                                \
    "\"pattern\": {\"Regex\": \"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\\\r\\\\n\\\\p{L}\\\\p{N}]?\\\\p{L}+|"       \
    "\\\\p{N}| ?[^\\\\s\\\\p{L}\\\\p{N}]+[\\\\r\\\\n]*|\\\\s*[\\\\r\\\\n]+|\\\\s+(?!\\\\S)|\\\\s+\"}"
#define CUT_BEFORE ", \"use_regex\": false}]}"
#define AFTER_SPLIT(members)                                                                                 \
    "{\"type\": \"Sequence\", \"pretokenizers\": [{\"type\": \"Split\", " members                            \
    "}, {\"type\": \"ByteLevel\"" CUT_BEFORE

#define SECOND_OF(parts)                                                                                     \
    "{\"type\": \"Sequence\", \"pretokenizers\": [{\"type\": \"Split\", \"behavior\": \"Isolated\", " QWEN2  \
    "}, " parts "]}"

static const struct {
    struct parts parts;
    tr_status status;
    const char *message;
} refused[] = {
    {{.model = "\"type\": \"Unigram\", "}, TR_EUNSUPPORTED, "here: model Unigram is not known"},
    {{.model = "\"continuing_subword_prefix\": \"##\", "},
     TR_EUNSUPPORTED,
     "here: option continuing_subword_prefix is not known"},
    {{.model = "\"end_of_word_suffix\": \"</w>\", "}, TR_EUNSUPPORTED, "here: option end_of_word_suffix is"},
    {{.normalizer = "{\"type\": \"NFKC\"}"}, TR_EUNSUPPORTED, "here: normalizer NFKC is not known"},
    {{.added = "{}"}, TR_EFORMAT, "here: added_tokens is an object, not an array"},
    {{.added = "[{\"id\": 256}]"}, TR_EFORMAT, "content"},
    {{.added = "[{\"id\": 256, \"content\": \"\"}]"}, TR_EFORMAT, "here: an added token has no text"},
    {{.added = "[{\"content\": \"<a>\"}]"},
     TR_EFORMAT,
     "here: the number of token \"<a>\" is not within 0 and 1048575"},
    {{.added = "[{\"id\": 256, \"content\": \"<a>\", \"single_word\": true}]"},
     TR_EUNSUPPORTED,
     "here: an added token with single_word is not known"},
    {{.added = "[{\"id\": 256, \"content\": \"<a>\", \"rstrip\": true}]"},
     TR_EUNSUPPORTED,
     "here: an added token with rstrip is not known"},
    {{.added = "[{\"id\": 256, \"content\": \"<a>\"}, {\"id\": 256, \"content\": \"<b>\"}]"},
     TR_EFORMAT,
     "here: added token 256 is there twice"},
    {{.tokens = ", \"ab\": \"7\""}, TR_EFORMAT, "here: the number of token \"ab\" is not within 0 and"},
    {{.tokens = ", \"ab\": -1"}, TR_EFORMAT, "here: the number of token \"ab\" is not within 0 and"},
    {{.merges = "\"a b\""},
     TR_EFORMAT,
     "here: merge 0, \"a\" and \"b\": both together is no token of the vocabulary"},
    {{.tokens = ", \"ab\": 256", .merges = "\"a b\", \"a bc\""},
     TR_EFORMAT,
     "here: merge 1, \"a\" and \"bc\": the second is no token of the vocabulary"},
    {{.tokens = ", \"ab\": 256", .merges = "[\"ba\", \"b\"]"},
     TR_EFORMAT,
     "here: merge 0, \"ba\" and \"b\": the first is no token of the vocabulary"},
    {{.tokens = ", \"\xe6\x97\xa5\": 256", .merges = "[\"\xe6\x97\xa5\", \"b\"]"},
     TR_EFORMAT,
     "the first is no token of the vocabulary"},
    {{.tokens = ", \"\xe6\x97\xa5\": 256", .merges = "[\"b\", \"\xe6\x97\xa5\"]"},
     TR_EFORMAT,
     "the second is no token of the vocabulary"},
    {{.tokens = ", \"ab\": 256", .merges = "[\"a\", \"\"]"},
     TR_EFORMAT,
     "the second is no token of the vocabulary"},
    {{.tokens = ", \"ab\": 256", .merges = "\"a  b\""},
     TR_EFORMAT,
     "here: merge 0 is \"a  b\", not two tokens and a blank between"},
    {{.merges = "\"\xc3\xa9\xc3\xa9 b\""}, TR_EFORMAT, "not two tokens and a blank between"},
    {{.merges = "\"b \xc3\xa9\xc3\xa9\""}, TR_EFORMAT, "not two tokens and a blank between"},
    {{.merges = "[\"a\", \"b\", \"c\"]"}, TR_EFORMAT, "here: merge 0 is no pair of tokens"},
    {{.merges = "[\"a\", 1]"}, TR_EFORMAT, "here: merge 0 is no pair of tokens"},
    {{.merges = "[1, \"a\"]"}, TR_EFORMAT, "here: merge 0 is no pair of tokens"},
    {{.merges = "[\"\xc3\xa9\xc3\xa9\", \"a\"]"}, TR_EFORMAT, "here: merge 0 is no pair of tokens"},
    {{.merges = "[\"a\", \"\xc3\xa9\xc3\xa9\"]"}, TR_EFORMAT, "here: merge 0 is no pair of tokens"},
    {{.merges = "1"}, TR_EFORMAT, "here: merge 0 is no pair of tokens"},
    {{.merges = "[]"}, TR_EFORMAT, "here: merge 0 is no pair of tokens"},
    {{.cut = SECOND_OF("{\"type\": \"Digits\"}")},
     TR_EUNSUPPORTED,
     "here: pre_tokenizer Sequence is not known"},
    {{.cut = SECOND_OF("{\"type\": \"ByteLevel\", \"use_regex\": false}, " BYTE_LEVEL)},
     TR_EUNSUPPORTED,
     "here: pre_tokenizer Sequence is not known"},
    {{.cut = SECOND_OF("{\"type\": \"ByteLevel\", \"add_prefix_space\": true, \"use_regex\": false}")},
     TR_EUNSUPPORTED,
     "here: option add_prefix_space is not known"},
    {{.cut = "{\"type\": \"Several\", \"pretokenizers\": [{\"type\": \"Split\", \"behavior\": "
             "\"Isolated\", " QWEN2 "}, {\"type\": \"ByteLevel\"" CUT_BEFORE},
     TR_EUNSUPPORTED,
     "here: pre_tokenizer Several is not known"},
    {{.cut = SPLIT("\"behavior\": \"Isolated\", " QWEN2)},
     TR_EUNSUPPORTED,
     "here: option use_regex after a Split is not known"},
    {{.cut = AFTER_SPLIT("\"behavior\": \"Removed\", " QWEN2)},
     TR_EUNSUPPORTED,
     "here: behaviour Removed is not known"},
    {{.cut = AFTER_SPLIT("\"behavior\": \"Isolated\", \"invert\": true, " QWEN2)},
     TR_EUNSUPPORTED,
     "here: option invert is not known"},
    {{.cut = AFTER_SPLIT("\"behavior\": \"Isolated\"")}, TR_EFORMAT, "pattern"},
    {{.cut = "{\"type\": \"Sequence\", \"pretokenizers\": [" BYTE_LEVEL "]}"},
     TR_EUNSUPPORTED,
     "here: pre_tokenizer Sequence is not known"},
    {{.cut = "{\"type\": \"Sequence\", \"pretokenizers\": [" BYTE_LEVEL ", " BYTE_LEVEL "]}"},
     TR_EUNSUPPORTED,
     "here: pre_tokenizer Sequence is not known"},
    {{.cut = "{\"type\": \"Sequence\", \"pretokenizers\": {}}"},
     TR_EUNSUPPORTED,
     "here: pre_tokenizer Sequence is not known"},
};

static void odd_files_are_refused(void **unused)
{
    (void)unused;
    for (int i = 0; i < LENGTH(refused); i++) {
        const int64_t live = tr_alloc_live();
        tr_bpe *bpe;
        const tr_status status = parse(&refused[i].parts, &bpe);
        if (status != refused[i].status || !strstr(tr_error_message(), refused[i].message))
            fail_msg("case %d: %s, \"%s\" lacks \"%s\"", i, tr_status_name(status), tr_error_message(),
                     refused[i].message);
        assert_null(bpe);
        assert_int_equal(tr_alloc_live(), live);
    }
}

static void members_may_not_lack(void **unused)
{
    static const char *const texts[][2] = {
        {"{\"pre_tokenizer\": " BYTE_LEVEL "}", "model"},
        {"{\"pre_tokenizer\": " BYTE_LEVEL ", \"model\": {\"merges\": []}}", "vocab"},
        {"{\"pre_tokenizer\": " BYTE_LEVEL ", \"model\": {\"vocab\": {}}}", "merges"},
        {"{\"model\": {\"vocab\": {}, \"merges\": []}}", "pre_tokenizer null is not known"},
        {"{\"pre_tokenizer\": " BYTE_LEVEL ", \"model\": {\"vocab\": {}, \"merges\": []}}",
         "no token is the byte 0x00"},
    };
    (void)unused;
    for (int i = 0; i < LENGTH(texts); i++) {
        tr_bpe *bpe = NULL;
        assert_int_not_equal(tr_bpe_parse(texts[i][0], strlen(texts[i][0]), "here", &bpe), TR_OK);
        if (!strstr(tr_error_message(), texts[i][1])) fail_msg("%s", tr_error_message());
        assert_null(bpe);
    }
}

/* ---- what the members mean ---- */

/* A merge may make token 0, and one number in between may have no token. */
static void numbers_are_free(void **unused)
{
    struct tr_text text = TR_TEXT_INIT;
    tr_bpe *bpe = NULL;
    size_t length;
    (void)unused;
    tr_text_add(&text, "{\"pre_tokenizer\": " BYTE_LEVEL ", \"model\": {\"vocab\": {");
    add_bytes(&text, 0);
    tr_text_add(&text, ", \"\xc4\x80\": 300, \"ab\": 0, \"abc\": 1048575, \"cab\": 302}, "
                       "\"merges\": [\"a b\", \"c ab\", \"ab c\"]}}");
    assert_int_equal(tr_bpe_parse(text.bytes, text.length, "here", &bpe), TR_OK);
    tr_text_release(&text);
    assert_int_equal(tr_bpe_size(bpe), 1048576);
    assert_int_equal(tr_bpe_merges(bpe), 3);
    EXPECT(bpe, "ab", 0);
    EXPECT(bpe, "cab", 302);
    EXPECT(bpe, "abcd", 1048575, 'd');
    tr_bpe_token(bpe, 301, &length);
    assert_int_equal(length, 0);
    assert_int_equal(tr_bpe_find(bpe, "", 1), 300);
    assert_int_equal(tr_bpe_find(bpe, "ba", 2), -1);
    tr_bpe_destroy(&bpe);
    assert_null(bpe);
    tr_bpe_destroy(&bpe);
}

/* With ignore_merges a piece that is a token is not merged; one that is none is. */
static void whole_pieces_may_be_tokens(void **unused)
{
    (void)unused;
    tr_bpe *bpe = must_parse(&(struct parts){.model = "\"ignore_merges\": true, ",
                                             .tokens = ", \"ab\": 256, \"bc\": 257, \"abc\": 258",
                                             .merges = "\"b c\", \"a b\""});
    assert_true(tr_bpe_ignores_merges(bpe));
    EXPECT(bpe, "abc", 258);
    EXPECT(bpe, "abcd", 'a', 257, 'd');
    EXPECT(bpe, "dab", 'd', 256);
    EXPECT(bpe, "zz", 'z', 'z');
    tr_bpe_destroy(&bpe);
}

/* Options that are there and say nothing, and some that are no truth values. */
static void options_may_say_nothing(void **unused)
{
    static const struct parts cases[] = {
        {.model = "\"dropout\": null, \"continuing_subword_prefix\": \"\", \"byte_fallback\": false, "},
        {.model = "\"ignore_merges\": null, "},
        {.model = "\"ignore_merges\": \"yes\", "},
        {.model = "\"ignore_merges\": false, "},
        {.cut = "{\"type\": \"ByteLevel\", \"use_regex\": null}"},
        {.cut = "{\"type\": \"ByteLevel\", \"use_regex\": true, \"add_prefix_space\": false}"},
    };
    (void)unused;
    for (int i = 0; i < LENGTH(cases); i++) {
        tr_bpe *bpe = must_parse(&cases[i]);
        assert_false(tr_bpe_ignores_merges(bpe));
        assert_int_equal(tr_bpe_pattern_of(bpe), TR_BPE_GPT2);
        tr_bpe_destroy(&bpe);
    }
}

/* Texts are composed only where the normalizer says so. */
static void texts_are_composed_on_demand(void **unused)
{
    static const char parted[] = "e\xcc\x81x";
    (void)unused;
    tr_bpe *bpe = must_parse(&(struct parts){0});
    assert_false(tr_bpe_composes(bpe));
    EXPECT(bpe, parted, 'e', 0xcc, 0x81, 'x');
    tr_bpe_destroy(&bpe);
    bpe = must_parse(&(struct parts){.normalizer = "{\"type\": \"NFC\"}"});
    assert_true(tr_bpe_composes(bpe));
    EXPECT(bpe, parted, 0xc3, 0xa9, 'x');
    tr_bpe_destroy(&bpe);
}

/* The added token that begins first counts, and the longest of those that begin there; one that is
   normalized is looked for in the composed text. */
static void added_tokens_are_found_first(void **unused)
{
    (void)unused;
    tr_bpe *bpe = must_parse(&(struct parts){
        .normalizer = "{\"type\": \"NFC\"}",
        .tokens = ", \"ab\": 259",
        .merges = "\"a b\"",
        .added =
            "[{\"id\": 256, \"content\": \"<a>\", \"special\": true}, {\"id\": 257, \"content\": \"<a>b\"}, "
            "{\"id\": 258, \"content\": \"\xc3\xa9!\", \"normalized\": true}, {\"id\": 260, \"content\": "
            "\"<a\"}, "
            "{\"id\": 261, \"content\": \"<b>\", \"special\": false}]"});
    EXPECT(bpe, "x<a>b<a><a", 'x', 257, 256, 260);
    EXPECT(bpe, "<a>ab<", 256, 259, '<');
    EXPECT(bpe, "<", '<');
    EXPECT(bpe, "e\xcc\x81!x", 258, 'x');
    EXPECT(bpe, "<b>e\xcc\x81", 261, 0xc3, 0xa9);
    static const char *const texts[] = {"<a>", "<a>b", "\xc3\xa9!", "ab", "<a", "<b>"};
    for (int32_t i = 0; i < LENGTH(texts); i++) {
        assert_int_equal(tr_bpe_is_added(bpe, 256 + i), i != 3);
        assert_int_equal(tr_bpe_is_special(bpe, 256 + i), i == 0);
        assert_int_equal(tr_bpe_find_added(bpe, texts[i]), i == 3 ? -1 : 256 + i);
    }
    assert_int_equal(tr_bpe_find_added(bpe, "<c>"), -1); /* as long as others */
    assert_int_equal(tr_bpe_find_added(bpe, ""), -1);
    assert_int_equal(tr_bpe_find(bpe, "<a>", 3), -1);
    tr_bpe_destroy(&bpe);
}

/* ---- writing ---- */

/* All that a tokenizer says of itself is in what is written. */
static void what_is_written_says_all(void **unused)
{
    static const char *const members[] = {
        "{\"id\": 256, \"content\": \"<a>\", \"single_word\": false, \"lstrip\": false, \"rstrip\": false, "
        "\"normalized\": false, \"special\": true}",
        "{\"id\": 257, \"content\": \"\xe6\x97\xa5\", \"single_word\": false, \"lstrip\": false, \"rstrip\": "
        "false, "
        "\"normalized\": true, \"special\": false}",
        "\"normalizer\": {\"type\": \"NFC\"}",
        "\"ignore_merges\": true",
        "\"\xe6\x9c\xac\": 260", /* no bytes, so it stays as it is */
        "\"post_processor\": null",
        "\"decoder\": {\"type\": \"ByteLevel\", ",
        "\"\xc4\xa0\": 32,",
        "\"\xc4\xa0"
        "a\": 258,",
        "\"\xc3\xa9\": 233,",
        "\"merges\": [\n[\"\xc4\xa0\", \"a\"],\n[\"a\", \"b\"]\n]",
    };
    (void)unused;
    tr_bpe *copy = NULL, *bpe = must_parse(&(struct parts){
                             .model = "\"ignore_merges\": true, ",
                             .normalizer = "{\"type\": \"NFC\"}",
                             .cut = AFTER_SPLIT("\"behavior\": \"Isolated\", " QWEN2),
                             .tokens = ", \"\xc4\xa0"
                                       "a\": 258, \"ab\": 259, \"\xe6\x9c\xac\": 260",
                             .merges = "\"\xc4\xa0 a\", \"a b\"",
                             .added = "[{\"id\": 256, \"content\": \"<a>\", \"special\": true}, "
                                      "{\"id\": 257, \"content\": \"\xe6\x97\xa5\", \"normalized\": true}]"});
    char *text = NULL;
    assert_int_equal(tr_bpe_pattern_of(bpe), TR_BPE_QWEN2);
    assert_int_equal(tr_bpe_write(bpe, &text), TR_OK);
    for (int i = 0; i < LENGTH(members); i++)
        if (!strstr(text, members[i])) fail_msg("lacks %s: %s", members[i], text);
    assert_int_equal(tr_bpe_parse(text, strlen(text), "copy", &copy), TR_OK);
    assert_int_equal(tr_bpe_pattern_of(copy), TR_BPE_QWEN2);
    assert_true(tr_bpe_composes(copy) && tr_bpe_ignores_merges(copy));
    assert_true(tr_bpe_is_special(copy, 256) && !tr_bpe_is_special(copy, 257));
    EXPECT(copy, "<a> ab\xe6\x97\xa5", 256, 258, 'b', 257);
    tr_free(text);
    tr_bpe_destroy(&copy);
    tr_bpe_destroy(&bpe);
}

static void add_run(struct tr_text *text, const char *part, int count)
{
    for (int i = 0; i < count; i++) tr_text_add(text, part);
}

/* Tokens that outgrow the first room for their texts, one of them of no bytes, and a merge of long ones. */
static void a_lack_of_memory_leaves_nothing(void **unused)
{
    struct tr_text tokens = TR_TEXT_INIT, merges = TR_TEXT_INIT;
    (void)unused;
    tr_text_add(&tokens, ", \"ab\": 256, \"abc\": 257, \"");
    add_run(&tokens, "c", 200);
    tr_text_add(&tokens, "\": 259, \"");
    add_run(&tokens, "d", 100);
    tr_text_add(&tokens, "\": 260, \"");
    add_run(&tokens, "c", 200);
    add_run(&tokens, "d", 100);
    tr_text_add(&tokens, "\": 261, \"");
    add_run(&tokens, "\xe6\x97\xa5", 1500);
    tr_text_add(&tokens, "\": 262, \"abab\": 263, \"aba\": 264");
    tr_text_add(&merges, "\"a b\", [\"ab\", \"c\"], [\"");
    add_run(&merges, "c", 200);
    tr_text_add(&merges, "\", \"");
    add_run(&merges, "d", 100);
    tr_text_add(&merges, "\"], \"ab a\", \"ab ab\"");
    const struct parts parts = {.normalizer = "{\"type\": \"NFC\"}",
                                .tokens = tokens.bytes,
                                .merges = merges.bytes,
                                .added = "[{\"id\": 258, \"content\": \"<a>\"}]"};
    for (int64_t at = 0, done = 0; !done; at++) {
        const int64_t live = tr_alloc_live();
        tr_bpe *bpe = NULL;
        char *written = NULL;
        int32_t *tokens_of = NULL;
        int64_t count;
        struct tr_text text = file_of(&parts);
        refuse_begin(at);
        tr_status status = tr_bpe_parse(text.bytes, text.length, "here", &bpe);
        if (status == TR_OK) status = tr_bpe_write(bpe, &written);
        if (status == TR_OK) status = tr_bpe_encode(bpe, "e\xcc\x81<a>abc", 9, &tokens_of, &count);
        done = refuse_end();
        assert_int_equal(status, done ? TR_OK : TR_ENOMEM);
        tr_free(tokens_of);
        tr_free(written);
        tr_bpe_destroy(&bpe);
        tr_text_release(&text);
        assert_int_equal(tr_alloc_live(), live);
    }
    /* Long pieces, whose merges make more candidates than there were pairs before. */
    tr_bpe *bpe = must_parse(&parts);
    char piece[160]; /* abab where it can be; the last three of an odd number are aba */
    for (int i = 0; i < LENGTH(piece); i++) piece[i] = i % 2 ? 'b' : 'a';
    for (size_t length = 60; length < sizeof piece; length++)
        for (int64_t at = 0, done = 0; !done; at++) {
            const int64_t live = tr_alloc_live();
            int32_t *tokens_of = NULL;
            int64_t count = 0;
            refuse_begin(at);
            const tr_status status = tr_bpe_encode(bpe, piece, length, &tokens_of, &count);
            done = refuse_end();
            assert_int_equal(status, done ? TR_OK : TR_ENOMEM);
            if (done) assert_int_equal(count, length % 2 ? (length + 4) / 4 : (length + 2) / 4);
            tr_free(tokens_of);
            assert_int_equal(tr_alloc_live(), live);
        }
    tr_bpe_destroy(&bpe);
    tr_text_release(&tokens);
    tr_text_release(&merges);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(odd_files_are_refused),
        cmocka_unit_test(members_may_not_lack),
        cmocka_unit_test(numbers_are_free),
        cmocka_unit_test(whole_pieces_may_be_tokens),
        cmocka_unit_test(options_may_say_nothing),
        cmocka_unit_test(texts_are_composed_on_demand),
        cmocka_unit_test(added_tokens_are_found_first),
        cmocka_unit_test(what_is_written_says_all),
        cmocka_unit_test(a_lack_of_memory_leaves_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
