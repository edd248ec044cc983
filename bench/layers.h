/* Dense layers and convolutions that bench_kernels and bench_tune measure, with input values. */
#ifndef TR_BENCH_LAYERS_H
#define TR_BENCH_LAYERS_H

#include "kernels.h"

#include "device/device.h"

#include <stdbool.h>
#include <stdint.h>

#define LAYER_MICROBATCHES_MOST 64

/* A layer on a device. It has pointers into itself: it must not be moved after opening. */
struct layer {
    tr_device *device;
    char name[64];
    double flops; /* useful ones of a pass: taps outside the image are not counted */
    bool convolution, winograd;
    enum pass pass;
    struct tr_op_dense_forward dense_forward;
    struct tr_op_dense_backward_data dense_data;
    struct tr_op_dense_backward_weights dense_weights;
    struct tr_op_conv_forward conv_forward;
    struct tr_op_conv_backward_data conv_data;
    struct tr_op_conv_backward_weights conv_weights;
    int64_t row[LAYER_MICROBATCHES_MOST + 1];
    int32_t bound[2];
    float *memory[7];
};

/* Small numbers of both signs; the values do not matter as long as none is subnormal. Ends the program
   without memory. Free with tr_free(). */
float *numbers(int64_t count);

/* Even microbatches of one node; row has room for one more. */
struct tr_cut layer_cut(int rows, int microbatches, int64_t *row, int32_t bound[2]);

void layer_open_dense(struct layer *layer, tr_device *device, const struct dense_shape *shape);
void layer_open_conv(struct layer *layer, tr_device *device, const struct conv_shape *shape, bool winograd);
void layer_close(struct layer *layer);

/* Runs a pass once; ends the program if it fails. */
void layer_run(struct layer *layer, enum pass pass);
/* The fastest of several runs, in seconds. */
double layer_time(struct layer *layer, enum pass pass);
/* The same by the direct algorithm. */
double layer_direct_time(struct layer *layer, enum pass pass);

#endif
