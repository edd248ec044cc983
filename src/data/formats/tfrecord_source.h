/* Inside the TFRecord source: its structure, shared by opening and reading. */
#ifndef TR_DATA_TFRECORD_SOURCE_H
#define TR_DATA_TFRECORD_SOURCE_H

#include "data/example.h"
#include "data/formats/tfrecord.h"

/* The features of an example, in the order of tr_tfrecord_source.feature. */
enum { TR_TFRECORD_FEATURE, TR_TFRECORD_LABEL, TR_TFRECORD_PIXELS, TR_TFRECORD_FEATURES };

struct tr_tfrecord_source {
    tr_source base;
    struct tr_record_file *file;
    int64_t *first; /* [files + 1] the first example of each file */
    int32_t files;
    uint64_t *offset;                                        /* [count] of the example's record in its file */
    struct tr_example_feature feature[TR_TFRECORD_FEATURES]; /* with their names; those with empty names
                                                                are never found */
    char *names;                                             /* memory of the names */
};

extern const struct tr_source_class tr_tfrecord_class;

/* Checks a record's data against the source's info, and copies them to `features` and `label` (each may be
   NULL). TR_EFORMAT, without the place of the record. Any thread. */
tr_status tr_tfrecord_decode(const struct tr_tfrecord_source *source, const uint8_t *data, size_t size,
                             void *features, void *label);

#endif
