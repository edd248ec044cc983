/* Data from the memory of a program: the hash that the same numbers give from files, on any number of ranks
 * and over stops; arrays of every type and layout; functions; what is refused.
 */
#include "refuse.h"
#include "support/files/npy.h"
#include "support/ranks.h"

#include "data/cache/store.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#define COUNT 120
#define SIDE  6
#define WIDTH 4

/* ---- examples ---- */

static uint8_t pixel[COUNT][SIDE][SIDE];
static int32_t class[COUNT];
static double number[COUNT][WIDTH];
static float price[COUNT];
static int32_t token[COUNT * 8], offset[COUNT + 1];

static void make_examples(void)
{
    for (int i = 0; i < COUNT; i++) {
        class[i] = i * 7 % 3;
        price[i] = (float)(i % 11) / 8;
        for (int k = 0; k < SIDE * SIDE; k++)
            pixel[i][k / SIDE][k % SIDE] = (uint8_t)(i * 61 + k * 97 + i * k);
        for (int k = 0; k < WIDTH; k++) number[i][k] = (i * 13 + k * 29) % 64 / 16.0 - k;
        offset[i + 1] = offset[i] + 1 + i % 7;
        for (int k = offset[i]; k < offset[i + 1]; k++) token[k] = (k * 5 + i) % 20;
    }
    number[3][1] = number[40][2] = NAN;
}

static tr_source *must_source(const struct tr_arrays *arrays)
{
    tr_source *source = NULL;
    must_train(tr_source_from_arrays(arrays, &source));
    return source;
}

static struct tr_arrays image_arrays(void)
{
    struct tr_arrays arrays = TR_ARRAYS_INIT;
    arrays.features = (struct tr_array){pixel, TR_ARRAY_UINT8, 3, {COUNT, SIDE, SIDE}, {0}};
    arrays.labels = (struct tr_array){class, TR_ARRAY_INT32, 1, {COUNT}, {0}};
    return arrays;
}

static struct tr_arrays table_arrays(void)
{
    struct tr_arrays arrays = TR_ARRAYS_INIT;
    arrays.features = (struct tr_array){number, TR_ARRAY_FLOAT64, 2, {COUNT, WIDTH}, {0}};
    arrays.labels = (struct tr_array){price, TR_ARRAY_FLOAT32, 1, {COUNT}, {0}};
    return arrays;
}

static struct tr_arrays token_arrays(void)
{
    struct tr_arrays arrays = TR_ARRAYS_INIT;
    arrays.tokens = 1;
    arrays.vocabulary = 20;
    arrays.features = (struct tr_array){token, TR_ARRAY_INT32, 1, {offset[COUNT]}, {0}};
    arrays.offsets = (struct tr_array){offset, TR_ARRAY_INT32, 1, {COUNT + 1}, {0}};
    arrays.labels = (struct tr_array){class, TR_ARRAY_INT32, 1, {COUNT}, {0}};
    return arrays;
}

/* ---- jobs ---- */

#define TRAIN "train: {batch: 24, microbatches: 4, steps: 15, log_every: 1}\n"
#define IMAGES                                                                                               \
    "layers:\n  - conv: {filters: 4, kernel: 3}\n  - relu\n  - dense: 3\nloss: softmax_cross_entropy\n"      \
    "optimizer: {rule: momentum, rate: 0.05}\n" TRAIN
#define TABLE                                                                                                \
    "layers:\n  - dense: {units: 8, activation: tanh}\n  - dense: 1\nloss: mean_squared_error\n"             \
    "optimizer: {rule: adam, rate: 0.01}\n" TRAIN
#define TEXTS                                                                                                \
    "layers:\n  - embedding: 6\n  - lstm: 5\n  - last\n  - dense: 3\nloss: softmax_cross_entropy\n"          \
    "optimizer: {rule: adam, rate: 0.01}\n" TRAIN

static void job_of_text(struct job *job, const char *text, const struct tr_named_source *data, int count)
{
    job_begin(job, NULL);
    job->settings.model_text = text;
    job->settings.model_name = "job";
    job->settings.directory = scratch_place;
    job->settings.data = data;
    job->settings.data_count = count;
}

static struct outcome run(const char *text, const struct tr_named_source *data, int count)
{
    struct job job;
    struct outcome outcome;
    job_of_text(&job, text, data, count);
    job_outcome(&job, &outcome);
    return outcome;
}

static struct outcome run_with(const char *text, const struct tr_arrays *arrays)
{
    tr_source *source = must_source(arrays);
    struct outcome outcome = run(text, &(struct tr_named_source){"train", source}, 1);
    tr_source_close(&source);
    return outcome;
}

/* ---- files with the same numbers ---- */

