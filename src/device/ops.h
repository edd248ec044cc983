/* The operations every device offers: their arguments, shapes and exact arithmetic.
 *
 * This file is the specification that `ref` spells out as plain loops; every other device gives the same
 * bytes.
 *
 * Conventions
 *   - float32, row-major, images NHWC, convolution weights [kernel_h][kernel_w][in_c][out_c]. All tensor
 * pointers are device memory, borrowed until the next tr_device_wait(). Outputs are overwritten and do not
 * overlap inputs, unless an operation says otherwise.
 *   - "chain": acc = fma(a[k], b[k], acc), k ascending, from acc = +0. "sum chain": acc = acc + x[k] from acc
 * = +0.
 *   - "lane sum" of n values: lane j (0..15) is the sum chain (or fma chain) over elements j, j+16, ...; then
 * lanes combine as l[j] += l[j+8] (j<8), l[j] += l[j+4] (j<4), l[j] += l[j+2] (j<2), l[0] + l[1].
 *   - exp, log, tanh, sigmoid, erf are those of base/numbers/mathf.h. Division and square root are IEEE.
 *   - `fma(a,b,c)` is one rounding; everything else written here rounds after each operation, in the order of
 * C.
 *   - Microbatches: operations that reduce over rows take a `struct tr_cut`. One leaf per microbatch is
 * formed by chains over its rows; leaves combine in the tree of base/numbers/tree.h; each node goes to its own place
 * in the output.
 *   - An operation with rows == 0 does nothing (gradients of such a call are +0). A microbatch without rows
 * is a leaf of +0.
 *   - Counts, widths and microbatch sizes enter arithmetic as float32. Which NaN a NaN result is (sign,
 * payload) is not defined, only that it is one; nothing but NaN depends on it.
 */
#ifndef TR_DEVICE_OPS_H
#define TR_DEVICE_OPS_H

#include <stdbool.h>
#include <stdint.h>

/* How the rows of a call divide into microbatches, and which tree nodes they form. Host memory, borrowed for
 * the call. */
struct tr_cut {
    int32_t count;        /* microbatches in this call, >= 0 */
    const int64_t *row;   /* [count + 1] ascending; microbatch i has rows [row[i], row[i+1]); row[0] == 0 */
    int32_t nodes;        /* tree nodes that they form */
    const int32_t *bound; /* [nodes + 1] strictly ascending from 0 to count; node j combines microbatches
                             [bound[j], bound[j+1]) of this call, as a tree over that many leaves */
    int64_t stride;       /* floats between the outputs of consecutive nodes */
};

/* What changes from step to step. Lies in device memory, so that a recorded step can be replayed. */
struct tr_step_scalars {
    uint32_t step;         /* counts from 0 */
    float rate;            /* learning rate */
    float adam_rate;       /* rate / (1 - beta1^(step+1)) */
    float adam_correction; /* 1 / sqrt(1 - beta2^(step+1)) */
    float ema_decay;       /* decay of the moving average in this step */
    float clip_scale;      /* written by clip_scale; 1 where nothing is clipped */
    int32_t nonfinite;     /* set to 1 by update when a new parameter is NaN or infinite */
    int32_t held;          /* set to 1 by hold: the step's updates change nothing */
};

enum tr_activation {
    TR_ACT_NONE,
    TR_ACT_RELU,       /* 0 > x ? 0 : x */
    TR_ACT_LEAKY_RELU, /* 0 > x ? slope * x : x;  0 < slope <= 1 */
    TR_ACT_TANH,
    TR_ACT_SIGMOID,
    TR_ACT_GELU,     /* 0.5 * x * (1 + erf(x * 0x1.6a09e6p-1f)), as (0.5f * x) * (1 + e); not fusable, its
                        gradient needs x */
    TR_ACT_GELU_TANH /* (0.5f * x) * (1 + tanh(x * fma(x * x, 0x1.2444f2p-5f, 0x1.988454p-1f))), which is near
                        it; likewise */
};

/* Window geometry of convolutions and pools. Output pixel (oh, ow) reads input pixels
   (oh * stride_h + kh * dilation_h - pad_top, ow * stride_w + kw * dilation_w - pad_left); taps outside the
   image do not exist. */
struct tr_sliding_window {
    int32_t in_h, in_w, out_h, out_w;
    int32_t kernel_h, kernel_w, stride_h, stride_w, dilation_h, dilation_w, pad_top, pad_left;
};

/* ---- dense ---- */

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

/* dx = dy w^T. Per output: chain over `out`. */
struct tr_op_dense_backward_data {
    int64_t rows, in, out;
    const float *dy; /* [rows][out] */
    const float *w;  /* [in][out] */
    float *dx;       /* [rows][in] */
};

/* Per node: dw = tree over microbatches of (chain over rows of x[r][i] * dy[r][o]); db likewise of the sum
 * chain over rows of dy[r][o]. */
struct tr_op_dense_backward_weights {
    int64_t in, out; /* in 0: db alone */
    const float *x;  /* [rows][in] */
    const float *dy; /* [rows][out] */
    float *dw;       /* [in][out] per node */
    float *db;       /* [out] per node, or NULL */
    struct tr_cut cut;
};

/* ---- convolution ---- */

/* y = act(conv(x, w) + b). Per output: chain over (kh, kw, c) ascending, skipping taps outside the image; +
 * b; act. */
