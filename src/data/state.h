/* State of a source as text: what a second source must share with the first, one thing a line.
 *
 *     trireme <kind> 1, <classes> classes, <lines> lines
 *     <line>
 *     ...
 *
 * Names of classes by which labels are written may follow as a second part of the same form, of the kind
 * TR_STATE_CLASSES (data/images/class_names.h), and those of columns as a last one
 * (data/tables/categories.h).
 *
 * It is kept in files beside a model, so it is as hostile as any file when read. Lines contain no line feed
 * and no NUL and end with a line feed each.
 */
#ifndef TR_DATA_STATE_H
#define TR_DATA_STATE_H

#include "base/text/text.h"

#define TR_STATE_CLASSES    "classes"
#define TR_STATE_CATEGORIES "categories"

/* Where reading stands. */
struct tr_state_reader {
    const char *kind; /* "classes", "vocabulary", "scaling" */
    const char *at;
    int32_t classes;
    int64_t lines, line; /* in all, and those read */
};

/* Reads the first line. `text` and `kind` are borrowed while lines are read; a NULL text reads as no lines
   and 0 classes. TR_EMISMATCH when it is the state of another kind of source, TR_EFORMAT when it is none. */
tr_status tr_state_begin(const char *text, const char *kind, struct tr_state_reader *reader);
/* Whether a state is of this kind, to judge by its beginning. */
bool tr_state_is(const char *text, const char *kind);
/* The second part of a state, if it has one of this kind; borrowed from the text, else NULL. */
const char *tr_state_part(const char *text, const char *kind);
/* The next line, without its line feed, borrowed from the text. TR_EFORMAT when there is none. */
tr_status tr_state_next(struct tr_state_reader *reader, const char **line, size_t *length);
/* TR_EFORMAT unless all lines were read and nothing follows but a part of names. */
tr_status tr_state_end(const struct tr_state_reader *reader);

/* Adds the first line. */
void tr_state_add_head(struct tr_text *text, const char *kind, int32_t classes, int64_t lines);

/* State that is nothing but classes: their names, or only how many they are when `names` is NULL (they are
   called by their numbers then); a wrong label can make them 16 million, of which a line each would take
   seconds and 140 MB in every checkpoint. */
tr_status tr_state_of_classes(const char *const *names, int32_t classes, char **text);
/* The number of classes in such a state, 0 for NULL. The lines may also be the numbers of the classes, as
   older versions wrote them. TR_EFORMAT. */
tr_status tr_state_read_classes(const char *text, int32_t *classes);

#endif
