/* The structure of a tokenizer, shared by making (bpe.c), reading, writing, use and training. */
#ifndef TR_DATA_BPE_INTERNAL_H
#define TR_DATA_BPE_INTERNAL_H

#include "data/bpe/bpe.h"

struct bpe_token {
    uint32_t start, length; /* in `bytes` */
    bool there, added, special, normalized;
    bool in_vocabulary; /* false: only among the added ones */
    bool opaque;        /* its text has characters that stand for no byte: no merge uses or makes it */
};

struct bpe_merge {
    int32_t left, right, made;
};

struct tr_bpe {
    enum tr_bpe_pattern pattern;
    bool compose, ignore_merges;
    char *bytes;
    size_t used, room;
    struct bpe_token *token;
    int32_t size;
    int32_t byte[256];
    int32_t *slot; /* hash table of tokens by their bytes, -1: free; at most half full */
    uint32_t slots;
    struct bpe_merge *merge;
    int32_t merges;
    int32_t *pair; /* hash table of merges by their two tokens, likewise */
    uint32_t pairs;
    int32_t *added; /* numbers of added tokens */
    int32_t added_count;
    bool added_first[256]; /* whether an added token begins with this byte */
};

/* ---- bpe.c ---- */

tr_bpe *bpe_create(void);
/* Makes room for token numbers below `size`. */
tr_status bpe_reserve(tr_bpe *bpe, int32_t size);
/* Token `id` < size, which is not there yet. Bytes are copied. */
tr_status bpe_set_token(tr_bpe *bpe, int32_t id, const char *bytes, size_t length);
tr_status bpe_set_added(tr_bpe *bpe, int32_t id, const char *bytes, size_t length, bool special,
                        bool normalized);
/* After the tokens: makes the tables of bytes and of tokens. TR_EFORMAT where a byte has no token. */
tr_status bpe_settle_tokens(tr_bpe *bpe, const char *where);
/* Puts one more token into the table. */
tr_status bpe_settle_token(tr_bpe *bpe, int32_t id);
/* Adds a merge of the next rank; its result is found by its bytes. Where no such token exists, *made is -1
   and nothing is added. */
tr_status bpe_add_merge(tr_bpe *bpe, int32_t left, int32_t right, int32_t *made);
/* The rank of a pair, INT32_MAX if it does not merge. */
int32_t bpe_rank(const tr_bpe *bpe, int32_t left, int32_t right);

/* The character that stands for a byte in tokenizer.json. */
uint32_t bpe_letter_of(uint8_t byte);
/* The bytes that a text of such characters stands for, into `bytes`, which has room for its length; -1 if
   the text has other characters. */
int64_t bpe_bytes_of(const char *text, char *bytes);
void bpe_add_letters(struct tr_text *text, const char *bytes, size_t length);

/* ---- encode.c ---- */

/* The parts of a text between added tokens, in order. `token` is the added token of the part, -1 for plain
   text. */
typedef tr_status (*bpe_part)(void *user, const char *text, size_t length, int32_t token);
tr_status bpe_each_part(const tr_bpe *bpe, bool normalized, const char *text, size_t length, bpe_part part,
                        void *user);

#endif
