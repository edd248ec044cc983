/* Names of classes that labels are written by: a set while the training data are read, then numbered from 0
 * in the order of their bytes.
 *
 * They follow the state of a source (data/state.h) as a separate part of the kind "classes", so that other
 * data sets use the same numbers.
 */
#ifndef TR_DATA_CLASS_NAMES_H
#define TR_DATA_CLASS_NAMES_H

#include "base/text/text.h"

#define TR_CLASS_NAMES_MAX 4096 /* most names that a job can keep, see TR_OPTION_STRINGS_MAX */

/* Begins as {0}. */
struct tr_class_names {
    int32_t count, room;
    char **name; /* [count] ascending, different from each other, without NUL and line feed */
};

/* The number of a name, -1 where it is not in the set. Any thread. */
int32_t tr_class_names_find(const struct tr_class_names *names, const char *at, size_t length);
/* Adds a name, unless it is there already; it has no line feed. TR_EFORMAT, without the place of the name:
   there are more than TR_CLASS_NAMES_MAX, or it has a byte 0. TR_ENOMEM. */
tr_status tr_class_names_add(struct tr_class_names *names, const char *at, size_t length);
/* Fails for a label that is not in the set, and names the nearest name. TR_EFORMAT; the caller adds the
   place. */
void tr_class_names_add_unknown(const struct tr_class_names *names, const char *at, size_t length,
                                struct tr_text *text);
/* Empties them. */
void tr_class_names_release(struct tr_class_names *names);

/* Adds the part to a complete state; adds nothing where there are no names. */
void tr_class_names_write(const struct tr_class_names *names, struct tr_text *state);
/* Reads the part from a state, which may be hostile; a state without it has no names. Returned, also after
   a failure, release with tr_class_names_release(). TR_EFORMAT, TR_ENOMEM. */
tr_status tr_class_names_read(const char *state, struct tr_class_names *names);

#endif
