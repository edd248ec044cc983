/* The devices that gpu/ makes. */
#ifndef TR_DEVICE_GPU_KINDS_H
#define TR_DEVICE_GPU_KINDS_H

#include "device/device.h"

/* Device `number` of OpenCL. TR_ENOTFOUND where there is no OpenCL or not such a device, TR_EUNSUPPORTED
   where its arithmetic would not be exact. */
extern const struct tr_device_kind tr_device_kind_opencl;

#endif
