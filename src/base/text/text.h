/* Text: a growing string, strict numbers independent of the locale, the nearest known word, figures for
 * people.
 *
 * All functions may be called from any thread, on different objects.
 */
#ifndef TR_BASE_TEXT_H
#define TR_BASE_TEXT_H

#include "trireme/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A string that grows. Start with TR_TEXT_INIT. A failed allocation is remembered, later additions do
   nothing, and tr_text_finish() reports it, so that additions need no checks. */
struct tr_text {
    char *bytes; /* terminated once anything was added */
    size_t length, capacity;
    bool failed;
};

#define TR_TEXT_INIT                                                                                         \
    {                                                                                                        \
        0                                                                                                    \
    }

void tr_text_add(struct tr_text *text, const char *string);
void tr_text_add_bytes(struct tr_text *text, const char *bytes, size_t length);
void tr_text_addf(struct tr_text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Adds `count` times `c`. */
void tr_text_pad(struct tr_text *text, char c, size_t count);
/* Adds `string` as a JSON string with its quotes; invalid UTF-8 becomes U+FFFD. A JSON string is also a
   double-quoted YAML scalar. */
void tr_text_add_quoted(struct tr_text *text, const char *string);
/* Adds `word` as a POSIX shell reads it: unchanged, or in single quotes where it has special characters. */
void tr_text_add_word(struct tr_text *text, const char *word);
/* The same as a separate text. Returned, free with tr_free(); NULL when memory fails. */
char *tr_text_word(const char *word);
/* Gives the string to the caller (returned, free with tr_free) and empties `text`. TR_ENOMEM if an
 * addition failed.
 */
tr_status tr_text_finish(struct tr_text *text, char **out);
/* Frees the contents and empties `text`. */
void tr_text_release(struct tr_text *text);

/* The number of bytes of the UTF-8 character at the beginning of `string`, and its code point; 0 if it is
   invalid (overlong, surrogate, cut, ...). The terminator ends a cut character, since it is not a
   continuation byte. */
size_t tr_text_utf8(const char *string, uint32_t *character);

/* Strict numbers: the whole string, no blanks, no "inf" or "nan". They return NULL on success; otherwise
   the fault as the end of a sentence ("is not a number", "is too large"), in static storage, and *out does
   not change. */

/* Decimal, or hexadecimal after 0x; an optional sign. */
const char *tr_text_int64(const char *string, int64_t *out);
/* Decimal or hexadecimal, with point and exponent, or a fraction of two such numbers ("1/255"). A number that
   is not 0 but rounds to 0 is refused like one that overflows. */
const char *tr_text_double(const char *string, double *out);
/* As tr_text_double(), then rounded to float once. */
const char *tr_text_float(const char *string, float *out);
/* true, false, yes, no, on, off. */
const char *tr_text_bool(const char *string, bool *out);

/* Enough for every function below. */
#define TR_TEXT_NUMBER_SIZE 40

/* The shortest decimals that read back as the same value; "." whatever the locale. They write at most
   TR_TEXT_NUMBER_SIZE bytes and return `buffer`. */
const char *tr_text_from_double(double value, char buffer[TR_TEXT_NUMBER_SIZE]);
const char *tr_text_from_float(float value, char buffer[TR_TEXT_NUMBER_SIZE]);

/* For people: "3,274,634"; "12.5 MiB"; "850 ms", "4.2 s", "3 min 07 s", "2 h 05 min". They return `buffer`.
 */
const char *tr_text_from_count(int64_t count, char buffer[TR_TEXT_NUMBER_SIZE]);
const char *tr_text_from_bytes(int64_t bytes, char buffer[TR_TEXT_NUMBER_SIZE]);
const char *tr_text_from_seconds(double seconds, char buffer[TR_TEXT_NUMBER_SIZE]);

/* The capital of an ASCII letter, other bytes unchanged; toupper() depends on the locale. */
static inline char tr_text_upper(char c)
{
    return c >= 'a' && c <= 'z' ? (char)(c - 'a' + 'A') : c;
}

/* The number of insertions, deletions, replacements and swaps of neighbours that turn `a` into `b`; words
   longer than 63 bytes count as unrelated (INT32_MAX). Case is ignored, and '-' equals '_'. */
int32_t tr_text_distance(const char *a, const char *b);
/* The nearest of `count` words, for "did you mean": NULL when none is near enough. The result is one of
   `words`; ties go to the first. */
const char *tr_text_nearest(const char *word, const char *const *words, int32_t count);
/* Adds `"word" is none of a, b, c; did you mean "b"?`, with the question only where one is near enough:
   the message for every word that is not among the valid ones. */
void tr_text_add_unknown(struct tr_text *text, const char *word, const char *const *words, int32_t count);

#endif
