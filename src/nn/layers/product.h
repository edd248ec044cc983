/* Products of rows with a matrix of parameters inside a layer, as attention has four. */
#ifndef TR_NN_LAYERS_PRODUCT_H
#define TR_NN_LAYERS_PRODUCT_H

#include "nn/layer.h"

struct tr_layer_product {
    int64_t in, out; /* numbers of a row */
    int weights;     /* the layer's parameter [in][out] */
    int bias;        /* the layer's parameter [out]; -1: none */
};

/* y [rows][out] = x [rows][in] * weights + bias, and what adapters beside `weights` add. */
tr_status tr_layer_product_forward(const struct tr_layer_call *call, const struct tr_layer_product *product,
                                   const float *x, float *y);
/* The gradients of weights, bias and adapters for dy [rows][out], where the call wants them, and of x in
   dx [rows][in]; NULL: not wanted. */
tr_status tr_layer_product_backward(const struct tr_layer_call *call, const struct tr_layer_product *product,
                                    const float *x, const float *dy, float *dx);

#endif
