/* Going on: a text taken in token by token, or in pieces, gives the bits of the whole text, for every network
 * whose layers can.
 */
#include "support/networks.h"

#include "base/alloc.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#define TOKENS 13

static const struct network more[] = {
    {"learned positions that end before the text", "tokens", 6,
     "layers:\n"
     "- embedding: {width: 6, weights: {normal: 0.7}, name: words}\n"
     "- position: {length: 9, weights: {normal: 0.5}, name: x}\n"
     "- rms_norm\n"
     "- attention: {heads: 2, causal: true, dropout: 0.2}\n"
     "- add: x\n"
     "- lstm: 6\n"
     "- unembedding: words\n"},
    {"shared keys, a window, neighbours that turn", "tokens", 6,
     "layers:\n"
     "- embedding: {width: 8}\n"
     "- attention: {heads: 4, kv_heads: 2, causal: true, window: 3, rotary: 100, rotary_style: pairs}\n"
     "- attention: {heads: 2, kv_heads: 1, causal: true, window: 2, rotary: 10, rotary_factor: 2, "
     "use_output_bias: false}\n"
     "- dense: 6\n"},
    {"rotary positions in two layers", "tokens", 6,
     "layers:\n"
     "- embedding: {width: 8, weights: {normal: 0.7}}\n"
     "- attention: {heads: 2, causal: true, rotary: 100, width: 12}\n"
     "- gelu\n"
     "- attention: {heads: 1, causal: true, rotary: 10000, use_bias: false}\n"
     "- dense: 6\n"},
};
static const struct network open_ended = {"a token that sees those behind it", "tokens", 6,
                                          "layers:\n"
                                          "- embedding: 8\n"
                                          "- attention: 2\n"
                                          "- dense: 6\n"};

/* How a text is taken in. */
static const int pieces[][TOKENS + 1] = {
    {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0},
    {12, 1, 0},
    {4, 1, 6, 2, 0},
    {13, 0},
};

struct subject {
    struct trial trial;
    tr_pass *pass;
    void **memory;
    int32_t *whole; /* device */
};

static void feed(struct subject *s, int64_t first, int64_t count)
{
    int32_t offset[2] = {0, (int32_t)count}, whole[2] = {0, (int32_t)(first + count)};
    tr_device *device = s->trial.device;
    must(tr_device_to_device(device, tr_pass_offset(s->pass), offset, sizeof offset));
    must(tr_device_to_device(device, s->whole, whole, sizeof whole));
    must(tr_device_to_device(device, tr_pass_token(s->pass), s->trial.token + first,
                             (size_t)count * sizeof(int32_t)));
    must(tr_device_wait(device));
}

/* The output of the last `rows` rows that were computed. */
static void fetch(struct subject *s, int64_t computed, int64_t rows, float *out)
{
    int64_t width = tr_shape_count(&s->trial.model->output);
    must(tr_device_to_host(s->trial.device, out, tr_pass_output(s->pass) + (computed - rows) * width,
                           (size_t)(rows * width) * sizeof(float)));
    must(tr_device_wait(s->trial.device));
}

static void prepare(struct subject *s, const struct network *network, const char *device)
{
    void *memory;
    trial_make(&s->trial, network, device, TOKENS, 1);
    const struct tr_model *model = s->trial.model;
    assert_true(s->trial.tokens >= TOKENS);
    struct tr_pass_limits limits = {.examples = 1, .tokens = TOKENS, .microbatches = 1};
    must(tr_pass_create(s->trial.device, model, &limits, &s->pass));
    s->memory = tr_alloc_zero((size_t)model->layer_count, sizeof *s->memory);
    assert_non_null(s->memory);
    for (int i = 0; i < model->layer_count; i++) {
        const struct tr_layer_class *class = model->layers[i].class;
        int64_t bytes = class->memory ? class->memory(&model->layers[i], TOKENS) : 0;
        if (!bytes) continue;
        must(tr_device_alloc(s->trial.device, (size_t)bytes, &s->memory[i]));
        /* NaN: nothing may be read that was not written. */
        memset(s->memory[i], 0xff, (size_t)bytes);
    }
    must(tr_device_alloc(s->trial.device, 2 * sizeof(int32_t), &memory));
    s->whole = memory;
}

static void release(struct subject *s)
{
    for (int i = 0; i < s->trial.model->layer_count; i++) tr_device_free(s->trial.device, s->memory[i]);
    tr_free(s->memory);
    tr_device_free(s->trial.device, s->whole);
    tr_pass_destroy(&s->pass);
    trial_release(&s->trial);
}

static void compare(const struct network *network, const char *device)
{
    struct subject s;
    prepare(&s, network, device);
    const struct tr_model *model = s.trial.model;
    bool tokens = model->output.sequence;
    int64_t width = tr_shape_count(&model->output);
    float *expected = tr_alloc(TOKENS, (size_t)width * sizeof *expected);
    float *got = tr_alloc(TOKENS, (size_t)width * sizeof *got);
    assert_true(expected && got);
    struct tr_pass_batch batch = {.examples = 1, .tokens = TOKENS, .global_examples = 1};
    feed(&s, 0, TOKENS);
    must(tr_pass_forward(s.pass, &batch, s.trial.parameters, NULL, 0));
    fetch(&s, tokens ? TOKENS : 1, tokens ? TOKENS : 1, expected);
    for (size_t way = 0; way < sizeof pieces / sizeof pieces[0]; way++) {
        int64_t past = 0;
        for (int i = 0; pieces[way][i]; i++) {
            int64_t count = pieces[way][i];
            struct tr_layer_past before = {past, TOKENS, s.whole, s.memory};
            batch.tokens = count;
            feed(&s, past, count);
            must(tr_pass_extend(s.pass, &batch, s.trial.parameters, &before));
            fetch(&s, tokens ? count : 1, tokens ? count : 1, got + (tokens ? past * width : 0));
            past += count;
        }
        assert_int_equal(past, TOKENS);
        if (memcmp(expected, got, (size_t)((tokens ? TOKENS : 1) * width) * sizeof *got) != 0)
            fail_msg("%s on %s: way %d of taking in the text gives other bits", network->name, device,
                     (int)way);
    }
    tr_free(expected);
    tr_free(got);
    release(&s);
}

static bool can(const struct network *network)
{
    struct tr_model *model;
    must(network_build(network->text, network->input, network->vocabulary, &model));
    bool extends = model->vocabulary > 0 && tr_model_extends(model);
    tr_model_destroy(&model);
    return extends;
}

static void test_pieces_give_the_bits_of_the_whole(void **state)
{
    (void)state;
    int count = 0;
    for (int i = 0; i < network_count; i++) {
        if (!can(&networks[i])) continue;
        compare(&networks[i], "ref");
        compare(&networks[i], "cpu");
        count++;
    }
    assert_true(count >= 5);
    for (size_t i = 0; i < sizeof more / sizeof more[0]; i++) {
        if (!can(&more[i])) fail_msg("%s: cannot go on", more[i].name);
        compare(&more[i], "ref");
        compare(&more[i], "cpu");
    }
}

/* What would have to be computed again says so. */
static void test_who_cannot(void **state)
{
    (void)state;
    assert_false(can(&open_ended));
    for (int i = 0; i < network_count; i++)
        if (strncmp(networks[i].input, "tokens", 6) != 0) assert_false(can(&networks[i]));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pieces_give_the_bits_of_the_whole),
        cmocka_unit_test(test_who_cannot),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
