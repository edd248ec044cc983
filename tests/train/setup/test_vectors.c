/* Vectors of words: each form of file, each way in which one is wrong, and ranks that were given different
 * ones. */
#include "support/ranks.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "refuse.h"
#include "support/files/npy.h"
#include "train/setup/vectors.h"

#include <float.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

/* Tokens: 0 is unknown, then "one" (twice), "three", "two". */
#define WORDS 4
#define WIDTH 2

static char *vocabulary, *subwords;

static char *state_of(const char *description)
{
    tr_source *source;
    const char *name;
    char *text, *copy;
    must_train(tr_source_open(description, scratch_place, NULL, &source));
    must_train(tr_source_state(source, &name, &text));
    copy = tr_strdup(text);
    assert_non_null(copy);
    tr_text_free(text);
    tr_source_close(&source);
    return copy;
}

static int make(void **state)
{
    static const char *const directories[] = {"here", "there"};
    struct tr_tokenizer_settings wanted = TR_TOKENIZER_SETTINGS_INIT;
    tr_tokenizer *tokenizer;
    scratch_place_make(state);
    scratch_write_text("words.tsv", "one two one\t0\nthree\t1\n");
    const char *const from[] = {scratch_in("words.tsv")};
    vocabulary = state_of("{text: {path: words.tsv, lower_case: true}}");
    wanted.tokens = 260;
    wanted.paths = from;
    wanted.path_count = 1;
    must_train(tr_tokenizer_train(&wanted, &tokenizer));
    must_train(tr_tokenizer_save(tokenizer, scratch_in("tokenizer.json")));
    tr_tokenizer_destroy(&tokenizer);
    subwords = state_of("{corpus: {path: words.tsv, window: 2, unit: bpe, tokenizer: tokenizer.json}}");
    for (int i = 0; i < 2; i++) {
        char name[64];
        must_train(tr_file_make_directory(NULL, scratch_in(directories[i])));
        snprintf(name, sizeof name, "%s/words.tsv", directories[i]);
        scratch_write_text(name, "one two one\t0\nthree\t1\n");
        snprintf(name, sizeof name, "%s/vectors.txt", directories[i]);
        scratch_write_text(name, i ? "one 1 2\n" : "one 1 3\n");
    }
    return 0;
}

static int clean(void **state)
{
    tr_free(vocabulary);
    tr_free(subwords);
    return scratch_place_remove(state);
}

/* ---- files ---- */

static tr_status read_with(const char *state, float *values, int64_t *taken)
{
    char digest[TR_SHA256_TEXT];
    const struct tr_vectors_wanted wanted = {
        .words = WORDS, .width = WIDTH, .state = state, .values = values};
    return tr_vectors_read(scratch_in("vectors"), &wanted, taken, digest);
}

static void expect_rows(const char *text, int64_t count, const float expected[WORDS * WIDTH])
{
    float values[WORDS * WIDTH];
    int64_t taken = -1;
    for (int i = 0; i < WORDS * WIDTH; i++) values[i] = -9;
    scratch_write_text("vectors", text);
    const tr_status status = read_with(vocabulary, values, &taken);
    if (status != TR_OK) fail_msg("%s: %s", text, tr_error_message());
    assert_int_equal(taken, count);
    for (int i = 0; i < WORDS * WIDTH; i++)
        if (values[i] != expected[i])
            fail_msg("%s: number %d is %g, not %g", text, i, (double)values[i], (double)expected[i]);
    /* Another process may keep the values: then they are only counted. */
    taken = -1;
    assert_int_equal(read_with(vocabulary, NULL, &taken), TR_OK);
    assert_int_equal(taken, count);
}

