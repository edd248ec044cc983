/* A convolution, forward or its input gradient, from sources to targets: arguments of a call in the terms
 * that the direct algorithm and Winograd's share.
 */
#ifndef TR_DEVICE_CPU_CONV_CALL_H
#define TR_DEVICE_CPU_CONV_CALL_H

#include "device/cpu/cpu.h"

#include <stdbool.h>

struct conv_call {
    struct cpu_device *cpu;
    const struct tr_sliding_window *window;
    bool backward;
    int64_t rows;
    int32_t source_h, source_w, source_c, target_h, target_w, target_c;
    const float *source;  /* [rows][source_h][source_w][source_c] */
    float *target;        /* [rows][target_h][target_w][target_c] */
    const float *weights; /* [kernel_h][kernel_w][in_c][out_c] */
    const float *bias;    /* [target_c] or NULL */
    enum tr_activation activation;
    float slope;
};

/* Whether each output reads one pixel, which is in the image. */
static inline bool cpu_conv_is_pointwise(const struct tr_sliding_window *w)
{
    return w->kernel_h == 1 && w->kernel_w == 1 && w->pad_top == 0 && w->pad_left == 0 &&
           (w->out_h - 1) * w->stride_h < w->in_h && (w->out_w - 1) * w->stride_w < w->in_w;
}

/* Forward: from inputs to outputs. Backward: from gradients of outputs to those of inputs. */
struct conv_call cpu_conv_forward(tr_device *device, const struct tr_op_conv_forward *a);
struct conv_call cpu_conv_backward(tr_device *device, const struct tr_op_conv_backward_data *a);

/* Into how many runs a team divides the lines, such that its slowest member finishes first: the members of a
   run divide its panels (grid.h). A member packs its own lines, which takes as long as `packing` panels; it
   computes up to `again` lines before its own again, unless it begins with an image of `image_lines`. */
int cpu_conv_line_parts(int threads, int64_t lines, int64_t image_lines, int64_t again, int64_t panels,
                        double packing);

/* Writes the bias, followed by +0 up to `columns`, to `to`; there must be a bias. */
void cpu_conv_bias(const struct conv_call *call, int64_t columns, float *to);

#endif
