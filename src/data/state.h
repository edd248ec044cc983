/* State of a source as text: the facts that a second source must share with the first, one on each line.
 *
 *     trireme <kind> 1, <classes> classes, <lines> lines
 *     <line>
 *     ...
 *
 * Names of classes by which labels are written may follow as a second part of the same form, of the kind
 * TR_STATE_CLASSES (data/images/class_names.h), and those of columns as a last one
 * (data/tables/categories.h).
 *
 * It is kept in files beside a model, so it may be hostile when read. Each line ends with a line feed and
 * contains no other one and no NUL.
 */
#ifndef TR_DATA_STATE_H
#define TR_DATA_STATE_H

#include "base/text/text.h"

#define TR_STATE_CLASSES    "classes"
#define TR_STATE_CATEGORIES "categories"

/* Position of a reader. */
struct tr_state_reader {
    const char *kind; /* "classes", "vocabulary", "scaling" */
    const char *at;
    int32_t classes;
    int64_t lines, line; /* number of lines, and those read */
};

/* Reads the first line. `text` and `kind` are borrowed while lines are read; a NULL text reads as no lines
   and 0 classes. TR_EMISMATCH for the state of another kind of source, TR_EFORMAT for other text. */
tr_status tr_state_begin(const char *text, const char *kind, struct tr_state_reader *reader);
/* Whether a state is of this kind, by its beginning. */
bool tr_state_is(const char *text, const char *kind);
/* A later part of a state, of this kind; borrowed from the text, NULL if there is none. */
const char *tr_state_part(const char *text, const char *kind);
/* The next line, without its line feed, borrowed from the text. TR_EFORMAT when there is none. */
tr_status tr_state_next(struct tr_state_reader *reader, const char **line, size_t *length);
/* TR_EFORMAT unless all lines were read and nothing follows but parts of names. */
tr_status tr_state_end(const struct tr_state_reader *reader);

/* Adds the first line. */
void tr_state_add_head(struct tr_text *text, const char *kind, int32_t classes, int64_t lines);

/* A state that holds only classes: their names, or only their number when `names` is NULL (classes are
   then called by their numbers). Lines of numbers are not written: a wrong label can make 16 million
   classes, and so many lines would take seconds and 140 MB in every checkpoint. */
tr_status tr_state_of_classes(const char *const *names, int32_t classes, char **text);
/* The number of classes in such a state, 0 for NULL. It also accepts lines with the numbers of the
   classes, which older versions wrote. TR_EFORMAT. */
tr_status tr_state_read_classes(const char *text, int32_t *classes);

#endif
