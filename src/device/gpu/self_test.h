/* Whether a device computes the same bits as others: measured, whatever it promises. */
#ifndef TR_DEVICE_GPU_SELF_TEST_H
#define TR_DEVICE_GPU_SELF_TEST_H

#include "device/gpu/internal.h"

/* Runs arithmetic (corner cases and random numbers), the functions of base/numbers/mathf.h, random
   numbers, a product and a gradient with its tree, with each tile of products that the device allows, and
   compares the bytes with those of this processor. TR_EUNSUPPORTED, with the first difference, where they
   are not equal. A pass is kept in the device's cache, and the test is not run again while sources, device
   and driver are the same. */
tr_status gpu_self_test(struct gpu *gpu);

#endif
