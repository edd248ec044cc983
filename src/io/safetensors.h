/* Tensors in a file, in the safetensors format, which other programs read and write too.
 *
 *     8 bytes    N, little-endian, at most 100,000,000
 *     N bytes    JSON object, begins with '{', padded with spaces so that 8 + N is a multiple of 8
 *                {"__metadata__": {text: text, ...},
 *                 name: {"dtype": "F32", "shape": [5, 5, 1, 32], "data_offsets": [begin, end]}, ...}
 *     the rest   the tensors' data, little-endian, C order; offsets count from here
 *
 * Invariant of a file that tr_safetensors_open() accepts: names are unique, every size fits its shape and
 * type, and the data tile the rest of the file from its beginning to its end without holes or overlaps.
 */
#ifndef TR_IO_SAFETENSORS_H
#define TR_IO_SAFETENSORS_H

#include "base/files/ops.h"

/* Element types of the format. Trireme computes with the first four; the others are known so that other
   programs' files can be listed. */
enum tr_dtype {
    TR_DTYPE_F32,
    TR_DTYPE_I32,
    TR_DTYPE_I64,
    TR_DTYPE_U8,
    TR_DTYPE_F64,
    TR_DTYPE_F16,
    TR_DTYPE_BF16,
    TR_DTYPE_I8,
    TR_DTYPE_I16,
    TR_DTYPE_U16,
    TR_DTYPE_U32,
    TR_DTYPE_U64,
    TR_DTYPE_BOOL,
    TR_DTYPE_F8_E4M3,
    TR_DTYPE_F8_E5M2,
    TR_DTYPE_COUNT
};

/* "F32". Static storage. */
const char *tr_dtype_name(enum tr_dtype dtype);
/* Bytes of an element. */
size_t tr_dtype_size(enum tr_dtype dtype);

#define TR_STORED_RANK 8

/* A tensor outside the program, or the place in memory that it is written from or read into. */
struct tr_stored_tensor {
    const char *name;
    enum tr_dtype dtype;
    int rank; /* 0: a single element */
    int64_t shape[TR_STORED_RANK];
    void *data; /* C order; NULL in the description of a file. Writers only read it. */
};

/* The bytes of the data. TR_EINVAL when a size is negative or the product overflows (the message has no
 * name; the caller adds it).
 */
tr_status tr_stored_bytes(const struct tr_stored_tensor *tensor, uint64_t *bytes);
/* Whether type and shape agree. */
bool tr_stored_alike(const struct tr_stored_tensor *a, const struct tr_stored_tensor *b);
#define TR_STORED_TEXT 192
/* Writes "F32[5,5,1,32]" and returns `text`. */
const char *tr_stored_describe(const struct tr_stored_tensor *tensor, char text[TR_STORED_TEXT]);

struct tr_stored_metadata {
    const char *key, *value;
};

/* Results of tr_safetensors_write(). */
struct tr_safetensors_summary {
    uint64_t bytes;      /* size of the file */
    uint32_t header_crc; /* CRC-32C of the 8 + N bytes before the data */
};

/* A source of tensors' data that are not in memory. It is called for the data in the order in which they
   are written, without gaps: those of tensor `index` from byte `at` on. It sets *piece, borrowed until the
   next call, and its size, from 1 to the rest of the tensor. */
struct tr_stored_giver {
    tr_status (*give)(void *user, int64_t index, uint64_t at, const void **piece, size_t *bytes);
    void *user;
};
/* A source of data that are in memory, in pieces; `tensors` is the array of them. */
tr_status tr_stored_give(void *tensors, int64_t index, uint64_t at, const void **piece, size_t *bytes);

/* Writes a new file and makes it durable (the caller must make its directory entry durable). The data have
   the order of `tensors`, but with wider elements before narrower ones, so that all are aligned. They come
   from `giver` or, where it is NULL, from the tensors. Everything is borrowed for the call. `crcs`
   (`count` elements, or NULL) gets the CRC-32C of each tensor's data. On failure the file may be left
   half-written. TR_EIO, TR_ENOMEM, TR_EINVAL for names that are empty, reserved or duplicate, and for bad
   shapes, or the failure of `giver`. */
