/* The operations that have kernels: those that device/ops.h requires of all devices. One without does not
   link. */
#ifndef TR_DEVICE_GPU_OPERATIONS_H
#define TR_DEVICE_GPU_OPERATIONS_H

#include "device/device.h"

#define GPU_OPS(X) TR_DEVICE_CORE_OPS(X)

#define GPU_OPERATION(op) tr_status gpu_##op(tr_device *device, const struct tr_op_##op *arguments);
GPU_OPS(GPU_OPERATION)
#undef GPU_OPERATION

#endif
