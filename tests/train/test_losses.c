/* Losses in whole trainings: one hash on every strategy, and what they demand of the data. What they compute
 * is judged in tests/device and by PyTorch (tests/interop/test_steps.py).
 */
#include "support/ranks.h"

#include "base/alloc.h"
#include "base/text/text.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#define COUNT 203

static double draw(void)
{
    static uint32_t random = 11;
    random = random * 1664525 + 1013904223;
    return (double)(random >> 8) / (1 << 24);
}

/* Two numbers, a class of three by their angle, its probabilities: `certain` ones are 0 and 1. */
static void write_shares(const char *name, bool certain, const char *spoilt)
{
    struct tr_text text = TR_TEXT_INIT;
    tr_text_add(&text, "x,y,kind,p,q,r\n");
    for (int i = 0; i < COUNT; i++) {
        const double x = 2 * draw() - 1, y = 2 * draw() - 1, sure = certain ? 1 : 0.5 + draw() / 2;
        const int kind = x > 0.2 ? 0 : y > 0 ? 1 : 2;
        tr_text_addf(&text, "%.5f,%.5f,%d", x, y, kind);
        for (int k = 0; k < 3 && !(i == 7 && spoilt); k++)
            tr_text_addf(&text, ",%.6f", k == kind ? sure : (1 - sure) / 2);
        tr_text_addf(&text, "%s\n", i == 7 && spoilt ? spoilt : "");
    }
    must_write(scratch_in(name), &text);
}

/* Three points of the plane: an anchor, one of its class (by the angle), one of another; then whether the
   first two are `same` in a table of pairs, which is every second time so. */
static void write_points(const char *name, bool pairs)
{
    struct tr_text text = TR_TEXT_INIT;
    double at[3][2];
    int kind[3];
    tr_text_add(&text, pairs ? "ax,ay,bx,by,same,kind\n" : "ax,ay,bx,by,cx,cy,kind\n");
    for (int i = 0; i < COUNT; i++) {
        bool right;
        do {
            for (int k = 0; k < 3; k++) {
                at[k][0] = 2 * draw() - 1;
                at[k][1] = 2 * draw() - 1;
                kind[k] = at[k][0] > 0.2 ? 0 : at[k][1] > 0 ? 1 : 2;
            }
            right = (kind[0] == kind[1]) == (!pairs || i % 2) && (pairs || kind[0] != kind[2]);
        } while (!right);
        for (int k = 0; k < (pairs ? 2 : 3); k++) tr_text_addf(&text, "%.5f,%.5f,", at[k][0], at[k][1]);
        if (pairs) tr_text_add(&text, kind[0] == kind[1] ? "yes," : "no,");
        tr_text_addf(&text, "%d\n", kind[0]);
    }
    must_write(scratch_in(name), &text);
}

static int make_place(void **state)
{
    struct tr_text model = TR_TEXT_INIT;
    scratch_place_make(state);
    write_shares("shares.csv", false, NULL);
    write_shares("certain.csv", true, NULL);
    write_shares("above.csv", false, ",0.9,0.3,0.2");
    write_shares("negative.csv", false, ",1.1,-0.1,0");
    write_points("pairs.csv", true);
    write_points("triples.csv", false);
    tr_text_add(&model, "name: losses\n"
                        "data: {train: {csv: {path: shares.csv, label: value, label_columns: [p, q, r], "
                        "skip_columns: [kind]}}}\n"
                        "layers: [{dense: {units: 12, activation: tanh, name: one}}, "
                        "{dense: {units: 3, name: head}}]\n"
                        "loss: soft_cross_entropy\n"
                        "optimizer: {rule: momentum, rate: 0.2}\n"
                        "train: {batch: 40, microbatches: 4, steps: 30, log_every: 1}\n");
    must_write(scratch_in("losses.yaml"), &model);
    return 0;
}

static void begin(struct job *job, const char *const *set)
{
    job_begin(job, scratch_in("losses.yaml"));
    job->settings.journal = "";
    job_set_all(job, set);
}

#define SET(...)     ((const char *const[]){__VA_ARGS__, NULL})
#define OUTCOME(...) begun_outcome(begin, SET(__VA_ARGS__))

static void expect_one_hash(const char *what, const char *const *set)
{
    const struct outcome alone = begun_outcome(begin, set);
    expect_shared_hash(&alone, begin, set, what);
}

static void expect_message(const struct outcome *outcome, const char *part)
{
    if (outcome->status == TR_OK || !strstr(outcome->message, part))
        fail_msg("\"%s\" does not have \"%s\"", outcome->message, part);
}

/* ---- probabilities of classes ---- */