struct tr_op_conv_forward {
    int64_t rows;
    int32_t in_c, out_c;
    struct tr_sliding_window window;
    const float *x;                /* [rows][in_h][in_w][in_c] */
    const float *w;                /* [kernel_h][kernel_w][in_c][out_c] */
    const float *b;                /* [out_c] or NULL */
    float *y;                      /* [rows][out_h][out_w][out_c] */
    enum tr_activation activation; /* fusable */
    float slope;
};

/* dx of a convolution. Per input element: chain over the output pixels that read it, (oh, ow) ascending, then
   out_c ascending (that is: kh, kw descending). Pixels that no output reads get +0. */
struct tr_op_conv_backward_data {
    int64_t rows;
    int32_t in_c, out_c;
    struct tr_sliding_window window;
    const float *dy; /* [rows][out_h][out_w][out_c] */
    const float *w;
    float *dx; /* [rows][in_h][in_w][in_c] */
};

/* Per node: dw = tree over microbatches of the chain over (row, oh, ow) ascending, skipping taps outside, of
   x * dy; db of the sum chain over (row, oh, ow) of dy. */
struct tr_op_conv_backward_weights {
    int32_t in_c, out_c;
    struct tr_sliding_window window;
    const float *x;
    const float *dy;
    float *dw; /* [kernel_h][kernel_w][in_c][out_c] per node */
    float *db; /* [out_c] per node, or NULL */
    struct tr_cut cut;
};

/* ---- convolution by Winograd's algorithm ----
 *
 * The same convolutions with fewer products, and other roundings: 3x3 kernels, stride 1, dilation 1, at least
 * two outputs in each direction, pads of at most 2 on every side (device/winograd.h). In exact arithmetic all
 * results are those of the operations above; gradients are the exact adjoint of the forward pass as defined.
 *
 *   - Points: 0, +a, -a, +b, -b, infinity, with a = 5/8 and b = 3/2, in this order. Outputs are cut along
 * each axis into tiles of 4, at the end 2 or 3, or 3 and 2 where 5 are left. A tile of m outputs reads m + 2
 * inputs and has that many points: 6: all of them; 5: without -b; 4: without +b and -b. A position is a point
 * of the height and one of the width; a tile has (m_h + 2) * (m_w + 2) of the 36.
 *   - One-dimensional transforms, each a fixed sequence of operations, in device/winograd.inc: `input`,
 * `weights`, `output`, and their adjoints, which undo nothing but carry gradients back. For a tile of m
 * outputs with points p_i: input = values at p_i of polynomials whose coefficients are the inputs (matrix B^T
 * of Toom and Cook, without scales), weights = values of g0 + g1 x + g2 x^2 (matrix G), output k = sum over i
 * of p_i^k / N_i times the product at p_i, and that at infinity added to the last (matrix A^T), N_i = product
 * over j != i of (p_i - p_j). A transform of two dimensions is that along the height, for each column, then
 * that along the width, for each row.
 *   - Inputs outside the image are +0. Tiles (th, tw) ascend row by row.
 * Source: A. Lavin, S. Gray, Fast algorithms for convolutional neural networks (2016); the points are our
 * own: all constants but the scales are exact.
 */

/* The arguments are those of the operation in question; arithmetic of y: V = input(x) per tile and channel, U
   = weights(w) per pair of channels, M = per tile, position and output channel chain over in_c of V * U; y =
   act(output(M) + b). */
struct tr_op_winograd_forward {
    struct tr_op_conv_forward conv;
};

/* Z = output_adjoint(dy) per tile and channel, U = weights(w); D = per tile, position and input channel chain
   over out_c of Z * U. dx = sum chain over the tiles that read the pixel, (th, tw) ascending, of
   input_adjoint(D). */
struct tr_op_winograd_backward_data {
    struct tr_op_conv_backward_data conv;
};

/* V = input(x), Z = output_adjoint(dy); per microbatch, position and pair of channels S = chain over (row,
   th, tw) ascending, of the tiles that have the position, of V * Z; its leaf is weights_adjoint(S). Per node:
   dw = tree over leaves; db as of conv_backward_weights. */
struct tr_op_winograd_backward_weights {
    struct tr_op_conv_backward_weights conv;
};

/* ---- elementwise ---- */

/* y[i] = act(x[i]); y may be x. */
struct tr_op_activation_forward {
    int64_t count;
    const float *x;
    float *y;
    enum tr_activation activation;
    float slope;
};

/* dx[i] = dy[i] * act'(x). RELU: y > 0 ? dy : 0; LEAKY_RELU: y > 0 ? dy : slope * dy; TANH: dy * fma(-y, y,
   1); SIGMOID: dy * (y * (1 - y)); GELU: dy * fma(x, pdf, cdf), pdf = exp(-0.5 * (x * x)) * 0x1.988454p-2f,
   cdf = 0.5 * (1 + erf(x * 0x1.6a09e6p-1f)). GELU_TANH: dy * fma((0.5 * x) * fma(-t, t, 1), fma(x * x,
   0x1.b6676cp-4f, 0x1.988454p-1f), 0.5 * (1 + t)), t the hyperbolic tangent of forward. NONE copies. dx may
   be dy. */
struct tr_op_activation_backward {
    int64_t count;
    const float *x; /* read by GELU and GELU_TANH only, else may be NULL */
    const float *y; /* not read by these */
    const float *dy;
    float *dx;
    enum tr_activation activation;
    float slope;
};

/* y[i] = a[i] + b[i]; y may be a or b. */
struct tr_op_add {
    int64_t count;
    const float *a;
    const float *b;
    float *y;
};

