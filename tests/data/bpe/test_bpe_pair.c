/* vocab.json with merges.txt, and which files a path means. */
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
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define LENGTH(array) ((int)(sizeof(array) / sizeof((array)[0])))

/* All bytes, then `more`, as a vocab.json of this name; or as a tokenizer.json, without merges. */
static void write_vocabulary(const char *name, const char *more, bool whole)
{
    struct tr_text text = TR_TEXT_INIT;
    if (whole) tr_text_add(&text, "{\"pre_tokenizer\": {\"type\": \"ByteLevel\"}, \"model\": {\"vocab\": ");
    tr_text_add(&text, "{");
    add_bytes(&text, -1);
    tr_text_addf(&text, "%s}%s", more, whole ? ", \"merges\": []}}" : "");
    write_file(name, text.bytes, text.length);
    tr_text_release(&text);
}

#define MORE ", \"ab\": 256, \"abc\": 257, \"<|end|>\": 258"

static tr_bpe *must_open_bpe(const char *name)
{
    tr_bpe *bpe = NULL;
    if (tr_bpe_open(test_path(name), &bpe) != TR_OK) fail_msg("%s: %s", name, tr_error_message());
    return bpe;
}

static void expect_failure(const char *name, tr_status status, const char *part)
{
    const int64_t live = tr_alloc_live();
    tr_bpe *bpe = NULL;
    const tr_status got = tr_bpe_open(test_path(name), &bpe);
    if (got != status || !strstr(tr_error_message(), part))
        fail_msg("%s: %s, \"%s\" lacks \"%s\"", name, tr_status_name(got), tr_error_message(), part);
    assert_null(bpe);
    assert_int_equal(tr_alloc_live(), live);
}

static void expect_count(const tr_bpe *bpe, const char *text, int64_t wanted)
{
    int32_t *tokens;
    int64_t count;
    assert_int_equal(tr_bpe_encode(bpe, text, strlen(text), &tokens, &count), TR_OK);
    assert_int_equal(count, wanted);
    tr_free(tokens);
}

/* ---- merges.txt ---- */

/* Empty lines and a first line that begins with "#version" are no merges. Tokens that are neither a byte nor
   made by a merge are special. */
static void lines_are_merges(void **unused)
{
    (void)unused;
    write_vocabulary("vocab.json", MORE ", \"#version\": 259", false);
    write_text("merges.txt", "#version: 0.2\n\na b\nab c\n");
    tr_bpe *bpe = must_open_bpe("vocab.json");
    assert_int_equal(tr_bpe_merges(bpe), 2);
    assert_int_equal(tr_bpe_pattern_of(bpe), TR_BPE_GPT2);
    expect_count(bpe, "abc<|end|>", 2);
    for (int32_t id = 0; id < 260; id++) {
        assert_int_equal(tr_bpe_is_added(bpe, id), id >= 258);
        assert_int_equal(tr_bpe_is_special(bpe, id), id >= 258);
    }
    tr_bpe_destroy(&bpe);
    write_text("merges.txt", "#version\na b\n"); /* of which nobody says which */
    bpe = must_open_bpe("vocab.json");
    assert_int_equal(tr_bpe_merges(bpe), 1);
    tr_bpe_destroy(&bpe);
    write_text("merges.txt", "a b\nab c"); /* without the line, and without an end */
    bpe = must_open_bpe("vocab.json");
    assert_int_equal(tr_bpe_merges(bpe), 2);
    tr_bpe_destroy(&bpe);
    write_text("merges.txt", "");
    bpe = must_open_bpe("vocab.json");
    assert_int_equal(tr_bpe_merges(bpe), 0);
    assert_true(tr_bpe_is_added(bpe, 257));
    tr_bpe_destroy(&bpe);
}

static void bad_lines_are_named(void **unused)
{
    (void)unused;
    write_vocabulary("vocab.json", MORE, false);
    write_text("merges.txt", "#version: 0.2\na b\nb c\n");
    expect_failure("vocab.json", TR_EFORMAT,
                   "merges.txt: merge 3, \"b\" and \"c\": both together is no token of the vocabulary");
    write_text("merges.txt", "a b\n#version: 0.2\n");
    expect_failure("vocab.json", TR_EFORMAT, "merge 2");
    write_text("merges.txt", "#versio n\n");
    expect_failure("vocab.json", TR_EFORMAT, "merge 1, \"#versio\" and \"n\": the first is no token");
    write_file("merges.txt", "a b\na\0b\n", 8);
    expect_failure("vocab.json", TR_EFORMAT, "a merge has a byte 0");
    write_text("merges.txt", "ab\n");
    expect_failure("vocab.json", TR_EFORMAT, "merge 1 is \"ab\", not two tokens and a blank between");
}

