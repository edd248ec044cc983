/* Operations: examples that are kept become inputs. */
#ifndef TR_DEVICE_OPS_INPUT_H
#define TR_DEVICE_OPS_INPUT_H

#include "device/ops/common.h"

/* Gathers rows of words of 32 bits, whatever they mean: row r of y is row index[r] of x. Rows have `width`
   words and begin `stride` words apart in x. With `start`, where lengths differ, row i of x has the words
   from start[i] on, and row r of y, as long as that of x, the words [offset[r], offset[r + 1]); width and
   stride are not read. */
struct tr_op_gather_rows {
    int64_t rows, width, stride;
    const int64_t *index;  /* [rows] */
    const int64_t *start;  /* NULL: all rows are of one length */
    const int32_t *offset; /* [rows + 1], ascending; NULL without start */
    const int32_t *x;
    int32_t *y;
};
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

/* Gathers images stored as bytes. Output pixel (i, j, ch) of row r takes source pixel (i + top, j + left) of
   image index[r], columns mirrored within the output when flipped; outside the source the byte is 0. value =
   fma((float)byte, scale[ch], shift[ch]) (ch % 4). `random` draws per example from philox(key; example, step,
   0, 0): top = word0 % (in_h + 2 pad - out_h + 1) - pad, left likewise from word1, flip = word2 & 1 if
   `flip`; in_h + 2 pad >= out_h, and so for the width. Without it: top = (in_h - out_h) / 2, left alike, as C
   divides, no flip, and scalars is not read. */
struct tr_op_load_images {
    int64_t rows;
    int32_t in_h, in_w, out_h, out_w, channels, pad;
    bool random, flip;
    float scale[4], shift[4];
    uint32_t key[2];
    uint32_t first_example;
    const uint8_t *source; /* [images][in_h][in_w][channels] */
    const int64_t *index;  /* [rows] */
    float *y;              /* [rows][out_h][out_w][channels] */
    const struct tr_step_scalars *scalars;
};
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

/* Gathers labels of pixels, so that they lie over the images that load_images gathers with the same view:
   label (i, j) of row r is that of pixel (i + top, j + left) of image index[r] (NULL: r), mirrored as there,
   and -1 outside the image. */
struct tr_op_load_labels {
    int64_t rows;
    int32_t in_h, in_w, out_h, out_w, pad;
    bool random, flip;
    uint32_t key[2];
    uint32_t first_example;
    const int32_t *source; /* [images][in_h][in_w] */
    const int64_t *index;  /* [rows] or NULL */
    int32_t *y;            /* [rows][out_h][out_w] */
    const struct tr_step_scalars *scalars;
};
#define TR_ABOUT_load_labels(_)                                                                              \
    _(SIZE, rows)                                                                                            \
    _(SHAPE, in_h)                                                                                           \
    _(SHAPE, in_w)                                                                                           \
    _(SHAPE, out_h)                                                                                          \
    _(SHAPE, out_w)                                                                                          \
    _(SHAPE, pad)                                                                                            \
    _(READS_PART, source, rows * a->out_h * a->out_w)                                                        \
    _(INDEX, index, rows)                                                                                    \
    _(READS, scalars, 1)                                                                                     \
    _(WRITES, y, rows * a->out_h * a->out_w)                                                                 \
    _(OPERATIONS, 0)

#endif
