#include "data/vocabulary.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "base/text.h"
#include "data/lines.h"
#include "data/state.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define UNKNOWN  "<unknown>"
#define WORD_MAX 256 /* longer words are unknown */

struct word {
    uint32_t start; /* in `bytes`, where it ends with a NUL */
    uint32_t length;
    int64_t count;
};

struct tr_vocabulary {
    bool lower_case;
    int32_t max_tokens;
    char *bytes;
    size_t used, room;
    struct word *word; /* in the order of first occurrence; once settled, by token */
    int32_t words;
    int32_t *slot; /* hash table of indices into `word`, -1: free; at most half full */
    uint32_t slots;
};

tr_status tr_vocabulary_create(bool lower_case, int32_t max_tokens, tr_vocabulary **out)
{
    tr_vocabulary *vocabulary = tr_alloc_zero(1, sizeof *vocabulary);
    if (!vocabulary) return TR_ENOMEM;
    vocabulary->lower_case = lower_case;
    vocabulary->max_tokens = max_tokens;
    *out = vocabulary;
    return TR_OK;
}

void tr_vocabulary_destroy(tr_vocabulary **handle)
{
    tr_vocabulary *vocabulary = *handle;
    if (!vocabulary) return;
    tr_free(vocabulary->slot);
    tr_free(vocabulary->word);
    tr_free(vocabulary->bytes);
    tr_free(vocabulary);
    *handle = NULL;
}

/* ---- words of a text ---- */

/* The next word in [*at, end), moving *at behind it; its length is 0 when there is none. */
static const char *next_word(const char **at, const char *end, size_t *length)
{
    while (*at < end && tr_is_blank(**at)) (*at)++;
    const char *start = *at;
    while (*at < end && !tr_is_blank(**at)) (*at)++;
    *length = (size_t)(*at - start);
    return start;
}

/* The form of a word that is looked up: in `folded` (WORD_MAX bytes) when case is ignored. */
static const char *fold(const tr_vocabulary *vocabulary, const char *word, size_t length, char *folded)
{
    if (!vocabulary->lower_case) return word;
    for (size_t i = 0; i < length; i++) {
        folded[i] = word[i] >= 'A' && word[i] <= 'Z' ? (char)(word[i] - 'A' + 'a') : word[i];
    }
    return folded;
}

/* ---- hash table ---- */

static uint32_t hash(const char *word, size_t length)
{
    uint64_t h = 0xcbf29ce484222325u;
    for (size_t i = 0; i < length; i++) h = (h ^ (uint8_t)word[i]) * 0x100000001b3u;
    return (uint32_t)(h ^ h >> 32);
}

/* The slot of a word, or the free one where it belongs. There is a table. */
static uint32_t find_slot(const tr_vocabulary *vocabulary, const char *word, size_t length)
{
    uint32_t mask = vocabulary->slots - 1, at = hash(word, length) & mask;
    for (;; at = (at + 1) & mask) {
        int32_t index = vocabulary->slot[at];
        if (index < 0) return at;
        const struct word *candidate = &vocabulary->word[index];
        if (candidate->length == length && memcmp(vocabulary->bytes + candidate->start, word, length) == 0)
            return at;
    }
}

/* Makes a table of `slots` (a power of two) with all words but token 0 in it. */
static tr_status rehash(tr_vocabulary *vocabulary, uint32_t slots, int32_t first)
{
    int32_t *slot = tr_alloc(slots, sizeof *slot);
    if (!slot) return TR_ENOMEM;
    for (uint32_t i = 0; i < slots; i++) slot[i] = -1;
    tr_free(vocabulary->slot);
    vocabulary->slot = slot;
    vocabulary->slots = slots;
    for (int32_t i = first; i < vocabulary->words; i++) {
        const struct word *word = &vocabulary->word[i];
        slot[find_slot(vocabulary, vocabulary->bytes + word->start, word->length)] = i;
    }
    return TR_OK;
}