static void bad_vocabularies_are_named(void **unused)
{
    (void)unused;
    write_text("merges.txt", "a b\n");
    write_text("vocab.json", "{\"a\": 0}");
    expect_failure("vocab.json", TR_EFORMAT, "vocab.json: no token is the byte 0x00");
    write_text("vocab.json", "{\"a\": 0, \"b\": 0}");
    expect_failure("vocab.json", TR_EFORMAT, "vocab.json: number 0 is that of two tokens");
    write_vocabulary("vocab.json", ", \"ab\": 256, \"\\u0061b\": 257", false);
    expect_failure("vocab.json", TR_EFORMAT, "bad JSON: an object has a key twice");
    write_text("vocab.json", "{\"a\": 0");
    expect_failure("vocab.json", TR_EFORMAT, "vocab.json");
}

/* ---- paths ---- */

static void make_directory(const char *name)
{
    assert_int_equal(mkdir(test_path(name), 0700), 0);
}

static void directories_have_either(void **unused)
{
    (void)unused;
    make_directory("nothing");
    expect_failure("nothing", TR_ENOTFOUND, "nothing/tokenizer.json");
    make_directory("pair");
    write_vocabulary("pair/vocab.json", MORE, false);
    expect_failure("pair", TR_ENOTFOUND, "pair/merges.txt");
    write_text("pair/merges.txt", "a b\n");
    tr_bpe *bpe = must_open_bpe("pair");
    assert_int_equal(tr_bpe_merges(bpe), 1);
    tr_bpe_destroy(&bpe);
    write_vocabulary("pair/tokenizer.json", "", true); /* which comes first */
    bpe = must_open_bpe("pair");
    assert_int_equal(tr_bpe_merges(bpe), 0);
    assert_int_equal(tr_bpe_size(bpe), 256);
    tr_bpe_destroy(&bpe);
}

/* merges.txt has what comes before "vocab.json" in the name of the other. */
static void names_go_together(void **unused)
{
    (void)unused;
    write_vocabulary("gpt-vocab.json", MORE, false);
    write_text("gpt-merges.txt", "a b\nab c\n");
    remove(test_path("merges.txt"));
    tr_bpe *bpe = must_open_bpe("gpt-vocab.json");
    assert_int_equal(tr_bpe_merges(bpe), 2);
    tr_bpe_destroy(&bpe);
    remove(test_path("gpt-vocab.json"));
    expect_failure("gpt-vocab.json", TR_ENOTFOUND, "gpt-vocab.json");
    write_vocabulary("any", "", true);
    bpe = must_open_bpe("any");
    assert_int_equal(tr_bpe_size(bpe), 256);
    tr_bpe_destroy(&bpe);
    expect_failure("none", TR_ENOTFOUND, "none");
}

static void a_lack_of_memory_leaves_nothing(void **unused)
{
    (void)unused;
    write_vocabulary("vocab.json", MORE, false);
    write_text("merges.txt", "a b\nab c\n");
    for (int64_t at = 0, done = 0; !done; at++) {
        const int64_t live = tr_alloc_live();
        tr_bpe *bpe = NULL;
        refuse_begin(at);
        const tr_status status = tr_bpe_open(test_path("vocab.json"), &bpe);
        done = refuse_end();
        assert_int_equal(status, done ? TR_OK : TR_ENOMEM);
        assert_int_equal(bpe != NULL, done);
        tr_bpe_destroy(&bpe);
        assert_int_equal(tr_alloc_live(), live);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_are_merges),           cmocka_unit_test(bad_lines_are_named),
        cmocka_unit_test(bad_vocabularies_are_named), cmocka_unit_test(directories_have_either),
        cmocka_unit_test(names_go_together),          cmocka_unit_test(a_lack_of_memory_leaves_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
