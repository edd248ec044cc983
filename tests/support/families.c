/* The jobs of `families`, and their data: the first of the shipped examples, packed as each job reads them.
 */
#include "support/training.h"

#include "base/alloc.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#define DIGITS      100 /* examples that train */
#define TEST_DIGITS 41
#define LINES       90

/* Features that the four model files lack: statistics, averages, momentum, clipping, augmentation,
   warm-up, a residual connection, an epoch whose last batch is dropped. */
static const char everything[] =
    "name: everything\n"
    "seed: 3\n"
    "data:\n"
    "  train: {idx: {images: train-images, labels: train-labels}}\n"
    "  test: {idx: {images: test-images, labels: test-labels}}\n"
    "input: {scale: 1/255, shift: -0.5, pad: 2, crop: 26, flip: true}\n"
    "layers:\n"
    "  - conv: {filters: 5, kernel: 4, stride: 3, use_bias: false, weights: he_normal}\n"
    "  - batch_norm\n"
    "  - relu\n"
    "  - max_pool: 2\n"
    "  - conv: {filters: 6, kernel: 3, pad: 1, activation: leaky_relu, name: trunk}\n"
    "  - conv: {filters: 6, kernel: 3, padding: same, dilation: 2}\n"
    "  - layer_norm\n"
    "  - gelu\n"
    "  - add: trunk\n"
    "  - average_pool: 2\n"
    "  - dense: {units: 19, activation: tanh}\n"
    "  - batch_norm\n"
    "  - sigmoid\n"
    "  - dropout: 0.3\n"
    "  - dense: 10\n"
    "loss: {kind: softmax_cross_entropy, label_smoothing: 0.1}\n"
    "optimizer:\n"
    "  rule: momentum\n"
    "  rate: 0.05\n"
    "  nesterov: true\n"
    "  l2: 1e-3\n"
    "  clip_norm: 1.5\n"
    "  clip_value: 0.2\n"
    "  ema: 0.8\n"
    "  ema_warmup: true\n"
    "  schedule: {kind: cosine, warmup: 3, steps: 20}\n"
    "train: {batch: 31, microbatches: 6, last_batch: drop, steps: 8, log_every: 1, evaluate_every: 4}\n";

/* A language model: windows that overlap, weights that two layers share. */
static const char language[] =
    "name: language\n"
    "seed: 5\n"
    "data:\n"
    "  train: {corpus: {path: train.tsv, window: 9, stride: 5, end: 0.8}}\n"
    "  validation: {corpus: {path: train.tsv, window: 9, begin: 0.8}}\n"
    "  test: {corpus: {path: test.tsv, window: 12, end: 0.1}}\n"
    "layers:\n"
    "  - embedding: {width: 12, name: characters}\n"
    "  - position: {length: 12, name: places}\n"
    "  - layer_norm\n"
    "  - attention: {heads: 3, causal: true, dropout: 0.1}\n"
    "  - add: places\n"
    "  - lstm: 12\n"
    "  - dropout: 0.1\n"
    "  - unembedding: characters\n"
    "optimizer: {rule: adamw, rate: 1e-2, clip_norm: 1, l2_biases: true}\n"
    "train: {batch: 14, microbatches: 3, steps: 6, log_every: 1, evaluate_every: 3}\n";

#define IDX_DIGITS                                                                                           \
    "data.train.idx={images: train-images, labels: train-labels}",                                           \
        "data.test.idx={images: test-images, labels: test-labels}"
#define RECORDS "data.train.tfrecord.path=train.tfrecord", "data.test.tfrecord.path=test.tfrecord"
#define LINES_OF_TEXT                                                                                        \
    "data.train.text.path=train.tsv", "data.validation.text.path=test.tsv", "data.test.text.path=test.tsv"

const struct family families[] = {
    {"mnist-cnn",
     TRIREME_SOURCE_DIR "/models/mnist-cnn.yaml",
     {IDX_DIGITS},
     {"layers[0].filters=6", "layers[2].filters=7", "layers[4].units=33", "train.batch=21",
      "train.microbatches=5", "train.steps=7", "train.log_every=1", "optimizer.rate=1e-2"}},
    {"mnist-cnn-wide",
     TRIREME_SOURCE_DIR "/models/mnist-cnn-wide.yaml",
     {IDX_DIGITS},
     {"layers[0].filters=4", "layers[2].filters=17", "layers[2].algorithm=winograd", "layers[3].filters=9",
      "layers[3].algorithm=winograd", "layers[5].dense=32", "layers[7].dense=15", "train.batch=64",
      "train.steps=4", "train.microbatches=4"}},
    {"mnist-mlp",
     TRIREME_SOURCE_DIR "/models/mnist-mlp.yaml",
     {RECORDS},
     {"layers[1].units=50", "train.batch=30", "train.steps=9", "train.log_every=1", "train.microbatches=3"}},
    {"sst2-lstm",
     TRIREME_SOURCE_DIR "/models/sst2-lstm.yaml",
     {LINES_OF_TEXT},
     {"layers[0].embedding=9", "layers[2].lstm=11", "train.batch=25", "train.microbatches=4",
      "train.epochs=0", "train.steps=6", "train.log_every=1", "train.evaluate_every=3"}},
    {"everything", NULL, {NULL}, {NULL}},
    {"language", NULL, {NULL}, {NULL}},
};
const int family_count = sizeof families / sizeof families[0];

