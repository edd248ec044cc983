/* Descriptions of operations (device/operation.h): examples that are kept become inputs. */
#ifndef TR_DEVICE_OPS_INPUT_H
#define TR_DEVICE_OPS_INPUT_H

#define TR_ABOUT_gather_rows(_)                                                                              \
    _(SIZE, rows)                                                                                            \
    _(SHAPE, width)                                                                                          \
    _(SHAPE, stride)                                                                                         \
    _(INDEX, index, rows)                                                                                    \
    _(INDEX, start, 1)                                                                                       \
    _(INDEX, offset, rows + 1)                                                                               \
    _(READS_PART, x, tr_gathered_words(a, host))                                                             \
    _(WRITES, y, tr_gathered_words(a, host))                                                                 \
    _(OPERATIONS, 0)

#define TR_ABOUT_load_images(_)                                                                              \
    _(SIZE, rows)                                                                                            \
    _(SHAPE, in_h)                                                                                           \
    _(SHAPE, in_w)                                                                                           \
    _(SHAPE, out_h)                                                                                          \
    _(SHAPE, out_w)                                                                                          \
    _(SHAPE, channels)                                                                                       \
    _(SHAPE, pad)                                                                                            \
    _(READS_PART, source, rows * a->out_h * a->out_w * a->channels)                                          \
    _(INDEX, index, rows)                                                                                    \
    _(READS, scalars, 1)                                                                                     \
    _(WRITES, y, rows * a->out_h * a->out_w * a->channels)                                                   \
    _(OPERATIONS, 2 * rows * a->out_h * a->out_w * a->channels)

#endif