/* Rows of several tensors one after another in each row of y: y[r] = x[0][r], x[1][r], ...; +0 where a part
   is NULL. */
#define TR_JOIN_PARTS 8
struct tr_op_join_columns {
    int64_t rows;
    int32_t parts;
    int64_t width[TR_JOIN_PARTS];  /* >= 0 */
    const float *x[TR_JOIN_PARTS]; /* [rows][width of the part] or NULL */
    float *y;                      /* [rows][sum of widths] */
};

/* The parts of each row of x to y[0], y[1], ...; those that are NULL are left out. */
struct tr_op_split_columns {
    int64_t rows;
    int32_t parts;
    int64_t width[TR_JOIN_PARTS];
    const float *x;
    float *y[TR_JOIN_PARTS];
};

/* y[i] = factor * x[i]; y may be x. */
struct tr_op_scale {
    int64_t count;
    float factor;
    const float *x;
    float *y;
};

/* y[i] = value. */
struct tr_op_fill {
    int64_t count;
    float value;
    float *y;
};

/* Forward and backward alike: y = unit(bits) >= rate ? x * (1 / (1 - rate)) : 0, where element i of an
   example takes word i % 4 of philox(key; i / 4, example, step, layer) and unit() is tr_rng_unit(). Examples
   are numbered first_example + e. y may be x. */
struct tr_op_dropout {
    int64_t examples, width;
    const int32_t
        *offset; /* NULL, or [examples + 1]: example e has rows [offset[e], offset[e+1]) of `width` */
    const float *x;
    float *y;
    float rate; /* 0 <= rate < 1 */
    uint32_t key[2];
    uint32_t layer;
    uint32_t first_example;
    const struct tr_step_scalars *scalars;
};

/* ---- pooling ---- */

enum tr_pool { TR_POOL_MAX, TR_POOL_AVERAGE };

/* MAX: taps (kh, kw) ascending, the first is taken, a later one replaces it if greater, or if it is NaN and
   the kept one is not; `taken` records kh * kernel_w + kw. AVERAGE: sum chain over the taps inside the image
   times 1 / (their number). Every window has at least one tap inside; kernel_h * kernel_w <= 256. */
struct tr_op_pool_forward {
    int64_t rows;
    int32_t channels;
    struct tr_sliding_window window;
    enum tr_pool kind;
    const float *x; /* [rows][in_h][in_w][channels] */
    float *y;       /* [rows][out_h][out_w][channels] */
    uint8_t *taken; /* shape of y; MAX only, may be NULL when no backward follows */
};

/* dx: sum chain over the windows that contain the pixel, (oh, ow) ascending, of what each passes back: MAX:
   dy if `taken` is this tap; AVERAGE: dy * (1 / number of taps). From +0. With `relu_output` (MAX only: the
   pool's own y, whose input came out of a relu) a window passes dy only where y > 0, which is the relu's
   gradient as well. */
struct tr_op_pool_backward {
    int64_t rows;
    int32_t channels;
    struct tr_sliding_window window;
    enum tr_pool kind;
    const float *dy;
    const uint8_t *taken;
    const float *relu_output; /* NULL or shape of dy */
    float *dx;
};

/* One row for each example out of its n rows: [offset[e], offset[e+1]), or, where that is NULL, spatial rows
   each. AVERAGE: sum chain over the rows times 1 / n. MAX: rows ascending, as in a window; `taken` records
   the number of the row within its example. +0, and taken 0, where an example has no rows. */
struct tr_op_pool_rows_forward {
    int64_t examples, spatial, width;
    const int32_t *offset; /* [examples + 1] or NULL */
    enum tr_pool kind;
    const float *x; /* [rows][width] */
    float *y;       /* [examples][width] */
    int32_t *taken; /* shape of y; MAX only, may be NULL when no backward follows */
};

/* dx: AVERAGE: dy * (1 / n); MAX: dy where the row was taken, else +0. */
struct tr_op_pool_rows_backward {
    int64_t examples, spatial, width;
    const int32_t *offset;
    enum tr_pool kind;
    const float *dy;
    const int32_t *taken;
    float *dx;
};

/* ---- rows: softmax and normalization ---- */

/* y = softmax of each row: m = max (as in pooling), e = exp(x - m), y = e / lane sum(e). y may be x. */
struct tr_op_softmax_forward {
    int64_t rows, width;
    const float *x;
    float *y;
};

/* dx = y * (dy - s), s = lane chain of y * dy. dx may be dy. */
struct tr_op_softmax_backward {
    int64_t rows, width;
    const float *y;
    const float *dy;
    float *dx;
};

/* Per row: mean = lane sum(x) / width; d = x - mean; var = lane chain(d * d) / width; inv = 1 / sqrt(var +
   epsilon); y = fma(d * inv, gamma, beta). Keeps mean and inv per row. */
struct tr_op_layer_norm_forward {
    int64_t rows, width;
    float epsilon;
    const float *x, *gamma, *beta; /* gamma, beta [width] */
    float *y;
    float *mean, *inv; /* [rows] */
};

/* xhat = (x - mean) * inv; g = dy * gamma; a = lane sum(g) / width; b = lane chain(g * xhat) / width;
   dx = inv * ((g - a) - xhat * b), the last difference as fma(-xhat, b, g - a).
   Per node: dgamma = tree of chains over rows of dy * xhat, dbeta of sum chains of dy. */
