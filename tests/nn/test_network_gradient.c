/* The gradients of whole networks on `ref`, held against finite differences of their loss.
 *
 * This is what shows that layers are joined rightly: that every consumer's contribution arrives once, that
 * fused gradients are applied once, that dropout masks agree in both directions. Single operations are the
 * subject of tests/device/gradients/test_gradients.c.
 *
 * Losses are float32 per example, summed in double. With a step h the quotient has an error of about 1e-7 / h
 * from their rounding and of the order of h^2 from curvature; where a relu or a pool changes sides within the
 * step it is off by a share of one example's gradient. Therefore several steps are tried, and one of them has
 * to agree within 1 % of the largest element of the tensor's gradient.
 */
#include "support/networks.h"

#include "base/alloc.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#define EXAMPLES     9
#define MICROBATCHES 3
#define SAMPLES      20 /* elements of a tensor that are looked at */

static const double steps[] = {0x1p-6, 0x1p-8, 0x1p-10, 0x1p-12};
#define STEPS (int)(sizeof steps / sizeof steps[0])

struct subject {
    struct trial trial;
    tr_pass *pass;
    float *values;    /* host copy of the parameters, which are changed and put back */
    float *gradients; /* device, scratch for the statistics of batch norm */
    float *analytic;  /* host, an arena */
};

static void put_parameters(struct subject *subject)
{
    size_t bytes = (size_t)subject->trial.model->arena_floats * sizeof(float);
    must(tr_device_to_device(subject->trial.device, subject->trial.parameters, subject->values, bytes));
    must(tr_device_wait(subject->trial.device));
}

/* The mean loss of the batch with the present host copy. */
static double loss(struct subject *subject)
{
    struct trial *trial = &subject->trial;
    float rows[8 * EXAMPLES];
    put_parameters(subject);
    const struct tr_pass_batch *batch = trial_feed(trial, subject->pass, 0, MICROBATCHES);
    must(tr_pass_forward(subject->pass, batch, trial->parameters, subject->gradients, trial->stride));
    must(tr_pass_loss(subject->pass, batch));
    assert_true(trial->labels <= 8 * EXAMPLES);
    must(tr_device_to_host(trial->device, rows, tr_pass_loss_rows(subject->pass),
                           (size_t)trial->labels * sizeof *rows));
    must(tr_device_wait(trial->device));
    double sum = 0;
    for (int64_t i = 0; i < trial->labels; i++) sum += (double)rows[i];
    return sum / EXAMPLES;
}

static double quotient(struct subject *subject, int64_t index, double step)
{
    float kept = subject->values[index];
    float above = (float)((double)kept + step), below = (float)((double)kept - step);
    subject->values[index] = above;
    double right = loss(subject);
    subject->values[index] = below;
    double left = loss(subject);
    subject->values[index] = kept;
    return (right - left) / ((double)above - (double)below);
}

static double largest(const float *values, int64_t count)
{
    double most = 0;
    for (int64_t i = 0; i < count; i++) most = fmax(most, fabs((double)values[i]));
    return most;
}

static void check_element(struct subject *subject, const char *network, const struct tr_parameter *parameter,
                          int64_t element, double scale)
{
    double analytic = (double)subject->analytic[parameter->offset + element], numeric[STEPS];
    for (int i = 0; i < STEPS; i++) {
        numeric[i] = quotient(subject, parameter->offset + element, steps[i]);
        if (fabs(numeric[i] - analytic) <= 0.01 * scale + 1e-7 / steps[i]) return;
    }
    fail_msg(
        "%s: gradient of %s[%lld] is %g, finite differences are %g, %g, %g, %g (largest of the tensor %g)",
        network, parameter->name, (long long)element, analytic, numeric[0], numeric[1], numeric[2],
        numeric[3], scale);
}

static void check_parameter(struct subject *subject, const char *network,
                            const struct tr_parameter *parameter)
{
    const float *gradient = subject->analytic + parameter->offset;
    double scale = largest(gradient, parameter->count);
    if (!(scale > 1e-4 && scale < 100))
        fail_msg("%s: gradient of %s has largest element %g, no sensible size", network, parameter->name,
                 scale);
    int64_t stride = parameter->count / SAMPLES + 1;
    for (int64_t i = 0; i < parameter->count; i++)
        if (i % stride == 0 || fabs((double)gradient[i]) == scale)
            check_element(subject, network, parameter, i, scale);
}

