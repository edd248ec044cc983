/* Convolutions of one tap as products of matrices, pixels by channels. */
#ifndef TR_DEVICE_CPU_CONV_POINTWISE_H
#define TR_DEVICE_CPU_CONV_POINTWISE_H

#include "device/cpu/conv_call.h"
#include "device/cpu/kernels.h"

#include <stdbool.h>

/* One for each instruction set. */
#define conv_pointwise_suits    CPU_KERNEL(conv_pointwise_suits)
#define conv_pointwise          CPU_KERNEL(conv_pointwise)
#define conv_pointwise_gradient CPU_KERNEL(conv_pointwise_gradient)

/* Whether a convolution without a pool is faster so: each output reads one pixel of the image, and either
   all pixels are read or they have so many channels that gathering them takes little. */
bool conv_pointwise_suits(const struct cpu_device *cpu, const struct tr_sliding_window *window, int64_t in_c);

/* Forward or the input gradient. */
tr_status conv_pointwise(const struct conv_call *call);
/* The weight gradient. */
tr_status conv_pointwise_gradient(struct cpu_device *cpu, const struct tr_op_conv_backward_weights *a);

#endif