struct tr_op_layer_norm_backward {
    int64_t width;
    const float *x, *gamma, *mean, *inv, *dy;
    float *dx;             /* or NULL */
    float *dgamma, *dbeta; /* [width] per node */
    struct tr_cut cut;
};

/* Per row: inv = 1 / sqrt(lane chain(x * x) / width + epsilon); y = (x * inv) * gamma. Keeps inv per row. */
struct tr_op_rms_norm_forward {
    int64_t rows, width;
    float epsilon;
    const float *x, *gamma; /* gamma [width] */
    float *y;
    float *inv; /* [rows] */
};

/* xhat = x * inv; g = dy * gamma; b = lane chain(g * xhat) / width; dx = inv * fma(-xhat, b, g).
   Per node: dgamma = tree of chains over rows of dy * xhat. */
struct tr_op_rms_norm_backward {
    int64_t width;
    const float *x, *gamma, *inv, *dy;
    float *dx;     /* or NULL */
    float *dgamma; /* [width] per node */
    struct tr_cut cut;
};

/* Training. Statistics per microbatch and channel over its n = (rows of microbatch) * spatial values, rows
   ascending: mean = sum chain / n; d = x - mean; var = chain(d * d) / n; inv = 1 / sqrt(var + epsilon); y =
   fma(d * inv, gamma, beta). Per node: batch_mean, batch_var = tree over microbatches of share * mean, share
   * (var * (n / (n - 1))), share = (float)(rows of the microbatch) / (float)global_rows; n / (n - 1) is 1
   when n == 1. A microbatch without rows has mean, inv and leaves +0. */
struct tr_op_batch_norm_forward {
    int64_t spatial, channels, global_rows;
    float epsilon;
    const float *x, *gamma, *beta; /* x [rows][spatial][channels] */
    float *y;
    float *mean, *inv;             /* [count of microbatches][channels] */
    float *batch_mean, *batch_var; /* [channels] per node */
    struct tr_cut cut;
};

/* xhat = (x - mean) * inv. Per microbatch: s1 = sum chain(dy), s2 = chain(dy * xhat) over rows; a = s1 / n; b
   = s2 / n; dx = (gamma * inv) * fma(-xhat, b, dy - a). Per node: dgamma = tree of s2, dbeta = tree of s1. */
struct tr_op_batch_norm_backward {
    int64_t spatial, channels;
    const float *x, *gamma, *mean, *inv, *dy;
    float *dx; /* or NULL */
    float *dgamma, *dbeta;
    struct tr_cut cut;
};

/* Evaluation: y = fma((x - mean) * inv, gamma, beta), inv = 1 / sqrt(var + epsilon), with running statistics.
 */
struct tr_op_batch_norm_infer {
    int64_t rows, channels; /* rows counts every spatial position */
    float epsilon;
    const float *x, *gamma, *beta, *mean, *var;
    float *y;
};

/* ---- fusions: several of the operations here in one pass over memory, with the bits of these one after the
 * other. Not every device has them; whoever calls one asks before (nn/fusion.h). ---- */

/* batch_norm_forward; if `addend`, add of y and addend; activation_forward. Only the last y is written. */
struct tr_op_batch_norm_activation_forward {
    struct tr_op_batch_norm_forward norm;
    const float *addend;           /* shape of y, or NULL */
    enum tr_activation activation; /* NONE, RELU, LEAKY_RELU */
    float slope;
};

/* If `more`, add of norm.dy and more; activation_backward with `y`; if `daddend`, a copy of the result to it;
   batch_norm_backward of the result. norm.dx may be norm.dy. */
struct tr_op_batch_norm_activation_backward {
    struct tr_op_batch_norm_backward norm;
    const float *more;             /* shape of dy, or NULL: what else flows back into the output */
    const float *y;                /* the forward's; not read with NONE */
    const float *beta;             /* NULL, or the forward's if it had no addend: y follows from x then */
    float *daddend;                /* shape of dy, or NULL */
    enum tr_activation activation; /* NONE, RELU, LEAKY_RELU */
    float slope;
};

/* winograd_backward_weights, then winograd_backward_data, of one dy: with the same window and channels, and
   as many rows as the cut has. */
struct tr_op_winograd_backward {
    struct tr_op_winograd_backward_weights weights;
    struct tr_op_winograd_backward_data data;
};

/* conv_forward to a y that is not kept (conv.y is not used); pool_forward of that y (pool.x is not used).
   MAX pools whose stride is their kernel, without padding and dilation. */
struct tr_op_conv_pool_forward {
    struct tr_op_conv_forward conv;
    struct tr_op_pool_forward pool;
};

/* pool_backward to a dx that is not kept (pool.dx is not used); conv_backward_data of it (conv.dy is not
   used). Pools as above. */
struct tr_op_conv_pool_backward_data {
    struct tr_op_conv_backward_data conv;
    struct tr_op_pool_backward pool;
};

/* The same with conv_backward_weights. */
struct tr_op_conv_pool_backward_weights {
    struct tr_op_conv_backward_weights conv;
    struct tr_op_pool_backward pool;
};

/* dense_forward without an activation to an x that is not kept; activation_forward of that x to dense.y, and
   activation_backward of it with a dy of 1 to `derivative`. */
struct tr_op_dense_gelu_forward {
    struct tr_op_dense_forward dense; /* activation: GELU, GELU_TANH */
    float *derivative;                /* shape of y */
};

