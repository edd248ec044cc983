/* The computations of a layer with adapters beside its own products (nn/adapters.h). */
#ifndef TR_NN_LAYERS_ADAPTER_H
#define TR_NN_LAYERS_ADAPTER_H

#include "nn/layer.h"

/* Adds the adapters' products to y [rows][full], the layer's product of x with its parameter number
   `weights`. Does nothing where there are none. */
tr_status tr_adapters_forward(const struct tr_layer_call *call, int weights, const float *x, float *y);
/* The gradients of these adapters for dy [rows][full]; adds their part to dx [rows][in], which already has
   the layer's; NULL: not wanted. */
tr_status tr_adapters_backward(const struct tr_layer_call *call, int weights, const float *x, const float *dy,
                               float *dx);

#endif
