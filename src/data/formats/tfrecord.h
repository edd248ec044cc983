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
    const uint8_t *map; /* mapped memory to unmap, or NULL */
    uint8_t *unpacked;  /* memory to free, or NULL */
};

/* `path` is taken (freed with tr_free() by closing, also after a failure). packing: an enum tr_packing, or
   -1: determined from the contents. */
tr_status tr_record_file_open(char *path, int packing, struct tr_record_file *file);
/* Whether a file is packed, by its contents; false where it cannot be read. */
bool tr_record_file_is_packed(const char *path);
/* Accepts a zeroed file. */
void tr_record_file_close(struct tr_record_file *file);

/* Faults of a record. */
enum tr_record_fault {
    TR_RECORD_GOOD,
    TR_RECORD_BAD_DATA,   /* wrong checksum of the data: the next record follows where expected */
    TR_RECORD_BAD_LENGTH, /* wrong length or end of file: no later record can be found */
};

/* Reads the record at `offset` (at most the file's size): its data, borrowed, and *fault. For all but
   TR_RECORD_GOOD a message names file and offset. `check` verifies the data's checksum. Any thread. */
tr_status tr_record_at(const struct tr_record_file *file, uint64_t offset, bool check, const uint8_t **data,
                       size_t *size, enum tr_record_fault *fault);

/* ---- writing ---- */

/* A file being written, under another name until it is complete. Used by one thread at a time. */
typedef struct tr_record_writer tr_record_writer;

/* Returned, end with tr_record_writer_finish() or tr_record_writer_abandon(). `path` is borrowed until then.
 */
tr_status tr_record_writer_create(const char *path, enum tr_packing packing, tr_record_writer **out);
/* Appends a record. After a failure only abandoning is allowed. */
tr_status tr_record_writer_add(tr_record_writer *writer, const void *data, size_t size);
/* Makes the file durable and renames it; nulls the handle. After a failure no file is left. */
tr_status tr_record_writer_finish(tr_record_writer **writer);
/* Removes the unfinished file. Accepts NULL, nulls the handle. */
void tr_record_writer_abandon(tr_record_writer **writer);

/* ---- the source ---- */

/* {tfrecord: {path: PATH or [PATH, ...], ...}}: records that are tf.train.Example. State: classes.txt. */
extern const struct tr_source_format tr_source_format_tfrecord;

#endif
