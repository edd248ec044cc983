/* The computation of a network for one example, as the list of device operations that its layers call.
 *
 * Exporters translate operations, whose arithmetic device/ops.h states, and know no layers: a new layer
 * made of known operations can be exported at once, and one with a new operation is refused by name until
 * an exporter supports it.
 *
 * The layers are run, for one example of one token, on a device that records operations instead of
 * computing them. Tensors that pass between operations are values. The pointers in an operation's
 * arguments stand for values (tr_trace_value()), or point at parameters (tr_trace_parameter()); the memory
 * of values is never read. Counts are per example, or per token where `per_token`.
 *
 * Read-only once made, so that any number of threads may use it.
 */
#ifndef TR_EXPORT_TRACE_H
#define TR_EXPORT_TRACE_H

#include "job/feed/intake.h"
#include "nn/model.h"

#define TR_TRACED_KIND(op) TR_TRACED_##op,
enum tr_traced_kind { TR_DEVICE_OPS(TR_TRACED_KIND) TR_TRACED_standardize, TR_TRACED_KINDS };
#undef TR_TRACED_KIND

/* An operation that no device has: values of the data become numbers of the network
   (data/tables/scaling.h). Missing values are filled in, names become numbers, and these are standardized. */
struct tr_op_standardize {
    int64_t columns, width;
    const struct tr_categories *categories; /* of the columns; NULL: all are numbers */
    const float *fill;                      /* [columns], NULL: nothing is filled in */
    const double *mean, *deviation;         /* [width] */
    const float *x;
    float *y;
};

/* The name of the operation, as in device/ops.h. */
const char *tr_traced_name(enum tr_traced_kind kind);

struct tr_traced {
    enum tr_traced_kind kind;
    int layer;      /* the layer that called it; -1 where examples enter */
    bool per_token; /* once for each token */
    union {
#define TR_TRACED_ARGUMENTS(op) struct tr_op_##op op;
        TR_DEVICE_OPS(TR_TRACED_ARGUMENTS)
        struct tr_op_standardize standardize;
#undef TR_TRACED_ARGUMENTS
    } as;
};

/* A value: an input, the output of a layer, or a layer's private memory. */
struct tr_traced_value {
    struct tr_shape shape; /* rank 0 for private memory */
    int layer;             /* -1: not of a layer */
    int same;              /* the value of which this is another name; its own index otherwise */
    int64_t first;         /* first of `address`: its addresses end where those of the next value begin */
};

/* Indices of values. The sources of an example enter as TR_VALUE_GIVEN + i, texts and data that is not
   joined as TR_VALUE_GIVEN. From an image, or numbers that are scaled, operations make TR_VALUE_INPUT;
   otherwise the two are the same. From joined sources they make the outputs of the layers that stand for
   these. Layer i writes TR_VALUE_LAYERS + i. */
enum {
    TR_VALUE_GIVEN,
    TR_VALUE_INPUT = TR_VALUE_GIVEN + TR_SOURCE_PARTS,
    TR_VALUE_LAYERS,
};

struct tr_trace {
    const struct tr_model *model;
    const float *parameters;        /* an arena */
    const struct tr_intake *intake; /* borrowed, or NULL */
    int given;                      /* sources of an example: 1 but where they are joined */
    int count;
    struct tr_traced *item; /* in the order of running */
    int value_count;
    struct tr_traced_value *value;
    int64_t address_count;
    float *address; /* [address_count] addresses, ascending with the values */
    int output;     /* the value of the network's output */
};

/* `intake` is how examples enter (tr_job_intake()), or NULL: as the first layers take them. All borrowed
   for the life of the trace. Returned, destroy with tr_trace_destroy(). TR_EUNSUPPORTED if the network's
   input is not images, numbers or tokens; TR_ENOMEM. */
tr_status tr_trace_create(const struct tr_model *model, const float *parameters,
                          const struct tr_intake *intake, struct tr_trace **out);
/* Accepts NULL, nulls the handle. */
void tr_trace_destroy(struct tr_trace **trace);

/* The value that a pointer in an operation's arguments stands for, under its first name; -1 for none. */
int tr_trace_value(const struct tr_trace *trace, const void *pointer);
/* The column at which such a pointer begins: 0 unless an operation writes a part of each row. */
int64_t tr_trace_column(const struct tr_trace *trace, const void *pointer);
/* A pointer that stands for a value. */
const float *tr_trace_address(const struct tr_trace *trace, int value);
/* The parameter that a pointer in an operation's arguments points at; NULL for none. */
const struct tr_parameter *tr_trace_parameter(const struct tr_trace *trace, const float *pointer);

/* The values that an operation reads and writes, each once, in the order of its description; then -1.
 * Values written only for a backward pass are not among them.
 */
#define TR_TRACED_READS TR_JOIN_PARTS
struct tr_traced_ports {
    int read[TR_TRACED_READS], write[2];
};
struct tr_traced_ports tr_trace_ports(const struct tr_trace *trace, const struct tr_traced *traced);
/* The index of the operation that writes a value, by its first name; -1 for a value that enters. */
int tr_trace_writer(const struct tr_trace *trace, int value);

/* The name of source `i` of joined ones; else "". */
const char *tr_trace_given_name(const struct tr_trace *trace, int i);
/* The name of a value in messages and comments: its layer's name, or "input". */
const char *tr_trace_value_name(const struct tr_trace *trace, int value);
/* Records that the format `format` has no counterpart of an operation, by layer, kind and operation; returns
 * TR_EUNSUPPORTED. */
tr_status tr_trace_refuse(const struct tr_trace *trace, const struct tr_traced *traced, const char *format);

#endif
