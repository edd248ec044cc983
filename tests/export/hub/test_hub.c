/* Directories of Hugging Face: the model files that follow from config.json, and what is refused. Numbers are
 * judged by transformers in tests/interop/test_hub.py.
 */
#include "base/alloc.h"
#include "base/fail.h"
#include "base/numbers/half.h"
#include "data/support.h"
#include "export/hub/files.h"
#include "export/hub/match.h"
#include "export/hub/outgoing.h"
#include "io/safetensors.h"
#include "refuse.h"

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
        "rotary_low: 1, rotary_high: 4, context: 64, use_bias: false, name: attention0}\n"
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
        ("- layer_norm: {epsilon: 1e-05, name: first_norm1}\n- attention: {heads: 3, causal: "
         "true, name: attention1}\n- add: {with: block0, name: attended1}\n"),
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
    {"{\"model_type\": \"t5\"}", TR_EUNSUPPORTED, "known are gpt2, llama, mistral, qwen2, bert"},
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

#define BERT                                                                                                 \
    "\"model_type\": \"bert\", \"hidden_size\": 8, \"intermediate_size\": 12, \"num_hidden_layers\": 1, "    \
    "\"num_attention_heads\": 2, \"vocab_size\": 300, \"max_position_embeddings\": 64, "

static void test_encoders(void **unused)
{
    (void)unused;
    static const char begins[] =
        "# Made by `trireme import`. Set the texts to train on, and how.\n"
        "name: \"small\"\n"
        "data:\n"
        "  train: {text: {path: \"a.tsv\", unit: ids, ids: 300, classes: %d%s, max_tokens: %d}}\n"
        "layers:\n"
        "- embedding: {width: 8, name: tokens}\n"
        "- position: {length: %d, name: places}\n"
        "- layer_norm: {epsilon: 1e-12, name: begun}\n"
        "- attention: {heads: 2, name: attention0}\n"
        "- add: {with: begun}\n"
        "- layer_norm: {epsilon: 1e-12, name: attended0}\n"
        "- dense: {units: 12, name: up0}\n"
        "- gelu: {approximate: none}\n"
        "- dense: {units: 8, name: down0}\n"
        "- add: {with: attended0}\n"
        "- layer_norm: {epsilon: 1e-12, name: block0}\n"
        "%s"
        "- dense: {units: %d, name: classes}\n"
        "optimizer: {rule: adamw, rate: 2e-5}\n"
        "train: {batch: 16, epochs: 3}\n";
    static const char pooled[] = "- first\n- dense: {units: 8, activation: tanh, name: pooled}\n";
    static const struct {
        const char *text, *tags, *pooled;
        int classes, context, skipped;
        bool begins;
    } cases[] = {
        {"{" BERT "\"architectures\": [\"BertForSequenceClassification\"], \"id2label\": {\"0\": \"a\", "
         "\"1\": \"b\", \"2\": \"c\"}}",
         "", pooled, 3, 64, 0, false},
        {"{" BERT "\"architectures\": [\"BertForMaskedLM\"]}", "", pooled, 2, 64, 0, true},
        {"{" BERT "\"architectures\": [\"BertForTokenClassification\"], \"num_labels\": 5}", ", tags: true",
         "", 5, 64, 0, false},
        {"{\"model_type\": \"roberta\", \"hidden_size\": 8, \"intermediate_size\": 12, "
         "\"num_hidden_layers\": 1, "
         "\"num_attention_heads\": 2, \"vocab_size\": 300, \"max_position_embeddings\": 66, "
         "\"architectures\": "
         "[\"RobertaForSequenceClassification\"]}",
         "", pooled, 2, 64, 2, false},
    };
    for (int i = 0; i < LENGTH(cases); i++) {
        struct tr_hub_config config;
        char *model, wanted[2048];
        assert_int_equal(read(cases[i].text, &config), TR_OK);
        assert_int_equal(config.skipped, cases[i].skipped);
        assert_int_equal(config.begins, cases[i].begins);
        assert_int_equal(tr_hub_model(&config, "small", "a.tsv", "dir", 64, &model), TR_OK);
        snprintf(wanted, sizeof wanted, begins, cases[i].classes, cases[i].tags, cases[i].context,
                 cases[i].context, cases[i].pooled, cases[i].classes);
        assert_string_equal(model, wanted);
        tr_free(model);
    }
    static const char *const others[][2] = {
        {"{" BERT "\"architectures\": [\"BertForQuestionAnswering\"]}", "BertForQuestionAnswering"},
        {"{" BERT "\"architectures\": [\"RobertaModel\"]}", "no network of this model_type"},
        {"{" BERT "\"architectures\": []}", "no network of this model_type"},
        {"{" BERT "\"architectures\": [\"BertModel\"], \"hidden_act\": \"relu\"}", "hidden_act"},
        {"{" BERT "\"architectures\": [\"BertModel\"], \"position_embedding_type\": \"relative_key\"}",
         "relative_key"},
        {"{" BERT "\"architectures\": [\"BertModel\"], \"is_decoder\": true}", "is_decoder"},
        {"{" BERT "\"architectures\": [\"BertForSequenceClassification\"], \"num_labels\": 1}",
         "fewer than two"},
        {"{" BERT "\"architectures\": [\"BertModel\"], \"problem_type\": \"regression\"}", "regression"},
    };
    for (int i = 0; i < LENGTH(others); i++) {
        struct tr_hub_config config;
        if (read(others[i][0], &config) == TR_OK) fail_msg("%s is read", others[i][0]);
        if (!strstr(tr_error_message(), others[i][1])) fail_msg("%s: %s", others[i][0], tr_error_message());
    }
}

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
    static const char *const unfit[] = {
        "{\"model_type\": \"llama\", \"hidden_size\": 8, \"intermediate_size\": 12, \"num_hidden_layers\": "
        "1, "
        "\"num_attention_heads\": 4, \"num_key_value_heads\": 3, \"vocab_size\": 30}",
        "{\"model_type\": \"llama\", \"hidden_size\": 3, \"intermediate_size\": 12, \"num_hidden_layers\": "
        "1, "
        "\"num_attention_heads\": 4, \"vocab_size\": 30, \"head_dim\": null}",
    };
    for (int i = 0; i < LENGTH(unfit); i++) {
        struct tr_hub_config config;
        assert_int_equal(read(unfit[i], &config), TR_EFORMAT);
    }
    assert_false(tr_hub_is_directory("nowhere"));
    assert_true(tr_hub_is_directory(test_directory()));
}

