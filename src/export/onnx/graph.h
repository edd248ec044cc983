/* Shared by the parts of the ONNX export: a graph that grows operation by operation.
 *
 * Values are kept in the form that ONNX's operations want: images channels first, sequences time first. A
 * vector that was an image (after a flatten) stays an image until an operation needs it as a vector, so that
 * a convolutional network is exported without a single transposition: the parameters of what follows change
 * places instead.
 */
#ifndef TR_EXPORT_ONNX_GRAPH_H
#define TR_EXPORT_ONNX_GRAPH_H

#include "export/trace.h"
#include "io/onnx.h"

/* ---- the export ---- */

/* What the file states about itself and its network. All borrowed for the call. */
struct tr_onnx_settings {
    const char *name;   /* of the graph */
    const char *origin; /* a line for people: which network this is */
};

/* Makes the graph of a network. Its inputs are `input` [batch, channels, height, width] or [batch, width],
   or `tokens` [batch, time] and `lengths` [batch]. Its output is `output`, or `logits` for a
   classification, [batch, time, classes] where every token is scored, and `probabilities` if the loss has
   any. Returned, destroy with tr_onnx_destroy(). TR_EUNSUPPORTED for an operation without counterpart,
   naming the layer; TR_ENOMEM. */
tr_status tr_onnx_make(const struct tr_trace *trace, const struct tr_onnx_settings *settings, tr_onnx **out);

/* ---- for the files of the export ---- */

enum tr_onnx_form {
    TR_ONNX_ROWS,     /* [batch, width] */
    TR_ONNX_SEQUENCE, /* [time, batch, width] */
    TR_ONNX_IMAGE     /* [batch, channels, height, width] */
};

struct tr_onnx_name {
    char text[160];
};

struct tr_onnx_value {
    struct tr_onnx_name name; /* "" where it is read only through `ending` */
    enum tr_onnx_form form;
    int64_t width;                  /* ROWS, SEQUENCE */
    int64_t size[3];                /* IMAGE: height, width, channels */
    int64_t taps, before, dilation; /* a SEQUENCE of tokens with their neighbours (unfold); else 0 */
    struct tr_onnx_name ending; /* of a recurrent layer's output: its last vectors [batch, width]; else "" */
};

#define TR_ONNX_LOCALS 128 /* the greatest number of operations and constants of a layer */

struct tr_onnx_graph {
    const struct tr_trace *trace;
    tr_onnx *onnx;
    struct tr_onnx_value *value;       /* [values of the trace] */
    const char *part;                  /* whose operations are being added: "conv1", "input" */
    const char *local[TR_ONNX_LOCALS]; /* names given in this part */
    int local_count;
    /* Once such values exist: the lengths as int32, the places of tokens [time], and which of them are
       inside of their example [time, batch, 1]. */
    struct tr_onnx_name lengths, times, inside;
    struct tr_onnx_name shared; /* of a parameter that a layer shares */
    int64_t tokens;             /* of which `times` are the places, if all examples have the same length */
};

/* The next operations belong to `part`, borrowed. */
void tr_onnx_begin_part(struct tr_onnx_graph *graph, const char *part);
/* Adds a node and returns its name, made of part and operation: "conv1/Conv". Its output has the same
   name. `inputs` texts follow. */
struct tr_onnx_name tr_onnx_emit(struct tr_onnx_graph *graph, const char *operation, int inputs, ...);
/* A new name in this part: "conv1/axes", or "conv1/axes_2". `what` is static. */
struct tr_onnx_name tr_onnx_local(struct tr_onnx_graph *graph, const char *what);
/* Adds a constant of integers, one integer, or one number, with such a name. */
struct tr_onnx_name tr_onnx_local_integers(struct tr_onnx_graph *graph, const char *what, int64_t count,
                                           const int64_t *values);
struct tr_onnx_name tr_onnx_local_integer(struct tr_onnx_graph *graph, const char *what, int64_t value);
struct tr_onnx_name tr_onnx_local_number(struct tr_onnx_graph *graph, const char *what, float value);

/* Numbers [begin, end) of an axis. */
struct tr_onnx_name tr_onnx_slice(struct tr_onnx_graph *graph, const char *x, int64_t axis, int64_t begin,
                                  int64_t end);

/* The value behind a pointer in an operation's arguments. */
const struct tr_onnx_value *tr_onnx_value_of(const struct tr_onnx_graph *graph, const void *pointer);
/* Notes `made` as the value behind a pointer, and its shape. */
void tr_onnx_define(struct tr_onnx_graph *graph, const void *pointer, const struct tr_onnx_value *made);
/* The same value as rows, with elements in the order of devices: height, width, channels. */
struct tr_onnx_value tr_onnx_as_rows(struct tr_onnx_graph *graph, const struct tr_onnx_value *value);
/* A value of the same shape as another. */
struct tr_onnx_value tr_onnx_alike(const struct tr_onnx_value *value, struct tr_onnx_name name);
/* The description of a value under `name` (borrowed). */
struct tr_onnx_info tr_onnx_describe(const struct tr_onnx_value *value, const char *name);