tr_status tr_safetensors_write(const tr_file_system *files, const char *path,
                               const struct tr_stored_tensor *tensors, int64_t count,
                               const struct tr_stored_giver *giver, const struct tr_stored_metadata *metadata,
                               int64_t metadata_count, uint32_t *crcs,
                               struct tr_safetensors_summary *summary);

/* A destination of bytes that are written one after the other. */
struct tr_stored_sink {
    tr_status (*write)(void *user, const void *data, size_t size);
    void *user;
};
/* The bytes of such a file. TR_ENOMEM, TR_EINVAL as above. */
tr_status tr_safetensors_size(const struct tr_stored_tensor *tensors, int64_t count,
                              const struct tr_stored_metadata *metadata, int64_t metadata_count,
                              uint64_t *bytes);
/* The same bytes as tr_safetensors_write() into a sink. Errors likewise, or the sink's failure. */
tr_status tr_safetensors_give(const struct tr_stored_sink *sink, const struct tr_stored_tensor *tensors,
                              int64_t count, const struct tr_stored_giver *giver,
                              const struct tr_stored_metadata *metadata, int64_t metadata_count,
                              uint32_t *crcs, struct tr_safetensors_summary *summary);

/* The same bytes into memory, for tensors whose data are in memory: *bytes, returned, free with tr_free();
   NULL after a failure. */
tr_status tr_safetensors_to_memory(const struct tr_stored_tensor *tensors, int64_t count,
                                   const struct tr_stored_metadata *metadata, int64_t metadata_count,
                                   void **bytes, size_t *size);

/* The same for a file that replaces `path` once it is complete: see tr_file_replace_begin(). */
tr_status tr_safetensors_replace(const tr_file_system *files, const char *path,
                                 const struct tr_stored_tensor *tensors, int64_t count,
                                 const struct tr_stored_metadata *metadata, int64_t metadata_count);

/* A file open for reading. Data are read on request, into the caller's memory; so the file may be larger
   than memory, and a failing disk gives a status. Used by one thread at a time. */
typedef struct tr_safetensors tr_safetensors;

struct tr_safetensors_entry {
    struct tr_stored_tensor tensor; /* data NULL */
    uint64_t offset;                /* in the file */
    uint64_t bytes;
};

/* Opens and checks everything but the data. Returned, close with tr_safetensors_close(). TR_ENOTFOUND,
   TR_EIO, TR_ENOMEM, TR_EFORMAT; TR_EUNSUPPORTED for a type or rank of the format, or of a later version
   of it, that this program does not know. */
tr_status tr_safetensors_open(const char *path, tr_safetensors **out);
/* The same for a file in memory: `data` [size] are borrowed until close, `path` is for messages. */
tr_status tr_safetensors_open_memory(const char *path, const void *data, size_t size, tr_safetensors **out);
/* Accepts NULL, nulls the handle. */
void tr_safetensors_close(tr_safetensors **file);

/* Entries, in the order of their data. Borrowed until close. */
int64_t tr_safetensors_count(const tr_safetensors *file);
const struct tr_safetensors_entry *tr_safetensors_at(const tr_safetensors *file, int64_t index);
/* NULL if there is none of that name. */
const struct tr_safetensors_entry *tr_safetensors_find(const tr_safetensors *file, const char *name);
/* A text of __metadata__, NULL if there is none. Borrowed until close. */
const char *tr_safetensors_metadata(const tr_safetensors *file, const char *key);
struct tr_safetensors_summary tr_safetensors_summarize(const tr_safetensors *file);
/* The path that it was opened by. Borrowed until close. */
const char *tr_safetensors_path(const tr_safetensors *file);

/* Reads an entry's data into `to` (entry->bytes bytes), or only reads them where `to` is NULL; `crc` (may
   be NULL) becomes their CRC-32C. TR_EIO. */
tr_status tr_safetensors_read(tr_safetensors *file, const struct tr_safetensors_entry *entry, void *to,
                              uint32_t *crc);
/* Gives an entry's data to `take` in pieces of bounded size, in order. TR_EIO, TR_ENOMEM, or the failure
 * of `take`.
 */
typedef tr_status (*tr_safetensors_taker)(void *user, const void *piece, size_t bytes);
tr_status tr_safetensors_stream(tr_safetensors *file, const struct tr_safetensors_entry *entry,
                                tr_safetensors_taker take, void *user);

#endif
