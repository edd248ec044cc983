/* Products of kernels/product.k, for dense layers and convolutions. */
#ifndef TR_DEVICE_GPU_PRODUCT_H
#define TR_DEVICE_GPU_PRODUCT_H

#include "device/gpu/gpu.h"

/* Where the numbers lie; the kernel describes each mode. */
enum gpu_addressing { GPU_STRIDES, GPU_PIXELS, GPU_TAPS };

struct gpu_product {
    enum gpu_addressing addressing;
    bool a_k, b_k; /* A, B lie along k */
    int64_t m;     /* rows of the largest set (rectangle, taps); for strides, all rows */
    int32_t sets;  /* sets of rows; 1 for strides */
    int64_t n, k;
    int64_t leaves;
    int64_t batches;    /* products of the same shape, computed at once; more than 1 only for strides */
    const int64_t *row; /* [leaves + 1], on the device, or NULL */
    const float *a, *b, *bias;
    enum tr_activation activation;
    float slope;
    float *c;
    int64_t c_leaf;                    /* floats between leaves */
    int64_t a_batch, b_batch, c_batch; /* between the matrices of products of a batch */
    int64_t a_m, a_k_step, b_k_step;   /* strides */
    int64_t b_n;                       /* strides, pixels */
    int64_t c_m;                       /* strides */
    int64_t images;                    /* pixels */
    int64_t a_image, b_image, c_image; /* pixels: a, c; taps: a, b */
    const int32_t *table;              /* pixels, taps */
};

/* The numbers of C that a group computes, the k of a slice, the numbers of a thread, and the rates of a unit
 * with one group alone and with several that share it, where that of the largest tile is 1. */
struct gpu_tile {
    int m, n, k, thread_m, thread_n;
    double alone, shared;
};

/* The tiles for products that the device's limits allow; NULL: there are fewer. */
const struct gpu_tile *gpu_product_tile(const struct gpu_info *info, int index);

/* Enqueues it. */
tr_status gpu_product_run(tr_device *device, const struct gpu_product *product);

/* The bias of a gradient of weights: per node, db = tree over microbatches of the sum chain over the rows
   of dy, each of which consists of `each` rows [width]. `leaves` is room for gpu_leaves(). */
tr_status gpu_sum_columns(tr_device *device, const struct tr_cut *cut, int64_t each, int64_t width,
                          const float *x, float *out, float *leaves);

#endif
