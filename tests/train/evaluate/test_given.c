/* Examples in memory: which are taken together, which are refused and why, subwords, and examples of a
 * network of two texts. */
#include "train/evaluate/trained.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "refuse.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

/* ---- networks ---- */

static const struct {
    const char *name, *model;
} models[] = {
    {"numbers", "data: {train: {csv: {path: numbers.csv, label: value}}}\nlayers: [{dense: 1}]\n"
                "loss: mean_squared_error\n"},
    {"words",
     "data: {train: {text: {path: words.tsv}}}\nlayers: [{embedding: 3}, {lstm: 4}, last, {dense: 2}]\n"},
    {"letters", "data: {train: {text: {path: words.tsv, unit: characters}}}\n"
                "layers: [{embedding: 2}, {lstm: 2}, last, {dense: 2}]\n"},
    {"ids", "data: {train: {text: {path: ids.tsv, unit: ids, ids: 9}}}\n"
            "layers: [{embedding: 3}, {lstm: 4}, last, {dense: 2}]\n"},
    {"language", "data: {train: {corpus: {path: words.tsv, window: 4}}}\n"
                 "layers: [{embedding: 3}, {lstm: 4}, {dense: 20}]\n"},
    {"pairs",
     "data: {train: {join: {sources: {left: {csv: {path: numbers.csv, label: value}}, right: "
     "{csv: {path: numbers.csv, label: none}}}}}}\nlayers: [{dense: {units: 2, from: left}}, {dense: {units: "
     "2, from: right, name: r}}, {add: {with: dense1}}, {dense: 1}]\nloss: mean_squared_error\n"},
};

static int make(void **state)
{
    scratch_place_make(state);
    scratch_write_text("numbers.csv", "a,b,y\n1,2,3\n2,-1,1\n-1,3,2\n");
    scratch_write_text("words.tsv", "one two\t0\nthree\t1\ntwo three one\t1\n");
    scratch_write_text("ids.tsv", "0 1 8\t0\n3\t1\n");
    for (size_t i = 0; i < sizeof models / sizeof models[0]; i++)
        trained_run(scratch_place, models[i].name, models[i].model);
    return 0;
}

/* ---- listening ---- */

struct heard {
    int64_t calls, count[8], rows[8], first[8];
    float output[8 * 512];
    int64_t floats, width;
    int64_t stop; /* ends it with that call; 0: never */
};

static int hear(void *user, const struct tr_prediction *prediction)
{
    struct heard *heard = user;
    assert_true(heard->calls < 8);
    heard->first[heard->calls] = prediction->first;
    heard->count[heard->calls] = prediction->count;
    heard->rows[heard->calls] = prediction->rows;
    for (int64_t i = 0; i < prediction->rows * heard->width; i++, heard->floats++)
        if (heard->floats < 8 * 512) heard->output[heard->floats] = prediction->output[i];
    return ++heard->calls == heard->stop;
}

static void expect_refusal(tr_predictor *predictor, const struct tr_examples *examples, tr_status status,
                           const char *part)
{
    struct heard heard = {.width = 1};
    const tr_status got = tr_predictor_batch(predictor, examples, hear, &heard);
    if (got != status || !strstr(tr_error_message(), part))
        fail_msg("%s: \"%s\", expected is \"%s\"", tr_status_name(got),
                 got == TR_OK ? "" : tr_error_message(), part);
    assert_int_equal(heard.calls, 0);
}

/* ---- forms ---- */

