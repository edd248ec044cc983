/* Launches of kernels that sum in a fixed order (kernels/lanes.h): 16 threads of a group have the lanes of a
   row, or a group has the chains of some columns. */
#ifndef TR_DEVICE_GPU_LANES_H
#define TR_DEVICE_GPU_LANES_H

#include "device/gpu/gpu.h"

#define GPU_LANES   16
#define GPU_COLUMNS 32 /* whose chains a group has */

static inline tr_status gpu_run_lanes(struct gpu_call *call, int64_t rows)
{
    return gpu_run(call, gpu_groups(rows, call->launch.threads / GPU_LANES), 1, 1);
}

#endif
