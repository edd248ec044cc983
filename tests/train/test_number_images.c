/* Images of numbers: arrays [count][height][width][channels] other than bytes enter a network as they are,
 * from files and from memory, as rows do that a layer makes images of.
 */
#include "refuse.h"
#include "support/files/npy.h"
#include "support/training.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

enum { COUNT = 30, HEIGHT = 5, WIDTH = 4, CHANNELS = 2, VALUES = HEIGHT * WIDTH * CHANNELS };

static float number[COUNT][VALUES];
static int32_t class[COUNT];

#define HEAD     "name: numbers\ndata: {train: {npy: {features: "
#define SOURCE   ", labels: class.npy}}}\n"
#define NETWORK  "  - conv: {filters: 3, kernel: 3, activation: tanh}\n  - dense: 3\n"
#define TRAINING "optimizer: {rule: momentum, rate: 0.1}\ntrain: {batch: 10, microbatches: 2, steps: 12}\n"

static const char images[] = HEAD "images.npy" SOURCE "layers:\n" NETWORK TRAINING;
static const char rows[] = HEAD "rows.npy" SOURCE "layers:\n  - reshape: [5, 4, 2]\n" NETWORK TRAINING;
static const char memory[] = "name: numbers\ndata: {train: {memory: train}}\nlayers:\n" NETWORK TRAINING;

/* The same values as bytes and as floats: images of bytes, images of numbers. */
static const char bytes[] = HEAD "bytes.npy" SOURCE "layers:\n" NETWORK TRAINING;

static int make_place(void **state)
{
    scratch_place_make(state);
    for (int i = 0; i < COUNT; i++) {
        class[i] = i * 5 % 3;
        for (int k = 0; k < VALUES; k++) number[i][k] = (float)((i * 37 + k * 11) % 101 - 50) / 16;
    }
    npy_write(scratch_in("images.npy"), "<f4", "30, 5, 4, 2", number, sizeof number);
    npy_write(scratch_in("rows.npy"), "<f4", "30, 40", number, sizeof number);
    npy_write(scratch_in("class.npy"), "<i4", "30,", class, sizeof class);
    static uint8_t byte[COUNT][VALUES];
    static float equal[COUNT][VALUES];
    static uint16_t wide[COUNT][VALUES];
    static uint8_t mask[COUNT][HEIGHT * WIDTH];
    for (int i = 0; i < COUNT; i++)
        for (int k = 0; k < VALUES; k++)
            equal[i][k] = wide[i][k] = byte[i][k] = (uint8_t)(i * 37 + k * 11 + k * k * 5);
    for (int i = 0; i < COUNT; i++)
        for (int k = 0; k < HEIGHT * WIDTH; k++) mask[i][k] = (uint8_t)((i + k) % 3);
    npy_write(scratch_in("bytes.npy"), "|u1", "30, 5, 4, 2", byte, sizeof byte);
    npy_write(scratch_in("equal.npy"), "<f4", "30, 5, 4, 2", equal, sizeof equal);
    npy_write(scratch_in("wide.npy"), "<u2", "30, 5, 4, 2", wide, sizeof wide);
    npy_write(scratch_in("mask.npy"), "|u1", "30, 5, 4", mask, sizeof mask);
    scratch_write_text("bytes.yaml", bytes);
    scratch_write_text("images.yaml", images);
    scratch_write_text("rows.yaml", rows);
    scratch_write_text("memory.yaml", memory);
    return 0;
}

static void begin(struct job *job, const char *model)
{
    job_begin(job, scratch_in(model));
    job->settings.journal = "";
}

/* Trains on images in memory, with a setting or NULL. */
static void outcome_of_array(struct tr_array features, const char *set, struct outcome *out)
{
    struct job job;
    struct tr_arrays arrays = TR_ARRAYS_INIT;
    struct tr_named_source data = {.name = "train"};
    tr_source *source;
    arrays.features = features;
    arrays.labels = (struct tr_array){class, TR_ARRAY_INT32, 1, {COUNT}, {0}};
    must_train(tr_source_from_arrays(&arrays, &source));
    data.source = source;
    begin(&job, "memory.yaml");
    if (set) job_set(&job, set);
    job.settings.data = &data;
    job.settings.data_count = 1;
    job_outcome(&job, out);
    tr_source_close(&source);
}

