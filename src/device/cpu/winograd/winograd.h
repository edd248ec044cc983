/* The two-dimensional transforms of Winograd convolutions on vectors: those of device/winograd.inc along
 * the height, then along the width, for one tile and all its channels.
 *
 * Shapes are the tile's points along height and width, 4 to 6 each. Numbers at positions are [6][6], of
 * which only those of the tile are read or written.
 */
#ifndef TR_DEVICE_CPU_WINOGRAD_H
#define TR_DEVICE_CPU_WINOGRAD_H

#include "device/cpu/kernels.h"
#include "device/cpu/products/tile.h"
#include "device/winograd.h"

#include <stdbool.h>

/* One for each instruction set. */
#define winograd_input          CPU_KERNEL(winograd_input)
#define winograd_output_adjoint CPU_KERNEL(winograd_output_adjoint)
#define winograd_output         CPU_KERNEL(winograd_output)
#define winograd_input_adjoint  CPU_KERNEL(winograd_input_adjoint)
#define winograd_weights        CPU_KERNEL(winograd_weights)
#define winograd_sums           CPU_KERNEL(winograd_sums)
#define winograd_strip_floats   CPU_KERNEL(winograd_strip_floats)
#define winograd_strip          CPU_KERNEL(winograd_strip)

/* From pixels to positions: `count` floats of each, in whole vectors. Up to VW - 1 floats after them are
   written too. Floats beyond `readable`, >= count, are not read and count as +0. */
struct winograd_read {
    const float *from; /* the tile's first pixel */
    int64_t line, pixel;
    int64_t count, readable;
    float *to;
    const int64_t *offset; /* [36]: position p is at to + offset[p] */
    const float *next;     /* the first of 4x4 pixels to prefetch, or NULL */
    int64_t next_line;
};

/* Inputs to V: reads points_h x points_w pixels, whatever the kernel. */
void winograd_input(int points_h, int points_w, const struct winograd_read *read);
/* Gradients of outputs to Z, for a kernel of taps x taps: reads (points_h + 1 - taps) x (points_w + 1 - taps)
   pixels. */
void winograd_output_adjoint(int taps, int points_h, int points_w, const struct winograd_read *read);

/* The lines of pixels that a line of tiles reads, with zeros outside of the image: the image's own lines,
   and a padded copy for tiles that extend beyond the image. */
struct winograd_strip {
    const float *image;         /* the leftmost pixel that tiles read, which may lie before the image */
    const float *border;        /* the same in the copy */
    const float *next;          /* the same in the image's next line below these */
    int64_t line, border_line;  /* floats between lines */
    int32_t inside, inside_end; /* tiles whose pixels are in [inside, inside_end) need no copy */
};

/* Floats of the copy. */
int64_t winograd_strip_floats(const struct tr_sliding_window *window, int64_t channels);
/* Prepares the strip of tiles `y` along the height; `border` has room for the copy. */
void winograd_strip(const struct tr_sliding_window *window, int64_t channels, const float *image,
                    struct tr_winograd_tile y, float *border, struct winograd_strip *strip);

/* The first pixel of a tile, and the floats between its lines. */
static inline const float *winograd_strip_tile(const struct winograd_strip *strip, struct tr_winograd_tile x,
                                               int64_t channels, int64_t *line)
{
    const bool inside = x.first >= strip->inside && x.first + x.points <= strip->inside_end;
    *line = inside ? strip->line : strip->border_line;
    return (inside ? strip->image : strip->border) + x.first * channels;
}

/* From positions to pixels, for `rows` images or tiles, whose numbers are the rows of a tile of sums. */
struct winograd_write {
    const float *from;          /* position p at from + p * position */
    int64_t position, row;      /* floats between positions, between rows */
    int64_t rows, columns;      /* columns: channels, of which whole vectors are read */
    float *to;                  /* the tile's first pixel in the first image */
    int64_t image, line, pixel; /* floats between images (or tiles), lines, pixels */
};

/* The steps after the output transform. */
struct winograd_finish {
    const float *bias; /* [columns] in whole vectors, or NULL */
    enum tr_activation activation;
    float slope;
};

/* Which pixels of an input tile count, and to which of them earlier tiles have added. */
struct winograd_clip {
    int line, line_end, column, column_end;
    bool added_above, added_left; /* the first `overlap` lines, columns */
    int overlap;                  /* taps - 1 */
};

/* Sums to outputs of a kernel of taps x taps: writes (points_h + 1 - taps) x (points_w + 1 - taps) pixels. */
void winograd_output(int taps, int points_h, int points_w, const struct winograd_write *write,
                     const struct winograd_finish *finish);
/* Sums to gradients of inputs: adds to, or begins, those of points_h x points_w pixels that `clip` keeps. */
void winograd_input_adjoint(int points_h, int points_w, const struct winograd_write *write,
                            const struct winograd_clip *clip);

/* Weights to U: from [taps][taps][depth][TILE_COLUMNS] to [36][.][TILE_COLUMNS], positions `position` floats
   apart. */
void winograd_weights(int taps, const float *from, int64_t depth, float *to, int64_t position);

/* Where sums S become part of the weights' gradient, or one of its nodes. */
struct winograd_leaf {
    int taps;                 /* along an axis; all of a kernel below */
    const float *from;        /* [36][rows][width] */
    int64_t position, width;  /* floats between positions, between rows */
    int64_t rows, columns;    /* columns: number to write */
    float *to;                /* [taps of a kernel][rows] */
    int64_t tap, row;         /* floats between taps, between rows */
    const float *const *left; /* added from the left, in this order; as `to` */
    int lefts;
    int64_t left_tap, left_row;
};

/* to = left[lefts - 1] + (... + (left[0] + weights_adjoint(S))). */
void winograd_sums(const struct winograd_leaf *leaf);

#endif