#define CERTAIN "data.train.csv.path=certain.csv"
#define CLASSES "data.train.csv={path: certain.csv, label_columns: kind, skip_columns: [p, q, r]}"
#define SPLIT   "data.validation_split=0.25"

static void test_probabilities(void **state)
{
    (void)state;
    const struct outcome shares = OUTCOME(SPLIT);
    expect_one_hash("probabilities", SET(SPLIT));
    expect_one_hash("smoothed probabilities", SET("loss.label_smoothing=0.1"));
    assert_true(shares.evaluated_accuracy > 0.8);
    /* Certain ones are classes: the same numbers, but for the order of a sum. */
    struct outcome certain = OUTCOME(SPLIT, CERTAIN),
                   classes = OUTCOME(SPLIT, CLASSES, "loss=softmax_cross_entropy");
    must_train(certain.status);
    must_train(classes.status);
    assert_true(fabs(certain.evaluated_loss - classes.evaluated_loss) < 1e-5);
    assert_true(certain.evaluated_accuracy == classes.evaluated_accuracy);
    certain = OUTCOME(SPLIT, CERTAIN, "loss.label_smoothing=0.3");
    classes = OUTCOME(SPLIT, CLASSES, "loss={kind: softmax_cross_entropy, label_smoothing: 0.3}");
    assert_true(fabs(certain.evaluated_loss - classes.evaluated_loss) < 1e-5);
    assert_true(fabs(certain.evaluated_loss - shares.evaluated_loss) > 1e-3);
}

static void test_bad_probabilities(void **state)
{
    (void)state;
    struct outcome outcome = OUTCOME("data.train.csv.path=above.csv");
    expect_message(&outcome,
                   "the 3 values of example 7 add up to 1.4; soft_cross_entropy takes the probabilities");
    outcome = OUTCOME("data.train.csv.path=negative.csv");
    expect_message(&outcome, "example 7 has the value -0.1; soft_cross_entropy takes probabilities");
    outcome = OUTCOME("loss=softmax_cross_entropy");
    expect_message(&outcome, "soft_cross_entropy: the probabilities of the classes");
    outcome = OUTCOME(CLASSES);
    expect_message(&outcome, "set loss: softmax_cross_entropy for classes");
    outcome = OUTCOME("loss=soft_target_cross_entropy");
    expect_message(&outcome, "did you mean \"soft_cross_entropy\"?");
    outcome = OUTCOME("layers.head.units=4");
    expect_message(&outcome, "have 3 target values, the network with 4 outputs wants 4");
}

/* ---- classes of which the easy ones count less ---- */

static void test_focal(void **state)
{
    (void)state;
    const char *focal = "loss={kind: focal, gamma: 1.5, class_weights: [1, 2, 0.5]}";
    expect_one_hash("focal", SET(SPLIT, CLASSES, focal));
    /* Without gamma it is the cross-entropy, but for the order of a sum. */
    struct outcome none = OUTCOME(SPLIT, CLASSES, "loss={kind: focal, gamma: 0}"),
                   plain = OUTCOME(SPLIT, CLASSES, "loss=softmax_cross_entropy"),
                   usual = OUTCOME(SPLIT, CLASSES, "loss=focal");
    must_train(none.status);
    assert_true(fabs(none.evaluated_loss - plain.evaluated_loss) < 1e-5);
    assert_true(none.evaluated_accuracy == plain.evaluated_accuracy);
    assert_true(usual.evaluated_loss < 0.8 * plain.evaluated_loss && usual.evaluated_accuracy > 0.8);
    struct outcome outcome = OUTCOME("loss={kind: huber, gamma: 2}");
    expect_message(&outcome, "focal only");
    outcome = OUTCOME("loss=focal_loss");
    expect_message(&outcome, "did you mean \"focal\"?");
    outcome = OUTCOME("loss=focal");
    expect_message(&outcome, "the train data have no classes, which focal needs");
}

/* ---- quantiles ---- */

#define ONE_VALUE                                                                                            \
    "data.train.csv={path: shares.csv, label: value, label_columns: [y], skip_columns: [kind, p, q, r]}"
#define QUANTILES "loss={kind: quantile, quantiles: [0.1, 0.5, 0.9]}"

