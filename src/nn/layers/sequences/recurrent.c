#include "nn/layers/sequences/recurrent.h"

#include "base/fail.h"
#include "nn/layers/common.h"

tr_status tr_recurrent_build(struct tr_layer *layer, struct tr_builder *builder,
                             const struct tr_recurrent_options *options, int64_t gates, int biases)
{
    TR_TRY(tr_layer_wants_sequence(layer));
    const int64_t in = tr_shape_count(&layer->in[0]), hidden = options->units, columns = gates * hidden;
    const int64_t wide = columns * (int64_t)sizeof(float), narrow = hidden * (int64_t)sizeof(float);
    tr_layer_buffer(layer, (struct tr_buffer){TR_PER_ROW, wide, 0, false});   /* TR_RECURRENT_GATES */
    tr_layer_buffer(layer, (struct tr_buffer){TR_PER_ROW, narrow, 0, false}); /* TR_RECURRENT_STATE */
    tr_layer_buffer(layer, (struct tr_buffer){TR_PER_ROW, wide, 0, true}); /* TR_RECURRENT_GATE_GRADIENTS */
    layer->out = (struct tr_shape){1, {hidden}, true};
    layer->flops = 2 * columns * (in + hidden);
    layer->keeps_input = layer->keeps_output = true;
    struct tr_initializer weights, recurrent, bias;
    TR_TRY(tr_initializer_read(options->weights, "glorot_uniform", &weights));
    TR_TRY(tr_initializer_read(options->recurrent_weights, "glorot_uniform", &recurrent));
    TR_TRY(tr_initializer_read(options->bias, "0", &bias));
    const struct tr_shape w = {2, {in, columns}, false}, u = {2, {hidden, columns}, false};
    const struct tr_shape b = {1, {columns}, false};
    TR_TRY(tr_builder_parameter(builder, layer, "weights", TR_PARAMETER_WEIGHT, w, &weights, in, hidden));
    TR_TRY(tr_builder_parameter(builder, layer, "recurrent_weights", TR_PARAMETER_WEIGHT, u, &recurrent,
                                hidden, hidden));
    TR_TRY(tr_builder_parameter(builder, layer, "bias", TR_PARAMETER_BIAS, b, &bias, in, hidden));
    if (biases == 1) return TR_OK;
    return tr_builder_parameter(builder, layer, "recurrent_bias", TR_PARAMETER_BIAS, b, &bias, hidden,
                                hidden);
}

static int64_t columns_of(const struct tr_layer_call *call, int64_t gates)
{
    return gates * tr_shape_count(&call->layer->out);
}

tr_status tr_recurrent_input(const struct tr_layer_call *call, int64_t gates, float *y)
{
    const struct tr_op_dense_forward input = {
        .rows = call->rows,
        .in = tr_shape_count(&call->layer->in[0]),
        .out = columns_of(call, gates),
        .x = call->x[0],
        .w = call->parameter[TR_RECURRENT_INPUT],
        .y = y,
        .activation = TR_ACT_NONE,
    };
    return tr_device_dense_forward(call->device, &input);
}

tr_status tr_recurrent_input_backward(const struct tr_layer_call *call, int64_t gates, const float *dgates)
{
    const int64_t in = tr_shape_count(&call->layer->in[0]), columns = columns_of(call, gates);
    const struct tr_op_dense_backward_weights weights = {
        .in = in,
        .out = columns,
        .x = call->x[0],
        .dy = dgates,
        .dw = call->gradient[TR_RECURRENT_INPUT],
        .db = call->gradient[TR_RECURRENT_BIAS],
        .cut = *call->cut,
    };
    TR_TRY(tr_device_dense_backward_weights(call->device, &weights));
    if (!call->dx[0]) return TR_OK;
    const struct tr_op_dense_backward_data data = {
        call->rows, in, columns, dgates, call->parameter[TR_RECURRENT_INPUT], call->dx[0]};
    return tr_device_dense_backward_data(call->device, &data);
}