/* Windows of all layers are known, those of some are not; and what is switched off is none. */
static void test_windows(void **unused)
{
#define OF(kind, rest)                                                                                       \
    "{\"model_type\": \"" kind                                                                               \
    "\", \"hidden_size\": 8, \"intermediate_size\": 12, \"num_hidden_layers\": 1, "                          \
    "\"num_attention_heads\": 4, \"vocab_size\": 30, " rest "}"
    static const struct {
        const char *text;
        int window; /* -1: it is refused */
    } cases[] = {
        {OF("mistral", "\"sliding_window\": 5"), 5},
        {OF("mistral", "\"sliding_window\": null"), 0},
        {OF("qwen2", "\"use_sliding_window\": false, \"sliding_window\": 5"), 0},
        {OF("qwen2", "\"use_sliding_window\": true, \"sliding_window\": null"), 0},
        {OF("qwen2", "\"use_sliding_window\": true, \"sliding_window\": 5"), -1},
        {OF("llama", "\"sliding_window\": 5"), 0},
    };
    (void)unused;
    for (int i = 0; i < LENGTH(cases); i++) {
        struct tr_hub_config config;
        const tr_status status = read(cases[i].text, &config);
        if (status != (cases[i].window < 0 ? TR_EUNSUPPORTED : TR_OK))
            fail_msg("%s: %d", cases[i].text, (int)status);
        if (status == TR_OK) assert_int_equal(config.window, cases[i].window);
    }
}

/* RoBERTa's places begin behind the number of the padding token. */
static void test_places(void **unused)
{
#define PLACES(padding, count)                                                                               \
    "{\"model_type\": \"roberta\", \"hidden_size\": 8, \"intermediate_size\": 12, \"num_hidden_layers\": "   \
    "1, "                                                                                                    \
    "\"num_attention_heads\": 2, \"vocab_size\": 300, \"architectures\": [\"RobertaModel\"], " padding       \
    "\"max_position_embeddings\": " count "}"
    static const struct {
        const char *text;
        int skipped, context; /* 0: it is refused */
    } cases[] = {
        {PLACES("", "10"), 2, 8},
        {PLACES("\"pad_token_id\": null, ", "10"), 2, 8},
        {PLACES("\"pad_token_id\": 0, ", "10"), 1, 9},
        {PLACES("\"pad_token_id\": 8, ", "10"), 9, 1},
        {PLACES("\"pad_token_id\": 9, ", "10"), 0, 0},
    };
    (void)unused;
    for (int i = 0; i < LENGTH(cases); i++) {
        struct tr_hub_config config;
        const tr_status status = read(cases[i].text, &config);
        if (status != (cases[i].context > 0 ? TR_OK : TR_EFORMAT))
            fail_msg("%s: %d", cases[i].text, (int)status);
        if (status != TR_OK) continue;
        assert_int_equal(config.skipped, cases[i].skipped);
        assert_int_equal(config.context, cases[i].context);
    }
}