static void text_is_read(void **state)
{
    (void)state;
    expect_rows("two 1 2\none 3 4\n", 2, (float[]){-9, -9, 3, 4, -9, -9, 1, 2});
    expect_rows("TWO 1 2", 1, (float[]){-9, -9, -9, -9, -9, -9, 1, 2});
    /* The first of equal words; blanks, tabs and empty lines; words of none. */
    expect_rows("\n  one\t3  4 \t\n\nOne 5 6\n \t\nfour 1\nthree -1e2 .5\n", 2,
                (float[]){-9, -9, 3, 4, -100, 0.5f, -9, -9});
    /* A line of two numbers is a head only where it comes first. */
    expect_rows("3 2\none 1 1\n", 1, (float[]){-9, -9, 1, 1, -9, -9, -9, -9});
    expect_rows("one 1 1\n3 2\n", 1, (float[]){-9, -9, 1, 1, -9, -9, -9, -9});
    /* The largest and the smallest floats. */
    expect_rows("one 3.4028234663852886e38 -3.4028234663852886e38\n", 1,
                (float[]){-9, -9, FLT_MAX, -FLT_MAX, -9, -9, -9, -9});
}

/* A head is none of the words, even where its number is one. */
static void a_head_may_look_like_a_word(void **state)
{
    (void)state;
    float values[WORDS * WIDTH] = {0};
    int64_t taken;
    scratch_write_text("numbers.tsv", "7 7 one\t0\n8\t1\n");
    char *numbers = state_of("{text: {path: numbers.tsv}}");
    scratch_write_text("vectors", "7 2\none 1 2\n7 3 4\n");
    must_train(read_with(numbers, values, &taken));
    assert_int_equal(taken, 2);
    assert_true(values[2] == 3 && values[3] == 4); /* the most frequent one */
    scratch_write_text("vectors", "7 2x\n");
    assert_int_equal(read_with(numbers, values, &taken), TR_EFORMAT);
    assert_non_null(strstr(tr_error_message(), "vectors:1:3: \"2x\" is not a number"));
    tr_free(numbers);
}

static void expect_fault(const char *text, tr_status status, const char *part)
{
    float values[WORDS * WIDTH];
    int64_t taken;
    const int64_t live = tr_alloc_live();
    scratch_write_text("vectors", text);
    const tr_status got = read_with(vocabulary, values, &taken);
    if (got != status || !strstr(tr_error_message(), part))
        fail_msg("%s: %s, \"%s\", expected is \"%s\"", text, tr_status_name(got),
                 got == TR_OK ? "" : tr_error_message(), part);
    assert_int_equal(tr_alloc_live(), live);
}

static void faults_of_text_are_named(void **state)
{
    (void)state;
    expect_fault("one 1\n", TR_EMISMATCH,
                 "vectors:1: a vector of 1 numbers, the layer's width is 2; set width: 1");
    expect_fault("two 1 2\none 1 2 3\n", TR_EMISMATCH,
                 "vectors:2: a vector of 3 numbers, the layer's width is 2; set width: 3");
    expect_fault("one\n", TR_EMISMATCH, "a vector of 0 numbers");
    expect_fault("one 1 3.5e38\n", TR_EFORMAT, "vectors:1:7: \"3.5e38\" is too large for a float");
    expect_fault("one 1 -3.5e38\n", TR_EFORMAT, "\"-3.5e38\" is too large for a float");
    expect_fault("one 1 x\n", TR_EFORMAT, "vectors:1:7: \"x\" is not a number");
    expect_fault("one 1 1234567890123456789012345678901234567890x\n", TR_EFORMAT,
                 "vectors:1:7: \"1234567890123456789012345678901234567890\" ");
    expect_fault("four 1 2\n", TR_EMISMATCH,
                 "has no word of the training text; give vectors of its language, as text with a word and "
                 "its numbers on each line");
    expect_fault("", TR_EMISMATCH, "has no word of the training text");
    expect_fault("<unknown> 1 2\n", TR_EMISMATCH, "has no word of the training text");
    int64_t taken;
    assert_int_equal(read_with(NULL, NULL, &taken), TR_EINVAL);
    assert_non_null(strstr(tr_error_message(), "vectors: vectors by word need data with words (the format "
                                               "`text`); give an array .npy with a row for each token"));
    assert_int_equal(read_with("scaling\n", NULL, &taken), TR_EINVAL);
    assert_non_null(strstr(tr_error_message(), "vectors by word need data with words"));
    assert_int_equal(read_with(subwords, NULL, &taken), TR_EINVAL);
    assert_non_null(strstr(tr_error_message(),
                           "vectors: vectors by word, and the data have subwords; give an "
                           "array .npy with a row for each token"));
}

