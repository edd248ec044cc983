/* Augmentation, stated once more: a network of one dense layer that begins with zeros shows by its weights
 * what images and labels it was trained with. They are computed here in double from the page
 * (docs/reference/augmentation.md), and only the random words are the program's.
 */
#include "refuse.h"
#include "support/files/npy.h"
#include "support/ranks.h"

#include "base/numbers/rng.h"
#include "job/feed/augment.h"
#include "train/loop/trainer.h"
#include "train/setup/memory.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

enum { COUNT = 24, HEIGHT = 9, WIDTH = 7, CHANNELS = 3, CLASSES = 3, BATCH = 8, SEED = 5 };
enum { PIXELS = HEIGHT * WIDTH, VALUES = PIXELS * CHANNELS };
#define RATE 0.5
#define PI   3.14159265358979323846

/* ---- data ---- */

/* Smooth, so that a place that is off by a thousandth of a pixel is seen, and no more. */
static uint8_t stored(int example, int i, int j, int c)
{
    return (uint8_t)lround(120 + 50 * sin(example + 0.9 * i + c) + 60 * cos(example * c + 1.1 * j));
}

/* The same as numbers on both sides of 0, of which some lie outside of the range below. */
#define LEAST -2.0
#define MOST  3.0
#define SCALE 0.5
#define SHIFT 0.25
static float number(int example, int i, int j, int c)
{
    return (float)stored(example, i, j, c) / 40 - 2.5f;
}

static int class_of(int example)
{
    return example * 7 % CLASSES;
}

static int make_place(void **state)
{
    uint8_t image[COUNT][HEIGHT][WIDTH][CHANNELS], mask[COUNT][HEIGHT][WIDTH];
    static float numbers[COUNT][VALUES];
    int32_t label[COUNT];
    float value[COUNT][CLASSES];
    scratch_place_make(state);
    for (int n = 0; n < COUNT; n++) {
        label[n] = class_of(n);
        for (int k = 0; k < CLASSES; k++) value[n][k] = k == label[n] ? 0.5f : 0.25f;
        for (int k = 0; k < VALUES; k++)
            image[n][k / CHANNELS / WIDTH][k / CHANNELS % WIDTH][k % CHANNELS] =
                stored(n, k / CHANNELS / WIDTH, k / CHANNELS % WIDTH, k % CHANNELS);
        for (int k = 0; k < VALUES; k++)
            numbers[n][k] = number(n, k / CHANNELS / WIDTH, k / CHANNELS % WIDTH, k % CHANNELS);
        for (int k = 0; k < PIXELS; k++)
            mask[n][k / WIDTH][k % WIDTH] = (uint8_t)((n + k / WIDTH / 3) % CLASSES);
    }
    npy_write(scratch_in("images.npy"), "|u1", "24, 9, 7, 3", image, sizeof image);
    npy_write(scratch_in("numbers.npy"), "<f4", "24, 9, 7, 3", numbers, sizeof numbers);
    npy_write(scratch_in("masks.npy"), "|u1", "24, 9, 7", mask, sizeof mask);
    npy_write(scratch_in("labels.npy"), "<i4", "24,", label, sizeof label);
    npy_write(scratch_in("values.npy"), "<f4", "24, 3", value, sizeof value);
    static const char model[] = "name: seen\n"
                                "data: {train: {npy: {features: images.npy, labels: labels.npy}}}\n"
                                "layers: [{dense: {units: 3, weights: zeros, name: seen}}]\n"
                                "optimizer: {rule: sgd, rate: 0.5}\n"
                                "train: {batch: 8, microbatches: 4, steps: 2, shuffle: false}\n";
    must_train(tr_file_write_atomic(NULL, scratch_in("seen.yaml"), model, strlen(model)));
    return 0;
}

/* ---- the page, in double ---- */

/* What the page has of one job. */
struct options {
    const char *text; /* of `input` */
    const char *more[3];
    bool values;      /* probabilities in the place of classes */
    bool numbers;     /* images of numbers in the place of bytes */
    int pad, crop[2]; /* 0: as the image */
    bool flip;
    double rotate, zoom[2], colour[3], erase, erased_value;
    int operations;
    double magnitude, mixup, cutmix;
};

