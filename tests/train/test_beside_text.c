/* Texts with columns of a table beside them: one hash however the run is shared, the numbers of an
 * independent computation, and a message for what cannot be joined.
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

#define COUNT 120

/* A text of 1 to 7 words, two numbers and a name. The class follows from the first word and a number. */
static int length_of(int i)
{
    return 1 + i * 5 % 7;
}
static int word_of(int i, int k)
{
    return (i * 7 + k * 3 + i / 11) % 9;
}
static int number_of(int i)
{
    return i * 13 % 21 - 10;
}
static int class_of(int i)
{
    return (word_of(i, 0) > 4) ^ (number_of(i) > 0);
}

static void write_table(const char *name, bool json, int rows)
{
    struct tr_text text = TR_TEXT_INIT;
    if (!json) tr_text_add(&text, "review,stars,half,kind,label\n");
    for (int i = 0; i < rows; i++) {
        tr_text_add(&text, json ? "{\"review\": \"" : "\"");
        for (int k = 0; k < length_of(i); k++) tr_text_addf(&text, "%sw%d", k ? " " : "", word_of(i, k));
        const char *kind = i % 3 ? "new" : "old";
        if (json)
            tr_text_addf(&text, " \\\",\", \"stars\": %d, \"half\": 0.5, \"kind\": \"%s\", \"label\": %d}\n",
                         number_of(i), kind, class_of(i));
        else
            tr_text_addf(&text, " \"\",\",%d,0.5,%s,%d\n", number_of(i), kind, class_of(i));
    }
    must_write(scratch_in(name), &text);
}

#define FACTS "label: none, skip_columns: [review, label, half], categories: kind, standardize: true"
static const char model[] = "name: beside\n"
                            "seed: 3\n"
                            "data:\n"
                            "  train:\n"
                            "    join:\n"
                            "      sources:\n"
                            "        words: {text: {path: table.csv, layout: table, header: true, "
                            "text_columns: review, label_column: "
                            "label}}\n"
                            "        facts: {csv: {path: table.csv, " FACTS "}}\n"
                            "layers:\n"
                            "  - embedding: {width: 5, from: words}\n"
                            "  - gru: 6\n"
                            "  - last: {name: read}\n"
                            "  - dense: {units: 4, activation: tanh, from: facts, name: known}\n"
                            "  - concat: {from: [read, known]}\n"
                            "  - dense: {units: 8, activation: tanh, name: both}\n"
                            "  - dense: {units: 2, name: head}\n"
                            "optimizer: {rule: adam, rate: 0.02}\n"
                            "train: {batch: 20, microbatches: 4, steps: 24, log_every: 1}\n";

static int make_place(void **state)
{
    struct tr_text text = TR_TEXT_INIT, one = TR_TEXT_INIT;
    scratch_place_make(state);
    write_table("table.csv", false, COUNT);
    write_table("table.jsonl", true, COUNT);
    write_table("short.csv", false, COUNT - 1);
    tr_text_add(&text, model);
    must_write(scratch_in("beside.yaml"), &text);
    tr_text_add(&one, "the only text there is\n");
    must_write(scratch_in("running.txt"), &one);
    return 0;
}

static void begin(struct job *job, const char *const *set)
{
    job_begin(job, scratch_in("beside.yaml"));
    job->settings.journal = "";
    job_set_all(job, set);
}

#define SET(...)     ((const char *const[]){__VA_ARGS__, NULL})
#define OUTCOME(...) begun_outcome(begin, SET(__VA_ARGS__))

static void expect_one_hash(const char *what, const char *const *set)
{
    static const struct job_variant others[] = {{"train.pass=1", "ref", NULL},
                                                {"train.recompute=true"},
                                                {"train.recompute=[gru1, known]"},
                                                {"train.prefetch=2"}};
    const struct outcome alone = begun_outcome(begin, set);
    expect_shared_hash(&alone, begin, set, what);
    expect_variants(&alone, begin, set, others, sizeof others / sizeof others[0], what);
}

#define SPLIT "data.validation_split=0.25"
#define TWO                                                                                                  \
    "data.train.join.sources={words: {text: {path: table.csv, layout: table, header: true, text_columns: "   \
    "review, label_column: label}}, facts: {csv: {path: table.csv, label: none, skip_columns: [review, "     \
    "label, "                                                                                                \
    "stars, kind]}}, more: {csv: {path: table.csv, " FACTS "}}}"

static void test_one_hash(void **state)
{
    (void)state;
    expect_one_hash("a text and a table", SET(SPLIT));
    expect_one_hash("a text and two tables", SET(TWO, "layers.concat1.from=[read, known, more]"));
}

/* The class follows from the text and the table together, and from neither alone. */
static void test_both_are_needed(void **state)
{
    (void)state;
    const char *more = "train.steps=500";
    const struct outcome both = OUTCOME(more),
                         blind = OUTCOME(more, "layers.known.frozen=true", "layers.known.weights=zeros");
    must_train(both.status);
    must_train(blind.status);
    if (!(both.accuracy > 0.95)) fail_msg("%g are right", both.accuracy);
    if (!(blind.accuracy < 0.9)) fail_msg("%g are right without the table", blind.accuracy);
}

