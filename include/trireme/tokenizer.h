/* Tokenizers: byte-level BPE, with which current language models cut texts into tokens.
 *
 * `tokenizer.json` of the library "tokenizers" can be read, and `vocab.json` with `merges.txt`, if texts
 * are cut by the pattern of GPT-2, cl100k (GPT-4, Llama 3) or Qwen2; others are refused by name. The
 * tokens are those of that library. They depend on nothing else: characters are those of Unicode 14. Data
 * are read through a tokenizer by the format `corpus` with `unit: bpe`.
 */
#ifndef TRIREME_TOKENIZER_H
#define TRIREME_TOKENIZER_H

#include "trireme/status.h"

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Does not change once it is made; any thread may use it. */
typedef struct tr_tokenizer tr_tokenizer;

/* `path` is a tokenizer.json, a directory that has one, or vocab.json and merges.txt, or a vocab.json with
   merges.txt beside it. Returned, destroy with tr_tokenizer_destroy(). TR_ENOTFOUND, TR_EFORMAT,
   TR_EUNSUPPORTED (an unknown option, model or pattern). Any thread. */
TR_API tr_status tr_tokenizer_open(const char *path, tr_tokenizer **out);
/* Accepts NULL, nulls the handle. */
TR_API void tr_tokenizer_destroy(tr_tokenizer **tokenizer);

/* The settings of a training of tokenizers. All is borrowed for the call. */
struct tr_tokenizer_settings {
    size_t size;                /* of this structure, see TR_TOKENIZER_SETTINGS_INIT */
    const char *pattern;        /* "gpt2", "cl100k" or "qwen2" */
    int32_t tokens;             /* in all: 256 bytes, special ones, and merged pairs; at most 2^20 */
    int64_t least;              /* pairs that occur less often are not merged, >= 1 */
    const char *const *special; /* texts that are one token each, numbered from 0; [special_count] */
    int32_t special_count;      /* 0: none */
    const char *const *paths;   /* files of text, plain or gzip; [path_count] */
    int32_t path_count;         /* at least 1 */
};
#define TR_TOKENIZER_SETTINGS_INIT                                                                           \
    {                                                                                                        \
        sizeof(struct tr_tokenizer_settings), "gpt2", 8192, 1, NULL, 0, NULL, 0                              \
    }

/* The most frequent pair of neighbouring tokens within a piece of the texts becomes the next token, again
   and again (Sennrich et al. 2016); of equally frequent pairs that of the least left token, then of the
   least right one. Equal texts give equal tokenizers on every machine. There are fewer tokens than ordered
   if no more pairs are frequent enough. Returned, destroy with tr_tokenizer_destroy(). TR_EINVAL,
   TR_ENOTFOUND, TR_ENOMEM. Any thread. */
TR_API tr_status tr_tokenizer_train(const struct tr_tokenizer_settings *settings, tr_tokenizer **out);
/* Writes a tokenizer.json. */
TR_API tr_status tr_tokenizer_save(const tr_tokenizer *tokenizer, const char *path);

/* Tokens are below it. */
TR_API int32_t tr_tokenizer_size(const tr_tokenizer *tokenizer);
/* The first `room` tokens of `length` bytes of text, in UTF-8, though any bytes have tokens; *count
   becomes the number of all. TR_ENOMEM. Any thread. */
TR_API tr_status tr_tokenizer_encode(const tr_tokenizer *tokenizer, const char *text, size_t length,
                                     int64_t room, int32_t *tokens, int64_t *count);
/* The first `room` bytes of the text of `count` tokens; *length becomes the number of all. A character may
   be spread over tokens. TR_EINVAL for a number without a token. Any thread. */
TR_API tr_status tr_tokenizer_decode(const tr_tokenizer *tokenizer, const int32_t *tokens, int64_t count,
                                     size_t room, char *text, size_t *length);

#ifdef __cplusplus
}
#endif

#endif