/* Appends a word to the list, with a NUL behind it. */
static tr_status append(tr_vocabulary *vocabulary, const char *text, size_t length)
{
    if (!tr_grow(&vocabulary->word, vocabulary->words, sizeof *vocabulary->word)) return TR_ENOMEM;
    if (vocabulary->room - vocabulary->used <= length) {
        size_t room = 2 * vocabulary->room + 64 * 1024;
        char *grown = tr_realloc(vocabulary->bytes, room, 1);
        if (!grown) return TR_ENOMEM;
        vocabulary->bytes = grown;
        vocabulary->room = room;
    }
    /* Words are shorter than WORD_MAX and fewer than TR_VOCABULARY_MAX, so offsets fit. */
    _Static_assert((uint64_t)TR_VOCABULARY_MAX * WORD_MAX <= (uint64_t)UINT32_MAX + 1,
                   "offsets have 32 bits");
    vocabulary->word[vocabulary->words++] = (struct word){(uint32_t)vocabulary->used, (uint32_t)length, 0};
    memcpy(vocabulary->bytes + vocabulary->used, text, length);
    vocabulary->bytes[vocabulary->used + length] = 0;
    vocabulary->used += length + 1;
    return TR_OK;
}

/* The index of a word, appended if it is new. */
static tr_status intern(tr_vocabulary *vocabulary, const char *word, size_t length, int32_t *index)
{
    if ((uint32_t)vocabulary->words * 2 >= vocabulary->slots) {
        TR_TRY(rehash(vocabulary, vocabulary->slots == 0 ? 4096 : 2 * vocabulary->slots, 0));
    }
    uint32_t at = find_slot(vocabulary, word, length);
    if (vocabulary->slot[at] < 0) {
        if (vocabulary->words >= TR_VOCABULARY_MAX - 1) {
            return tr_fail(TR_EFORMAT, "the text has more than %d different words", TR_VOCABULARY_MAX - 1);
        }
        TR_TRY(append(vocabulary, word, length));
        vocabulary->slot[at] = vocabulary->words - 1;
    }
    *index = vocabulary->slot[at];
    return TR_OK;
}

/* ---- building ---- */

tr_status tr_vocabulary_count(tr_vocabulary *vocabulary, const char *text, size_t length)
{
    char folded[WORD_MAX];
    size_t size;
    const char *at = text, *word;
    while (word = next_word(&at, text + length, &size), size > 0) {
        if (size >= WORD_MAX) continue;
        int32_t index = 0;
        TR_TRY(intern(vocabulary, fold(vocabulary, word, size, folded), size, &index));
        vocabulary->word[index].count++;
    }
    return TR_OK;
}

static int by_count_then_bytes(const void *a_, const void *b_, void *bytes_)
{
    const struct word *a = a_, *b = b_;
    const char *bytes = bytes_;
    if (a->count != b->count) return a->count > b->count ? -1 : 1;
    size_t shorter = a->length < b->length ? a->length : b->length;
    int order = memcmp(bytes + a->start, bytes + b->start, shorter);
    return order != 0 ? order : (a->length > b->length) - (a->length < b->length);
}

tr_status tr_vocabulary_settle(tr_vocabulary *vocabulary, int64_t min_count, int32_t max_words)
{
    if (vocabulary->words > 0) {
        qsort_r(vocabulary->word, (size_t)vocabulary->words, sizeof *vocabulary->word, by_count_then_bytes,
                vocabulary->bytes);
    }
    int32_t kept = 0;
    while (kept < vocabulary->words && vocabulary->word[kept].count >= min_count) kept++;
    if (max_words > 0 && kept > max_words - 1) kept = max_words - 1;
    vocabulary->words = kept;
    /* Room for token 0 is made at the end of the list, then it changes places with all others. */
    TR_TRY(append(vocabulary, UNKNOWN, strlen(UNKNOWN)));
    struct word unknown = vocabulary->word[kept];
    memmove(vocabulary->word + 1, vocabulary->word, (size_t)kept * sizeof *vocabulary->word);
    vocabulary->word[0] = unknown;
    return rehash(vocabulary, vocabulary->slots == 0 ? 4096 : vocabulary->slots, 1);
}

/* ---- saving ---- */

tr_status tr_vocabulary_write(const tr_vocabulary *vocabulary, int32_t classes, char **state)
{
    struct tr_text text = TR_TEXT_INIT;
    tr_state_add_head(&text, "vocabulary", classes, (int64_t)vocabulary->words + 1);
    tr_text_addf(&text, "lower_case %d max_tokens %" PRId32 "\n", vocabulary->lower_case,
                 vocabulary->max_tokens);
    for (int32_t i = 0; i < vocabulary->words; i++) {
        tr_text_add(&text, vocabulary->bytes + vocabulary->word[i].start);
        tr_text_add(&text, "\n");
    }
    return tr_text_finish(&text, state);
}