static void test_one_hash(void **state)
{
    (void)state;
    struct job job;
    struct outcome expected, got;
    begin(&job, "rows.yaml");
    job_outcome(&job, &expected);
    begin(&job, "images.yaml");
    job.settings.device = "ref";
    job_outcome(&job, &got);
    expect_same(&expected, &got, "images of a file");
    outcome_of_array((struct tr_array){number, TR_ARRAY_FLOAT32, 4, {COUNT, HEIGHT, WIDTH, CHANNELS}, {0}},
                     NULL, &got);
    expect_same(&expected, &got, "images of an array");
}

static void test_a_checkpoint_knows_them(void **state)
{
    (void)state;
    struct job job;
    struct outcome whole, got;
    char out[SCRATCH_PATH];
    begin(&job, "images.yaml");
    job_outcome(&job, &whole);
    begin(&job, "images.yaml");
    job_set(&job, "train.steps=7");
    job.settings.out = scratch_join(out, scratch_place, "run");
    job_outcome(&job, &got);
    must_train(got.status);
    job_begin(&job, NULL);
    job.settings.journal = "";
    job.settings.resume = job.settings.out = out;
    job.settings.steps = 12;
    job_outcome(&job, &got);
    if (got.status != TR_OK) fail_msg("%s", got.message);
    assert_string_equal(got.hash, whole.hash);
}

/* Floats and integers of 16 bits whose values are bytes give the weights that bytes give, whatever changes
   the images, and the same evaluations. */
static void test_as_bytes(void **state)
{
    (void)state;
    static const char *const cases[][6] = {
        {"input={scale: 1/255}"},
        {"input={scale: [1/128, 1/64], shift: [-1, 0.5]}"},
        {"input={scale: 1/255, pad: 2, flip: true}"},
        {"input={scale: 1/255, crop: [4, 3]}"},
        {"input={scale: 1/255, crop: [7, 6], pad: 2}"},
        {"input={scale: 1/255, rotate: 20, zoom: [0.8, 1.2], erase: 0.5, erase_value: 17}"},
        {"input={scale: 1/255, flip: true, rotate: 5, mixup: 0.4, cutmix: 1}"},
        {"input={scale: 1/255, rotate: 5, brightness: 0.4, contrast: 0.4, randaugment: 2}"},
        {"input={scale: 1/255, pad: 1, rotate: 30, randaugment: 1}", "data.train.npy.labels=mask.npy",
         "data.validation.npy.labels=mask.npy", "loss={per: pixel}",
         "layers=[{conv: {filters: 3, kernel: 3, padding: same}}]"},
        {"input={scale: 1/255, pad: 1, flip: true, crop: 4}", "data.train.npy.labels=mask.npy",
         "data.validation.npy.labels=mask.npy", "loss={per: pixel}",
         "layers=[{conv: {filters: 3, kernel: 3, padding: same}}]"},
    };
    static const char *const others[] = {"equal.npy", "wide.npy"};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct job job;
        struct outcome expected, got;
        char text[64], validation[96];
        for (int k = 0; k < 3; k++) {
            const char *features = k == 0 ? "bytes.npy" : others[k - 1];
            begin(&job, "bytes.yaml");
            snprintf(text, sizeof text, "data.train.npy.features=%s", features);
            snprintf(validation, sizeof validation, "data.validation.npy={features: %s, labels: class.npy}",
                     features);
            job_set(&job, text);
            job_set(&job, validation);
            job_set(&job, "train.evaluate_every=6");
            for (int s = 0; s < 6 && cases[i][s]; s++) job_set(&job, cases[i][s]);
            /* The operations of bytes are those of numbers from 0 to 255. */
            if (k > 0 && (strstr(cases[i][0], "brightness") || strstr(cases[i][0], "randaugment")))
                job_set(&job, "input.range=[0, 255]");
            job_outcome(&job, k == 0 ? &expected : &got);
            if (k == 0) continue;
            expect_same(&expected, &got, cases[i][0]);
            assert_true(got.evaluations > 0 && got.evaluated_loss == expected.evaluated_loss);
            assert_true(got.evaluated_accuracy == expected.evaluated_accuracy);
        }
    }
}

