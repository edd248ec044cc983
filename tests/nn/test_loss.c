/* Losses with their gradients against plain formulas, with all that training adds: smoothed labels, mixed
 * labels, a teacher; and the weights of outputs.
 */
#include "nn/loss.h"

#include "support/networks.h"

#include "base/options/config.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

enum { ROWS = 3, CLASSES = 4, COUNT = ROWS * CLASSES };
#define SCALE 0.25f

static const float output[COUNT] = {0.5f, -1, 2, 0.25f, 1.5f, 0, -0.5f, 1, -2, 3, 0.75f, -1},
                   teacher[COUNT] = {3, 1, -2, 0.5f, 0, 2, 1, -1, 1, -1, 2.5f, 4},
                   target[COUNT] = {0.75f, 0, 0.25f, 0, 0, 1, 0, 0, 0.5f, 0, 0, 0.5f};
static const int32_t label[ROWS] = {2, 1, 1};

static struct tr_loss read_loss(const char *text)
{
    struct tr_loss loss;
    tr_config *root;
    must(tr_config_parse(text, strlen(text), "loss.yaml", &root));
    must(tr_loss_read(root, &loss));
    tr_config_destroy(&root);
    return loss;
}

/* Probabilities by the softmax of x / heat. */
static void softmax(const float *x, double heat, double p[CLASSES])
{
    double sum = 0;
    for (int k = 0; k < CLASSES; k++) sum += p[k] = exp(x[k] / heat);
    for (int k = 0; k < CLASSES; k++) p[k] /= sum;
}

static void near(double is, double expected, const char *what, int at)
{
    if (!(fabs(is - expected) <= 2e-6 * (1 + fabs(expected))))
        fail_msg("%s %d is %g, not %g", what, at, is, expected);
}

/* Runs the loss and compares: `smoothing`, `share` and `heat` are those that are in effect. */
static void expect_loss(const struct tr_loss *loss, bool training, bool mixed, double smoothing, double share,
                        double heat)
{
    tr_device *device;
    void *memory;
    const int64_t scratch = tr_loss_scratch(loss, CLASSES, ROWS);
    must(tr_device_create("ref", 1, NULL, &device));
    must(tr_device_alloc(device, (size_t)scratch + sizeof output + 2 * ROWS * sizeof(float), &memory));
    float *gradient = memory, *losses = gradient + COUNT, *correct = losses + ROWS;
    const struct tr_loss_call call = {.device = device,
                                      .rows = ROWS,
                                      .training = training,
                                      .scale = SCALE,
                                      .output = output,
                                      .label = label,
                                      .target = target,
                                      .teacher = share > 0 ? teacher : NULL,
                                      .scratch = correct + ROWS,
                                      .loss = losses,
                                      .correct = correct,
                                      .gradient = gradient};
    must(tr_loss_run(loss, CLASSES, &call));
    must(tr_device_wait(device));
    for (int r = 0; r < ROWS; r++) {
        double own[CLASSES], ours[CLASSES], theirs[CLASSES], value = 0, taught = 0;
        softmax(output + r * CLASSES, 1, own);
        softmax(output + r * CLASSES, heat, ours);
        softmax(teacher + r * CLASSES, heat, theirs);
        for (int k = 0; k < CLASSES; k++) {
            const double given = mixed ? target[r * CLASSES + k] : k == label[r],
                         t = (1 - smoothing) * given + smoothing / CLASSES;
            value -= t * log(own[k]);
            taught -= theirs[k] * log(ours[k]);
            near(gradient[r * CLASSES + k],
                 SCALE * ((1 - share) * (own[k] - t) + share * heat * (ours[k] - theirs[k])), "gradient",
                 r * CLASSES + k);
        }
        near(losses[r], (1 - share) * value + share * heat * heat * taught, "loss", r);
    }
    if (!mixed) {
        assert_true(correct[0] == 1 && correct[1] == 0 && correct[2] == 1);
    }
    tr_device_free(device, memory);
    tr_device_destroy(&device);
}

static void classes_are_compared(void **state)
{
    struct tr_loss loss = read_loss("softmax_cross_entropy");
    (void)state;
    expect_loss(&loss, true, false, 0, 0, 1);
    expect_loss(&loss, false, false, 0, 0, 1);
    tr_loss_release(&loss);
    loss = read_loss("{kind: softmax_cross_entropy, label_smoothing: 0.25}");
    expect_loss(&loss, true, false, 0.25, 0, 1);
    expect_loss(&loss, false, false, 0, 0, 1); /* evaluations know no smoothing */
    tr_loss_release(&loss);
}

