/* Whether data fit a network: each thing in which they may differ from what it takes, with the words that say
 * so. The data are only descriptions here.
 */
#include "job/file/input.h"

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

/* A job with this input, these layers, and this loss. */
static struct tr_job *job_of(const char *input, const char *layers, const char *loss)
{
    char text[1024];
    const struct tr_job_settings settings = {.set_count = 0};
    const int length =
        snprintf(text, sizeof text,
                 "name: n\ninput: {%s}\nlayers: [%s]\nloss: %s\noptimizer: {rule: sgd, rate: 1}\n"
                 "train: {batch: 2, steps: 1}\n",
                 input, layers, loss);
    const struct tr_job_text model = {text, (size_t)length, "m.yaml", "/nowhere"};
    struct tr_job *job;
    assert_in_range(length, 1, sizeof text - 1);
    if (tr_job_open_text(&model, &settings, &job) != TR_OK) fail_msg("%s: %s", layers, tr_error_message());
    return job;
}

#define FLOATS(n)       .features = TR_FEATURE_FLOATS, .floats = (n)
#define IMAGES(h, w, c) .features = TR_FEATURE_IMAGE, .height = (h), .width = (w), .channels = (c)
#define TOKENS(v)       .features = TR_FEATURE_TOKENS, .vocabulary = (v), .max_tokens = 5
#define CLASSES(n)      .labels = TR_LABEL_CLASS, .classes = (n)
#define VALUES(n)       .labels = TR_LABEL_VALUES, .values = (n)
#define PIXELS(n)       .labels = TR_LABEL_PIXELS, .classes = (n)
#define OF_TOKENS(n)    .labels = TR_LABEL_TOKENS, .classes = (n)

/* What one network takes and refuses; said NULL: it takes it. */
struct fit {
    struct tr_source_info info;
    const char *said;
    bool unlabelled; /* labels are not needed */
};

static void expect_fits(struct tr_job *job, const struct fit *fits, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const tr_source source = {.info = fits[i].info};
        const tr_status status = tr_job_check_source(job, &source, "own", !fits[i].unlabelled);
        if (status != (fits[i].said ? TR_EMISMATCH : TR_OK))
            fail_msg("case %zu: %s, %s", i, tr_status_name(status), status ? tr_error_message() : "");
        if (fits[i].said) assert_string_equal(tr_error_message(), fits[i].said);
    }
    tr_job_destroy(&job);
}
#define EXPECT_FITS(job, fits) expect_fits(job, fits, sizeof(fits) / sizeof(fits)[0])

static void numbers_with_classes(void **state)
{
    static const struct fit fits[] = {
        {{FLOATS(4), CLASSES(3)}, NULL},
        {{FLOATS(4), CLASSES(2)}, NULL},
        {{FLOATS(4), CLASSES(4)},
         "the own data have 4 classes, the network 3 outputs; give its last layer as many units as classes"},
        {{FLOATS(5), CLASSES(3)},
         "the own data have inputs of shape 5, the network takes 4; check data and input.shape"},
        {{IMAGES(2, 2, 1), CLASSES(3)},
         "the own data have inputs of shape 2x2x1, the network takes 4; check data and input.shape"},
        {{FLOATS(4), .labels = TR_LABEL_NONE}, NULL, true},
        {{FLOATS(4), .labels = TR_LABEL_NONE},
         "the own data have no classes, which softmax_cross_entropy needs; give classes, or set the loss to "
         "one that "
         "takes values (soft_cross_entropy: the probabilities of the classes)"},
        {{FLOATS(4), VALUES(3)},
         "the own data have no classes, which softmax_cross_entropy needs; give classes, or set the loss to "
         "one that "
         "takes values (soft_cross_entropy: the probabilities of the classes)",
         true},
        {{FLOATS(4), PIXELS(3)},
         "the own data have a label for each pixel, the network scores whole images; set loss: {per: pixel}, "
         "and end "
         "it with a conv of a channel for each class"},
    };
    (void)state;
    EXPECT_FITS(job_of("shape: [4]", "dense: 3", "softmax_cross_entropy"), fits);
}

