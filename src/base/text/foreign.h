/* Names that other programs give to what has another name in model files and on command lines.
 *
 * One table for keys, layers, losses, rules and options alike: which of several meanings counts follows from
 * the words that are allowed where the name was written. All functions may be called from any thread.
 */
#ifndef TR_BASE_FOREIGN_H
#define TR_BASE_FOREIGN_H

#include "base/text/text.h"

/* Case, '_' and '-' of `theirs` do not matter. `ours` is a word, or with points the path of a key in a model
 * file. */
struct tr_foreign {
    const char *theirs, *ours;
};

/* Ends with a NULL in `theirs`. */
extern const struct tr_foreign tr_foreign_names[];

/* Which of `count` words another program calls `word`, or would be `word` but for case, '_' and '-'. NULL:
   none. One of `words`. */
const char *tr_foreign_word(const char *word, const char *const *words, int32_t count);
/* The same, else the nearest of the words as tr_text_nearest() finds it. */
const char *tr_foreign_meant(const char *word, const char *const *words, int32_t count);
/* The path of the key in a model file that `word` means wherever it stands ("optimizer.rate"), NULL: none.
   Static storage. */
const char *tr_foreign_path(const char *word);

#endif
