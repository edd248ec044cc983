/* Words and their numbers: counted, sorted, looked up. */
#include "data/text/vocabulary_internal.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "base/numbers/hash.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHOICES                                                                                              \
    {"words", TR_UNIT_WORDS, "separated by blanks"},                                                         \
        {"characters", TR_UNIT_CHARACTERS, "of UTF-8, including blanks and line feeds"},                     \
    {                                                                                                        \
        "bytes", TR_UNIT_BYTES, "all 256, of any file"                                                       \
    }

#define IDS                                                                                                  \
    {                                                                                                        \
        "ids", TR_UNIT_IDS, "token numbers of another program"                                               \
    }
const struct tr_choice tr_text_unit_choices[] = {CHOICES, IDS, {NULL, 0}};
const struct tr_choice tr_unit_choices[] = {
    CHOICES,
    IDS,
    {"bpe", TR_UNIT_BPE, "subwords of `tokenizer`"},
    {NULL, 0},
};

tr_status tr_vocabulary_create(enum tr_unit unit, bool lower_case, int32_t max_tokens, tr_vocabulary **out)
{
    tr_vocabulary *vocabulary = tr_alloc_zero(1, sizeof *vocabulary);
    if (!vocabulary) return TR_ENOMEM;
    vocabulary->unit = unit;
    vocabulary->lower_case = lower_case;
    vocabulary->max_tokens = max_tokens;
    *out = vocabulary;
    return TR_OK;
}

void tr_vocabulary_destroy(tr_vocabulary **handle)
{
    tr_vocabulary *vocabulary = *handle;
    if (!vocabulary) return;
    tr_bpe_destroy(&vocabulary->bpe);
    tr_free(vocabulary->slot);
    tr_free(vocabulary->word);
    tr_free(vocabulary->bytes);
    tr_free(vocabulary);
    *handle = NULL;
}

/* ---- hash table ---- */

uint32_t vocabulary_find_slot(const tr_vocabulary *vocabulary, const char *word, size_t length)
{
    uint32_t mask = vocabulary->slots - 1, at = tr_hash_name(word, length) & mask;
    for (;; at = (at + 1) & mask) {
        int32_t index = vocabulary->slot[at];
        if (index < 0) return at;
        const struct vocabulary_word *candidate = &vocabulary->word[index];
        if (candidate->length == length && memcmp(vocabulary->bytes + candidate->start, word, length) == 0)
            return at;
    }
}

tr_status vocabulary_rehash(tr_vocabulary *vocabulary, uint32_t slots, int32_t first)
{
    int32_t *slot = tr_alloc(slots, sizeof *slot);
    if (!slot) return TR_ENOMEM;
    for (uint32_t i = 0; i < slots; i++) slot[i] = -1;
    tr_free(vocabulary->slot);
    vocabulary->slot = slot;
    vocabulary->slots = slots;
    for (int32_t i = first; i < vocabulary->words; i++) {
        const struct vocabulary_word *word = &vocabulary->word[i];
        slot[vocabulary_find_slot(vocabulary, vocabulary->bytes + word->start, word->length)] = i;
    }
    return TR_OK;
}

tr_status vocabulary_append(tr_vocabulary *vocabulary, const char *text, size_t length)
{
    if (!tr_grow(&vocabulary->word, vocabulary->words, sizeof *vocabulary->word)) return TR_ENOMEM;
    if (vocabulary->room - vocabulary->used <= length) {
        size_t room = 2 * vocabulary->room + 64 * 1024;
        char *grown = tr_realloc(vocabulary->bytes, room, 1);
        if (!grown) return TR_ENOMEM;
        vocabulary->bytes = grown;
        vocabulary->room = room;
    }
    /* Words are shorter than VOCABULARY_WORD_MAX and fewer than TR_VOCABULARY_MAX, so offsets fit. */
    _Static_assert((uint64_t)TR_VOCABULARY_MAX * VOCABULARY_WORD_MAX <= (uint64_t)UINT32_MAX + 1,
                   "offsets have 32 bits");
    vocabulary->word[vocabulary->words++] =
        (struct vocabulary_word){(uint32_t)vocabulary->used, (uint32_t)length, 0};
    memcpy(vocabulary->bytes + vocabulary->used, text, length);
    vocabulary->bytes[vocabulary->used + length] = 0;
    vocabulary->used += length + 1;
    return TR_OK;
}

/* The index of a word, appended if it is new. */
static tr_status intern(tr_vocabulary *vocabulary, const char *word, size_t length, int32_t *index)
{
    if ((uint32_t)vocabulary->words * 2 >= vocabulary->slots) {
        TR_TRY(vocabulary_rehash(vocabulary, vocabulary->slots == 0 ? 4096 : 2 * vocabulary->slots, 0));
    }
    uint32_t at = vocabulary_find_slot(vocabulary, word, length);
    if (vocabulary->slot[at] < 0) {
        if (vocabulary->words >= TR_VOCABULARY_MAX - 1) {
            return tr_fail(TR_EFORMAT, "the text has more than %d different words", TR_VOCABULARY_MAX - 1);
        }
        TR_TRY(vocabulary_append(vocabulary, word, length));
        vocabulary->slot[at] = vocabulary->words - 1;
    }
    *index = vocabulary->slot[at];
    return TR_OK;
}

