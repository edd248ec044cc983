/* Blocks of the weight gradient of a Winograd convolution (gradient.c): the work of a member, the layout
 * of its memory, and the sums that a block adds.
 */
#ifndef TR_DEVICE_CPU_WINOGRAD_BLOCK_H
#define TR_DEVICE_CPU_WINOGRAD_BLOCK_H

#include "device/cpu/products/pack.h"
#include "device/cpu/reduction.h"
#include "device/cpu/sizes.h"
#include "device/cpu/subtrees.h"
#include "device/cpu/winograd/walk.h"

/* One for each instruction set. */
#define winograd_block_inputs    CPU_KERNEL(winograd_block_inputs)
#define winograd_block_gradients CPU_KERNEL(winograd_block_gradients)
#define winograd_block_reduce    CPU_KERNEL(winograd_block_reduce)

#define POINTS    TR_WINOGRAD_POINTS
#define POSITIONS TR_WINOGRAD_POSITIONS

/* Up to so many channels lie in V side by side, in rows that all their groups read; more lie group by
   group. */
#define TOGETHER 32

struct winograd_work {
    struct cpu_device *cpu;
    const struct tr_op_conv_backward_weights *op;
    const struct walk *data;        /* of the input gradient that is computed as well, or NULL */
    int64_t data_sums;              /* its size in floats */
    int32_t taps, tiles_h, tiles_w; /* taps: along an axis */
    int64_t width[POINTS];          /* tiles of a line that have the point of the width */
    int parts_rows;                 /* the grid of rectangles, one per member, has so many rows */
    int64_t channels, panels;       /* most of a rectangle */
    int64_t columns; /* columns of a tile of sums: all, or half of them where out_c is not larger */
    int64_t lines;   /* most of a block */
    int64_t chunk;   /* panels */
    bool split;      /* a microbatch may be longer than a block */
    int slots;
    struct subtrees subtrees; /* members that divide microbatches and not rectangles */
    /* Offsets of the parts of a member's scratch, in floats; `lines_at` in bytes. */
    int64_t z_at, sums_at, slots_at, border_at, data_at;
    size_t lines_at;
};

/* A member's rectangle, its memory and the block. */
struct winograd_block {
    const struct winograd_work *work;
    int64_t channel, channels, groups; /* of the rectangle */
    int64_t parts;                     /* of V: all channels, or groups */
    int64_t panel, panels;             /* of the chunk */
    float *v;                          /* [group][position][line, tile][channel of the group] */
    float *z;      /* [position][line, tile][columns], of a panel or, for the input gradient, of each */
    float *sums;   /* [panel of the chunk][group] if microbatches are split, else one: [position][tile] */
    float *slots;  /* [slot][panel of the chunk][tap][channel][columns] */
    float *border; /* for winograd_strip() */
    float *data;   /* for winograd_few_gradient() */
    int64_t form, form_end;    /* lines of tiles whose inputs' gradient the member forms */
    int32_t (*before)[POINTS]; /* [lines + 1]: lines of the block before this one that have the point */
    int64_t line, lines;       /* of tiles, counted over all images */
};

/* Taps of a kernel. */
static inline int64_t block_taps(const struct winograd_work *g)
{
    return (int64_t)g->taps * g->taps;
}

static inline int64_t z_position(const struct winograd_work *g)
{
    return g->lines * g->tiles_w * g->columns + PACK_SLACK; /* not a power of two */
}

/* Floats of a panel's Z, which stays until Z of all panels is computed. */
static inline int64_t z_panel(const struct winograd_work *g)
{
    return g->data ? floats_round(POSITIONS * z_position(g)) : 0;
}

/* V of the block, whose lines are set. */
void winograd_block_inputs(const struct winograd_block *block);
/* Z of the block and all panels of the chunk, without V. */
void winograd_block_gradients(const struct winograd_block *block);
/* Computes Z of a panel; makes all tiles of the panel take the pieces of the block, the last of which may
   be unfinished. */
void winograd_block_reduce(const struct winograd_block *block, int64_t panel,
                           const struct reduction_piece *pieces, int count, bool unfinished);

#endif
