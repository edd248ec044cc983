/* Intersection over union and what goes with it, of a network whose answers are known: counted here, pixel by
 * pixel, as docs/reference/metrics.md has them.
 */
#include "support/training.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

enum { COUNT = 7, HEIGHT = 5, WIDTH = 6, CLASSES = 4, NONE = 9 };

static uint8_t image[COUNT][HEIGHT][WIDTH], label[COUNT][HEIGHT][WIDTH];

static void write_bytes(const char *name, const void *data, size_t size)
{
    char path[SCRATCH_PATH];
    must_train(tr_file_write_atomic(NULL, scratch_join(path, scratch_place, name), data, size));
}

static void write_idx(const char *name, const void *pixels)
{
    uint8_t bytes[16 + sizeof image] = {0, 0, 8, 3, 0, 0, 0, COUNT, 0, 0, 0, HEIGHT, 0, 0, 0, WIDTH};
    memcpy(bytes + 16, pixels, sizeof image);
    write_bytes(name, bytes, sizeof bytes);
}

/* Scores of a pixel of value x: x, 100, 250 - x, and less than any. Class 3 is never answered. */
static const float weights[CLASSES] = {1, 0, -1, 0}, biases[CLASSES] = {0, 100, 250, -1000};

static int answer_of(int x)
{
    int best = 0;
    for (int k = 1; k < CLASSES; k++)
        if (weights[k] * (float)x + biases[k] > weights[best] * (float)x + biases[best]) best = k;
    return best;
}

static int make_place(void **state)
{
    static const char model[] = "name: known\n"
                                "data:\n"
                                "  train: {idx: {images: images, labels: labels, ignore: 9}}\n"
                                "  test: {idx: {images: images, labels: labels, ignore: 9}}\n"
                                "input: {scale: 1}\n"
                                "layers: [{conv: {filters: 4, kernel: 1, name: known}}]\n"
                                "loss: {per: pixel}\n"
                                "optimizer: {rule: sgd, rate: 0.1}\n"
                                "train: {batch: 7, steps: 1}\n";
    scratch_place_make(state);
    for (int i = 0; i < COUNT * HEIGHT * WIDTH; i++) {
        (&image[0][0][0])[i] = (uint8_t)(i * 89 % 256);
        (&label[0][0][0])[i] = (uint8_t)(i % 11 == 0 ? NONE : i % 5 == 0 ? 3 : i / 7 % 3);
    }
    for (int i = 0; i < HEIGHT * WIDTH; i++) (&label[2][0][0])[i] = NONE; /* one of which nothing is known */
    for (int i = 1; i < HEIGHT * WIDTH; i++) (&label[5][0][0])[i] = NONE; /* and one with a single pixel */
    write_idx("images", image);
    write_idx("labels", label);
    write_bytes("known.yaml", model, strlen(model));
    return 0;
}

static void expect(const struct tr_metrics *metrics, const char *name, double expected)
{
    for (int i = 0; i < metrics->count; i++) {
        if (strcmp(metrics->metric[i].name, name) != 0) continue;
        if (!(fabs(metrics->metric[i].value - expected) < 1e-12))
            fail_msg("%s is %.17g instead of %.17g", name, metrics->metric[i].value, expected);
        return;
    }
    fail_msg("there is no %s", name);
}

static void expect_of(const struct tr_metrics *metrics, int class, const char *column, double expected)
{
    for (int c = 0; c < metrics->columns; c++) {
        if (strcmp(metrics->column[c], column) != 0) continue;
        const double value = metrics->table[class * metrics->columns + c];
        if (!(fabs(value - expected) < 1e-12))
            fail_msg("%s of class %d is %.17g instead of %.17g", column, class, value, expected);
        return;
    }
    fail_msg("there is no column %s", column);
}

