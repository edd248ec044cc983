/* Operations: pools, over windows and over the rows of an example. */
#ifndef TR_DEVICE_OPS_POOL_H
#define TR_DEVICE_OPS_POOL_H

#include "device/ops/common.h"

enum tr_pool { TR_POOL_MAX, TR_POOL_AVERAGE };

/* MAX: taps (kh, kw) ascending; the first is kept, and a later one replaces it if it is greater, or if it
   is NaN and the kept one is not; `taken` records kh * kernel_w + kw. AVERAGE: sum chain over the taps
   inside the image times 1 / (their number), or with `count_border` 1 / (kernel_h * kernel_w). Every
   window has at least one tap inside; kernel_h * kernel_w <= 256. */
struct tr_op_pool_forward {
    int64_t rows;
    int32_t channels;
    struct tr_sliding_window window;
    enum tr_pool kind;
    const float *x;    /* [rows][in_h][in_w][channels] */
    float *y;          /* [rows][out_h][out_w][channels] */
    uint8_t *taken;    /* shape of y; MAX only, may be NULL when no backward follows */
    bool count_border; /* AVERAGE */
};
#define TR_ABOUT_pool_forward(_)                                                                             \
    _(SIZE, rows)                                                                                            \
    _(SHAPE, channels)                                                                                       \
    _(SHAPE, window)                                                                                         \
    _(READS, x, rows *tr_window_in(&a->window) * a->channels)                                                \
    _(WRITES, y, rows *tr_window_out(&a->window) * a->channels)                                              \
    _(KEEPS, taken, rows *tr_window_out(&a->window) * a->channels)                                           \
    _(OPERATIONS, rows *tr_window_out(&a->window) * tr_window_taps(&a->window) * a->channels)

/* dx: sum chain over the windows that contain the pixel, (oh, ow) ascending, of each one's part: MAX: dy
   if `taken` is this tap; AVERAGE: dy * (1 / the divisor of the forward pass). From +0. With `relu_output`
   (MAX only: the pool's y, whose input is a relu's output) a window passes dy only where y > 0, which is
   also the relu's gradient. */
struct tr_op_pool_backward {
    int64_t rows;
    int32_t channels;
    struct tr_sliding_window window;
    enum tr_pool kind;
    const float *dy;
    const uint8_t *taken;
    const float *relu_output; /* NULL or shape of dy */
    float *dx;
    bool count_border; /* AVERAGE */
};
#define TR_ABOUT_pool_backward(_)                                                                            \
    _(SIZE, rows)                                                                                            \
    _(SHAPE, channels)                                                                                       \
    _(SHAPE, window)                                                                                         \
    _(READS, dy, rows *tr_window_out(&a->window) * a->channels)                                              \
    _(READS, taken, rows *tr_window_out(&a->window) * a->channels)                                           \
    _(READS, relu_output, rows *tr_window_out(&a->window) * a->channels)                                     \
    _(WRITES, dx, rows *tr_window_in(&a->window) * a->channels)                                              \
    _(OPERATIONS, rows *tr_window_out(&a->window) * tr_window_taps(&a->window) * a->channels)

/* One row for each example from its n rows: [offset[e], offset[e+1]), or, where that is NULL, spatial rows
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
#define TR_ABOUT_pool_rows_forward(_)                                                                        \
    _(SIZE, examples)                                                                                        \
    _(SHAPE, spatial)                                                                                        \
    _(SHAPE, width)                                                                                          \
    _(OFFSET, offset)                                                                                        \
    _(READS, x, (a->offset ? rows : a->examples * a->spatial) * a->width)                                    \
    _(WRITES, y, a->examples * a->width)                                                                     \
    _(KEEPS, taken, a->examples * a->width)                                                                  \
    _(OPERATIONS, (a->offset ? rows : a->examples * a->spatial) * a->width)

/* dx: AVERAGE: dy * (1 / n); MAX: dy where the row was taken, else +0. */
struct tr_op_pool_rows_backward {
    int64_t examples, spatial, width;
    const int32_t *offset;
    enum tr_pool kind;
    const float *dy;
    const int32_t *taken;
    float *dx;
};
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
