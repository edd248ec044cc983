/* Networks that make one text of another: one hash however the run is shared, no influence of other examples
 * of a batch or of their lengths, text that the network writes as it was judged, and a message for what
 * cannot be joined.
 */
#include "support/ranks.h"

#include "base/alloc.h"
#include "base/text/text.h"
#include "trireme/metrics.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#define COUNT 90

/* Letters, of which the other text has every second one, in reverse: their lengths differ. */
static int length_of(int i)
{
    return 1 + i * 5 % 9;
}
static char letter_of(int i, int k)
{
    return (char)('a' + (i * 7 + k * 3 + i / 11) % 6);
}

static void write_pairs(const char *name, bool json, int rows)
{
    struct tr_text text = TR_TEXT_INIT;
    if (!json) tr_text_add(&text, "long,class,short\n");
    for (int i = 0; i < rows; i++) {
        tr_text_add(&text, json ? "{\"short\": \"" : "");
        for (int k = length_of(i) - 1; k >= 0 && json; k--)
            if (k % 2 == 0) tr_text_addf(&text, "%c", letter_of(i, k));
        tr_text_add(&text, json ? "\", \"long\": \"" : "");
        for (int k = 0; k < length_of(i); k++) tr_text_addf(&text, "%c", letter_of(i, k));
        tr_text_addf(&text, json ? "\"}\n" : ",%d,", letter_of(i, 0) == letter_of(i, length_of(i) - 1));
        for (int k = length_of(i) - 1; k >= 0 && !json; k--)
            if (k % 2 == 0) tr_text_addf(&text, "%c", letter_of(i, k));
        tr_text_add(&text, json ? "" : "\n");
    }
    must_write(scratch_in(name), &text);
}

#define LONG(path, layout)                                                                                   \
    "long: {text: {path: " path ", " layout ", unit: characters, labels: false, text_columns: long}}"
#define SHORT(path, layout)                                                                                  \
    "short: {text: {path: " path ", " layout ", unit: characters, next: true, text_columns: short}}"
#define TABLE "layout: table, header: true"
static const char model[] =
    "name: pairs\n"
    "seed: 3\n"
    "data:\n"
    "  train:\n"
    "    join:\n"
    "      sources:\n"
    "        " LONG(
        "pairs.csv",
        TABLE) "\n"
               "        " SHORT(
                   "pairs.csv",
                   TABLE) "\n"
                          "layers:\n"
                          "  - embedding: {width: 12, from: long, weights: {normal: 0.5}}\n"
                          "  - position: {length: 9, weights: {normal: 0.5}, name: e0}\n"
                          "  - attention: {heads: 3, dropout: 0.05}\n"
                          "  - add: {with: e0, name: e1}\n"
                          "  - layer_norm: {name: memory}\n"
                          "  - embedding: {width: 12, from: short, weights: {normal: 0.5}, name: words}\n"
                          "  - position: {length: 6, weights: {normal: 0.5}, name: d0}\n"
                          "  - attention: {heads: 3, causal: true}\n"
                          "  - add: {with: d0, name: d1}\n"
                          "  - layer_norm\n"
                          "  - cross_attention: {heads: 2, kv_heads: 1, width: 16, with: memory, name: "
                          "look}\n"
                          "  - add: {with: d1, name: d2}\n"
                          "  - dense: {units: 24, activation: relu, name: wide}\n"
                          "  - dense: {units: 8, name: head}\n"
                          "optimizer: {rule: adam, rate: 0.01}\n"
                          "train: {batch: 16, microbatches: 4, steps: 24, log_every: 1, evaluate_every: "
                          "12}\n";
/* Of `model` on the ref device. */
static const char golden[] = "8aa227fc2e1c94162260bee0ae29399d53e638dd0f0d7ef7fe4421bf44a992bb";

static int make_place(void **state)
{
    struct tr_text text = TR_TEXT_INIT;
    scratch_place_make(state);
    write_pairs("pairs.csv", false, COUNT);
    write_pairs("pairs.jsonl", true, COUNT);
    write_pairs("fewer.csv", false, COUNT - 1);
    tr_text_add(&text, model);
    must_write(scratch_in("pairs.yaml"), &text);
    return 0;
}

static void begin(struct job *job, const char *const *set)
{
    job_begin(job, scratch_in("pairs.yaml"));
    job->settings.journal = "";
    job_set_all(job, set);
}

#define SET(...)     ((const char *const[]){__VA_ARGS__, NULL})
#define OUTCOME(...) begun_outcome(begin, SET(__VA_ARGS__))

