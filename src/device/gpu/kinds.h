/* The devices that gpu/ makes. */
#ifndef TR_DEVICE_GPU_KINDS_H
#define TR_DEVICE_GPU_KINDS_H

#include "device/device.h"

/* Device `number` of OpenCL, of CUDA. TR_ENOTFOUND where there is no such interface or device,
   TR_EUNSUPPORTED where its arithmetic would not be exact. */
extern const struct tr_device_kind tr_device_kind_opencl, tr_device_kind_cuda;

/* GPU `number` of those that may be exact, each once: CUDA's, and then those that only OpenCL has. One that
   both have is known by where it is plugged in. */
extern const struct tr_device_kind tr_device_kind_gpu;

#endif