/* ---- building ---- */

tr_status tr_vocabulary_count(tr_vocabulary *vocabulary, const char *text, size_t length)
{
    char folded[VOCABULARY_WORD_MAX];
    size_t size;
    const char *at = text, *word;
    if (vocabulary->unit == TR_UNIT_BYTES) return TR_OK;
    while (word = vocabulary_next_word(vocabulary, &at, text + length, &size), size > 0) {
        if (size >= VOCABULARY_WORD_MAX) continue;
        int32_t index = 0;
        TR_TRY(intern(vocabulary, vocabulary_fold(vocabulary, word, size, folded), size, &index));
        vocabulary->word[index].count++;
    }
    return TR_OK;
}

static int by_count_then_bytes(const void *a_, const void *b_, void *bytes_)
{
    const struct vocabulary_word *a = a_, *b = b_;
    const char *bytes = bytes_;
    if (a->count != b->count) return a->count > b->count ? -1 : 1;
    size_t shorter = a->length < b->length ? a->length : b->length;
    int order = memcmp(bytes + a->start, bytes + b->start, shorter);
    return order != 0 ? order : (a->length > b->length) - (a->length < b->length);
}

tr_status vocabulary_settle_bytes(tr_vocabulary *vocabulary)
{
    for (int i = 0; i < 256; i++) TR_TRY(vocabulary_append(vocabulary, &(char){(char)i}, 1));
    return TR_OK;
}

tr_status tr_vocabulary_settle_ids(tr_vocabulary *vocabulary, int32_t count)
{
    char decimal[16];
    uint32_t slots = 4096;
    while (slots < 2 * (uint32_t)count) slots *= 2;
    for (int32_t i = 0; i < count; i++)
        TR_TRY(
            vocabulary_append(vocabulary, decimal, (size_t)snprintf(decimal, sizeof decimal, "%" PRId32, i)));
    return vocabulary_rehash(vocabulary, slots, 0);
}

tr_status tr_vocabulary_settle(tr_vocabulary *vocabulary, int64_t min_count, int32_t max_words)
{
    if (vocabulary->unit == TR_UNIT_BYTES) return vocabulary_settle_bytes(vocabulary);
    if (vocabulary->words > 0) {
        qsort_r(vocabulary->word, (size_t)vocabulary->words, sizeof *vocabulary->word, by_count_then_bytes,
                vocabulary->bytes);
    }
    int32_t kept = 0;
    while (kept < vocabulary->words && vocabulary->word[kept].count >= min_count) kept++;
    if (max_words > 0 && kept > max_words - 1) kept = max_words - 1;
    vocabulary->words = kept;
    /* Token 0 is added at the end of the list, which is then rotated by one. */
    TR_TRY(vocabulary_append(vocabulary, VOCABULARY_UNKNOWN, strlen(VOCABULARY_UNKNOWN)));
    struct vocabulary_word unknown = vocabulary->word[kept];
    memmove(vocabulary->word + 1, vocabulary->word, (size_t)kept * sizeof *vocabulary->word);
    vocabulary->word[0] = unknown;
    return vocabulary_rehash(vocabulary, vocabulary->slots == 0 ? 4096 : vocabulary->slots, 1);
}

void tr_vocabulary_settle_bpe(tr_vocabulary *vocabulary, tr_bpe **bpe, int32_t ids)
{
    vocabulary->bpe = *bpe;
    vocabulary->ids = ids;
    *bpe = NULL;
}

/* ---- use ---- */

const tr_bpe *tr_vocabulary_bpe(const tr_vocabulary *vocabulary)
{
    return vocabulary->bpe;
}

int32_t tr_vocabulary_size(const tr_vocabulary *vocabulary)
{
    if (!vocabulary->bpe) return vocabulary->words + vocabulary->boundary;
    const int32_t tokens = tr_bpe_size(vocabulary->bpe);
    return (vocabulary->ids > tokens ? vocabulary->ids : tokens) + vocabulary->boundary;
}

void tr_vocabulary_add_boundary(tr_vocabulary *vocabulary)
{
    vocabulary->boundary = true;
}

int32_t tr_vocabulary_boundary(const tr_vocabulary *vocabulary)
{
    return vocabulary->boundary ? tr_vocabulary_size(vocabulary) - 1 : -1;
}

enum tr_unit tr_vocabulary_unit(const tr_vocabulary *vocabulary)
{
    return vocabulary->unit;
}

bool tr_vocabulary_has_unknown(const tr_vocabulary *vocabulary)
{
    return vocabulary->unit == TR_UNIT_WORDS || vocabulary->unit == TR_UNIT_CHARACTERS;
}

bool tr_vocabulary_folds(const tr_vocabulary *vocabulary)
{
    return vocabulary->lower_case;
}

const char *tr_vocabulary_word(const tr_vocabulary *vocabulary, int32_t token)
{
    assert(token >= 0 && token < vocabulary->words);
    return vocabulary->bytes + vocabulary->word[token].start;
}
