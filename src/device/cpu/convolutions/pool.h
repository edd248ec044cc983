/* The taps of a pool's windows that lie inside the image, along one axis; and pools line by line, for the
 * convolutions they are fused with.
 */
#ifndef TR_DEVICE_CPU_POOL_H
#define TR_DEVICE_CPU_POOL_H

#include "device/cpu/kernels.h"

#include <stdint.h>

/* One for each instruction set. */
#define pool_forward_line  CPU_KERNEL(pool_forward_line)
#define pool_backward_line CPU_KERNEL(pool_backward_line)

/* Computes line `oh` of y, and of `taken`, of image `row` from the lines of x under it. For the pools of
   tr_op_conv_pool_forward. */
void pool_forward_line(const struct tr_op_pool_forward *a, int64_t row, int32_t oh, const float *lines);

/* Computes line `ih` of dx of image `row`, `channels` channels from `channel` on, to dx [in_w][channels].
   For the same pools. */
void pool_backward_line(const struct tr_op_pool_backward *a, int64_t row, int32_t ih, int64_t channel,
                        int64_t channels, float *dx);

struct pool_range {
    int32_t begin, end;
};

/* Kernel positions k of the window at output position `out` that lie inside the image: 0 <= out * stride -
 * pad + k * dilation < in. */
static inline struct pool_range pool_taps(int32_t out, int32_t stride, int32_t pad, int32_t dilation,
                                          int32_t kernel, int32_t in)
{
    int64_t first = (int64_t)out * stride - pad, begin = 0, end = kernel;
    if (first < 0) begin = (-first + dilation - 1) / dilation;
    if (first + (int64_t)(kernel - 1) * dilation >= in)
        end = first >= in ? 0 : (in - 1 - first) / dilation + 1;
    if (begin > end) begin = end;
    return (struct pool_range){(int32_t)begin, (int32_t)end};
}

/* Output positions within [0, outputs) whose window covers input position `in`, whether or not a tap falls
 * on it.
 */
static inline struct pool_range pool_windows(int32_t in, int32_t stride, int32_t pad, int32_t dilation,
                                             int32_t kernel, int32_t outputs)
{
    int64_t last = ((int64_t)in + pad) / stride, least = (int64_t)in + pad - (int64_t)(kernel - 1) * dilation;
    int64_t begin = least > 0 ? (least + stride - 1) / stride : 0,
            end = last + 1 < outputs ? last + 1 : outputs;
    if (begin > end) begin = end;
    return (struct pool_range){(int32_t)begin, (int32_t)end};
}

#endif
