/* Operations: convolutions, direct and by Winograd's algorithm. */
#ifndef TR_DEVICE_OPS_CONVOLUTION_H
#define TR_DEVICE_OPS_CONVOLUTION_H

#include "device/ops/pool.h"

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
#define TR_ABOUT_conv_forward(_)                                                                             \
    _(SIZE, rows)                                                                                            \
    _(SHAPE, in_c)                                                                                           \
    _(SHAPE, out_c)                                                                                          \
    _(SHAPE, window)                                                                                         \
    _(READS, x, rows *tr_window_in(&a->window) * a->in_c)                                                    \
    _(READS, w, tr_window_taps(&a->window) * a->in_c * a->out_c)                                             \
    _(READS, b, a->out_c)                                                                                    \
    _(WRITES, y, rows *tr_window_out(&a->window) * a->out_c)                                                 \
    _(OPERATIONS, 2 * rows * tr_window_out(&a->window) * tr_window_taps(&a->window) * a->in_c * a->out_c)

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
#define TR_ABOUT_conv_backward_data(_)                                                                       \
    _(SIZE, rows)                                                                                            \
    _(SHAPE, in_c)                                                                                           \
    _(SHAPE, out_c)                                                                                          \
    _(SHAPE, window)                                                                                         \
    _(READS, dy, rows *tr_window_out(&a->window) * a->out_c)                                                 \
    _(READS, w, tr_window_taps(&a->window) * a->in_c * a->out_c)                                             \
    _(WRITES, dx, rows *tr_window_in(&a->window) * a->in_c)                                                  \
    _(OPERATIONS, 2 * rows * tr_window_out(&a->window) * tr_window_taps(&a->window) * a->in_c * a->out_c)

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
#define TR_ABOUT_conv_backward_weights(_)                                                                    \
    _(CUT, cut)                                                                                              \
    _(SHAPE, in_c)                                                                                           \
    _(SHAPE, out_c)                                                                                          \
    _(SHAPE, window)                                                                                         \
    _(READS, x, rows *tr_window_in(&a->window) * a->in_c)                                                    \
    _(READS, dy, rows *tr_window_out(&a->window) * a->out_c)                                                 \
    _(NODES, dw, tr_window_taps(&a->window) * a->in_c * a->out_c)                                            \
    _(NODES, db, a->out_c)                                                                                   \
    _(OPERATIONS, rows *tr_window_out(&a->window) * a->out_c *                                               \
                      (2 * tr_window_taps(&a->window) * a->in_c + (a->db ? 1 : 0)))

/* ---- convolution by groups of channels ----
 *
 * Outputs of group g, channels [g * out_c / groups, (g + 1) * out_c / groups), see only the inputs of
 * group g, [g * in_c / groups, (g + 1) * in_c / groups): with as many groups as channels, each channel is
 * separate. groups divides both. Arguments and arithmetic are those of the corresponding operation, but w
 * and dw are [kernel_h][kernel_w][in_c / groups][out_c], and chains go over the channels of the group.
 */

struct tr_op_grouped_conv_forward {
    struct tr_op_conv_forward conv;
    int32_t groups;
};
#define TR_ABOUT_grouped_conv_forward(_)                                                                     \
    _(SIZE, conv.rows)                                                                                       \
    _(SHAPE, conv.in_c)                                                                                      \
    _(SHAPE, conv.out_c)                                                                                     \
    _(SHAPE, conv.window)                                                                                    \
    _(SHAPE, groups)                                                                                         \
    _(READS, conv.x, rows *tr_window_in(&a->conv.window) * a->conv.in_c)                                     \
    _(READS, conv.w, tr_window_taps(&a->conv.window) * (a->conv.in_c / a->groups) * a->conv.out_c)           \
    _(READS, conv.b, a->conv.out_c)                                                                          \
    _(WRITES, conv.y, rows *tr_window_out(&a->conv.window) * a->conv.out_c)                                  \
    _(OPERATIONS, 2 * rows * tr_window_out(&a->conv.window) * tr_window_taps(&a->conv.window) *              \
                      (a->conv.in_c / a->groups) * a->conv.out_c)

