/* Layers that are computed again in backward: the same gradients, whichever layers they are, in less memory.
 */
#include "support/networks.h"

#include "base/alloc.h"
#include "nn/cut.h"
#include "nn/pass/internal.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#define EXAMPLES     9
#define MICROBATCHES 3

/* Gradients of the batch, loss and statistics included, to host memory [stride]. */
static void gradients_of(struct trial *trial, float *out)
{
    struct tr_pass_limits limits = trial_limits(trial, true);
    tr_pass *pass;
    must(tr_pass_create(trial->device, trial->model, &limits, &pass));
    float *arena = trial_arenas(trial, 1);
    /* Twice, so that memory holds what another step has left there. */
    for (int i = 0; i < 2; i++)
        trial_run(trial, pass, trial_feed(trial, pass, 0, MICROBATCHES), trial->parameters, arena);
    must(tr_device_to_host(trial->device, out, arena, (size_t)trial->stride * sizeof *out));
    must(tr_device_wait(trial->device));
    tr_device_free(trial->device, arena);
    tr_pass_destroy(&pass);
}

static void choose(struct tr_model *model, bool all, const bool *layers)
{
    model->recompute = all;
    for (int i = 0; i < model->layer_count; i++) model->layers[i].recompute = layers && layers[i];
}

static int64_t count_again(struct trial *trial)
{
    struct tr_pass_limits limits = trial_limits(trial, true);
    bool again[64] = {0};
    int64_t count = 0;
    assert_true(trial->model->layer_count <= 64);
    must(tr_pass_recomputed(trial->device, trial->model, &limits, again));
    for (int i = 0; i < 64; i++) count += again[i];
    return count;
}

static int64_t compare(struct trial *trial, const char *network, const char *how, int number,
                       const float *wanted, float *got)
{
    const struct tr_model *model = trial->model;
    gradients_of(trial, got);
    for (int i = 0; i < model->parameter_count; i++) {
        const struct tr_parameter *parameter = &model->parameters[i];
        if (memcmp(wanted + parameter->offset, got + parameter->offset,
                   (size_t)parameter->count * sizeof *got) != 0)
            fail_msg("%s, %s %d: the gradient of %s is another one", network, how, number, parameter->name);
    }
    if (memcmp(wanted + model->arena_floats, got + model->arena_floats, TR_PASS_SUMS * sizeof *got) != 0)
        fail_msg("%s, %s %d: another loss", network, how, number);
    return count_again(trial);
}

static void test_same_gradients(void **state)
{
    (void)state;
    int64_t again = 0;
    for (int n = 0; n < network_count; n++)
        for (int ref = 0; ref < 2; ref++) {
            struct trial trial;
            const char *name = networks[n].name;
            trial_make(&trial, &networks[n], ref ? "ref" : "cpu", EXAMPLES, MICROBATCHES);
            const int layers = trial.model->layer_count;
            bool *named = tr_alloc_zero((size_t)layers, sizeof *named);
            float *wanted = tr_alloc((size_t)trial.stride, sizeof *wanted),
                  *got = tr_alloc((size_t)trial.stride, sizeof *got);
            assert_true(named && wanted && got);
            gradients_of(&trial, wanted);
            assert_int_equal(count_again(&trial), 0);
            choose(trial.model, true, NULL);
            again += compare(&trial, name, "as many as save memory", 0, wanted, got);
            for (int i = 0; i < layers; i++) named[i] = true;
            choose(trial.model, false, named);
            again += compare(&trial, name, "all", 0, wanted, got);
            for (int part = 2; part <= 3; part++)
                for (int k = 0; k < part; k++) {
                    for (int i = 0; i < layers; i++) named[i] = i % part != k;
                    choose(trial.model, false, named);
                    again += compare(&trial, name, "not every n-th but", part, wanted, got);
                }
            for (int one = 0; one < layers; one++) {
                for (int i = 0; i < layers; i++) named[i] = i == one || i == one + 1;
                choose(trial.model, false, named);
                again += compare(&trial, name, "two from", one, wanted, got);
            }
            tr_free(named);
            tr_free(wanted);
            tr_free(got);
            trial_release(&trial);
        }
    assert_true(again > 10 * network_count); /* much was computed again */
}

/* Of 16 blocks with three outputs each that backward reads, their ends remain, and some blocks at a time. */
static void test_memory(void **state)
{
    (void)state;
    char text[4096] = "layers:\n- dense: {units: 64, name: x0}\n";
    for (int i = 0; i < 16; i++) {
        char block[256];
        snprintf(block, sizeof block,
                 "- layer_norm\n- dense: {units: 64, activation: tanh}\n- dense: 64\n- add: {with: x%d, "
                 "name: x%d}\n",
                 i, i + 1);
        strcat(text, block);
    }
    strcat(text, "- dense: 3\n");
    struct tr_model *model;
    must(network_build(text, "64", 0, &model));
    const struct tr_pass_limits limits = {.training = true, .examples = 100, .microbatches = 1};
    size_t kept, saved;
    must(tr_pass_memory(NULL, model, &limits, &kept));
    model->recompute = true;
    must(tr_pass_memory(NULL, model, &limits, &saved));
    if (saved * 2 > kept) fail_msg("%zu bytes instead of %zu", saved, kept);
    tr_model_destroy(&model);
}

/* Of a chain of equal layers, groups of the size that takes the least: the ends of n / g groups of g layers
   remain, and what one group makes, which is 2 sqrt(n) with those of sqrt(n). */