/* Mixed labels are those of training alone. */
static void mixed_labels_are_compared(void **state)
{
    struct tr_loss loss = read_loss("{kind: softmax_cross_entropy, label_smoothing: 0.25}");
    (void)state;
    loss.mixes = true;
    expect_loss(&loss, true, true, 0.25, 0, 1);
    expect_loss(&loss, false, false, 0, 0, 1);
    tr_loss_release(&loss);
}

/* Hinton and others 2015: scores of both divided by the temperature, whose square the loss is multiplied by.
 */
static void a_teacher_has_a_share(void **state)
{
    static const float heats[] = {1, 2, 4}, shares[] = {0.25f, 0.5f, 1};
    (void)state;
    for (int i = 0; i < 3; i++)
        for (int k = 0; k < 3; k++) {
            struct tr_loss loss = read_loss("{kind: softmax_cross_entropy, label_smoothing: 0.125}");
            loss.taught = shares[k], loss.temperature = heats[i];
            expect_loss(&loss, true, false, 0.125, shares[k], heats[i]);
            loss.mixes = true;
            expect_loss(&loss, true, true, 0.125, shares[k], heats[i]);
            tr_loss_release(&loss);
        }
}

/* Several losses: each of its outputs and targets, with its weights, as if it were alone; their sum by their
   factors, and the mean of the answers. */
static void heads_are_losses_of_their_own(void **state)
{
    enum { HEADS = 4, WIDTH = 10, TARGETS = 6 };
    static const char text[] = "[{kind: quantile, quantiles: [0.25, 0.75], outputs: 4, weight: 0.5},"
                               " {outputs: 3, class_weights: [1, 2, 0.5], weight: 2},"
                               " {kind: huber, outputs: 2, delta: 0.5},"
                               " {kind: binary_cross_entropy, outputs: 1, class_weights: 3, weight: 0.25}]";
    static const int targets[HEADS] = {2, 1, 2, 1};
    static const float factors[HEADS] = {0.5f, 2, 1, 0.25f},
                       values[ROWS][TARGETS] = {{0.5f, -1, 2, 0.25f, 3, 1},
                                                {1.5f, 2, 0, -2, 0.5f, 0},
                                                {-0.25f, 0.75f, 1, 1, 1, 1}};
    float outputs[ROWS * WIDTH], weight[WIDTH];
    (void)state;
    for (int i = 0; i < ROWS * WIDTH; i++) outputs[i] = output[i * 5 % COUNT] + 0.125f * (float)(i % 7);
    for (int training = 0; training < 2; training++) {
        struct tr_loss loss = read_loss(text);
        float gradient[ROWS * WIDTH], each[ROWS], correct[ROWS];
        double sum[ROWS] = {0}, right[ROWS] = {0};
        tr_device *device;
        void *scratch;
        assert_int_equal(loss.head_count, HEADS);
        assert_true(tr_loss_weights(&loss, WIDTH, weight));
        must(tr_device_create("ref", 1, NULL, &device));
        must(tr_device_alloc(device, (size_t)tr_loss_scratch(&loss, WIDTH, ROWS), &scratch));
        struct tr_loss_call call = {.device = device,
                                    .rows = ROWS,
                                    .training = training,
                                    .scale = SCALE,
                                    .output = outputs,
                                    .target = values[0],
                                    .weight = weight,
                                    .scratch = scratch,
                                    .loss = each,
                                    .correct = correct,
                                    .gradient = gradient};
        must(tr_loss_run(&loss, WIDTH, &call));
        must(tr_device_wait(device));
        for (int h = 0, begin = 0, first = 0; h < HEADS;
             begin += (int)loss.head[h].outputs, first += targets[h++]) {
            const int width = (int)loss.head[h].outputs;
            float x[ROWS * WIDTH], t[ROWS * TARGETS], dx[ROWS * WIDTH], own[ROWS], answered[ROWS];
            int32_t classes[ROWS];
            for (int r = 0; r < ROWS; r++) {
                for (int k = 0; k < width; k++) x[r * width + k] = outputs[r * WIDTH + begin + k];
                for (int k = 0; k < targets[h]; k++) t[r * targets[h] + k] = values[r][first + k];
                classes[r] = (int32_t)values[r][first];
            }
            const struct tr_loss_call alone = {.device = device,
                                               .rows = ROWS,
                                               .training = training,
                                               .scale = SCALE * factors[h],
                                               .output = x,
                                               .label = classes,
                                               .target = t,
                                               .weight = h == 2 ? NULL : weight + begin,
                                               .loss = own,
                                               .correct = answered,
                                               .gradient = dx};
            must(tr_loss_run(&loss.head[h], width, &alone));
            must(tr_device_wait(device));
            for (int r = 0; r < ROWS; r++) {
                sum[r] += (double)factors[h] * (double)own[r];
                if (h % 2) right[r] += (double)answered[r] / 2; /* two of them have answers */
                for (int k = 0; k < width; k++)
                    near(gradient[r * WIDTH + begin + k], dx[r * width + k], "gradient",
                         r * WIDTH + begin + k);
            }
        }
        for (int r = 0; r < ROWS; r++) {
            near(each[r], sum[r], "loss", r);
            near(correct[r], right[r], "share of right answers", r);
        }
        tr_device_free(device, scratch);
        tr_device_destroy(&device);
        tr_loss_release(&loss);
    }
}

