/* Data sets of a job: their names, which there are, and which fit the network that the training data made. */
#include "job/sets.h"

#include "base/alloc.h"
#include "scratch.h"
#include "support/files/npy.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

static void sets_have_names(void **state)
{
    enum tr_data_set set = TR_SETS;
    (void)state;
    for (int i = 0; i < TR_SETS; i++) {
        assert_int_equal(tr_data_set_find(tr_data_set_names[i], &set), TR_OK);
        assert_int_equal(set, i);
    }
    assert_int_equal(tr_data_set_find("tests", &set), TR_ENOTFOUND);
    assert_string_equal(tr_error_message(),
                        "data \"tests\" is none of train, validation, test; did you mean \"test\"?");
    assert_int_equal(set, TR_SETS - 1);
}

static struct tr_job *open_job(const char *text)
{
    const struct tr_job_settings settings = {.set_count = 0};
    const struct tr_job_text model = {text, strlen(text), "m.yaml", scratch_place};
    struct tr_job *job;
    if (tr_job_open_text(&model, &settings, &job) != TR_OK) fail_msg("%s", tr_error_message());
    return job;
}

#define REST(layers)      "layers: [" layers "]\noptimizer: {rule: sgd, rate: 1}\ntrain: {batch: 2, steps: 1}\n"
#define DATA(train, test) "name: n\ndata: {train: {" train "}, test: {" test "}}\n"
#define CSV(more)         "csv: {path: " more "}"
#define VALUES(labels)    "npy: {features: flat.npy, labels: " labels ".npy}"
#define NPY(features)     "npy: {features: " features ".npy, labels: labels.npy}"

/* Test data that do not fit, and what is said of them. */
static void sets_fit_the_network(void **state)
{
    static const struct {
        const char *text, *said; /* NULL: they fit */
    } cases[] = {
        {DATA(NPY("six"), NPY("six")) REST("last, dense: 2"), NULL},
        {DATA(NPY("six"), NPY("four")) REST("last, dense: 2"),
         "examples of the test data have 3 steps, the network takes 2; give windows of one length"},
        {DATA(NPY("six"), NPY("flat")) REST("last, dense: 2"),
         NULL}, /* numbers are vectors as the network wants */
        {DATA(NPY("six"), NPY("other")) REST("last, dense: 2"),
         "the test data have inputs of shape 6, the network takes 12; check data and input.shape"},
        {DATA(CSV("two.csv"), CSV("three.csv, classes: 3")) REST("dense: 2"),
         "the test data have 3 classes, the network 2 outputs; give its last layer as many units as classes"},
        {DATA(CSV("two.csv"), CSV("three.csv, classes: 3")) REST("dense: 3"), NULL},
        {DATA(CSV("two.csv"), CSV("two.csv, label: value")) REST("dense: 2"),
         "the test data have no classes, which softmax_cross_entropy needs; give classes, or set the loss to "
         "one that "
         "takes values (soft_cross_entropy: the probabilities of the classes)"},
        {DATA(CSV("two.csv, label: value"), CSV("two.csv")) "loss: mean_squared_error\n" REST("dense: 1"),
         "the test data have no values to predict, which mean_squared_error needs; give values, or set loss: "
         "softmax_cross_entropy for classes"},
        {DATA(VALUES("pair"), VALUES("one")) "loss: mean_squared_error\n" REST("dense: 2"),
         "the test data have 1 target values, the network with 2 outputs wants 2; give its last layer as "
         "many units as "
         "values"},
        {DATA(VALUES("pair"), VALUES("pair")) "loss: mean_squared_error\n" REST("dense: 2"), NULL},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct tr_job *job = open_job(cases[i].text);
        assert_true(tr_job_has_set(job, TR_SET_TRAIN) && tr_job_has_set(job, TR_SET_TEST));
        assert_false(tr_job_has_set(job, TR_SET_VALIDATION));
        const tr_status status = tr_job_open_set(job, TR_SET_TEST);
        if (status != (cases[i].said ? TR_EMISMATCH : TR_OK) ||
            (cases[i].said && strcmp(tr_error_message(), cases[i].said) != 0))
            fail_msg("%s: \"%s\"", cases[i].text, status == TR_OK ? "fits" : tr_error_message());
        assert_int_equal(tr_job_open_set(job, TR_SET_VALIDATION), TR_ENOTFOUND);
        assert_string_equal(tr_error_message(),
                            "the model file names no validation data; add data.validation");
        tr_job_destroy(&job);
    }
}

/* Names of classes, which the data have, belong to the job. */
static void classes_have_the_names_of_the_data(void **state)
{
    (void)state;
    struct tr_job *job = open_job("name: n\ndata: {train: {csv: named.csv}}\n" REST("dense: 2"));
    assert_int_equal(job->input.classes.count, 2);
    assert_string_equal(job->input.classes.item[0], "cat");
    assert_string_equal(job->input.classes.item[1], "dog");
    tr_job_destroy(&job);
}

/* The last batch counts, unless it is left out. */
static void epochs_have_steps(void **state)
{
    static const struct {
        const char *train;
        int64_t steps;
    } cases[] = {{"batch: 3, epochs: 1", 3}, {"batch: 3, epochs: 1, last_batch: drop", 2},
                 {"batch: 7, epochs: 1", 1}, {"batch: 7, epochs: 1, last_batch: drop", 1},
                 {"batch: 8, epochs: 1", 1}, {"batch: 1, epochs: 1, last_batch: drop", 7}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[512];
        snprintf(text, sizeof text,
                 "name: n\ndata: {train: {csv: seven.csv}}\nlayers: [dense: 2]\n"
                 "optimizer: {rule: sgd, rate: 1}\ntrain: {%s}\n",
                 cases[i].train);
        struct tr_job *job = open_job(text);
        assert_int_equal(tr_job_steps_per_epoch(job), cases[i].steps);
        assert_int_equal(job->train.steps, cases[i].steps);
        assert_true(isnan(tr_job_tokens_per_example(job)) && isnan(tr_job_perplexity(job, 1)));
        assert_int_equal(tr_job_pixels(job), 0);
        tr_job_destroy(&job);
    }
}

