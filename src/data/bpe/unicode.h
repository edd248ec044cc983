/* The properties of characters that byte-level tokenizers use: which are letters, numbers and blanks, and
 * their composed form.
 *
 * The tables are pinned (unicode_tables.inc, made by python/tools/unicode_tables.py): a library's own version
 * of Unicode would make tokens depend on the machine. Any thread.
 */
#ifndef TR_DATA_BPE_UNICODE_H
#define TR_DATA_BPE_UNICODE_H

#include "base/text/text.h"

enum tr_character_class {
    TR_CHARACTER_OTHER,
    TR_CHARACTER_LETTER, /* general category L */
    TR_CHARACTER_NUMBER, /* general category N */
    TR_CHARACTER_SPACE   /* White_Space */
};

/* "14.0.0" */
extern const char tr_unicode_version[];
enum tr_character_class tr_character_class_of(uint32_t character);
/* The ranges of the table, ascending from 0: for each, its first character times 4, plus its class. */
const uint32_t *tr_character_ranges(int *count);

/* The number of bytes of the character at `at` < `end`, at least 1, and its number. A byte that is not
   part of a character is one of its own, numbered above all characters. */
size_t tr_character_at(const char *at, const char *end, uint32_t *character);
void tr_character_add(struct tr_text *text, uint32_t character);

/* Adds the normalization form C of a text (Unicode Standard Annex 15). Bytes that are not part of a
   character stay. Ordering a run of combining marks takes memory of the size of the run. */
void tr_unicode_compose(const char *string, size_t length, struct tr_text *text);

#endif
