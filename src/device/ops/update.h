/* Descriptions of operations (device/operation.h): update rules, clipping, what holds updates back. */
#ifndef TR_DEVICE_OPS_UPDATE_H
#define TR_DEVICE_OPS_UPDATE_H

#define TR_ABOUT_update(_)                                                                                   \
    _(SIZE, count)                                                                                           \
    _(READS, grad, a->count)                                                                                 \
    _(UPDATES, w, a->count)                                                                                  \
    _(UPDATES, m, a->count)                                                                                  \
    _(UPDATES, v, a->count)                                                                                  \
    _(UPDATES, ema, a->count)                                                                                \
    _(UPDATES, scalars, 1)                                                                                   \
    _(OPERATIONS, a->count *tr_rule_operations(a->rule))

#define TR_ABOUT_sum_squares(_)                                                                              \
    _(SIZE, count)                                                                                           \
    _(READS, x, a->count)                                                                                    \
    _(WRITES, out, 1)                                                                                        \
    _(OPERATIONS, 2 * a->count)

#define TR_ABOUT_clip_scale(_)                                                                               \
    _(SIZE, count)                                                                                           \
    _(READS, squares, a->count)                                                                              \
    _(WRITES, norm, 1)                                                                                       \
    _(UPDATES, scalars, 1)                                                                                   \
    _(OPERATIONS, a->count)

#define TR_ABOUT_hold(_)                                                                                     \
    _(SIZE, count)                                                                                           \
    _(READS, x, a->count)                                                                                    \
    _(UPDATES, scalars, 1)                                                                                   \
    _(OPERATIONS, a->count)

#define TR_ABOUT_dense_backward_update(_)                                                                    \
    _(CUT, weights.cut)                                                                                      \
    _(SHAPE, weights.in)                                                                                     \
    _(SHAPE, weights.out)                                                                                    \
    _(READS, weights.x, rows * a->weights.in)                                                                \
    _(READS, weights.dy, rows * a->weights.out)                                                              \
    _(UPDATES, update.w, a->update.count)                                                                    \
    _(UPDATES, update.m, a->update.count)                                                                    \
    _(UPDATES, update.v, a->update.count)                                                                    \
    _(UPDATES, update.ema, a->update.count)                                                                  \
    _(UPDATES, update.scalars, 1)                                                                            \
    _(PART, weights, dense_backward_weights)                                                                 \
    _(PART, update, update)                                                                                  \
    _(OPERATIONS, 0)

#endif
