/* Other programs' names for things that have different names in model files and on command lines.
 *
 * One table serves keys, layers, losses, rules and options: which of several meanings applies depends on
 * the words that are allowed where the name was written. All functions may be called from any thread.
 */
#ifndef TR_BASE_FOREIGN_H
#define TR_BASE_FOREIGN_H

#include "base/text/text.h"

/* Case, '_' and '-' of `theirs` are ignored. `ours` is a word or, with points, the path of a key in a
 * model file.
 */
struct tr_foreign {
    const char *theirs, *ours;
};

/* Ends with a NULL in `theirs`. */
extern const struct tr_foreign tr_foreign_names[];

/* Which of `count` words another program calls `word`, or which equals it except for case, '_' and '-'.
   NULL: none. One of `words`. */
const char *tr_foreign_word(const char *word, const char *const *words, int32_t count);
/* The same, else the nearest of the words as tr_text_nearest() finds it. */
const char *tr_foreign_meant(const char *word, const char *const *words, int32_t count);
/* The path of the key in a model file that `word` means in any section ("optimizer.rate"), NULL: none.
   Static storage. */
const char *tr_foreign_path(const char *word);

#endif