struct tr_op_grouped_conv_backward_data {
    struct tr_op_conv_backward_data conv;
    int32_t groups;
};
#define TR_ABOUT_grouped_conv_backward_data(_)                                                               \
    _(SIZE, conv.rows)                                                                                       \
    _(SHAPE, conv.in_c)                                                                                      \
    _(SHAPE, conv.out_c)                                                                                     \
    _(SHAPE, conv.window)                                                                                    \
    _(SHAPE, groups)                                                                                         \
    _(READS, conv.dy, rows *tr_window_out(&a->conv.window) * a->conv.out_c)                                  \
    _(READS, conv.w, tr_window_taps(&a->conv.window) * (a->conv.in_c / a->groups) * a->conv.out_c)           \
    _(WRITES, conv.dx, rows *tr_window_in(&a->conv.window) * a->conv.in_c)                                   \
    _(OPERATIONS, 2 * rows * tr_window_out(&a->conv.window) * tr_window_taps(&a->conv.window) *              \
                      (a->conv.in_c / a->groups) * a->conv.out_c)

struct tr_op_grouped_conv_backward_weights {
    struct tr_op_conv_backward_weights conv;
    int32_t groups;
};
#define TR_ABOUT_grouped_conv_backward_weights(_)                                                            \
    _(CUT, conv.cut)                                                                                         \
    _(SHAPE, conv.in_c)                                                                                      \
    _(SHAPE, conv.out_c)                                                                                     \
    _(SHAPE, conv.window)                                                                                    \
    _(SHAPE, groups)                                                                                         \
    _(READS, conv.x, rows *tr_window_in(&a->conv.window) * a->conv.in_c)                                     \
    _(READS, conv.dy, rows *tr_window_out(&a->conv.window) * a->conv.out_c)                                  \
    _(NODES, conv.dw, tr_window_taps(&a->conv.window) * (a->conv.in_c / a->groups) * a->conv.out_c)          \
    _(NODES, conv.db, a->conv.out_c)                                                                         \
    _(OPERATIONS,                                                                                            \
      rows *tr_window_out(&a->conv.window) * a->conv.out_c *                                                 \
          (2 * tr_window_taps(&a->conv.window) * (a->conv.in_c / a->groups) + (a->conv.db ? 1 : 0)))

/* ---- convolution by Winograd's algorithm ----
 *
 * The same convolutions with fewer products and different rounding: kernels of 3x3 or 5x5 taps, stride 1,
 * dilation 1, at least two outputs in each direction, pads smaller than the kernel (device/winograd.h). In
 * exact arithmetic all results are those of the operations above; gradients are the exact adjoint of the
 * forward pass as defined.
 *
 *   - Points: 0, +a, -a, +b, -b, infinity, with a = 5/8 and b = 3/2, in this order. Outputs are cut
 *     along each axis into tiles: with r = 3 taps of 4, at the end 2 or 3, or 3 and 2 where 5 are left;
 *     with r = 5 taps of 2, at the end 1 where the number is odd. A tile of m outputs reads m + r - 1
 *     inputs and has that many points: 6: all of them; 5: without -b; 4: without +b and -b. A position is
 *     a point of the height and one of the width; a tile has (m_h + r - 1) * (m_w + r - 1) of the 36.
 *   - One-dimensional transforms, each a fixed sequence of operations, in device/winograd.inc: `input`,
 *     `weights`, `output`, and their adjoints, which are not inverses but propagate gradients. For a tile
 *     of m outputs with points p_i: input = values at p_i of polynomials whose coefficients are the inputs
 *     (matrix B^T of Toom and Cook, without scales), weights = values of g0 + g1 x + ... (matrix G),
 *     output k = sum over i of p_i^k / N_i times the product at p_i, and that at infinity added to the
 *     last (matrix A^T), N_i = product over j != i of (p_i - p_j). A transform of two dimensions is that
 *     along the height, for each column, then that along the width, for each row.
 *   - Inputs outside the image are +0. Tiles (th, tw) ascend row by row.
 * Source: A. Lavin, S. Gray, Fast algorithms for convolutional neural networks (2016); the points are
 * chosen so that all constants but the scales are exact.
 */

/* The arguments are those of conv_forward. y: V = input(x) per tile and channel, U = weights(w) per pair
   of channels, M = per tile, position and output channel chain over in_c of V * U; y = act(output(M) + b). */