/* Adds the parameter behind a pointer as a constant of another shape; returns its name. */
struct tr_onnx_name tr_onnx_parameter(struct tr_onnx_graph *graph, const float *pointer, int rank,
                                      const int64_t *size);
/* The same where the parameter has `item` floats for each element of an image [height][width][channels]
   and the constant for each of [channels][height][width]. */
struct tr_onnx_name tr_onnx_parameter_of_image(struct tr_onnx_graph *graph, const float *pointer,
                                               const int64_t image[3], int64_t item, int rank,
                                               const int64_t *size);
/* The name of the parameter behind a pointer, for constants that are filled by the caller; valid until the
 * next call.
 */
const char *tr_onnx_parameter_name(struct tr_onnx_graph *graph, const float *pointer);

/* The places of tokens [time], counted from 0, as integers; `x` is any sequence. */
const char *tr_onnx_times(struct tr_onnx_graph *graph, const char *x);
/* Which tokens are inside of their example [time, batch, 1], for networks on tokens; NULL for others,
   whose examples are all full. */
const char *tr_onnx_inside(struct tr_onnx_graph *graph, const char *x);
/* x, with `other` for the numbers of tokens after the end of their example. */
struct tr_onnx_name tr_onnx_mask(struct tr_onnx_graph *graph, const char *x, float other);

/* Applies an activation to a value. */
tr_status tr_onnx_activate(struct tr_onnx_graph *graph, const struct tr_traced *traced,
                           enum tr_activation activation, float slope, struct tr_onnx_name *name);

/* Translates an operation. TR_EUNSUPPORTED for one without counterpart. */
tr_status tr_onnx_translate(struct tr_onnx_graph *graph, const struct tr_traced *traced);
/* The same for operations of one kind. */
tr_status tr_onnx_translate_conv(struct tr_onnx_graph *graph, const struct tr_traced *traced);
tr_status tr_onnx_translate_winograd(struct tr_onnx_graph *graph, const struct tr_traced *traced);
tr_status tr_onnx_translate_conv_transpose(struct tr_onnx_graph *graph, const struct tr_traced *traced);
tr_status tr_onnx_translate_grouped_conv(struct tr_onnx_graph *graph, const struct tr_traced *traced);
tr_status tr_onnx_translate_grouped_conv_transpose(struct tr_onnx_graph *graph,
                                                   const struct tr_traced *traced);
tr_status tr_onnx_translate_pool(struct tr_onnx_graph *graph, const struct tr_traced *traced);
tr_status tr_onnx_translate_softmax(struct tr_onnx_graph *graph, const struct tr_traced *traced);
tr_status tr_onnx_translate_rms_norm(struct tr_onnx_graph *graph, const struct tr_traced *traced);
tr_status tr_onnx_translate_layer_norm(struct tr_onnx_graph *graph, const struct tr_traced *traced);
tr_status tr_onnx_translate_group_norm(struct tr_onnx_graph *graph, const struct tr_traced *traced);
tr_status tr_onnx_translate_batch_norm(struct tr_onnx_graph *graph, const struct tr_traced *traced);
tr_status tr_onnx_translate_pixels(struct tr_onnx_graph *graph, const struct tr_traced *traced);
tr_status tr_onnx_translate_standardize(struct tr_onnx_graph *graph, const struct tr_traced *traced);
tr_status tr_onnx_translate_embedding(struct tr_onnx_graph *graph, const struct tr_traced *traced);
tr_status tr_onnx_translate_lstm(struct tr_onnx_graph *graph, const struct tr_traced *traced);
tr_status tr_onnx_translate_last(struct tr_onnx_graph *graph, const struct tr_traced *traced);
tr_status tr_onnx_translate_gru(struct tr_onnx_graph *graph, const struct tr_traced *traced);
tr_status tr_onnx_translate_copy(struct tr_onnx_graph *graph, const struct tr_traced *traced);
tr_status tr_onnx_translate_unfold(struct tr_onnx_graph *graph, const struct tr_traced *traced);
/* For values of tr_onnx_translate_unfold(). */
tr_status tr_onnx_translate_conv1d(struct tr_onnx_graph *graph, const struct tr_traced *traced);
tr_status tr_onnx_translate_grouped_conv1d(struct tr_onnx_graph *graph, const struct tr_traced *traced);
/* For tokens, as an image of one column. */
tr_status tr_onnx_translate_strided_conv1d(struct tr_onnx_graph *graph, const struct tr_traced *traced,
                                           const struct tr_op_conv_forward *op, int64_t groups);
tr_status tr_onnx_translate_position(struct tr_onnx_graph *graph, const struct tr_traced *traced);
tr_status tr_onnx_translate_rotary(struct tr_onnx_graph *graph, const struct tr_traced *traced);
tr_status tr_onnx_translate_attention(struct tr_onnx_graph *graph, const struct tr_traced *traced);
tr_status tr_onnx_translate_pool_tokens(struct tr_onnx_graph *graph, const struct tr_traced *traced);
tr_status tr_onnx_translate_unembedding(struct tr_onnx_graph *graph, const struct tr_traced *traced);

#endif