static void examples_come_in_one_form(void **state)
{
    (void)state;
    static const float values[] = {1, 2, 3, 4};
    static const uint8_t image[] = {1};
    static const char *const texts[] = {"one"};
    static const int32_t tokens[] = {0};
    static const int64_t offsets[] = {0, 1};
    tr_predictor *predictor = trained_load(scratch_place, "numbers");
    struct tr_examples examples = TR_EXAMPLES_INIT;
    float output[2];
    expect_refusal(predictor, &examples, TR_EINVAL,
                   "0 examples in 0 forms are given; give images, floats, texts or tokens");
    examples.count = 1;
    examples.floats = values;
    examples.texts = texts;
    expect_refusal(predictor, &examples, TR_EINVAL, "1 examples in 2 forms are given");
    examples.images = image;
    examples.tokens = tokens;
    expect_refusal(predictor, &examples, TR_EINVAL, "1 examples in 4 forms are given");
    examples = (struct tr_examples)TR_EXAMPLES_INIT;
    examples.count = -1;
    examples.floats = values;
    expect_refusal(predictor, &examples, TR_EINVAL, "-1 examples in 1 forms are given");
    examples.count = 1;
    examples.floats = NULL;
    examples.images = image;
    expect_refusal(predictor, &examples, TR_EINVAL,
                   "numbers/checkpoint-00000001\" takes numbers, not images");
    examples.images = NULL;
    examples.tokens = tokens;
    examples.offsets = offsets;
    expect_refusal(predictor, &examples, TR_EINVAL, "takes numbers, not text");
    assert_int_equal(tr_predictor_image(predictor, image, output), TR_EINVAL);
    assert_int_equal(tr_predictor_text(predictor, "one", output), TR_EINVAL);
    assert_non_null(strstr(tr_error_message(), "takes numbers, not text"));
    /* None at all are fine. */
    struct heard heard = {.width = 1};
    examples = (struct tr_examples)TR_EXAMPLES_INIT;
    examples.floats = values;
    must_train(tr_predictor_batch(predictor, &examples, hear, &heard));
    assert_int_equal(heard.calls, 0);
    examples.count = 2;
    heard.stop = 1;
    assert_int_equal(tr_predictor_batch(predictor, &examples, hear, &heard), TR_EINTERRUPTED);
    assert_non_null(strstr(tr_error_message(), "the predictions were ended after 2 examples"));
    tr_predictor_destroy(&predictor);

    predictor = trained_load(scratch_place, "words");
    examples = (struct tr_examples)TR_EXAMPLES_INIT;
    examples.count = 1;
    examples.floats = values;
    expect_refusal(predictor, &examples, TR_EINVAL, "words/checkpoint-00000001\" takes text, not numbers");
    tr_predictor_destroy(&predictor);
    predictor = trained_load(scratch_place, "pairs");
    expect_refusal(predictor, &examples, TR_EUNSUPPORTED,
                   "pairs/checkpoint-00000001\" takes examples of several sources; give them as a data set, "
                   "described by `join`");
    tr_predictor_destroy(&predictor);
}

static void languages_are_no_answers(void **state)
{
    (void)state;
    static const char *const texts[] = {"one"};
    tr_predictor *predictor = trained_load(scratch_place, "language");
    struct tr_examples examples = TR_EXAMPLES_INIT;
    float output[64];
    examples.count = 1;
    examples.texts = texts;
    expect_refusal(
        predictor, &examples, TR_EUNSUPPORTED,
        "language/checkpoint-00000001\" is a language model, which scores the token after each token; let it "
        "generate text, or evaluate it");
    assert_int_equal(tr_predictor_text(predictor, "one", output), TR_EUNSUPPORTED);
    assert_non_null(strstr(tr_error_message(), "is a language model"));
    tr_predictor_destroy(&predictor);
}

/* ---- tokens and texts ---- */