/* Quantiles of y, which the features do not have: those of numbers that are even from -1 to 1. */
static void test_quantiles(void **state)
{
    (void)state;
    static const double expected[] = {-0.8, 0, 0.8};
    struct job job;
    float answer[3];
    expect_one_hash("quantiles", SET(SPLIT, ONE_VALUE, QUANTILES));
    begin(&job, SET(ONE_VALUE, QUANTILES, "optimizer={rule: adam, rate: 0.02}", "train.steps=600"));
    job.settings.out = scratch_in("quantiles");
    struct outcome outcome;
    job_outcome(&job, &outcome);
    must_train(outcome.status);
    struct tr_predict_settings settings = TR_PREDICT_SETTINGS_INIT;
    tr_predictor *predictor;
    settings.checkpoint = scratch_in("quantiles");
    must_train(tr_predictor_create(&settings, &predictor));
    static const float x[] = {0.1f};
    must_train(tr_predictor_floats(predictor, x, answer));
    for (int k = 0; k < 3; k++)
        if (fabs((double)answer[k] - expected[k]) > 0.25)
            fail_msg("quantile %d is %g, not about %g", k, (double)answer[k], expected[k]);
    tr_predictor_destroy(&predictor);
    outcome = OUTCOME(ONE_VALUE, "loss=quantile");
    expect_message(&outcome, "needs quantiles, for instance");
    outcome = OUTCOME(ONE_VALUE, "loss={kind: quantile, quantiles: [0.1, 0.9]}");
    expect_message(&outcome, "give its last layer as many units as quantiles times values");
    outcome = OUTCOME(ONE_VALUE, "loss={kind: quantile, quantiles: [0.5, 1]}");
    expect_message(&outcome, "quantiles");
    outcome = OUTCOME(QUANTILES);
    expect_message(&outcome, "have 3 target values, the network with 3 outputs wants 1");
}

/* ---- counts ---- */

#define COUNTS                                                                                               \
    "data.train.csv={path: shares.csv, label: value, label_columns: [kind], skip_columns: [p, q, r]}"

static void test_counts(void **state)
{
    (void)state;
    expect_one_hash("counts", SET(SPLIT, COUNTS, "layers.head.units=1", "loss=poisson"));
    /* Logarithms of rates, or rates, tell the same distances from the counts. */
    struct outcome logs = OUTCOME(SPLIT, COUNTS, "layers.head.units=1", "loss=poisson"),
                   rates = OUTCOME(SPLIT, COUNTS, "layers.head.units=1", "layers.head.activation=sigmoid",
                                   "loss={kind: poisson, logs: false}"),
                   outcome = OUTCOME("loss=poisson", "data.train.csv.path=negative.csv");
    must_train(logs.status);
    must_train(rates.status);
    expect_message(&outcome, "example 7 has the value -0.1; poisson takes counts, which are 0 or more");
    outcome = OUTCOME("loss=poisson_nll_loss");
    expect_message(&outcome, "did you mean \"poisson\"?");
}

/* ---- pairs and triples ---- */

#define TOWER(name, begin, shared)                                                                           \
    "{slice: {begin: " begin ", size: 2, from: input}}, {dense: {units: 12, activation: tanh, " shared       \
    "}}, {dense: {units: 3, name: " name
#define PAIR                                                                                                 \
    "layers=[" TOWER("one", "0", "name: wide") "}}, " TOWER("two", "2", "share: wide") ", share: one}}, "    \
                                                                                       "{concat: [one]}]"
#define TRIPLE                                                                                               \
    "layers=[" TOWER("one", "0", "name: wide") "}}, " TOWER(                                                 \
        "two", "2", "share: wide") ", share: one}}, " TOWER("three", "4",                                    \
                                                            "share: wide") ", share: one}}, {concat: "       \
                                                                           "{from: [one, two, three]}}]"
/* Six outputs are two vectors or three. Towers that share stay on one process; this network can be cut. */
#define PLAIN   "layers=[{dense: {units: 12, activation: tanh}}, {dense: 6}]"
#define PAIRS   "data.train.csv={path: pairs.csv, label_columns: same, skip_columns: kind}"
#define TRIPLES "data.train.csv={path: triples.csv, label: none, skip_columns: kind}"
#define LONG    "train.steps=400"

/* Concatenated towers, in the order of the names: [one, two] is what `concat: [one]` gives of the last layer
 * two. */
