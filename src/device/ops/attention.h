/* Descriptions of operations (device/operation.h): attention and positions. */
#ifndef TR_DEVICE_OPS_ATTENTION_H
#define TR_DEVICE_OPS_ATTENTION_H

#define TR_ABOUT_attention_forward(_)                                                                        \
    _(SIZE, at.examples)                                                                                     \
    _(SHAPE, at.heads)                                                                                       \
    _(SHAPE, at.size)                                                                                        \
    _(OFFSET, at.offset)                                                                                     \
    _(READS_PART, at.q, rows * a->at.heads * a->at.size)                                                     \
    _(READS_PART, at.k, tr_attention_keys(&a->at, host) * a->at.heads * a->at.size)                          \
    _(READS_PART, at.v, tr_attention_keys(&a->at, host) * a->at.heads * a->at.size)                          \
    _(INDEX, at.key_offset, a->at.examples + 1)                                                              \
    _(READS, at.scalars, 1)                                                                                  \
    _(WRITES, y, rows * a->at.heads * a->at.size)                                                            \
    _(WRITES, at.shift, rows * a->at.heads)                                                                  \
    _(KEEPS, at.inv, rows * a->at.heads)                                                                     \
    _(OPERATIONS, tr_attention_pairs(&a->at, host) * a->at.heads * (4 * a->at.size + 4))

#define TR_ABOUT_attention_backward(_)                                                                       \
    _(SIZE, at.examples)                                                                                     \
    _(SHAPE, at.heads)                                                                                       \
    _(SHAPE, at.size)                                                                                        \
    _(OFFSET, at.offset)                                                                                     \
    _(READS_PART, at.q, rows * a->at.heads * a->at.size)                                                     \
    _(READS_PART, at.k, rows * a->at.heads * a->at.size)                                                     \
    _(READS_PART, at.v, rows * a->at.heads * a->at.size)                                                     \
    _(READS, at.shift, rows * a->at.heads)                                                                   \
    _(READS, at.inv, rows * a->at.heads)                                                                     \
    _(READS, y, rows * a->at.heads * a->at.size)                                                             \
    _(READS, dy, rows * a->at.heads * a->at.size)                                                            \
    _(INDEX, at.key_offset, a->at.examples + 1)                                                              \
    _(READS, at.scalars, 1)                                                                                  \
    _(WRITES_PART, dq, rows * a->at.heads * a->at.size)                                                      \
    _(WRITES_PART, dk, rows * a->at.heads * a->at.size)                                                      \
    _(WRITES_PART, dv, rows * a->at.heads * a->at.size)                                                      \
    _(OPERATIONS, tr_attention_pairs(&a->at, host) * a->at.heads * (10 * a->at.size + 6))

#define TR_ABOUT_position_forward(_)                                                                         \
    _(SIZE, examples)                                                                                        \
    _(SHAPE, width)                                                                                          \
    _(SHAPE, length)                                                                                         \
    _(OFFSET, offset)                                                                                        \
    _(READS_PART, table, tr_fewer(rows, a->length) * a->width)                                               \
    _(READS, x, rows * a->width)                                                                             \
    _(WRITES, y, rows * a->width)                                                                            \
    _(OPERATIONS, rows * a->width)

#define TR_ABOUT_position_backward(_)                                                                        \
    _(CUT, cut)                                                                                              \
    _(SHAPE, width)                                                                                          \
    _(SHAPE, length)                                                                                         \
    _(OFFSET, offset)                                                                                        \
    _(READS, dy, rows * a->width)                                                                            \
    _(NODES, dtable, a->length * a->width)                                                                   \
    _(OPERATIONS, rows * a->width)

#define TR_ABOUT_rotary(_)                                                                                   \
    _(SIZE, examples)                                                                                        \
    _(SHAPE, heads)                                                                                          \
    _(SHAPE, size)                                                                                           \
    _(SHAPE, step)                                                                                           \
    _(OFFSET, offset)                                                                                        \
    _(UPDATES_PART, x, rows * a->heads * a->size)                                                            \
    _(OPERATIONS, 3 * rows * a->heads * a->size)

#endif
