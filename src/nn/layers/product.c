#include "nn/layers/product.h"

#include "base/fail.h"
#include "nn/layers/adapter.h"

tr_status tr_layer_product_forward(const struct tr_layer_call *call, const struct tr_layer_product *product,
                                   const float *x, float *y)
{
    const struct tr_op_dense_forward op = {
        .rows = call->rows,
        .in = product->in,
        .out = product->out,
        .x = x,
        .w = call->parameter[product->weights],
        .b = product->bias < 0 ? NULL : call->parameter[product->bias],
        .y = y,
        .activation = TR_ACT_NONE,
    };
    TR_TRY(tr_device_dense_forward(call->device, &op));
    return tr_adapters_forward(call, product->weights, x, y);
}

tr_status tr_layer_product_backward(const struct tr_layer_call *call, const struct tr_layer_product *product,
                                    const float *x, const float *dy, float *dx)
{
    const struct tr_op_dense_backward_weights op = {
        .in = product->in,
        .out = product->out,
        .x = x,
        .dy = dy,
        .dw = call->gradient[product->weights],
        .db = product->bias < 0 ? NULL : call->gradient[product->bias],
        .cut = *call->cut,
    };
    if (op.dw) TR_TRY(tr_device_dense_backward_weights(call->device, &op));
    const struct tr_op_dense_backward_data data = {
        call->rows, product->in, product->out, dy, call->parameter[product->weights], dx};
    if (dx) TR_TRY(tr_device_dense_backward_data(call->device, &data));
    return tr_adapters_backward(call, product->weights, x, dy, dx);
}
