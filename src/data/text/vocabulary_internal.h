/* The structure of a vocabulary, shared by its words and their numbers (vocabulary.c), texts
 * (vocabulary_text.c) and its saved state (vocabulary_state.c).
 */
#ifndef TR_DATA_VOCABULARY_INTERNAL_H
#define TR_DATA_VOCABULARY_INTERNAL_H

#include "data/text/vocabulary.h"

#define VOCABULARY_UNKNOWN  "<unknown>"
#define VOCABULARY_WORD_MAX 256 /* longer words are unknown */

struct vocabulary_word {
    uint32_t start; /* in `bytes`, which has a NUL after the word */
    uint32_t length;
    int64_t count;
};

struct tr_vocabulary {
    enum tr_unit unit;
    bool lower_case;
    int32_t max_tokens;
    char *bytes;
    size_t used, room;
    struct vocabulary_word *word; /* in the order of first occurrence; after settling, by token */
    int32_t words;
    int32_t *slot; /* hash table of indices into `word`, -1: free; at most half full */
    uint32_t slots;
    tr_bpe *bpe;   /* with TR_UNIT_BPE, else NULL; there are no words then */
    int32_t ids;   /* number of tokens of the network, if more than those of `bpe` */
    bool boundary; /* there is one more token */
};

/* ---- vocabulary.c ---- */

/* The slot of a word, or the free one where it belongs. The table must exist. */
uint32_t vocabulary_find_slot(const tr_vocabulary *vocabulary, const char *word, size_t length);
/* Makes a table of `slots` (a power of two) with all words from `first` on in it. */
tr_status vocabulary_rehash(tr_vocabulary *vocabulary, uint32_t slots, int32_t first);
/* Appends a word to the list, with a NUL after it. */
tr_status vocabulary_append(tr_vocabulary *vocabulary, const char *text, size_t length);
/* All bytes, each its own number. */
tr_status vocabulary_settle_bytes(tr_vocabulary *vocabulary);

/* ---- vocabulary_text.c ---- */

/* The next word, character or byte in [*at, end), moving *at after it; its length is 0 when there is none.
   A byte that is not part of a character counts as one. */
const char *vocabulary_next_word(const tr_vocabulary *vocabulary, const char **at, const char *end,
                                 size_t *length);
/* The form in which a word is looked up: in `folded` (VOCABULARY_WORD_MAX bytes) when case is ignored. */
const char *vocabulary_fold(const tr_vocabulary *vocabulary, const char *word, size_t length, char *folded);

#endif
