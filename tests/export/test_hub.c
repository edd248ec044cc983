/* Directories of Hugging Face: the model files that follow from config.json, and what is refused. Numbers are
 * judged by transformers in tests/interop/test_hub.py.
 */
#include "base/alloc.h"
#include "base/fail.h"
#include "data/support.h"
#include "export/hub/hub.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LENGTH(array) ((int)(sizeof(array) / sizeof((array)[0])))

static tr_status read(const char *text, struct tr_hub_config *config)
{
    write_file("config.json", text, strlen(text));
    return tr_hub_read_config(test_directory(), config);
}

#define LLAMA                                                                                                \
    "\"model_type\": \"llama\", \"hidden_size\": 8, \"intermediate_size\": 12, \"num_hidden_layers\": 1, "   \
    "\"num_attention_heads\": 4, \"num_key_value_heads\": 2, \"vocab_size\": 300, "                          \
    "\"max_position_embeddings\": 64, \"rms_norm_eps\": 1e-06, \"hidden_act\": \"silu\""

static void test_llama(void **unused)
{
    static const char wanted[] =
        "# Made by `trireme import`. Set the text to train on, and how.\n"
        "name: \"small\"\n"
        "data:\n"
        "  train: {corpus: {path: \"a.txt\", unit: bpe, tokenizer: \"dir\", ids: 300, window: 64}}\n"
        "layers:\n"
        "- embedding: {width: 8, name: tokens}\n"
        "- rms_norm: {epsilon: 1e-06, name: first_norm0}\n"
        "- attention: {heads: 4, causal: true, kv_heads: 2, rotary: 500000, rotary_factor: 8, "
        "rotary_original: 8192, "
        "rotary_low: 1, rotary_high: 4, use_bias: false, name: attention0}\n"
        "- add: {with: tokens, name: attended0}\n"
        "- rms_norm: {epsilon: 1e-06, name: second_norm0}\n"
        "- dense: {units: 12, use_bias: false, name: gate0}\n"
        "- silu: {name: open0}\n"
        "- dense: {units: 12, use_bias: false, from: second_norm0, name: up0}\n"
        "- multiply: {with: open0, name: gated0}\n"
        "- dense: {units: 8, use_bias: false, name: down0}\n"
        "- add: {with: attended0, name: block0}\n"
        "- rms_norm: {epsilon: 1e-06, name: last_norm}\n"
        "- dense: {units: 300, use_bias: false, name: scores}\n"
        "optimizer: {rule: adamw, rate: 1e-5}\n"
        "train: {batch: 8, steps: 100}\n";
    static const char *const forms[] = {
        "{" LLAMA ", \"rope_theta\": 500000.0, \"rope_scaling\": {\"type\": \"llama3\", \"factor\": 8.0, "
        "\"low_freq_factor\": 1.0, \"high_freq_factor\": 4.0, \"original_max_position_embeddings\": 8192}}",
        "{" LLAMA
        ", \"rope_parameters\": {\"rope_type\": \"llama3\", \"rope_theta\": 500000.0, \"factor\": 8.0, "
        "\"low_freq_factor\": 1.0, \"high_freq_factor\": 4.0, \"original_max_position_embeddings\": 8192}}",
    };
    (void)unused;
    for (int i = 0; i < LENGTH(forms); i++) {
        struct tr_hub_config config;
        char *model;
        if (read(forms[i], &config) != TR_OK) fail_msg("%s", tr_error_message());
        assert_int_equal(tr_hub_model(&config, "small", "a.txt", "dir", 128, &model), TR_OK);
        assert_string_equal(model, wanted);
        tr_free(model);
    }
}

static void test_gpt2(void **unused)
{
    struct tr_hub_config config;
    char *model;
    (void)unused;
    assert_int_equal(
        read("{\"model_type\": \"gpt2\", \"n_embd\": 6, \"n_layer\": 2, \"n_head\": 3, \"vocab_size\": 257, "
             "\"n_positions\": 32, \"n_inner\": null}",
             &config),
        TR_OK);
    assert_int_equal(tr_hub_model(&config, "g", "a.txt", "dir", 128, &model), TR_OK);
    static const char *const parts[] = {
        "window: 32", "position: {length: 32, name: places}",
        "- layer_norm: {epsilon: 1e-05, name: first_norm1}\n- attention: {heads: 3, causal: "
        "true, name: attention1}\n- add: {with: block0, name: attended1}\n",
        "- dense: {units: 24, name: up1}\n- gelu: {approximate: tanh}\n", "- unembedding: tokens\n"};
    for (int i = 0; i < LENGTH(parts); i++)
        if (!strstr(model, parts[i])) fail_msg("no \"%s\" in\n%s", parts[i], model);
    tr_free(model);
}

static const struct {
    const char *text;
    tr_status status;
    const char *part;
} refused[] = {
    {"{\"model_type\": \"bert\"}", TR_EUNSUPPORTED, "known are gpt2, llama, mistral and qwen2"},
    {"{}", TR_EUNSUPPORTED, "model_type"},
    {"{" LLAMA ", \"attention_bias\": true}", TR_EUNSUPPORTED, "attention_bias"},
    {"{" LLAMA ", \"mlp_bias\": true}", TR_EUNSUPPORTED, "mlp_bias"},
    {"{" LLAMA ", \"rope_scaling\": {\"rope_type\": \"yarn\", \"factor\": 2}}", TR_EUNSUPPORTED, "yarn"},
    {"{" LLAMA ", \"rope_scaling\": {\"rope_type\": \"linear\"}}", TR_EFORMAT, "factor"},
    {"{" LLAMA ", \"rope_theta\": -1}", TR_EFORMAT, "rope_theta"},
    {"{" LLAMA ", \"head_dim\": 0}", TR_EFORMAT, "head_dim"},
    {"{\"model_type\": \"gpt2\", \"n_embd\": 7, \"n_layer\": 1, \"n_head\": 3, \"vocab_size\": 9}",
     TR_EFORMAT, "do not fit"},
    {"{\"model_type\": \"gpt2\", \"n_embd\": 6, \"n_layer\": 1, \"n_head\": 3, \"vocab_size\": 9, "
     "\"activation_function\": \"relu\"}",
     TR_EUNSUPPORTED, "activation_function"},
    {"{\"model_type\": \"gpt2\", \"n_layer\": 1}", TR_EFORMAT, "vocab_size"},
    {"[]", TR_EFORMAT, "config.json"},
};

static void test_refused(void **unused)
{
    (void)unused;
    for (int i = 0; i < LENGTH(refused); i++) {
        struct tr_hub_config config;
        const tr_status status = read(refused[i].text, &config);
        if (status != refused[i].status || !strstr(tr_error_message(), refused[i].part))
            fail_msg("case %d: status %d, \"%s\" lacks \"%s\"", i, (int)status, tr_error_message(),
                     refused[i].part);
    }
    assert_false(tr_hub_is_directory("nowhere"));
    assert_true(tr_hub_is_directory(test_directory()));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_llama),
        cmocka_unit_test(test_gpt2),
        cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
