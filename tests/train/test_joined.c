/* Networks that take examples of several sources by name: the same bits as of one source that has the numbers
 * side by side, on any device, any number of ranks and over stops.
 */
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

static char place[SCRATCH_PATH];

static const char *in_place(const char *name)
{
    static char path[4][SCRATCH_PATH];
    static int next;
    return scratch_join(path[next++ % 4], place, name);
}

static void write_bytes(const char *name, const void *bytes, size_t size)
{
    must_train(tr_file_write_atomic(NULL, in_place(name), bytes, size));
}

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
    static struct {
        char head[128];
        float rows[COUNT * (IMAGE + FACTS)];
    } array;
    char head[128];
    memset(array.head, ' ', sizeof array.head);
    memcpy(array.head, "\x93NUMPY\x01\x00\x76\x00", 10);
    int length = snprintf(head, sizeof head, "{'descr': '<f4', 'fortran_order': False, 'shape': (%d, %d), }",
                          COUNT, columns);
    memcpy(array.head + 10, head, (size_t)length);
    array.head[127] = '\n';
    for (int i = 0; i < COUNT; i++)
        for (int k = 0; k < columns; k++) array.rows[i * columns + k] = value(i, k);
    write_bytes(name, &array, sizeof array.head + (size_t)(COUNT * columns) * sizeof(float));
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
    (void)state;
    static uint8_t images[16 + COUNT * IMAGE] = {0, 0, 8, 3, 0, 0, 0, COUNT, 0, 0, 0, HEIGHT, 0, 0, 0, WIDTH};
    struct tr_text text = TR_TEXT_INIT;
    char *table;
    scratch_make(place);
    tr_text_add(&text, "price,first,second,third\n");
    for (int i = 0; i < COUNT; i++) {
        for (int k = 0; k < IMAGE; k++) images[16 + i * IMAGE + k] = pixel(i, k);
        tr_text_addf(&text, "%.9g", (double)price(i));
        for (int k = 0; k < FACTS; k++) tr_text_addf(&text, ",%.9g", (double)fact(i, k));
        tr_text_add(&text, "\n");
    }
    must_train(tr_text_finish(&text, &table));
    write_bytes("images.idx", images, sizeof images);
    write_bytes("facts.csv", table, strlen(table));
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
    write_bytes("joined.yaml", joined, strlen(joined));
    write_bytes("rows.yaml", rows, strlen(rows));
    return 0;
}

static int remove_place(void **state)
{
    (void)state;
    scratch_remove(place);
    return 0;
}

static void begin(struct job *job, const char *model, const char *const *set)
{
    job_begin(job, in_place(model));
    job->settings.journal = "";
    for (; set && *set; set++) job_set(job, *set);
}

static struct outcome outcome_of(const char *model, const char *const *set)
{
    struct job job;
    struct outcome outcome;
    begin(&job, model, set);
    job_outcome(&job, &outcome);
    return outcome;
}

#define OUTCOME(...) outcome_of("joined.yaml", (const char *const[]){__VA_ARGS__, NULL})

/* By names the network takes what it would take by places. */
static void test_names_are_places(void **state)
{
    (void)state;
    struct outcome names = outcome_of("joined.yaml", NULL), places = outcome_of("rows.yaml", NULL);
    expect_same(&places, &names, "joined");
    assert_true(names.loss < 0.5);
}

static void expect_one_hash(const char *what, const char *const *set)
{
    static const struct {
        const char *strategy;
        int ranks;
    } shared[] = {{"allreduce", 3},
                  {"parameter-server,servers=2", 4},
                  {"pipeline", 2},
                  {"local-sgd,replicas=4,every=1", 2}};
    struct outcome alone = outcome_of("joined.yaml", set);
    if (alone.status != TR_OK) fail_msg("%s: %s", what, alone.message);
    for (size_t i = 0; i < sizeof shared / sizeof shared[0]; i++) {
        struct job job;
        struct rank ranks[RANKS];
        struct outcome expected = alone;
        begin(&job, "joined.yaml", set);
        job.settings.strategy = shared[i].strategy;
        job.settings.set = job.set;
        /* What meets in rounds has a hash of its own: that of one process. */
        if (i == 3) job_outcome(&job, &expected);
        run_ranks(&job.settings, shared[i].ranks, i == 1, ranks);
        expect_ranks(&expected, ranks, shared[i].ranks, what);
    }
    struct job job;
    struct outcome other;
    begin(&job, "joined.yaml", set);
    job.settings.device = "ref";
    job_outcome(&job, &other);
    expect_same(&alone, &other, "on ref");
    begin(&job, "joined.yaml", set);
    job_set(&job, "train.pass=1");
    job_set(&job, "train.prefetch=2");
    job_outcome(&job, &other);
    expect_same(&alone, &other, "microbatch by microbatch, read ahead");
    static const char *const half[] = {"train.steps=11", NULL};
    const char *out = in_place("stopped");
    begin(&job, "joined.yaml", set);
    for (int i = 0; half[i]; i++) job_set(&job, half[i]);
    job.settings.out = out;
    job_outcome(&job, &other);
    must_train(other.status);
    job_begin(&job, NULL);
    job.settings.resume = job.settings.out = out;
    job.settings.journal = "";
    job.settings.steps = 20;
    job_outcome(&job, &other);
    if (other.status != TR_OK) fail_msg("%s: %s", what, other.message);
    assert_string_equal(other.hash, alone.hash);
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
    const char *out = in_place("run");
    begin(&job, "joined.yaml",
          (const char *const[]){"data.train.join.sources.facts.csv.standardize=true", NULL});
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
        place, &same));
    must_train(tr_predictor_source(predictor, same, 0, COUNT, again));
    assert_memory_equal(answer, again, sizeof answer);
    assert_int_equal(tr_predictor_floats(predictor, &number, answer), TR_EUNSUPPORTED);
    tr_source_close(&same);
    tr_status status = tr_predictor_open_source(predictor, "{idx: {images: images.idx}}", place, &same);
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
    return cmocka_run_group_tests(tests, make_place, remove_place);
}
