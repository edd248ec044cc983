/* Operations: recurrent layers, on sequences as in ops/sequence.h. */
#ifndef TR_DEVICE_OPS_RECURRENT_H
#define TR_DEVICE_OPS_RECURRENT_H

#include "device/ops/common.h"

/* On entry gates[r] holds the chain over the input part (x w_input, by dense_forward without bias). Per
   row, t ascending: the chain continues over h of the previous row, k ascending, + b. The first row of an
   example has no previous row, unless h_before and c_before give one. Then, gate order i, f, g, o: i, f, o
   = sigmoid, g = tanh; c = fma(f, c_prev, i * g) (first row: i * g); h = o * tanh(c). On return gates
   holds the activated gates. Gate q (0..3) of unit k is column q * hidden + k. */
struct tr_op_lstm_forward {
    int64_t examples, hidden;
    const int32_t *offset;            /* [examples + 1] */
    const float *w;                   /* w_hidden [hidden][4 * hidden] */
    const float *b;                   /* [4 * hidden] */
    float *gates;                     /* [rows][4 * hidden] in and out */
    float *c;                         /* [rows][hidden] */
    float *h;                         /* [rows][hidden] */
    const float *h_before, *c_before; /* [examples][hidden], or both NULL */
};
#define TR_ABOUT_lstm_forward(_)                                                                             \
    _(SIZE, examples)                                                                                        \
    _(SHAPE, hidden)                                                                                         \
    _(OFFSET, offset)                                                                                        \
    _(REPLACES, gates, rows * 4 * a->hidden)                                                                 \
    _(READS, w, 4 * a->hidden * a->hidden)                                                                   \
    _(READS, b, 4 * a->hidden)                                                                               \
    _(READS, h_before, a->examples * a->hidden)                                                              \
    _(READS, c_before, a->examples * a->hidden)                                                              \
    _(WRITES, h, rows * a->hidden)                                                                           \
    _(WRITES, c, rows * a->hidden)                                                                           \
    _(OPERATIONS, rows * a->hidden * (8 * a->hidden + 12))

/* dgates = gradient of the gates before activation. Per row, t descending: dh = dy + (chain over 4 *
   hidden of the next row's dgates with w^T); at the last row, and where (t + 1) % truncate == 0 (truncate
   > 0; t counts within the example), dh = dy, without a gradient from the next row. tc = tanh(c); q = dh *
   o; dc = fma(q, fma(-tc, tc, 1), dc_next * f_next), without a next row q * fma(-tc, tc, 1). di = (dc * g)
   * (i * (1
   - i)); df = (dc * c_prev) * (f * (1 - f)), +0 at the first row; dg = (dc * i) * fma(-g, g, 1); do = (dh *
   tc) * (o * (1 - o)). */
struct tr_op_lstm_backward {
    int64_t examples, hidden;
    int32_t truncate; /* 0: full backpropagation through time */
    const int32_t *offset;
    const float *w;
    const float *gates, *c, *dy;
    float *dgates; /* [rows][4 * hidden] */
};
#define TR_ABOUT_lstm_backward(_)                                                                            \
    _(SIZE, examples)                                                                                        \
    _(SHAPE, hidden)                                                                                         \
    _(OFFSET, offset)                                                                                        \
    _(READS, w, 4 * a->hidden * a->hidden)                                                                   \
    _(READS, gates, rows * 4 * a->hidden)                                                                    \
    _(READS, c, rows * a->hidden)                                                                            \
    _(READS, dy, rows * a->hidden)                                                                           \
    _(WRITES, dgates, rows * 4 * a->hidden)                                                                  \
    _(OPERATIONS, rows * a->hidden * (8 * a->hidden + 24))

/* Per node: dw = tree over microbatches of the chain over rows r (not first of their example) of h[r-1][k] *
 * dgates[r][j]. */
struct tr_op_lstm_backward_weights {
    int64_t examples, hidden;
    const int32_t *offset;
    const float *h, *dgates;
    float *dw;         /* [hidden][4 * hidden] per node */
    struct tr_cut cut; /* counts examples, not rows */
};
#define TR_ABOUT_lstm_backward_weights(_)                                                                    \
    _(SIZE, examples)                                                                                        \
    _(CUT, cut)                                                                                              \
    _(SHAPE, hidden)                                                                                         \
    _(OFFSET, offset)                                                                                        \
    _(READS, h, rows * a->hidden)                                                                            \
    _(READS, dgates, rows * 4 * a->hidden)                                                                   \
    _(NODES, dw, 4 * a->hidden * a->hidden)                                                                  \
    _(OPERATIONS, 8 * rows * a->hidden * a->hidden)

