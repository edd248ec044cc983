/* Kernel, stride, padding and dilation as convolutions and pools write them in a model file. */
#ifndef TR_NN_LAYERS_WINDOW_H
#define TR_NN_LAYERS_WINDOW_H

#include "base/options/option.h"
#include "device/ops.h"
#include "tensor/shape.h"

enum tr_padding { TR_PADDING_VALID, TR_PADDING_SAME };

struct tr_window_options {
    int32_t kernel[2]; /* height, width */
    int32_t stride[2]; /* 0: the class's own default */
    int32_t dilation[2];
    int32_t padding; /* enum tr_padding */
    int32_t pad[2];  /* rows and columns on each side; -1: by `padding` */
};

extern const struct tr_choice tr_padding_choices[];

/* Works out the geometry over an image in->size = {height, width, channels}. SAME gives ceil(in / stride)
   outputs with the odd pad at the end, as TensorFlow does; VALID no padding. TR_EINVAL when the kernel does
   not fit, naming both sizes. */
tr_status tr_window_make(const struct tr_window_options *options, const struct tr_shape *in,
                         struct tr_sliding_window *window);

#endif