/* dense_backward_data; then dx[i] = dx[i] * derivative[i]: the gradient of the gelu that the input comes
 * from.
 */
struct tr_op_dense_gelu_backward_data {
    struct tr_op_dense_backward_data dense;
    const float *derivative; /* shape of dx, the forward's */
};

/* ---- sequences: example e of a batch has rows [offset[e], offset[e+1]), time ascending; no padding exists
 * ---- */

/* y[r] = table[token[r]]. Tokens are in range (checked where data enters). */
struct tr_op_embedding_forward {
    int64_t rows, vocabulary, width;
    const int32_t *token; /* [rows] */
    const float *table;   /* [vocabulary][width] */
    float *y;
};

/* Per node: dtable = tree over microbatches of the sum chain over rows r with token[r] == v of dy[r]; +0
 * where none. */
struct tr_op_embedding_backward {
    int64_t vocabulary, width;
    const int32_t *token;
    const float *dy;
    float *dtable;      /* [vocabulary][width] per node */
    int32_t *workspace; /* [vocabulary + 1 + rows] */
    struct tr_cut cut;  /* in rows */
};

/* On entry gates[r] holds the chain over the input part (x w_input, by dense_forward without bias). Per row,
   t ascending: the chain goes on over h of the previous row, k ascending (not at the first row of an
   example, unless it goes on from h_before and c_before, which stand for a row before it), + b. Then, gate
   order i, f, g, o: i, f, o = sigmoid, g = tanh; c = fma(f, c_prev, i * g) (first row: i * g); h = o *
   tanh(c). On return gates holds the activated gates. Gate q (0..3) of unit k is column q * hidden + k. */
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

/* dgates = gradient of the gates before activation. Per row, t descending: dh = dy + (chain over 4 * hidden
   of the next row's dgates with w^T); at the last row, and where (t + 1) % truncate == 0 (truncate > 0; t
   counts within the example), dh = dy and nothing comes from the next row. tc = tanh(c); q = dh * o; dc =
   fma(q, fma(-tc, tc, 1), dc_next * f_next), without a next row q * fma(-tc, tc, 1). di = (dc * g) * (i * (1
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

/* Per node: dw = tree over microbatches of the chain over rows r (not first of their example) of h[r-1][k] *
 * dgates[r][j]. */
struct tr_op_lstm_backward_weights {
    int64_t examples, hidden;
    const int32_t *offset;
    const float *h, *dgates;
    float *dw;         /* [hidden][4 * hidden] per node */
    struct tr_cut cut; /* in examples, not rows */
};

/* y[e] = x[offset[e+1] - 1]; +0 where an example has no rows. */
struct tr_op_sequence_last_forward {
    int64_t examples, width;
    const int32_t *offset;
    const float *x;
    float *y;
};

/* dx[r] = dy[e] at the last row of example e, +0 elsewhere. */
struct tr_op_sequence_last_backward {
    int64_t examples, width;
    const int32_t *offset;
    const float *dy;
    float *dx;
};

/* y[r][tap] = x[r + tap - before], +0 outside of the example. */
struct tr_op_sequence_unfold {
    int64_t examples, width, taps, before;
    const int32_t *offset;
    const float *x; /* [rows][width] */
    float *y;       /* [rows][taps][width] */
};

/* dx[r] = sum chain over taps ascending of dy[r - tap + before][tap], of rows of the example alone. */
struct tr_op_sequence_fold {
    int64_t examples, width, taps, before;
    const int32_t *offset;
    const float *dy; /* [rows][taps][width] */
    float *dx;       /* [rows][width] */
};

/* Row r of y is row r of x, or if `reverse` that of the same example as far from its end as r is from its
   begin. Rows are x_step and y_step floats apart; what lies between those of y stays. */
struct tr_op_sequence_copy {
    int64_t examples, width, x_step, y_step;
    bool reverse;
    const int32_t *offset;
    const float *x;
    float *y;
};

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

/* dgates = gradient of what r, z, n are functions of; dhidden = that of u, which is the same but for n. Per
   row, t descending: dh = dy + (chain over 3 * hidden of the next row's dhidden with w^T), then fma(dh_next,
   z_next, dh); at the last row dh = dy. dn = (dh * (1 - z)) * fma(-n, n, 1); dz = (dh * (h_prev - n)) * (z *
   (1 - z)), h_prev +0 at the first row; dr = (dn * inner) * (r * (1 - r)); dhidden of n = dn * r. */
struct tr_op_gru_backward {
    int64_t examples, hidden;
    const int32_t *offset;
    const float *w;
    const float *gates, *inner, *h, *dy;
    float *dgates, *dhidden; /* [rows][3 * hidden] */
};

/* Per node: dw = tree over microbatches of the chain over rows r (not first of their example) of h[r-1][k] *
 * dhidden[r][j]. */
struct tr_op_gru_backward_weights {
    int64_t examples, hidden;
    const int32_t *offset;
    const float *h, *dhidden;
    float *dw;         /* [hidden][3 * hidden] per node */
    struct tr_cut cut; /* in examples, not rows */
};

/* ---- attention ---- */

