/* ONNX files: a graph of operations that is built piece by piece and then written.
 *
 * Files have format version (IR) 8 and operator set 13, which all common readers of ONNX support. Names of
 * values connect nodes; a value has one name and is defined before it is read. All texts and numbers are
 * copied. A failed allocation is remembered, later additions do nothing, and tr_onnx_write() reports it,
 * so that additions need no checks. A graph is used by one thread at a time.
 */
#ifndef TR_IO_ONNX_H
#define TR_IO_ONNX_H

#include "base/files/ops.h"

typedef struct tr_onnx tr_onnx;

enum tr_onnx_type { TR_ONNX_FLOAT = 1, TR_ONNX_INT32 = 6, TR_ONNX_INT64 = 7 };

/* One dimension of a tensor: a number, or a name if it is known only when the graph runs. */
struct tr_onnx_size {
    const char *name; /* NULL: `count` */
    int64_t count;
};
#define TR_ONNX_RANK 5

/* A description of a value. */
struct tr_onnx_info {
    const char *name;
    const char *description; /* for people, or NULL */
    enum tr_onnx_type type;
    int rank;
    struct tr_onnx_size size[TR_ONNX_RANK];
};

/* `name` of the graph, `description` for people. Returned, destroy with tr_onnx_destroy(). TR_ENOMEM. */
tr_status tr_onnx_create(const char *name, const char *description, tr_onnx **out);
/* Accepts NULL, nulls the handle. */
void tr_onnx_destroy(tr_onnx **onnx);

/* A fact about the model, which readers show and pass on. */
void tr_onnx_add_metadata(tr_onnx *onnx, const char *key, const char *value);

void tr_onnx_input(tr_onnx *onnx, const struct tr_onnx_info *info);
void tr_onnx_output(tr_onnx *onnx, const struct tr_onnx_info *info);
/* The shape of an intermediate value, which readers show. */
void tr_onnx_between(tr_onnx *onnx, const struct tr_onnx_info *info);

/* Constants, row-major. Their memory is returned for the caller to fill, borrowed until the graph is
   destroyed; NULL when an allocation has failed. */
float *tr_onnx_floats(tr_onnx *onnx, const char *name, int rank, const int64_t *size);
/* Integers [count], to be filled where `values` is NULL, and a single one of rank 0. */
int64_t *tr_onnx_integers(tr_onnx *onnx, const char *name, int64_t count, const int64_t *values);
void tr_onnx_integer(tr_onnx *onnx, const char *name, int64_t value);

/* Adds an operation. An empty input is an omitted one. */
void tr_onnx_node(tr_onnx *onnx, const char *operation, const char *name, int inputs,
                  const char *const *input, int outputs, const char *const *output);
/* Attributes of the node that was added last. */
void tr_onnx_attribute_float(tr_onnx *onnx, const char *name, float value);
void tr_onnx_attribute_integer(tr_onnx *onnx, const char *name, int64_t value);
void tr_onnx_attribute_integers(tr_onnx *onnx, const char *name, int64_t count, const int64_t *values);

/* Renames a value that a node computes, wherever it occurs. */
void tr_onnx_rename(tr_onnx *onnx, const char *from, const char *to);

/* Writes the file's bytes. TR_ENOMEM, TR_EIO, TR_EUNSUPPORTED for more than 2 GiB, the limit of the
 * format.
 */
tr_status tr_onnx_write(const tr_onnx *onnx, struct tr_file_writer *writer);

#endif