/* ---- out ---- */

static struct tr_model *build(const char *text, int64_t vocabulary)
{
    const struct tr_model_input input = {.shape = {0, {0}, true}, .vocabulary = vocabulary};
    tr_config *root = NULL;
    struct tr_model *model = NULL;
    if (tr_config_parse(text, strlen(text), "model", &root) != TR_OK ||
        tr_model_build(root, &input, &model) != TR_OK)
        fail_msg("%s", tr_error_message());
    tr_config_destroy(&root);
    return model;
}

static const char *const known[] = {
    "{" LLAMA ", \"rope_theta\": 500000.0, \"rope_scaling\": {\"type\": \"llama3\", \"factor\": 8.0, "
    "\"low_freq_factor\": 1.0, \"high_freq_factor\": 4.0, \"original_max_position_embeddings\": 8192}}",
    "{" LLAMA ", \"rope_scaling\": {\"rope_type\": \"linear\", \"factor\": 2.5}, \"head_dim\": 6, "
    "\"tie_word_embeddings\": true}",
    "{" LLAMA ", \"rope_scaling\": {\"rope_type\": \"linear\", \"factor\": 1.5}}",
    "{\"model_type\": \"qwen2\", \"hidden_size\": 8, \"intermediate_size\": 12, \"num_hidden_layers\": 2, "
    "\"num_attention_heads\": 4, \"vocab_size\": 30, \"rms_norm_eps\": 1e-5}",
    "{\"model_type\": \"mistral\", \"hidden_size\": 8, \"intermediate_size\": 12, \"num_hidden_layers\": 1, "
    "\"num_attention_heads\": 2, \"vocab_size\": 30, \"sliding_window\": 7, \"max_position_embeddings\": 11}",
    "{\"model_type\": \"gpt2\", \"n_embd\": 6, \"n_layer\": 2, \"n_head\": 3, \"vocab_size\": 257, "
    "\"n_positions\": 32, \"n_inner\": 7}",
    "{\"model_type\": \"gpt2\", \"n_embd\": 6, \"n_layer\": 1, \"n_head\": 3, \"vocab_size\": 257, "
    "\"activation_function\": \"gelu\", \"tie_word_embeddings\": false}",
};

static void assert_same(const struct tr_hub_config *a, const struct tr_hub_config *b)
{
    assert_int_equal(a->kind, b->kind);
    assert_true(a->width == b->width && a->inner == b->inner && a->layers == b->layers);
    assert_true(a->heads == b->heads && a->kv_heads == b->kv_heads && a->head_size == b->head_size);
    assert_true(a->context == b->context && a->vocabulary == b->vocabulary && a->window == b->window);
    assert_true(a->epsilon == b->epsilon && a->rotary == b->rotary && a->factor == b->factor);
    assert_true(a->original == b->original && a->low == b->low && a->high == b->high);
    assert_true(a->tied == b->tied && a->bias == b->bias && a->exact_gelu == b->exact_gelu);
}

/* What a configuration says is found again in the network that it makes, and what is written says the same.
 */
static void test_again(void **unused)
{
    (void)unused;
    for (int i = 0; i < LENGTH(known); i++) {
        struct tr_hub_config config, again;
        struct tr_hub_match match;
        char *text;
        if (read(known[i], &config) != TR_OK) fail_msg("%s", tr_error_message());
        assert_int_equal(tr_hub_model(&config, "m", "a", "b", 16, &text), TR_OK);
        struct tr_model *model = build(text, config.vocabulary);
        tr_free(text);
        if (tr_hub_match(model, 5, &match) != TR_OK) fail_msg("case %d: %s", i, tr_error_message());
        assert_same(&match.config, &config);
        for (int k = 0; k < model->layer_count; k++) assert_int_equal(match.layer[k], k);
        assert_int_equal(tr_hub_write_config(&match.config, 3, false, &text), TR_OK);
        if (read(text, &again) != TR_OK) fail_msg("%s", tr_error_message());
        assert_same(&again, &config);
        tr_free(text);
        tr_hub_match_release(&match);
        tr_model_destroy(&model);
    }
}

