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
    enum tr_unit unit;
    bool lower_case;
    int32_t max_tokens;
    char *bytes;
    size_t used, room;
    struct word *word; /* in the order of first occurrence; once settled, by token */
    int32_t words;
    int32_t *slot; /* hash table of indices into `word`, -1: free; at most half full */
    uint32_t slots;
};

#define CHOICES                                                                                              \
    {"words", TR_UNIT_WORDS, "what blanks separate"},                                                        \
        {"characters", TR_UNIT_CHARACTERS, "of UTF-8, blanks and line feeds as well"},                       \
    {                                                                                                        \
        "bytes", TR_UNIT_BYTES, "256 of them, of any file"                                                   \
    }

const struct tr_choice tr_text_unit_choices[] = {CHOICES, {NULL, 0}};
const struct tr_choice tr_unit_choices[] = {
    CHOICES,
    {"ids", TR_UNIT_IDS, "numbers that another program gave its tokens"},
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
    tr_free(vocabulary->slot);
    tr_free(vocabulary->word);
    tr_free(vocabulary->bytes);
    tr_free(vocabulary);
    *handle = NULL;
}

/* ---- words of a text ---- */

/* The bytes of the character at `at` < `end`, 0 where there is none. */
static size_t character_at(const char *at, const char *end, uint32_t *character)
{
    char copy[5] = {0}; /* the text may end anywhere, without a terminator */
    memcpy(copy, at, end - at < 4 ? (size_t)(end - at) : 4);
    return *at ? tr_text_utf8(copy, character) : 0;
}

/* The next word, character or byte in [*at, end), moving *at behind it; its length is 0 when there is none. A
   byte that is part of no character stands for one. */