struct tr_op_winograd_forward {
    struct tr_op_conv_forward conv;
};
#define TR_ABOUT_winograd_forward(_)                                                                         \
    _(SIZE, conv.rows)                                                                                       \
    _(SHAPE, conv.in_c)                                                                                      \
    _(SHAPE, conv.out_c)                                                                                     \
    _(SHAPE, conv.window)                                                                                    \
    _(READS, conv.x, rows *tr_window_in(&a->conv.window) * a->conv.in_c)                                     \
    _(READS, conv.w, tr_window_taps(&a->conv.window) * a->conv.in_c * a->conv.out_c)                         \
    _(READS, conv.b, a->conv.out_c)                                                                          \
    _(WRITES, conv.y, rows *tr_window_out(&a->conv.window) * a->conv.out_c)                                  \
    _(OPERATIONS, 2 * rows * tr_window_out(&a->conv.window) * tr_window_taps(&a->conv.window) *              \
                      a->conv.in_c * a->conv.out_c)

/* Z = output_adjoint(dy) per tile and channel, U = weights(w); D = per tile, position and input channel chain
   over out_c of Z * U. dx = sum chain over the tiles that read the pixel, (th, tw) ascending, of
   input_adjoint(D). */
struct tr_op_winograd_backward_data {
    struct tr_op_conv_backward_data conv;
};
#define TR_ABOUT_winograd_backward_data(_)                                                                   \
    _(SIZE, conv.rows)                                                                                       \
    _(SHAPE, conv.in_c)                                                                                      \
    _(SHAPE, conv.out_c)                                                                                     \
    _(SHAPE, conv.window)                                                                                    \
    _(READS, conv.dy, rows *tr_window_out(&a->conv.window) * a->conv.out_c)                                  \
    _(READS, conv.w, tr_window_taps(&a->conv.window) * a->conv.in_c * a->conv.out_c)                         \
    _(WRITES, conv.dx, rows *tr_window_in(&a->conv.window) * a->conv.in_c)                                   \
    _(OPERATIONS, 2 * rows * tr_window_out(&a->conv.window) * tr_window_taps(&a->conv.window) *              \
                      a->conv.in_c * a->conv.out_c)

/* V = input(x), Z = output_adjoint(dy); per microbatch, position and pair of channels S = chain over (row,
   th, tw) ascending, of the tiles that have the position, of V * Z; its leaf is weights_adjoint(S). Per node:
   dw = tree over leaves; db as of conv_backward_weights. */
struct tr_op_winograd_backward_weights {
    struct tr_op_conv_backward_weights conv;
};
#define TR_ABOUT_winograd_backward_weights(_)                                                                \
    _(CUT, conv.cut)                                                                                         \
    _(SHAPE, conv.in_c)                                                                                      \
    _(SHAPE, conv.out_c)                                                                                     \
    _(SHAPE, conv.window)                                                                                    \
    _(READS, conv.x, rows *tr_window_in(&a->conv.window) * a->conv.in_c)                                     \
    _(READS, conv.dy, rows *tr_window_out(&a->conv.window) * a->conv.out_c)                                  \
    _(NODES, conv.dw, tr_window_taps(&a->conv.window) * a->conv.in_c * a->conv.out_c)                        \
    _(NODES, conv.db, a->conv.out_c)                                                                         \
    _(OPERATIONS, rows *tr_window_out(&a->conv.window) * a->conv.out_c *                                     \
                      (2 * tr_window_taps(&a->conv.window) * a->conv.in_c + (a->conv.db ? 1 : 0)))

/* ---- fusions (device/ops.h) ---- */

/* winograd_backward_weights, then winograd_backward_data, of the same dy, with the same window and
   channels; as many rows as the cut has. */
struct tr_op_winograd_backward {
    struct tr_op_winograd_backward_weights weights;
    struct tr_op_winograd_backward_data data;
};
#define TR_ABOUT_winograd_backward(_)                                                                        \
    _(CUT, weights.conv.cut)                                                                                 \
    _(SHAPE, weights.conv.in_c)                                                                              \
    _(SHAPE, weights.conv.out_c)                                                                             \
    _(SHAPE, weights.conv.window)                                                                            \
    _(READS, weights.conv.x, rows *tr_window_in(&a->weights.conv.window) * a->weights.conv.in_c)             \
    _(READS, weights.conv.dy, rows *tr_window_out(&a->weights.conv.window) * a->weights.conv.out_c)          \
    _(READS_PART, data.conv.dy, 0) /* the same */                                                            \
    _(READS, data.conv.w,                                                                                    \
      tr_window_taps(&a->weights.conv.window) * a->weights.conv.in_c * a->weights.conv.out_c)                \
    _(NODES, weights.conv.dw,                                                                                \
      tr_window_taps(&a->weights.conv.window) * a->weights.conv.in_c * a->weights.conv.out_c)                \
    _(NODES, weights.conv.db, a->weights.conv.out_c)                                                         \
    _(WRITES, data.conv.dx, rows *tr_window_in(&a->weights.conv.window) * a->weights.conv.in_c)              \
    _(PART, weights, winograd_backward_weights)                                                              \
    _(PART, data, winograd_backward_data)                                                                    \
    _(OPERATIONS, 0)

