/* Descriptions of operations (device/operation.h): softmax and normalization. */
#ifndef TR_DEVICE_OPS_NORM_H
#define TR_DEVICE_OPS_NORM_H

#define TR_ABOUT_softmax_forward(_)                                                                          \
    _(SIZE, rows)                                                                                            \
    _(SHAPE, width)                                                                                          \
    _(READS, x, rows * a->width)                                                                             \
    _(WRITES, y, rows * a->width)                                                                            \
    _(OPERATIONS, 4 * rows * a->width)

#define TR_ABOUT_softmax_backward(_)                                                                         \
    _(SIZE, rows)                                                                                            \
    _(SHAPE, width)                                                                                          \
    _(READS, y, rows * a->width)                                                                             \
    _(READS, dy, rows * a->width)                                                                            \
    _(WRITES, dx, rows * a->width)                                                                           \
    _(OPERATIONS, 4 * rows * a->width)

#define TR_ABOUT_layer_norm_forward(_)                                                                       \
    _(SIZE, rows)                                                                                            \
    _(SHAPE, width)                                                                                          \
    _(READS, x, rows * a->width)                                                                             \
    _(READS, gamma, a->width)                                                                                \
    _(READS, beta, a->width)                                                                                 \
    _(WRITES, y, rows * a->width)                                                                            \
    _(KEEPS, mean, rows)                                                                                     \
    _(KEEPS, inv, rows)                                                                                      \
    _(OPERATIONS, 8 * rows * a->width)

#define TR_ABOUT_layer_norm_backward(_)                                                                      \
    _(CUT, cut)                                                                                              \
    _(SHAPE, width)                                                                                          \
    _(READS, x, rows * a->width)                                                                             \
    _(READS, gamma, a->width)                                                                                \
    _(READS, mean, rows)                                                                                     \
    _(READS, inv, rows)                                                                                      \
    _(READS, dy, rows * a->width)                                                                            \
    _(WRITES, dx, rows * a->width)                                                                           \
    _(NODES, dgamma, a->width)                                                                               \
    _(NODES, dbeta, a->width)                                                                                \
    _(OPERATIONS, (a->dx ? 14 : 5) * rows * a->width)

#define TR_ABOUT_rms_norm_forward(_)                                                                         \
    _(SIZE, rows)                                                                                            \
    _(SHAPE, width)                                                                                          \
    _(READS, x, rows * a->width)                                                                             \
    _(READS, gamma, a->width)                                                                                \
    _(WRITES, y, rows * a->width)                                                                            \
    _(KEEPS, inv, rows)                                                                                      \
    _(OPERATIONS, 4 * rows * a->width)

#define TR_ABOUT_rms_norm_backward(_)                                                                        \
    _(CUT, cut)                                                                                              \
    _(SHAPE, width)                                                                                          \
    _(READS, x, rows * a->width)                                                                             \
    _(READS, gamma, a->width)                                                                                \
    _(READS, inv, rows)                                                                                      \
    _(READS, dy, rows * a->width)                                                                            \
    _(WRITES, dx, rows * a->width)                                                                           \
    _(NODES, dgamma, a->width)                                                                               \
    _(OPERATIONS, (a->dx ? 10 : 3) * rows * a->width)

#define TR_ABOUT_batch_norm_forward(_)                                                                       \
    _(CUT, cut)                                                                                              \
    _(SHAPE, spatial)                                                                                        \
    _(SHAPE, channels)                                                                                       \
    _(READS, x, rows * a->spatial * a->channels)                                                             \
    _(READS, gamma, a->channels)                                                                             \
    _(READS, beta, a->channels)                                                                              \
    _(WRITES, y, rows * a->spatial * a->channels)                                                            \
    _(KEEPS, mean, a->cut.count * a->channels)                                                               \
    _(KEEPS, inv, a->cut.count * a->channels)                                                                \
    _(NODES, batch_mean, a->channels)                                                                        \
    _(NODES, batch_var, a->channels)                                                                         \
    _(OPERATIONS, 8 * rows * a->spatial * a->channels)

