/* The state of a direct convolution: conv.c has tiles of images, and conv_pixels.c tiles of one image's
 * pixels, for fewer images than fill a tile.
 */
#ifndef TR_DEVICE_CPU_CONV_H
#define TR_DEVICE_CPU_CONV_H

#include "device/cpu/conv_axis.h"
#include "device/cpu/conv_call.h"
#include "device/cpu/convolutions/pool.h"
#include "device/cpu/products/pack.h"
#include "device/cpu/products/tile.h"
#include "device/cpu/sizes.h"

/* One for each instruction set. */
#define conv_image CPU_KERNEL(conv_image)

struct conv {
    struct conv_call call;
    /* Images in memory, and the steps between the lines and pixels that are sources: 1, except where a
       kernel of one tap has strides. */
    int32_t image_h, image_w, every_h, every_w;
    int32_t alike; /* target pixels of a row that are so far apart meet the same taps, but at its ends */
    const struct tr_op_pool_forward *pool;    /* forward: the pool after it, or NULL */
    const struct tr_op_pool_backward *unpool; /* backward: the pool that gives the source, or NULL */
    int32_t unit;                             /* target rows that are computed together */
    int line_parts;                           /* runs of lines of the team's grid */
    struct conv_axis h, w;
    /* Parts of the shared scratch. */
    float *packed;      /* [panel][kernel_h][kernel_w][source_c][TILE_COLUMNS], taps in the walk's order */
    float *packed_bias; /* [panel][TILE_COLUMNS] or NULL */
    int64_t panel;      /* floats in a panel of packed weights */
    int64_t band_rows;  /* source rows that a member's scratch holds */
    /* Offsets in it, in bytes, of the list of segments and of the lines of images. */
    int64_t member_segments, member_lines;
};

/* A member's scratch, and the target columns that it computes. */
struct conv_memory {
    float *a;
    struct tile_segment *segments;
    float *lines;
    int64_t column, column_end;
};

/* The part of a tile that all tiles of a panel share. */
static inline struct tile conv_panel(const struct conv *c, int64_t column,
                                     const struct tile_segment *segments)
{
    return (struct tile){.segments = segments,
                         .b = c->packed + column / TILE_COLUMNS * c->panel,
                         .b_step = TILE_COLUMNS,
                         .b_unit = TILE_COLUMNS,
                         .columns = smaller(TILE_COLUMNS, c->call.target_c - column),
                         .bias = c->packed_bias ? c->packed_bias + column : NULL,
                         .activation = c->call.activation,
                         .slope = c->call.slope};
}

/* Target rows [begin, end) of one image. */
void conv_image(const struct conv *c, int64_t image, int32_t begin, int32_t end,
                const struct conv_memory *memory);

#endif
