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
/* Outputs of a whole tile along an axis, and the least outputs of an axis. */
#define TR_WINOGRAD_OUTPUTS 4
#define TR_WINOGRAD_LEAST   2

/* Whether Winograd's algorithm supports a convolution: 3x3, stride 1, dilation 1, at least 2x2 outputs,
   every pad smaller than the kernel. */
bool tr_winograd_suits(const struct tr_sliding_window *window);

/* A tile along an axis: outputs [first, first + outputs), which read the inputs [first - pad, first - pad +
   points). */
struct tr_winograd_tile {
    int32_t first, outputs, points;
};

static inline int32_t tr_winograd_tiles(int32_t outputs)
{
    return (outputs + TR_WINOGRAD_OUTPUTS - 1) / TR_WINOGRAD_OUTPUTS;
}

/* Tiles of four, then the rest; a rest of five becomes three and two. */
static inline struct tr_winograd_tile tr_winograd_tile(int32_t outputs, int32_t index)
{
    const int32_t first = index * TR_WINOGRAD_OUTPUTS, left = outputs - first;
    if (left == 5) return (struct tr_winograd_tile){first, 3, 5};
    if (left == 1) return (struct tr_winograd_tile){first - 1, 2, 4};
    return left < TR_WINOGRAD_OUTPUTS ? (struct tr_winograd_tile){first, left, left + 2}
                                      : (struct tr_winograd_tile){first, 4, 6};
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