static void outputs_have_weights(void **state)
{
    static const struct {
        const char *text;
        int width;
        bool any;
        float weight[6];
    } cases[] = {
        {"softmax_cross_entropy", 3, false, {1, 1, 1}},
        {"{class_weights: [1, 2, 0.5]}", 3, true, {1, 2, 0.5f}},
        {"{kind: binary_cross_entropy, class_weights: 3}", 3, true, {3, 3, 3}},
        {"{kind: quantile, quantiles: [0.25, 0.75]}", 4, true, {0.25f, 0.75f, 0.25f, 0.75f}},
        {"[{kind: huber, outputs: 2}, {kind: binary_cross_entropy, outputs: 1, class_weights: 4}, {kind: "
         "quantile, quantiles: [0.125, 0.5], outputs: 2}]",
         5,
         true,
         {1, 1, 4, 0.125f, 0.5f}},
        {"[{kind: huber, outputs: 2}, {outputs: 3}]", 5, false, {1, 1, 1, 1, 1}},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct tr_loss loss = read_loss(cases[i].text);
        float weight[6] = {-1, -1, -1, -1, -1, -1};
        assert_int_equal(tr_loss_weights(&loss, cases[i].width, weight), cases[i].any);
        for (int k = 0; k < 6; k++) assert_true(weight[k] == (k < cases[i].width ? cases[i].weight[k] : -1));
        tr_loss_release(&loss);
    }
}

/* The form in which people get outputs, part by part; and how many numbers they are compared with. */
static void outputs_have_parts(void **state)
{
    static const struct {
        const char *text;
        int64_t outputs, targets;
        int parts;
        struct tr_answer_part part[2];
    } cases[] = {
        {"softmax_cross_entropy", 3, 0, 1, {{TR_ANSWER_CLASSES, 3, false}}},
        {"soft_cross_entropy", 3, 3, 1, {{TR_ANSWER_CLASSES, 3, false}}},
        {"binary_cross_entropy", 3, 3, 1, {{TR_ANSWER_YES, 3, false}}},
        {"mean_squared_error", 2, 2, 1, {{TR_ANSWER_VALUES, 2, false}}},
        {"poisson", 2, 2, 1, {{TR_ANSWER_VALUES, 2, true}}},
        {"{kind: poisson, logs: false}", 2, 2, 1, {{TR_ANSWER_VALUES, 2, false}}},
        {"{kind: quantile, quantiles: [0.1, 0.5, 0.9]}", 6, 2, 1, {{TR_ANSWER_VALUES, 6, false}}},
        {"[{kind: poisson, outputs: 2}, {outputs: 3}]",
         5,
         3,
         2,
         {{TR_ANSWER_VALUES, 2, true}, {TR_ANSWER_CLASSES, 3, false}}},
        {"[{kind: quantile, quantiles: [0.1, 0.9], outputs: 4}, {kind: binary_cross_entropy, outputs: 3}]",
         7,
         5,
         2,
         {{TR_ANSWER_VALUES, 4, false}, {TR_ANSWER_YES, 3, false}}},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct tr_loss loss = read_loss(cases[i].text);
        struct tr_answer_part part[TR_LOSS_HEADS];
        assert_int_equal(tr_loss_parts(&loss, cases[i].outputs, part), cases[i].parts);
        for (int k = 0; k < cases[i].parts; k++) {
            assert_int_equal(part[k].kind, cases[i].part[k].kind);
            assert_int_equal(part[k].outputs, cases[i].part[k].outputs);
            assert_int_equal(part[k].logs, cases[i].part[k].logs);
        }
        assert_int_equal(tr_loss_targets(&loss, cases[i].outputs), cases[i].targets);
        tr_loss_release(&loss);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(classes_are_compared),          cmocka_unit_test(mixed_labels_are_compared),
        cmocka_unit_test(a_teacher_has_a_share),         cmocka_unit_test(outputs_have_weights),
        cmocka_unit_test(heads_are_losses_of_their_own), cmocka_unit_test(outputs_have_parts),
    };
    return cmocka_run_group_tests_name("nn.loss", tests, NULL, NULL);
}
