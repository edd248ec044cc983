/* Tokenizers of programs (trireme/tokenizer.h): which settings are refused, what fits into the room that a
 * caller gives, which files a path means, and that a lack of memory leaves nothing behind.
 */
#include "trireme/tokenizer.h"

#include "base/fail.h"
#include "data/bpe/bpe.h"
#include "data/support.h"
#include "refuse.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#define LENGTH(array) ((int)(sizeof(array) / sizeof((array)[0])))

static char text_path[512];

/* Settings for one file, whose text gives the tokens "ab", " ab", " abc" and "abab" after 256 bytes. */
static struct tr_tokenizer_settings settings_of_file(void)
{
    static const char *paths[] = {text_path};
    struct tr_tokenizer_settings settings = TR_TOKENIZER_SETTINGS_INIT;
    write_text("train.txt", "ababab abc abc abc");
    snprintf(text_path, sizeof text_path, "%s", test_path("train.txt"));
    settings.tokens = 260;
    settings.paths = paths;
    settings.path_count = 1;
    return settings;
}

static tr_tokenizer *must_train(const struct tr_tokenizer_settings *settings)
{
    tr_tokenizer *tokenizer = NULL;
    if (tr_tokenizer_train(settings, &tokenizer) != TR_OK) fail_msg("%s", tr_error_message());
    return tokenizer;
}

static void expect_failure(const struct tr_tokenizer_settings *settings, tr_status status, const char *part)
{
    tr_tokenizer *tokenizer = NULL;
    assert_int_equal(tr_tokenizer_train(settings, &tokenizer), status);
    assert_null(tokenizer);
    if (!strstr(tr_error_message(), part)) fail_msg("\"%s\" lacks \"%s\"", tr_error_message(), part);
}

/* ---- settings ---- */

static void settings_are_checked(void **unused)
{
    static const char *const twice[] = {"<a>", "<b>", "<a>"}, *const empty[] = {"<a>", ""};
    (void)unused;
    struct tr_tokenizer_settings settings = settings_of_file();
    settings.pattern = NULL;
    expect_failure(&settings, TR_EINVAL, "pattern \"\" is none of gpt2, cl100k and qwen2");
    settings.pattern = "gpt";
    expect_failure(&settings, TR_EINVAL, "pattern \"gpt\" is none of gpt2, cl100k and qwen2");
    settings = settings_of_file();
    settings.path_count = 0;
    expect_failure(&settings, TR_EINVAL, "no file of text is given to train a tokenizer on");
    settings = settings_of_file();
    settings.least = 0;
    expect_failure(&settings, TR_EINVAL, "pairs are merged from 0 occurrences on; give at least 1");
    settings = settings_of_file();
    settings.special = twice;
    settings.special_count = 3;
    expect_failure(&settings, TR_EINVAL, "special token \"<a>\" is there twice");
    settings.special = empty;
    settings.special_count = 2;
    expect_failure(&settings, TR_EINVAL, "a special token is empty");
    /* One of a single byte is another token than that byte. */
    tr_tokenizer *tokenizer = NULL;
    settings.special = (const char *const[]){"a"};
    settings.special_count = 1;
    settings.tokens = 257;
    assert_int_equal(tr_tokenizer_train(&settings, &tokenizer), TR_OK);
    assert_int_equal(tr_tokenizer_size(tokenizer), 257);
    tr_tokenizer_destroy(&tokenizer);
}

/* The least and the greatest number of tokens. */
static void numbers_of_tokens_are_checked(void **unused)
{
    static const char *const special[] = {"<a>", "<b>"};
    (void)unused;
    struct tr_tokenizer_settings settings = settings_of_file();
    settings.tokens = 255;
    expect_failure(&settings, TR_EINVAL,
                   "a vocabulary of 255 tokens has no room for 256 bytes and 0 special tokens");
    settings.special = special;
    settings.special_count = 2;
    settings.tokens = 257;
    expect_failure(&settings, TR_EINVAL,
                   "a vocabulary of 257 tokens has no room for 256 bytes and 2 special tokens");
    settings.tokens = 258;
    tr_tokenizer *tokenizer = must_train(&settings);
    assert_int_equal(tr_tokenizer_size(tokenizer), 258);
    tr_tokenizer_destroy(&tokenizer);
    settings.tokens = TR_BPE_TOKENS_MAX + 1;
    expect_failure(&settings, TR_EINVAL, "a vocabulary of 1048577 tokens; at most 1048576 are possible");
    settings.tokens = TR_BPE_TOKENS_MAX;
    tokenizer = must_train(&settings);
    assert_int_equal(tr_tokenizer_size(tokenizer), 263); /* "ababab" is the last pair of the text */
    tr_tokenizer_destroy(&tokenizer);
    tr_tokenizer_destroy(&tokenizer);
}