static void write_csv(const char *name)
{
    static char text[COUNT * 128];
    size_t length = 0;
    for (int i = 0; i < COUNT; i++) {
        for (int k = 0; k < WIDTH; k++)
            length += (size_t)(isnan(number[i][k]) ? sprintf(text + length, ",")
                                                   : sprintf(text + length, "%.17g,", number[i][k]));
        length += (size_t)sprintf(text + length, "%.9g\n", (double)price[i]);
    }
    scratch_write(name, text, length);
}

/* ---- tests ---- */

static void test_images_as_from_files(void **state)
{
    (void)state;
    char shape[64];
    snprintf(shape, sizeof shape, "%d, %d, %d", COUNT, SIDE, SIDE);
    npy_write(scratch_in("x.npy"), "|u1", shape, pixel, sizeof pixel);
    snprintf(shape, sizeof shape, "%d,", COUNT);
    npy_write(scratch_in("y.npy"), "<i4", shape, class, sizeof class);
    struct outcome file = run("data: {train: {npy: {features: x.npy, labels: y.npy}}}\n" IMAGES, NULL, 0);
    struct tr_arrays arrays = image_arrays();
    struct outcome memory = run_with(IMAGES, &arrays);
    assert_int_equal(file.status, TR_OK);
    expect_same(&file, &memory, "from memory");

    /* The same pixels, every second byte of a row that is stored backwards, and labels of 64 bits. */
    static uint8_t spread[COUNT][SIDE][2 * SIDE];
    static int64_t wide[COUNT];
    for (int i = 0; i < COUNT; i++) {
        wide[i] = class[i];
        for (int k = 0; k < SIDE * SIDE; k++)
            spread[i][k / SIDE][2 * (SIDE - 1 - k % SIDE)] = pixel[i][k / SIDE][k % SIDE];
    }
    arrays.features = (struct tr_array){
        &spread[0][0][2 * SIDE - 2], TR_ARRAY_UINT8, 3, {COUNT, SIDE, SIDE}, {SIDE * 2 * SIDE, 2 * SIDE, -2}};
    arrays.labels = (struct tr_array){wide, TR_ARRAY_INT64, 1, {COUNT}, {0}};
    memory = run_with(IMAGES, &arrays);
    expect_same(&file, &memory, "with strides");
}

static void test_tables_as_from_files(void **state)
{
    (void)state;
    write_csv("t.csv");
    struct outcome file =
        run("data: {train: {csv: {path: t.csv, label: value, missing: mean, standardize: true}}}\n" TABLE,
            NULL, 0);
    struct tr_arrays arrays = table_arrays();
    struct outcome memory =
        run_with("data: {train: {memory: {name: train, missing: mean, standardize: true}}}\n" TABLE, &arrays);
    assert_int_equal(file.status, TR_OK);
    expect_same(&file, &memory, "from memory");

    memory = run_with(TABLE, &arrays);
    assert_int_equal(memory.status, TR_EFORMAT);
    assert_non_null(strstr(memory.message, "number 1 of example 3 is NaN"));
}

/* What the test set shares with the training data: scaling, classes. */
static void test_sets_share(void **state)
{
    (void)state;
    static const char text[] = "data:\n  train: {memory: {name: train, missing: mean, standardize: true}}\n"
                               "  test: {memory: {name: held out, missing: mean, standardize: true}}\n" TABLE;
    struct tr_arrays arrays = table_arrays(), few = table_arrays();
    few.features.shape[0] = few.labels.shape[0] = 40;
    tr_source *train = must_source(&arrays), *test = must_source(&few);
    const struct tr_named_source data[] = {{"train", train}, {"held out", test}};
    struct job job;
    struct tr_train_event whole = TR_TRAIN_EVENT_INIT, part = TR_TRAIN_EVENT_INIT;
    job_of_text(&job, text, data, 2);
    tr_trainer *trainer = job_trainer(&job);
    tr_source_close(&train);
    tr_source_close(&test);
    must_train(tr_trainer_run(trainer, NULL, NULL));
    must_train(tr_trainer_evaluate(trainer, "test", &part));
    must_train(tr_trainer_evaluate(trainer, "train", &whole));
    assert_int_equal(part.examples, 40);
    assert_true(isfinite(part.loss) && part.loss < 4 * whole.loss);
    tr_trainer_destroy(&trainer);
}

