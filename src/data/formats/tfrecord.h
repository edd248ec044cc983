/* TFRecord files: records (io/record.h) one after another, the whole file plain, gzip or zlib. */
#ifndef TR_DATA_TFRECORD_H
#define TR_DATA_TFRECORD_H

#include "base/files/ops.h"
#include "data/files/inflate.h"
#include "data/source.h"
#include "io/record.h"

/* ---- reading ---- */

/* A file open for reading: mapped, or unpacked into memory. */
struct tr_record_file {
    char *path;
    const uint8_t *data;
    size_t size;
    const uint8_t *map; /* what to unmap, or NULL */
    uint8_t *unpacked;  /* what to free, or NULL */
};

/* `path` is taken (freed with tr_free() by closing, also after a failure). packing: an enum tr_packing, or
   -1: seen from the contents. */
tr_status tr_record_file_open(char *path, int packing, struct tr_record_file *file);
/* Whether a file is packed, seen from its contents; false where it cannot be read. */
bool tr_record_file_is_packed(const char *path);
/* Accepts a zeroed file. */
void tr_record_file_close(struct tr_record_file *file);

/* What is wrong with a record. */
enum tr_record_fault {
    TR_RECORD_GOOD,
    TR_RECORD_BAD_DATA,   /* the data's checksum: the next record is where it should be */
    TR_RECORD_BAD_LENGTH, /* the length or the file's end: nothing after it can be found */
};

/* The record at `offset` (at most the file's size): its data, borrowed, and *fault. The message of anything
   but TR_RECORD_GOOD names file and offset. `check` verifies the data's checksum. Any thread. */
tr_status tr_record_at(const struct tr_record_file *file, uint64_t offset, bool check, const uint8_t **data,
                       size_t *size, enum tr_record_fault *fault);

/* ---- writing ---- */

/* A file being written, aside until it is complete. Used by one thread at a time. */
typedef struct tr_record_writer tr_record_writer;

/* Returned, end with tr_record_writer_finish() or tr_record_writer_abandon(). `path` is borrowed until then.
 */
tr_status tr_record_writer_create(const char *path, enum tr_packing packing, tr_record_writer **out);
/* Appends a record. After a failure only abandoning is allowed. */
tr_status tr_record_writer_add(tr_record_writer *writer, const void *data, size_t size);
/* Makes the file durable and puts it in place; nulls the handle, also on failure, when nothing is left
 * after. */
tr_status tr_record_writer_finish(tr_record_writer **writer);
/* Removes what was written. Accepts NULL, nulls the handle. */
void tr_record_writer_abandon(tr_record_writer **writer);

/* ---- the source ---- */

/* {tfrecord: {path: PATH or [PATH, ...], ...}}: records that are tf.train.Example. State: classes.txt. */
extern const struct tr_source_format tr_source_format_tfrecord;

#endif
