/* Operations: embeddings and rows of sequences. Example e of a batch has rows [offset[e], offset[e+1]), time
 * ascending; no padding exists. */
#ifndef TR_DEVICE_OPS_SEQUENCE_H
#define TR_DEVICE_OPS_SEQUENCE_H

#include "device/ops/common.h"

/* y[r] = table[token[r]]. Tokens are in range (checked where data enters). */
struct tr_op_embedding_forward {
    int64_t rows, vocabulary, width;
    const int32_t *token; /* [rows] */
    const float *table;   /* [vocabulary][width] */
    float *y;
};
#define TR_ABOUT_embedding_forward(_)                                                                        \
    _(SIZE, rows)                                                                                            \
    _(SHAPE, vocabulary)                                                                                     \
    _(SHAPE, width)                                                                                          \
    _(READS, token, rows)                                                                                    \
    _(READS_PART, table, tr_fewer(rows, a->vocabulary) * a->width)                                           \
    _(WRITES, y, rows * a->width)                                                                            \
    _(OPERATIONS, 0)

/* Per node: dtable = tree over microbatches of the sum chain over rows r with token[r] == v of dy[r]; +0
 * where none. */
struct tr_op_embedding_backward {
    int64_t vocabulary, width;
    const int32_t *token;
    const float *dy;
    float *dtable;      /* [vocabulary][width] per node */
    int32_t *workspace; /* [vocabulary + 1 + rows] */
    struct tr_cut cut;  /* counts rows */
};
#define TR_ABOUT_embedding_backward(_)                                                                       \
    _(CUT, cut)                                                                                              \
    _(SHAPE, vocabulary)                                                                                     \
    _(SHAPE, width)                                                                                          \
    _(READS, token, rows)                                                                                    \
    _(READS, dy, rows * a->width)                                                                            \
    _(NODES, dtable, a->vocabulary * a->width)                                                               \
    _(WORKSPACE, workspace, a->vocabulary + 1 + rows)                                                        \
    _(OPERATIONS, rows * a->width)

/* y[e] = x[offset[e+1] - 1]; +0 where an example has no rows. */
struct tr_op_sequence_last_forward {
    int64_t examples, width;
    const int32_t *offset;
    const float *x;
    float *y;
};
#define TR_ABOUT_sequence_last_forward(_)                                                                    \
    _(SIZE, examples)                                                                                        \
    _(SHAPE, width)                                                                                          \
    _(OFFSET, offset)                                                                                        \
    _(READS_PART, x, tr_fewer(rows, a->examples) * a->width)                                                 \
    _(WRITES, y, a->examples * a->width)                                                                     \
    _(OPERATIONS, 0)

/* dx[r] = dy[e] at the last row of example e, +0 elsewhere. */
struct tr_op_sequence_last_backward {
    int64_t examples, width;
    const int32_t *offset;
    const float *dy;
    float *dx;
};
#define TR_ABOUT_sequence_last_backward(_)                                                                   \
    _(SIZE, examples)                                                                                        \
    _(SHAPE, width)                                                                                          \
    _(OFFSET, offset)                                                                                        \
    _(READS, dy, a->examples * a->width)                                                                     \
    _(WRITES, dx, rows * a->width)                                                                           \
    _(OPERATIONS, 0)

/* y[r][tap] = x[r + tap dilation - before], +0 outside of the example; dilation >= 1. */
struct tr_op_sequence_unfold {
    int64_t examples, width, taps, before, dilation;
    const int32_t *offset;
    const float *x; /* [rows][width] */
    float *y;       /* [rows][taps][width] */
};
#define TR_ABOUT_sequence_unfold(_)                                                                          \
    _(SIZE, examples)                                                                                        \
    _(SHAPE, width)                                                                                          \
    _(SHAPE, taps)                                                                                           \
    _(SHAPE, before)                                                                                         \
    _(SHAPE, dilation)                                                                                       \
    _(OFFSET, offset)                                                                                        \
    _(READS, x, rows * a->width)                                                                             \
    _(WRITES, y, rows * a->taps * a->width)                                                                  \
    _(OPERATIONS, 0)

/* dx[r] = sum chain over taps ascending of dy[r - tap dilation + before][tap], over rows of the same
   example only. */
struct tr_op_sequence_fold {
    int64_t examples, width, taps, before, dilation;
    const int32_t *offset;
    const float *dy; /* [rows][taps][width] */
    float *dx;       /* [rows][width] */
};
#define TR_ABOUT_sequence_fold(_)                                                                            \
    _(SIZE, examples)                                                                                        \
    _(SHAPE, width)                                                                                          \
    _(SHAPE, taps)                                                                                           \
    _(SHAPE, before)                                                                                         \
    _(SHAPE, dilation)                                                                                       \
    _(OFFSET, offset)                                                                                        \
    _(READS, dy, rows * a->taps * a->width)                                                                  \
    _(WRITES, dx, rows * a->width)                                                                           \
    _(OPERATIONS, rows * a->taps * a->width)

/* Row r of y is row r of x or, if `reverse`, the row of the same example that is as far from its end as r
   is from its beginning. Rows are x_step and y_step floats apart; memory between the rows of y does not
   change. */
struct tr_op_sequence_copy {
    int64_t examples, width, x_step, y_step;
    bool reverse;
    const int32_t *offset;
    const float *x;
    float *y;
};
#define TR_ABOUT_sequence_copy(_)                                                                            \
    _(SIZE, examples)                                                                                        \
    _(SHAPE, width)                                                                                          \
    _(SHAPE, x_step)                                                                                         \
    _(SHAPE, y_step)                                                                                         \
    _(OFFSET, offset)                                                                                        \
    _(READS_PART, x, rows * a->width)                                                                        \
    _(WRITES_PART, y, rows * a->width)                                                                       \
    _(OPERATIONS, 0)

#endif
