/* Adapters as PEFT of Hugging Face keeps them, of networks that `trireme import DIR` makes of GPT-2, Llama,
 * Mistral and Qwen2:
 *
 *     adapter_config.json         peft_type LORA, r, lora_alpha, lora_dropout, target_modules, ...
 *     adapter_model.safetensors   base_model.model.<module>.lora_A.weight [r][in], .lora_B.weight [out][r]
 *
 * Modules are named as transformers names them. GPT-2's hold their weights [in][out] (fan_in_fan_out). Ours
 * has queries, keys and values as one product: a Llama has three modules for it, which get the columns of b'
 * that are theirs and all the same a.
 */
#ifndef TR_EXPORT_ADAPTERS_PEFT_H
#define TR_EXPORT_ADAPTERS_PEFT_H

#include "export/formats.h"

#define PEFT_CONFIG  "adapter_config.json"
#define PEFT_WEIGHTS "adapter_model.safetensors"
#define PEFT_NAME    192

/* A module of theirs, and the part of a layer of ours that it is. */
struct peft_module {
    char layer[TR_NAME_SIZE];
    const char *part; /* of an attention, else NULL */
    char name[PEFT_NAME];
};

/* Whether a network's layers have the names of an imported one: *gpt2 tells of which kind. */
bool peft_is_known(const struct tr_model *model, bool *gpt2);
/* The modules that stand for a part of a layer: for `input` of a Llama three, whose columns are `column` and
   `width` of the whole; otherwise one. Returns their number, 0 where there is none. */
int peft_modules_of(bool gpt2, const struct tr_layer *layer, const struct tr_adapter *adapter,
                    struct peft_module out[3], int64_t column[3], int64_t width[3]);
/* The part that a module's name, "transformer.h.0.attn.c_attn", says. False where it is none. */
bool peft_find_module(const char *name, struct peft_module *out);

/* Whether `path` is a directory with an adapter_config.json. */
bool tr_peft_is_directory(const char *path);
/* What a directory says, beside the run or checkpoint `base` with the network: a model file with adapters
   (*model), and their tensors in our layout as a safetensors file in memory (*bytes [*size]); both freed with
   tr_free(). TR_EUNSUPPORTED for what would be computed otherwise, TR_EFORMAT, TR_EMISMATCH. */
tr_status tr_peft_read(const char *directory, const char *base, char **model, void **bytes, size_t *size);

#endif
