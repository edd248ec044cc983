/* How Winograd convolutions (device/ops.h) cut an image into tiles, and their transforms of single numbers.
 *
 * Pure functions; any thread.
 */
#ifndef TR_DEVICE_WINOGRAD_H
#define TR_DEVICE_WINOGRAD_H

#include "device/ops.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>

/* Points of a whole tile along an axis; numbers at the points of both axes: [points_h][points_w]. */
#define TR_WINOGRAD_POINTS    6
#define TR_WINOGRAD_POSITIONS 36
/* Most taps of a kernel along an axis, most outputs of a tile, and the least outputs of an axis. */
#define TR_WINOGRAD_TAPS    5
#define TR_WINOGRAD_OUTPUTS 4
#define TR_WINOGRAD_LEAST   2

/* Whether Winograd's algorithm supports a convolution: 3x3 or 5x5, stride 1, dilation 1, at least 2x2
   outputs, every pad smaller than the kernel. */
bool tr_winograd_suits(const struct tr_sliding_window *window);

/* A tile along an axis: outputs [first, first + outputs), which read the inputs [first - pad, first - pad +
   points). */
struct tr_winograd_tile {
    int32_t first, outputs, points;
};

/* Outputs of a whole tile along an axis: 4 of a kernel of 3 taps, 2 of one of 5. */
static inline int32_t tr_winograd_whole(int32_t taps)
{
    return TR_WINOGRAD_POINTS + 1 - taps;
}

static inline int32_t tr_winograd_tiles(int32_t taps, int32_t outputs)
{
    const int32_t whole = tr_winograd_whole(taps);
    return (outputs + whole - 1) / whole;
}

/* Whole tiles, then the rest. With 3 taps a rest of five becomes three and two; with 5 taps the last tile
   may have one output. */
static inline struct tr_winograd_tile tr_winograd_tile(int32_t taps, int32_t outputs, int32_t index)
{
    const int32_t whole = tr_winograd_whole(taps), left = outputs - index * whole;
    struct tr_winograd_tile tile = {.first = index * whole, .outputs = left < whole ? left : whole};
    if (taps == 3 && left == 5) tile.outputs = 3;
    if (taps == 3 && left == 1) {
        tile.first--;
        tile.outputs = 2;
    }
    tile.points = tile.outputs + taps - 1;
    return tile;
}

/* Whether a tile with so many points has the point: 0 +5/8 -5/8 +3/2 -3/2 infinity. */
static inline bool tr_winograd_has(int32_t points, int point)
{
    return points == 6 || point < 3 || point == 5 || (points == 5 && point == 3);
}

#define W_NAME(name)   tr_winograd_##name
#define W_F            float
#define W_SET(c)       (c)
#define W_FMA(a, b, c) fmaf(a, b, c)
#define W_ADD(a, b)    ((a) + (b))
#define W_SUB(a, b)    ((a) - (b))
#define W_MUL(a, b)    ((a) * (b))
#define W_INLINE       static inline
#include "device/winograd.inc"

#endif