static tr_status read_array(const char *type, const char *shape, const void *data, size_t size, float *values,
                            int64_t *taken)
{
    npy_write(scratch_in("vectors"), type, shape, data, size);
    return read_with(NULL, values, taken);
}

static void arrays_are_read(void **state)
{
    (void)state;
    static const float rows[WORDS * WIDTH] = {1, 2, 3, 4, 5, 6, 7, 8};
    double wide[WORDS * WIDTH];
    float values[WORDS * WIDTH];
    int64_t taken = -1;
    for (int i = 0; i < WORDS * WIDTH; i++) wide[i] = (double)rows[i] + 1e-12;
    must_train(read_array("<f4", "4, 2", rows, sizeof rows, values, &taken));
    assert_int_equal(taken, WORDS);
    assert_memory_equal(values, rows, sizeof rows);
    memset(values, 0, sizeof values);
    must_train(read_array("<f8", "4, 2", wide, sizeof wide, values, &taken));
    assert_memory_equal(values, rows, sizeof rows);
    must_train(read_with(NULL, NULL, &taken));
    assert_int_equal(taken, WORDS);

    static const struct {
        const char *type, *shape;
        tr_status status;
        const char *message;
        size_t size;
    } bad[] = {
        {">f4", "4, 2", TR_EUNSUPPORTED,
         "vectors: vectors are little-endian floats of 4 or 8 bytes; save array.astype('<f4')", 32},
        {"<i4", "4, 2", TR_EUNSUPPORTED, "vectors are little-endian floats", 32},
        {"<f4", "3, 2", TR_EMISMATCH,
         "an array of 2 dimensions, 3 x 2, where the layer has 4 vectors of width 2", 24},
        {"<f4", "4, 1", TR_EMISMATCH, "an array of 2 dimensions, 4 x 1, where", 16},
        {"<f4", "4,", TR_EMISMATCH, "an array of 1 dimensions, 4 x 0, where", 16},
        {"<f4", "", TR_EMISMATCH, "an array of 0 dimensions, 0 x 0, where", 4},
        {"<f4", "4, 2, 1", TR_EMISMATCH, "an array of 3 dimensions, 4 x 2, where", 32},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        const tr_status status = read_array(bad[i].type, bad[i].shape, rows, bad[i].size, values, &taken);
        if (status != bad[i].status || !strstr(tr_error_message(), bad[i].message))
            fail_msg("%s of %s: %s", bad[i].shape, bad[i].type, status ? tr_error_message() : "fine");
    }
    /* A number that is finite as it is stored, and not as a float. */
    wide[7] = 1e39;
    assert_int_equal(read_array("<f8", "4, 2", wide, sizeof wide, values, &taken), TR_ENONFINITE);
    assert_non_null(strstr(tr_error_message(), "vectors: element 7 is not a finite float"));
    float odd[WORDS * WIDTH] = {__builtin_nanf("")};
    assert_int_equal(read_array("<f4", "4, 2", odd, sizeof odd, values, &taken), TR_ENONFINITE);
    assert_non_null(strstr(tr_error_message(), "element 0 is not a finite float"));
}

static void digests_are_of_contents(void **state)
{
    (void)state;
    char first[TR_SHA256_TEXT], second[TR_SHA256_TEXT];
    int64_t taken;
    const struct tr_vectors_wanted wanted = {.words = WORDS, .width = WIDTH, .state = vocabulary};
    must_train(tr_vectors_read(scratch_in("here/vectors.txt"), &wanted, &taken, first));
    must_train(tr_sha256_of("one 1 3\n", 8, second));
    assert_string_equal(first, second);
}

