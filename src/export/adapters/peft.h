/* Adapters in the files of Hugging Face's PEFT, for networks that `trireme import DIR` makes of GPT-2,
 * Llama, Mistral and Qwen2:
 *
 *     adapter_config.json         peft_type LORA, r, lora_alpha, lora_dropout, target_modules, ...
 *     adapter_model.safetensors   base_model.model.<module>.lora_A.weight [r][in], .lora_B.weight [out][r]
 *
 * Modules are named as transformers names them. GPT-2's hold their weights [in][out] (fan_in_fan_out). Our
 * attention computes queries, keys and values in one product. A Llama has three modules for it: each gets
 * its columns of b', and all get the same a.
 */
#ifndef TR_EXPORT_ADAPTERS_PEFT_H
#define TR_EXPORT_ADAPTERS_PEFT_H

#include "export/formats.h"

#define PEFT_CONFIG  "adapter_config.json"
#define PEFT_WEIGHTS "adapter_model.safetensors"
#define PEFT_NAME    192

/* A module of transformers, and the part of our layer that it corresponds to. */
struct peft_module {
    char layer[TR_NAME_SIZE];
    const char *part; /* for attention, else NULL */
    char name[PEFT_NAME];
};

/* Whether a network's layers have the names of an imported one; *gpt2: whether of a GPT-2. */
bool peft_is_known(const struct tr_model *model, bool *gpt2);
/* The modules that correspond to a part of a layer: for `input` of a Llama three, whose columns are
   `column` and `width` of the whole; otherwise one. Returns their number, 0 if there is none. */
int peft_modules_of(bool gpt2, const struct tr_layer *layer, const struct tr_adapter *adapter,
                    struct peft_module out[3], int64_t column[3], int64_t width[3]);
/* The part that a module's name, "transformer.h.0.attn.c_attn", stands for. False if it stands for none. */
bool peft_find_module(const char *name, struct peft_module *out);

/* Whether `path` is a directory with an adapter_config.json. */
bool tr_peft_is_directory(const char *path);
/* Reads such a directory, where `base` is the run or checkpoint of the network. *model becomes a model
   file with adapters; *bytes [*size] their tensors in our layout, as a safetensors file in memory. Both
   are freed with tr_free(). TR_EUNSUPPORTED for options that would be computed otherwise, TR_EFORMAT,
   TR_EMISMATCH. */
tr_status tr_peft_read(const char *directory, const char *base, char **model, void **bytes, size_t *size);

#endif
