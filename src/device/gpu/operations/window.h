/* Launches of kernels whose numbers have windows that slide over an image: WINDOW_PARAMETERS of
 * kernels/common.h. */
#ifndef TR_DEVICE_GPU_OPERATIONS_WINDOW_H
#define TR_DEVICE_GPU_OPERATIONS_WINDOW_H

#include "device/gpu/gpu.h"

static inline void gpu_window(struct gpu_call *call, const struct tr_sliding_window *w)
{
    const int32_t parameters[] = {w->in_h,       w->in_w,       w->out_h,    w->out_w,
                                  w->kernel_h,   w->kernel_w,   w->stride_h, w->stride_w,
                                  w->dilation_h, w->dilation_w, w->pad_top,  w->pad_left};
    for (size_t i = 0; i < sizeof parameters / sizeof parameters[0]; i++) gpu_int(call, parameters[i]);
}

/* Threads for the `values` of an image; groups loop over the images. */
static inline tr_status gpu_run_images(struct gpu_call *call, int64_t values, int64_t rows)
{
    return gpu_run(call, gpu_groups(values, call->launch.threads), gpu_walkers(rows), 1);
}

#endif
