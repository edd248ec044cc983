/* Texts of networks that write or take them apart: subwords, and examples of a network of two texts. */
#include "train/evaluate/trained.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "refuse.h"
#include "trireme/tokenizer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

static int make(void **state)
{
    scratch_place_make(state);
    scratch_write_text("words.tsv", "one two\t0\nthree\t1\ntwo three one\t1\n");
    scratch_write_text("two.csv", "long,short\nabc,ab\nba,b\ncab,a\n");
    trained_run(
        scratch_place, "texts",
        "data: {train: {join: {sources: {long: {text: {path: two.csv, layout: table, header: true, unit: "
        "characters, labels: false, text_columns: long}}, short: {text: {path: two.csv, layout: table, "
        "header: true, unit: characters, next: true, text_columns: short}}}}}}\n"
        "layers: [{embedding: {width: 4, from: long, name: memory}}, {embedding: {width: 4, from: "
        "short}}, {cross_attention: {heads: 1, with: memory}}, {dense: 4}]\n");
    trained_run(
        scratch_place, "words",
        "data: {train: {text: {path: words.tsv}}}\nlayers: [{embedding: 3}, {lstm: 4}, last, {dense: 2}]\n");
    return 0;
}

/* ---- subwords ---- */

static void subwords_lie_side_by_side(void **state)
{
    (void)state;
    struct tr_tokenizer_settings wanted = TR_TOKENIZER_SETTINGS_INIT;
    const char *const from[] = {scratch_in("words.tsv")};
    static const char *const texts[] = {"one two", "three", "e", ""};
    tr_tokenizer *tokenizer;
    wanted.tokens = 262;
    wanted.paths = from;
    wanted.path_count = 1;
    must_train(tr_tokenizer_train(&wanted, &tokenizer));
    must_train(tr_tokenizer_save(tokenizer, scratch_in("tokenizer.json")));
    trained_run(
        scratch_place, "subwords",
        "data: {train: {corpus: {path: words.tsv, window: 4, unit: bpe, tokenizer: tokenizer.json}}}\n"
        "layers: [{embedding: 3}, {lstm: 4}, {dense: 262}]\n");
    tr_predictor *predictor = trained_load(scratch_place, "subwords");
    for (int i = 0; i < 4; i++) {
        int32_t tokens[64];
        size_t begin[64], end[64], at = 0;
        int64_t count, found = -1, taken = -1;
        must_train(tr_tokenizer_encode(tokenizer, texts[i], strlen(texts[i]), 64, tokens, &count));
        must_train(tr_predictor_tokens(predictor, texts[i], 64, begin, end, &found, &taken));
        assert_int_equal(found, count);
        assert_int_equal(taken, count);
        for (int64_t t = 0; t < count; t++) {
            char *word;
            assert_int_equal(begin[t], at);
            assert_true(end[t] > at);
            must_train(tr_predictor_word(predictor, tokens[t], &word));
            assert_int_equal(strlen(word), end[t] - at);
            assert_memory_equal(word, texts[i] + at, end[t] - at);
            tr_text_free(word);
            at = end[t];
        }
        assert_int_equal(at, strlen(texts[i]));
        begin[0] = begin[1] = 99;
        must_train(tr_predictor_tokens(predictor, texts[i], count > 0, begin, end, &found, NULL));
        assert_int_equal(found, count);
        assert_int_equal(begin[0], count > 0 ? 0 : 99);
        assert_int_equal(begin[1], 99);
        if (i == 0) assert_true(count < 7); /* something was joined */
    }
    for (int64_t at = 0, done = 0; !done; at++) {
        size_t begin[8], end[8];
        int64_t found;
        const int64_t live = tr_alloc_live();
        refuse_begin(at);
        const tr_status status = tr_predictor_tokens(predictor, texts[0], 8, begin, end, &found, NULL);
        done = refuse_end();
        assert_int_equal(status, done ? TR_OK : TR_ENOMEM);
        assert_int_equal(tr_alloc_live(), live);
    }
    tr_predictor_destroy(&predictor);
    tr_tokenizer_destroy(&tokenizer);
}