static uint32_t word(int row, int step, uint32_t draw, uint32_t which, int number)
{
    uint32_t words[4];
    tr_rng_philox(tr_rng_key_make(SEED, TR_RNG_AUGMENT), (uint32_t)row, (uint32_t)step, draw, which, words);
    return words[number];
}

static double unit(int row, int step, uint32_t draw, uint32_t which, int number)
{
    return (double)word(row, step, draw, which, number) / 4294967296.0;
}

static double limited(const struct options *o, double x)
{
    return o->numbers ? fmin(fmax(x, LEAST), MOST) : fmin(fmax(x, 0), 255);
}

/* Goes back through operation k of randaugment, from a point of its output to one of its input. */
static void undo(const struct options *o, int row, int step, uint32_t which, int k, const int size[2],
                 double point[2])
{
    const uint32_t kind = word(row, step, 16 + (uint32_t)k, which, 0) % 9;
    const double s = o->magnitude / 30 * (word(row, step, 16 + (uint32_t)k, which, 1) % 2 ? -1 : 1);
    const double y = point[0], x = point[1], angle = 30 * s * PI / 180;
    if (kind == 1) {
        point[0] = y * cos(angle) + x * sin(angle);
        point[1] = x * cos(angle) - y * sin(angle);
    } else if (kind == 2) {
        point[1] += 0.3 * s * y;
    } else if (kind == 3) {
        point[0] += 0.3 * s * x;
    } else if (kind == 4) {
        point[1] += 0.45 * s * size[1];
    } else if (kind == 5) {
        point[0] += 0.45 * s * size[0];
    }
}

static double pixel_at(const struct options *o, int example, int i, int j, int c)
{
    if (i < 0 || j < 0 || i >= HEIGHT || j >= WIDTH) return 0;
    return o->numbers ? (double)number(example, i, j, c) : stored(example, i, j, c);
}

/* One view of an example: [size[0]][size[1]][CHANNELS] bytes of real numbers. */
static void view(const struct options *o, int example, int row, int step, uint32_t which, const int size[2],
                 double *out)
{
    const int room[2] = {HEIGHT + 2 * o->pad - size[0] + 1, WIDTH + 2 * o->pad - size[1] + 1};
    const bool shifts = o->pad > 0 || o->flip || o->crop[0] > 0;
    const double top = shifts ? word(row, step, 0, which, 0) % (uint32_t)room[0] - (double)o->pad : 0;
    const double left = shifts ? word(row, step, 0, which, 1) % (uint32_t)room[1] - (double)o->pad : 0;
    const bool mirrored = o->flip && word(row, step, 0, which, 2) % 2;
    const double angle = o->rotate * (2 * unit(row, step, 1, which, 0) - 1) * PI / 180;
    const double zoom = o->zoom[0] + (o->zoom[1] - o->zoom[0]) * unit(row, step, 1, which, 1);
    const double dark = o->numbers ? LEAST : 0, middle = o->numbers ? (LEAST + MOST) / 2 : 127.5;
    double factor[3];
    for (int k = 0; k < 3; k++) factor[k] = 1 + o->colour[k] * (2 * unit(row, step, 2, which, k) - 1);
    for (int k = 0; k < o->operations; k++) {
        const uint32_t kind = word(row, step, 16 + (uint32_t)k, which, 0) % 9;
        const double s = word(row, step, 16 + (uint32_t)k, which, 1) % 2 ? -0.9 : 0.9;
        if (kind >= 6) factor[kind - 6] *= 1 + s * o->magnitude / 30;
    }
    const bool erases = unit(row, step, 3, which, 0) < o->erase;
    const double area = size[0] * size[1] * (0.02 + 0.31 * unit(row, step, 3, which, 1));
    const double ratio = 0.3 * pow(11, unit(row, step, 3, which, 2));
    const int tall = (int)fmin(fmax(floor(sqrt(area * ratio) + 0.5), 1), size[0]);
    const int wide = (int)fmin(fmax(floor(sqrt(area / ratio) + 0.5), 1), size[1]);
    const int high = (int)(word(row, step, 4, which, 0) % (uint32_t)(size[0] - tall + 1));
    const int near = (int)(word(row, step, 4, which, 1) % (uint32_t)(size[1] - wide + 1));
    for (int i = 0; i < size[0]; i++) {
        for (int j = 0; j < size[1]; j++, out += CHANNELS) {
            double point[2] = {i - (size[0] - 1) / 2.0, j - (size[1] - 1) / 2.0};
            for (int k = o->operations - 1; k >= 0; k--) undo(o, row, step, which, k, size, point);
            const double y = point[0] / zoom, x = point[1] / zoom;
            const double turned_x = x * cos(angle) - y * sin(angle);
            const double v = top + (size[0] - 1) / 2.0 + y * cos(angle) + x * sin(angle);
            const double u = left + (size[1] - 1) / 2.0 + (mirrored ? -turned_x : turned_x);
            const int h = (int)floor(v), w = (int)floor(u);
            double colour[CHANNELS];
            for (int c = 0; c < CHANNELS; c++) {
                const double a = (1 - (u - w)) * pixel_at(o, example, h, w, c) +
                                 (u - w) * pixel_at(o, example, h, w + 1, c);
                const double b = (1 - (u - w)) * pixel_at(o, example, h + 1, w, c) +
                                 (u - w) * pixel_at(o, example, h + 1, w + 1, c);
                colour[c] = (1 - (v - h)) * a + (v - h) * b;
                if (o->colour[0] + o->colour[1] + o->colour[2] == 0 && o->operations == 0) continue;
                colour[c] = limited(o, dark + factor[0] * (colour[c] - dark));
                colour[c] = limited(o, middle + factor[1] * (colour[c] - middle));
            }
            const double grey = 0.299 * colour[0] + 0.587 * colour[1] + 0.114 * colour[2];
            const bool erased = erases && i >= high && i < high + tall && j >= near && j < near + wide;
            for (int c = 0; c < CHANNELS; c++)
                out[c] = erased           ? o->erased_value
                         : factor[2] == 1 ? colour[c]
                                          : limited(o, grey + factor[2] * (colour[c] - grey));
        }
    }
}

