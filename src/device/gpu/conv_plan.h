/* How a convolution divides into products without masks: rectangles of pixels that have the same taps
 * inside the image, and sets of taps that meet the same rectangle. The tables of kernels/product.k.
 *
 * Layouts, int32_t each:
 *   - pixels: for each rectangle 10 numbers: height, width; first place in A, step of a line, of a
 *     column; the same three in C; where its k begin in the table, and their number. Then for each k
 *     {place in A, place in B}. Places are in floats from the pixel, or from the beginning of the
 *     weights.
 *   - taps: for each set 4 numbers {number of rows m, where they begin, number of pixels, where they
 *     begin}; then for each m {place in A, place in C}; for each pixel {place in A, place in B}, and
 *     those of the first GPU_CONV_WRAP pixels of the images that follow.
 */
#ifndef TR_DEVICE_GPU_CONV_PLAN_H
#define TR_DEVICE_GPU_CONV_PLAN_H

#include "device/ops.h"

#include "trireme/status.h"

#include <stddef.h>

#define GPU_CONV_WRAP 64 /* depth of the deepest slice of a product */

enum gpu_conv { GPU_CONV_FORWARD, GPU_CONV_DATA, GPU_CONV_WEIGHTS };

struct gpu_conv_shape {
    enum gpu_conv kind;
    int32_t in_c, out_c;
    struct tr_sliding_window window;
};

struct gpu_conv_plan {
    int32_t *table; /* freed with tr_free() */
    size_t bytes;
    int32_t sets;
    int64_t most; /* rows m of the largest set: pixels of an image, or channels of taps */
};

/* TR_ENOMEM, or TR_EUNSUPPORTED where an image has 2^26 numbers or more (33 million where a tap meets one
 * output), or weights or table more than 2^31. */
tr_status gpu_conv_plan_make(const struct gpu_conv_shape *shape, struct gpu_conv_plan *out);

#endif