/* The texts of all files count; one that is missing ends the training. */
static void all_files_are_read(void **unused)
{
    (void)unused;
    struct tr_tokenizer_settings settings = settings_of_file();
    char second[512];
    write_text("second.txt", "zyzyzy zyzy zyzy zyzy");
    snprintf(second, sizeof second, "%s", test_path("second.txt"));
    const char *paths[] = {text_path, second};
    settings.paths = paths;
    settings.path_count = 2;
    settings.tokens = 257;
    tr_tokenizer *tokenizer = must_train(&settings);
    char text[4];
    size_t length;
    assert_int_equal(tr_tokenizer_decode(tokenizer, &(int32_t){256}, 1, sizeof text, text, &length), TR_OK);
    assert_int_equal(length, 2);
    assert_memory_equal(text, "zy", 2);
    tr_tokenizer_destroy(&tokenizer);
    remove(second);
    expect_failure(&settings, TR_ENOTFOUND, "second.txt");
}

/* A pattern is chosen by its name. */
static void patterns_have_names(void **unused)
{
    static const struct {
        const char *name;
        enum tr_bpe_pattern pattern;
    } patterns[] = {{"gpt2", TR_BPE_GPT2}, {"cl100k", TR_BPE_CL100K}, {"qwen2", TR_BPE_QWEN2}};
    (void)unused;
    for (int i = 0; i < LENGTH(patterns); i++) {
        struct tr_tokenizer_settings settings = settings_of_file();
        settings.pattern = patterns[i].name;
        tr_tokenizer *tokenizer = must_train(&settings);
        assert_int_equal(tr_tokenizer_save(tokenizer, test_path("saved.json")), TR_OK);
        tr_tokenizer_destroy(&tokenizer);
        tr_bpe *bpe = NULL;
        assert_int_equal(tr_bpe_open(test_path("saved.json"), &bpe), TR_OK);
        assert_int_equal(tr_bpe_pattern_of(bpe), patterns[i].pattern);
        assert_false(tr_bpe_composes(bpe));
        assert_false(tr_bpe_ignores_merges(bpe));
        tr_bpe_destroy(&bpe);
    }
}

/* ---- use ---- */

static void tokens_fill_the_room(void **unused)
{
    (void)unused;
    struct tr_tokenizer_settings settings = settings_of_file();
    tr_tokenizer *tokenizer = must_train(&settings);
    int32_t all[8];
    int64_t count;
    assert_int_equal(tr_tokenizer_encode(tokenizer, "abab ab c", 9, 8, all, &count), TR_OK);
    assert_int_equal(count, 4);
    assert_int_equal(all[0], 259); /* abab */
    assert_int_equal(all[1], 257); /* " ab", then " " and "c" */
    for (int64_t room = 0; room <= 5; room++) {
        int32_t some[8];
        memset(some, 0xee, sizeof some);
        assert_int_equal(tr_tokenizer_encode(tokenizer, "abab ab c", 9, room, some, &count), TR_OK);
        assert_int_equal(count, 4);
        const int64_t taken = room < 4 ? room : 4;
        assert_memory_equal(some, all, (size_t)taken * sizeof *some);
        for (int64_t i = taken; i < 8; i++) assert_int_equal(some[i], (int32_t)0xeeeeeeee);
    }
    count = 1;
    assert_int_equal(tr_tokenizer_encode(tokenizer, "", 0, 8, all, &count), TR_OK);
    assert_int_equal(count, 0);
    tr_tokenizer_destroy(&tokenizer);
}

static void texts_fill_the_room(void **unused)
{
    static const char wanted[] = "abab ab c";
    (void)unused;
    struct tr_tokenizer_settings settings = settings_of_file();
    tr_tokenizer *tokenizer = must_train(&settings);
    int32_t tokens[4];
    int64_t count;
    size_t length;
    assert_int_equal(tr_tokenizer_encode(tokenizer, wanted, 9, 4, tokens, &count), TR_OK);
    for (size_t room = 0; room <= 11; room++) {
        char text[12];
        memset(text, '#', sizeof text);
        assert_int_equal(tr_tokenizer_decode(tokenizer, tokens, 4, room, text, &length), TR_OK);
        assert_int_equal(length, 9);
        const size_t taken = room < 9 ? room : 9;
        assert_memory_equal(text, wanted, taken);
        for (size_t i = taken; i < sizeof text; i++) assert_int_equal(text[i], '#');
    }
    assert_int_equal(tr_tokenizer_decode(tokenizer, tokens, 0, 4, NULL, &length), TR_OK);
    assert_int_equal(length, 0);
    tr_tokenizer_destroy(&tokenizer);
}