#define FIRST "layers: [{embedding: {width: 6, name: t}}, {position: {length: 9, name: p}}, "
#define BLOCK                                                                                                \
    "layer_norm, {attention: {heads: 2, causal: true}}, {add: {with: p, name: a}}, layer_norm, {dense: 8}, "
#define SECOND "{gelu: {approximate: tanh}}, {dense: 6}, {add: a}, layer_norm, "

static const struct {
    const char *text, *part;
} others[] = {
    {FIRST BLOCK SECOND "{unembedding: t}, {dense: 9}]", "has dense there (\"scores\")"},
    {FIRST BLOCK "relu, {dense: 6}, {add: a}, layer_norm, {unembedding: t}]",
     "\"relu1\" is a relu; a network like gpt2 has gelu there (\"gelu1\")"},
    {FIRST BLOCK "{gelu: {approximate: tanh}}, {dense: 6}, {add: p}, layer_norm, {unembedding: t}]",
     "takes other layers than \"block0\", its counterpart in a network like gpt2: there it is a"},
    {FIRST "layer_norm, {attention: {heads: 2}}, {add: {with: p, name: a}}, layer_norm, {dense: 8}, " SECOND
           "{unembedding: t}]",
     "`causal` is not that of the attention"},
    {FIRST "layer_norm, {attention: {heads: 3, causal: true, rotary: 100}}, {add: {with: p, name: a}}, "
           "layer_norm, {dense: 8}, " SECOND "{unembedding: t}]",
     "`rotary` is not that"},
    {FIRST BLOCK SECOND "{dense: 30}]", "`use_bias` is not that of the dense"},
    {FIRST BLOCK "{gelu: {approximate: tanh}}, {dense: 6}, {add: a}, {unembedding: t}]", "layer_norm there"},
    {FIRST BLOCK "{gelu: {approximate: tanh}}, {dense: 6}, {add: a}]",
     "ends where one like gpt2 has a layer_norm"},
    {"layers: [{embedding: 6}, {lstm: 4}, {dense: 30}]",
     "the network has no `attention`; such a directory holds language models like GPT-2, Llama, Mistral and "
     "Qwen2, "
     "from `embedding` to `unembedding` or `dense`"},
    {"layers: [{embedding: 6}, {attention: {heads: 3, causal: true, rotary: 10}}, {dense: 30}]",
     "the network has no `rms_norm`; such a directory"},
    {FIRST "{attention: {heads: 2, causal: true}}, {dense: 30}]", "the network has no `layer_norm`; such"},
    {FIRST "layer_norm, {attention: {heads: 2, kv_heads: 1, causal: true}}, {add: {with: p, name: a}}, "
           "layer_norm, {dense: 8}, " SECOND "{unembedding: t}]",
     "`kv_heads` is not that"},
    {FIRST "layer_norm, {attention: {heads: 2, width: 4, causal: true}}, {add: {with: p, name: a}}, "
           "layer_norm, {dense: 8}, " SECOND "{unembedding: t}]",
     "`width` is not that"},
    {FIRST "layer_norm, {attention: {heads: 4, width: 4, causal: true}}, {add: {with: p, name: a}}, "
           "layer_norm, {dense: 8}, " SECOND "{unembedding: t}]",
     "4 heads do not divide the 6 numbers"},
    {"layers: [{embedding: {width: 6, name: t}}, rms_norm, {attention: {heads: 3, causal: true}}]",
     "has no `rotary` positions"},
    {"layers: [{embedding: {width: 6, name: t}}, rms_norm, {attention: {heads: 3, causal: true, rotary: 9, "
     "window: 3}}]",
     "has `window` and biases"},
};