/* Where a tokenizer composes characters, its subwords are not those of the text as it is. */
static void composed_texts_have_no_places(void **state)
{
    (void)state;
    static const char none[] = "\"normalizer\": null";
    struct tr_file_content file;
    struct tr_text text = TR_TEXT_INIT;
    char path[SCRATCH_PATH];
    size_t begin[8], end[8];
    int64_t count;
    must_train(tr_file_read(scratch_in("tokenizer.json"), 1 << 20, &file));
    const char *at = strstr(file.data, none);
    if (!at) fail_msg("%.300s", file.data);
    tr_text_addf(&text, "%.*s\"normalizer\": {\"type\": \"NFC\"}%s", (int)(at - file.data), file.data,
                 at + sizeof none - 1);
    must_write(scratch_join(path, scratch_place, "composing.json"), &text);
    tr_file_content_free(&file);
    trained_run(
        scratch_place, "composing",
        "data: {train: {corpus: {path: words.tsv, window: 4, unit: bpe, tokenizer: composing.json}}}\n"
        "layers: [{embedding: 3}, {lstm: 4}, {dense: 262}]\n");
    tr_predictor *predictor = trained_load(scratch_place, "composing");
    assert_int_equal(tr_predictor_tokens(predictor, "one", 8, begin, end, &count, NULL), TR_EUNSUPPORTED);
    assert_non_null(strstr(tr_error_message(),
                           "brings texts into normalization form C, so that tokens have no place "
                           "in the text as it is"));
    tr_predictor_destroy(&predictor);
}

/* ---- one text from another ---- */

static void examples_of_two_texts_have_numbers(void **state)
{
    (void)state;
    tr_predictor *predictor = trained_load(scratch_place, "texts");
    tr_source *source;
    char *written = NULL, *truth = NULL;
    must_train(tr_predictor_open_data(predictor, "train", &source));
    assert_int_equal(tr_predictor_translate_example(predictor, source, 3, &written, &truth), TR_EINVAL);
    assert_non_null(strstr(tr_error_message(), "example 3 is asked for; the source has 3, counted from 0"));
    assert_int_equal(tr_predictor_translate_example(predictor, source, -1, &written, &truth), TR_EINVAL);
    assert_non_null(strstr(tr_error_message(), "example -1 is asked for"));
    assert_null(written);
    assert_null(truth);
    must_train(tr_predictor_translate_example(predictor, source, 2, &written, &truth));
    assert_string_equal(truth, "a");
    tr_text_free(written);
    tr_text_free(truth);
    must_train(tr_predictor_translate_example(predictor, source, 0, &written, NULL));
    tr_text_free(written);
    for (int64_t at = 0, done = 0; !done; at++) {
        const int64_t live = tr_alloc_live();
        written = truth = NULL;
        refuse_begin(at);
        const tr_status status = tr_predictor_translate_example(predictor, source, 1, &written, &truth);
        done = refuse_end();
        assert_int_equal(status, done ? TR_OK : TR_ENOMEM);
        if (done) {
            assert_string_equal(truth, "b");
            tr_text_free(written);
            tr_text_free(truth);
        }
        assert_int_equal(tr_alloc_live(), live);
    }
    tr_source_close(&source);
    tr_predictor_destroy(&predictor);
    predictor = trained_load(scratch_place, "words");
    assert_int_equal(tr_predictor_translate(predictor, "one", &written), TR_EUNSUPPORTED);
    assert_non_null(strstr(tr_error_message(), "words/checkpoint-00000001\" does not make one text of "
                                               "another; it was not trained on two texts"));
    tr_predictor_destroy(&predictor);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(subwords_lie_side_by_side),
        cmocka_unit_test(composed_texts_have_no_places),
        cmocka_unit_test(examples_of_two_texts_have_numbers),
    };
    return cmocka_run_group_tests(tests, make, scratch_place_remove);
}
