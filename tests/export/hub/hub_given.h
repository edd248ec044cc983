/* Small networks as directories of Hugging Face, made by hand, for tests of what is written from them. */
#ifndef TESTS_EXPORT_HUB_GIVEN_H
#define TESTS_EXPORT_HUB_GIVEN_H

#include "data/bpe/split.h"
#include "export/hub/hub.h"

#include <stdint.h>

/* The tokenizer has so many tokens, of which 0 ends a text; the networks know some more. */
#define GIVEN_TOKENS     261
#define GIVEN_VOCABULARY 264

/* A tensor of a directory. */
struct given_tensor {
    const char *theirs, *gguf; /* NULL: the end */
    int rank;
    int64_t rows, columns; /* as the directory has it; 1 column: a vector */
    bool across;           /* rows and columns are exchanged in GGUF */
    int heads;             /* > 0: queries or keys, of so many heads */
};

struct given_network {
    const char *config; /* config.json */
    enum tr_bpe_pattern pattern;
    const struct given_tensor *tensor;
};

extern const struct given_network given_llama3, given_llama_linear, given_mistral, given_qwen2, given_gpt2;

/* Number k of a tensor, which 16 bits hold exactly; and of the one with the name `theirs` in a network. */
float given_number(int tensor, int64_t k);
int64_t given_floats(const struct given_tensor *tensor);

/* Makes the directory of a network, and imports it as the run `out`. */
void given_import(const struct given_network *network, const char *directory, const char *out);
/* Exports a run. */
tr_status given_export(const char *run, const char *format, bool half, const char *path);

#endif
