/* Operations: examples in device memory become inputs. */
#ifndef TR_DEVICE_OPS_INPUT_H
#define TR_DEVICE_OPS_INPUT_H

#include "device/ops/common.h"

/* Gathers rows of 32-bit words of any type: row r of y is row index[r] of x. Rows have `width` words and
   begin `stride` words apart in x. `start` is for rows of different lengths: row i of x has the words from
   start[i] on, and row r of y, as long as its row of x, the words [offset[r], offset[r + 1]); width and
   stride are then not read. */
struct tr_op_gather_rows {
    int64_t rows, width, stride;
    const int64_t *index;  /* [rows] */
    const int64_t *start;  /* NULL: all rows have the same length */
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

/* Gathers labels of pixels to match the images that load_images gathers with the same view: label (i, j)
   of row r is that of pixel (i + top, j + left) of image index[r] (NULL: r), mirrored as there, and -1
   outside the image. */
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

/* How a row of augment_images shows its image. Pixel (i, j) of the row samples the place (v, u) of the
   image, in integral 1/65536 pixels: v = down + i * down_i + j * down_j, u = right + i * right_i + j *
   right_j. */
struct tr_image_view {
    int64_t down, right;
    int32_t down_i, down_j, right_i, right_j;
    float brightness, contrast, saturation; /* factors; 1: no change */
    int32_t top, left, height, width;       /* the pixels of the row that are erased; height 0: none */
    int32_t unused;                         /* 0 */
};

/* Gathers images with a view for each row: of bytes or, with `numbers`, of floats. For pixel (i, j),
   channel ch of row r and its view:
   - Interpolation, with h = floor(v / 65536), w = floor(u / 65536), fv and fu the rest over 65536, p(h, w)
   the value of image index[r], 0 outside it: above = fma(fu, p(h, w+1) - p(h, w), p(h, w)), below the same of
   row h + 1, x = fma(fv, below - above, above).
   - With `tint`, x - least; then each of these steps, clamped to 0 and size = most - least: x * brightness;
   fma(contrast, x - size / 2, size / 2); for 3 channels after these steps, fma(saturation, x - grey, grey),
   grey = fma(0.114f, x2, fma(0.587f, x1, 0.299f * x0)); then x + least.
   - `erased` where the row is erased.
   - y = fma(x, scale[ch], shift[ch]) (ch % 4). */
struct tr_op_augment_images {
    int64_t rows;
    int32_t in_h, in_w, out_h, out_w, channels;
    bool tint;
    float least, most, erased, scale[4], shift[4];
    const uint8_t *source;            /* [images][in_h][in_w][channels], or NULL */
    const float *numbers;             /* the same as floats, or NULL */
    const int64_t *index;             /* [rows] */
    const struct tr_image_view *view; /* [rows] */
    float *y;                         /* [rows][out_h][out_w][channels] */
};
#define TR_ABOUT_augment_images(_)                                                                           \
    _(SIZE, rows)                                                                                            \
    _(SHAPE, in_h)                                                                                           \
    _(SHAPE, in_w)                                                                                           \
    _(SHAPE, out_h)                                                                                          \
    _(SHAPE, out_w)                                                                                          \
    _(SHAPE, channels)                                                                                       \
    _(READS_PART, source, rows * a->out_h * a->out_w * a->channels)                                          \
    _(READS_PART, numbers, rows * a->out_h * a->out_w * a->channels)                                         \
    _(INDEX, index, rows)                                                                                    \
    _(INDEX, view, rows)                                                                                     \
    _(WRITES, y, rows * a->out_h * a->out_w * a->channels)                                                   \
    _(OPERATIONS, 20 * rows * a->out_h * a->out_w * a->channels)

/* Gathers labels of pixels to match the images that augment_images gathers with the same views: label (i,
   j) of row r is that of pixel (floor((v + 32768) / 65536), floor((u + 32768) / 65536)) of image index[r]
   (NULL: r), and -1 outside the image. Erased pixels keep their labels. */
struct tr_op_augment_labels {
    int64_t rows;
    int32_t in_h, in_w, out_h, out_w;
    const int32_t *source;            /* [images][in_h][in_w] */
    const int64_t *index;             /* [rows] or NULL */
    const struct tr_image_view *view; /* [rows] */
    int32_t *y;                       /* [rows][out_h][out_w] */
};
#define TR_ABOUT_augment_labels(_)                                                                           \
    _(SIZE, rows)                                                                                            \
    _(SHAPE, in_h)                                                                                           \
    _(SHAPE, in_w)                                                                                           \
    _(SHAPE, out_h)                                                                                          \
    _(SHAPE, out_w)                                                                                          \
    _(READS_PART, source, rows * a->out_h * a->out_w)                                                        \
    _(INDEX, index, rows)                                                                                    \
    _(INDEX, view, rows)                                                                                     \
    _(WRITES, y, rows * a->out_h * a->out_w)                                                                 \
    _(OPERATIONS, 0)

/* How mix_images makes a row from two. */
struct tr_image_mix {
    float share;                      /* weight of the first image outside of the box; 1: unchanged */
    int32_t top, left, height, width; /* the box, with pixels of the second image; height 0: none */
};

/* Mixes two images in each row: a pixel of row r is that of z within the box; elsewhere that of x where
   share is 1, else fma(share, x - z, z). */
struct tr_op_mix_images {
    int64_t rows;
    int32_t height, width, channels;
    const float *x, *z;             /* [rows][height][width][channels] */
    const struct tr_image_mix *mix; /* [rows] */
    float *y;                       /* [rows][height][width][channels]; may be x */
};
#define TR_ABOUT_mix_images(_)                                                                               \
    _(SIZE, rows)                                                                                            \
    _(SHAPE, height)                                                                                         \
    _(SHAPE, width)                                                                                          \
    _(SHAPE, channels)                                                                                       \
    _(READS, x, rows * a->height * a->width * a->channels)                                                   \
    _(READS, z, rows * a->height * a->width * a->channels)                                                   \
    _(INDEX, mix, rows)                                                                                      \
    _(WRITES, y, rows * a->height * a->width * a->channels)                                                  \
    _(OPERATIONS, 3 * rows * a->height * a->width * a->channels)

#endif
