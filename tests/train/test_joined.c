/* Networks that take examples of several sources by name: the same bits as of one source that has the numbers
 * side by side, on any device, any number of ranks and over stops.
 */
#include "support/files/npy.h"
#include "support/ranks.h"

#include "base/text/text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#define COUNT  150
#define HEIGHT 6
#define WIDTH  5
#define IMAGE  (HEIGHT * WIDTH)
#define FACTS  3

static uint8_t pixel(int example, int at)
{
    return (uint8_t)((example * 61 + at * 97 + example * at) % 251);
}

static float fact(int example, int at)
{
    return (float)((example * 13 + at * 29) % 64 - 32) / 16;
}

static float price(int example)
{
    return (float)pixel(example, 7) / 128 + fact(example, 1);
}

/* An array of `columns` floats a row. */
static void write_array(const char *name, int columns, float (*value)(int example, int column))
{
    static float rows[COUNT * (IMAGE + FACTS)];
    char shape[32];
    for (int i = 0; i < COUNT; i++)
        for (int k = 0; k < columns; k++) rows[i * columns + k] = value(i, k);
    snprintf(shape, sizeof shape, "%d, %d", COUNT, columns);
    npy_write(scratch_in(name), "<f4", shape, rows, (size_t)(COUNT * columns) * sizeof *rows);
}

/* What enters a network of an image and facts. */
static float row_value(int example, int column)
{
    return column < IMAGE ? (float)pixel(example, column) * (1.0f / 255) : fact(example, column - IMAGE);
}

static float price_value(int example, int column)
{
    (void)column;
    return price(example);
}

#define BODY                                                                                                 \
    "  - global_average_pool: {name: seen}\n"                                                                \
    "  - concat: {from: [seen, facts]}\n"                                                                    \
    "  - dense: {units: 9, activation: tanh, name: both}\n"                                                  \
    "  - dense: {units: 1, name: price}\n"                                                                   \
    "loss: mean_squared_error\n"                                                                             \
    "optimizer: {rule: momentum, rate: 0.05}\n"                                                              \
    "train: {batch: 24, microbatches: 4, steps: 20, log_every: 1}\n"
#define LOOK "  - conv: {filters: 4, kernel: 3, activation: relu, name: look"

static int make_place(void **state)
{
    static uint8_t images[16 + COUNT * IMAGE] = {0, 0, 8, 3, 0, 0, 0, COUNT, 0, 0, 0, HEIGHT, 0, 0, 0, WIDTH};
    struct tr_text text = TR_TEXT_INIT;
    char *table;
    scratch_place_make(state);
    tr_text_add(&text, "price,first,second,third\n");
    for (int i = 0; i < COUNT; i++) {
        for (int k = 0; k < IMAGE; k++) images[16 + i * IMAGE + k] = pixel(i, k);
        tr_text_addf(&text, "%.9g", (double)price(i));
        for (int k = 0; k < FACTS; k++) tr_text_addf(&text, ",%.9g", (double)fact(i, k));
        tr_text_add(&text, "\n");
    }
    must_train(tr_text_finish(&text, &table));
    scratch_write("images.idx", images, sizeof images);
    scratch_write("facts.csv", table, strlen(table));
    tr_text_free(table);
    write_array("rows.npy", IMAGE + FACTS, row_value);
    write_array("price.npy", 1, price_value);
    static const char joined[] =
        "name: joined\n"
        "data:\n"
        "  train:\n"
        "    join:\n"
        "      sources:\n"
        "        facts: {csv: {path: facts.csv, label: value, label_columns: price}}\n"
        "        photo: {idx: {images: images.idx}}\n"
        "layers:\n" LOOK ", from: photo}\n" BODY;
    static const char rows[] = "name: rows\n"
                               "data: {train: {npy: {features: rows.npy, labels: price.npy}}}\n"
                               "layers:\n"
                               "  - slice: {begin: 30, size: 3, name: facts}\n"
                               "  - slice: {begin: 0, size: 30, from: input}\n"
                               "  - reshape: [6, 5, 1]\n" LOOK "}\n" BODY;
    scratch_write("joined.yaml", joined, strlen(joined));
    scratch_write("rows.yaml", rows, strlen(rows));
    return 0;
}

static void begin(struct job *job, const char *const *set)
{
    job_begin(job, scratch_in("joined.yaml"));
    job->settings.journal = "";
    job_set_all(job, set);
}

static void begin_rows(struct job *job, const char *const *set)
{
    job_begin(job, scratch_in("rows.yaml"));
    job->settings.journal = "";
    job_set_all(job, set);
}

#define OUTCOME(...) begun_outcome(begin, (const char *const[]){__VA_ARGS__, NULL})

/* By names the network takes what it would take by places. */
static void test_names_are_places(void **state)
{
    (void)state;
    struct outcome names = begun_outcome(begin, NULL), places = begun_outcome(begin_rows, NULL);
    expect_same(&places, &names, "joined");
    assert_true(names.loss < 0.5);
}

#define LOCAL "local-sgd,replicas=4,every=1"

