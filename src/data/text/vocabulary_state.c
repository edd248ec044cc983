/* Vocabularies as a state of a model (data/state.h): written, and read with every line checked. */
#include "data/text/vocabulary_internal.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "data/state.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define BOUNDARY " boundary" /* ends the settings where there is one */

/* ---- saving ---- */

tr_status tr_vocabulary_write(const tr_vocabulary *vocabulary, int32_t classes, char **state)
{
    struct tr_text text = TR_TEXT_INIT;
    enum tr_unit unit = vocabulary->unit;
    char *tokenizer = NULL;
    int32_t lines = unit == TR_UNIT_BYTES || unit == TR_UNIT_IDS ? 0 : vocabulary->words;
    const bool counts_ids = unit == TR_UNIT_IDS && (vocabulary->boundary || vocabulary->words != classes);
    int64_t more = counts_ids;
    if (vocabulary->bpe) TR_TRY(tr_bpe_write(vocabulary->bpe, &tokenizer));
    for (const char *at = tokenizer; at && *at; at++) more += *at == '\n';
    tr_state_add_head(&text, "vocabulary", classes, lines + more + 1);
    tr_text_addf(&text, "lower_case %d max_tokens %" PRId32, vocabulary->lower_case, vocabulary->max_tokens);
    if (unit != TR_UNIT_WORDS) tr_text_addf(&text, " unit %s", tr_unit_choices[unit].name);
    tr_text_add(&text, vocabulary->boundary ? BOUNDARY "\n" : "\n");
    if (counts_ids) tr_text_addf(&text, "ids %" PRId32 "\n", vocabulary->words);
    if (tokenizer) tr_text_add(&text, tokenizer);
    tr_free(tokenizer);
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

bool tr_vocabulary_state_has_boundary(const char *state)
{
    const char *settings = tr_state_is(state, "vocabulary") ? strchr(state, '\n') : NULL;
    const char *end = settings ? strchr(settings + 1, '\n') : NULL;
    const size_t mark = strlen(BOUNDARY);
    return end && (size_t)(end - settings) > mark && memcmp(end - mark, BOUNDARY, mark) == 0;
}

static tr_status refuse_state(const struct tr_state_reader *reader, const char *why)
{
    return tr_fail(TR_EFORMAT, "vocabulary.txt:%" PRId64 ": %s; take the file that was saved with the model",
                   reader->line + 1, why);
}

/* Reads the second line, the settings. */
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
    const size_t mark = strlen(BOUNDARY);
    const bool boundary = length - (size_t)used >= mark && memcmp(line + length - mark, BOUNDARY, mark) == 0;
    if (boundary) length -= mark;
    enum tr_unit unit = TR_UNIT_WORDS;
    for (int i = TR_UNIT_CHARACTERS; i <= TR_UNIT_BPE; i++) {
        const char *name = tr_unit_choices[i].name;
        size_t size = strlen(" unit ") + strlen(name);
        if (length - (size_t)used == size && memcmp(line + used, " unit ", 6) == 0 &&
            memcmp(line + used + 6, name, size - 6) == 0)
            unit = (enum tr_unit)i;
    }
    if (unit == TR_UNIT_WORDS && (size_t)used != length)
        return refuse_state(reader, "does not end with a unit that is known");
    TR_TRY(tr_vocabulary_create(unit, lower_case != 0, max_tokens, out));
    if (boundary) tr_vocabulary_add_boundary(*out);
    return TR_OK;
}

/* The word of a line; a character is written to `made` [5]. Its length is 0 where the line is invalid. */
static const char *word_of_line(const tr_vocabulary *vocabulary, const char *line, size_t *length, char *made)
{
    if (vocabulary->unit == TR_UNIT_WORDS) {
        const char *at = line;
        size_t size;
        vocabulary_next_word(vocabulary, &at, line + *length, &size);
        if (size != *length || size >= VOCABULARY_WORD_MAX) *length = 0;
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

/* Reads a tokenizer; its lines are consecutive. */
static tr_status read_tokenizer(struct tr_state_reader *reader, tr_vocabulary *vocabulary)
{
    const char *first = reader->at, *line = first;
    size_t length = 0;
    tr_bpe *bpe;
    while (reader->line < reader->lines) TR_TRY(tr_state_next(reader, &line, &length));
    TR_TRY(tr_state_end(reader));
    TR_TRY(tr_bpe_parse(first, (size_t)(line + length - first), "vocabulary.txt", &bpe));
    tr_vocabulary_settle_bpe(vocabulary, &bpe, reader->classes <= TR_IDS_MAX ? reader->classes : 0);
    return TR_OK;
}

/* Reads the number of ids: a line, or else the number of classes. */
static tr_status read_ids(struct tr_state_reader *reader, tr_vocabulary *vocabulary)
{
    int32_t ids = reader->classes;
    const char *line;
    size_t length;
    int used = 0;
    if (reader->line < reader->lines) {
        TR_TRY(tr_state_next(reader, &line, &length));
        if (sscanf(line, "ids %7" SCNd32 "%n", &ids, &used) != 1 || (size_t)used != length) ids = 0;
    }
    if (ids < 1 || ids > TR_IDS_MAX)
        return refuse_state(reader, "does not say how many ids there are, 1 to 1,048,576");
    TR_TRY(tr_vocabulary_settle_ids(vocabulary, ids));
    return tr_state_end(reader);
}

static tr_status read_words(struct tr_state_reader *reader, tr_vocabulary *vocabulary)
{
    const char *line;
    size_t length;
    char made[5];
    if (vocabulary->unit == TR_UNIT_BPE) return read_tokenizer(reader, vocabulary);
    if (vocabulary->unit == TR_UNIT_BYTES) {
        TR_TRY(vocabulary_settle_bytes(vocabulary));
        return tr_state_end(reader);
    }
    if (vocabulary->unit == TR_UNIT_IDS) return read_ids(reader, vocabulary);
    if (reader->lines > TR_VOCABULARY_MAX) return refuse_state(reader, "too many words");
    TR_TRY(tr_state_next(reader, &line, &length));
    if (length != strlen(VOCABULARY_UNKNOWN) || memcmp(line, VOCABULARY_UNKNOWN, length) != 0) {
        return refuse_state(reader, "is not " VOCABULARY_UNKNOWN);
    }
    TR_TRY(vocabulary_append(vocabulary, line, length));
    TR_TRY(vocabulary_rehash(vocabulary, 4096, 1));
    while (reader->line < reader->lines) {
        TR_TRY(tr_state_next(reader, &line, &length));
        line = word_of_line(vocabulary, line, &length, made);
        if (length == 0) return refuse_state(reader, "is not a word, or not the number of a character");
        if ((uint32_t)vocabulary->words * 2 >= vocabulary->slots) {
            TR_TRY(vocabulary_rehash(vocabulary, 2 * vocabulary->slots, 1));
        }
        uint32_t slot = vocabulary_find_slot(vocabulary, line, length);
        if (vocabulary->slot[slot] >= 0) return refuse_state(reader, "repeats a word");
        TR_TRY(vocabulary_append(vocabulary, line, length));
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
