/* Where tokenizers cut a text before they merge bytes: the patterns of GPT-2, of cl100k (GPT-4, Llama 3)
 * and of Qwen2, written by hand. No token crosses such a cut. Any thread.
 */
#ifndef TR_DATA_BPE_SPLIT_H
#define TR_DATA_BPE_SPLIT_H

#include "base/options/option.h"

enum tr_bpe_pattern { TR_BPE_GPT2, TR_BPE_CL100K, TR_BPE_QWEN2, TR_BPE_PATTERNS };
/* "gpt2", "cl100k", "qwen2". */
extern const struct tr_choice tr_bpe_pattern_choices[];
/* The regular expression that a pattern stands for, as files of tokenizers spell it. */
extern const char *const tr_bpe_pattern_texts[TR_BPE_PATTERNS];

/* The end of the piece that begins at `at` < `end`. */
const char *tr_bpe_split(enum tr_bpe_pattern pattern, const char *at, const char *end);

#endif
