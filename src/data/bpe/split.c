/* The alternatives of each pattern, in their order. Where a regular expression would backtrack, the place
   is computed. */
#include "data/bpe/split.h"

#include "data/bpe/unicode.h"

const struct tr_choice tr_bpe_pattern_choices[] = {
    {"gpt2", TR_BPE_GPT2, "words with the blank before them, as GPT-2"},
    {"cl100k", TR_BPE_CL100K, "numbers by three digits, line feeds apart, as GPT-4 and Llama 3"},
    {"qwen2", TR_BPE_QWEN2, "the same with single digits, as Qwen2"},
    {0},
};

#define REST_OF_CL100K "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"
#define HEAD_OF_CL100K "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|"

const char *const tr_bpe_pattern_texts[TR_BPE_PATTERNS] = {
    [TR_BPE_GPT2] = "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+",
    [TR_BPE_CL100K] = HEAD_OF_CL100K "\\p{N}{1,3}" REST_OF_CL100K,
    [TR_BPE_QWEN2] = HEAD_OF_CL100K "\\p{N}" REST_OF_CL100K,
};

/* The class of the character at `at`, and where it ends. OTHER and `at` itself at the end of the text. */
static enum tr_character_class look(const char *at, const char *end, const char **behind)
{
    static const uint8_t ascii[128] = {
        ['\t'] = TR_CHARACTER_SPACE, ['\n'] = TR_CHARACTER_SPACE, ['\v'] = TR_CHARACTER_SPACE,
        ['\f'] = TR_CHARACTER_SPACE, ['\r'] = TR_CHARACTER_SPACE, [' '] = TR_CHARACTER_SPACE,
    };
    uint32_t c;
    *behind = at;
    if (at == end) return TR_CHARACTER_OTHER;
    const uint8_t byte = (uint8_t)*at;
    if (byte >= 0x80) {
        *behind = at + tr_character_at(at, end, &c);
        return tr_character_class_of(c);
    }
    *behind = at + 1;
    if ((byte | 0x20) >= 'a' && (byte | 0x20) <= 'z') return TR_CHARACTER_LETTER;
    if (byte >= '0' && byte <= '9') return TR_CHARACTER_NUMBER;
    return (enum tr_character_class)ascii[byte];
}

/* The end of the characters of a class from `at` on, at most `most` of them (0: any number). */
static const char *run_of(enum tr_character_class class, const char *at, const char *end, int most)
{
    const char *behind;
    for (int n = 0; at < end && (most == 0 || n < most) && look(at, end, &behind) == class; n++) at = behind;
    return at;
}

/* The end of 's 't 're 've 'm 'll 'd at `at`, or `at` if there is none. When case is ignored, U+017F
   counts as an s. */
static const char *contraction(const char *at, const char *end, bool any_case)
{
    const char fold = any_case ? 0x20 : 0;
    const size_t left = (size_t)(end - at);
    if (left < 2 || *at != '\'') return at;
    const char first = at[1] | fold, second = left > 2 ? at[2] | fold : 0;
    if (first == 's' || first == 't' || first == 'm' || first == 'd') return at + 2;
    if ((first == 'r' || first == 'v') && second == 'e') return at + 3;
    if (first == 'l' && second == 'l') return at + 3;
    if (any_case && left > 2 && at[1] == '\xc5' && at[2] == '\xbf') return at + 3;
    return at;
}

static bool is_break(char c)
{
    return c == '\r' || c == '\n';
}

/* The end of a run of blanks: all of them at the end of the text. Elsewhere the last one belongs to the
   text that follows, unless it is alone. */
static const char *blanks(const char *at, const char *end)
{
    const char *to = at, *last = at, *behind;
    while (to < end && look(to, end, &behind) == TR_CHARACTER_SPACE) {
        last = to;
        to = behind;
    }
    return to == end || last == at ? to : last;
}

/* After the last line break among the blanks from `at` on, or `at`. */
static const char *breaks(const char *at, const char *end)
{
    const char *found = at, *behind;
    for (const char *to = at; to < end && look(to, end, &behind) == TR_CHARACTER_SPACE; to = behind)
        if (is_break(*to)) found = behind;
    return found;
}

static const char *split_gpt2(const char *at, const char *end)
{
    const char *to = contraction(at, end, false), *behind;
    if (to > at) return to;
    const char *word = at + (*at == ' ');
    if (word < end) {
        const enum tr_character_class class = look(word, end, &behind);
        if (class != TR_CHARACTER_SPACE) return run_of(class, behind, end, 0);
    }
    return blanks(at, end);
}

static const char *split_cl100k(const char *at, const char *end, int digits)
{
    const char *to = contraction(at, end, true), *behind, *second;
    if (to > at) return to;
    const enum tr_character_class class = look(at, end, &behind);
    if (class == TR_CHARACTER_LETTER) return run_of(class, behind, end, 0);
    if (class == TR_CHARACTER_NUMBER) return run_of(class, at, end, digits);
    if (!is_break(*at) && look(behind, end, &second) == TR_CHARACTER_LETTER)
        return run_of(TR_CHARACTER_LETTER, second, end, 0);
    const char *sign = at + (*at == ' ');
    if (sign < end && look(sign, end, &behind) == TR_CHARACTER_OTHER) {
        to = run_of(TR_CHARACTER_OTHER, behind, end, 0);
        while (to < end && is_break(*to)) to++;
        return to;
    }
    to = breaks(at, end);
    return to > at ? to : blanks(at, end);
}

const char *tr_bpe_split(enum tr_bpe_pattern pattern, const char *at, const char *end)
{
    if (pattern == TR_BPE_GPT2) return split_gpt2(at, end);
    return split_cl100k(at, end, pattern == TR_BPE_CL100K ? 3 : 1);
}
