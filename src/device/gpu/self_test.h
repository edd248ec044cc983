/* Whether a device computes the bits of others: measured, whatever it promises. */
#ifndef TR_DEVICE_GPU_SELF_TEST_H
#define TR_DEVICE_GPU_SELF_TEST_H

#include "device/gpu/internal.h"

/* Runs arithmetic (corner cases and random numbers), the functions of base/numbers/mathf.h, random numbers, a
   product and a gradient with its tree, with each tile of products that the device takes, and compares the
   bytes with what this processor computes. TR_EUNSUPPORTED, with what differed first, where they are not
   equal. What passed once is kept in the device's cache and not run again: while sources, device and driver
   are the same. */
tr_status gpu_self_test(struct gpu *gpu);

#endif
