/* A directory as Hugging Face's save_pretrained() writes it: config.json, model.safetensors, and a
 * tokenizer. Supported are the language models GPT-2, Llama, Mistral and Qwen2, and the encoders BERT,
 * DistilBERT and RoBERTa with classes of texts or of tokens. Other models, and options that would change
 * the numbers of these, are refused by name.
 */
#ifndef TR_EXPORT_HUB_H
#define TR_EXPORT_HUB_H

#include "base/text/text.h"

enum tr_hub_kind {
    TR_HUB_GPT2,
    TR_HUB_LLAMA,
    TR_HUB_MISTRAL,
    TR_HUB_QWEN2,
    TR_HUB_BERT, /* encoders from here on */
    TR_HUB_DISTILBERT,
    TR_HUB_ROBERTA,
    TR_HUB_KINDS
};

/* The contents of config.json. */
struct tr_hub_config {
    enum tr_hub_kind kind;
    int64_t width, inner, layers, heads, kv_heads, head_size, context, vocabulary;
    int64_t window; /* 0: none */
    double epsilon, rotary, factor, original, low, high;
    bool tied, bias; /* bias: of queries, keys and values */
    bool exact_gelu; /* of GPT-2 and encoders: without tanh */
    /* For encoders: */
    int64_t classes;
    int64_t types;   /* vectors of kinds of texts; 0: none */
    int64_t skipped; /* places before that of the first token */
    bool tags;       /* each token has classes, otherwise the text */
    bool begins;     /* the file has no such classes, so they start untrained */
};

static inline bool tr_hub_is_encoder(const struct tr_hub_config *config)
{
    return config->kind >= TR_HUB_BERT;
}

/* The name in config.json: "gpt2". Static storage. */
const char *tr_hub_kind_name(enum tr_hub_kind kind);

/* Whether `path` is a directory with a config.json. */
bool tr_hub_is_directory(const char *path);
/* TR_ENOTFOUND, TR_EFORMAT, TR_EUNSUPPORTED. */
tr_status tr_hub_read_config(const char *directory, struct tr_hub_config *out);
/* The model file. `text` is the file of text to train on, in windows of `window` tokens, and `tokenizer`
   the directory of a tokenizer. For an encoder, texts are numbers of tokens, with a label or labels.
   Returned, free with tr_free(). TR_ENOMEM. */
tr_status tr_hub_model(const struct tr_hub_config *config, const char *name, const char *text,
                       const char *tokenizer, int64_t window, char **model);
/* The tensors of the directory as a safetensors file in memory, with PyTorch's layout of that network:
   *bytes [*size], free with tr_free(). TR_EMISMATCH for tensors that are missing or of another shape,
   TR_EUNSUPPORTED for numbers that are not of 16 or 32 bits. With `partial` an encoder may lack its head,
   which the bytes then lack too. */
tr_status tr_hub_weights(const struct tr_hub_config *config, const char *directory, bool partial,
                         void **bytes, size_t *size);

#endif
