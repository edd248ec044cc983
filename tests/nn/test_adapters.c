/* Adapters: their arithmetic, their gradients beside a base that is apart, and what is said about wrong ones.
 */
#include "support/networks.h"

#include "base/alloc.h"
#include "base/numbers/rng.h"
#include "nn/base_numbers.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#define EXAMPLES     9
#define MICROBATCHES 3

static tr_status build(const char *text, const char *input, int64_t vocabulary, bool whole,
                       struct tr_model **out)
{
    tr_config *root;
    must(tr_config_parse(text, strlen(text), "test.yaml", &root));
    struct tr_model_input description = {
        .shape = network_shape(input), .vocabulary = vocabulary, .whole = whole};
    tr_status status = tr_model_build(root, &description, out);
    tr_config_destroy(&root);
    return status;
}

static const struct network language = {
    "language", "tokens", 7,
    "layers:\n"
    "- embedding: {width: 12, name: words}\n"
    "- position: {length: 16, name: x}\n"
    "- layer_norm\n"
    "- attention: {heads: 3, kv_heads: 1, causal: true, rotary: 10000, dropout: 0.1}\n"
    "- add: {with: x, name: y}\n"
    "- rms_norm\n"
    "- dense: {units: 20, activation: tanh}\n"
    "- dense: {units: 12, use_bias: false}\n"
    "- add: y\n"
    "- gru: 12\n"
    "- unembedding: words\n"
    "adapters: {rank: 2, alpha: 3, dropout: 0.2, train: [rms_norm1],\n"
    "           on: [attention, attention.query, attention.value, dense]}\n"};

static const struct tr_parameter *find(const struct tr_parameter *list, int count, const char *name)
{
    for (int i = 0; i < count; i++)
        if (strcmp(list[i].name, name) == 0) return &list[i];
    return NULL;
}

/* ---- gradients ---- */

static void test_base_apart(void **state)
{
    (void)state;
    struct trial whole, apart;
    struct tr_model *model;
    trial_make(&whole, &language, "cpu", EXAMPLES, MICROBATCHES);
    must(build(language.text, language.input, language.vocabulary, false, &model));
    /* What learns has memory of its own, and nothing else has. */
    assert_true(model->base_count > 0);
    assert_int_equal(model->parameter_count + model->base_count, whole.model->parameter_count);
    assert_true(model->arena_floats < whole.model->arena_floats / 2);
    for (int i = 0; i < model->parameter_count; i++)
        assert_true(strstr(model->parameters[i].name, "lora_") ||
                    strstr(model->parameters[i].name, "rms_norm1."));
    const float *place[64];
    assert_true(model->base_count <= 64);
    for (int i = 0; i < model->base_count; i++) {
        const struct tr_parameter *there =
            find(whole.model->parameters, whole.model->parameter_count, model->base[i].name);
        assert_true(there && there->base && !strstr(there->name, "lora_"));
        place[i] = whole.parameters + there->offset;
    }
    must(tr_model_take_base(model, place, NULL, NULL));
    assert_int_equal(strlen(model->base_hash), 64);

    apart = whole;
    apart.model = model;
    apart.stride = (model->arena_floats + TR_PASS_SUMS + 15) / 16 * 16;
    float *parameters = trial_arenas(&apart, 1);
    for (int i = 0; i < model->parameter_count; i++) {
        const struct tr_parameter *own = &model->parameters[i],
                                  *there =
                                      find(whole.model->parameters, whole.model->parameter_count, own->name);
        memcpy(parameters + own->offset, whole.parameters + there->offset,
               (size_t)own->count * sizeof(float));
    }
    for (int recompute = 0; recompute < 2; recompute++) {
        struct trial *trials[] = {&whole, &apart};
        float *gradients[2];
        model->recompute = recompute;
        for (int t = 0; t < 2; t++) {
            struct trial *trial = trials[t];
            struct tr_pass_limits limits = trial_limits(trial, true);
            tr_pass *pass;
            must(tr_pass_create(trial->device, trial->model, &limits, &pass));
            gradients[t] = trial_arenas(trial, 1);
            trial_run(trial, pass, trial_feed(trial, pass, 0, MICROBATCHES),
                      t ? parameters : whole.parameters, gradients[t]);
            tr_pass_destroy(&pass);
        }
        for (int i = 0; i < model->parameter_count; i++) {
            const struct tr_parameter *own = &model->parameters[i],
                                      *there = find(whole.model->parameters, whole.model->parameter_count,
                                                    own->name);
            if (memcmp(gradients[0] + there->offset, gradients[1] + own->offset,
                       (size_t)own->count * sizeof(float)) != 0)
                fail_msg("%s has another gradient beside a base that is apart", own->name);
        }
        for (int t = 0; t < 2; t++) tr_device_free(whole.device, gradients[t]);
    }
    tr_device_free(whole.device, parameters);
    tr_model_destroy(&model);
    trial_release(&whole);
}

/* ---- arithmetic ---- */

static float chain(int64_t count, const float *a, int64_t a_step, const float *b, int64_t b_step)
{
    float sum = 0;
    for (int64_t i = 0; i < count; i++) sum = fmaf(a[i * a_step], b[i * b_step], sum);
    return sum;
}

