/* Character classes by bisection of ranges. Normalization form C: decompose, order the marks, compose. */
#include "data/bpe/unicode.h"

#include "base/alloc.h"

#include <string.h>

struct mark_range {
    uint32_t first, last;
    uint8_t mark;
};

struct pair {
    uint32_t character, first, second;
};

#include "data/bpe/unicode_tables.inc"

#define LENGTH(array) ((int)(sizeof(array) / sizeof((array)[0])))
#define CHARACTERS    0x110000u
#define NO_CHARACTER  CHARACTERS /* + the byte */

const char tr_unicode_version[] = UNICODE_VERSION;

/* ---- characters ---- */

enum tr_character_class tr_character_class_of(uint32_t character)
{
    int low = 0, high = LENGTH(class_ranges);
    if (character >= CHARACTERS) return TR_CHARACTER_OTHER;
    while (high - low > 1) {
        const int middle = (low + high) / 2;
        if (class_ranges[middle] >> 2 <= character)
            low = middle;
        else
            high = middle;
    }
    return (enum tr_character_class)(class_ranges[low] & 3);
}

const uint32_t *tr_character_ranges(int *count)
{
    *count = LENGTH(class_ranges);
    return class_ranges;
}

size_t tr_character_at(const char *at, const char *end, uint32_t *character)
{
    const uint8_t first = (uint8_t)*at;
    if (first < 0x80) {
        *character = first;
        return 1;
    }
    char copy[5] = {0}; /* the text may end anywhere, without a terminator */
    memcpy(copy, at, end - at < 4 ? (size_t)(end - at) : 4);
    const size_t size = tr_text_utf8(copy, character);
    if (size > 0) return size;
    *character = NO_CHARACTER + first;
    return 1;
}

void tr_character_add(struct tr_text *text, uint32_t c)
{
    char bytes[4];
    size_t size = 0;
    if (c >= NO_CHARACTER) {
        bytes[size++] = (char)(c - NO_CHARACTER);
    } else if (c < 0x80) {
        bytes[size++] = (char)c;
    } else {
        if (c < 0x800) {
            bytes[size++] = (char)(0xc0 | c >> 6);
        } else {
            if (c < 0x10000) {
                bytes[size++] = (char)(0xe0 | c >> 12);
            } else {
                bytes[size++] = (char)(0xf0 | c >> 18);
                bytes[size++] = (char)(0x80 | (c >> 12 & 0x3f));
            }
            bytes[size++] = (char)(0x80 | (c >> 6 & 0x3f));
        }
        bytes[size++] = (char)(0x80 | (c & 0x3f));
    }
    tr_text_add_bytes(text, bytes, size);
}

/* ---- normalization form C ---- */

/* Hangul syllables are composed by arithmetic (The Unicode Standard, 3.12). */
enum {
    S_BASE = 0xac00,
    L_BASE = 0x1100,
    V_BASE = 0x1161,
    T_BASE = 0x11a7,
    L_ALL = 19,
    V_ALL = 21,
    T_ALL = 28
};
#define S_ALL (L_ALL * V_ALL * T_ALL)

static uint8_t mark_of(uint32_t c)
{
    int low = 0, high = LENGTH(mark_ranges);
    if (c < mark_ranges[0].first) return 0;
    while (high - low > 1) {
        const int middle = (low + high) / 2;
        if (mark_ranges[middle].first <= c)
            low = middle;
        else
            high = middle;
    }
    return c <= mark_ranges[low].last ? mark_ranges[low].mark : 0;
}

static const struct pair *decomposition_of(uint32_t c)
{
    int low = 0, high = LENGTH(decompositions);
    while (high - low > 1) {
        const int middle = (low + high) / 2;
        if (decompositions[middle].character <= c)
            low = middle;
        else
            high = middle;
    }
    return decompositions[low].character == c ? &decompositions[low] : NULL;
}

