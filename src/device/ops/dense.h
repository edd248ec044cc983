/* Operations: dense layers. */
#ifndef TR_DEVICE_OPS_DENSE_H
#define TR_DEVICE_OPS_DENSE_H

#include "device/ops/common.h"

/* y = act(x w + b). Per output: chain over `in`, then + b[o] (if b), then act. */
struct tr_op_dense_forward {
    int64_t rows, in, out;
    const float *x;                /* [rows][in] */
    const float *w;                /* [in][out] */
    const float *b;                /* [out] or NULL */
    float *y;                      /* [rows][out] */
    enum tr_activation activation; /* fusable */
    float slope;
};
#define TR_ABOUT_dense_forward(_)                                                                            \
    _(SIZE, rows)                                                                                            \
    _(SHAPE, in)                                                                                             \
    _(SHAPE, out)                                                                                            \
    _(READS, x, rows * a->in)                                                                                \
    _(READS, w, a->in * a->out)                                                                              \
    _(READS, b, a->out)                                                                                      \
    _(WRITES, y, rows * a->out)                                                                              \
    _(OPERATIONS, 2 * rows * a->in * a->out)

/* dx = dy w^T. Per output: chain over `out`. */
struct tr_op_dense_backward_data {
    int64_t rows, in, out;
    const float *dy; /* [rows][out] */
    const float *w;  /* [in][out] */
    float *dx;       /* [rows][in] */
};
#define TR_ABOUT_dense_backward_data(_)                                                                      \
    _(SIZE, rows)                                                                                            \
    _(SHAPE, in)                                                                                             \
    _(SHAPE, out)                                                                                            \
    _(READS, dy, rows * a->out)                                                                              \
    _(READS, w, a->in * a->out)                                                                              \
    _(WRITES, dx, rows * a->in)                                                                              \
    _(OPERATIONS, 2 * rows * a->in * a->out)

/* Per node: dw = tree over microbatches of (chain over rows of x[r][i] * dy[r][o]); db likewise of the sum
 * chain over rows of dy[r][o]. */
struct tr_op_dense_backward_weights {
    int64_t in, out; /* in 0: only db */
    const float *x;  /* [rows][in] */
    const float *dy; /* [rows][out] */
    float *dw;       /* [in][out] per node */
    float *db;       /* [out] per node, or NULL */
    struct tr_cut cut;
};
#define TR_ABOUT_dense_backward_weights(_)                                                                   \
    _(CUT, cut)                                                                                              \
    _(SHAPE, in)                                                                                             \
    _(SHAPE, out)                                                                                            \
    _(READS, x, rows * a->in)                                                                                \
    _(READS, dy, rows * a->out)                                                                              \
    _(NODES, dw, a->in * a->out)                                                                             \
    _(NODES, db, a->out)                                                                                     \
    _(OPERATIONS, rows * a->out * (2 * a->in + (a->db ? 1 : 0)))

/* ---- fusions (device/ops.h) ---- */

/* dense_forward without an activation to an x that is not stored; activation_forward of that x to dense.y,
   and activation_backward of it with a dy of 1 to `derivative`. */
struct tr_op_dense_gelu_forward {
    struct tr_op_dense_forward dense; /* activation: GELU, GELU_TANH */
    float *derivative;                /* shape of y */
};
#define TR_ABOUT_dense_gelu_forward(_)                                                                       \
    _(SIZE, dense.rows)                                                                                      \
    _(SHAPE, dense.in)                                                                                       \
    _(SHAPE, dense.out)                                                                                      \
    _(READS, dense.x, rows * a->dense.in)                                                                    \
    _(READS, dense.w, a->dense.in * a->dense.out)                                                            \
    _(READS, dense.b, a->dense.out)                                                                          \
    _(WRITES, dense.y, rows * a->dense.out)                                                                  \
    _(WRITES, derivative, rows * a->dense.out)                                                               \
    _(PART, dense, dense_forward)                                                                            \
    _(OPERATIONS, 2 * rows * a->dense.out)

/* dense_backward_data; then dx[i] = dx[i] * derivative[i]: the gradient through the gelu that produced the
 * input.
 */
struct tr_op_dense_gelu_backward_data {
    struct tr_op_dense_backward_data dense;
    const float *derivative; /* shape of dx, from the forward fusion */
};
#define TR_ABOUT_dense_gelu_backward_data(_)                                                                 \
    _(SIZE, dense.rows)                                                                                      \
    _(SHAPE, dense.in)                                                                                       \
    _(SHAPE, dense.out)                                                                                      \
    _(READS, dense.dy, rows * a->dense.out)                                                                  \
    _(READS, dense.w, a->dense.in * a->dense.out)                                                            \
    _(READS, derivative, rows * a->dense.in)                                                                 \
    _(WRITES, dense.dx, rows * a->dense.in)                                                                  \
    _(PART, dense, dense_backward_data)                                                                      \
    _(OPERATIONS, rows * a->dense.in)

#endif