static void expect_one_hash(const char *what, const char *const *set)
{
    static const struct job_variant others[] = {{"train.pass=1", "ref", NULL},
                                                {"train.recompute=true"},
                                                {"train.recompute=[look, e1]"},
                                                {"train.prefetch=2"},
                                                {"train.pass=2", NULL, "plain"}};
    const struct outcome alone = begun_outcome(begin, set);
    expect_shared_hash(&alone, begin, set, what);
    expect_variants(&alone, begin, set, others, sizeof others / sizeof others[0], what);
}

#define SPLIT "data.validation_split=0.2"

static void test_one_hash(void **state)
{
    (void)state;
    expect_one_hash("two texts", SET(SPLIT));
    expect_one_hash("two texts with shared vectors",
                    SET(SPLIT, "layers[5].share=embedding1", "layers[5].embedding.vocabulary=8",
                        "layers[0].embedding.vocabulary=8"));
}

static void test_golden_hash(void **state)
{
    (void)state;
    struct job job;
    struct outcome outcome;
    begin(&job, NULL);
    job.settings.device = "ref";
    job_outcome(&job, &outcome);
    must_train(outcome.status);
    assert_string_equal(outcome.hash, golden);
}

/* A class of two texts: what each tower gives for its own text is of another length. */
static void test_class_of_two_texts(void **state)
{
    (void)state;
    expect_one_hash(
        "the class of two texts",
        SET(SPLIT,
            "data.train.join.sources={" LONG(
                "pairs.csv", TABLE) ", short: {text: {path: pairs.csv, " TABLE
                                    ", unit: characters, text_columns: short, label_column: class}}}",
            "layers=[{embedding: {width: 8, from: long}}, {gru: 6}, {last: {name: a}}, {embedding: {width: "
            "8, "
            "from: short, name: e1}}, {conv1d: {filters: 5, kernel: 2, name: look}}, {global_max_pool: "
            "{name: "
            "b}}, {concat: {from: [a, b]}}, {dense: {units: 4, activation: tanh, name: wide}}, {dense: 2}]"));
}

/* Objects say what rows say. */
static void test_objects(void **state)
{
    (void)state;
    const struct outcome rows = OUTCOME("seed=5"),
                         objects = OUTCOME(
                             "seed=5",
                             "data.train.join.sources={" LONG("pairs.jsonl", "layout: json") ", " SHORT(
                                 "pairs.jsonl", "layout: json") "}");
    must_train(rows.status);
    must_train(objects.status);
    assert_string_equal(rows.hash, objects.hash);
}

/* The losses of an evaluation do not depend on the other examples beside which one is computed. */
static void test_no_padding(void **state)
{
    (void)state;
    const struct outcome one = OUTCOME(SPLIT, "train.evaluate_batch=1"),
                         all = OUTCOME(SPLIT, "train.evaluate_batch=64");
    must_train(one.status);
    must_train(all.status);
    assert_true(one.evaluations > 0);
    assert_memory_equal(&one.evaluated_accuracy, &all.evaluated_accuracy, sizeof one.evaluated_accuracy);
    assert_memory_equal(&one.evaluated_loss, &all.evaluated_loss, sizeof one.evaluated_loss);
}

/* ---- use ---- */

static tr_predictor *trained(const char *steps, const char *run)
{
    struct job job;
    struct outcome outcome;
    struct tr_predict_settings settings = TR_PREDICT_SETTINGS_INIT;
    tr_predictor *predictor;
    begin(&job, SET(steps));
    job.settings.out = scratch_in(run);
    job_outcome(&job, &outcome);
    must_train(outcome.status);
    settings.checkpoint = scratch_in(run);
    must_train(tr_predictor_create(&settings, &predictor));
    return predictor;
}

/* What is written token by token, with what layers remember, is what the evaluation judged at once. */
static void test_written_as_judged(void **state)
{
    (void)state;
    tr_predictor *predictor = trained("train.steps=90", "judged");
    struct tr_predict_info info = TR_PREDICT_INFO_INIT;
    tr_source *source;
    double loss, accuracy;
    int right = 0;
    must_train(tr_predictor_info(predictor, &info));
    assert_true(info.language_model && info.two_texts && info.of_tokens);
    must_train(tr_predictor_open_data(predictor, "train", &source));
    must_train(tr_predictor_evaluate(predictor, source, &loss, &accuracy, NULL));
    const struct tr_metrics *metrics = tr_predictor_metrics(predictor);
    assert_non_null(metrics);
    assert_int_equal(metrics->count, 1);
    assert_string_equal(metrics->metric[0].name, "exact_match");
    for (int i = 0; i < COUNT; i++) {
        char text[16] = "", *written, *truth, *again;
        for (int k = 0; k < length_of(i); k++) text[k] = letter_of(i, k);
        must_train(tr_predictor_translate_example(predictor, source, i, &written, &truth));
        must_train(tr_predictor_translate(predictor, text, &again));
        assert_string_equal(written, again);
        for (int k = length_of(i) - 1, n = 0; k >= 0; k--)
            if (k % 2 == 0) assert_int_equal(truth[n++], letter_of(i, k));
        right += strcmp(written, truth) == 0;
        tr_text_free(written);
        tr_text_free(truth);
        tr_text_free(again);
    }
    if (right < COUNT / 4 || right == COUNT) fail_msg("%d are right", right);
    assert_true(fabs(metrics->metric[0].value - (double)right / COUNT) < 1e-12);
    tr_source_close(&source);
    tr_predictor_destroy(&predictor);
}

