/* The growing string, quoting, and nearest words. Numbers are in number.c. */
#include "base/text/text.h"

#include "base/alloc.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* ---- the growing string ---- */

/* Makes room for `more` bytes and the terminator; returns whether there is. */
static bool reserve(struct tr_text *text, size_t more)
{
    if (text->failed) return false;
    size_t need;
    if (__builtin_add_overflow(text->length, more, &need) || need > PTRDIFF_MAX / 2) {
        text->failed = true;
        return false;
    }
    if (need < text->capacity) return true;
    size_t capacity = need + need / 2 + 64;
    char *grown = tr_realloc(text->bytes, capacity, 1);
    if (!grown) {
        text->failed = true;
        return false;
    }
    text->bytes = grown;
    text->capacity = capacity;
    return true;
}

void tr_text_add_bytes(struct tr_text *text, const char *bytes, size_t length)
{
    if (!reserve(text, length)) return;
    if (length) memcpy(text->bytes + text->length, bytes, length);
    text->length += length;
    text->bytes[text->length] = '\0';
}

void tr_text_add(struct tr_text *text, const char *string)
{
    tr_text_add_bytes(text, string, strlen(string));
}

void tr_text_addf(struct tr_text *text, const char *format, ...)
{
    va_list arguments, again;
    va_start(arguments, format);
    va_copy(again, arguments);
    int length = vsnprintf(NULL, 0, format, arguments);
    va_end(arguments);
    if (length < 0) {
        text->failed = true;
    } else if (reserve(text, (size_t)length)) {
        vsnprintf(text->bytes + text->length, (size_t)length + 1, format, again);
        text->length += (size_t)length;
    }
    va_end(again);
}

void tr_text_pad(struct tr_text *text, char c, size_t count)
{
    if (!reserve(text, count)) return;
    memset(text->bytes + text->length, c, count);
    text->length += count;
    text->bytes[text->length] = '\0';
}

void tr_text_add_word(struct tr_text *text, const char *word)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=./,:@%";
    if (*word && word[strspn(word, plain)] == 0) {
        tr_text_add(text, word);
        return;
    }
    tr_text_add(text, "'");
    for (; *word; word++) {
        if (*word == '\'')
            tr_text_add(text, "'\\''");
        else
            tr_text_add_bytes(text, word, 1);
    }
    tr_text_add(text, "'");
}

char *tr_text_word(const char *word)
{
    char *out;
    struct tr_text text = TR_TEXT_INIT;
    tr_text_add_word(&text, word);
    return tr_text_finish(&text, &out) == TR_OK ? out : NULL;
}

tr_status tr_text_finish(struct tr_text *text, char **out)
{
    *out = NULL;
    if (!text->bytes) tr_text_add_bytes(text, "", 0);
    tr_status status = TR_OK;
    if (text->failed) {
        /* The allocator has recorded the message. */
        status = TR_ENOMEM;
        tr_free(text->bytes);
    } else {
        *out = text->bytes;
    }
    *text = (struct tr_text)TR_TEXT_INIT;
    return status;
}

void tr_text_release(struct tr_text *text)
{
    tr_free(text->bytes);
    *text = (struct tr_text)TR_TEXT_INIT;
}

/* ---- quoting ---- */

size_t tr_text_utf8(const char *string, uint32_t *character)
{
    const unsigned char *at = (const unsigned char *)string;
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    size_t length = at[0] < 0x80             ? 1
                    : (at[0] & 0xE0) == 0xC0 ? 2
                    : (at[0] & 0xF0) == 0xE0 ? 3
                    : (at[0] & 0xF8) == 0xF0 ? 4
                                             : 0;
    if (length == 0) return 0;
    uint32_t value = length == 1 ? at[0] : at[0] & (0x7Fu >> length);
    for (size_t i = 1; i < length; i++) {
        if ((at[i] & 0xC0) != 0x80) return 0;
        value = value << 6 | (at[i] & 0x3Fu);
    }
    if (value < least[length] || value > 0x10FFFF || (value >= 0xD800 && value <= 0xDFFF)) return 0;
    *character = value;
    return length;
}

/* Characters that YAML does not allow unescaped or takes for a line break; JSON requires only the first
   group to be escaped. */
static bool needs_escape(uint32_t character)
{
    return character < 0x20 || (character >= 0x7F && character < 0xA0) || character == 0x2028 ||
           character == 0x2029 || character == 0xFEFF || character == 0xFFFE || character == 0xFFFF;
}

void tr_text_add_quoted(struct tr_text *text, const char *string)
{
    tr_text_add(text, "\"");
    const char *at = string;
    while (*at) {
        uint32_t character = 0;
        size_t length = tr_text_utf8(at, &character);
        if (length == 0) {
            tr_text_add(text, "\xEF\xBF\xBD");
            length = 1;
        } else if (character == '"' || character == '\\') {
            tr_text_addf(text, "\\%c", (int)character);
        } else if (character == '\n') {
            tr_text_add(text, "\\n");
        } else if (character == '\t') {
            tr_text_add(text, "\\t");
        } else if (character == '\r') {
            tr_text_add(text, "\\r");
        } else if (needs_escape(character)) {
            tr_text_addf(text, "\\u%04x", (unsigned)character);
        } else {
            tr_text_add_bytes(text, at, length);
        }
        at += length;
    }
    tr_text_add(text, "\"");
}

/* ---- nearest words ---- */

#define WORD_MAX 63

static char folded(char c)
{
    return c == '-' ? '_' : tr_text_upper(c);
}

int32_t tr_text_distance(const char *a, const char *b)
{
    size_t a_length = strlen(a), b_length = strlen(b);
    if (a_length > WORD_MAX || b_length > WORD_MAX) return INT32_MAX;
    /* Rows i - 2, i - 1 and i of the table of distances between prefixes. */
    uint8_t table[3][WORD_MAX + 1];
    uint8_t *before = table[0], *above = table[1], *row = table[2];
    for (size_t j = 0; j <= b_length; j++) above[j] = (uint8_t)j;
    for (size_t i = 1; i <= a_length; i++) {
        row[0] = (uint8_t)i;
        for (size_t j = 1; j <= b_length; j++) {
            char x = folded(a[i - 1]), y = folded(b[j - 1]);
            int best = above[j - 1] + (x != y);
            if (above[j] + 1 < best) best = above[j] + 1;
            if (row[j - 1] + 1 < best) best = row[j - 1] + 1;
            bool swapped = i > 1 && j > 1 && x == folded(b[j - 2]) && folded(a[i - 2]) == y;
            if (swapped && before[j - 2] + 1 < best) best = before[j - 2] + 1;
            row[j] = (uint8_t)best;
        }
        uint8_t *free_row = before;
        before = above;
        above = row;
        row = free_row;
    }
    return above[b_length];
}

const char *tr_text_nearest(const char *word, const char *const *words, int32_t count)
{
    const char *nearest = NULL;
    /* One typing error for every three letters, and at least one. */
    size_t length = strlen(word);
    int32_t best = length / 3 > 1 ? (int32_t)(length / 3) : 1;
    for (int32_t i = 0; i < count; i++) {
        int32_t distance = tr_text_distance(word, words[i]);
        if (distance < best || (distance == best && !nearest)) {
            nearest = words[i];
            best = distance;
        }
    }
    return nearest;
}
