/* Descriptions of operations (device/operation.h): convolutions and pools of them. */
#ifndef TR_DEVICE_OPS_CONVOLUTION_H
#define TR_DEVICE_OPS_CONVOLUTION_H

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

#define TR_ABOUT_conv_backward_data(_)                                                                       \
    _(SIZE, rows)                                                                                            \
    _(SHAPE, in_c)                                                                                           \
    _(SHAPE, out_c)                                                                                          \
    _(SHAPE, window)                                                                                         \
    _(READS, dy, rows *tr_window_out(&a->window) * a->out_c)                                                 \
    _(READS, w, tr_window_taps(&a->window) * a->in_c * a->out_c)                                             \
    _(WRITES, dx, rows *tr_window_in(&a->window) * a->in_c)                                                  \
    _(OPERATIONS, 2 * rows * tr_window_out(&a->window) * tr_window_taps(&a->window) * a->in_c * a->out_c)

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