static void tokens_have_offsets(void **state)
{
    (void)state;
    static const int32_t tokens[] = {1, 2, 3, 3, -1, 9};
    static const int64_t good[] = {0, 3, 4}, late[] = {1, 3, 4}, equal[] = {0, 0, 4}, back[] = {0, 3, 2},
                         negative[] = {0, 3, 5}, above[] = {0, 1, 6},
                         largest[] = {0, 1 << 20, (1 << 20) + (1 << 20) + 1};
    tr_predictor *predictor = trained_load(scratch_place, "words");
    struct tr_examples examples = TR_EXAMPLES_INIT;
    examples.count = 2;
    examples.tokens = tokens;
    expect_refusal(predictor, &examples, TR_EINVAL,
                   "tokens are given without offsets, which say where examples begin");
    examples.offsets = late;
    expect_refusal(predictor, &examples, TR_EINVAL,
                   "offsets: example 1 has tokens 1 to 3; they ascend from 0, and an example has 1 to "
                   "1048576 tokens");
    examples.offsets = equal;
    expect_refusal(predictor, &examples, TR_EINVAL, "offsets: example 1 has tokens 0 to 0;");
    examples.offsets = back;
    expect_refusal(predictor, &examples, TR_EINVAL, "offsets: example 2 has tokens 3 to 2;");
    examples.offsets = largest;
    expect_refusal(predictor, &examples, TR_EINVAL, "offsets: example 2 has tokens 1048576 to 2097153;");
    examples.offsets = negative;
    expect_refusal(predictor, &examples, TR_EINVAL, "token 4 is -1; the network knows 4, counted from 0");
    static const int32_t large[] = {0, 1, 4, 3, 3, 3};
    examples.tokens = large;
    examples.offsets = above;
    expect_refusal(predictor, &examples, TR_EINVAL, "token 2 is 4; the network knows 4, counted from 0");
    struct heard heard = {.width = 2}, texts = {.width = 2};
    examples.tokens = tokens;
    examples.offsets = good;
    must_train(tr_predictor_batch(predictor, &examples, hear, &heard));
    assert_int_equal(heard.calls, 1);
    assert_int_equal(heard.rows[0], 2);
    /* The same words as texts. */
    char *word[3], joined[64];
    for (int i = 0; i < 3; i++) must_train(tr_predictor_word(predictor, tokens[i], &word[i]));
    snprintf(joined, sizeof joined, "%s %s  %s", word[0], word[1], word[2]);
    const char *const both[] = {joined, word[2]};
    struct tr_examples written = TR_EXAMPLES_INIT;
    written.count = 2;
    written.texts = both;
    must_train(tr_predictor_batch(predictor, &written, hear, &texts));
    assert_memory_equal(heard.output, texts.output, 4 * sizeof(float));
    float alone[2];
    must_train(tr_predictor_text(predictor, word[2], alone));
    assert_memory_equal(alone, texts.output + 2, sizeof alone);
    for (int i = 0; i < 3; i++) tr_text_free(word[i]);
    char *none = NULL;
    assert_int_equal(tr_predictor_word(predictor, 4, &none), TR_EINVAL);
    assert_non_null(strstr(tr_error_message(), "there is no token 4; the network of \""));
    assert_non_null(strstr(tr_error_message(), "words/checkpoint-00000001\" knows 4, counted from 0"));
    assert_int_equal(tr_predictor_word(predictor, -1, &none), TR_EINVAL);
    must_train(tr_predictor_word(predictor, 0, &none));
    assert_string_equal(none, "<unknown>");
    tr_text_free(none);
    tr_predictor_destroy(&predictor);
}

static char *letters(int64_t count)
{
    char *text = tr_alloc((size_t)count + 1, 1);
    assert_non_null(text);
    memset(text, 'e', (size_t)count);
    text[count] = '\0';
    return text;
}

static void texts_have_words_and_not_too_many(void **state)
{
    (void)state;
    char *longest = letters((1 << 20) + 1);
    const char *texts[] = {"eee", ""};
    tr_predictor *predictor = trained_load(scratch_place, "letters");
    struct tr_examples examples = TR_EXAMPLES_INIT;
    examples.count = 2;
    examples.texts = texts;
    expect_refusal(predictor, &examples, TR_EINVAL, "text 2 has no words; leave it out");
    texts[1] = longest;
    expect_refusal(predictor, &examples, TR_EINVAL, "text 2 has 1048577 words; at most 1048576 are taken");
    tr_predictor_destroy(&predictor);
    tr_free(longest);
    predictor = trained_load(scratch_place, "ids");
    texts[0] = "0 8";
    texts[1] = "1 2 9";
    expect_refusal(predictor, &examples, TR_EINVAL,
                   "text 1: token 2 is no number from 0 to 8; give the numbers that the tokenizer gave");
    texts[1] = "x";
    expect_refusal(predictor, &examples, TR_EINVAL, "text 1: token 0 is no number from 0 to 8");
    struct heard heard = {.width = 2};
    texts[1] = "8";
    must_train(tr_predictor_batch(predictor, &examples, hear, &heard));
    assert_int_equal(heard.count[0], 2);
    tr_predictor_destroy(&predictor);
}