/* ---- files ---- */

static void write_bytes(const char *place, const char *name, const void *data, size_t size)
{
    char path[SCRATCH_PATH];
    must_train(tr_file_write_atomic(NULL, scratch_join(path, place, name), data, size));
}

static tr_source *open_data(const char *description, const char *directory)
{
    tr_source *source;
    must_train(tr_source_open(description, directory, NULL, &source));
    return source;
}

static void big_endian(uint8_t *to, uint32_t value)
{
    for (int i = 0; i < 4; i++) to[i] = (uint8_t)(value >> (24 - 8 * i));
}

/* Examples [first, first + count) of the shipped test digits as a pair of IDX files. */
static void write_digits(const tr_source *source, const char *place, const char *set, uint32_t first,
                         uint32_t count)
{
    enum { PIXELS = 28 * 28 };
    uint8_t *images = tr_alloc_zero(16 + (size_t)count * PIXELS, 1),
            *labels = tr_alloc_zero(8 + (size_t)count, 1);
    assert_true(images && labels);
    big_endian(images, 0x803);
    big_endian(images + 4, count);
    big_endian(images + 8, 28);
    big_endian(images + 12, 28);
    big_endian(labels, 0x801);
    big_endian(labels + 4, count);
    for (uint32_t i = 0; i < count; i++) {
        int32_t label;
        int64_t length;
        must_train(
            tr_source_read(source, first + i, images + 16 + (size_t)i * PIXELS, PIXELS, &length, &label));
        labels[8 + i] = (uint8_t)label;
    }
    char name[32];
    snprintf(name, sizeof name, "%s-images", set);
    write_bytes(place, name, images, 16 + (size_t)count * PIXELS);
    snprintf(name, sizeof name, "%s-labels", set);
    write_bytes(place, name, labels, 8 + (size_t)count);
    tr_free(images);
    tr_free(labels);
}

static void write_records(const char *place, const char *set)
{
    char description[128], path[SCRATCH_PATH], name[32];
    snprintf(description, sizeof description, "{idx: {images: %s-images, labels: %s-labels}}", set, set);
    snprintf(name, sizeof name, "%s.tfrecord", set);
    tr_source *source = open_data(description, place);
    must_train(tr_source_convert(source, "tfrecord", "none", scratch_join(path, place, name)));
    tr_source_close(&source);
}

/* The first lines of a shipped text. */
static void write_lines(const char *place, const char *from, const char *name)
{
    struct tr_file_content content;
    must_train(tr_file_read(from, 64 << 20, &content));
    size_t end = 0;
    for (int line = 0; line < LINES && end < content.size; line++)
        end = (size_t)(strchr(content.data + end, '\n') - content.data) + 1;
    write_bytes(place, name, content.data, end);
    tr_file_content_free(&content);
}

void family_files(const char *place)
{
    tr_source *digits =
        open_data("{idx: {images: t10k-images-idx3-ubyte.gz, labels: t10k-labels-idx1-ubyte.gz}}",
                  TRIREME_SOURCE_DIR "/data/mnist");
    write_digits(digits, place, "train", 0, DIGITS);
    write_digits(digits, place, "test", DIGITS, TEST_DIGITS);
    tr_source_close(&digits);
    write_records(place, "train");
    write_records(place, "test");
    write_lines(place, TRIREME_SOURCE_DIR "/data/sst2/train.tsv", "train.tsv");
    write_lines(place, TRIREME_SOURCE_DIR "/data/sst2/test.tsv", "test.tsv");
    write_bytes(place, "everything.yaml", everything, strlen(everything));
    write_bytes(place, "language.yaml", language, strlen(language));
}

void family_job_large(struct job *job, const struct family *family, const char *place)
{
    static char directory[SCRATCH_PATH + 16], own_model[SCRATCH_PATH];
    char file[32];
    snprintf(directory, sizeof directory, "directory=%s", place);
    snprintf(file, sizeof file, "%s.yaml", family->name);
    scratch_join(own_model, place, file);
    job_begin(job, family->model ? family->model : own_model);
    job_set(job, directory);
    for (int i = 0; family->data[i]; i++) job_set(job, family->data[i]);
}

void family_job(struct job *job, const struct family *family, const char *place)
{
    family_job_large(job, family, place);
    for (int i = 0; family->small[i]; i++) job_set(job, family->small[i]);
}

char family_place[SCRATCH_PATH];

int family_place_make(void **state)
{
    (void)state;
    scratch_make(family_place);
    family_files(family_place);
    return 0;
}

int family_place_remove(void **state)
{
    (void)state;
    scratch_remove(family_place);
    return 0;
}