/* A number of Beta(a, a), by Jöhnk. */
static double beta(double a, int row, int step)
{
    for (uint32_t k = 0; k < 64; k++) {
        const double x = pow((word(row, step, 64 + k, 0, 0) + 0.5) / 4294967296.0, 1 / a);
        const double y = pow((word(row, step, 64 + k, 0, 1) + 0.5) / 4294967296.0, 1 / a);
        if (x + y <= 1) return x / (x + y);
    }
    return 0.5;
}

static double target_of(const struct options *o, int example, int k)
{
    const bool right = class_of(example) == k;
    return o->values ? (right ? 0.5 : 0.25) : right;
}

/* The image that row `row` of a step is trained with, scaled, and its probabilities. */
static void trained_with(const struct options *o, int row, int step, const int size[2], double *image,
                         double target[CLASSES])
{
    static double other[VALUES];
    const int example = (step * BATCH + row) % COUNT, values = size[0] * size[1] * CHANNELS;
    double share = 1;
    view(o, example, row, step, 0, size, image);
    const int partner = (int)(((double)word(row, step, 6, 0, 0) + word(row, step, 6, 0, 1) / 4294967296.0) *
                              COUNT / 4294967296.0);
    if (o->mixup > 0 || o->cutmix > 0) {
        const bool blends = o->cutmix == 0 || (o->mixup > 0 && word(row, step, 5, 0, 0) % 2 == 0);
        const double part = beta(blends ? o->mixup : o->cutmix, row, step);
        view(o, partner, row, step, 1, size, other);
        double boxed = 0;
        for (int k = 0; k < values; k++) {
            const int ij[2] = {k / CHANNELS / size[1], k / CHANNELS % size[1]};
            bool inside = !blends;
            for (int d = 0; d < 2; d++) {
                const int length = (int)floor(size[d] * sqrt(1 - part) + 0.5);
                const int first = (int)(word(row, step, 5, 0, 1 + d) % (uint32_t)size[d]) - length / 2;
                inside = inside && ij[d] >= first && ij[d] < first + length;
            }
            boxed += inside;
            if (blends) image[k] = part * image[k] + (1 - part) * other[k];
            if (inside) image[k] = other[k];
        }
        share = blends ? part : 1 - boxed / values;
    }
    for (int k = 0; k < CLASSES; k++)
        target[k] = share * target_of(o, example, k) + (1 - share) * target_of(o, partner, k);
    for (int k = 0; k < values; k++) image[k] = o->numbers ? image[k] * SCALE + SHIFT : image[k] / 255;
}

