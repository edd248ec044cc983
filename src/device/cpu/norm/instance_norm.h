/* Group normalization where each channel is a group. */
#ifndef TR_DEVICE_CPU_INSTANCE_NORM_H
#define TR_DEVICE_CPU_INSTANCE_NORM_H

#include "device/cpu/kernels.h"

/* One for each instruction set. */
#define instance_norm_forward  CPU_KERNEL(instance_norm_forward)
#define instance_norm_backward CPU_KERNEL(instance_norm_backward)

/* Row r. */
void instance_norm_forward(const struct tr_op_group_norm_forward *a, int64_t r);
/* dx of row r. */
void instance_norm_backward(const struct tr_op_group_norm_backward *a, int64_t r);

#endif
