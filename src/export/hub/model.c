/* The model file of a network of Hugging Face. */
#include "export/hub/hub.h"

#include <inttypes.h>
#include <stdio.h>

static void add_head(const struct tr_hub_config *config, const char *name, const char *file,
                     const char *tokenizer, int64_t most, struct tr_text *text)
{
    const int64_t window = config->context < most ? config->context : most;
    tr_text_add(text, "# Made by `trireme import`. Set the text to train on, and how.\nname: ");
    tr_text_add_quoted(text, name);
    tr_text_add(text, "\ndata:\n  train: {corpus: {path: ");
    tr_text_add_quoted(text, file);
    tr_text_add(text, ", unit: bpe, tokenizer: ");
    tr_text_add_quoted(text, tokenizer);
    tr_text_addf(text,
                 ", ids: %" PRId64 ", window: %" PRId64 "}}\nlayers:\n- embedding: {width: %" PRId64
                 ", name: tokens}\n",
                 config->vocabulary, window, config->width);
}

static void add_attention(const struct tr_hub_config *config, int64_t i, struct tr_text *text)
{
    char number[5][TR_TEXT_NUMBER_SIZE];
    tr_text_addf(text, "- attention: {heads: %" PRId64 ", causal: true", config->heads);
    if (config->kind != TR_HUB_GPT2 && config->heads * config->head_size != config->width)
        tr_text_addf(text, ", width: %" PRId64, config->heads * config->head_size);
    if (config->kv_heads != config->heads) tr_text_addf(text, ", kv_heads: %" PRId64, config->kv_heads);
    if (config->window > 0) tr_text_addf(text, ", window: %" PRId64, config->window);
    if (config->rotary > 0)
        tr_text_addf(text, ", rotary: %s", tr_text_from_double(config->rotary, number[0]));
    if (config->factor > 1)
        tr_text_addf(text, ", rotary_factor: %s", tr_text_from_double(config->factor, number[1]));
    if (config->original > 0)
        tr_text_addf(text, ", rotary_original: %s, rotary_low: %s, rotary_high: %s",
                     tr_text_from_double(config->original, number[2]),
                     tr_text_from_double(config->low, number[3]),
                     tr_text_from_double(config->high, number[4]));
    if (config->kind != TR_HUB_GPT2) tr_text_addf(text, ", context: %" PRId64, config->context);
    if (!config->bias) tr_text_add(text, ", use_bias: false");
    if (config->kind == TR_HUB_QWEN2) tr_text_add(text, ", use_output_bias: false");
    tr_text_addf(text, ", name: attention%" PRId64 "}\n", i);
}

/* `before` is the layer whose output the block takes. */
static void add_block(const struct tr_hub_config *config, int64_t i, const char *norm, struct tr_text *text)
{
    const bool gated = config->kind != TR_HUB_GPT2;
    char number[TR_TEXT_NUMBER_SIZE], before[32];
    tr_text_from_double(config->epsilon, number);
    if (i == 0)
        snprintf(before, sizeof before, "%s", gated ? "tokens" : "places");
    else
        snprintf(before, sizeof before, "block%" PRId64, i - 1);
    tr_text_addf(text, "- %s: {epsilon: %s, name: first_norm%" PRId64 "}\n", norm, number, i);
    add_attention(config, i, text);
    tr_text_addf(text, "- add: {with: %s, name: attended%" PRId64 "}\n", before, i);
    tr_text_addf(text, "- %s: {epsilon: %s, name: second_norm%" PRId64 "}\n", norm, number, i);
    if (gated)
        tr_text_addf(text,
                     "- dense: {units: %" PRId64 ", use_bias: false, name: gate%" PRId64 "}\n"
                     "- silu: {name: open%" PRId64 "}\n"
                     "- dense: {units: %" PRId64 ", use_bias: false, from: second_norm%" PRId64
                     ", name: up%" PRId64 "}\n"
                     "- multiply: {with: open%" PRId64 ", name: gated%" PRId64 "}\n"
                     "- dense: {units: %" PRId64 ", use_bias: false, name: down%" PRId64 "}\n",
                     config->inner, i, i, config->inner, i, i, i, i, config->width, i);
    else
        tr_text_addf(text,
                     "- dense: {units: %" PRId64 ", name: up%" PRId64 "}\n- gelu: {approximate: %s}\n"
                     "- dense: {units: %" PRId64 ", name: down%" PRId64 "}\n",
                     config->inner, i, config->exact_gelu ? "none" : "tanh", config->width, i);
    tr_text_addf(text, "- add: {with: attended%" PRId64 ", name: block%" PRId64 "}\n", i, i);
}

