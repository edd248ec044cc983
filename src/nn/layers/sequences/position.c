/* position: adds a learned vector for its position in the example to each token (Gehring et al. 2017). */
#include "nn/layers/common.h"
#include "nn/layers/table.h"

struct options {
    int64_t length;
    const tr_config *weights;
};

static const struct tr_option table[] = {
    {"length", TR_OPTION_INT64, offsetof(struct options, length), NULL, 1, 1 << 24, NULL,
     "number of vectors, usually the tokens of the longest example; later tokens share the last one"},
    {"weights", TR_OPTION_NODE, offsetof(struct options, weights), "{uniform: 0.05}", 0, 0, NULL,
     "initializer of the vectors"},
};

static tr_status build(struct tr_layer *layer, struct tr_builder *builder)
{
    const struct options *options = layer->options;
    struct tr_initializer weights;
    TR_TRY(tr_layer_wants_sequence(layer));
    const int64_t width = tr_shape_count(&layer->in[0]);
    layer->out = layer->in[0];
    layer->flops = width;
    TR_TRY(tr_initializer_read(options->weights, "{uniform: 0.05}", &weights));
    return tr_builder_parameter(builder, layer, "weights", TR_PARAMETER_WEIGHT,
                                (struct tr_shape){2, {options->length, width}, false}, &weights,
                                options->length, width);
}

static tr_status forward(const struct tr_layer_call *call)
{
    const struct options *options = call->layer->options;
    const struct tr_op_position_forward op = {
        .examples = call->examples,
        .width = tr_shape_count(&call->layer->out),
        .length = options->length,
        .offset = call->offset,
        .table = call->parameter[0],
        .x = call->x[0],
        .y = call->y,
    };
    return tr_device_position_forward(call->device, &op);
}

/* Uses the table's rows after those of the earlier tokens. */
static tr_status extend(const struct tr_layer_call *call)
{
    const struct options *options = call->layer->options;
    const int64_t width = tr_shape_count(&call->layer->out), last = options->length - 1;
    const int64_t first = call->past->rows < last ? call->past->rows : last;
    const struct tr_op_position_forward op = {
        .examples = call->examples,
        .width = width,
        .length = options->length - first,
        .offset = call->offset,
        .table = call->parameter[0] + first * width,
        .x = call->x[0],
        .y = call->y,
    };
    return tr_device_position_forward(call->device, &op);
}

static int64_t longest(const struct tr_layer *layer)
{
    return ((const struct options *)layer->options)->length;
}

static tr_status backward(const struct tr_layer_call *call)
{
    const struct options *options = call->layer->options;
    const int64_t width = tr_shape_count(&call->layer->out);
    const struct tr_op_position_backward op = {
        .width = width,
        .length = options->length,
        .offset = call->offset,
        .dy = call->dy,
        .dtable = call->gradient[0],
        .cut = *call->example_cut,
    };
    TR_TRY(tr_device_position_backward(call->device, &op));
    if (!call->dx[0]) return TR_OK;
    const struct tr_op_scale copy = {call->rows * width, 1, call->dy, call->dx[0]};
    return tr_device_scale(call->device, &copy);
}

const struct tr_layer_class tr_layer_position = {
    .name = "position",
    .looks_up = true,
    .help = "adds a learned vector for the position of each token",
    TR_ENTRY_OPTIONS(table, struct options),
    .inputs = 1,
    .build = build,
    .forward = forward,
    .extend = extend,
    .longest = longest,
    .backward = backward,
};
