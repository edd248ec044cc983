/* Descriptions of operations (device/operation.h): element by element, columns, dropout. */
#ifndef TR_DEVICE_OPS_ELEMENTWISE_H
#define TR_DEVICE_OPS_ELEMENTWISE_H

#define TR_ABOUT_activation_forward(_)                                                                       \
    _(SIZE, count)                                                                                           \
    _(READS, x, a->count)                                                                                    \
    _(WRITES, y, a->count)                                                                                   \
    _(OPERATIONS, a->count)

#define TR_ABOUT_activation_backward(_)                                                                      \
    _(SIZE, count)                                                                                           \
    _(READS, x, a->count)                                                                                    \
    _(READS, y, a->count)                                                                                    \
    _(READS, dy, a->count)                                                                                   \
    _(WRITES, dx, a->count)                                                                                  \
    _(OPERATIONS, a->count)

#define TR_ABOUT_add(_)                                                                                      \
    _(SIZE, count)                                                                                           \
    _(READS, a, a->count)                                                                                    \
    _(READS, b, a->count)                                                                                    \
    _(WRITES, y, a->count)                                                                                   \
    _(OPERATIONS, a->count)

#define TR_ABOUT_join_columns(_)                                                                             \
    _(SIZE, rows)                                                                                            \
    _(SHAPE, parts)                                                                                          \
    _(SHAPE, width)                                                                                          \
    _(READS, x[0], rows * a->width[0])                                                                       \
    _(READS, x[1], rows * a->width[1])                                                                       \
    _(READS, x[2], rows * a->width[2])                                                                       \
    _(READS, x[3], rows * a->width[3])                                                                       \
    _(READS, x[4], rows * a->width[4])                                                                       \
    _(READS, x[5], rows * a->width[5])                                                                       \
    _(READS, x[6], rows * a->width[6])                                                                       \
    _(READS, x[7], rows * a->width[7])                                                                       \
    _(WRITES, y, rows *tr_join_width(a->parts, a->width))                                                    \
    _(OPERATIONS, 0)

#define TR_ABOUT_split_columns(_)                                                                            \
    _(SIZE, rows)                                                                                            \
    _(SHAPE, parts)                                                                                          \
    _(SHAPE, width)                                                                                          \
    _(READS, x, rows *tr_join_width(a->parts, a->width))                                                     \
    _(WRITES, y[0], rows * a->width[0])                                                                      \
    _(WRITES, y[1], rows * a->width[1])                                                                      \
    _(WRITES, y[2], rows * a->width[2])                                                                      \
    _(WRITES, y[3], rows * a->width[3])                                                                      \
    _(WRITES, y[4], rows * a->width[4])                                                                      \
    _(WRITES, y[5], rows * a->width[5])                                                                      \
    _(WRITES, y[6], rows * a->width[6])                                                                      \
    _(WRITES, y[7], rows * a->width[7])                                                                      \
    _(OPERATIONS, 0)

#define TR_ABOUT_scale(_)                                                                                    \
    _(SIZE, count)                                                                                           \
    _(READS, x, a->count)                                                                                    \
    _(WRITES, y, a->count)                                                                                   \
    _(OPERATIONS, a->count)

#define TR_ABOUT_fill(_)                                                                                     \
    _(SIZE, count)                                                                                           \
    _(WRITES, y, a->count)                                                                                   \
    _(OPERATIONS, 0)

#define TR_ABOUT_dropout(_)                                                                                  \
    _(SIZE, examples)                                                                                        \
    _(SHAPE, width)                                                                                          \
    _(OFFSET, offset)                                                                                        \
    _(READS, x, rows * a->width)                                                                             \
    _(WRITES, y, rows * a->width)                                                                            \
    _(READS, scalars, 1)                                                                                     \
    _(OPERATIONS, rows * a->width)

#endif