/* On entry gates[r] holds the chain over the input part (x w_input, by dense_forward without bias). Per row,
   t ascending, of the gates r, z, n: u = (chain over h of the previous row, k ascending; +0 at the first row
   of an example) + b_hidden; r, z = sigmoid((gates + b) + u); n = tanh(fma(r, u, gates + b)); h = fma(z,
   h_prev - n, n), h_prev +0 at the first row. On return gates holds the activated gates, inner u of n. Gate q
   (0..2) of unit k is column q * hidden + k (Cho et al. 2014, as PyTorch and cuDNN have it). */
struct tr_op_gru_forward {
    int64_t examples, hidden;
    const int32_t *offset; /* [examples + 1] */
    const float *w;        /* w_hidden [hidden][3 * hidden] */
    const float *b;        /* [3 * hidden] */
    const float *b_hidden; /* [3 * hidden] */
    float *gates;          /* [rows][3 * hidden] in and out */
    float *inner;          /* [rows][hidden] */
    float *h;              /* [rows][hidden] */
};
#define TR_ABOUT_gru_forward(_)                                                                              \
    _(SIZE, examples)                                                                                        \
    _(SHAPE, hidden)                                                                                         \
    _(OFFSET, offset)                                                                                        \
    _(REPLACES, gates, rows * 3 * a->hidden)                                                                 \
    _(READS, w, 3 * a->hidden * a->hidden)                                                                   \
    _(READS, b, 3 * a->hidden)                                                                               \
    _(READS, b_hidden, 3 * a->hidden)                                                                        \
    _(WRITES, h, rows * a->hidden)                                                                           \
    _(WRITES, inner, rows * a->hidden)                                                                       \
    _(OPERATIONS, rows * a->hidden * (6 * a->hidden + 15))

/* dgates = gradient of the arguments of r, z, n; dhidden = that of u, which differs only for n. Per row, t
   descending: dh = dy + (chain over 3 * hidden of the next row's dhidden with w^T), then fma(dh_next,
   z_next, dh); at the last row dh = dy. dn = (dh * (1 - z)) * fma(-n, n, 1); dz = (dh * (h_prev - n)) * (z
   * (1 - z)), h_prev +0 at the first row; dr = (dn * inner) * (r * (1 - r)); dhidden of n = dn * r. */
struct tr_op_gru_backward {
    int64_t examples, hidden;
    const int32_t *offset;
    const float *w;
    const float *gates, *inner, *h, *dy;
    float *dgates, *dhidden; /* [rows][3 * hidden] */
};
#define TR_ABOUT_gru_backward(_)                                                                             \
    _(SIZE, examples)                                                                                        \
    _(SHAPE, hidden)                                                                                         \
    _(OFFSET, offset)                                                                                        \
    _(READS, w, 3 * a->hidden * a->hidden)                                                                   \
    _(READS, gates, rows * 3 * a->hidden)                                                                    \
    _(READS, inner, rows * a->hidden)                                                                        \
    _(READS, h, rows * a->hidden)                                                                            \
    _(READS, dy, rows * a->hidden)                                                                           \
    _(WRITES, dgates, rows * 3 * a->hidden)                                                                  \
    _(WRITES, dhidden, rows * 3 * a->hidden)                                                                 \
    _(OPERATIONS, rows * a->hidden * (6 * a->hidden + 20))

/* Per node: dw = tree over microbatches of the chain over rows r (not first of their example) of h[r-1][k] *
 * dhidden[r][j]. */
struct tr_op_gru_backward_weights {
    int64_t examples, hidden;
    const int32_t *offset;
    const float *h, *dhidden;
    float *dw;         /* [hidden][3 * hidden] per node */
    struct tr_cut cut; /* counts examples, not rows */
};
#define TR_ABOUT_gru_backward_weights(_)                                                                     \
    _(SIZE, examples)                                                                                        \
    _(CUT, cut)                                                                                              \
    _(SHAPE, hidden)                                                                                         \
    _(OFFSET, offset)                                                                                        \
    _(READS, h, rows * a->hidden)                                                                            \
    _(READS, dhidden, rows * 3 * a->hidden)                                                                  \
    _(NODES, dw, 3 * a->hidden * a->hidden)                                                                  \
    _(OPERATIONS, 6 * rows * a->hidden * a->hidden)

#endif
