/* Descriptions of operations (device/operation.h): recurrent layers. */
#ifndef TR_DEVICE_OPS_RECURRENT_H
#define TR_DEVICE_OPS_RECURRENT_H

#define TR_ABOUT_lstm_forward(_)                                                                             \
    _(SIZE, examples)                                                                                        \
    _(SHAPE, hidden)                                                                                         \
    _(OFFSET, offset)                                                                                        \
    _(REPLACES, gates, rows * 4 * a->hidden)                                                                 \
    _(READS, w, 4 * a->hidden * a->hidden)                                                                   \
    _(READS, b, 4 * a->hidden)                                                                               \
    _(READS, h_before, a->examples * a->hidden)                                                              \
    _(READS, c_before, a->examples * a->hidden)                                                              \
    _(WRITES, h, rows * a->hidden)                                                                           \
    _(WRITES, c, rows * a->hidden)                                                                           \
    _(OPERATIONS, rows * a->hidden * (8 * a->hidden + 12))

#define TR_ABOUT_lstm_backward(_)                                                                            \
    _(SIZE, examples)                                                                                        \
    _(SHAPE, hidden)                                                                                         \
    _(OFFSET, offset)                                                                                        \
    _(READS, w, 4 * a->hidden * a->hidden)                                                                   \
    _(READS, gates, rows * 4 * a->hidden)                                                                    \
    _(READS, c, rows * a->hidden)                                                                            \
    _(READS, dy, rows * a->hidden)                                                                           \
    _(WRITES, dgates, rows * 4 * a->hidden)                                                                  \
    _(OPERATIONS, rows * a->hidden * (8 * a->hidden + 24))

#define TR_ABOUT_lstm_backward_weights(_)                                                                    \
    _(SIZE, examples)                                                                                        \
    _(CUT, cut)                                                                                              \
    _(SHAPE, hidden)                                                                                         \
    _(OFFSET, offset)                                                                                        \
    _(READS, h, rows * a->hidden)                                                                            \
    _(READS, dgates, rows * 4 * a->hidden)                                                                   \
    _(NODES, dw, 4 * a->hidden * a->hidden)                                                                  \
    _(OPERATIONS, 8 * rows * a->hidden * a->hidden)

#define TR_ABOUT_gru_forward(_)                                                                              \
    _(SIZE, examples)                                                                                        \
    _(SHAPE, hidden)                                                                                         \
    _(OFFSET, offset)                                                                                        \
    _(REPLACES, gates, rows * 3 * a->hidden)                                                                 \
    _(READS, w, 3 * a->hidden * a->hidden)                                                                   \
    _(READS, b, 3 * a->hidden)                                                                               \
    _(READS, b_hidden, 3 * a->hidden)                                                                        \
    _(WRITES, h, rows * a->hidden)                                                                           \
    _(WRITES, inner, rows * a->hidden)                                                                       \
    _(OPERATIONS, rows * a->hidden * (6 * a->hidden + 15))

#define TR_ABOUT_gru_backward(_)                                                                             \
    _(SIZE, examples)                                                                                        \
    _(SHAPE, hidden)                                                                                         \
    _(OFFSET, offset)                                                                                        \
    _(READS, w, 3 * a->hidden * a->hidden)                                                                   \
    _(READS, gates, rows * 3 * a->hidden)                                                                    \
    _(READS, inner, rows * a->hidden)                                                                        \
    _(READS, h, rows * a->hidden)                                                                            \
    _(READS, dy, rows * a->hidden)                                                                           \
    _(WRITES, dgates, rows * 3 * a->hidden)                                                                  \
    _(WRITES, dhidden, rows * 3 * a->hidden)                                                                 \
    _(OPERATIONS, rows * a->hidden * (6 * a->hidden + 20))

#define TR_ABOUT_gru_backward_weights(_)                                                                     \
    _(SIZE, examples)                                                                                        \
    _(CUT, cut)                                                                                              \
    _(SHAPE, hidden)                                                                                         \
    _(OFFSET, offset)                                                                                        \
    _(READS, h, rows * a->hidden)                                                                            \
    _(READS, dhidden, rows * 3 * a->hidden)                                                                  \
    _(NODES, dw, 3 * a->hidden * a->hidden)                                                                  \
    _(OPERATIONS, 6 * rows * a->hidden * a->hidden)

#endif