/* Two steps of gradient descent from zeros. */
static void train_here(const struct options *o, const int size[2], double (*weight)[CLASSES], double *bias)
{
    static double image[BATCH][VALUES];
    const int values = size[0] * size[1] * CHANNELS;
    for (int step = 0; step < 2; step++) {
        double error[BATCH][CLASSES];
        for (int r = 0; r < BATCH; r++) {
            double target[CLASSES], score[CLASSES], sum = 0;
            trained_with(o, r, step, size, image[r], target);
            for (int k = 0; k < CLASSES; k++) {
                score[k] = bias[k];
                for (int v = 0; v < values; v++) score[k] += image[r][v] * weight[v][k];
                sum += exp(score[k]);
            }
            for (int k = 0; k < CLASSES; k++) error[r][k] = (exp(score[k]) / sum - target[k]) / BATCH;
        }
        for (int r = 0; r < BATCH; r++)
            for (int k = 0; k < CLASSES; k++) {
                bias[k] -= RATE * error[r][k];
                for (int v = 0; v < values; v++) weight[v][k] -= RATE * error[r][k] * image[r][v];
            }
    }
}

/* ---- against the program ---- */

static void begin(struct job *job, const char *const *set)
{
    job_begin(job, scratch_in("seen.yaml"));
    job->settings.journal = "";
    job_set(job, "seed=5");
    job_set_all(job, set);
}

static void compare(const struct options *o)
{
    static double weight[VALUES][CLASSES];
    static float learnt[VALUES * CLASSES];
    double bias[CLASSES] = {0}, farthest = 0;
    const int size[2] = {o->crop[0] ? o->crop[0] : HEIGHT, o->crop[1] ? o->crop[1] : WIDTH};
    const int values = size[0] * size[1] * CHANNELS;
    struct job job;
    struct outcome outcome;
    memset(weight, 0, sizeof weight);
    train_here(o, size, weight, bias);
    begin(&job, (const char *const[]){o->text, o->more[0], o->more[1], NULL});
    if (o->numbers) {
        job_set(&job, "data.train.npy.features=numbers.npy");
        job_set(&job, "input.range=[-2, 3]");
        job_set(&job, "input.scale=0.5");
        job_set(&job, "input.shift=0.25");
    }
    tr_trainer *trainer = job_trainer(&job);
    trainer_outcome(trainer, &outcome);
    if (outcome.status != TR_OK) fail_msg("%s: %s", o->text, outcome.message);
    must_train(tr_trainer_parameter(trainer, "seen.weights", learnt, values * CLASSES));
    for (int k = 0; k < values * CLASSES; k++) {
        const double off = fabs((double)learnt[k] - weight[k / CLASSES][k % CLASSES]);
        if (off > farthest) farthest = off;
    }
    float learnt_bias[CLASSES];
    must_train(tr_trainer_parameter(trainer, "seen.bias", learnt_bias, CLASSES));
    for (int k = 0; k < CLASSES; k++) farthest = fmax(farthest, fabs((double)learnt_bias[k] - bias[k]));
    tr_trainer_destroy(&trainer);
    /* Places are rounded to 1/65536 pixel, factors to float: weights are within some 1e-5; a wrong word,
       order or sign is off by 1e-2. */
    if (!(farthest < 2e-4))
        fail_msg("%s%s: weights are off by %g", o->text, o->numbers ? ", numbers" : "", farthest);
}