/* A text is a sequence of token numbers from the tokenizer of the directory. Kinds of texts are for those
 * with two parts; here all texts are of the first kind, whose vector is part of the places.
 */
static void add_encoder(const struct tr_hub_config *config, const char *name, const char *file,
                        struct tr_text *text)
{
    const char *gelu = config->exact_gelu ? "none" : "tanh";
    char number[TR_TEXT_NUMBER_SIZE], before[32] = "begun";
    tr_text_from_double(config->epsilon, number);
    tr_text_add(text, "# Made by `trireme import`. Set the texts to train on, and how.\nname: ");
    tr_text_add_quoted(text, name);
    tr_text_add(text, "\ndata:\n  train: {text: {path: ");
    tr_text_add_quoted(text, file);
    tr_text_addf(text,
                 ", unit: ids, ids: %" PRId64 ", classes: %" PRId64 "%s, max_tokens: %" PRId64
                 "}}\nlayers:\n- embedding: {width: %" PRId64 ", name: tokens}\n- position: {length: %" PRId64
                 ", name: places}\n- layer_norm: {epsilon: %s, name: begun}\n",
                 config->vocabulary, config->classes, config->tags ? ", tags: true" : "", config->context,
                 config->width, config->context, number);
    for (int64_t i = 0; i < config->layers; i++) {
        tr_text_addf(text,
                     "- attention: {heads: %" PRId64 ", name: attention%" PRId64 "}\n- add: {with: %s}\n"
                     "- layer_norm: {epsilon: %s, name: attended%" PRId64 "}\n- dense: {units: %" PRId64
                     ", name: up%" PRId64 "}\n- gelu: {approximate: %s}\n- dense: {units: %" PRId64
                     ", name: down%" PRId64 "}\n- add: {with: attended%" PRId64
                     "}\n- layer_norm: {epsilon: %s, name: block%" PRId64 "}\n",
                     config->heads, i, before, number, i, config->inner, i, gelu, config->width, i, i, number,
                     i);
        snprintf(before, sizeof before, "block%" PRId64, i);
    }
    if (!config->tags)
        tr_text_addf(text, "- first\n- dense: {units: %" PRId64 ", activation: %s, name: pooled}\n",
                     config->width, config->kind == TR_HUB_DISTILBERT ? "relu" : "tanh");
    tr_text_addf(text,
                 "- dense: {units: %" PRId64 ", name: classes}\noptimizer: {rule: adamw, rate: 2e-5}\n"
                 "train: {batch: 16, epochs: 3}\n",
                 config->classes);
}

tr_status tr_hub_model(const struct tr_hub_config *config, const char *name, const char *file,
                       const char *tokenizer, int64_t window, char **model)
{
    const char *norm = config->kind == TR_HUB_GPT2 ? "layer_norm" : "rms_norm";
    struct tr_text text = TR_TEXT_INIT;
    char number[TR_TEXT_NUMBER_SIZE];
    if (tr_hub_is_encoder(config)) {
        add_encoder(config, name, file, &text);
        return tr_text_finish(&text, model);
    }
    add_head(config, name, file, tokenizer, window, &text);
    if (config->kind == TR_HUB_GPT2)
        tr_text_addf(&text, "- position: {length: %" PRId64 ", name: places}\n", config->context);
    for (int64_t i = 0; i < config->layers; i++) add_block(config, i, norm, &text);
    tr_text_addf(&text, "- %s: {epsilon: %s, name: last_norm}\n", norm,
                 tr_text_from_double(config->epsilon, number));
    if (config->tied)
        tr_text_add(&text, "- unembedding: tokens\n");
    else
        tr_text_addf(&text, "- dense: {units: %" PRId64 ", use_bias: false, name: scores}\n",
                     config->vocabulary);
    tr_text_add(&text, "optimizer: {rule: adamw, rate: 1e-5}\ntrain: {batch: 8, steps: 100}\n");
    return tr_text_finish(&text, model);
}