/* Objects say what rows say. */
static void test_objects(void **state)
{
    (void)state;
    const struct outcome rows = OUTCOME("seed=5"),
                         objects = OUTCOME(
                             "seed=5", "data.train.join.sources={words: {text: {path: table.jsonl, layout: "
                                       "json, text_columns: review, label_column: label}}, facts: {json: "
                                       "{path: table.jsonl, " FACTS "}}}");
    must_train(rows.status);
    must_train(objects.status);
    assert_string_equal(rows.hash, objects.hash);
}

static int no_answer(void *user, const struct tr_prediction *prediction)
{
    (void)user;
    (void)prediction;
    fail_msg("a text alone was answered");
    return 0;
}

static void test_predictions(void **state)
{
    (void)state;
    struct job job;
    struct outcome outcome;
    struct tr_predict_settings settings = TR_PREDICT_SETTINGS_INIT;
    tr_predictor *predictor;
    tr_source *source;
    static float answer[2 * COUNT], again[2 * COUNT];
    begin(&job, SET("train.steps=500"));
    job.settings.out = scratch_in("run");
    job_outcome(&job, &outcome);
    must_train(outcome.status);
    settings.checkpoint = scratch_in("run");
    must_train(tr_predictor_create(&settings, &predictor));
    must_train(tr_predictor_open_data(predictor, "train", &source));
    must_train(tr_predictor_source(predictor, source, 0, COUNT, answer));
    tr_source_close(&source);
    int right = 0; /* as the table has it, from which a text alone does not tell */
    for (int i = 0; i < COUNT; i++) right += (answer[2 * i + 1] > answer[2 * i]) == class_of(i);
    if (!(right > 0.95 * COUNT)) fail_msg("%d of %d are right", right, COUNT);
    /* Rows without labels, in another order of the sources: words, means and names come from the training. */
    must_train(
        tr_predictor_open_source(predictor,
                                 "{join: {sources: {facts: {csv: {path: table.csv, label: none, "
                                 "skip_columns: [review, label, half], categories: kind}}, words: {text: "
                                 "{path: table.csv, layout: table, header: true, text_columns: review, "
                                 "labels: false}}}}}",
                                 scratch_place, &source));
    must_train(tr_predictor_source(predictor, source, 0, COUNT, again));
    assert_memory_equal(answer, again, sizeof answer);
    tr_source_close(&source);
    const char *texts[] = {"w1 w2"};
    const struct tr_examples examples = {.size = sizeof examples, .count = 1, .texts = texts};
    assert_int_equal(tr_predictor_batch(predictor, &examples, no_answer, NULL), TR_EUNSUPPORTED);
    assert_non_null(strstr(tr_error_message(), "examples of several sources"));
    const struct tr_generate_settings text = TR_GENERATE_SETTINGS_INIT;
    assert_int_equal(tr_predictor_generate(predictor, &text, NULL, NULL), TR_EUNSUPPORTED);
    if (!strstr(tr_error_message(),
                "takes numbers beside its text; text comes from one that was trained on a "
                "corpus, or on two texts"))
        fail_msg("%s", tr_error_message());
    tr_predictor_destroy(&predictor);
}

#define JOIN(words, facts) "data.train.join.sources={words: {" words "}, facts: {" facts "}}"
#define WORDS                                                                                                \
    "text: {path: table.csv, layout: table, header: true, text_columns: review, label_column: label}"
#define TABLE "csv: {path: table.csv, " FACTS "}"

static void test_refusals(void **state)
{
    (void)state;
    static const struct {
        const char *set, *part, *also;
    } cases[] = {
        {JOIN(WORDS, WORDS), "sources \"words\" and \"facts\" both have labels"},
        {JOIN("corpus: {path: running.txt, window: 3}", TABLE), "\"words\" is running text"},
        {JOIN(WORDS, "csv: {path: short.csv, " FACTS "}"), "have as many, example by example"},
        {JOIN(WORDS,
              "csv: {path: table.csv, label_columns: label, skip_columns: [review, stars, half, kind]}"),
         "sources \"words\" and \"facts\" both have labels"},
        {"data.train.join={labels: facts, sources: {words: {" WORDS "}, facts: {csv: {path: table.csv, "
         "label_columns: label, skip_columns: [review, stars, half, kind]}}}}",
         "beside the text \"words\" there are no numbers"},
        {"layers[0].from=word", "Did you mean \"words\"?"},
        {"layers[0].from=input", "there is no layer \"input\" before this one"},
        {"layers[0]={embedding: 5}", "the data have several inputs"},
        {"input={vocabulary: 9, sources: [facts 3]}",
         "of the sources none is a text with numbers or another text", "layers[0].from=facts"},
        {"input={shape: 3, sources: [words tokens, facts 3]}",
         "\"words\" is a text, and there is no vocabulary"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct outcome outcome = OUTCOME(cases[i].set, cases[i].also);
        if (outcome.status == TR_OK || !strstr(outcome.message, cases[i].part))
            fail_msg("%s: %s", cases[i].set, outcome.status == TR_OK ? "taken" : outcome.message);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_hash), cmocka_unit_test(test_both_are_needed),
        cmocka_unit_test(test_objects),  cmocka_unit_test(test_predictions),
        cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests(tests, make_place, scratch_place_remove);
}