/* conv_forward to a y that is not stored (conv.y is not used); pool_forward of that y (pool.x is not
   used). MAX pools whose stride is their kernel, without padding and dilation. */
struct tr_op_conv_pool_forward {
    struct tr_op_conv_forward conv;
    struct tr_op_pool_forward pool;
};
#define TR_ABOUT_conv_pool_forward(_)                                                                        \
    _(SIZE, conv.rows)                                                                                       \
    _(SHAPE, conv.in_c)                                                                                      \
    _(SHAPE, conv.out_c)                                                                                     \
    _(SHAPE, conv.window)                                                                                    \
    _(READS, conv.x, rows *tr_window_in(&a->conv.window) * a->conv.in_c)                                     \
    _(READS, conv.w, tr_window_taps(&a->conv.window) * a->conv.in_c * a->conv.out_c)                         \
    _(READS, conv.b, a->conv.out_c)                                                                          \
    _(WRITES, pool.y, rows *tr_window_out(&a->pool.window) * a->conv.out_c)                                  \
    _(KEEPS, pool.taken, rows *tr_window_out(&a->pool.window) * a->conv.out_c)                               \
    _(PART, conv, conv_forward)                                                                              \
    _(PART, pool, pool_forward)                                                                              \
    _(OPERATIONS, 0)

/* pool_backward to a dx that is not stored (pool.dx is not used); conv_backward_data of it (conv.dy is not
   used). Pools as above. */
struct tr_op_conv_pool_backward_data {
    struct tr_op_conv_backward_data conv;
    struct tr_op_pool_backward pool;
};
#define TR_ABOUT_conv_pool_backward_data(_)                                                                  \
    _(SIZE, conv.rows)                                                                                       \
    _(SHAPE, conv.in_c)                                                                                      \
    _(SHAPE, conv.out_c)                                                                                     \
    _(SHAPE, conv.window)                                                                                    \
    _(READS, pool.dy, rows *tr_window_out(&a->pool.window) * a->conv.out_c)                                  \
    _(READS, pool.taken, rows *tr_window_out(&a->pool.window) * a->conv.out_c)                               \
    _(READS, pool.relu_output, rows *tr_window_out(&a->pool.window) * a->conv.out_c)                         \
    _(READS, conv.w, tr_window_taps(&a->conv.window) * a->conv.in_c * a->conv.out_c)                         \
    _(WRITES, conv.dx, rows *tr_window_in(&a->conv.window) * a->conv.in_c)                                   \
    _(PART, conv, conv_backward_data)                                                                        \
    _(PART, pool, pool_backward)                                                                             \
    _(OPERATIONS, 0)

/* The same with conv_backward_weights. */
struct tr_op_conv_pool_backward_weights {
    struct tr_op_conv_backward_weights conv;
    struct tr_op_pool_backward pool;
};
#define TR_ABOUT_conv_pool_backward_weights(_)                                                               \
    _(CUT, conv.cut)                                                                                         \
    _(SHAPE, conv.in_c)                                                                                      \
    _(SHAPE, conv.out_c)                                                                                     \
    _(SHAPE, conv.window)                                                                                    \
    _(READS, pool.dy, rows *tr_window_out(&a->pool.window) * a->conv.out_c)                                  \
    _(READS, pool.taken, rows *tr_window_out(&a->pool.window) * a->conv.out_c)                               \
    _(READS, pool.relu_output, rows *tr_window_out(&a->pool.window) * a->conv.out_c)                         \
    _(READS, conv.x, rows *tr_window_in(&a->conv.window) * a->conv.in_c)                                     \
    _(NODES, conv.dw, tr_window_taps(&a->conv.window) * a->conv.in_c * a->conv.out_c)                        \
    _(NODES, conv.db, a->conv.out_c)                                                                         \
    _(PART, conv, conv_backward_weights)                                                                     \
    _(PART, pool, pool_backward)                                                                             \
    _(OPERATIONS, 0)

#endif
