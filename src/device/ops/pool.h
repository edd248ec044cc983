/* Descriptions of operations (device/operation.h): pools. */
#ifndef TR_DEVICE_OPS_POOL_H
#define TR_DEVICE_OPS_POOL_H

#define TR_ABOUT_pool_forward(_)                                                                             \
    _(SIZE, rows)                                                                                            \
    _(SHAPE, channels)                                                                                       \
    _(SHAPE, window)                                                                                         \
    _(READS, x, rows *tr_window_in(&a->window) * a->channels)                                                \
    _(WRITES, y, rows *tr_window_out(&a->window) * a->channels)                                              \
    _(KEEPS, taken, rows *tr_window_out(&a->window) * a->channels)                                           \
    _(OPERATIONS, rows *tr_window_out(&a->window) * tr_window_taps(&a->window) * a->channels)

#define TR_ABOUT_pool_backward(_)                                                                            \
    _(SIZE, rows)                                                                                            \
    _(SHAPE, channels)                                                                                       \
    _(SHAPE, window)                                                                                         \
    _(READS, dy, rows *tr_window_out(&a->window) * a->channels)                                              \
    _(READS, taken, rows *tr_window_out(&a->window) * a->channels)                                           \
    _(READS, relu_output, rows *tr_window_out(&a->window) * a->channels)                                     \
    _(WRITES, dx, rows *tr_window_in(&a->window) * a->channels)                                              \
    _(OPERATIONS, rows *tr_window_out(&a->window) * tr_window_taps(&a->window) * a->channels)

#define TR_ABOUT_pool_rows_forward(_)                                                                        \
    _(SIZE, examples)                                                                                        \
    _(SHAPE, spatial)                                                                                        \
    _(SHAPE, width)                                                                                          \
    _(OFFSET, offset)                                                                                        \
    _(READS, x, (a->offset ? rows : a->examples * a->spatial) * a->width)                                    \
    _(WRITES, y, a->examples * a->width)                                                                     \
    _(KEEPS, taken, a->examples * a->width)                                                                  \
    _(OPERATIONS, (a->offset ? rows : a->examples * a->spatial) * a->width)

#define TR_ABOUT_pool_rows_backward(_)                                                                       \
    _(SIZE, examples)                                                                                        \
    _(SHAPE, spatial)                                                                                        \
    _(SHAPE, width)                                                                                          \
    _(OFFSET, offset)                                                                                        \
    _(READS, dy, a->examples * a->width)                                                                     \
    _(READS, taken, a->examples * a->width)                                                                  \
    _(WRITES, dx, (a->offset ? rows : a->examples * a->spatial) * a->width)                                  \
    _(OPERATIONS, (a->offset ? rows : a->examples * a->spatial) * a->width)

#endif