/* The classes are those of the training data: a test set may have fewer of them, not others. */
static void test_sets_have_the_classes_of_the_training_data(void **state)
{
    (void)state;
    static const char text[] =
        "data: {train: {memory: {name: train}}, test: {memory: {name: held out}}}\n" IMAGES;
    static int32_t few[COUNT], more[COUNT];
    static const struct {
        const int32_t *classes;
        tr_status status;
    } tests[] = {{class, TR_OK}, {few, TR_OK}, {more, TR_EMISMATCH}};
    for (int i = 0; i < COUNT; i++) {
        few[i] = i % 2;
        more[i] = i % 5;
    }
    for (size_t i = 0; i < sizeof tests / sizeof tests[0]; i++) {
        struct tr_arrays arrays = image_arrays(), held_out = image_arrays();
        held_out.labels.data = tests[i].classes;
        tr_source *train = must_source(&arrays), *test = must_source(&held_out);
        const struct tr_named_source data[] = {{"train", train}, {"held out", test}};
        struct outcome outcome = run(text, data, 2);
        tr_source_close(&train);
        tr_source_close(&test);
        if (outcome.status != tests[i].status) fail_msg("case %zu: %s", i, outcome.message);
        if (outcome.status != TR_OK)
            assert_non_null(strstr(outcome.message, "\"held out\" have 5 classes, the training data 3"));
    }
}

/* Digest of the table's view that takes its scaling from `state` (NULL: measures it). */
static void digest_of_view(const struct tr_named_source *data, const char *state, char hex[TR_SHA256_TEXT],
                           char **measured)
{
    static const char description[] = "{memory: {name: train, missing: mean, standardize: true}}";
    tr_store *store = NULL;
    tr_source *view = NULL;
    const char *name;
    must_train(tr_store_create(NULL, NULL, 0, &store));
    tr_store_give(store, data, 1);
    must_train(tr_source_open_through(store, description, NULL, state, &view));
    must_train(tr_source_digest(view, hex));
    if (measured) must_train(tr_source_state(view, &name, measured));
    tr_source_close(&view);
    tr_store_destroy(&store);
}

/* The same numbers are other data where they are scaled otherwise. */
static void test_digest_is_of_the_scaling(void **state)
{
    (void)state;
    struct tr_arrays arrays = table_arrays(), few = table_arrays();
    few.features.shape[0] = few.labels.shape[0] = 40;
    tr_source *all = must_source(&arrays), *part = must_source(&few);
    const struct tr_named_source whole = {"train", all}, less = {"train", part};
    char measured[TR_SHA256_TEXT], taken[TR_SHA256_TEXT], other[TR_SHA256_TEXT];
    char *of_all = NULL, *of_part = NULL;
    digest_of_view(&whole, NULL, measured, &of_all);
    digest_of_view(&less, NULL, other, &of_part);
    digest_of_view(&whole, of_all, taken, NULL);
    digest_of_view(&whole, of_part, other, NULL);
    assert_string_equal(taken, measured);
    assert_string_not_equal(other, measured);
    tr_text_free(of_all);
    tr_text_free(of_part);
    tr_source_close(&all);
    tr_source_close(&part);
}

/* Examples given to a predictor are scaled and filled as the training data were. */
static void test_views_of_a_predictor(void **state)
{
    (void)state;
    static const char text[] =
        "data: {train: {memory: {name: train, missing: mean, standardize: true}}}\n" TABLE;
    char out[SCRATCH_PATH];
    struct tr_arrays arrays = table_arrays(), few = table_arrays();
    few.features.shape[0] = few.labels.shape[0] = 50;
    tr_source *source = must_source(&arrays), *part = must_source(&few), *view = NULL;
    const struct tr_named_source data = {"train", source};
    struct tr_train_event expected = TR_TRAIN_EVENT_INIT;
    struct job job;
    job_of_text(&job, text, &data, 1);
    job.settings.out = scratch_join(out, scratch_place, "viewed");
    tr_trainer *trainer = job_trainer(&job);
    must_train(tr_trainer_run(trainer, NULL, NULL));
    must_train(tr_trainer_evaluate(trainer, "train", &expected));
    tr_trainer_destroy(&trainer);

    struct tr_predict_settings settings = TR_PREDICT_SETTINGS_INIT;
    tr_predictor *predictor = NULL;
    double loss, accuracy;
    settings.checkpoint = out;
    must_train(tr_predictor_create(&settings, &predictor));
    must_train(tr_predictor_view(predictor, source, &view));
    must_train(tr_predictor_evaluate(predictor, view, &loss, &accuracy, NULL));
    assert_true(loss == expected.loss);

    /* Row 3 has a gap; alone and among others it is answered alike. */
    float answer[50], alone;
    float row[WIDTH];
    tr_source_close(&source);
    tr_source_close(&view);
    must_train(tr_predictor_view(predictor, part, &view));
    tr_source_close(&part);
    must_train(tr_predictor_source(predictor, view, 0, 50, answer));
    for (int k = 0; k < WIDTH; k++) row[k] = (float)number[3][k];
    must_train(tr_predictor_floats(predictor, row, &alone));
    assert_true(alone == answer[3]);
    tr_source_close(&view);
    tr_predictor_destroy(&predictor);
}

