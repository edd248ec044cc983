/* Labels of texts: for each text a number from 0 or the name of a class, or a number for each token. */
#ifndef TR_DATA_TEXT_LABELS_H
#define TR_DATA_TEXT_LABELS_H

#include "data/images/class_names.h"
#include "data/text/text_records.h"

#define TR_TEXT_CLASSES_MAX (1 << 20)

/* The labels of a file. Set `form`, `tags` and `classes`; release `names`. */
struct tr_text_labels {
    const struct tr_text_form *form;
    bool tags;       /* a label for each token */
    int32_t classes; /* given, or 0 */
    int32_t largest; /* largest number so far */
    bool named;      /* labels are names */
    bool collects;   /* new names are added */
    struct tr_class_names names;
};

/* Determines whether labels are names: those of `state`, or, where it is NULL, of the file's records. They
   are names if no record has a number; then they are collected while records are checked. TR_EFORMAT,
   TR_ENOMEM. */
tr_status tr_text_labels_settle(struct tr_text_labels *labels, const char *path, const char *file,
                                size_t size, const char *state);

/* Checks the label of a record of `tokens` tokens; `*label` becomes that of a text. TR_EFORMAT, with file,
   line and column. */
tr_status tr_text_labels_check(struct tr_text_labels *labels, const struct tr_lines *lines,
                               const struct tr_text_record *record, int64_t tokens, int32_t *label);

/* The labels of the first `room` tokens of a checked record. */
tr_status tr_text_labels_tags(const struct tr_text_labels *labels, const struct tr_lines *lines,
                              const struct tr_text_record *record, int32_t *out, int64_t room);

#endif
