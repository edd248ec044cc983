/* Which taps of a pool's windows exist, along one axis. */
#ifndef TR_DEVICE_CPU_POOL_H
#define TR_DEVICE_CPU_POOL_H

#include <stdint.h>

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

/* Output positions whose window reaches over input position `in`, whether or not a tap falls on it, among [0,
 * outputs). */
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
