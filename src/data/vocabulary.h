/* Words and their numbers.
 *
 * Token 0 stands for every word that is not in the vocabulary; the others are numbered by descending count in
 * the training text, ties by their bytes. A text is split at blanks. A vocabulary that is saved with a model
 * (state "vocabulary", see data/state.h) holds all that turns a text into tokens:
 *
 *     trireme vocabulary 1, <classes> classes, <lines> lines
 *     lower_case <0 or 1> max_tokens <number>
 *     <unknown>
 *     <word 1>
 *     ...
 */
#ifndef TR_DATA_VOCABULARY_H
#define TR_DATA_VOCABULARY_H

#include "trireme/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct tr_vocabulary tr_vocabulary;

#define TR_VOCABULARY_MAX (1 << 24) /* words */

/* lower_case: A to Z are read as a to z. max_tokens: longer texts are cut; 0: not. Returned, destroy with
   tr_vocabulary_destroy(). */
tr_status tr_vocabulary_create(bool lower_case, int32_t max_tokens, tr_vocabulary **out);
/* Accepts NULL, nulls the handle. */
void tr_vocabulary_destroy(tr_vocabulary **vocabulary);

/* Counts the words of a text, the ones beyond max_tokens too. Only before tr_vocabulary_settle(). */
tr_status tr_vocabulary_count(tr_vocabulary *vocabulary, const char *text, size_t length);
/* Numbers the words that occurred at least `min_count` times, at most `max_words` of them (token 0 included;
   0: all there are). */
tr_status tr_vocabulary_settle(tr_vocabulary *vocabulary, int64_t min_count, int32_t max_words);

/* Reads what tr_vocabulary_write() wrote; *classes becomes the number of classes noted there. TR_EFORMAT. */
tr_status tr_vocabulary_read(const char *state, tr_vocabulary **out, int32_t *classes);
/* Returned, free with tr_free(). Any thread. */
tr_status tr_vocabulary_write(const tr_vocabulary *vocabulary, int32_t classes, char **state);

/* Tokens there are, 0 included. */
int32_t tr_vocabulary_size(const tr_vocabulary *vocabulary);
/* The word of a token; "<unknown>" for 0. Borrowed. */
const char *tr_vocabulary_word(const tr_vocabulary *vocabulary, int32_t token);

/* The number of tokens of a text, after cutting. Any thread. */
int64_t tr_vocabulary_length(const tr_vocabulary *vocabulary, const char *text, size_t length);
/* Writes the tokens of a text, tr_vocabulary_length() of them. Any thread. */
void tr_vocabulary_encode(const tr_vocabulary *vocabulary, const char *text, size_t length, int32_t *tokens);

#endif