static void test_others(void **unused)
{
    static const char dropped[] = FIRST "{dropout: 0.5}, " BLOCK "{gelu: {approximate: tanh}}, {dense: 6}, "
                                        "{dropout: 0.1}, {add: a}, layer_norm, {unembedding: t}]";
    struct tr_hub_match match;
    (void)unused;
    for (int i = 0; i < LENGTH(others); i++) {
        struct tr_model *model = build(others[i].text, 30);
        const tr_status status = tr_hub_match(model, 5, &match);
        if (status != TR_EUNSUPPORTED || !strstr(tr_error_message(), others[i].part))
            fail_msg("case %d: status %d, \"%s\" lacks \"%s\"", i, (int)status, tr_error_message(),
                     others[i].part);
        tr_hub_match_release(&match);
        tr_model_destroy(&model);
    }
    struct tr_model *model = build(dropped, 30);
    if (tr_hub_match(model, 5, &match) != TR_OK) fail_msg("%s", tr_error_message());
    tr_hub_match_release(&match);
    tr_model_destroy(&model);
}

/* ---- several files ---- */

static void test_files(void **unused)
{
    static const struct {
        const char *index, *part;
    } damaged[] = {
        {"{}", "weight_map"},
        {"{\"weight_map\": {\"a\": \"one.safetensors\"}", "model.safetensors.index.json:1:"},
        {"{\"weight_map\": {\"a\": \"..\"}}", "which is no file of the directory"},
        {"{\"weight_map\": {\"a\": 3}}", "it takes the name of a file"},
        {"{\"weight_map\": {\"a\": \"../a.safetensors\"}}", "which is no file of the directory"},
        {"{\"weight_map\": {\"a\": \"\"}}", "which is no file of the directory"},
        {"{\"weight_map\": {\"a\": \"nowhere\"}}", "nowhere"},
    };
    static const char index[] = "{\"weight_map\": {\"a\": \"one.safetensors\", \"b\": \"two.safetensors\", "
                                "\"lost\": \"two.safetensors\"}}";
    static const char *const names[] = {"one.safetensors", "two.safetensors"};
    float value = 1;
    struct tr_hub_files *files;
    tr_safetensors *file = NULL;
    (void)unused;
    for (int i = 0; i < 2; i++) {
        const struct tr_stored_tensor tensor = {i ? "b" : "a", TR_DTYPE_F32, 1, {1}, &value};
        char path[4096];
        snprintf(path, sizeof path, "%s/%s", test_directory(), names[i]);
        assert_int_equal(tr_safetensors_replace(NULL, path, &tensor, 1, NULL, 0), TR_OK);
    }
    for (int i = 0; i < LENGTH(damaged); i++) {
        write_file("model.safetensors.index.json", damaged[i].index, strlen(damaged[i].index));
        assert_int_not_equal(tr_hub_files_open(test_directory(), &files), TR_OK);
        assert_null(files);
        if (!strstr(tr_error_message(), damaged[i].part)) fail_msg("\"%s\"", tr_error_message());
    }
    write_file("model.safetensors.index.json", index, strlen(index));
    if (tr_hub_files_open(test_directory(), &files) != TR_OK) fail_msg("%s", tr_error_message());
    for (int i = 0; i < 2; i++) {
        const struct tr_safetensors_entry *entry = tr_hub_files_find(files, i ? "b" : "a", &file);
        assert_non_null(entry);
        assert_non_null(strstr(tr_safetensors_path(file), names[i]));
    }
    assert_null(tr_hub_files_find(files, "lost", &file));
    assert_null(tr_hub_files_find(files, "none", &file));
    tr_hub_files_close(&files);
}

/* ---- weights ---- */

enum { WIDTH = 2, IDS = 3, PLACES = 4, INNER = 5, HALVES = 64 };

/* The tensors of a GPT-2 of one block, as its library names and shapes them; matrices are [in][out]. */
static const struct {
    const char *name;
    int rank, rows, columns;
} gpt2_tensors[] = {
    {"transformer.wte.weight", 2, IDS, WIDTH},
    {"transformer.wpe.weight", 2, PLACES, WIDTH},
    {"transformer.h.0.ln_1.weight", 1, WIDTH, 1},
    {"transformer.h.0.ln_1.bias", 1, WIDTH, 1},
    {"transformer.h.0.attn.c_attn.weight", 2, WIDTH, 3 * WIDTH},
    {"transformer.h.0.attn.c_attn.bias", 1, 3 * WIDTH, 1},
    {"transformer.h.0.attn.c_proj.weight", 2, WIDTH, WIDTH},
    {"transformer.h.0.attn.c_proj.bias", 1, WIDTH, 1},
    {"transformer.h.0.ln_2.weight", 1, WIDTH, 1},
    {"transformer.h.0.ln_2.bias", 1, WIDTH, 1},
    {"transformer.h.0.mlp.c_fc.weight", 2, WIDTH, INNER},
    {"transformer.h.0.mlp.c_fc.bias", 1, INNER, 1},
    {"transformer.h.0.mlp.c_proj.weight", 2, INNER, WIDTH},
    {"transformer.h.0.mlp.c_proj.bias", 1, WIDTH, 1},
    {"transformer.ln_f.weight", 1, WIDTH, 1},
    {"transformer.ln_f.bias", 1, WIDTH, 1},
};

