/* Adapters of low rank: forward and backward beside one product of a layer. */
#include "nn/layers/adapter.h"

#include "base/fail.h"

/* Adapters use other dropout masks than the layer, and than each other: layers have lower numbers. */
#define ADAPTER_MASKS 65536

static uint32_t mask_of(const struct tr_layer_call *call, const struct tr_adapter *adapter)
{
    return call->layer_number + ADAPTER_MASKS * (uint32_t)adapter->down;
}

/* Applies dropout to x [rows][in], the layer's input or its gradient. */
static tr_status drop(const struct tr_layer_call *call, const struct tr_adapter *adapter, const float *x,
                      float *y)
{
    const struct tr_op_dropout op = {
        .examples = call->examples,
        .width = adapter->beside.in,
        .offset = call->layer->in[0].sequence ? call->offset : NULL,
        .x = x,
        .y = y,
        .rate = call->layer->adapters.dropout,
        .key = {call->dropout_key[0], call->dropout_key[1]},
        .layer = mask_of(call, adapter),
        .first_example = call->first_example,
        .scalars = call->scalars,
    };
    return tr_device_dropout(call->device, &op);
}

static bool drops(const struct tr_layer_call *call)
{
    return call->training && call->layer->adapters.dropout > 0;
}

/* [rows][rank] of an adapter: its scaled product with a. */
static float *hidden_of(const struct tr_layer_call *call, const struct tr_adapter *adapter)
{
    return (float *)call->buffer[call->layer->adapters.hidden] + call->rows * adapter->before;
}

/* The columns of a product in three parts, the second of which is the adapter's; parts may be empty. */
static void cut_columns(const struct tr_projection *beside, int64_t width[TR_JOIN_PARTS])
{
    width[0] = beside->column;
    width[1] = beside->out;
    width[2] = beside->full - beside->column - beside->out;
}

static tr_status add(const struct tr_layer_call *call, int64_t count, float *sum, const float *more)
{
    const struct tr_op_add op = {count, sum, more, sum};
    return tr_device_add(call->device, &op);
}

static tr_status multiply(const struct tr_layer_call *call, int64_t in, int64_t out, const float *x,
                          const float *w, float *y)
{
    const struct tr_op_dense_forward op = {
        .rows = call->rows, .in = in, .out = out, .x = x, .w = w, .y = y, .activation = TR_ACT_NONE};
    return tr_device_dense_forward(call->device, &op);
}

static tr_status scale(const struct tr_layer_call *call, float *x)
{
    const int64_t count = call->rows * call->layer->adapters.rank;
    const struct tr_op_scale op = {count, call->layer->adapters.scale, x, x};
    return tr_device_scale(call->device, &op);
}

static tr_status go_forward(const struct tr_layer_call *call, const struct tr_adapter *adapter,
                            const float *x, float *y)
{
    const struct tr_projection *beside = &adapter->beside;
    const int64_t rank = call->layer->adapters.rank;
    float *hidden = hidden_of(call, adapter), *work = call->buffer[call->layer->adapters.forward];
    if (drops(call)) {
        TR_TRY(drop(call, adapter, x, work));
        x = work;
    }
    TR_TRY(multiply(call, beside->in, rank, x, call->parameter[adapter->down], hidden));
    TR_TRY(scale(call, hidden));
    TR_TRY(multiply(call, rank, beside->out, hidden, call->parameter[adapter->down + 1], work));
    if (beside->out < beside->full) {
        const int64_t most = beside->in > beside->out ? beside->in : beside->out;
        struct tr_op_join_columns join = {
            .rows = call->rows, .parts = 3, .x = {NULL, work, NULL}, .y = work + call->rows * most};
        cut_columns(beside, join.width);
        TR_TRY(tr_device_join_columns(call->device, &join));
        work = join.y;
    }
    return add(call, call->rows * beside->full, y, work);
}

tr_status tr_adapters_forward(const struct tr_layer_call *call, int weights, const float *x, float *y)
{
    for (int k = 0; k < call->layer->adapters.count; k++) {
        const struct tr_adapter *adapter = &call->layer->adapters.item[k];
        if (adapter->beside.weights == weights) TR_TRY(go_forward(call, adapter, x, y));
    }
    return TR_OK;
}

static tr_status learn(const struct tr_layer_call *call, int64_t in, int64_t out, const float *x,
                       const float *dy, float *dw)
{
    const struct tr_op_dense_backward_weights op = {
        .in = in, .out = out, .x = x, .dy = dy, .dw = dw, .cut = *call->cut};
    return tr_device_dense_backward_weights(call->device, &op);
}

static tr_status go_backward(const struct tr_layer_call *call, const struct tr_adapter *adapter,
                             const float *x, const float *dy, float *dx)
{
    const struct tr_projection *beside = &adapter->beside;
    const int64_t rank = call->layer->adapters.rank, rows = call->rows;
    /* Its gradient in the middle, that of its input, its columns of dy. */
    float *middle = call->buffer[call->layer->adapters.backward], *work = middle + rows * rank;
    if (beside->out < beside->full) {
        float *own = work + rows * beside->in;
        struct tr_op_split_columns split = {.rows = rows, .parts = 3, .x = dy, .y = {NULL, own, NULL}};
        cut_columns(beside, split.width);
        TR_TRY(tr_device_split_columns(call->device, &split));
        dy = own;
    }
    TR_TRY(learn(call, rank, beside->out, hidden_of(call, adapter), dy, call->gradient[adapter->down + 1]));
    const struct tr_op_dense_backward_data up = {
        rows, rank, beside->out, dy, call->parameter[adapter->down + 1], middle};
    TR_TRY(tr_device_dense_backward_data(call->device, &up));
    TR_TRY(scale(call, middle));
    if (drops(call)) {
        TR_TRY(drop(call, adapter, x, work));
        x = work;
    }
    TR_TRY(learn(call, beside->in, rank, x, middle, call->gradient[adapter->down]));
    if (!dx) return TR_OK;
    const struct tr_op_dense_backward_data down = {
        rows, beside->in, rank, middle, call->parameter[adapter->down], work};
    TR_TRY(tr_device_dense_backward_data(call->device, &down));
    if (drops(call)) TR_TRY(drop(call, adapter, work, work));
    return add(call, rows * beside->in, dx, work);
}

tr_status tr_adapters_backward(const struct tr_layer_call *call, int weights, const float *x, const float *dy,
                               float *dx)
{
    for (int k = 0; k < call->layer->adapters.count; k++) {
        const struct tr_adapter *adapter = &call->layer->adapters.item[k];
        if (adapter->beside.weights == weights) TR_TRY(go_backward(call, adapter, x, dy, dx));
    }
    return TR_OK;
}
