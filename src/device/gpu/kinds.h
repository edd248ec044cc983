/* The kinds of devices that gpu/ provides. */
#ifndef TR_DEVICE_GPU_KINDS_H
#define TR_DEVICE_GPU_KINDS_H

#include "device/device.h"

/* Device `number` of OpenCL, of CUDA. TR_ENOTFOUND where there is no such interface or device,
   TR_EUNSUPPORTED where its arithmetic would not be exact. */
extern const struct tr_device_kind tr_device_kind_opencl, tr_device_kind_cuda;

/* GPU `number` among those that may be exact, each counted once: first CUDA's, then those that only OpenCL
   has. A GPU that both have is recognized by its bus address. */
extern const struct tr_device_kind tr_device_kind_gpu;

#endif
