/* Descriptions of operations (device/operation.h): dense layers. */
#ifndef TR_DEVICE_OPS_DENSE_H
#define TR_DEVICE_OPS_DENSE_H

#define TR_ABOUT_dense_forward(_)                                                                            \
    _(SIZE, rows)                                                                                            \
    _(SHAPE, in)                                                                                             \
    _(SHAPE, out)                                                                                            \
    _(READS, x, rows * a->in)                                                                                \
    _(READS, w, a->in * a->out)                                                                              \
    _(READS, b, a->out)                                                                                      \
    _(WRITES, y, rows * a->out)                                                                              \
    _(OPERATIONS, 2 * rows * a->in * a->out)

#define TR_ABOUT_dense_backward_data(_)                                                                      \
    _(SIZE, rows)                                                                                            \
    _(SHAPE, in)                                                                                             \
    _(SHAPE, out)                                                                                            \
    _(READS, dy, rows * a->out)                                                                              \
    _(READS, w, a->in * a->out)                                                                              \
    _(WRITES, dx, rows * a->in)                                                                              \
    _(OPERATIONS, 2 * rows * a->in * a->out)

#define TR_ABOUT_dense_backward_weights(_)                                                                   \
    _(CUT, cut)                                                                                              \
    _(SHAPE, in)                                                                                             \
    _(SHAPE, out)                                                                                            \
    _(READS, x, rows * a->in)                                                                                \
    _(READS, dy, rows * a->out)                                                                              \
    _(NODES, dw, a->in * a->out)                                                                             \
    _(NODES, db, a->out)                                                                                     \
    _(OPERATIONS, rows * a->out * (2 * a->in + (a->db ? 1 : 0)))

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