/* The trainer, to which what the event shows belongs. */
static tr_trainer *evaluate_known(struct job *job, struct tr_train_event *event)
{
    char path[SCRATCH_PATH];
    *event = (struct tr_train_event)TR_TRAIN_EVENT_INIT;
    job_begin(job, scratch_join(path, scratch_place, "known.yaml"));
    tr_trainer *trainer = job_trainer(job);
    must_train(tr_trainer_set_parameter(trainer, "known.weights", weights, CLASSES));
    must_train(tr_trainer_set_parameter(trainer, "known.bias", biases, CLASSES));
    must_train(tr_trainer_evaluate(trainer, "test", event));
    return trainer;
}

static void pixels_are_counted(void **state)
{
    (void)state;
    double both[CLASSES] = {0}, either[CLASSES] = {0}, labelled[CLASSES] = {0}, answered[CLASSES] = {0};
    double right = 0, all = 0, mean = 0;
    for (int i = 0; i < COUNT * HEIGHT * WIDTH; i++) {
        const int is = (&label[0][0][0])[i], said = answer_of((&image[0][0][0])[i]);
        if (is == NONE) continue;
        for (int k = 0; k < CLASSES; k++) {
            both[k] += is == k && said == k;
            either[k] += is == k || said == k;
            labelled[k] += is == k;
            answered[k] += said == k;
        }
        right += is == said;
        all++;
    }
    struct job job;
    struct tr_train_event event;
    tr_trainer *trainer = evaluate_known(&job, &event);
    assert_non_null(event.metrics);
    for (int k = 0; k < CLASSES; k++) {
        expect_of(event.metrics, k, "iou", both[k] / either[k]);
        expect_of(event.metrics, k, "recall", both[k] / labelled[k]);
        expect_of(event.metrics, k, "support", labelled[k]);
        if (answered[k] > 0) expect_of(event.metrics, k, "precision", both[k] / answered[k]);
        mean += both[k] / either[k] / CLASSES;
    }
    assert_true(answered[3] == 0 && either[3] > 0);
    expect(event.metrics, "mean_iou", mean);
    expect(event.metrics, "pixel_accuracy", right / all);
    tr_trainer_destroy(&trainer);
}

/* The logarithm of a pixel's probability of being of a class. */
static double log_probability(int x, int class)
{
    double most = -INFINITY, sum = 0;
    for (int k = 0; k < CLASSES; k++) most = fmax(most, (double)weights[k] * x + (double)biases[k]);
    for (int k = 0; k < CLASSES; k++) sum += exp((double)weights[k] * x + (double)biases[k] - most);
    return (double)weights[class] * x + (double)biases[class] - most - log(sum);
}

/* Loss and accuracy are means over images of the means over their pixels that are labelled; images without
   such do not count. */
static void images_without_labels_do_not_count(void **state)
{
    (void)state;
    double loss = 0, accuracy = 0;
    int images = 0;
    for (int n = 0; n < COUNT; n++) {
        double cost = 0, right = 0, all = 0;
        for (int i = 0; i < HEIGHT * WIDTH; i++) {
            const int is = (&label[n][0][0])[i], x = (&image[n][0][0])[i];
            if (is == NONE) continue;
            cost -= log_probability(x, is);
            right += is == answer_of(x);
            all++;
        }
        if (all == 0) continue;
        loss += cost / all;
        accuracy += right / all;
        images++;
    }
    assert_int_equal(images, COUNT - 1);
    struct job job;
    struct tr_train_event event;
    tr_trainer *trainer = evaluate_known(&job, &event);
    if (!(fabs(event.loss - loss / images) < 1e-5 * loss) ||
        !(fabs(event.accuracy - accuracy / images) < 1e-6))
        fail_msg("loss %.9g, accuracy %.9g instead of %.9g and %.9g", event.loss, event.accuracy,
                 loss / images, accuracy / images);
    tr_trainer_destroy(&trainer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(pixels_are_counted),
                                       cmocka_unit_test(images_without_labels_do_not_count)};
    return cmocka_run_group_tests(tests, make_place, scratch_place_remove);
}
