/* Texts and tokens: the words of a text, their numbers, and the text of numbers. */
#include "data/text/vocabulary_internal.h"

#include "base/alloc.h"
#include "data/files/lines.h"

#include <assert.h>
#include <string.h>

/* ---- words of a text ---- */

/* The bytes of the character at `at` < `end`, 0 where there is none. */
static size_t character_at(const char *at, const char *end, uint32_t *character)
{
    char copy[5] = {0}; /* the text may end anywhere, without a terminator */
    memcpy(copy, at, end - at < 4 ? (size_t)(end - at) : 4);
    return *at ? tr_text_utf8(copy, character) : 0;
}

const char *vocabulary_next_word(const tr_vocabulary *vocabulary, const char **at, const char *end,
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

const char *vocabulary_fold(const tr_vocabulary *vocabulary, const char *word, size_t length, char *folded)
{
    if (!vocabulary->lower_case) return word;
    for (size_t i = 0; i < length; i++) {
        folded[i] = word[i] >= 'A' && word[i] <= 'Z' ? (char)(word[i] - 'A' + 'a') : word[i];
    }
    return folded;
}

/* ---- use ---- */

int64_t tr_vocabulary_no_id(const tr_vocabulary *vocabulary, const char *text, size_t length)
{
    const char *at = text, *word;
    size_t size;
    if (vocabulary->unit != TR_UNIT_IDS) return -1;
    for (int64_t i = 0; word = vocabulary_next_word(vocabulary, &at, text + length, &size), size > 0; i++)
        if (size >= VOCABULARY_WORD_MAX || vocabulary->slot[vocabulary_find_slot(vocabulary, word, size)] < 0)
            return i;
    return -1;
}

const char *tr_vocabulary_misfit(const tr_vocabulary *vocabulary, const char *text, size_t length)
{
    const char *end = text + length;
    uint32_t character;
    if (vocabulary->unit == TR_UNIT_BYTES || vocabulary->unit == TR_UNIT_BPE) return NULL;
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
    for (; tokens > 0 && size > 0; tokens--) vocabulary_next_word(vocabulary, &at, text + length, &size);
    return (size_t)(at - text);
}

int64_t tr_vocabulary_spans(const tr_vocabulary *vocabulary, const char *text, size_t length, int64_t room,
                            size_t *begin, size_t *end)
{
    const char *at = text, *word;
    size_t size;
    int64_t count = 0;
    for (; word = vocabulary_next_word(vocabulary, &at, text + length, &size), size > 0; count++) {
        if (count >= room) continue;
        begin[count] = (size_t)(word - text);
        end[count] = begin[count] + size;
    }
    return count;
}

/* Counts at most to `most`. */
static int64_t count_tokens(const tr_vocabulary *vocabulary, const char *text, size_t length, int64_t most)
{
    int64_t tokens = 0;
    size_t size;
    const char *at = text;
    while (tokens < most && (vocabulary_next_word(vocabulary, &at, text + length, &size), size > 0)) tokens++;
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
    char folded[VOCABULARY_WORD_MAX];
    const char *at = text;
    for (int64_t i = 0; i < count; i++) {
        size_t size;
        const char *word = vocabulary_next_word(vocabulary, &at, text + length, &size);
        int32_t index = -1;
        if (vocabulary->unit == TR_UNIT_BYTES) {
            index = (uint8_t)*vocabulary_fold(vocabulary, word, size, folded);
        } else if (size < VOCABULARY_WORD_MAX) {
            index = vocabulary->slot[vocabulary_find_slot(
                vocabulary, vocabulary_fold(vocabulary, word, size, folded), size)];
        }
        tokens[i] = index < 0 ? 0 : index;
    }
}

tr_status tr_vocabulary_encode_all(const tr_vocabulary *vocabulary, const char *text, size_t length,
                                   int32_t **tokens, int64_t *count)
{
    if (vocabulary->bpe) return tr_bpe_encode(vocabulary->bpe, text, length, tokens, count);
    *count = tr_vocabulary_tokens(vocabulary, text, length);
    *tokens = tr_alloc((size_t)*count, sizeof **tokens);
    if (!*tokens) return TR_ENOMEM;
    tr_vocabulary_encode(vocabulary, text, length, *count, *tokens);
    return TR_OK;
}

void tr_vocabulary_decode(const tr_vocabulary *vocabulary, const int32_t *tokens, int64_t count, bool begun,
                          struct tr_text *text)
{
    for (int64_t i = 0; vocabulary->bpe && i < count; i++) {
        size_t length;
        if (tokens[i] >= tr_bpe_size(vocabulary->bpe)) continue;
        const char *bytes = tr_bpe_token(vocabulary->bpe, tokens[i], &length);
        tr_text_add_bytes(text, bytes, length);
    }
    for (int64_t i = 0; !vocabulary->bpe && i < count; i++) {
        if (tokens[i] == tr_vocabulary_boundary(vocabulary)) continue;
        assert(tokens[i] >= 0 && tokens[i] < vocabulary->words);
        const struct vocabulary_word *word = &vocabulary->word[tokens[i]];
        bool words = vocabulary->unit == TR_UNIT_WORDS || vocabulary->unit == TR_UNIT_IDS;
        if (words && begun) tr_text_add(text, " ");
        begun = true;
        if (tokens[i] == 0 && tr_vocabulary_has_unknown(vocabulary))
            tr_text_add(text, words ? VOCABULARY_UNKNOWN : "\xef\xbf\xbd");
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