/* At most four examples (evaluate_batch) and 16384 tokens go through the network together, but at least one
   example does. */
static void long_texts_go_alone(void **state)
{
    (void)state;
    static const int64_t lengths[] = {10000, 6384, 16385, 1, 16383, 1, 1, 1, 1, 1};
    static const int64_t counts[] = {2, 1, 2, 4, 1};
    enum { COUNT = sizeof lengths / sizeof lengths[0], CALLS = sizeof counts / sizeof counts[0] };
    char *texts[COUNT];
    struct tr_examples examples = TR_EXAMPLES_INIT;
    struct heard heard = {.width = 2};
    tr_predictor *predictor = trained_load(scratch_place, "letters");
    for (int i = 0; i < COUNT; i++) texts[i] = letters(lengths[i]);
    examples.count = COUNT;
    examples.texts = (const char *const *)texts;
    must_train(tr_predictor_batch(predictor, &examples, hear, &heard));
    assert_int_equal(heard.calls, CALLS);
    int64_t first = 0;
    for (int i = 0; i < CALLS; i++) {
        assert_int_equal(heard.first[i], first);
        assert_int_equal(heard.count[i], counts[i]);
        first += counts[i];
    }
    /* Each answer is that of the text alone. */
    for (int i = 0; i < COUNT; i++) {
        float alone[2];
        must_train(tr_predictor_text(predictor, texts[i], alone));
        assert_memory_equal(alone, heard.output + 2 * i, sizeof alone);
        tr_free(texts[i]);
    }
    tr_predictor_destroy(&predictor);
}

static void every_allocation_of_a_batch_fails(void **state)
{
    (void)state;
    static const char *const texts[] = {"one two", "three"};
    static const char *const names[] = {"words", "ids"};
    static const char *const numbers[] = {"1 2", "3"};
    for (int n = 0; n < 2; n++) {
        struct tr_examples examples = TR_EXAMPLES_INIT;
        struct tr_predict_settings settings = TR_PREDICT_SETTINGS_INIT;
        char path[SCRATCH_PATH];
        settings.checkpoint = scratch_join(path, scratch_place, names[n]);
        settings.threads = 1;
        examples.count = 2;
        examples.texts = n ? numbers : texts;
        for (int64_t at = 0, done = 0; !done; at++) {
            struct heard heard = {.width = 2};
            tr_predictor *predictor = (tr_predictor *)path;
            const int64_t live = tr_alloc_live();
            refuse_begin(at);
            tr_status status = tr_predictor_create(&settings, &predictor);
            if (status == TR_OK)
                status = tr_predictor_batch(predictor, &examples, hear, &heard);
            else
                assert_null(predictor);
            done = refuse_end();
            if (status != (done ? TR_OK : TR_ENOMEM))
                fail_msg("allocation %lld: %s", (long long)at, tr_status_name(status));
            assert_int_equal(heard.calls, done);
            tr_predictor_destroy(&predictor);
            assert_int_equal(tr_alloc_live(), live);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(examples_come_in_one_form), cmocka_unit_test(languages_are_no_answers),
        cmocka_unit_test(tokens_have_offsets),       cmocka_unit_test(texts_have_words_and_not_too_many),
        cmocka_unit_test(long_texts_go_alone),       cmocka_unit_test(every_allocation_of_a_batch_fails),
    };
    return cmocka_run_group_tests(tests, make, scratch_place_remove);
}