static const char *next_word(const tr_vocabulary *vocabulary, const char **at, const char *end,
                             size_t *length)
{
    if (vocabulary->unit == TR_UNIT_CHARACTERS || vocabulary->unit == TR_UNIT_BYTES) {
        const char *here = *at;
        uint32_t character;
        *length = here < end;
        if (*length && vocabulary->unit == TR_UNIT_CHARACTERS && (*here & 0x80)) {
            size_t size = character_at(here, end, &character);
            if (size) *length = size;
        }
        *at += *length;
        return here;
    }
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
    if (vocabulary->unit == TR_UNIT_BYTES) return TR_OK;
    while (word = next_word(vocabulary, &at, text + length, &size), size > 0) {
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

/* All bytes, each its own number. */
static tr_status settle_bytes(tr_vocabulary *vocabulary)
{
    for (int i = 0; i < 256; i++) TR_TRY(append(vocabulary, &(char){(char)i}, 1));
    return TR_OK;
}

tr_status tr_vocabulary_settle_ids(tr_vocabulary *vocabulary, int32_t count)
{
    char decimal[16];
    uint32_t slots = 4096;
    while (slots < 2 * (uint32_t)count) slots *= 2;
    for (int32_t i = 0; i < count; i++)
        TR_TRY(append(vocabulary, decimal, (size_t)snprintf(decimal, sizeof decimal, "%" PRId32, i)));
    return rehash(vocabulary, slots, 0);
}

tr_status tr_vocabulary_settle(tr_vocabulary *vocabulary, int64_t min_count, int32_t max_words)
{
    if (vocabulary->unit == TR_UNIT_BYTES) return settle_bytes(vocabulary);
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
    enum tr_unit unit = vocabulary->unit;
    int32_t lines = unit == TR_UNIT_BYTES || unit == TR_UNIT_IDS ? 0 : vocabulary->words;
    tr_state_add_head(&text, "vocabulary", classes, (int64_t)lines + 1);
    tr_text_addf(&text, "lower_case %d max_tokens %" PRId32, vocabulary->lower_case, vocabulary->max_tokens);
    if (unit != TR_UNIT_WORDS) tr_text_addf(&text, " unit %s", tr_unit_choices[unit].name);
    tr_text_add(&text, "\n");
    for (int32_t i = 0; i < lines; i++) {
        const char *word = vocabulary->bytes + vocabulary->word[i].start;
        uint32_t character = 0;
        if (unit == TR_UNIT_CHARACTERS && i > 0) {
            tr_text_utf8(word, &character);
            tr_text_addf(&text, "U+%04" PRIX32 "\n", character);
        } else {
            tr_text_add(&text, word);
            tr_text_add(&text, "\n");
        }
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
        (size_t)used > length || lower_case < 0 || lower_case > 1 || max_tokens < 0) {
        return refuse_state(reader, "is not \"lower_case N max_tokens N\"");
    }
    enum tr_unit unit = TR_UNIT_WORDS;
    for (int i = TR_UNIT_CHARACTERS; i <= TR_UNIT_IDS; i++) {
        const char *name = tr_unit_choices[i].name;
        size_t size = strlen(" unit ") + strlen(name);
        if (length - (size_t)used == size && memcmp(line + used, " unit ", 6) == 0 &&
            memcmp(line + used + 6, name, size - 6) == 0)
            unit = (enum tr_unit)i;
    }
    if (unit == TR_UNIT_WORDS && (size_t)used != length)
        return refuse_state(reader, "does not end with a unit that is known");
    return tr_vocabulary_create(unit, lower_case != 0, max_tokens, out);
}

/* The word of a line, which for characters is made in `made` [5]. Its length is 0 where it is none. */
static const char *word_of_line(const tr_vocabulary *vocabulary, const char *line, size_t *length, char *made)
{
    if (vocabulary->unit == TR_UNIT_WORDS) {
        const char *at = line;
        size_t size;
        next_word(vocabulary, &at, line + *length, &size);
        if (size != *length || size >= WORD_MAX) *length = 0;
        return line;
    }
    uint32_t number = 0, back = 0;
    bool good =
        *length >= 6 && *length <= 8 && line[0] == 'U' && line[1] == '+' && (*length == 6 || line[2] != '0');
    for (size_t i = 2; i < *length && good; i++) {
        const char *digit = line[i] ? strchr("0123456789ABCDEF", line[i]) : NULL;
        good = digit != NULL;
        if (good) number = number * 16 + (uint32_t)(digit - "0123456789ABCDEF");
    }
    *length = 0;
    if (!good || number == 0 || number > 0x10ffff) return made;
    size_t size = number < 0x80 ? 1 : number < 0x800 ? 2 : number < 0x10000 ? 3 : 4;
    memset(made, 0, 5);
    for (size_t i = size; i-- > 1; number >>= 6) made[i] = (char)(0x80 | (number & 0x3f));
    static const uint8_t lead[] = {0, 0, 0xc0, 0xe0, 0xf0};
    made[0] = (char)(lead[size] | number);
    *length = tr_text_utf8(made, &back); /* 0 for surrogates */
    return made;
}

static tr_status read_words(struct tr_state_reader *reader, tr_vocabulary *vocabulary)
{
    const char *line;
    size_t length;
    char made[5];
    if (vocabulary->unit == TR_UNIT_BYTES) {
        TR_TRY(settle_bytes(vocabulary));
        return tr_state_end(reader);
    }
    if (vocabulary->unit == TR_UNIT_IDS) {
        if (reader->classes < 1 || reader->classes > TR_IDS_MAX)
            return refuse_state(reader, "does not say how many ids there are, 1 to 1,048,576");
        TR_TRY(tr_vocabulary_settle_ids(vocabulary, reader->classes));
        return tr_state_end(reader);
    }
    if (reader->lines > TR_VOCABULARY_MAX) return refuse_state(reader, "too many words");
    TR_TRY(tr_state_next(reader, &line, &length));
    if (length != strlen(UNKNOWN) || memcmp(line, UNKNOWN, length) != 0) {
        return refuse_state(reader, "is not " UNKNOWN);
    }
    TR_TRY(append(vocabulary, line, length));
    TR_TRY(rehash(vocabulary, 4096, 1));
    while (reader->line < reader->lines) {
        TR_TRY(tr_state_next(reader, &line, &length));
        line = word_of_line(vocabulary, line, &length, made);
        if (length == 0) return refuse_state(reader, "is not a word, or not the number of a character");
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

enum tr_unit tr_vocabulary_unit(const tr_vocabulary *vocabulary)
{
    return vocabulary->unit;
}

bool tr_vocabulary_has_unknown(const tr_vocabulary *vocabulary)
{
    return vocabulary->unit == TR_UNIT_WORDS || vocabulary->unit == TR_UNIT_CHARACTERS;
}

int64_t tr_vocabulary_no_id(const tr_vocabulary *vocabulary, const char *text, size_t length)
{
    const char *at = text, *word;
    size_t size;
    if (vocabulary->unit != TR_UNIT_IDS) return -1;
    for (int64_t i = 0; word = next_word(vocabulary, &at, text + length, &size), size > 0; i++)
        if (size >= WORD_MAX || vocabulary->slot[find_slot(vocabulary, word, size)] < 0) return i;
    return -1;
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

const char *tr_vocabulary_misfit(const tr_vocabulary *vocabulary, const char *text, size_t length)
{
    const char *end = text + length;
    uint32_t character;
    if (vocabulary->unit == TR_UNIT_BYTES) return NULL;
    if (vocabulary->unit != TR_UNIT_CHARACTERS) return memchr(text, 0, length);
    for (const char *at = text; at < end;) {
        size_t size = *at & 0x80 || !*at ? character_at(at, end, &character) : 1;
        if (size == 0) return at;
        at += size;
    }
    return NULL;
}

size_t tr_vocabulary_reach(const tr_vocabulary *vocabulary, const char *text, size_t length, int64_t tokens)
{
    const char *at = text;
    size_t size = 1;
    for (; tokens > 0 && size > 0; tokens--) next_word(vocabulary, &at, text + length, &size);
    return (size_t)(at - text);
}

/* Counts no further than to `most`. */
static int64_t count_tokens(const tr_vocabulary *vocabulary, const char *text, size_t length, int64_t most)
{
    int64_t tokens = 0;
    size_t size;
    const char *at = text;
    while (tokens < most && (next_word(vocabulary, &at, text + length, &size), size > 0)) tokens++;
    return tokens;
}

int64_t tr_vocabulary_tokens(const tr_vocabulary *vocabulary, const char *text, size_t length)
{
    return count_tokens(vocabulary, text, length, INT64_MAX);
}

int64_t tr_vocabulary_length(const tr_vocabulary *vocabulary, const char *text, size_t length)
{
    int32_t most = vocabulary->max_tokens;
    return count_tokens(vocabulary, text, length, most > 0 ? most : INT64_MAX);
}

void tr_vocabulary_encode(const tr_vocabulary *vocabulary, const char *text, size_t length, int64_t count,
                          int32_t *tokens)
{
    char folded[WORD_MAX];
    const char *at = text;
    for (int64_t i = 0; i < count; i++) {
        size_t size;
        const char *word = next_word(vocabulary, &at, text + length, &size);
        int32_t index = -1;
        if (vocabulary->unit == TR_UNIT_BYTES) {
            index = (uint8_t)*fold(vocabulary, word, size, folded);
        } else if (size < WORD_MAX) {
            index = vocabulary->slot[find_slot(vocabulary, fold(vocabulary, word, size, folded), size)];
        }
        tokens[i] = index < 0 ? 0 : index;
    }
}

void tr_vocabulary_decode(const tr_vocabulary *vocabulary, const int32_t *tokens, int64_t count, bool begun,
                          struct tr_text *text)
{
    for (int64_t i = 0; i < count; i++) {
        assert(tokens[i] >= 0 && tokens[i] < vocabulary->words);
        const struct word *word = &vocabulary->word[tokens[i]];
        bool words = vocabulary->unit == TR_UNIT_WORDS || vocabulary->unit == TR_UNIT_IDS;
        if (words && (i > 0 || begun)) tr_text_add(text, " ");
        if (tokens[i] == 0 && tr_vocabulary_has_unknown(vocabulary))
            tr_text_add(text, words ? UNKNOWN : "\xef\xbf\xbd");
        else
            tr_text_add_bytes(text, vocabulary->bytes + word->start, word->length);
    }
}

void tr_vocabulary_show(const tr_vocabulary *vocabulary, const int32_t *tokens, int64_t count,
                        struct tr_text *text)
{
    struct tr_text raw = TR_TEXT_INIT;
    tr_vocabulary_decode(vocabulary, tokens, count, false, &raw);
    if (raw.failed) text->failed = true;
    for (const char *at = raw.bytes, *end = at + raw.length; at < end;) {
        uint32_t character;
        size_t size = character_at(at, end, &character);
        if (size > 0 && character >= ' ' && character != 0x7f)
            tr_text_add_bytes(text, at, size);
        else if (*at == '\n' || *at == '\t')
            tr_text_add(text, *at == '\n' ? "\\n" : "\\t");
        else
            tr_text_addf(text, "\\x%02x", (uint8_t)*at);
        at += size ? size : 1;
    }
    tr_text_release(&raw);
}