/* Whichever allocation fails while a trainer is made of data in memory: an error, and nothing stays behind.
 */
static void test_memory_may_fail(void **state)
{
    (void)state;
    struct tr_arrays arrays = image_arrays();
    tr_source *source = must_source(&arrays);
    const struct tr_named_source data = {"train", source};
    for (int64_t at = 0, done = 0; !done; at++) {
        struct job job;
        tr_trainer *trainer = NULL;
        job_of_text(&job, IMAGES, &data, 1);
        int64_t live = tr_alloc_live();
        refuse_begin(at);
        tr_status status = tr_trainer_create(&job.settings, &trainer);
        done = refuse_end();
        if (status != TR_OK && (done || status != TR_ENOMEM))
            fail_msg("allocation %lld refused gives %s: %s", (long long)at, tr_status_name(status),
                     tr_error_message());
        assert_int_equal(trainer != NULL, status == TR_OK);
        tr_trainer_destroy(&trainer);
        assert_int_equal(tr_alloc_live(), live);
    }
    tr_source_close(&source);
}

struct reading {
    int calls, released, fails;
};

static int read_image(void *user, int64_t index, void *features, int64_t *length, void *label)
{
    struct reading *reading = user;
    reading->calls++;
    if (reading->fails && index == 17) return 42;
    if (features) memcpy(features, pixel[index], *length == SIDE * SIDE ? sizeof pixel[index] : 0);
    if (label) *(int32_t *)label = class[index];
    return 0;
}

static void note_release(void *user)
{
    ((struct reading *)user)->released++;
}

static struct tr_example_reader image_reader(struct reading *reading)
{
    struct tr_example_reader reader = TR_EXAMPLE_READER_INIT;
    reader.info.count = COUNT;
    reader.info.features = TR_FEATURE_IMAGE;
    reader.info.height = reader.info.width = SIDE;
    reader.info.channels = 1;
    reader.info.labels = TR_LABEL_CLASS;
    reader.info.classes = 3;
    reader.read = read_image;
    reader.release = note_release;
    reader.user = reading;
    return reader;
}

static void test_functions_as_arrays(void **state)
{
    (void)state;
    struct reading reading = {0};
    struct tr_example_reader reader = image_reader(&reading);
    struct tr_arrays arrays = image_arrays();
    tr_source *source = NULL;
    struct outcome expected = run_with(IMAGES, &arrays);
    must_train(tr_source_from_reader(&reader, &source));
    struct outcome outcome = run(IMAGES, &(struct tr_named_source){"train", source}, 1);
    expect_same(&expected, &outcome, "by a function");
    assert_true(reading.calls >= COUNT);
    assert_int_equal(reading.released, 0);
    reading.fails = 1;
    outcome = run(IMAGES, &(struct tr_named_source){"train", source}, 1);
    assert_int_equal(outcome.status, TR_EIO);
    assert_non_null(strstr(outcome.message, "returned 42 for example 17"));
    tr_source_close(&source);
    assert_int_equal(reading.released, 1);
}

/* What lies wrong in a function's example is found when it is read. */
static void test_functions_are_checked(void **state)
{
    (void)state;
    struct reading reading = {0};
    struct tr_example_reader reader = image_reader(&reading);
    tr_source *source = NULL;
    uint8_t image[SIDE * SIDE];
    int64_t length;
    int32_t label;
    reader.info.classes = 2;
    must_train(tr_source_from_reader(&reader, &source));
    for (int i = 0; i < 3; i++)
        assert_int_equal(tr_source_read(source, i, image, SIDE * SIDE, &length, &label),
                         class[i] < 2 ? TR_OK : TR_EFORMAT);
    tr_source_close(&source);
    reader.info.height = 0;
    assert_int_equal(tr_source_from_reader(&reader, &source), TR_EINVAL);
    assert_non_null(strstr(tr_error_message(), "info.height is 0"));
    assert_int_equal(reading.released, 2);
}

/* An example that a function gives, as planted. */
struct planted {
    struct tr_example_reader reader;
    const void *features, *label;
    int64_t length;
};

