/* Winograd convolutions, forward and input gradient: shared by the two walks. Tiles of sums hold images in
 * winograd.c and, for few channels, Winograd tiles in few.c.
 */
#ifndef TR_DEVICE_CPU_WINOGRAD_WALK_H
#define TR_DEVICE_CPU_WINOGRAD_WALK_H

#include "device/cpu/conv_call.h"
#include "device/cpu/winograd/winograd.h"

/* One for each instruction set. */
#define winograd_few          CPU_KERNEL(winograd_few)
#define winograd_few_gradient CPU_KERNEL(winograd_few_gradient)
#define winograd_walk_shape   CPU_KERNEL(winograd_walk_shape)
#define winograd_walk_weights CPU_KERNEL(winograd_walk_weights)

/* Most source channels for winograd_few(). */
#define WINOGRAD_FEW 64

struct walk {
    struct conv_call call;
    int32_t taps, outputs, overlap; /* along an axis: of the kernel, of a whole tile, of neighbouring tiles'
                                       inputs */
    int32_t tiles_h, tiles_w;
    int32_t band_h, band_w;      /* most tiles of a band */
    int64_t columns;             /* columns of a tile of sums: all, or half of them where target_c is not
                                    larger */
    int64_t panel_begin, panels; /* panels whose weights are transformed */
    int line_parts;              /* runs of lines of the team's grid, for winograd.c */
    /* Parts of the shared scratch. */
    float *u;           /* [panels][POSITIONS][source_c][TILE_COLUMNS], positions u_position apart */
    int64_t u_position; /* floats; not a power of two, which would map all positions to one cache set */
    float *packed_bias; /* [all panels][TILE_COLUMNS] or NULL */
    /* Offsets in a member's scratch, in floats. */
    int64_t v_at, sums_at;
};

/* Lines of tiles above one to which it has lines of the input in common. */
static inline int32_t walk_lines_above(const struct walk *c)
{
    return (c->overlap + c->outputs - 1) / c->outputs;
}

/* Whether winograd_few() supports a convolution whose sizes are set. */
static inline bool winograd_few_suits(const struct walk *c)
{
    return c->call.source_c <= WINOGRAD_FEW && c->call.window->out_h % c->outputs == 0 &&
           c->call.window->out_w % c->outputs == 0;
}

/* Lays out a member's scratch for winograd_few(), and returns its size in floats. */
int64_t CPU_KERNEL(winograd_few_plan)(struct walk *c);

/* Computes a member's chunk, after the weights are transformed; the arguments are a struct walk. */
void winograd_few(void *arguments, int member, int size);

/* Transformed gradients of outputs that another function computed and used: of `lines` lines of tiles,
   counted over all images, from `line` on. */
struct winograd_lines {
    const float *z;        /* [panel of the source][POSITIONS][line, tile][row] */
    int64_t position, row; /* floats between positions, between tiles */
    int64_t run, panel;    /* channels in a panel, floats between panels */
    int64_t line, lines;
    float *sums; /* room for winograd_few_sums() */
};

/* Floats of sums for winograd_few_gradient(); sets the lines of a band. */
int64_t CPU_KERNEL(winograd_few_sums)(struct walk *c);

/* Adds these lines to the gradients of the inputs, after the weights of all panels are transformed. Lines
   of an image come in ascending order, from one member. */
void winograd_few_gradient(const struct walk *c, const struct winograd_lines *lines);

/* Sets sizes from the shape. Returns the panels of the target. */
int64_t winograd_walk_shape(struct walk *c);
/* Bytes of a member's scratch and floats of `u` for so many panels, and transforming them. */
size_t CPU_KERNEL(winograd_walk_weights_scratch)(void);
int64_t CPU_KERNEL(winograd_walk_weights_floats)(const struct walk *c, int64_t panels);
void winograd_walk_weights(struct walk *c, int64_t begin, int64_t panels);

#endif