static void test_formulas(void **state)
{
    (void)state;
    static const struct options cases[] = {
        {.text = "input={pad: 0}", .zoom = {1, 1}},
        {.text = "input={pad: 2, flip: true, crop: [6, 5]}",
         .zoom = {1, 1},
         .pad = 2,
         .flip = true,
         .crop = {6, 5}},
        {.text = "input={rotate: 40}", .zoom = {1, 1}, .rotate = 40},
        {.text = "input={zoom: [0.6, 1.7]}", .zoom = {0.6f, 1.7f}},
        {.text = "input={pad: 2, flip: true, rotate: 25, zoom: [0.8, 1.25], crop: [6, 5]}",
         .pad = 2,
         .flip = true,
         .crop = {6, 5},
         .rotate = 25,
         .zoom = {0.8f, 1.25}},
        {.text = "input={brightness: 0.6, contrast: 0.7, saturation: 0.9}",
         .zoom = {1, 1},
         .colour = {0.6, 0.7, 0.9}},
        {.text = "input={erase: 0.7, erase_value: 50}", .zoom = {1, 1}, .erase = 0.7, .erased_value = 50},
        {.text = "input={randaugment: 3, magnitude: 21}", .zoom = {1, 1}, .operations = 3, .magnitude = 21},
        {.text = "input={mixup: 0.7}", .zoom = {1, 1}, .mixup = 0.7},
        {.text = "input={mixup: 1}",
         .more = {"data.train.npy.labels=values.npy", "loss=soft_cross_entropy"},
         .values = true,
         .zoom = {1, 1},
         .mixup = 1},
        {.text = "input={cutmix: 1}", .zoom = {1, 1}, .cutmix = 1},
        {.text = "input={pad: 1, flip: true, rotate: 10, zoom: [0.9, 1.1], brightness: 0.2, contrast: 0.2, "
                 "saturation: 0.2, erase: 0.5, randaugment: 2, mixup: 0.3, cutmix: 1.5}",
         .pad = 1,
         .flip = true,
         .rotate = 10,
         .zoom = {0.9f, 1.1f},
         .colour = {0.2, 0.2, 0.2},
         .erase = 0.5,
         .operations = 2,
         .magnitude = 9,
         .mixup = 0.3,
         .cutmix = 1.5},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct options numbers = cases[i];
        numbers.numbers = true;
        compare(&cases[i]);
        compare(&numbers);
    }
}

/* ---- one run, one hash ---- */

static const char *const everything[] = {"input={pad: 1, flip: true, rotate: 10, zoom: [0.9, 1.1], "
                                         "brightness: 0.2, contrast: 0.2, saturation: 0.2, "
                                         "erase: 0.5, randaugment: 2, mixup: 0.3, cutmix: 1.5}",
                                         "layers=[{dense: {units: 5, activation: tanh}}, {dense: 3}]",
                                         "train.steps=12", "train.shuffle=true", NULL};
static const char *const masks[] = {
    "input={pad: 1, flip: true, rotate: 30, zoom: [0.9, 1.1], brightness: 0.2, erase: 0.5, randaugment: 1}",
    "data.train.npy.labels=masks.npy",
    "layers=[{conv: {filters: 4, kernel: 3, padding: same}}, {conv: {filters: 3, kernel: 1}}]",
    "loss={per: pixel}",
    "train.steps=12",
    NULL};

static const char *const numbers[] = {
    "input={pad: 1, flip: true, rotate: 10, zoom: [0.9, 1.1], range: [-2, 3], "
    "brightness: 0.2, contrast: 0.2, saturation: 0.2, scale: 0.5, shift: 0.25, "
    "erase: 0.5, randaugment: 2, mixup: 0.3, cutmix: 1.5}",
    "data.train.npy.features=numbers.npy",
    "layers=[{dense: {units: 5, activation: tanh}}, {dense: 3}]",
    "train.steps=12",
    "train.shuffle=true",
    NULL};
static const char *const number_masks[] = {
    "input={pad: 1, flip: true, rotate: 30, crop: [8, 6]}",
    "data.train.npy={features: numbers.npy, labels: masks.npy}",
    "layers=[{conv: {filters: 4, kernel: 3, padding: same}}, {conv: {filters: 3, kernel: 1}}]",
    "loss={per: pixel}",
    "train.steps=12",
    NULL};
/* What changes images of bytes without the augmenter. */
static const char *const shifted[] = {"input={pad: 2, flip: true, crop: [6, 5]}",
                                      "data.train.npy.features=numbers.npy",
                                      "layers=[{dense: {units: 5, activation: tanh}}, {dense: 3}]",
                                      "train.steps=12",
                                      "train.shuffle=true",
                                      NULL};

