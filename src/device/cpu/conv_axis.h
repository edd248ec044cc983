/* The pairs of source pixels and kernel taps that meet, along one axis of an image.
 *
 * A convolution and its input gradient are the same walk with different tables: a target pixel has a list
 * of (source pixel, place in the packed kernel), both ascending, and taps outside the image are simply not
 * in it.
 */
#ifndef TR_DEVICE_CPU_CONV_AXIS_H
#define TR_DEVICE_CPU_CONV_AXIS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* `length` neighbouring source pixels that meet neighbouring taps. */
struct conv_run {
    int32_t source, kernel, length;
};

struct conv_axis {
    int32_t targets;
    int32_t *start; /* [targets + 1]: target t has runs [start[t], start[t + 1]) */
    struct conv_run *runs;
};

/* One axis of a window. */
struct conv_extent {
    int32_t in, out, kernel, stride, dilation, pad;
};

/* Memory for a table of so many targets and taps. */
size_t cpu_conv_axis_bytes(int32_t targets, int32_t kernel);

/* Builds the table of the forward pass (targets are output pixels) or of the input gradient (`backward`:
   targets are input pixels, sources output pixels, and the kernel is packed back to front). Neighbours are
   merged into runs only if `merge`. `memory` is kept by the table. */
void cpu_conv_axis_build(struct conv_axis *axis, const struct conv_extent *extent, bool backward, bool merge,
                         void *memory);

/* The sources [*first, *last) that the targets [begin, end) read; empty if none. */
void cpu_conv_axis_sources(const struct conv_axis *axis, int32_t begin, int32_t end, int32_t *first,
                           int32_t *last);

/* The number of targets, from 1 to `most`, that meet the same taps: `target` and those that lie `every`,
   twice `every` and so on after it. The sources of each lie *shift after those of the one before it; 0: there
   are none. */
int32_t cpu_conv_axis_alike(const struct conv_axis *axis, int32_t target, int32_t every, int32_t most,
                            int32_t *shift);

#endif