static void test_groups_of_the_best_size(void **state)
{
    enum { UNITS = 64, ROWS = 1000 };
    (void)state;
    for (int side = 4; side <= 8; side += 2) {
        const struct tr_pass_limits limits = {.training = true, .examples = ROWS, .microbatches = 1};
        const size_t layer = (size_t)ROWS * UNITS * sizeof(float);
        struct tr_text text = TR_TEXT_INIT;
        struct tr_model *model;
        size_t bytes;
        char *layers;
        tr_text_add(&text, "layers:\n");
        for (int i = 0; i < side * side; i++)
            tr_text_addf(&text, "- dense: {units: %d, activation: tanh}\n", UNITS);
        must(tr_text_finish(&text, &layers));
        must(network_build(layers, "64", 0, &model));
        model->recompute = true;
        must(tr_pass_memory(NULL, model, &limits, &bytes));
        /* and two for gradients, one for the loss */
        if (bytes > (size_t)(2 * side + 3) * layer)
            fail_msg("%d layers take the memory of %.1f", side * side, (double)bytes / (double)layer);
        tr_free(layers);
        tr_model_destroy(&model);
    }
}

/* Where nothing is gained by it, nothing is computed again. */
static void test_never_more(void **state)
{
    (void)state;
    for (int i = 0; i < network_count; i++) {
        const struct tr_pass_limits limits = {
            .training = true, .examples = 7, .tokens = 20, .microbatches = 2};
        struct tr_model *model;
        size_t kept, saved;
        must(network_build(networks[i].text, networks[i].input, networks[i].vocabulary, &model));
        must(tr_pass_memory(NULL, model, &limits, &kept));
        model->recompute = true;
        must(tr_pass_memory(NULL, model, &limits, &saved));
        if (saved > kept) fail_msg("%s: %zu bytes instead of %zu", networks[i].name, saved, kept);
        tr_model_destroy(&model);
    }
}

/* What layers leave to backward: outputs, statistics of every microbatch, the tap of each maximum, mean and
   deviation of each row; and no memory that forward alone needs. A group ends where it has enough. */
static void test_weights(void **state)
{
    (void)state;
    static const struct {
        const char *input, *text;
        int64_t bytes, two; /* of all layers; of the first two */
    } cases[] = {
        {"6x6x2", "layers:\n- batch_norm\n- max_pool: 2\n- flatten\n- layer_norm\n- dense: 3\n",
         12 * 72 * 4 + 3 * (2 + 2) * 4 + 12 * 18 * (4 + 1) + 12 * (18 + 2) * 4 + 12 * 3 * 4,
         12 * 72 * 4 + 3 * (2 + 2) * 4 + 12 * 18 * (4 + 1)},
        {"tokens x 8", "layers:\n- rms_norm\n- tanh\n- first\n- dense: 3\n",
         50 * (8 + 1) * 4 + 50 * 8 * 4 + 12 * 8 * 4 + 12 * 3 * 4, 50 * (8 + 1) * 4 + 50 * 8 * 4},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const struct tr_pass_limits limits = {
            .training = true, .examples = 12, .tokens = 50, .microbatches = 3};
        struct tr_model *model;
        tr_device *device;
        tr_pass *pass;
        int cut[16];
        must(network_build(cases[i].text, cases[i].input, 0, &model));
        must(tr_device_open(&(struct tr_device_choice){.name = "ref"}, &device));
        must(tr_pass_create(device, model, &limits, &pass));
        const int cuts = tr_model_cuts(model, cut);
        assert_int_equal(pass_recompute_in_pieces(pass, cut, cuts, cases[i].two), cases[i].bytes);
        assert_true(pass->layer[0].again && !pass->layer[1].again);
        assert_int_equal(pass_recompute_in_pieces(pass, cut, cuts, cases[i].two + 1), cases[i].bytes);
        assert_true(pass->layer[0].again && pass->layer[1].again);
        tr_pass_destroy(&pass);
        tr_device_destroy(&device);
        tr_model_destroy(&model);
    }
}

/* Passes over the parts of a network, as of a pipeline, in which the last layers of the first part wait. */
static void test_ranges(void **state)
{
    (void)state;
    struct tr_model *model;
    must(network_build(
        "layers:\n- dense: {units: 32, activation: tanh}\n- layer_norm\n- dense: 32\n- tanh\n- dense: 3\n",
        "32", 0, &model));
    int cut[16];
    const int cuts = tr_model_cuts(model, cut);
    assert_true(cuts > 0);
    for (int c = 0; c < cuts; c++) {
        bool again[8] = {0};
        const struct tr_pass_limits limits = {
            .training = true, .examples = 100, .microbatches = 1, .end_layer = cut[c]};
        size_t kept, saved;
        model->recompute = false;
        must(tr_pass_memory(NULL, model, &limits, &kept));
        model->recompute = true;
        must(tr_pass_memory(NULL, model, &limits, &saved));
        must(tr_pass_recomputed(NULL, model, &limits, again));
        assert_true(saved <= kept);
        assert_false(again[cut[c] - 1]); /* it is what the next part takes */
    }
    tr_model_destroy(&model);
}

static void test_unknown_name(void **state)
{
    (void)state;
    struct tr_model *model;
    char *names[] = {"dense1", "dense9"};
    struct tr_string_list list = {.count = 2, .item = names};
    must(network_build("layers:\n- dense: 4\n- dense: 3\n", "5", 0, &model));
    assert_int_equal(tr_model_recompute(model, &list), TR_EINVAL);
    assert_non_null(strstr(tr_error_message(), "dense9"));
    tr_model_destroy(&model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same_gradients),
        cmocka_unit_test(test_memory),
        cmocka_unit_test(test_groups_of_the_best_size),
        cmocka_unit_test(test_never_more),
        cmocka_unit_test(test_weights),
        cmocka_unit_test(test_ranges),
        cmocka_unit_test(test_unknown_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