static void expect_one_hash(const char *what, const char *const *set)
{
    const struct outcome alone = begun_outcome(begin, set);
    struct job job;
    struct outcome other;
    expect_shared_hash(&alone, begin, set, what);
    /* What meets in rounds has a hash of its own: that of one process. */
    begin(&job, set);
    job.settings.strategy = LOCAL;
    job_outcome(&job, &other);
    expect_hash_by(&other, begin, set, LOCAL, 2, 0, what);
    begin(&job, set);
    job.settings.device = "ref";
    job_outcome(&job, &other);
    expect_same(&alone, &other, "on ref");
    begin(&job, set);
    job_set(&job, "train.pass=1");
    job_set(&job, "train.prefetch=2");
    job_outcome(&job, &other);
    expect_same(&alone, &other, "microbatch by microbatch, read ahead");
    const char *out = scratch_in("stopped");
    expect_resumed(&alone, begin, set, out, 11, 20, what);
    scratch_remove(out);
}

static void test_one_hash(void **state)
{
    (void)state;
    expect_one_hash("joined", NULL);
    expect_one_hash("joined, split and augmented",
                    (const char *const[]){"data.validation_split=0.2",
                                          "input={pad: 1, crop: [5, 4], flip: true}",
                                          "data.train.join.sources.facts.csv.standardize=true", NULL});
}

/* What is drawn changes the images, and with them the run; evaluations see the middle. */
static void test_augmentation(void **state)
{
    (void)state;
    struct outcome plain = OUTCOME("train.steps=20"), flipped = OUTCOME("input.flip=true"),
                   cropped = OUTCOME("input.crop=4"), scaled = OUTCOME("input.scale=1/128");
    assert_true(plain.status == TR_OK && flipped.status == TR_OK && cropped.status == TR_OK &&
                scaled.status == TR_OK);
    assert_string_not_equal(plain.hash, flipped.hash);
    assert_string_not_equal(plain.hash, cropped.hash);
    assert_string_not_equal(plain.hash, scaled.hash);
}

/* A run's data come out of a checkpoint by name, with the scaling of the training data. */
static void test_predictions(void **state)
{
    (void)state;
    struct job job;
    struct outcome outcome;
    struct tr_predict_settings settings = TR_PREDICT_SETTINGS_INIT;
    struct tr_predict_info info = TR_PREDICT_INFO_INIT;
    tr_predictor *predictor;
    tr_source *source, *same;
    float answer[COUNT], again[COUNT], number = 1;
    const char *out = scratch_in("run");
    begin(&job, (const char *const[]){"data.train.join.sources.facts.csv.standardize=true", NULL});
    job.settings.out = out;
    job_outcome(&job, &outcome);
    must_train(outcome.status);
    settings.checkpoint = out;
    must_train(tr_predictor_create(&settings, &predictor));
    must_train(tr_predictor_info(predictor, &info));
    assert_int_equal(info.floats, 0);
    assert_true(tr_predictor_has_data(predictor, "train") && !tr_predictor_has_data(predictor, "test") &&
                !tr_predictor_has_data(predictor, "tests"));
    must_train(tr_predictor_open_data(predictor, "train", &source));
    must_train(tr_predictor_source(predictor, source, 0, COUNT, answer));
    /* In another order, and without the standardizing that the training data have brought. */
    must_train(tr_predictor_open_source(
        predictor,
        "{join: {sources: {photo: {idx: {images: images.idx}}, facts: {csv: {path: facts.csv, label: value, "
        "label_columns: price}}}}}",
        scratch_place, &same));
    must_train(tr_predictor_source(predictor, same, 0, COUNT, again));
    assert_memory_equal(answer, again, sizeof answer);
    assert_int_equal(tr_predictor_floats(predictor, &number, answer), TR_EUNSUPPORTED);
    tr_source_close(&same);
    tr_status status =
        tr_predictor_open_source(predictor, "{idx: {images: images.idx}}", scratch_place, &same);
    if (status == TR_OK) {
        status = tr_predictor_source(predictor, same, 0, COUNT, again);
        tr_source_close(&same);
    }
    assert_int_equal(status, TR_EMISMATCH);
    tr_source_close(&source);
    tr_predictor_destroy(&predictor);
}

static void test_refusals(void **state)
{
    (void)state;
    static const struct {
        const char *set, *part;
    } cases[] = {
        {"layers[0].from=photos",
         "there is no layer \"photos\" before this one; name an earlier layer, or a source "
         "of the data. Did you mean \"photo\"?"},
        {"layers[0].from=input", "there is no layer \"input\" before this one"},
        {"layers[0]={conv: {filters: 4, kernel: 3}}",
         "the data have several inputs, and there is no layer before"},
        {"layers[2].concat.from=[seen, seen]", "layer \"facts\": no later layer takes its output"},
        {"layers[0].conv.name=facts", "two layers are called \"facts\""},
        {"input.crop=[7, 5]", "crop [7, 5] is larger than the padded image 6x5"},
        {"input.sources=[photo]", "\"photo\" is no name with a shape"},
        {"input.sources=[\"facts 3\", \"photo 6x5x1\"]", "images first"},
        {"data.test={npy: {features: rows.npy, labels: price.npy}}", "trained on data that left sources.txt"},
        {"data.test={join: {sources: {photo: {npy: {features: rows.npy}}, facts: {csv: {path: facts.csv, "
         "label: value, label_columns: price}}}}}",
         "the joined sources of the test data are photo 33, facts 3, the network takes photo 6x5x1, facts 3"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct outcome outcome = OUTCOME(cases[i].set);
        if (outcome.status == TR_OK || !strstr(outcome.message, cases[i].part))
            fail_msg("%s: %s", cases[i].set, outcome.status == TR_OK ? "taken" : outcome.message);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names_are_places), cmocka_unit_test(test_one_hash),
        cmocka_unit_test(test_augmentation),     cmocka_unit_test(test_predictions),
        cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests(tests, make_place, scratch_place_remove);
}