static void every_allocation_fails(void **state)
{
    (void)state;
    for (int64_t at = 0, done = 0; !done; at++) {
        float values[WORDS * WIDTH];
        int64_t taken;
        const int64_t live = tr_alloc_live();
        scratch_write_text("vectors", "one 1 2\n");
        refuse_begin(at);
        const tr_status status = read_with(vocabulary, values, &taken);
        done = refuse_end();
        assert_int_equal(status, done ? TR_OK : TR_ENOMEM);
        assert_int_equal(tr_alloc_live(), live);
    }
}

/* ---- in a job ---- */

#define JOB                                                                                                  \
    "name: words\ndata: {train: {text: {path: words.tsv}}}\n"                                                \
    "layers: [{embedding: {width: 2, name: words, vectors: vectors.txt}}, last, {dense: 2}]\n"               \
    "optimizer: {rule: sgd, rate: 0.1}\ntrain: {batch: 2, microbatches: 2, steps: 1}\n"

static struct tr_train_settings job_in(const char *directory, char path[SCRATCH_PATH])
{
    struct tr_train_settings settings = TR_TRAIN_SETTINGS_INIT;
    settings.model_text = JOB;
    settings.threads = 1;
    settings.directory = scratch_join(path, scratch_place, directory);
    return settings;
}

static void a_job_names_the_layer(void **state)
{
    (void)state;
    char here[SCRATCH_PATH];
    const struct tr_train_settings settings = job_in("here", here);
    struct tr_train_info info = TR_TRAIN_INFO_INIT;
    tr_trainer *trainer;
    must_train(tr_trainer_create(&settings, &trainer));
    must_train(tr_trainer_info(trainer, &info));
    assert_non_null(strstr(info.start, "here/vectors.txt: vectors of 1 of 4 words of words\n"));
    tr_trainer_destroy(&trainer);
    for (int64_t at = 0, done = 0; !done; at++) {
        const int64_t live = tr_alloc_live();
        refuse_begin(at);
        const tr_status status = tr_trainer_create(&settings, &trainer);
        done = refuse_end();
        assert_int_equal(status, done ? TR_OK : TR_ENOMEM);
        tr_trainer_destroy(&trainer);
        assert_int_equal(tr_alloc_live(), live);
    }
    scratch_write_text("here/vectors.txt", "one 1\n");
    assert_int_equal(tr_trainer_create(&settings, &trainer), TR_EMISMATCH);
    assert_non_null(strstr(tr_error_message(), "layer \"words\""));
    assert_non_null(strstr(tr_error_message(), "vectors.txt:1: a vector of 1 numbers"));
    scratch_write_text("here/vectors.txt", "one 1 3\n");
}

static void ranks_need_equal_vectors(void **state)
{
    (void)state;
    char here[SCRATCH_PATH], there[SCRATCH_PATH];
    struct tr_train_settings first = job_in("here", here), second = first;
    struct rank ranks[RANKS];
    const struct tr_train_settings *const each[] = {&first, &second};
    run_ranks_each(each, 2, 0, ranks);
    expect_well(ranks, 2, "equal vectors");
    second.directory = scratch_join(there, scratch_place, "there");
    run_ranks_each(each, 2, 0, ranks);
    for (int r = 0; r < 2; r++) assert_int_equal(ranks[r].outcome.status, TR_EMISMATCH);
    assert_non_null(strstr(ranks[0].outcome.message, "give all hosts the same file of vectors"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(text_is_read),
        cmocka_unit_test(a_head_may_look_like_a_word),
        cmocka_unit_test(faults_of_text_are_named),
        cmocka_unit_test(arrays_are_read),
        cmocka_unit_test(digests_are_of_contents),
        cmocka_unit_test(every_allocation_fails),
        cmocka_unit_test(a_job_names_the_layer),
        cmocka_unit_test(ranks_need_equal_vectors),
    };
    return cmocka_run_group_tests(tests, make, clean);
}