static void expect_one_hash(const char *what, const char *const *set)
{
    struct outcome alone, other;
    struct job job;
    begin(&job, set);
    job.settings.device = "ref";
    job_outcome(&job, &alone);
    if (alone.status != TR_OK) fail_msg("%s: %s", what, alone.message);
    const char *const *isas = training_isas();
    for (int i = 0; isas[i]; i++) {
        begin(&job, set);
        job_set(&job, i % 2 ? "train.pass=1" : "train.pass=2");
        job_set(&job, i % 2 ? "train.prefetch=0" : "train.prefetch=2");
        job.settings.isa = isas[i];
        job.settings.threads = 1 + i % 3;
        job_outcome(&job, &other);
        expect_same(&alone, &other, isas[i]);
    }
    static const char *const strategies[] = {"allreduce", "parameter-server", "pipeline"};
    for (size_t i = 0; i < sizeof strategies / sizeof strategies[0]; i++)
        expect_hash_by(&alone, begin, set, strategies[i], 2, 0, what);
    expect_resumed(&alone, begin, set, scratch_in(what), 5, 12, what);
}

static void test_one_hash(void **state)
{
    (void)state;
    expect_one_hash("everything", everything);
    expect_one_hash("masks", masks);
    expect_one_hash("numbers", numbers);
    expect_one_hash("number-masks", number_masks);
    expect_one_hash("shifted", shifted);
}

/* What a run expects to take has the augmenter, which takes what was expected of it. */
static void test_memory(void **state)
{
    (void)state;
    static const struct {
        const char *set;
        size_t row; /* bytes of a row */
    } cases[] = {
        {"input={flip: true}", 0},
        {"input={rotate: 10}", sizeof(struct tr_image_view)},
        {"input={pad: 1, mixup: 1}",
         2 * sizeof(struct tr_image_view) + sizeof(struct tr_image_mix) + 2 * VALUES * sizeof(float)},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct job job;
        struct tr_train_expected expected[2];
        tr_trainer *trainer;
        tr_augmenter *augmenter;
        tr_device *device;
        begin(&job, (const char *const[]){cases[i].set, NULL});
        trainer = job_trainer(&job);
        struct tr_job *own = trainer_job(trainer);
        const struct tr_augment_options augment = own->input.augment;
        must_train(tr_device_create("ref", 1, NULL, &device));
        assert_int_equal(tr_augmenter_expect(own, 5), 5 * cases[i].row);
        if (cases[i].row > 0) {
            must_train(tr_augmenter_create(device, own, own->source[TR_SET_TRAIN], 5, true, &augmenter));
            assert_int_equal(tr_augmenter_memory(augmenter), 5 * cases[i].row);
            tr_augmenter_destroy(&augmenter);
        }
        must_train(tr_train_expect_memory(own, 1, &expected[0]));
        own->input.augment = (struct tr_augment_options){0};
        must_train(tr_train_expect_memory(own, 1, &expected[1]));
        assert_int_equal(expected[0].gradient - expected[1].gradient, BATCH * cases[i].row);
        own->input.augment = augment;
        tr_trainer_destroy(&trainer);
        tr_device_destroy(&device);
    }
}

/* A teacher that was trained without augmentation teaches on the rows of the network, mixed ones among them.
 */
static void teach(const char *name, const char *const *of_teacher, const char *const *set)
{
    struct outcome untaught, alone, other;
    struct job job;
    struct rank ranks[RANKS];
    char out[SCRATCH_PATH], distill[SCRATCH_PATH + 32];
    begin(&job, of_teacher);
    job.settings.out = scratch_join(out, scratch_place, name);
    job_outcome(&job, &other);
    must_train(other.status);
    begin(&job, set);
    job_outcome(&job, &untaught);
    must_train(untaught.status);
    snprintf(distill, sizeof distill, "distill={teacher: %s}", out);
    begin(&job, set);
    job_set(&job, distill);
    job.settings.device = "ref";
    job_outcome(&job, &alone);
    if (alone.status != TR_OK) fail_msg("%s", alone.message);
    assert_string_not_equal(alone.hash, untaught.hash);
    begin(&job, set);
    job_set(&job, distill);
    job.settings.set = job.set;
    run_ranks(&job.settings, 2, 0, ranks);
    expect_ranks(&alone, ranks, 2, name);
}

