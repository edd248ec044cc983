/* Fusions: which layers run as one, that they do so on devices that can, and that no bit of any network
 * depends on it. */
#include "support/networks.h"

#include "base/alloc.h"
#include "device/isas.h"
#include "nn/fusion.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

/* ---- what is fused ---- */

static const struct {
    const char *text;     /* layers on 4x4x2 */
    const char *expected; /* "head-end sum addend" of each fusion */
} plans[] = {
    {"[batch_norm, relu]", "0-1 -1 0;"},
    {"[batch_norm, leaky_relu, batch_norm, tanh]", "0-1 -1 0;"},
    {"[batch_norm, gelu, batch_norm, sigmoid]", ""},
    {"[relu, batch_norm, add: relu1]", "1-2 2 1;"},
    {"[relu, batch_norm, add: {from: [relu1, batch_norm1]}, leaky_relu]", "1-3 2 0;"},
    {"[batch_norm, relu, batch_norm, add: relu1, relu]", "0-1 -1 0;2-4 3 1;"},
    /* What another layer takes as well is not in between. */
    {"[batch_norm, relu, add: batch_norm1]", ""},
    {"[relu, batch_norm, add: relu1, relu, add: add1]", "1-2 2 1;"},
    /* Nor is what comes later, or twice. */
    {"[batch_norm, conv: {filters: 2, kernel: 1, from: input}, add: batch_norm1]", ""},
    {"[batch_norm, add: {from: [batch_norm1, batch_norm1]}]", ""},
    {"[relu, batch_norm, add: {from: [batch_norm1, relu1, input]}]", ""},
    {"[relu, batch_norm, add: relu1, add: input, relu]", "1-2 2 1;"},
    {"[batch_norm, relu, relu]", "0-1 -1 0;"},
    /* The sum with the input of the network. */
    {"[batch_norm, add: input]", "0-1 1 1;"},
    {"[batch_norm, add: {from: [input, batch_norm1]}]", "0-1 1 0;"},
    {"[conv: {filters: 2, kernel: 1, activation: relu}, max_pool: 2]", "0-1 -1 0;"},
    {"[conv: {filters: 2, kernel: 3, padding: same}, max_pool: 3, relu]", "0-1 -1 0;"},
    /* Windows that overlap or stand over the end, gradients that need the output, tiles of Winograd's. */
    {"[conv: {filters: 2, kernel: 1}, max_pool: {size: 2, stride: 1}]", ""},
    {"[conv: {filters: 2, kernel: 2}, max_pool: {size: 2, padding: same}]", ""},
    {"[conv: {filters: 2, kernel: 1, activation: tanh}, max_pool: 2]", ""},
    {"[conv: {filters: 2, kernel: 1, activation: relu, name: a}, max_pool: {size: 1}, add: a]", ""},
    {"[conv: {filters: 2, kernel: 3, padding: same, algorithm: winograd}, max_pool: 2]", ""},
    {"[conv: {filters: 2, kernel: 1}, average_pool: 2]", ""},
    {"[conv: {filters: 2, kernel: 1}, relu, max_pool: 2]", ""},
    /* A gelu whose gradient the layer behind it can apply, which nobody else takes. */
    {"[dense: 3, gelu]", "0-1 -1 0;"},
    {"[dense: 3, gelu: {approximate: tanh}, dense: 3, gelu]", "0-1 -1 0;2-3 -1 0;"},
    {"[dense: 3, gelu, relu]", ""},
    {"[dense: 3, gelu, dense: 3, add: gelu1]", ""},
    {"[dense: 3, gelu, add: dense1]", ""},
    {"[dense: {units: 3, activation: relu}, gelu]", ""},
    {"[dense: 3, relu]", ""},
};

static void describe(const struct tr_model *model, int first, int limit, char *text, size_t size)
{
    size_t used = 0;
    text[0] = 0;
    for (int i = first; i < limit;) {
        const struct tr_fusion at = tr_fusion_at(model, NULL, i, limit);
        assert_int_equal(at.head, i);
        assert_in_range(at.end, i, limit - 1);
        if (tr_fusion_joins(&at))
            used += (size_t)snprintf(text + used, size - used, "%d-%d %d %d;", at.head, at.end, at.sum,
                                     at.addend);
        i = at.end + 1;
    }
}

static void test_plans(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof plans / sizeof plans[0]; i++) {
        char text[512], found[128];
        struct tr_model *model;
        snprintf(text, sizeof text, "layers: %.*s, dense: 2]", (int)strlen(plans[i].text) - 1, plans[i].text);
        must(network_build(text, "4x4x2", 0, &model));
        describe(model, 0, model->layer_count, found, sizeof found);
        if (strcmp(found, plans[i].expected) != 0)
            fail_msg("%s: fusions are \"%s\", not \"%s\"", plans[i].text, found, plans[i].expected);
        tr_model_destroy(&model);
    }
}

/* A range of layers has the fusions that lie within it. */
static void test_ranges(void **state)
{
    char found[128];
    struct tr_model *model;
    (void)state;
    must(network_build("layers: [relu, batch_norm, add: relu1, relu, dense: 2]", "4x4x2", 0, &model));
    describe(model, 1, 4, found, sizeof found);
    assert_string_equal(found, "1-3 2 1;");
    describe(model, 1, 3, found, sizeof found);
    assert_string_equal(found, "1-2 2 1;");
    describe(model, 1, 2, found, sizeof found);
    assert_string_equal(found, "");
    describe(model, 2, 4, found, sizeof found);
    assert_string_equal(found, "");
    tr_model_destroy(&model);
    /* What applies the gradient of a gelu is in the range, too. */
    must(network_build("layers: [dense: 3, gelu, dense: 2]", "4x4x2", 0, &model));
    describe(model, 0, 3, found, sizeof found);
    assert_string_equal(found, "0-1 -1 0;");
    describe(model, 0, 2, found, sizeof found);
    assert_string_equal(found, "");
    tr_model_destroy(&model);
}

