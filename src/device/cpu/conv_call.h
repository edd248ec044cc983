/* A convolution, forward or its input gradient, from sources to targets: arguments of a call in the terms
 * that the direct algorithm and Winograd's share.
 */
#ifndef TR_DEVICE_CPU_CONV_CALL_H
#define TR_DEVICE_CPU_CONV_CALL_H

#include "device/cpu/cpu.h"

#include <stdbool.h>

/* How a team divides a target: into runs of lines, and each of them into runs of panels of columns. */
struct conv_grid {
    int panel_parts; /* members that share the lines of one run */
};

/* A member's rectangle. */
struct conv_part {
    int64_t line, line_end, panel, panel_end;
};

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

/* Forward: from inputs to outputs. Backward: from gradients of outputs to those of inputs. */
struct conv_call cpu_conv_forward(tr_device *device, const struct tr_op_conv_forward *a);
struct conv_call cpu_conv_backward(tr_device *device, const struct tr_op_conv_backward_data *a);

/* The grid whose slowest member finishes first. A member packs its own lines, as long as it takes `packing`
   panels to compute them; it computes up to `again` lines before its own again, unless it begins with an
   image of `image_lines`. */
struct conv_grid cpu_conv_grid(int threads, int64_t lines, int64_t image_lines, int64_t again, int64_t panels,
                               double packing);
/* The rectangle of a member of a team of `size`, which may be one instead of the grid's. */
struct conv_part cpu_conv_part(const struct conv_grid *grid, int64_t lines, int64_t panels, int member,
                               int size);

/* Writes the bias, followed by +0 up to `columns`, to `to`; there must be a bias. */
void cpu_conv_bias(const struct conv_call *call, int64_t columns, float *to);

#endif
