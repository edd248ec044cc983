/* The pixels of images that a kernel of one tap reads with strides, without those between them. */
#ifndef TR_DEVICE_CPU_CONV_STRIDES_H
#define TR_DEVICE_CPU_CONV_STRIDES_H

#include "device/cpu/cpu.h"

struct conv_strides {
    const struct tr_sliding_window *window; /* without padding; outputs read pixels of the image alone */
    int64_t images, channels;
};

/* Reserves [images][out_h][out_w][channels] floats of the shared scratch for these pixels. */
tr_status cpu_conv_strides_reserve(struct cpu_device *cpu, const struct conv_strides *s, float **pixels);

/* Copies them from [images][in_h][in_w][channels]. */
void cpu_conv_gather(struct cpu_device *cpu, const struct conv_strides *s, const float *images,
                     float *pixels);

/* Copies them there, with +0 for the pixels between them. */
void cpu_conv_spread(struct cpu_device *cpu, const struct conv_strides *s, const float *pixels,
                     float *images);

#endif