static void numbers_with_values(void **state)
{
    static const struct fit fits[] = {
        {{FLOATS(4), VALUES(2)}, NULL},
        {{FLOATS(4), VALUES(1)},
         "the own data have 1 target values, the network with 2 outputs wants 2; give its last layer as many "
         "units as "
         "values"},
        {{FLOATS(4), VALUES(3)},
         "the own data have 3 target values, the network with 2 outputs wants 2; give its last layer as many "
         "units as "
         "values"},
        {{FLOATS(4), CLASSES(2)},
         "the own data have no values to predict, which mean_squared_error needs; give values, or set loss: "
         "softmax_cross_entropy for classes"},
        {{FLOATS(4), .labels = TR_LABEL_NONE}, NULL, true},
        {{FLOATS(4), .labels = TR_LABEL_NONE},
         "the own data have no values to predict, which mean_squared_error needs; give values, or set loss: "
         "softmax_cross_entropy for classes"},
    };
    (void)state;
    EXPECT_FITS(job_of("shape: [4]", "dense: 2", "mean_squared_error"), fits);
}

static void images_with_pixels(void **state)
{
    static const struct fit fits[] = {
        {{IMAGES(4, 4, 1), PIXELS(3)}, NULL},
        {{IMAGES(4, 4, 1), PIXELS(2)}, NULL},
        {{IMAGES(4, 4, 1), PIXELS(4)},
         "the own data have 4 classes, the network 3 outputs for a pixel; give its last layer as many "
         "filters as "
         "classes"},
        {{IMAGES(4, 4, 1), CLASSES(3)},
         "the own data have no labels of pixels, which a loss per pixel needs; give an array [count, height, "
         "width] of "
         "classes, or a folder of masks"},
        {{IMAGES(4, 5, 1), PIXELS(3)},
         "the own data have inputs of shape 4x5x1, the network takes 4x4x1; check data and input.shape"},
        {{IMAGES(4, 4, 1), .labels = TR_LABEL_NONE}, NULL, true},
    };
    (void)state;
    EXPECT_FITS(job_of("shape: [4, 4, 1]", "conv: {filters: 3, kernel: 1}", "{per: pixel}"), fits);
}

static void texts_with_a_class(void **state)
{
    static const struct fit fits[] = {
        {{TOKENS(9), CLASSES(2)}, NULL},
        {{TOKENS(8), CLASSES(2)}, NULL},
        {{TOKENS(10), CLASSES(2)}, "the own data have 10 words, the network 9; use the training vocabulary"},
        {{TOKENS(9), OF_TOKENS(2)},
         "the own data have a label for each token, the network scores for each text; end it with a layer "
         "that keeps "
         "its tokens"},
        {{FLOATS(9), CLASSES(2)},
         "the own data have inputs of shape 9, the network takes tokens x scalar; check data and "
         "input.shape"},
    };
    (void)state;
    EXPECT_FITS(job_of("vocabulary: 9", "embedding: 3, last, dense: 2", "softmax_cross_entropy"), fits);
}

static void texts_with_tags(void **state)
{
    static const struct fit fits[] = {
        {{TOKENS(9), OF_TOKENS(2)}, NULL},
        {{TOKENS(9), OF_TOKENS(3)},
         "the own data have 3 classes, the network 2 outputs; give its last layer as many units as classes"},
        {{TOKENS(9), CLASSES(2)},
         "the own data have a class for each text, the network scores for each token; end it with a \"last\" "
         "layer and "
         "a dense one"},
        {{TOKENS(9), VALUES(2)},
         "the own data have no classes, which softmax_cross_entropy needs; give classes, or set the loss to "
         "one that "
         "takes values (soft_cross_entropy: the probabilities of the classes)"},
    };
    (void)state;
    EXPECT_FITS(job_of("vocabulary: 9", "embedding: 3, dense: 2", "softmax_cross_entropy"), fits);
}

/* Steps of a source are compared where both say how many there are. */
static void sequences_of_numbers(void **state)
{
    static const struct fit fits[] = {
        {{FLOATS(8), CLASSES(2), .steps = 2}, NULL},
        {{FLOATS(8), CLASSES(2)}, NULL},
        {{FLOATS(8), CLASSES(2), .steps = 4},
         "examples of the own data have 4 steps, the network takes 2; give windows of one length"},
        {{FLOATS(8), CLASSES(2), .steps = 1},
         "examples of the own data have 1 steps, the network takes 2; give windows of one length"},
    };
    static const struct fit without[] = {{{FLOATS(8), CLASSES(2), .steps = 4}, NULL}};
    (void)state;
    EXPECT_FITS(job_of("shape: [8], steps: 2", "last, dense: 2", "softmax_cross_entropy"), fits);
    EXPECT_FITS(job_of("shape: [8]", "dense: 2", "softmax_cross_entropy"), without);
}