/* Number k of tensor t. */
static float number_of(int t, int k)
{
    return (float)(t * 100 + k);
}

/* Float16 has all of these exactly. */
static void write_halves(void)
{
    static uint16_t halves[LENGTH(gpt2_tensors)][HALVES];
    struct tr_stored_tensor tensors[LENGTH(gpt2_tensors)];
    for (int t = 0; t < LENGTH(gpt2_tensors); t++) {
        for (int k = 0; k < HALVES; k++) halves[t][k] = tr_half_from_float(number_of(t, k));
        tensors[t] = (struct tr_stored_tensor){gpt2_tensors[t].name,
                                               TR_DTYPE_F16,
                                               gpt2_tensors[t].rank,
                                               {gpt2_tensors[t].rows, gpt2_tensors[t].columns},
                                               halves[t]};
    }
    assert_int_equal(
        tr_safetensors_replace(NULL, test_path("model.safetensors"), tensors, LENGTH(gpt2_tensors), NULL, 0),
        TR_OK);
}

static void expect_tensor(tr_safetensors *file, const char *name, int t, bool across)
{
    float values[HALVES];
    const int rows = gpt2_tensors[t].rows, columns = gpt2_tensors[t].columns;
    const struct tr_safetensors_entry *entry = tr_safetensors_find(file, name);
    assert_non_null(entry);
    assert_int_equal(entry->tensor.dtype, TR_DTYPE_F32);
    assert_int_equal(entry->tensor.shape[0], across ? columns : rows);
    assert_int_equal(tr_safetensors_read(file, entry, values, NULL), TR_OK);
    for (int i = 0; i < rows; i++)
        for (int k = 0; k < columns; k++)
            assert_true(values[across ? k * rows + i : i * columns + k] == number_of(t, i * columns + k));
}

/* Every number of 16 bits comes to its place in 32; and where there is no memory, nothing stays behind. */
static void test_weights(void **unused)
{
    struct tr_hub_config config;
    tr_safetensors *file;
    void *bytes = NULL;
    size_t size;
    (void)unused;
    assert_int_equal(
        read("{\"model_type\": \"gpt2\", \"n_embd\": 2, \"n_layer\": 1, \"n_head\": 1, \"vocab_size\": 3, "
             "\"n_positions\": 4, \"n_inner\": 5}",
             &config),
        TR_OK);
    write_halves();
    for (int64_t at = 0, done = 0; !done; at++) {
        const int64_t live = tr_alloc_live();
        refuse_begin(at);
        const tr_status status = tr_hub_weights(&config, test_directory(), false, &bytes, &size);
        done = refuse_end();
        assert_int_equal(status, done ? TR_OK : TR_ENOMEM);
        assert_int_equal(tr_alloc_live(), live + done);
    }
    assert_int_equal(tr_safetensors_open_memory("ours", bytes, size, &file), TR_OK);
    expect_tensor(file, "tokens.weight", 0, false);
    expect_tensor(file, "places.weight", 1, false);
    expect_tensor(file, "attention0.in_proj_weight", 4, true);
    expect_tensor(file, "attention0.in_proj_bias", 5, false);
    expect_tensor(file, "up0.weight", 10, true);
    expect_tensor(file, "up0.bias", 11, false);
    expect_tensor(file, "down0.weight", 12, true);
    tr_safetensors_close(&file);
    tr_free(bytes);
    assert_int_equal(remove(test_path("model.safetensors")), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_llama),   cmocka_unit_test(test_gpt2),    cmocka_unit_test(test_encoders),
        cmocka_unit_test(test_refused), cmocka_unit_test(test_windows), cmocka_unit_test(test_places),
        cmocka_unit_test(test_again),   cmocka_unit_test(test_others),  cmocka_unit_test(test_weights),
        cmocka_unit_test(test_files),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
