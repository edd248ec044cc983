/* Vectors of words from a file: text as word2vec, GloVe and fastText write it, or an array of NumPy.
 *
 *     text       a line for each word: the word, then its numbers, split by blanks; the first line may be the
 *                number of words and of numbers instead. Plain or gzip
 *     .npy       [words, width] of f4 or f8, little-endian: row t is that of token t
 */
#ifndef TR_TRAIN_VECTORS_H
#define TR_TRAIN_VECTORS_H

#include "base/numbers/hash.h"
#include "trireme/status.h"

#include <stdint.h>

/* What to read. */
struct tr_vectors_wanted {
    int64_t words, width;
    const char *state; /* the vocabulary of a text source, for text; or NULL */
    float *values;     /* [words][width]: rows of words that the file has are written; NULL: nothing is */
};

/* Reads the file. Of duplicate words (also by ignoring case) the first is used; words that the vocabulary
   does not have are skipped. *taken: words found; `digest`: of the file's contents. TR_EFORMAT with line,
   TR_EMISMATCH for another width or no word in common, TR_ENONFINITE, TR_ENOMEM, errors of reading. */
tr_status tr_vectors_read(const char *path, const struct tr_vectors_wanted *wanted, int64_t *taken,
                          char digest[TR_SHA256_TEXT]);

#endif