/* The examples of a set of seven.csv, whose features are 1 to 7, as bits. */
static unsigned examples_of(const tr_source *source)
{
    unsigned found = 0;
    for (int64_t i = 0; i < source->info.count; i++) {
        float feature;
        int32_t label;
        int64_t length;
        assert_int_equal(source->class->read(source, i, &feature, &length, &label), TR_OK);
        assert_true(feature >= 1 && feature <= 7 && !(found & 1u << (int)feature));
        found |= 1u << (int)feature;
    }
    return found;
}

/* What a job of seven.csv divided so validates with; the rest trains. */
static unsigned validated(const char *division)
{
    char text[512];
    tr_source *alone;
    snprintf(text, sizeof text, "name: n\ndata: {train: {csv: seven.csv}, %s\n" REST("dense: 2"), division);
    struct tr_job *job = open_job(text);
    assert_true(tr_job_has_set(job, TR_SET_VALIDATION));
    assert_int_equal(tr_job_open_set(job, TR_SET_VALIDATION), TR_OK);
    const unsigned train = examples_of(job->source[TR_SET_TRAIN]),
                   validation = examples_of(job->source[TR_SET_VALIDATION]);
    assert_int_equal(train & validation, 0);
    assert_int_equal(train | validation, 0xfe);
    /* The same without the training data. */
    assert_int_equal(tr_job_open_source(job, TR_SET_VALIDATION, NULL, &alone), TR_OK);
    assert_int_equal(examples_of(alone), validation);
    tr_source_close(&alone);
    tr_job_destroy(&job);
    return validation;
}

/* Folds cover all examples. The seed of the job divides them, unless they have one of their own. */
static void data_are_divided(void **state)
{
    unsigned all = 0, others = 0;
    (void)state;
    for (int fold = 1; fold <= 3; fold++) {
        char division[64];
        snprintf(division, sizeof division, "folds: 3, fold: %d}", fold);
        const unsigned part = validated(division);
        assert_int_equal(all & part, 0);
        assert_in_range(__builtin_popcount(part), 2, 3);
        all |= part;
    }
    assert_int_equal(all, 0xfe);
    const unsigned own = validated("validation_split: 0.4}");
    assert_int_equal(validated("validation_split: 0.4, split_seed: 1}"), own);
    assert_int_equal(validated("validation_split: 0.4}\nseed: 2"),
                     validated("validation_split: 0.4, split_seed: 2}"));
    assert_int_equal(validated("validation_split: 0.4, split_seed: 1}\nseed: 2"), own);
    for (int seed = 0; seed < 6; seed++) {
        char division[64];
        snprintf(division, sizeof division, "validation_split: 0.4, split_seed: %d}", seed);
        others += validated(division) != own;
    }
    assert_true(others > 2);
    assert_int_equal(validated("validation_split: 0.4, split_seed: 0}\nseed: 3"),
                     validated("validation_split: 0.4, split_seed: 0}"));
}

/* Windows of running text have one length, and the loss is that of a token. */
static void texts_have_tokens(void **state)
{
    (void)state;
    struct tr_job *job = open_job(
        "name: n\ndata: {train: {corpus: {path: words.txt, window: 4}}}\n" REST("embedding: 3, dense: 30"));
    assert_true(tr_job_tokens_per_example(job) == 4);
    assert_true(tr_job_perplexity(job, 0) == 1);
    assert_true(fabs(tr_job_perplexity(job, 1.5) - exp(1.5)) < 1e-12);
    tr_job_destroy(&job);
}

static int set_up(void **state)
{
    const float numbers[24] = {1, 2, 3};
    const uint8_t labels[2] = {0, 1};
    scratch_place_make(state);
    npy_write(scratch_in("six.npy"), "<f4", "2, 2, 6", numbers, sizeof numbers);
    npy_write(scratch_in("four.npy"), "<f4", "2, 3, 4", numbers, sizeof numbers);
    npy_write(scratch_in("flat.npy"), "<f4", "2, 12", numbers, sizeof numbers);
    npy_write(scratch_in("other.npy"), "<f4", "2, 2, 3", numbers, sizeof numbers / 2);
    npy_write(scratch_in("pair.npy"), "<f4", "2, 2", numbers, 4 * sizeof *numbers);
    npy_write(scratch_in("one.npy"), "<f4", "2, 1", numbers, 2 * sizeof *numbers);
    npy_write(scratch_in("labels.npy"), "|u1", "2,", labels, sizeof labels);
    scratch_write_text("words.txt", "a text of some words, which are read by their characters\n");
    scratch_write_text("named.csv", "1,dog\n2,cat\n");
    scratch_write_text("two.csv", "1,2,0\n3,4,1\n");
    scratch_write_text("three.csv", "1,2,0\n3,4,2\n");
    scratch_write_text("seven.csv", "1,0\n2,1\n3,0\n4,1\n5,0\n6,1\n7,0\n");
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sets_have_names),
        cmocka_unit_test(sets_fit_the_network),
        cmocka_unit_test(classes_have_the_names_of_the_data),
        cmocka_unit_test(epochs_have_steps),
        cmocka_unit_test(data_are_divided),
        cmocka_unit_test(texts_have_tokens),
    };
    return cmocka_run_group_tests_name("job.sets", tests, set_up, scratch_place_remove);
}