static int read_planted(void *user, int64_t index, void *features, int64_t *length, void *label)
{
    const struct planted *planted = user;
    const bool tokens = planted->reader.info.features == TR_FEATURE_TOKENS;
    (void)index;
    if (tokens) *length = planted->length;
    const int64_t room = tokens && planted->length > 3 ? 3 : *length;
    if (features) memcpy(features, planted->features, (size_t)room * 4);
    if (!label) return 0;
    if (planted->reader.info.labels == TR_LABEL_VALUES) memcpy(label, planted->label, 8);
    if (planted->reader.info.labels == TR_LABEL_CLASS) memcpy(label, planted->label, 4);
    if (planted->reader.info.labels == TR_LABEL_TOKENS) memcpy(label, planted->label, (size_t)room * 4);
    return 0;
}

/* What may be given, and what may not. */
static void test_functions_give_what_they_say(void **state)
{
    (void)state;
    static const float good[] = {1, -2, 3}, gap[] = {1, NAN, 3}, endless[] = {1, 2, -INFINITY};
    static const float values[] = {-5, 6}, no_value[] = {5, NAN}, no_end[] = {INFINITY, 6};
    static const int32_t ids[] = {0, 9, 4}, above[] = {0, 10, 4}, below[] = {0, 9, -1};
    static const int32_t tags[] = {0, 1, -7}, no_tag[] = {0, 2, 1}, one = 1, two = 2, none = -1;
    static const struct {
        enum tr_feature_kind features;
        enum tr_label_kind labels;
        const void *first, *second;
        int64_t length;
        const char *message; /* NULL: it is right */
    } cases[] = {
        {TR_FEATURE_FLOATS, TR_LABEL_VALUES, good, values, 3, NULL},
        {TR_FEATURE_FLOATS, TR_LABEL_VALUES, gap, values, 3, NULL},
        {TR_FEATURE_FLOATS, TR_LABEL_VALUES, endless, values, 3, "a number for example 1 that is infinite"},
        {TR_FEATURE_FLOATS, TR_LABEL_VALUES, good, no_value, 3, "a value for example 1 that is NaN"},
        {TR_FEATURE_FLOATS, TR_LABEL_VALUES, good, no_end, 3, "a value for example 1 that is infinite"},
        {TR_FEATURE_FLOATS, TR_LABEL_CLASS, good, &one, 3, NULL},
        {TR_FEATURE_FLOATS, TR_LABEL_CLASS, good, &two, 3, "class 2 for example 1; it is from 0 to 1"},
        {TR_FEATURE_FLOATS, TR_LABEL_CLASS, good, &none, 3, "class -1 for example 1; it is from 0 to 1"},
        {TR_FEATURE_TOKENS, TR_LABEL_TOKENS, ids, tags, 3, NULL},
        {TR_FEATURE_TOKENS, TR_LABEL_TOKENS, ids, tags, 1, NULL},
        {TR_FEATURE_TOKENS, TR_LABEL_TOKENS, ids, tags, 0, "0 tokens for example 1; there are from 1 to 3"},
        {TR_FEATURE_TOKENS, TR_LABEL_TOKENS, ids, tags, 4, "4 tokens for example 1; there are from 1 to 3"},
        {TR_FEATURE_TOKENS, TR_LABEL_TOKENS, above, tags, 3, "token 10 for example 1; it is from 0 to 9"},
        {TR_FEATURE_TOKENS, TR_LABEL_TOKENS, above, tags, 1, NULL},
        {TR_FEATURE_TOKENS, TR_LABEL_TOKENS, below, tags, 3, "token -1 for example 1; it is from 0 to 9"},
        {TR_FEATURE_TOKENS, TR_LABEL_TOKENS, ids, no_tag, 3, "class 2 for example 1; it is from 0 to 1"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct planted planted = {.reader = TR_EXAMPLE_READER_INIT,
                                  .features = cases[i].first,
                                  .label = cases[i].second,
                                  .length = cases[i].length};
        struct tr_source_info *info = &planted.reader.info;
        float features[3], label[3];
        int64_t length;
        tr_source *source = NULL;
        info->count = 2;
        info->features = cases[i].features;
        info->labels = cases[i].labels;
        if (info->features == TR_FEATURE_FLOATS) info->floats = 3;
        if (info->features == TR_FEATURE_TOKENS) info->max_tokens = 3;
        if (info->features == TR_FEATURE_TOKENS) info->vocabulary = 10;
        if (info->labels == TR_LABEL_VALUES) info->values = 2;
        if (info->labels != TR_LABEL_VALUES) info->classes = 2;
        planted.reader.read = read_planted;
        planted.reader.user = &planted;
        must_train(tr_source_from_reader(&planted.reader, &source));
        tr_status status = tr_source_read(source, 1, features, 3, &length, label);
        if (status != (cases[i].message ? TR_EFORMAT : TR_OK))
            fail_msg("case %zu: %s", i, tr_error_message());
        if (cases[i].message && !strstr(tr_error_message(), cases[i].message))
            fail_msg("case %zu: %s", i, tr_error_message());
        if (status == TR_OK) {
            const int32_t *tag = (const int32_t *)label;
            assert_int_equal(length, cases[i].length);
            assert_memory_equal(features, cases[i].first, (size_t)length * 4);
            if (info->labels == TR_LABEL_VALUES) assert_memory_equal(label, values, sizeof values);
            for (int64_t k = 0; info->labels == TR_LABEL_TOKENS && k < length; k++)
                assert_int_equal(tag[k], tags[k] < 0 ? TR_NO_LABEL : tags[k]);
        }
        tr_source_close(&source);
    }
}

static void test_tokens(void **state)
{
    (void)state;
    static int64_t padded[COUNT][8];
    static int32_t lengths[COUNT];
    struct tr_arrays ragged = token_arrays(), square = token_arrays();
    for (int i = 0; i < COUNT; i++) {
        lengths[i] = offset[i + 1] - offset[i];
        for (int k = 0; k < lengths[i]; k++) padded[i][k] = token[offset[i] + k];
    }
    square.offsets = (struct tr_array){0};
    square.features = (struct tr_array){padded, TR_ARRAY_INT64, 2, {COUNT, 8}, {0}};
    square.lengths = (struct tr_array){lengths, TR_ARRAY_INT32, 1, {COUNT}, {0}};
    struct outcome first = run_with(TEXTS, &ragged), second = run_with(TEXTS, &square);
    assert_int_equal(first.status, TR_OK);
    expect_same(&first, &second, "padded");
}

/* Each process gives its own data; what they are is compared. */
static void test_ranks(void **state)
{
    (void)state;
    static const char *const strategies[] = {"allreduce", "parameter-server", "pipeline"};
    struct tr_arrays arrays = image_arrays();
    tr_source *source = must_source(&arrays);
    const struct tr_named_source data = {"train", source};
    struct outcome expected = run(IMAGES, &data, 1);
    struct rank ranks[RANKS];
    struct job job;
    for (size_t i = 0; i < sizeof strategies / sizeof strategies[0]; i++) {
        job_of_text(&job, IMAGES, &data, 1);
        job.settings.strategy = strategies[i];
        const int size = strcmp(strategies[i], "pipeline") == 0 ? 2 : 3;
        run_ranks(&job.settings, size, 0, ranks);
        expect_ranks(&expected, ranks, size, strategies[i]);
    }

    static int32_t other[COUNT];
    memcpy(other, class, sizeof other);
    other[COUNT - 1] ^= 1;
    arrays.labels.data = other;
    tr_source *changed = must_source(&arrays);
    const struct tr_named_source wrong = {"train", changed};
    struct job second;
    job_of_text(&job, IMAGES, &data, 1);
    job_of_text(&second, IMAGES, &wrong, 1);
    run_ranks_each((const struct tr_train_settings *const[]){&job.settings, &second.settings}, 2, 0, ranks);
    assert_true(ranks[0].outcome.status == TR_EMISMATCH || ranks[1].outcome.status == TR_EMISMATCH);
    assert_int_not_equal(ranks[0].outcome.status, TR_OK);
    assert_int_not_equal(ranks[1].outcome.status, TR_OK);
    tr_source_close(&changed);
    tr_source_close(&source);
}

/* The memory lives as long as somebody uses it, and is let go once. */
static void test_release(void **state)
{
    (void)state;
    struct reading reading = {0};
    struct tr_arrays arrays = image_arrays();
    arrays.release = note_release;
    arrays.user = &reading;
    tr_source *source = must_source(&arrays);
    struct tr_named_source data = {"train", source};
    struct job job;
    job_of_text(&job, IMAGES, &data, 1);
    tr_trainer *trainer = job_trainer(&job);
    tr_source_close(&source);
    assert_int_equal(reading.released, 0);
    must_train(tr_trainer_step(trainer, NULL));
    tr_trainer_destroy(&trainer);
    assert_int_equal(reading.released, 1);

    arrays.labels.shape[0]--;
    assert_int_equal(tr_source_from_arrays(&arrays, &source), TR_EINVAL);
    assert_int_equal(reading.released, 2);
}

static void test_resume_wants_the_data(void **state)
{
    (void)state;
    char out[SCRATCH_PATH];
    scratch_join(out, scratch_place, "run");
    struct tr_arrays arrays = image_arrays();
    tr_source *source = must_source(&arrays);
    const struct tr_named_source data = {"train", source};
    struct outcome expected = run(IMAGES, &data, 1), outcome;
    struct job job;
    job_of_text(&job, IMAGES, &data, 1);
    job.settings.out = out;
    job.settings.steps = 7;
    job_outcome(&job, &outcome);
    assert_int_equal(outcome.status, TR_OK);

    job_begin(&job, NULL);
    job.settings.resume = out;
    job.settings.steps = 15;
    job_outcome(&job, &outcome);
    assert_int_equal(outcome.status, TR_ENOTFOUND);
    assert_non_null(strstr(outcome.message, "the data \"train\" come from the memory of a program"));
    job.settings.data = &data;
    job.settings.data_count = 1;
    job_outcome(&job, &outcome);
    assert_int_equal(outcome.status, TR_OK);
    assert_string_equal(outcome.hash, expected.hash);
    tr_source_close(&source);
}

static void test_texts_name_their_place(void **state)
{
    (void)state;
    struct outcome outcome =
        run("layers:\n  - dense: {unit: 3}\nloss: mean_squared_error\noptimizer: sgd\n" TRAIN, NULL, 0);
    assert_int_equal(outcome.status, TR_EINVAL);
    if (!strstr(outcome.message, "job:2:")) fail_msg("%s", outcome.message);
    outcome = run(IMAGES, NULL, 0);
    assert_int_equal(outcome.status, TR_ENOTFOUND);
}

/* Arrays that make no examples, and a part of what is said about each. */
static void test_bad_arrays(void **state)
{
    (void)state;
    static float infinite[4] = {0, 1, INFINITY, 2};
    static float unknown[4] = {0, 1, NAN, 2};
    static int32_t negative[2] = {0, -1}, shorter[2] = {2, -3}, longer[2] = {4, 1};
    static uint8_t bytes[64];
    const struct {
        struct tr_arrays arrays;
        const char *message;
    } bad[] = {
        {{0}, "there are no features"},
        {{.features = {NULL, TR_ARRAY_UINT8, 1, {4}, {0}}}, "features: data is NULL"},
        {{.features = {bytes, (enum tr_array_type)9, 1, {4}, {0}}}, "features: type 9"},
        {{.features = {bytes, TR_ARRAY_UINT8, 5, {1}, {0}}}, "features: 5 dimensions"},
        {{.features = {bytes, TR_ARRAY_UINT8, -1, {1}, {0}}}, "features: -1 dimensions"},
        {{.features = {bytes, TR_ARRAY_UINT8, 2, {4, 0}, {0}}}, "dimension 1 has 0 elements"},
        {{.features = {bytes, TR_ARRAY_UINT8, 2, {-4, 2}, {0}}}, "dimension 0 has -4 elements"},
        {{.features = {bytes, TR_ARRAY_FLOAT64, 2, {INT64_MAX / 2, 4}, {0}}}, "larger than memory"},
        {{.features = {bytes, TR_ARRAY_FLOAT64, 1, {INT64_MIN}, {0}}},
         "dimension 0 has -9223372036854775808 elements"},
        {{.features = {bytes, TR_ARRAY_UINT8, 2, {2, 2}, {INT64_MIN, 1}}}, "larger than memory"},
        {{.features = {bytes, TR_ARRAY_UINT8, 3, {1, 1, 1 << 20}, {0}}}, "at most 65535 pixels"},
        {{.features = {bytes, TR_ARRAY_INT64, 4, {1, 1, 1 << 20, 2}, {0}}}, "at most 65535 pixels"},
        {{.features = {infinite, TR_ARRAY_FLOAT32, 2, {2, 2}, {0}}}, "number 0 of example 1 is infinite"},
        {{.features = {bytes, TR_ARRAY_UINT8, 1, {2}, {0}},
          .labels = {negative, TR_ARRAY_INT32, 1, {2}, {0}}},
         "labels: element 1 is -1"},
        {{.features = {bytes, TR_ARRAY_UINT8, 1, {2}, {0}}, .labels = {bytes, TR_ARRAY_UINT8, 1, {3}, {0}}},
         "labels: 3 of them for 2 examples"},
        {{.features = {bytes, TR_ARRAY_UINT8, 1, {2}, {0}},
          .labels = {bytes, TR_ARRAY_UINT8, 2, {2, 2}, {0}}},
         "values to learn are floats"},
        {{.features = {bytes, TR_ARRAY_UINT8, 1, {2}, {0}}, .lengths = {bytes, TR_ARRAY_UINT8, 1, {2}, {0}}},
         "set tokens"},
        {{.features = {bytes, TR_ARRAY_UINT8, 2, {2, 3}, {0}},
          .tokens = 1,
          .lengths = {bytes, TR_ARRAY_UINT8, 1, {2}, {0}}},
         "lengths: element 0 is 0"},
        {{.features = {bytes, TR_ARRAY_UINT8, 2, {2, 3}, {0}},
          .tokens = 1,
          .lengths = {shorter, TR_ARRAY_INT32, 1, {2}, {0}}},
         "lengths: element 1 is -3"},
        {{.features = {bytes, TR_ARRAY_UINT8, 2, {2, 3}, {0}},
          .tokens = 1,
          .lengths = {longer, TR_ARRAY_INT32, 1, {2}, {0}}},
         "lengths: element 0 is 4"},
        {{.features = {bytes, TR_ARRAY_UINT8, 1, {4}, {0}},
          .labels = {unknown, TR_ARRAY_FLOAT32, 1, {4}, {0}}},
         "labels: number 0 of example 2 is NaN"},
        {{.features = {bytes, TR_ARRAY_UINT8, 1, {4}, {0}},
          .labels = {infinite, TR_ARRAY_FLOAT32, 2, {2, 2}, {0}}},
         "labels: 2 of them for 4 examples"},
        {{.features = {bytes, TR_ARRAY_UINT8, 1, {4}, {0}},
          .tokens = 1,
          .offsets = {bytes, TR_ARRAY_UINT8, 1, {3}, {0}}},
         "offsets: element 1 is 0"},
        {{.features = {bytes, TR_ARRAY_FLOAT32, 2, {2, 3}, {0}}, .tokens = 1}, "integers are wanted"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct tr_arrays arrays = bad[i].arrays;
        tr_source *source = NULL;
        arrays.size = sizeof arrays;
        assert_int_equal(tr_source_from_arrays(&arrays, &source), TR_EINVAL);
        if (!strstr(tr_error_message(), bad[i].message))
            fail_msg("case %zu: \"%s\" is not in \"%s\"", i, bad[i].message, tr_error_message());
    }
}

/* One row that is told to be two thousand millions: the copy is refused before it is made. */
static void test_rows_beyond_memory(void **state)
{
    (void)state;
    static double row[4096];
    struct tr_arrays arrays = TR_ARRAYS_INIT;
    tr_source *source = NULL;
    arrays.features =
        (struct tr_array){row, TR_ARRAY_FLOAT64, 2, {((int64_t)1 << 31) + 5, 4096}, {0, sizeof row[0]}};
    assert_int_equal(tr_source_from_arrays(&arrays, &source), TR_ENOMEM);
    if (!strstr(tr_error_message(), "a copy of")) fail_msg("%s", tr_error_message());
    assert_null(source);
}

/* Labels that count nowhere are TR_NO_LABEL, whatever they were. */
static void test_negative_labels(void **state)
{
    (void)state;
    static int32_t words[] = {1, 2, 3, 4}, tags[] = {0, -100, 2, -1}, length[] = {2, 2}, got[2];
    static const int32_t expected[][2] = {{0, TR_NO_LABEL}, {2, TR_NO_LABEL}};
    struct tr_arrays arrays = TR_ARRAYS_INIT;
    arrays.tokens = 1;
    arrays.features = (struct tr_array){words, TR_ARRAY_INT32, 2, {2, 2}, {0}};
    arrays.lengths = (struct tr_array){length, TR_ARRAY_INT32, 1, {2}, {0}};
    arrays.labels = (struct tr_array){tags, TR_ARRAY_INT32, 2, {2, 2}, {0}};
    tr_source *source = must_source(&arrays);
    for (int i = 0; i < 2; i++) {
        int64_t count;
        must_train(tr_source_read(source, i, NULL, 2, &count, got));
        assert_memory_equal(got, expected[i], sizeof got);
    }
    tr_source_close(&source);
    assert_int_equal(tags[1], -100); /* the caller's stay as they are */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_images_as_from_files),
        cmocka_unit_test(test_tables_as_from_files),
        cmocka_unit_test(test_sets_share),
        cmocka_unit_test(test_sets_have_the_classes_of_the_training_data),
        cmocka_unit_test(test_digest_is_of_the_scaling),
        cmocka_unit_test(test_memory_may_fail),
        cmocka_unit_test(test_functions_as_arrays),
        cmocka_unit_test(test_functions_are_checked),
        cmocka_unit_test(test_functions_give_what_they_say),
        cmocka_unit_test(test_tokens),
        cmocka_unit_test(test_release),
        cmocka_unit_test(test_resume_wants_the_data),
        cmocka_unit_test(test_texts_name_their_place),
        cmocka_unit_test(test_bad_arrays),
        cmocka_unit_test(test_rows_beyond_memory),
        cmocka_unit_test(test_negative_labels),
        cmocka_unit_test(test_ranks),
        cmocka_unit_test(test_views_of_a_predictor),
    };
    make_examples();
    return cmocka_run_group_tests(tests, scratch_place_make, scratch_place_remove);
}