/* Integers of 16 bits say their range themselves. */
static void test_range_of_16_bits(void **state)
{
    (void)state;
    struct job job;
    struct outcome expected, got;
    begin(&job, "images.yaml");
    job_set(&job, "data.train.npy.features=wide.npy");
    job_set(&job, "input={brightness: 0.5, contrast: 0.5, range: [0, 65535], scale: 1e-3}");
    job_outcome(&job, &expected);
    begin(&job, "images.yaml");
    job_set(&job, "data.train.npy.features=wide.npy");
    job_set(&job, "input={brightness: 0.5, contrast: 0.5, scale: 1e-3}");
    job_outcome(&job, &got);
    expect_same(&expected, &got, "the range of the type");
    static uint16_t wide[COUNT][VALUES];
    for (int i = 0; i < COUNT; i++)
        for (int k = 0; k < VALUES; k++) wide[i][k] = (uint8_t)(i * 37 + k * 11 + k * k * 5);
    outcome_of_array((struct tr_array){wide, TR_ARRAY_UINT16, 4, {COUNT, HEIGHT, WIDTH, CHANNELS}, {0}},
                     "input={brightness: 0.5, contrast: 0.5, scale: 1e-3}", &got);
    expect_same(&expected, &got, "the range of an array's type");
    begin(&job, "images.yaml");
    job_set(&job, "data.train.npy.features=wide.npy");
    job_set(&job, "input={brightness: 0.5, contrast: 0.5, range: [0, 255], scale: 1e-3}");
    job_outcome(&job, &got);
    must_train(got.status);
    assert_string_not_equal(got.hash, expected.hash);
}

/* Labels of pixels beside arrays in memory are those beside files, and move alike. */
static void test_masks_in_memory(void **state)
{
    (void)state;
    static const char *const set[] = {"input={pad: 1, flip: true, rotate: 20}", "loss={per: pixel}",
                                      "layers=[{conv: {filters: 3, kernel: 3, padding: same}}]",
                                      "train.shuffle=true"};
    static int64_t mask[COUNT][HEIGHT * WIDTH];
    struct job job;
    struct outcome expected, got;
    for (int i = 0; i < COUNT; i++)
        for (int k = 0; k < HEIGHT * WIDTH; k++) mask[i][k] = (i + k) % 3;
    begin(&job, "images.yaml");
    job_set(&job, "data.train.npy.labels=mask.npy");
    for (int i = 0; i < 4; i++) job_set(&job, set[i]);
    job_outcome(&job, &expected);
    struct tr_arrays arrays = TR_ARRAYS_INIT;
    arrays.features = (struct tr_array){number, TR_ARRAY_FLOAT32, 4, {COUNT, HEIGHT, WIDTH, CHANNELS}, {0}};
    arrays.labels = (struct tr_array){mask, TR_ARRAY_INT64, 3, {COUNT, HEIGHT, WIDTH}, {0}};
    struct tr_named_source data = {.name = "train"};
    tr_source *source;
    must_train(tr_source_from_arrays(&arrays, &source));
    data.source = source;
    begin(&job, "memory.yaml");
    for (int i = 0; i < 4; i++) job_set(&job, set[i]);
    job.settings.data = &data;
    job.settings.data_count = 1;
    job_outcome(&job, &got);
    expect_same(&expected, &got, "masks of an array");
    tr_source_close(&source);
}

static void test_refused(void **state)
{
    (void)state;
    static const struct {
        const char *set, *words;
    } cases[] = {
        {"input.crop=6", "larger than the padded image"},
        {"input.brightness=0.5", "needs the range of the values"},
        {"input.saturation=0.5", "needs the range of the values"},
        {"input={saturation: 0.5, range: [0, 1]}", "3 channels"},
        {"input={shape: 40, image: [5, 4, 3]}", "whose product is the 40 numbers"},
        {"input={shape: 40, image: [5, 8]}", "whose product is the 40 numbers"},
        {"input={shape: 40, image: [5, 4, 2], steps: 5}", "sequences"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct job job;
        struct outcome outcome;
        begin(&job, "images.yaml");
        job_set(&job, cases[i].set);
        job_outcome(&job, &outcome);
        if (outcome.status != TR_EINVAL || !strstr(outcome.message, cases[i].words))
            fail_msg("%s: status %d, \"%s\"", cases[i].set, (int)outcome.status, outcome.message);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_hash),        cmocka_unit_test(test_a_checkpoint_knows_them),
        cmocka_unit_test(test_as_bytes),        cmocka_unit_test(test_range_of_16_bits),
        cmocka_unit_test(test_masks_in_memory), cmocka_unit_test(test_refused)};
    return cmocka_run_group_tests(tests, make_place, scratch_place_remove);
}