/* What is dropped of an adapter's input: by numbers of its own, of parameter 2 of layer 0. */
static float dropped(const struct tr_pass_batch *batch, uint32_t example, int64_t i, float x)
{
    const tr_rng_key key = tr_rng_key_make(batch->seed, TR_RNG_DROPOUT);
    uint32_t block[4];
    tr_rng_philox(key, (uint32_t)(i / 4), example, 3, 2 * 65536, block);
    return tr_rng_unit(block[i % 4]) >= 0.5f ? x * 2 : 0;
}

/* y = (x w + b) + ((d(x) a) 1.5) b', every product a chain of its own. */
static void test_formula(void **state)
{
    (void)state;
    static const struct network network = {
        "one layer", "6", 0,
        "layers:\n- dense: 4\nadapters: {rank: 2, alpha: 3, dropout: 0.5}\nloss: mean_squared_error\n"};
    for (int training = 0; training < 2; training++) {
        struct trial trial;
        trial_make(&trial, &network, "cpu", EXAMPLES, 1);
        const struct tr_model *model = trial.model;
        const float *w = trial.parameters + model->parameters[0].offset,
                    *b = trial.parameters + model->parameters[1].offset,
                    *down = trial.parameters + model->parameters[2].offset,
                    *up = trial.parameters + model->parameters[3].offset;
        assert_string_equal(model->parameters[2].name, "dense1.lora_a");
        assert_string_equal(model->parameters[3].name, "dense1.lora_b");
        struct tr_pass_limits limits = trial_limits(&trial, training);
        tr_pass *pass;
        must(tr_pass_create(trial.device, model, &limits, &pass));
        const struct tr_pass_batch *batch = trial_feed(&trial, pass, 0, 1);
        float *gradients = training ? trial_arenas(&trial, 1) : NULL;
        must(tr_pass_forward(pass, batch, trial.parameters, gradients, trial.stride));
        for (int64_t r = 0; r < EXAMPLES; r++) {
            const float *x = trial.input + 6 * r;
            float hidden[2], kept[6];
            for (int i = 0; i < 6; i++) kept[i] = training ? dropped(batch, (uint32_t)r, i, x[i]) : x[i];
            for (int k = 0; k < 2; k++) hidden[k] = chain(6, kept, 1, down + k, 2) * 1.5f;
            for (int o = 0; o < 4; o++) {
                const float wanted = (chain(6, x, 1, w + o, 4) + b[o]) + chain(2, hidden, 1, up + o, 4);
                assert_memory_equal(&tr_pass_output(pass)[4 * r + o], &wanted, sizeof wanted);
            }
        }
        tr_device_free(trial.device, gradients);
        tr_pass_destroy(&pass);
        trial_release(&trial);
    }
}

static void test_first_values(void **state)
{
    (void)state;
    struct tr_model *model;
    must(build(language.text, language.input, language.vocabulary, true, &model));
    float *values = tr_alloc_zero((size_t)model->arena_floats, sizeof *values);
    assert_non_null(values);
    tr_model_initialize(model, 5, 0, 1, values);
    for (int i = 0; i < model->parameter_count; i++) {
        const struct tr_parameter *parameter = &model->parameters[i];
        const bool a = strstr(parameter->name, "lora_a"), b = strstr(parameter->name, "lora_b");
        float most = 0;
        for (int64_t k = 0; k < parameter->count; k++)
            most = fmaxf(most, fabsf(values[parameter->offset + k]));
        const float limit = (float)(1 / sqrt((double)parameter->shape.size[0]));
        if (a) assert_true(most <= limit && most > limit / 2);
        if (b) assert_true(most == 0);
    }
    tr_free(values);
    tr_model_destroy(&model);
}

/* ---- misuse ---- */

static void refuse(const char *layers, const char *adapters, const char *part)
{
    char text[512];
    struct tr_model *model = NULL;
    snprintf(text, sizeof text, "layers: %s\nadapters: %s\n", layers, adapters);
    tr_status status = build(text, "12", 0, false, &model);
    if (status == TR_OK || !strstr(tr_error_message(), part))
        fail_msg("%s: %s", adapters, status == TR_OK ? "is taken" : tr_error_message());
}

static void test_misuse(void **state)
{
    (void)state;
    static const char
        *const two = "[{dense: {units: 8, name: first}}, batch_norm, {dense: {units: 3, name: second}}]",
               *const plain = "[{dense: {units: 8, name: first}}, layer_norm, {dense: 3}]";
    refuse(plain, "{on: [frist]}", "Did you mean \"first\"?");
    refuse(plain, "{on: [layer_norm]}", "which cannot have adapters");
    refuse(plain, "{on: [attention]}", "no layer is called \"attention\"");
    refuse(plain, "{on: [dense.query]}", "no part \"query\"");
    refuse(plain, "{rank: 4}", "rank of at most 3");
    refuse(plain, "{rank: 0}", "rank");
    refuse(plain, "{rank: 2, alpha: 0}", "alpha");
    refuse(plain, "{rank: 2, kind: dora}", "lora");
    refuse(plain, "{rank: 2, train: [head]}", "adapters.train");
    refuse(plain, "{rank: 2, on: [first], train: [first]}", "leave it in one");
    refuse(two, "{rank: 2, on: [first]}", "running statistics");
    refuse("[relu]", "{rank: 2}", "attention or dense");
    refuse(plain, "{rnak: 2}", "rank");
    refuse(plain, "{on: [first], train: [second], rank: much}", "much");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_base_apart),
        cmocka_unit_test(test_formula),
        cmocka_unit_test(test_first_values),
        cmocka_unit_test(test_misuse),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