static void numbers_without_a_token_are_refused(void **unused)
{
    (void)unused;
    struct tr_tokenizer_settings settings = settings_of_file();
    tr_tokenizer *tokenizer = must_train(&settings);
    char text[8];
    size_t length;
    const int32_t last[] = {0, 259}, behind[] = {0, 260}, below[] = {0, 1, -1};
    assert_int_equal(tr_tokenizer_decode(tokenizer, last, 2, sizeof text, text, &length), TR_OK);
    assert_int_equal(tr_tokenizer_decode(tokenizer, behind, 2, sizeof text, text, &length), TR_EINVAL);
    assert_string_equal(tr_error_message(),
                        "number 2, 260, is no token; the tokenizer has 260, counted from 0");
    assert_int_equal(tr_tokenizer_decode(tokenizer, below, 3, sizeof text, text, &length), TR_EINVAL);
    assert_string_equal(tr_error_message(),
                        "number 3, -1, is no token; the tokenizer has 260, counted from 0");
    tr_tokenizer_destroy(&tokenizer);
}

/* Any bytes have tokens, and these have the bytes. */
static void all_bytes_come_back(void **unused)
{
    char all[256], text[256];
    int32_t tokens[256];
    int64_t count;
    size_t length;
    (void)unused;
    struct tr_tokenizer_settings settings = settings_of_file();
    tr_tokenizer *tokenizer = must_train(&settings);
    for (int i = 0; i < 256; i++) all[i] = (char)(i * 167);
    assert_int_equal(tr_tokenizer_encode(tokenizer, all, sizeof all, 256, tokens, &count), TR_OK);
    assert_int_equal(tr_tokenizer_decode(tokenizer, tokens, count, sizeof text, text, &length), TR_OK);
    assert_int_equal(length, sizeof all);
    assert_memory_equal(text, all, sizeof all);
    tr_tokenizer_destroy(&tokenizer);
}

/* ---- without memory ---- */

static void training_survives_a_lack_of_memory(void **unused)
{
    static const char *const special[] = {"<a>"};
    (void)unused;
    struct tr_tokenizer_settings settings = settings_of_file();
    settings.special = special;
    settings.special_count = 1;
    const char *path = test_path("short.json");
    for (int64_t at = 0, done = 0; !done; at++) {
        const int64_t live = tr_alloc_live();
        tr_tokenizer *tokenizer = NULL;
        refuse_begin(at);
        tr_status status = tr_tokenizer_train(&settings, &tokenizer);
        const bool trained = status == TR_OK;
        if (trained) status = tr_tokenizer_save(tokenizer, path);
        done = refuse_end();
        assert_int_equal(status, done ? TR_OK : TR_ENOMEM);
        assert_int_equal(tokenizer != NULL, trained);
        tr_tokenizer_destroy(&tokenizer);
        assert_int_equal(tr_alloc_live(), live);
    }
}

static void use_survives_a_lack_of_memory(void **unused)
{
    char text[200];
    (void)unused;
    memset(text, 'a', sizeof text);
    for (int i = 1; i < LENGTH(text); i += 2) text[i] = 'b';
    struct tr_tokenizer_settings settings = settings_of_file();
    tr_tokenizer *tokenizer = must_train(&settings);
    assert_int_equal(tr_tokenizer_save(tokenizer, test_path("saved.json")), TR_OK);
    tr_tokenizer_destroy(&tokenizer);
    for (int64_t at = 0, done = 0; !done; at++) {
        const int64_t live = tr_alloc_live();
        int64_t count = 0;
        tokenizer = NULL;
        refuse_begin(at);
        tr_status status = tr_tokenizer_open(test_path("saved.json"), &tokenizer);
        if (status == TR_OK) status = tr_tokenizer_encode(tokenizer, text, sizeof text, 0, NULL, &count);
        done = refuse_end();
        assert_int_equal(status, done ? TR_OK : TR_ENOMEM);
        if (done) assert_int_equal(count, 50);
        tr_tokenizer_destroy(&tokenizer);
        assert_int_equal(tr_alloc_live(), live);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(settings_are_checked),
        cmocka_unit_test(numbers_of_tokens_are_checked),
        cmocka_unit_test(all_files_are_read),
        cmocka_unit_test(patterns_have_names),
        cmocka_unit_test(tokens_fill_the_room),
        cmocka_unit_test(texts_fill_the_room),
        cmocka_unit_test(numbers_without_a_token_are_refused),
        cmocka_unit_test(all_bytes_come_back),
        cmocka_unit_test(training_survives_a_lack_of_memory),
        cmocka_unit_test(use_survives_a_lack_of_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