static void prepare(struct subject *subject, const struct network *network)
{
    struct trial *trial = &subject->trial;
    trial_make(trial, network, "ref", EXAMPLES, MICROBATCHES);
    struct tr_pass_limits limits = trial_limits(trial, true);
    must(tr_pass_create(trial->device, trial->model, &limits, &subject->pass));
    subject->gradients = trial_arenas(trial, 1);
    size_t floats = (size_t)trial->stride;
    subject->values = tr_alloc_zero(floats, sizeof(float));
    subject->analytic = tr_alloc_zero(floats, sizeof(float));
    assert_non_null(subject->values);
    assert_non_null(subject->analytic);
    size_t bytes = (size_t)trial->model->arena_floats * sizeof(float);
    must(tr_device_to_host(trial->device, subject->values, trial->parameters, bytes));
    trial_run(trial, subject->pass, trial_feed(trial, subject->pass, 0, MICROBATCHES), trial->parameters,
              subject->gradients);
    must(tr_device_to_host(trial->device, subject->analytic, subject->gradients, floats * sizeof(float)));
    must(tr_device_wait(trial->device));
}

static void release(struct subject *subject)
{
    tr_device_free(subject->trial.device, subject->gradients);
    tr_pass_destroy(&subject->pass);
    tr_free(subject->values);
    tr_free(subject->analytic);
    trial_release(&subject->trial);
}

static void check_network(const struct network *network)
{
    struct subject subject;
    prepare(&subject, network);
    const struct tr_model *model = subject.trial.model;
    for (int k = 0; k < model->parameter_count; k++)
        if (model->parameters[k].kind != TR_PARAMETER_STATISTIC)
            check_parameter(&subject, network->name, &model->parameters[k]);
    release(&subject);
}

static void test_against_finite_differences(void **state)
{
    (void)state;
    for (int i = 0; i < network_count; i++) check_network(&networks[i]);
}

/* Beside all products of an attention, and between a gelu and what undoes it elsewhere. */
static void test_adapters(void **state)
{
    (void)state;
    static const struct network adapted[] = {
        {"adapters of a language model", "tokens", 7,
         "layers:\n- embedding: {width: 12, name: x}\n- attention: {heads: 3, kv_heads: 1, rotary: 10000}\n"
         "- add: x\n- dense: 20\n- gelu\n- dense: {units: 12, activation: tanh}\n- last\n- dense: 3\n"
         "adapters: {rank: 2, alpha: 3, dropout: 0.2,\n"
         "           on: [attention, attention.query, attention.key, attention.value, dense]}\n"},
        {"adapters of a perceptron", "6", 0,
         "layers:\n- dense: {units: 8, activation: leaky_relu}\n- dense: {units: 8, use_bias: false}\n- "
         "dense: 3\n"
         "adapters: {rank: 3, on: [dense2]}\n"},
    };
    for (int i = 0; i < 2; i++) check_network(&adapted[i]);
}

/* Attention from one text to another, of other lengths, which all kinds of layers read. */
static void test_two_texts(void **state)
{
    (void)state;
    static const struct network both[] = {
        {"a text from another", "two tokens", 7,
         "layers:\n- embedding: {width: 6, from: second, weights: {normal: 0.7}, name: e}\n"
         "- position: {length: 5, weights: {normal: 0.4}, name: x}\n- layer_norm\n- attention: 2\n"
         "- add: {with: x, name: memory}\n"
         "- embedding: {width: 8, from: first, weights: {normal: 0.7}, name: y}\n"
         "- attention: {heads: 2, causal: true}\n- add: {with: y, name: z}\n"
         "- cross_attention: {heads: 2, with: memory}\n- add: {with: z, name: u}\n- rms_norm\n"
         "- cross_attention: {heads: 4, kv_heads: 1, width: 12, use_bias: false, dropout: 0.2, with: "
         "memory}\n"
         "- add: u\n- dense: {units: 6, activation: tanh}\n- dense: 3\n"},
        {"towers of two texts, each attending to the other", "two tokens", 6,
         "layers:\n- embedding: {width: 6, from: first, weights: {normal: 0.7}, name: a}\n"
         "- embedding: {width: 6, from: second, share: a, name: b}\n"
         "- cross_attention: {heads: 2, from: [a, b], name: c}\n"
         "- global_average_pool: {name: one}\n"
         "- cross_attention: {heads: 2, from: [b, a], share: c}\n- gru: {units: 4, name: g}\n"
         "- last: {name: two}\n- conv1d: {filters: 3, kernel: 2, from: g, activation: tanh}\n"
         "- global_max_pool: {name: three}\n- concat: {from: [one, two, three]}\n- dense: 3\n"},
    };
    for (int i = 0; i < 2; i++) check_network(&both[i]);
}