/* Scaled dot-product attention (Vaswani et al. 2017): `heads` heads over vectors of `size`. Example e has
   queries [offset[e], offset[e+1]) and keys [key_offset[e], key_offset[e+1]); of n queries and m >= n keys
   (m > 0 where n > 0) the queries are those of the last n tokens. Query i sees the keys j <= i + (m - n) if
   causal, else all. Row r of head h lies at q + r * q_step + h * size; of keys and values at k and v + r *
   kv_step + h * size.

   Per query and head, over the keys j it sees, ascending: z[j] = chain over `size` of q * k; greatest =
   the first z, then z[j] > greatest ? z[j] : greatest; shift = greatest * -scale; e[j] = exp(fma(z[j], scale,
   shift)); inv = 1 / sum chain(e); y = inv * chain over j of kept(e[j]) * v[j]. Keeps shift and inv.

   kept(x) is x; with rate > 0: unit(bits) >= rate ? x * (1 / (1 - rate)) : 0, where key j of query i of head
   h takes word j % 4 of philox(key; (h * n + i) * ((m + 3) / 4) + j / 4 mod 2^32, example, step, layer), and
   examples are numbered first_example + e. */
struct tr_attention {
    int64_t examples, heads, size;
    bool causal;
    float scale;               /* > 0 */
    const int32_t *offset;     /* [examples + 1] of queries */
    const int32_t *key_offset; /* [examples + 1]; may be `offset` */
    const float *q, *k, *v;
    int64_t q_step, kv_step;
    float *shift, *inv; /* [rows of queries][heads]; written forward, read backward */
    float rate;         /* 0 <= rate < 1 */
    uint32_t key[2];
    uint32_t layer;
    uint32_t first_example;
    const struct tr_step_scalars *scalars; /* read where rate > 0 */
};

struct tr_op_attention_forward {
    struct tr_attention at;
    float *y; /* [rows][heads * size] */
};

/* Keys are the queries' own tokens: key_offset == offset. Per query i, key j that it sees, and head: p =
   exp(fma(z, scale, shift)) * inv, z as forward; g = kept(chain over `size` of dy * v); d[i] = lane chain
   over `size` of dy * y; s = p * (g - d[i]). dq[i] = scale * chain over the keys j of s * k[j]; dk[j] = scale
   * chain over the queries i that see it, ascending, of s * q[i]; dv[j] = chain over these i of kept(p) *
   dy[i]. Gradients lie like their tensors, at gradient_step. */
struct tr_op_attention_backward {
    struct tr_attention at;
    const float *y, *dy; /* [rows][heads * size] */
    float *dq, *dk, *dv;
    int64_t gradient_step;
};

/* y[r] = x[r] + table[t], t counting the tokens of the example from 0; beyond the table its last row. y may
   be x. */
struct tr_op_position_forward {
    int64_t examples, width, length;
    const int32_t *offset;
    const float *table; /* [length][width] */
    const float *x;
    float *y;
};

/* Per node: dtable[t] = tree over microbatches of the sum chain over the rows of dy that got it; +0 where
   none did. */
struct tr_op_position_backward {
    int64_t width, length;
    const int32_t *offset;
    const float *dy;
    float *dtable;     /* [length][width] per node */
    struct tr_cut cut; /* in examples, not rows */
};

/* Rotary positions (Su et al. 2021), in place, of `heads` vectors of `size` (even) in each row, one behind
   the other from x + r * step. a = x[k], b = x[k + size / 2] become fma(-s, b, c * a) and fma(s, a, c * b), k
   < size / 2; c = cos, s = sin of the angle t * base^(-2k / size), t counting the tokens of the example from
   `past`. `inverse` turns by -s, which is the gradient. The angle is (double)t * tr_pow(base, -2k / size), c
   = (float)tr_cos(angle), s = (float)tr_cos(angle - pi / 2) in double, pi / 2 = 0x1.921fb54442d18p0. */
struct tr_op_rotary {
    int64_t examples, heads, size, step;
    double base;
    bool inverse;
    int64_t past; /* >= 0 */
    const int32_t *offset;
    float *x;
};

/* ---- losses ----

   flush(x) = |x| < 2^-100 ? +0 : x. Saturated outputs have gradients, and the moments of what no longer
   learns decay, down to subnormal numbers, which moves no parameter but costs some processors a hundred
   cycles per operation. */

/* Per row: m = max; s = lane sum(exp(x - m)); logz = log(s). With smoothing e: off = e / classes, on = (1 -
   e) + off. loss = logz - (x[label] - m) when e == 0, else fma chain from +0 over classes of t[k] * (logz -
   (x[k] - m)), t = k == label ? on : off. dx = flush(exp(x - m) / s - t) * scale (t = 1 or 0 when e == 0).
   correct = 1 if label is where the maximum was found (as in pooling: the first of equals, NaN above all). */
struct tr_op_softmax_cross_entropy {
    int64_t rows, classes;
    float smoothing, scale;
    const float *x;
    const int32_t *label; /* [rows], in range, or negative: the row has none, its results are +0 */
    float *loss;          /* [rows] */
    float *correct;       /* [rows], 0 or 1 */
    float *dx;            /* [rows][classes] or NULL */
};

/* Per row: d = x - target; loss = lane chain(d * d) * (1 / width); dx = (d * (2 / width)) * scale. */
struct tr_op_mean_squared_error {
    int64_t rows, width;
    float scale;
    const float *x, *target;
    float *loss; /* [rows] */
    float *dx;   /* [rows][width] or NULL */
};

