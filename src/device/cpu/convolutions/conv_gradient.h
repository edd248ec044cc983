/* The state of a convolution's weight gradient: conv_gradient.c computes it, conv_block.c packs its operands,
 * conv_segments.c lists what its tiles read.
 */
#ifndef TR_DEVICE_CPU_CONV_GRADIENT_H
#define TR_DEVICE_CPU_CONV_GRADIENT_H

#include "device/cpu/cpu.h"
#include "device/cpu/products/pack.h"
#include "device/cpu/products/tile.h"
#include "device/cpu/sizes.h"
#include "device/cpu/subtrees.h"
#include "device/cpu/vectors/ahead.h"

#include <stdbool.h>

/* One for each instruction set. */
#define conv_portion_at    CPU_KERNEL(conv_portion_at)
#define conv_list_segments CPU_KERNEL(conv_list_segments)
#define conv_pack_block    CPU_KERNEL(conv_pack_block)
#define conv_look_ahead    CPU_KERNEL(conv_look_ahead)

struct conv_gradient {
    struct cpu_device *cpu;
    const struct tr_op_conv_backward_weights *op;
    const struct tr_op_pool_backward *unpool; /* computes dy line by line, or NULL */
    bool direct;                              /* dy is read in place, since few tiles use it */
    bool by_row;                              /* tiles are parts of kernel rows, read from the image */
    bool in_place;                            /* x is read in place, since its pixels are dense */
    int64_t parts;                            /* of a kernel row, if by_row; then the taps are these */
    int64_t groups, taps, panels;
    int64_t lines;            /* output lines in a block */
    int64_t positions;        /* packed source pixels of a block, at most */
    int64_t list;             /* segments of a block and tap, at most */
    int64_t slots, chunk;     /* slots, and tiles that process all blocks together */
    int64_t tile_step;        /* floats between the first slots of these tiles; 0: they share their slots */
    int64_t slot_step;        /* floats between the slots of a tile */
    struct subtrees subtrees; /* members that divide microbatches and not tiles */
    /* Parts of a member's scratch, in bytes. */
    size_t b_at, waiting_at, bias_at, segments_at, starts_at, line_at;
};

/* A member's memory and the block in it. */
struct conv_block {
    float *a, *b, *waiting;
    float *bias;                   /* [slots][panels][TILE_COLUMNS], sums of dy that wait */
    struct tile_segment *segments; /* [taps][list] */
    int32_t *starts;               /* [taps][lines + 1], set where a portion begins and at the end */
    float *pixels;                 /* a line of dy */
    int64_t line, lines;           /* the block's output lines, counted over all images */
    int64_t panel, panels;         /* the panels that are packed */
    int64_t group, groups;
};

/* The part of a block that lies in one image. */
struct conv_portion {
    int64_t image, oh, oh_end; /* output lines */
    int64_t ih, ih_end;        /* source lines that they read */
};

/* Most inputs of a kernel row that by_row supports: bits of a segment's rows. */
#define ROW_INPUTS 31

/* The inputs [first, first + count) of a kernel row. */
struct conv_row_part {
    int64_t first, count;
};

/* Those of part `tap` of all kernel rows, if by_row. */
static inline struct conv_row_part conv_row_part(const struct conv_gradient *g, int64_t tap)
{
    const int64_t inputs = g->op->window.kernel_w * g->op->in_c, part = tap % g->parts;
    const int64_t first = tile_first(inputs, g->parts, part);
    return (struct conv_row_part){first, tile_first(inputs, g->parts, part + 1) - first};
}

/* The portion that begins with output line `line`, counted over all images, of a block that ends at `end`. */
struct conv_portion conv_portion_at(const struct tr_sliding_window *w, int64_t line, int64_t end);

/* With strides, a tap reads every stride-th pixel of every stride-th line. A portion is packed in planes, one
   for each remainder of line and column, so that a tap's pixels are neighbours, from line to line where it
   reads whole lines of its plane. Planes go by line, then by column, each with PACK_SLACK pixels after it. */
struct conv_plane {
    int64_t at;      /* its first pixel, counted from the portion's */
    int64_t columns; /* of a line */
};

/* Pixels that a portion of so many source lines takes. */
static inline int64_t conv_planes_pixels(const struct tr_sliding_window *w, int64_t lines)
{
    return lines * w->in_w + (int64_t)(w->stride_h * w->stride_w - 1) * PACK_SLACK;
}

/* The plane of source line `line` of the portion and of source column `column`. */
static inline struct conv_plane conv_plane_of(const struct tr_sliding_window *w, const struct conv_portion *p,
                                              int64_t line, int64_t column)
{
    const int64_t lines = p->ih_end - p->ih, q = line % w->stride_h, r = column % w->stride_w;
    const int64_t lines_before = q * (lines / w->stride_h) + smaller(q, lines % w->stride_h);
    const int64_t columns_before = r * (w->in_w / w->stride_w) + smaller(r, w->in_w % w->stride_w);
    const int64_t plane_lines = divide_up(lines - q, w->stride_h);
    return (struct conv_plane){.at = lines_before * w->in_w + plane_lines * columns_before +
                                     (q * w->stride_w + r) * PACK_SLACK,
                               .columns = divide_up(w->in_w - r, w->stride_w)};
}

/* Packs x for the groups and dy for the panels that the member needs. */
void conv_pack_block(const struct conv_gradient *g, const struct conv_block *block);

/* Prepares to prefetch what the next block reads, in `calls` calls of ahead_fetch() for each of the two. */
void conv_look_ahead(const struct conv_gradient *g, const struct conv_block *block, int64_t calls,
                     struct ahead *x, struct ahead *dy);

/* Lists the segments of every tap and line of the block. */
void conv_list_segments(const struct conv_gradient *g, const struct conv_block *block);

#endif
