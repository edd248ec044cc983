/* Descriptions of operations (device/operation.h): embeddings and rows of sequences. */
#ifndef TR_DEVICE_OPS_SEQUENCE_H
#define TR_DEVICE_OPS_SEQUENCE_H

#define TR_ABOUT_embedding_forward(_)                                                                        \
    _(SIZE, rows)                                                                                            \
    _(SHAPE, vocabulary)                                                                                     \
    _(SHAPE, width)                                                                                          \
    _(READS, token, rows)                                                                                    \
    _(READS_PART, table, tr_fewer(rows, a->vocabulary) * a->width)                                           \
    _(WRITES, y, rows * a->width)                                                                            \
    _(OPERATIONS, 0)

#define TR_ABOUT_embedding_backward(_)                                                                       \
    _(CUT, cut)                                                                                              \
    _(SHAPE, vocabulary)                                                                                     \
    _(SHAPE, width)                                                                                          \
    _(READS, token, rows)                                                                                    \
    _(READS, dy, rows * a->width)                                                                            \
    _(NODES, dtable, a->vocabulary * a->width)                                                               \
    _(WORKSPACE, workspace, a->vocabulary + 1 + rows)                                                        \
    _(OPERATIONS, rows * a->width)

#define TR_ABOUT_sequence_last_forward(_)                                                                    \
    _(SIZE, examples)                                                                                        \
    _(SHAPE, width)                                                                                          \
    _(OFFSET, offset)                                                                                        \
    _(READS_PART, x, tr_fewer(rows, a->examples) * a->width)                                                 \
    _(WRITES, y, a->examples * a->width)                                                                     \
    _(OPERATIONS, 0)

#define TR_ABOUT_sequence_last_backward(_)                                                                   \
    _(SIZE, examples)                                                                                        \
    _(SHAPE, width)                                                                                          \
    _(OFFSET, offset)                                                                                        \
    _(READS, dy, a->examples * a->width)                                                                     \
    _(WRITES, dx, rows * a->width)                                                                           \
    _(OPERATIONS, 0)

#define TR_ABOUT_sequence_unfold(_)                                                                          \
    _(SIZE, examples)                                                                                        \
    _(SHAPE, width)                                                                                          \
    _(SHAPE, taps)                                                                                           \
    _(SHAPE, before)                                                                                         \
    _(OFFSET, offset)                                                                                        \
    _(READS, x, rows * a->width)                                                                             \
    _(WRITES, y, rows * a->taps * a->width)                                                                  \
    _(OPERATIONS, 0)

#define TR_ABOUT_sequence_fold(_)                                                                            \
    _(SIZE, examples)                                                                                        \
    _(SHAPE, width)                                                                                          \
    _(SHAPE, taps)                                                                                           \
    _(SHAPE, before)                                                                                         \
    _(OFFSET, offset)                                                                                        \
    _(READS, dy, rows * a->taps * a->width)                                                                  \
    _(WRITES, dx, rows * a->width)                                                                           \
    _(OPERATIONS, rows * a->taps * a->width)

#define TR_ABOUT_sequence_copy(_)                                                                            \
    _(SIZE, examples)                                                                                        \
    _(SHAPE, width)                                                                                          \
    _(SHAPE, x_step)                                                                                         \
    _(SHAPE, y_step)                                                                                         \
    _(OFFSET, offset)                                                                                        \
    _(READS_PART, x, rows * a->width)                                                                        \
    _(WRITES_PART, y, rows * a->width)                                                                       \
    _(OPERATIONS, 0)

#endif
