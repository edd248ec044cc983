/* Names of classes that labels are written by: a set while the training data are read, then numbered from 0
 * in the order of their bytes.
 *
 * They are kept after the state of a source (data/state.h), as a part of the kind "classes" of its own, so
 * that other data sets number them alike.
 */
#ifndef TR_DATA_CLASS_NAMES_H
#define TR_DATA_CLASS_NAMES_H

#include "base/text/text.h"

#define TR_CLASS_NAMES_MAX 4096 /* names that a job can keep, see TR_OPTION_STRINGS_MAX */

/* Begins as {0}. */
struct tr_class_names {
    int32_t count, room;
    char **name; /* [count] ascending, different from each other, without NUL and line feed */
};

/* The number of a name, -1 where there is no such. Any thread. */
int32_t tr_class_names_find(const struct tr_class_names *names, const char *at, size_t length);
/* Adds a name that may be there already; it has no line feed. TR_EFORMAT without a place for the name: there
   are more than TR_CLASS_NAMES_MAX, or it has a byte 0. TR_ENOMEM. */
tr_status tr_class_names_add(struct tr_class_names *names, const char *at, size_t length);
/* Fails for a label that has no number: says the nearest of the names. TR_EFORMAT; the caller adds the place.
 */
void tr_class_names_add_unknown(const struct tr_class_names *names, const char *at, size_t length,
                                struct tr_text *text);
/* Empties them. */
void tr_class_names_release(struct tr_class_names *names);

/* Adds the part to a state that is complete; nothing where there are no names. */
void tr_class_names_write(const struct tr_class_names *names, struct tr_text *state);
/* Reads it from a state, hostile as it may be; without such a part there are none. Returned, also after a
   failure, release with tr_class_names_release(). TR_EFORMAT, TR_ENOMEM. */
tr_status tr_class_names_read(const char *state, struct tr_class_names *names);

#endif