static tr_status refuse_state(const struct tr_state_reader *reader, const char *why)
{
    return tr_fail(TR_EFORMAT, "vocabulary.txt:%" PRId64 ": %s; take the file that was saved with the model",
                   reader->line + 1, why);
}

/* The line after the head. */
static tr_status read_settings(struct tr_state_reader *reader, tr_vocabulary **out)
{
    const char *line;
    size_t length;
    int lower_case, used = 0;
    int32_t max_tokens;
    TR_TRY(tr_state_next(reader, &line, &length));
    if (sscanf(line, "lower_case %1d max_tokens %9" SCNd32 "%n", &lower_case, &max_tokens, &used) != 2 ||
        (size_t)used != length || lower_case < 0 || lower_case > 1 || max_tokens < 0) {
        return refuse_state(reader, "is not \"lower_case N max_tokens N\"");
    }
    return tr_vocabulary_create(lower_case != 0, max_tokens, out);
}

static tr_status read_words(struct tr_state_reader *reader, tr_vocabulary *vocabulary)
{
    const char *line;
    size_t length;
    if (reader->lines > TR_VOCABULARY_MAX) return refuse_state(reader, "too many words");
    TR_TRY(tr_state_next(reader, &line, &length));
    if (length != strlen(UNKNOWN) || memcmp(line, UNKNOWN, length) != 0) {
        return refuse_state(reader, "is not " UNKNOWN);
    }
    TR_TRY(append(vocabulary, line, length));
    TR_TRY(rehash(vocabulary, 4096, 1));
    while (reader->line < reader->lines) {
        TR_TRY(tr_state_next(reader, &line, &length));
        const char *at = line;
        size_t size;
        next_word(&at, line + length, &size);
        if (size == 0 || size != length || length >= WORD_MAX) return refuse_state(reader, "is not a word");
        if ((uint32_t)vocabulary->words * 2 >= vocabulary->slots) {
            TR_TRY(rehash(vocabulary, 2 * vocabulary->slots, 1));
        }
        uint32_t slot = find_slot(vocabulary, line, length);
        if (vocabulary->slot[slot] >= 0) return refuse_state(reader, "repeats a word");
        TR_TRY(append(vocabulary, line, length));
        vocabulary->slot[slot] = vocabulary->words - 1;
    }
    return tr_state_end(reader);
}

tr_status tr_vocabulary_read(const char *state, tr_vocabulary **out, int32_t *classes)
{
    struct tr_state_reader reader;
    tr_vocabulary *vocabulary = NULL;
    TR_TRY(tr_state_begin(state, "vocabulary", &reader));
    TR_TRY(read_settings(&reader, &vocabulary));
    tr_status status = read_words(&reader, vocabulary);
    if (status != TR_OK) {
        tr_vocabulary_destroy(&vocabulary);
        return status;
    }
    *classes = reader.classes;
    *out = vocabulary;
    return TR_OK;
}

/* ---- use ---- */

int32_t tr_vocabulary_size(const tr_vocabulary *vocabulary)
{
    return vocabulary->words;
}

const char *tr_vocabulary_word(const tr_vocabulary *vocabulary, int32_t token)
{
    assert(token >= 0 && token < vocabulary->words);
    return vocabulary->bytes + vocabulary->word[token].start;
}

int64_t tr_vocabulary_length(const tr_vocabulary *vocabulary, const char *text, size_t length)
{
    int64_t tokens = 0;
    size_t size;
    const char *at = text;
    while (next_word(&at, text + length, &size), size > 0) {
        tokens++;
        if (tokens == vocabulary->max_tokens) break;
    }
    return tokens;
}

void tr_vocabulary_encode(const tr_vocabulary *vocabulary, const char *text, size_t length, int32_t *tokens)
{
    char folded[WORD_MAX];
    int64_t count = tr_vocabulary_length(vocabulary, text, length);
    const char *at = text;
    for (int64_t i = 0; i < count; i++) {
        size_t size;
        const char *word = next_word(&at, text + length, &size);
        int32_t index = -1;
        if (size < WORD_MAX) {
            index = vocabulary->slot[find_slot(vocabulary, fold(vocabulary, word, size, folded), size)];
        }
        tokens[i] = index < 0 ? 0 : index;
    }
}