/* The sums behind the gradients are those of the rows. */
static void test_sums_of_loss_and_correct(void **state)
{
    (void)state;
    for (int i = 0; i < network_count; i++) {
        struct subject subject;
        prepare(&subject, &networks[i]);
        const float *sums = subject.analytic + subject.trial.model->arena_floats;
        double mean = loss(&subject);
        if (fabs((double)sums[0] - mean * EXAMPLES) > 1e-5 * mean * EXAMPLES)
            fail_msg("%s: sum of the loss is %g, its rows give %g", networks[i].name, (double)sums[0],
                     mean * EXAMPLES);
        float correct[8 * EXAMPLES], expected = 0;
        int64_t labels = subject.trial.labels;
        must(tr_device_to_host(subject.trial.device, correct, tr_pass_correct_rows(subject.pass),
                               (size_t)labels * sizeof *correct));
        must(tr_device_wait(subject.trial.device));
        for (int64_t k = 0; k < labels; k++) expected += correct[k];
        /* Shares of several answers, and of tokens, are no whole numbers. */
        if (fabsf(sums[1] - expected) > 1e-5f * EXAMPLES || expected < 0 || expected > EXAMPLES)
            fail_msg("%s: %g examples are correct, the rows say %g", networks[i].name, (double)sums[1],
                     (double)expected);
        release(&subject);
    }
}

/* What batch norm hands out in the place of its statistics' gradients: mean and unbiased variance of its
 * input. */
static void test_statistics_of_batch_norm(void **state)
{
    (void)state;
    static const struct network network = {"statistics", "3", 0, "layers:\n- batch_norm\n- dense: 2\n"};
    struct subject subject;
    prepare(&subject, &network);
    const struct tr_model *model = subject.trial.model;
    for (int channel = 0; channel < 3; channel++) {
        double mean = 0, variance = 0;
        for (int m = 0; m < MICROBATCHES; m++) { /* of equal size: EXAMPLES / MICROBATCHES */
            const int n = EXAMPLES / MICROBATCHES;
            double sum = 0, squares = 0;
            for (int r = m * n; r < (m + 1) * n; r++) sum += (double)subject.trial.input[3 * r + channel] / n;
            for (int r = m * n; r < (m + 1) * n; r++)
                squares += pow((double)subject.trial.input[3 * r + channel] - sum, 2);
            mean += sum / MICROBATCHES;
            variance += squares / (n - 1) / MICROBATCHES;
        }
        assert_string_equal(model->parameters[2].name, "batch_norm1.running_mean");
        assert_string_equal(model->parameters[3].name, "batch_norm1.running_var");
        double got_mean = (double)subject.analytic[model->parameters[2].offset + channel];
        double got_variance = (double)subject.analytic[model->parameters[3].offset + channel];
        if (fabs(got_mean - mean) > 1e-5 || fabs(got_variance - variance) > 1e-5)
            fail_msg("channel %d: mean %g and variance %g, computed here %g and %g", channel, got_mean,
                     got_variance, mean, variance);
    }
    release(&subject);
}

/* The networks above would prove nothing about a class that none of them has. */
static void test_every_class_takes_part(void **state)
{
    (void)state;
    networks_have_every_layer();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_class_takes_part),
        cmocka_unit_test(test_against_finite_differences),
        cmocka_unit_test(test_adapters),
        cmocka_unit_test(test_two_texts),
        cmocka_unit_test(test_sums_of_loss_and_correct),
        cmocka_unit_test(test_statistics_of_batch_norm),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
