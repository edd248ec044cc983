/* Convolutions by groups of channels. Depthwise ones (a filter for each channel) use vectors over all
 * channels; others go group by group, with vectors over the outputs of a group. Forward and input gradient
 * are the same walk over target pixels with different tables (conv_axis.h).
 */
#ifndef TR_DEVICE_CPU_GROUPED_H
#define TR_DEVICE_CPU_GROUPED_H

#include "base/numbers/tree.h"
#include "device/cpu/conv_axis.h"
#include "device/cpu/conv_call.h"
#include "device/cpu/kernels.h"
#include "device/cpu/sizes.h"
#include "device/cpu/vectors/vec.h"

/* One for each instruction set. */
#define depthwise_line     CPU_KERNEL(depthwise_line)
#define groups_pack        CPU_KERNEL(groups_pack)
#define groups_line        CPU_KERNEL(groups_line)
#define depthwise_gradient CPU_KERNEL(depthwise_gradient)
#define groups_gradient    CPU_KERNEL(groups_gradient)

struct grouped {
    struct conv_call call;
    int32_t groups, source_each, target_each; /* channels of a group */
    struct conv_axis h, w;                    /* runs are merged along the width */
    /* Targets [full_begin, full_end) of a line meet all taps of a kernel row, in one run; the sources of
       neighbours are `step` apart. */
    int32_t full_begin, full_end, step;
    /* Depthwise, with an unrolled copy for lines of this kind: target t meets source s at tap up * s - step *
       t + lead of a kernel row; neither may exist. */
    bool unrolled;
    int32_t up, lead;
    /* Depthwise: the weights of tap (i, j) of the walk are at tap0 + (i * kernel_w + j) * tap_step. */
    const float *tap0;
    int64_t tap_step;
    float *packed; /* else: [group][kernel_h][kernel_w][source_each][padded], taps in the walk's order */
    int64_t padded;
};

/* Line h of the targets of image r. */
void depthwise_line(const struct grouped *g, int64_t r, int32_t h);
void groups_line(const struct grouped *g, int64_t r, int32_t h);
/* Packs the weights of groups [begin, end). */
void groups_pack(const struct grouped *g, int64_t begin, int64_t end);

/* The state of a weight gradient: units of work are independent sums over all pixels. */
struct grouped_gradient {
    const struct tr_op_conv_backward_weights *op;
    int32_t groups, in_each, out_each;
    bool depthwise, by_row; /* by_row: a unit is one kernel row, not all of them */
    bool whole_rows;        /* depthwise: a kernel row has a copy of its own */
    int64_t block;          /* depthwise: channels of a unit */
    int64_t units;
    int64_t unit_floats; /* most sums of a unit */
    int levels;          /* sums of a unit that wait at once (base/numbers/tree.h) */
};

/* A unit of a gradient; `sums` has levels * unit_floats floats. */
void depthwise_gradient(const struct grouped_gradient *g, int64_t unit, float *sums);
void groups_gradient(const struct grouped_gradient *g, int64_t unit, float *sums);

/* Channels of a unit of a depthwise gradient that goes tap by tap; and at most where it goes row by row. */
#define DEPTHWISE_VECTORS 4
#define DEPTHWISE_BLOCK   (DEPTHWISE_VECTORS * VW)
#define DEPTHWISE_MOST    256
/* Taps of the longest kernel row with a copy of its own; output pixels that share what they read. */
#define DEPTHWISE_LARGEST 7
#define DEPTHWISE_PIXELS  8
/* Inputs and outputs of a group for a unit of its gradient. */
#define GROUPS_INPUTS  4
#define GROUPS_OUTPUTS (2 * VW)

/* Completes an output after its sums. TANH and SIGMOID follow later, for whole lines. */
V_INLINE vf grouped_finish(vf sum, vf bias, bool biased, enum tr_activation activation, float slope)
{
    if (biased) sum = v_add(sum, bias);
    if (activation == TR_ACT_RELU) return v_select(v_gt(v_zero(), sum), v_zero(), sum);
    if (activation == TR_ACT_LEAKY_RELU) return v_select(v_gt(v_zero(), sum), v_mul(v_set1(slope), sum), sum);
    return sum;
}

/* After a leaf of a node: adds the waiting sums that are due. `fold` is that of the walk; the sums of
   place i lie at sums + i * floats. */
V_INLINE void grouped_combine(struct tr_tree_fold *fold, float *sums, int64_t floats)
{
    for (int right; (right = tr_tree_combine(fold)) > 0;)
        for (int64_t i = 0; i < floats; i++) sums[(right - 1) * floats + i] += sums[right * floats + i];
}

#endif