static void test_a_teacher_sees_what_the_network_sees(void **state)
{
    (void)state;
    static const char *const plain[] = {NULL}, *const of_numbers[] = {"data.train.npy.features=numbers.npy",
                                                                      "input={scale: 0.5, shift: 0.25}",
                                                                      NULL};
    teach("wise", plain, everything);
    teach("wise-of-numbers", of_numbers, numbers);
}

/* The labels of pixels go where their pixels go: a mask that is the image itself stays so. */
static void test_masks_follow(void **state)
{
    (void)state;
    uint8_t image[COUNT][HEIGHT][WIDTH];
    for (int n = 0; n < COUNT; n++)
        for (int k = 0; k < PIXELS; k++)
            image[n][k / WIDTH][k % WIDTH] = (uint8_t)(n % 2 ? 1 : k / WIDTH < 4);
    npy_write(scratch_in("bits.npy"), "|u1", "24, 9, 7", image, sizeof image);
    /* Places on whole pixels alone: mirrors and shifts, drawn by the augmenter, since some images lose a part
       of no size. Loss and accuracy are those of a network that knows the answer: its scores are the image.
     */
    static const char *const set[] = {"input={scale: 1, pad: 2, flip: true, contrast: 1e-9}",
                                      "data.train.npy.features=bits.npy",
                                      "data.train.npy.labels=bits.npy",
                                      "layers=[{conv: {filters: 2, kernel: 1, weights: zeros}}]",
                                      "loss={per: pixel}",
                                      "optimizer.rate=40",
                                      "train.steps=60",
                                      "train.log_every=1",
                                      NULL};
    struct job job;
    struct outcome outcome;
    begin(&job, set);
    job_outcome(&job, &outcome);
    if (outcome.status != TR_OK) fail_msg("%s", outcome.message);
    if (!(outcome.accuracy == 1)) fail_msg("accuracy %g", outcome.accuracy);
}

/* ---- what is refused ---- */

static void expect_refused(const char *const *set, const char *words)
{
    struct job job;
    struct outcome outcome;
    begin(&job, set);
    job_outcome(&job, &outcome);
    if (outcome.status != TR_EINVAL) fail_msg("%s: status %d", set[0], (int)outcome.status);
    if (!strstr(outcome.message, words)) fail_msg("%s: \"%s\" has no \"%s\"", set[0], outcome.message, words);
}

static void test_refused(void **state)
{
    (void)state;
    static const struct {
        const char *set[5], *words;
    } cases[] = {
        {{"input.zoom=0.5"}, "ascending order"},
        {{"input.zoom=[1.2, 0.8]"}, "ascending order"},
        {{"input.rotate=181"}, "rotate"},
        {{"input.erase_area=[0.1, 0.2]"}, "set erase"},
        {{"input={erase: 0.5, erase_area: 0.1}"}, "ascending order"},
        {{"input.mixup=3"}, "mixup"},
        {{"input.mixup=1", "loss={class_weights: [1, 2, 3]}"}, "class_weights"},
        {{"input.cutmix=1", "loss=huber", "data.train.npy.labels=values.npy"}, "not for the loss huber"},
        {{"input.mixup=1", "data.train.npy.labels=masks.npy", "loss={per: pixel}",
          "layers=[{conv: {filters: 3, kernel: 1}}]"},
         "each pixel"},
        {{"input.rotate=5", "data.train.npy.features=values.npy"}, "examples are numbers"},
        {{"input.contrast=0.5", "data.train.npy.features=numbers.npy"}, "contrast needs the range"},
        {{"input.randaugment=1", "data.train.npy.features=numbers.npy"}, "as range: [0, 1]"},
        {{"input.range=[3, 1]", "data.train.npy.features=numbers.npy"}, "ascending order"},
        {{"input.range=[0, 255]"}, "images of bytes"},
        {{"input.saturation=0.5", "data.train.npy.features=masks.npy"}, "3 channels"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) expect_refused(cases[i].set, cases[i].words);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_formulas),     cmocka_unit_test(test_one_hash),
        cmocka_unit_test(test_memory),       cmocka_unit_test(test_a_teacher_sees_what_the_network_sees),
        cmocka_unit_test(test_masks_follow), cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, make_place, scratch_place_remove);
}
