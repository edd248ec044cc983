/* The units of a text (words, characters, bytes or subwords) and their numbers.
 *
 * Token 0 stands for every unit that is not in the vocabulary; the others are numbered by descending count
 * in the training text, ties by their bytes. Bytes are their own numbers, and all are there. The same
 * holds for ids: token numbers from another program, in texts written as decimals between blanks. Words
 * are separated by blanks; characters are those of UTF-8. Subwords are those of a tokenizer
 * (data/bpe/bpe.h). A vocabulary that is saved with a model (state "vocabulary", see data/state.h) holds
 * all that is needed to turn a text into tokens:
 *
 *     trireme vocabulary 1, <classes> classes, <lines> lines
 *     lower_case <0 or 1> max_tokens <number>[ unit characters|bytes|ids|bpe][ boundary]
 *     ids <number>                           with ids, unless there are <classes> of them
 *     <unknown>                              not with bytes and ids, as all that follows
 *     <word 1>                               or the number of a character as "U+0041"
 *     ...
 *
 * With bpe the lines are those of a tokenizer.json. With a boundary there is one more token, the last one,
 * which stands before a text and after it, and has no text itself.
 */
#ifndef TR_DATA_VOCABULARY_H
#define TR_DATA_VOCABULARY_H

#include "base/options/option.h"
#include "data/bpe/bpe.h"
#include "base/text/text.h"

typedef struct tr_vocabulary tr_vocabulary;

enum tr_unit { TR_UNIT_WORDS, TR_UNIT_CHARACTERS, TR_UNIT_BYTES, TR_UNIT_IDS, TR_UNIT_BPE };
/* "words", "characters", "bytes", "ids", "bpe": the choices of an option; and the names used in a state's
 * text.
 */
extern const struct tr_choice tr_unit_choices[], tr_text_unit_choices[];
/* Most tokens of an example that is read. */
#define TR_TOKENS_MAX (1 << 20)

#define TR_VOCABULARY_MAX (1 << 24) /* words */
#define TR_IDS_MAX        (1 << 20)

/* lower_case: A to Z are read as a to z. max_tokens: longer texts are cut; 0: never. Returned, destroy
   with tr_vocabulary_destroy(). */
tr_status tr_vocabulary_create(enum tr_unit unit, bool lower_case, int32_t max_tokens, tr_vocabulary **out);
/* Accepts NULL, nulls the handle. */
void tr_vocabulary_destroy(tr_vocabulary **vocabulary);

/* Counts the words of a text, also those beyond max_tokens. Only before tr_vocabulary_settle(). */
tr_status tr_vocabulary_count(tr_vocabulary *vocabulary, const char *text, size_t length);
/* Numbers the words that occurred at least `min_count` times, at most `max_words` of them (token 0
   included; 0: no limit). */
tr_status tr_vocabulary_settle(tr_vocabulary *vocabulary, int64_t min_count, int32_t max_words);
/* Replaces counting and settling: ids from 0 to count - 1, 1 <= count <= TR_IDS_MAX. */
tr_status tr_vocabulary_settle_ids(tr_vocabulary *vocabulary, int32_t count);

/* Replaces counting and settling: the tokens of a tokenizer, which is taken. Where a network has more
   tokens, `ids` is their number, and the additional ones have no text. */
void tr_vocabulary_settle_bpe(tr_vocabulary *vocabulary, tr_bpe **bpe, int32_t ids);
/* The tokenizer, borrowed; NULL where there is none. */
const tr_bpe *tr_vocabulary_bpe(const tr_vocabulary *vocabulary);

/* Adds the boundary as the last token, after settling; once. */
void tr_vocabulary_add_boundary(tr_vocabulary *vocabulary);
/* The boundary, -1 where there is none. */
int32_t tr_vocabulary_boundary(const tr_vocabulary *vocabulary);

/* Reads text of tr_vocabulary_write(); *classes becomes the number of classes noted there. TR_EFORMAT. */
tr_status tr_vocabulary_read(const char *state, tr_vocabulary **out, int32_t *classes);
/* Whether such a text has a boundary; false for any other text. */
bool tr_vocabulary_state_has_boundary(const char *state);
/* Returned, free with tr_free(). Any thread. */
tr_status tr_vocabulary_write(const tr_vocabulary *vocabulary, int32_t classes, char **state);

/* The number of tokens, 0 and the boundary included. */
int32_t tr_vocabulary_size(const tr_vocabulary *vocabulary);
enum tr_unit tr_vocabulary_unit(const tr_vocabulary *vocabulary);
/* Whether token 0 stands for unknown units. */
bool tr_vocabulary_has_unknown(const tr_vocabulary *vocabulary);
/* Where there are ids: the first word that is no id, -1 for none. Any thread. */
int64_t tr_vocabulary_no_id(const tr_vocabulary *vocabulary, const char *text, size_t length);
/* Whether capitals are read as small letters. */
bool tr_vocabulary_folds(const tr_vocabulary *vocabulary);
/* The word of a token; "<unknown>" for 0. Borrowed. Not of subwords, which may have any bytes, nor of the
   boundary. */
const char *tr_vocabulary_word(const tr_vocabulary *vocabulary, int32_t token);

/* The first byte of a text that does not fit the unit (invalid UTF-8 for characters; 0 for all units but
   bytes), or NULL. Encoding gives such bytes the token 0. Any thread. */
const char *tr_vocabulary_misfit(const tr_vocabulary *vocabulary, const char *text, size_t length);
/* All tokens of a text; returned, free with tr_free(). Does not cut. TR_ENOMEM. The functions below, which
   count and find tokens without allocating, are not for subwords. */
tr_status tr_vocabulary_encode_all(const tr_vocabulary *vocabulary, const char *text, size_t length,
                                   int32_t **tokens, int64_t *count);

/* The bytes of the first `tokens` tokens of a text, all if it has fewer; does not cut. Any thread. */
size_t tr_vocabulary_reach(const tr_vocabulary *vocabulary, const char *text, size_t length, int64_t tokens);
/* The number of tokens of a text, of which the first `room` have their bytes [begin[i], end[i]) written.
   Does not cut. Any thread. */
int64_t tr_vocabulary_spans(const tr_vocabulary *vocabulary, const char *text, size_t length, int64_t room,
                            size_t *begin, size_t *end);
/* The number of tokens of a text, and after cutting. Any thread. */
int64_t tr_vocabulary_tokens(const tr_vocabulary *vocabulary, const char *text, size_t length);
int64_t tr_vocabulary_length(const tr_vocabulary *vocabulary, const char *text, size_t length);
/* Writes the first `count` tokens of a text, which has at least so many. Any thread. */
void tr_vocabulary_encode(const tr_vocabulary *vocabulary, const char *text, size_t length, int64_t count,
                          int32_t *tokens);

/* Adds the text of tokens, each below the size: words with a blank between them. `begun`: a blank also
   stands before the first. An unknown token becomes the replacement character U+FFFD; the boundary adds
   nothing. Any thread. */
void tr_vocabulary_decode(const tr_vocabulary *vocabulary, const int32_t *tokens, int64_t count, bool begun,
                          struct tr_text *text);
/* Adds it as one line for people: control characters and invalid UTF-8 are written as \n, \t or \xNN. Any
   thread. */
void tr_vocabulary_show(const tr_vocabulary *vocabulary, const int32_t *tokens, int64_t count,
                        struct tr_text *text);

#endif
