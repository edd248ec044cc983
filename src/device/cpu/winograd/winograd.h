/* The two-dimensional transforms of Winograd convolutions on vectors: of device/winograd.inc along the
 * height, then along the width, for one tile and as many channels as there are.
 *
 * Shapes are the tile's points along height and width, 4 to 6 each. Numbers at positions are [6][6], of which
 * only those that the tile has are read or written.
 */
#ifndef TR_DEVICE_CPU_WINOGRAD_H
#define TR_DEVICE_CPU_WINOGRAD_H

#include "device/cpu/kernels.h"
#include "device/cpu/products/tile.h"
#include "device/winograd.h"

#include <stdbool.h>

/* Every instruction set has its own. */
#define winograd_input          CPU_KERNEL(winograd_input)
#define winograd_output_adjoint CPU_KERNEL(winograd_output_adjoint)
#define winograd_output         CPU_KERNEL(winograd_output)
#define winograd_input_adjoint  CPU_KERNEL(winograd_input_adjoint)
#define winograd_weights        CPU_KERNEL(winograd_weights)
#define winograd_sums           CPU_KERNEL(winograd_sums)
#define winograd_strip_floats   CPU_KERNEL(winograd_strip_floats)
#define winograd_strip          CPU_KERNEL(winograd_strip)

/* From pixels to positions: `count` floats of each, in whole vectors. Up to VW - 1 floats after them are
   written too; what is read beyond `readable`, >= count, is +0 instead. */
struct winograd_read {
    const float *from; /* the tile's first pixel */
    int64_t line, pixel;
    int64_t count, readable;
    float *to;
    const int64_t *offset; /* [36]: position p is at to + offset[p] */
    const float *next;     /* the first of 4x4 pixels to fetch meanwhile, or NULL */
    int64_t next_line;
};

/* Inputs to V: reads points_h x points_w pixels. */
void winograd_input(int points_h, int points_w, const struct winograd_read *read);
/* Gradients of outputs to Z: reads (points_h - 2) x (points_w - 2) pixels. */
void winograd_output_adjoint(int points_h, int points_w, const struct winograd_read *read);

/* The lines of pixels that a line of tiles reads, with zeros where it reaches beyond the image: the image's
   own, and a copy with zeros around it for tiles that reach beyond it. */
struct winograd_strip {
    const float *image;  /* the pixel at the left end of what tiles read, which may lie before the image */
    const float *border; /* the same in the copy */
    const float *next;   /* the same in the line of the image below all of these */
    int64_t line, border_line;  /* floats between lines */
    int32_t inside, inside_end; /* tiles whose pixels are in [inside, inside_end) need no copy */
};

/* Floats that the copy takes. */
int64_t winograd_strip_floats(const struct tr_sliding_window *window, int64_t channels);
/* Makes the strip of tiles `y` along the height; `border` has room for the copy. */
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

/* From positions to pixels, for `rows` images, or tiles, whose numbers lie row by row in a tile of sums. */
struct winograd_write {
    const float *from;          /* position p at from + p * position */
    int64_t position, row;      /* floats between positions, between rows */
    int64_t rows, columns;      /* columns: channels, of which whole vectors are read */
    float *to;                  /* the tile's first pixel in the first image */
    int64_t image, line, pixel; /* floats between images (or tiles), lines, pixels */
};

/* What follows the output transform. */
struct winograd_finish {
    const float *bias; /* [columns] in whole vectors, or NULL */
    enum tr_activation activation;
    float slope;
};

/* Which pixels of an input tile count, and to which of them earlier tiles have given their part. */
struct winograd_clip {
    int line, line_end, column, column_end;
    bool added_above, added_left; /* the first two lines, the first two columns */
};

/* Sums to outputs: writes (points_h - 2) x (points_w - 2) pixels. */
void winograd_output(int points_h, int points_w, const struct winograd_write *write,
                     const struct winograd_finish *finish);
/* Sums to gradients of inputs: adds to, or begins, those of points_h x points_w pixels that `clip` leaves. */
void winograd_input_adjoint(int points_h, int points_w, const struct winograd_write *write,
                            const struct winograd_clip *clip);

/* Weights to U: from [9][depth][TILE_COLUMNS] to [36][.][TILE_COLUMNS], positions `position` floats apart. */
void winograd_weights(const float *from, int64_t depth, float *to, int64_t position);

/* Where sums S become a part of the weights' gradient, or a node of it. */
struct winograd_leaf {
    const float *from;        /* [36][rows][width] */
    int64_t position, width;  /* floats between positions, between rows */
    int64_t rows, columns;    /* columns: those that are written */
    float *to;                /* [9][rows] */
    int64_t tap, row;         /* floats between taps, between rows */
    const float *const *left; /* added from the left, in this order; [9][rows][.] */
    int lefts;
    int64_t left_tap, left_row;
};

/* to = left[lefts - 1] + (... + (left[0] + weights_adjoint(S))). */
void winograd_sums(const struct winograd_leaf *leaf);

#endif
