/* Descriptions of operations (device/operation.h): losses, and sums of them. */
#ifndef TR_DEVICE_OPS_LOSS_H
#define TR_DEVICE_OPS_LOSS_H

#define TR_ABOUT_softmax_cross_entropy(_)                                                                    \
    _(SIZE, rows)                                                                                            \
    _(SHAPE, classes)                                                                                        \
    _(READS, x, rows * a->classes)                                                                           \
    _(INDEX, label, rows)                                                                                    \
    _(WRITES, loss, rows)                                                                                    \
    _(WRITES, correct, rows)                                                                                 \
    _(WRITES, dx, rows * a->classes)                                                                         \
    _(OPERATIONS, (a->dx ? 7 : 4) * rows * a->classes)

#define TR_ABOUT_mean_squared_error(_)                                                                       \
    _(SIZE, rows)                                                                                            \
    _(SHAPE, width)                                                                                          \
    _(READS, x, rows * a->width)                                                                             \
    _(READS, target, rows * a->width)                                                                        \
    _(WRITES, loss, rows)                                                                                    \
    _(WRITES, dx, rows * a->width)                                                                           \
    _(OPERATIONS, (a->dx ? 5 : 3) * rows * a->width)

#define TR_ABOUT_binary_cross_entropy(_)                                                                     \
    _(SIZE, rows)                                                                                            \
    _(SHAPE, width)                                                                                          \
    _(READS, x, rows * a->width)                                                                             \
    _(READS, target, rows * a->width)                                                                        \
    _(READS, weight, a->width)                                                                               \
    _(WRITES, loss, rows)                                                                                    \
    _(WRITES, correct, rows)                                                                                 \
    _(WRITES, dx, rows * a->width)                                                                           \
    _(OPERATIONS, (a->dx ? 13 : 9) * rows * a->width)

#define TR_ABOUT_huber_error(_)                                                                              \
    _(SIZE, rows)                                                                                            \
    _(SHAPE, width)                                                                                          \
    _(READS, x, rows * a->width)                                                                             \
    _(READS, target, rows * a->width)                                                                        \
    _(WRITES, loss, rows)                                                                                    \
    _(WRITES, dx, rows * a->width)                                                                           \
    _(OPERATIONS, (a->dx ? 7 : 5) * rows * a->width)

#define TR_ABOUT_weigh_rows(_)                                                                               \
    _(SIZE, rows)                                                                                            \
    _(SHAPE, width)                                                                                          \
    _(READS_PART, weight, tr_fewer(rows, a->width))                                                          \
    _(INDEX, label, rows)                                                                                    \
    _(UPDATES, loss, rows)                                                                                   \
    _(UPDATES, dx, rows * a->width)                                                                          \
    _(OPERATIONS, rows *(1 + (a->dx ? a->width : 0)))

#define TR_ABOUT_to_labels(_)                                                                                \
    _(SIZE, count)                                                                                           \
    _(READS, x, a->count)                                                                                    \
    _(WRITES, y, a->count)                                                                                   \
    _(OPERATIONS, 0)

#define TR_ABOUT_sum_rows(_)                                                                                 \
    _(CUT, cut)                                                                                              \
    _(READS, x, rows)                                                                                        \
    _(NODES, y, 1)                                                                                           \
    _(OPERATIONS, rows)

#endif