/* ---- the same bits ---- */

static int calls; /* of fused operations */
static const struct tr_device_class *counted;

#define FUSED(X)                                                                                             \
    X(batch_norm_activation_forward)                                                                         \
    X(batch_norm_activation_backward)                                                                        \
    X(winograd_backward)                                                                                     \
    X(conv_pool_forward)                                                                                     \
    X(conv_pool_backward_data)                                                                               \
    X(conv_pool_backward_weights)                                                                            \
    X(dense_gelu_forward)                                                                                    \
    X(dense_gelu_backward_data)
#define COUNT(op)                                                                                            \
    static tr_status count_##op(tr_device *device, const struct tr_op_##op *a)                               \
    {                                                                                                        \
        calls++;                                                                                             \
        return counted->op(device, a);                                                                       \
    }
FUSED(COUNT)
#undef COUNT

static tr_status look(void *user, const struct tr_layer *layer, const float *output, int64_t count)
{
    (void)user;
    (void)layer;
    (void)output;
    (void)count;
    return TR_OK;
}

/* The gradients of a network, on a device with the fused operations or without, with outputs watched or not;
   on the host, to be freed. */
static float *gradients_of(const struct network *network, const char *device, const char *isa, bool fused,
                           bool observed)
{
    struct trial trial;
    tr_pass *pass;
    trial_make(&trial, network, device, 11, 4);
    tr_device *own = trial.device;
    must(tr_device_create(device, 2, isa, &trial.device));
    const struct tr_device_class *class = trial.device->class;
    struct tr_device_class changed = *class;
    counted = class;
#define CHANGE(op) changed.op = fused ? count_##op : NULL;
    FUSED(CHANGE)
#undef CHANGE
    trial.device->class = &changed;
    struct tr_pass_limits limits = trial_limits(&trial, true);
    must(tr_pass_create(trial.device, trial.model, &limits, &pass));
    if (observed) tr_pass_observe(pass, look, NULL);
    float *arena = trial_arenas(&trial, 1), *host = tr_alloc((size_t)trial.stride, sizeof *host);
    assert_non_null(host);
    trial_run(&trial, pass, trial_feed(&trial, pass, 0, trial.microbatches), trial.parameters, arena);
    must(tr_device_to_host(trial.device, host, arena, (size_t)trial.stride * sizeof *host));
    must(tr_device_wait(trial.device));
    tr_device_free(trial.device, arena);
    tr_pass_destroy(&pass);
    trial.device->class = class;
    tr_device_destroy(&trial.device);
    trial.device = own;
    trial_release(&trial);
    return host;
}

static void check_equal(const struct network *network, const char *device, const char *isa, size_t floats,
                        const char *way, const float *parts, const float *whole)
{
    for (size_t i = 0; i < floats; i++)
        if (memcmp(&parts[i], &whole[i], sizeof parts[i]) != 0)
            fail_msg("%s, %s %s%s: float %zu of the gradient is %a, by parts %a", network->name, device, isa,
                     way, i, (double)whole[i], (double)parts[i]);
}

static void compare(const struct network *network, const char *device, const char *isa)
{
    struct tr_model *model;
    int expected = 0;
    must(network_build(network->text, network->input, network->vocabulary, &model));
    for (int i = 0, next = 0; i < model->layer_count; i++) {
        const struct tr_layer *layer = &model->layers[i];
        /* Both gradients of a convolution by Winograd's algorithm are one operation, in one layer. */
        if (layer->algorithm && strcmp(layer->algorithm, "winograd") == 0) expected += layer->input[0] >= 0;
        if (i < next) continue;
        const struct tr_fusion fusion = tr_fusion_at(model, NULL, i, model->layer_count);
        next = fusion.end + 1;
        if (!tr_fusion_joins(&fusion)) continue;
        /* A convolution has two gradients, but for the first layer's input. */
        expected += strcmp(layer->class->name, "conv") == 0 && layer->input[0] >= 0 ? 3 : 2;
    }
    size_t floats = (size_t)model->arena_floats;
    tr_model_destroy(&model);
    if (expected == 0) return;
    calls = 0;
    float *parts = gradients_of(network, device, isa, false, false);
    assert_int_equal(calls, 0);
    float *whole = gradients_of(network, device, isa, true, false);
    assert_int_equal(calls, expected);
    check_equal(network, device, isa, floats, "", parts, whole);
    tr_free(whole);
    whole = gradients_of(network, device, isa, true, true);
    check_equal(network, device, isa, floats, ", watched", parts, whole);
    tr_free(parts);
    tr_free(whole);
}

static void test_bits(void **state)
{
    static const char *const isas[] = {TR_ISAS(TR_ISA_NAME)};
    (void)state;
    for (int n = 0; n < network_count; n++) {
        compare(&networks[n], "ref", "");
        for (size_t i = 0; i < sizeof isas / sizeof isas[0]; i++) {
            tr_device *device;
            if (tr_device_create("cpu", 1, isas[i], &device) != TR_OK) continue;
            tr_device_destroy(&device);
            compare(&networks[n], "cpu", isas[i]);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_plans),
        cmocka_unit_test(test_ranges),
        cmocka_unit_test(test_bits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