static int keep(void *user, const char *piece, size_t length)
{
    strncat(user, piece, length);
    return 0;
}

static char *generated(tr_predictor *predictor, struct tr_generate_settings settings)
{
    static char text[2][64];
    static int next;
    char *to = text[next++ % 2];
    *to = '\0';
    must_train(tr_predictor_generate(predictor, &settings, keep, to));
    return to;
}

static void refused(tr_predictor *predictor, struct tr_generate_settings settings, const char *part)
{
    char text[64] = "";
    assert_int_equal(tr_predictor_generate(predictor, &settings, keep, text), TR_EINVAL);
    if (!strstr(tr_error_message(), part)) fail_msg("%s", tr_error_message());
}

static void test_generate(void **state)
{
    (void)state;
    tr_predictor *predictor = trained("train.steps=200", "generated");
    struct tr_generate_settings settings = TR_GENERATE_SETTINGS_INIT;
    char *written;
    settings.source = "abcde";
    settings.temperature = 0;
    must_train(tr_predictor_translate(predictor, "abcde", &written));
    assert_string_equal(generated(predictor, settings), written);
    tr_text_free(written);
    /* A prompt is where the text begins; what follows ends, also beyond what positions can tell apart. */
    settings.prompt = "f";
    assert_true(strlen(generated(predictor, settings)) <= 5);
    settings.temperature = 2;
    settings.prompt = NULL;
    const char *first = generated(predictor, settings);
    assert_string_equal(first, generated(predictor, settings));
    settings.prompt = "z";
    refused(predictor, settings, "is none of the 8 that the network knows");
    settings.prompt = NULL;
    settings.source = NULL;
    refused(predictor, settings, "takes another text, \"long\"; give it as the source");
    settings.source = "";
    refused(predictor, settings, "the source has 0 tokens");
    tr_predictor_destroy(&predictor);
}

/* A network that sees so few tokens ends where it would lose the beginning, however much it would write. */
static void test_generate_ends_with_the_context(void **state)
{
    (void)state;
    tr_predictor *predictor = trained("train.steps=1", "untrained");
    struct tr_generate_settings settings = TR_GENERATE_SETTINGS_INIT;
    settings.source = "abcde";
    settings.temperature = 100;
    settings.tokens = 6;
    size_t longest = 0;
    for (settings.seed = 1; settings.seed < 20; settings.seed++) {
        settings.context = 3;
        const size_t length = strlen(generated(predictor, settings));
        if (length > longest) longest = length;
    }
    assert_int_equal(longest, 3);
    tr_predictor_destroy(&predictor);
}

static void test_single_texts_are_refused(void **state)
{
    (void)state;
    tr_predictor *predictor = trained("train.steps=1", "single");
    float output[64];
    assert_int_equal(tr_predictor_text(predictor, "abc", output), TR_EUNSUPPORTED);
    tr_predictor_destroy(&predictor);
}

/* ---- exports ---- */

static tr_status export_as(const char *run, const char *format)
{
    struct tr_export_settings settings = TR_EXPORT_SETTINGS_INIT;
    tr_exporter *exporter;
    settings.checkpoint = scratch_in(run);
    must_train(tr_exporter_create(&settings, &exporter));
    tr_status status = tr_exporter_write(exporter, format, scratch_in("exported"));
    tr_exporter_destroy(&exporter);
    return status;
}

static void test_exports(void **state)
{
    (void)state;
    static const char *const refused[][2] = {{"onnx", "another text beside a text (\"short\")"},
                                             {"c", "another text beside a text (\"short\")"},
                                             {"torch", "layer \"long\": second_text has no counterpart"}};
    tr_predictor *predictor = trained("train.steps=1", "exports");
    tr_predictor_destroy(&predictor);
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        assert_int_equal(export_as("exports", refused[i][0]), TR_EUNSUPPORTED);
        if (!strstr(tr_error_message(), refused[i][1])) fail_msg("%s: %s", refused[i][0], tr_error_message());
    }
    must_train(export_as("exports", "safetensors"));
}

