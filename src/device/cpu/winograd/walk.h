/* Winograd convolutions, forward and input gradient, in the terms that their two walks share: winograd.c,
 * whose tiles of sums hold images, and few.c, whose tiles of sums hold Winograd tiles, for few
 * channels.
 */
#ifndef TR_DEVICE_CPU_WINOGRAD_WALK_H
#define TR_DEVICE_CPU_WINOGRAD_WALK_H

#include "device/cpu/conv_call.h"
#include "device/cpu/winograd/winograd.h"

/* Every instruction set has its own. */
#define winograd_few          CPU_KERNEL(winograd_few)
#define winograd_few_gradient CPU_KERNEL(winograd_few_gradient)
#define winograd_walk_shape   CPU_KERNEL(winograd_walk_shape)
#define winograd_walk_weights CPU_KERNEL(winograd_walk_weights)

/* Channels of sources that winograd_few() takes, at most. */
#define WINOGRAD_FEW 64

struct walk {
    struct conv_call call;
    int32_t tiles_h, tiles_w;
    int32_t band_h, band_w;      /* tiles of a band, at most */
    int64_t columns;             /* of a tile of sums: all, or half of them where target_c is no more */
    int64_t panel_begin, panels; /* whose weights are transformed */
    /* Parts of the shared scratch. */
    float *u; /* [panels][POSITIONS][source_c][TILE_COLUMNS], positions u_position apart */
    int64_t
        u_position; /* floats; not a power of two, which would send all positions to one place in a cache */
    float *packed_bias; /* [all panels][TILE_COLUMNS] or NULL */
    /* Parts of a member's scratch, in floats. */
    int64_t v_at, sums_at;
};

/* Whether winograd_few() takes a convolution. */
static inline bool winograd_few_suits(const struct walk *c)
{
    return c->call.source_c <= WINOGRAD_FEW && c->call.window->out_h % TR_WINOGRAD_OUTPUTS == 0 &&
           c->call.window->out_w % TR_WINOGRAD_OUTPUTS == 0;
}

/* Lays out a member's scratch for winograd_few(), and returns its size in floats. */
int64_t CPU_KERNEL(winograd_few_plan)(struct walk *c);

/* A member's chunk, once the weights are transformed; the arguments are a struct walk. */
void winograd_few(void *arguments, int member, int size);

/* Transformed gradients of outputs that another caller has made and used: of `lines` lines of tiles,
   counted over all images, from `line` on. */
struct winograd_lines {
    const float *z;        /* [panel of the source][POSITIONS][line, tile][row] */
    int64_t position, row; /* floats between positions, between tiles */
    int64_t run, panel;    /* channels in a panel, floats between panels */
    int64_t line, lines;
    float *sums; /* room for winograd_few_sums() */
};

/* Floats of sums that winograd_few_gradient() takes; sets the lines of a band. */
int64_t CPU_KERNEL(winograd_few_sums)(struct walk *c);

/* Gives the gradients of the inputs their part of these lines, once the weights of all panels are
   transformed. Lines of an image come in ascending order, from one member. */
void winograd_few_gradient(const struct walk *c, const struct winograd_lines *lines);

/* Sets what follows from the shape. Returns the panels of the target. */
int64_t winograd_walk_shape(struct walk *c);
/* Bytes of a member's scratch and floats of `u` that so many panels take, and transforming them. */
size_t CPU_KERNEL(winograd_walk_weights_scratch)(void);
int64_t CPU_KERNEL(winograd_walk_weights_floats)(const struct walk *c, int64_t panels);
void winograd_walk_weights(struct walk *c, int64_t begin, int64_t panels);

#endif