#define TR_ABOUT_batch_norm_backward(_)                                                                      \
    _(CUT, cut)                                                                                              \
    _(SHAPE, spatial)                                                                                        \
    _(SHAPE, channels)                                                                                       \
    _(READS, x, rows * a->spatial * a->channels)                                                             \
    _(READS, gamma, a->channels)                                                                             \
    _(READS, mean, a->cut.count * a->channels)                                                               \
    _(READS, inv, a->cut.count * a->channels)                                                                \
    _(READS, dy, rows * a->spatial * a->channels)                                                            \
    _(WRITES, dx, rows * a->spatial * a->channels)                                                           \
    _(NODES, dgamma, a->channels)                                                                            \
    _(NODES, dbeta, a->channels)                                                                             \
    _(OPERATIONS, (a->dx ? 10 : 5) * rows * a->spatial * a->channels)

#define TR_ABOUT_batch_norm_infer(_)                                                                         \
    _(SIZE, rows)                                                                                            \
    _(SHAPE, channels)                                                                                       \
    _(READS, x, rows * a->channels)                                                                          \
    _(READS, gamma, a->channels)                                                                             \
    _(READS, beta, a->channels)                                                                              \
    _(READS, mean, a->channels)                                                                              \
    _(READS, var, a->channels)                                                                               \
    _(WRITES, y, rows * a->channels)                                                                         \
    _(OPERATIONS, 4 * rows * a->channels)

#define TR_ABOUT_batch_norm_activation_forward(_)                                                            \
    _(CUT, norm.cut)                                                                                         \
    _(SHAPE, norm.spatial)                                                                                   \
    _(SHAPE, norm.channels)                                                                                  \
    _(READS, norm.x, rows * a->norm.spatial * a->norm.channels)                                              \
    _(READS, norm.gamma, a->norm.channels)                                                                   \
    _(READS, norm.beta, a->norm.channels)                                                                    \
    _(READS, addend, rows * a->norm.spatial * a->norm.channels)                                              \
    _(WRITES, norm.y, rows * a->norm.spatial * a->norm.channels)                                             \
    _(KEEPS, norm.mean, a->norm.cut.count * a->norm.channels)                                                \
    _(KEEPS, norm.inv, a->norm.cut.count * a->norm.channels)                                                 \
    _(NODES, norm.batch_mean, a->norm.channels)                                                              \
    _(NODES, norm.batch_var, a->norm.channels)                                                               \
    _(PART, norm, batch_norm_forward)                                                                        \
    _(OPERATIONS, rows * a->norm.spatial * a->norm.channels * (a->addend ? 2 : 1))

#define TR_ABOUT_batch_norm_activation_backward(_)                                                           \
    _(CUT, norm.cut)                                                                                         \
    _(SHAPE, norm.spatial)                                                                                   \
    _(SHAPE, norm.channels)                                                                                  \
    _(READS, norm.x, rows * a->norm.spatial * a->norm.channels)                                              \
    _(READS, norm.gamma, a->norm.channels)                                                                   \
    _(READS, norm.mean, a->norm.cut.count * a->norm.channels)                                                \
    _(READS, norm.inv, a->norm.cut.count * a->norm.channels)                                                 \
    _(READS, norm.dy, rows * a->norm.spatial * a->norm.channels)                                             \
    _(READS, more, rows * a->norm.spatial * a->norm.channels)                                                \
    _(READS, y, rows * a->norm.spatial * a->norm.channels)                                                   \
    _(READS, beta, a->norm.channels)                                                                         \
    _(WRITES, daddend, rows * a->norm.spatial * a->norm.channels)                                            \
    _(WRITES, norm.dx, rows * a->norm.spatial * a->norm.channels)                                            \
    _(NODES, norm.dgamma, a->norm.channels)                                                                  \
    _(NODES, norm.dbeta, a->norm.channels)                                                                   \
    _(PART, norm, batch_norm_backward)                                                                       \
    _(OPERATIONS, rows * a->norm.spatial * a->norm.channels * (a->more ? 2 : 1))

#endif