/* Per output k of a row, s = sigmoid(x), z = max(-x, 0) + log(1 + exp(-|x|)), max(a, 0) = a > 0 ? a : 0 (NaN
   stays NaN). Without `weight`: term = fma(1 - t, x, z), slope = s - t; with it q = weight[k] * t, u = (q +
   1)
   - t, term = fma(1 - t, x, u * z), slope = fma(u, s, -q). loss = lane sum(term) * (1 / width); dx =
   (flush(slope) * (1 / width)) * scale. correct = (outputs where (x > 0) == (t > 0.5)) / width, both as
   float32. */
struct tr_op_binary_cross_entropy {
    int64_t rows, width;
    float scale;
    const float *x, *target; /* [rows][width] */
    const float *weight;     /* [width] or NULL */
    float *loss, *correct;   /* [rows] */
    float *dx;               /* [rows][width] or NULL */
};

/* Per output, d = x - target, a = |d|. delta > 0 (Huber): a <= delta: term = (0.5 * d) * d, slope = d; else
   term = delta * (a - 0.5 * delta), slope = delta * (1 where d > 0, -1 where d < 0, else d). delta == 0
   (absolute error): term = a; slope = 1 where d > 0, -1 where d < 0, else d. loss = lane sum(term) * (1 /
   width); dx = (slope * (1 / width)) * scale. */
struct tr_op_huber_error {
    int64_t rows, width;
    float delta, scale;
    const float *x, *target;
    float *loss; /* [rows] */
    float *dx;   /* [rows][width] or NULL */
};

/* loss[r] = loss[r] * weight[label[r]]; dx[r][k] = dx[r][k] * weight[label[r]]. In place. */
struct tr_op_weigh_rows {
    int64_t rows, width;
    const float *weight;  /* by label */
    const int32_t *label; /* [rows], in range */
    float *loss;          /* [rows] */
    float *dx;            /* [rows][width] or NULL */
};

/* y[i] = the whole number x[i] >= 0 below 2^31, fractions cut off; 0 for any other x. */
struct tr_op_to_labels {
    int64_t count;
    const float *x;
    int32_t *y;
};

/* Per node: y = tree over microbatches of the sum chain over rows of x. */
struct tr_op_sum_rows {
    const float *x; /* [rows] */
    float *y;       /* 1 per node */
    struct tr_cut cut;
};

/* ---- input ---- */

/* Gathers rows of words of 32 bits, whatever they mean: row r of y is row index[r] of x. Rows have `width`
   words and begin `stride` words apart in x. With `start`, where lengths differ, row i of x has the words
   from start[i] on, and row r of y, as long as that of x, the words [offset[r], offset[r + 1]); width and
   stride are not read. */
struct tr_op_gather_rows {
    int64_t rows, width, stride;
    const int64_t *index;  /* [rows] */
    const int64_t *start;  /* NULL: all rows are of one length */
    const int32_t *offset; /* [rows + 1], ascending; NULL without start */
    const int32_t *x;
    int32_t *y;
};

/* Gathers images stored as bytes. Output pixel (i, j, ch) of row r takes source pixel (i + top, j + left) of
   image index[r], columns mirrored within the output when flipped; outside the source the byte is 0. value =
   fma((float)byte, scale[ch], shift[ch]) (ch % 4). `random` draws per example from philox(key; example, step,
   0, 0): top = word0 % (in_h + 2 pad - out_h + 1) - pad, left likewise from word1, flip = word2 & 1 if
   `flip`; in_h + 2 pad >= out_h, and so for the width. Without it: top = (in_h - out_h) / 2, left alike, as C
   divides, no flip, and scalars is not read. */
struct tr_op_load_images {
    int64_t rows;
    int32_t in_h, in_w, out_h, out_w, channels, pad;
    bool random, flip;
    float scale[4], shift[4];
    uint32_t key[2];
    uint32_t first_example;
    const uint8_t *source; /* [images][in_h][in_w][channels] */
    const int64_t *index;  /* [rows] */
    float *y;              /* [rows][out_h][out_w][channels] */
    const struct tr_step_scalars *scalars;
};

/* ---- optimizer ---- */

enum tr_rule {
    TR_RULE_SGD,      /* w = fma(-rate, g, w) */
    TR_RULE_MOMENTUM, /* m = flush(fma(beta1, m, g)); w = fma(-rate, nesterov ? fma(beta1, m, g) : m, w) */
    TR_RULE_ADAM,     /* m = flush(fma(beta1, m, (1-beta1) * g));
                         v = flush(fma(beta2, v, (1-beta2) * (g * g)));
                         w = fma(-adam_rate, m / fma(sqrt(v), adam_correction, epsilon), w) */
    TR_RULE_ADAMW,    /* w = fma(-(rate * decay), w, w), then as ADAM */
    TR_RULE_RMSPROP,  /* v = flush(fma(beta2, v, (1-beta2) * (g * g))); q = g / (sqrt(v) + epsilon);
                         m = flush(fma(beta1, m, q)); w = fma(-rate, m, w); without m: w = fma(-rate, q, w) */
    TR_RULE_ADAGRAD,  /* v = fma(g, g, v); w = fma(-rate, g / (sqrt(v) + epsilon), w) */
    TR_RULE_STATISTIC /* w = fma(beta1, g - w, w): running statistics; none of the steps below applies */
};

/* rate = scalars->rate * rate_factor, adam_rate = scalars->adam_rate * rate_factor.
   Per element: g = grad; if clip_norm: g = g * scalars->clip_scale; if clip_value > 0: g = min(max(g,
   -clip_value), clip_value) (NaN stays NaN); if l2 > 0: g = fma(l2, w, g); the rule; if ema: ema = fma(1 -
   ema_decay, w - ema, ema) with the new w and scalars->ema_decay. (1-beta) is computed in float32.
   scalars->nonfinite is set where a new w, of a statistic too, is not finite, and is never cleared. Nothing
   is changed where scalars->held is not 0. */