/* Without a second text: a language model that ends its texts. */
static void test_whole_texts(void **state)
{
    (void)state;
    struct job job;
    struct outcome outcome;
    struct tr_predict_settings how = TR_PREDICT_SETTINGS_INIT;
    struct tr_predict_info info = TR_PREDICT_INFO_INIT;
    struct tr_generate_settings settings = TR_GENERATE_SETTINGS_INIT;
    tr_predictor *predictor;
    char *written;
    begin(&job, SET("data.train={text: {path: pairs.csv, " TABLE
                    ", unit: characters, next: true, text_columns: short}}",
                    "layers=[{embedding: 8}, {lstm: 12}, {dense: 8}]", "train.steps=150"));
    job.settings.out = scratch_in("whole");
    job_outcome(&job, &outcome);
    must_train(outcome.status);
    how.checkpoint = scratch_in("whole");
    must_train(tr_predictor_create(&how, &predictor));
    must_train(tr_predictor_info(predictor, &info));
    assert_true(info.language_model && !info.two_texts);
    for (settings.seed = 1; settings.seed <= 20; settings.seed++) {
        const size_t length = strlen(generated(predictor, settings));
        if (length > 12) fail_msg("a text of %zu letters, where those of training have 5", length);
    }
    settings.source = "abc";
    refused(predictor, settings, "takes one text; give it as the prompt");
    assert_int_equal(tr_predictor_translate(predictor, "abc", &written), TR_EUNSUPPORTED);
    tr_predictor_destroy(&predictor);
    must_train(export_as("whole", "c"));
    must_train(export_as("whole", "onnx"));
}

#define JOIN(a, b) "data.train.join.sources={" a ", " b "}"
#define CSV_LONG   LONG("pairs.csv", TABLE)
#define CSV_SHORT  SHORT("pairs.csv", TABLE)

static void test_refusals(void **state)
{
    (void)state;
    static const struct {
        const char *set, *part, *also;
    } cases[] = {
        {JOIN(CSV_LONG, SHORT("fewer.csv", TABLE)), "example by example in the same order"},
        {JOIN(CSV_LONG,
              CSV_SHORT ", more: {text: {path: pairs.csv, " TABLE ", labels: false, text_columns: long}}"),
         "are texts; two can be joined"},
        {JOIN("long: {text: {path: pairs.csv, " TABLE ", next: true, text_columns: long}}", CSV_SHORT),
         "sources \"long\" and \"short\" both have labels"},
        {JOIN("long: {text: {path: pairs.csv, " TABLE ", labels: false, text_columns: other}}", CSV_SHORT),
         "there is no column \"other\""},
        {JOIN(CSV_LONG, "short: {text: {path: pairs.csv, " TABLE ", next: true, tags: true}}"),
         "tags and next are both labels"},
        {"layers[8]={add: {with: memory, name: d1}}", "follow from two texts of different lengths"},
        {"layers[5].from=longer", "Did you mean \"long\"?"},
        {"layers[0].embedding.vocabulary=3", "vocabulary is 3, the data have 7 words"},
        {"input={vocabulary: 8, sources: [short tokens, long tokens 0]}", "is no name with a shape"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct outcome outcome = OUTCOME(cases[i].set, cases[i].also);
        if (outcome.status == TR_OK || !strstr(outcome.message, cases[i].part))
            fail_msg("%s: %s", cases[i].set, outcome.status == TR_OK ? "taken" : outcome.message);
    }
}

/* A cut between encoder and decoder, or within one of them, is refused with its reason. */
static void test_cuts(void **state)
{
    (void)state;
    static const struct {
        const char *strategy, *part;
    } cases[] = {
        {"pipeline,cut=memory", "the tokens of \"long\", of layer \"e1\", do not go"},
        {"pipeline,cut=look", "also takes the output of \"memory\""},
        {"pipeline,cut=words", "the tokens of \"long\", of layer \"memory\", do not go"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct job job;
        struct rank ranks[RANKS];
        begin(&job, NULL);
        job.settings.strategy = cases[i].strategy;
        job.settings.set = job.set;
        run_ranks(&job.settings, 2, false, ranks);
        assert_true(ranks[0].outcome.status != TR_OK);
        if (!strstr(ranks[0].outcome.message, cases[i].part)) fail_msg("%s", ranks[0].outcome.message);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_golden_hash),
        cmocka_unit_test(test_one_hash),
        cmocka_unit_test(test_class_of_two_texts),
        cmocka_unit_test(test_objects),
        cmocka_unit_test(test_no_padding),
        cmocka_unit_test(test_written_as_judged),
        cmocka_unit_test(test_generate),
        cmocka_unit_test(test_generate_ends_with_the_context),
        cmocka_unit_test(test_single_texts_are_refused),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_cuts),
        cmocka_unit_test(test_exports),
        cmocka_unit_test(test_whole_texts),
    };
    return cmocka_run_group_tests(tests, make_place, scratch_place_remove);
}