static void pairs_and_triples(void **state)
{
    static const struct fit pairs[] = {
        {{FLOATS(4), CLASSES(2)}, NULL},
        {{FLOATS(4), CLASSES(1)}, NULL},
        {{FLOATS(4), CLASSES(3)},
         "the own data have 3 classes, contrastive takes two: give each pair 1 (same) or 0 (different)"},
        {{FLOATS(4), VALUES(2)},
         "the own data have no classes, which contrastive needs; give each pair 1 (same) or 0 (different)"},
        {{FLOATS(4), .labels = TR_LABEL_NONE},
         "the own data have no classes, which contrastive needs; give each pair 1 (same) or 0 (different)"},
        {{FLOATS(4), .labels = TR_LABEL_NONE}, NULL, true},
    };
    static const struct fit triples[] = {{{FLOATS(6), .labels = TR_LABEL_NONE}, NULL},
                                         {{FLOATS(6), CLASSES(7)}, NULL}};
    (void)state;
    EXPECT_FITS(job_of("shape: [4]", "dense: 4", "{kind: contrastive, margin: 1}"), pairs);
    EXPECT_FITS(job_of("shape: [6]", "dense: 6", "triplet"), triples);
}

/* Joined sources have the same parts, by name and shape, in the same order. */
static void parts_are_the_same(void **state)
{
#define PHOTO                                                                                                \
    {                                                                                                        \
        "photo",                                                                                             \
        {                                                                                                    \
            3, {4, 4, 1}, false                                                                              \
        }                                                                                                    \
    }
#define FACTS                                                                                                \
    {                                                                                                        \
        "facts",                                                                                             \
        {                                                                                                    \
            1, {3}, false                                                                                    \
        }                                                                                                    \
    }
    static const struct {
        struct tr_source_parts parts;
        const char *are; /* NULL: they fit */
    } cases[] = {
        {{2, 1, {PHOTO, FACTS}}, NULL},
        {{0}, "none"},
        {{1, 1, {PHOTO}}, "photo 4x4x1"},
        {{2, 1, {PHOTO, {"fact", {1, {3}, false}}}}, "photo 4x4x1, fact 3"},
        {{2, 1, {PHOTO, {"facts", {1, {4}, false}}}}, "photo 4x4x1, facts 4"},
        {{2, 1, {{"picture", {3, {4, 4, 1}, false}}, FACTS}}, "picture 4x4x1, facts 3"},
        {{3, 1, {PHOTO, FACTS, {"more", {1, {1}, false}}}}, "photo 4x4x1, facts 3, more 1"},
        {{2, 1, {PHOTO, FACTS}, "review"}, "review tokens, photo 4x4x1, facts 3"},
        {{0, 0, {PHOTO}, "review"}, "review tokens"},
        {{0, 0, {PHOTO}, "review", "summary", 5, 7}, "review tokens, summary tokens 7"},
        {{1, 0, {FACTS}, "review", "summary", 5, 7}, "review tokens, summary tokens 7, facts 3"},
    };
    struct tr_job *job =
        job_of("shape: [19], sources: [photo 4x4x1, facts 3]",
               "flatten: {from: photo}, concat: {with: facts}, dense: 2", "softmax_cross_entropy");
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const tr_source source = {.info = {FLOATS(19), CLASSES(2)}, .parts = i == 1 ? NULL : &cases[i].parts};
        char said[512];
        const tr_status status = tr_job_check_source(job, &source, "own", true);
        if (status != (cases[i].are ? TR_EMISMATCH : TR_OK))
            fail_msg("case %zu: %s", i, tr_status_name(status));
        if (!cases[i].are) continue;
        snprintf(said, sizeof said,
                 "the joined sources of the own data are %s, the network takes photo 4x4x1, facts 3; give "
                 "them the "
                 "same names and shapes",
                 cases[i].are);
        assert_string_equal(tr_error_message(), said);
    }
    for (int64_t at = 0, done = 0; !done; at++) {
        const tr_source source = {.info = {FLOATS(19), CLASSES(2)}};
        refuse_begin(at);
        const tr_status status = tr_job_check_source(job, &source, "own", true);
        done = refuse_end();
        assert_int_equal(status, done ? TR_EMISMATCH : TR_ENOMEM);
    }
    tr_job_destroy(&job);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_with_classes), cmocka_unit_test(numbers_with_values),
        cmocka_unit_test(images_with_pixels),   cmocka_unit_test(texts_with_a_class),
        cmocka_unit_test(texts_with_tags),      cmocka_unit_test(sequences_of_numbers),
        cmocka_unit_test(pairs_and_triples),    cmocka_unit_test(parts_are_the_same),
    };
    return cmocka_run_group_tests_name("job.fits", tests, NULL, NULL);
}
