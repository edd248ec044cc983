/* Launches of kernels that sum in a fixed order (kernels/lanes.h), in which 16 threads of a group have the
   lanes of a row, or a group has the chains of some columns; and of kernels that normalize by such sums. */
#ifndef TR_DEVICE_GPU_LANES_H
#define TR_DEVICE_GPU_LANES_H

#include "device/gpu/gpu.h"

#define GPU_LANES   16
#define GPU_COLUMNS 32 /* columns whose chains a group computes */

static inline tr_status gpu_run_lanes(struct gpu_call *call, int64_t rows)
{
    return gpu_run(call, gpu_groups(rows, call->launch.threads / GPU_LANES), 1, 1);
}

/* Threads for each channel and several places: each loops over `places` places, in each of `parts` parts. */
static inline tr_status gpu_run_channels(struct gpu_call *call, int shift, int64_t channels, int64_t places,
                                         int64_t parts)
{
    enum { PLACES = 8 }; /* least places of a thread, since it first reads the values of its channel */
    int64_t lines = call->launch.threads >> shift;
    return gpu_run(call, gpu_groups(channels, (int64_t)1 << shift),
                   gpu_walkers(gpu_groups(places, lines * PLACES)), parts);
}

#endif