static void test_pairs(void **state)
{
    (void)state;
    const char *loss = "loss={kind: contrastive, margin: 1.5}";
    struct job job;
    struct outcome outcome;
    float embedding[6], swapped[6];
    expect_one_hash("pairs", SET(SPLIT, PAIRS, PLAIN, loss));
    begin(&job, SET(SPLIT, PAIRS, PAIR, loss, LONG));
    job.settings.out = scratch_in("pairs");
    job_outcome(&job, &outcome);
    must_train(outcome.status);
    if (!(outcome.evaluated_accuracy > 0.85))
        fail_msg("of pairs %g are told right", outcome.evaluated_accuracy);
    struct tr_predict_settings settings = TR_PREDICT_SETTINGS_INIT;
    struct tr_predict_info info = TR_PREDICT_INFO_INIT;
    tr_predictor *predictor;
    settings.checkpoint = scratch_in("pairs");
    must_train(tr_predictor_create(&settings, &predictor));
    must_train(tr_predictor_info(predictor, &info));
    assert_true(info.accuracy && !info.classification && info.outputs == 6 && info.targets == 0);
    static const float there[] = {0.9f, 0.1f, -0.8f, 0.7f}, back[] = {-0.8f, 0.7f, 0.9f, 0.1f};
    must_train(tr_predictor_floats(predictor, there, embedding));
    must_train(tr_predictor_floats(predictor, back, swapped));
    /* The towers are one: what is compared changes places. Numbers are embeddings, not between 0 and 1. */
    assert_memory_equal(embedding, swapped + 3, 3 * sizeof *embedding);
    assert_memory_equal(embedding + 3, swapped, 3 * sizeof *embedding);
    float away = 0;
    for (int k = 0; k < 3; k++) away += (embedding[k] - embedding[3 + k]) * (embedding[k] - embedding[3 + k]);
    if (!(sqrtf(away) > 0.75f)) fail_msg("points of two classes are %g apart", (double)sqrtf(away));
    tr_predictor_destroy(&predictor);
}

static void test_triples(void **state)
{
    (void)state;
    expect_one_hash("triples", SET(SPLIT, TRIPLES, PLAIN, "loss=triplet"));
    const struct outcome squared = OUTCOME(SPLIT, TRIPLES, TRIPLE, "loss={kind: triplet, margin: 0.5}", LONG),
                         plain = OUTCOME(SPLIT, TRIPLES, TRIPLE,
                                         "loss={kind: triplet, margin: 0.5, squared: false}", LONG);
    must_train(squared.status);
    must_train(plain.status);
    if (!(squared.evaluated_accuracy > 0.85 && plain.evaluated_accuracy > 0.85))
        fail_msg("of triples %g and %g are in order", squared.evaluated_accuracy, plain.evaluated_accuracy);
    /* Labels are ignored, whatever they are. */
    const struct outcome none = OUTCOME(TRIPLES, TRIPLE, "loss=triplet"),
                         classes = OUTCOME("data.train.csv={path: triples.csv}", TRIPLE, "loss=triplet"),
                         values = OUTCOME("data.train.csv={path: triples.csv, label: value}", TRIPLE,
                                          "loss=triplet");
    must_train(none.status);
    must_train(classes.status);
    must_train(values.status);
    assert_string_equal(none.hash, classes.hash);
    assert_string_equal(none.hash, values.hash);
}

static void test_bad_pairs(void **state)
{
    (void)state;
    struct outcome outcome = OUTCOME(CLASSES, "loss=contrastive");
    expect_message(&outcome, "contrastive compares 2 vectors of one width, the network's output is 3; end it "
                             "with a concat of the towers' vectors");
    outcome = OUTCOME(CLASSES, "loss=triplet", "layers.head.units=4");
    expect_message(&outcome, "triplet compares 3 vectors of one width, the network's output is 4");
    outcome = OUTCOME(CLASSES, "loss=contrastive", "layers.head.units=4");
    expect_message(&outcome, "the train data have 3 classes, contrastive takes two: give each pair 1 (same)");
    outcome = OUTCOME("loss=contrastive", "layers.head.units=4");
    expect_message(&outcome, "the train data have no classes, which contrastive needs");
    outcome = OUTCOME("loss=[{kind: contrastive, outputs: 2}, {kind: huber, outputs: 1}]");
    expect_message(&outcome, "contrastive stands alone, not among others");
    outcome = OUTCOME(PAIRS, PAIR, SPLIT, "loss=contrastive", "train.monitor=f1", "train.evaluate_every=5");
    expect_message(&outcome, "monitor: figure \"f1\"");
    outcome = OUTCOME("loss={kind: huber, margin: 2}");
    expect_message(&outcome, "contrastive");
    outcome = OUTCOME("loss={kind: contrastive, squared: true}");
    expect_message(&outcome, "triplet only");
    outcome = OUTCOME("loss=triplet_margin_loss");
    expect_message(&outcome, "did you mean \"triplet\"?");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_probabilities), cmocka_unit_test(test_bad_probabilities),
        cmocka_unit_test(test_focal),         cmocka_unit_test(test_quantiles),
        cmocka_unit_test(test_counts),        cmocka_unit_test(test_pairs),
        cmocka_unit_test(test_triples),       cmocka_unit_test(test_bad_pairs),
    };
    return cmocka_run_group_tests(tests, make_place, scratch_place_remove);
}