struct tr_op_update {
    int64_t count;
    enum tr_rule rule;
    bool nesterov, clip_norm;
    float rate_factor; /* of the parameter; 1: the rate of the step */
    float beta1, beta2, epsilon, decay, l2, clip_value;
    const float *grad;
    float *w, *m, *v; /* m: MOMENTUM, ADAM(W), RMSPROP or NULL; v: ADAM(W), RMSPROP, ADAGRAD; else NULL */
    float *ema;       /* or NULL */
    struct tr_step_scalars *scalars;
};

/* dense_backward_weights to a dw that is not kept, then update by it. */
struct tr_op_dense_backward_update {
    struct tr_op_dense_backward_weights weights; /* of one node; dw, db: NULL */
    struct tr_op_update update;                  /* count: in * out; grad: NULL */
};

/* out[0] = sum of squares in blocks of 4096 elements: each block a lane chain of x * x, then the sum chain of
 * the blocks. */
struct tr_op_sum_squares {
    int64_t count;
    const float *x;
    float *out;
};

/* clip_scale = max_norm / norm if norm > max_norm, else 1 (NaN gives 1); norm = sqrt(sum chain of `squares`).
 */
struct tr_op_clip_scale {
    int64_t count;
    float max_norm;
    const float *squares; /* [count], one per parameter, in order */
    float *norm;          /* 1 */
    struct tr_step_scalars *scalars;
};

/* scalars->held = 1 if some x is NaN or infinite, or if scalars->nonfinite is set already, by a step before
   that nobody has judged yet; else it stays. So a device judges a step by itself. */
struct tr_op_hold {
    int64_t count;
    const float *x;
    struct tr_step_scalars *scalars;
};

/* The fusions, which a device may lack; all others it has, or networks that need them are refused there. */
#define TR_DEVICE_FUSIONS(X)                                                                                 \
    X(batch_norm_activation_forward)                                                                         \
    X(batch_norm_activation_backward)                                                                        \
    X(winograd_backward)                                                                                     \
    X(conv_pool_forward)                                                                                     \
    X(conv_pool_backward_data)                                                                               \
    X(conv_pool_backward_weights)                                                                            \
    X(dense_gelu_forward)                                                                                    \
    X(dense_gelu_backward_data)                                                                              \
    X(dense_backward_update)

/* Every operation, once: the vtable, the wrappers and the tests are made from this list. */
#define TR_DEVICE_OPS(X)                                                                                     \
    X(dense_forward)                                                                                         \
    X(dense_backward_data)                                                                                   \
    X(dense_backward_weights)                                                                                \
    X(conv_forward)                                                                                          \
    X(conv_backward_data)                                                                                    \
    X(conv_backward_weights)                                                                                 \
    X(winograd_forward)                                                                                      \
    X(winograd_backward_data)                                                                                \
    X(winograd_backward_weights)                                                                             \
    X(activation_forward)                                                                                    \
    X(activation_backward)                                                                                   \
    X(add)                                                                                                   \
    X(join_columns)                                                                                          \
    X(split_columns)                                                                                         \
    X(scale)                                                                                                 \
    X(fill)                                                                                                  \
    X(dropout)                                                                                               \
    X(pool_forward)                                                                                          \
    X(pool_backward)                                                                                         \
    X(pool_rows_forward)                                                                                     \
    X(pool_rows_backward)                                                                                    \
    X(softmax_forward)                                                                                       \
    X(softmax_backward)                                                                                      \
    X(layer_norm_forward)                                                                                    \
    X(layer_norm_backward)                                                                                   \
    X(rms_norm_forward)                                                                                      \
    X(rms_norm_backward)                                                                                     \
    X(batch_norm_forward)                                                                                    \
    X(batch_norm_backward)                                                                                   \
    X(batch_norm_infer)                                                                                      \
    TR_DEVICE_FUSIONS(X)                                                                                     \
    X(embedding_forward)                                                                                     \
    X(embedding_backward)                                                                                    \
    X(lstm_forward)                                                                                          \
    X(lstm_backward)                                                                                         \
    X(lstm_backward_weights)                                                                                 \
    X(sequence_last_forward)                                                                                 \
    X(sequence_last_backward)                                                                                \
    X(sequence_unfold)                                                                                       \
    X(sequence_fold)                                                                                         \
    X(sequence_copy)                                                                                         \
    X(gru_forward)                                                                                           \
    X(gru_backward)                                                                                          \
    X(gru_backward_weights)                                                                                  \
    X(attention_forward)                                                                                     \
    X(attention_backward)                                                                                    \
    X(position_forward)                                                                                      \
    X(position_backward)                                                                                     \
    X(rotary)                                                                                                \
    X(softmax_cross_entropy)                                                                                 \
    X(mean_squared_error)                                                                                    \
    X(binary_cross_entropy)                                                                                  \
    X(huber_error)                                                                                           \
    X(weigh_rows)                                                                                            \
    X(to_labels)                                                                                             \
    X(sum_rows)                                                                                              \
    X(load_images)                                                                                           \
    X(gather_rows)                                                                                           \
    X(update)                                                                                                \
    X(sum_squares)                                                                                           \
    X(clip_scale)                                                                                            \
    X(hold)

#endif