/* The character that two characters compose to, or 0. */
static uint32_t composition_of(uint32_t first, uint32_t second)
{
    const uint32_t l = first - L_BASE, v = second - V_BASE, s = first - S_BASE, t = second - T_BASE;
    if (l < L_ALL && v < V_ALL) return S_BASE + (l * V_ALL + v) * T_ALL;
    if (s < S_ALL && s % T_ALL == 0 && t > 0 && t < T_ALL) return first + t;
    int low = 0, high = LENGTH(compositions);
    while (high - low > 1) {
        const int middle = (low + high) / 2;
        const struct pair *pair = &decompositions[compositions[middle]];
        if (pair->first < first || (pair->first == first && pair->second <= second))
            low = middle;
        else
            high = middle;
    }
    const struct pair *found = &decompositions[compositions[low]];
    return found->first == first && found->second == second ? found->character : 0;
}

/* A starter and the marks after it, in the order of the text. */
struct run {
    uint32_t *character;
    int64_t count;
    bool failed;
};

static void append(struct run *run, uint32_t c)
{
    if (!tr_grow(&run->character, run->count, sizeof *run->character))
        run->failed = true;
    else
        run->character[run->count++] = c;
}

static void take_apart(struct run *run, uint32_t c)
{
    const uint32_t s = c - S_BASE;
    const struct pair *pair = c < 0xc0 ? NULL : decomposition_of(c);
    if (s < S_ALL) {
        append(run, L_BASE + s / (V_ALL * T_ALL));
        append(run, V_BASE + s / T_ALL % V_ALL);
        if (s % T_ALL) append(run, T_BASE + s % T_ALL);
    } else if (pair) {
        take_apart(run, pair->first); /* recursion is at most four deep, as deep as the decompositions of
                                         the table */
        if (pair->second) take_apart(run, pair->second);
    } else {
        append(run, c);
    }
}

/* Marks between two starters are sorted by their classes; equal classes keep their order. */
static void order_marks(struct run *run)
{
    struct run sorted = {0};
    for (int64_t i = 0, end; i < run->count; i = end) {
        bool wrong = false;
        end = i + 1;
        if (mark_of(run->character[i]) == 0) continue;
        for (; end < run->count && mark_of(run->character[end]) != 0; end++)
            wrong |= mark_of(run->character[end]) < mark_of(run->character[end - 1]);
        sorted.count = 0;
        for (int mark = 1; wrong && mark < 256; mark++)
            for (int64_t k = i; k < end; k++)
                if (mark_of(run->character[k]) == mark) append(&sorted, run->character[k]);
        if (wrong && !sorted.failed)
            memcpy(run->character + i, sorted.character, (size_t)(end - i) * sizeof *run->character);
        run->failed |= sorted.failed;
    }
    tr_free(sorted.character);
}

/* Composes the run in place. */
static void put_together(struct run *run)
{
    int64_t starter = -1, count = 0;
    uint8_t before = 0; /* the class of the last mark that did not compose with the starter */
    for (int64_t i = 0; i < run->count; i++) {
        const uint32_t c = run->character[i];
        const uint8_t mark = mark_of(c);
        const bool blocked = starter < 0 || (count > starter + 1 && (before >= mark));
        const uint32_t one = blocked ? 0 : composition_of(run->character[starter], c);
        if (one) {
            run->character[starter] = one;
            continue;
        }
        if (mark == 0) starter = count;
        before = mark;
        run->character[count++] = c;
    }
    run->count = count;
}

static void flush(struct run *run, struct tr_text *text)
{
    order_marks(run);
    put_together(run);
    for (int64_t i = 0; i < run->count; i++) tr_character_add(text, run->character[i]);
    run->count = 0;
}

void tr_unicode_compose(const char *string, size_t length, struct tr_text *text)
{
    const char *at = string, *end = string + length;
    struct run run = {0};
    while (at < end) {
        uint32_t c;
        at += tr_character_at(at, end, &c);
        /* These are never the second part of a composition, and are not marks. */
        if (c < 0x300 || c >= NO_CHARACTER) flush(&run, text);
        take_apart(&run, c);
    }
    flush(&run, text);
    text->failed |= run.failed;
    tr_free(run.character);
}
