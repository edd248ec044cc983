/* add: the sum of several layers' outputs; of the previous one's and an earlier one's it is a residual
 * connection (He et al. 2015). */
#include "nn/layers/table.h"

struct options {
    struct tr_string_list with;
};

static const struct tr_option table[] = {
    TR_LAYER_WITH_OPTION(struct options,
                         "layers whose outputs are added to the previous layer's output; or give `from`"),
};

static tr_status build(struct tr_layer *layer, struct tr_builder *builder)
{
    (void)builder;
    char a[TR_SHAPE_TEXT], b[TR_SHAPE_TEXT];
    for (int k = 1; k < layer->input_count; k++)
        if (!tr_shape_equal(&layer->in[0], &layer->in[k]))
            return tr_fail(TR_EINVAL, "cannot add shapes %s and %s (of \"%s\"); make them equal",
                           tr_shape_text(&layer->in[0], a), tr_shape_text(&layer->in[k], b),
                           tr_builder_input(builder, layer, k));
    layer->out = layer->in[0];
    layer->flops = (layer->input_count - 1) * tr_shape_count(&layer->out);
    return TR_OK;
}

/* Adds from the first input to the last. */
static tr_status forward(const struct tr_layer_call *call)
{
    int64_t count = call->rows * tr_shape_count(&call->layer->out);
    for (int k = 1; k < call->layer->input_count; k++) {
        struct tr_op_add op = {count, k == 1 ? call->x[0] : call->y, call->x[k], call->y};
        TR_TRY(tr_device_add(call->device, &op));
    }
    return TR_OK;
}

static tr_status backward(const struct tr_layer_call *call)
{
    for (int k = 0; k < call->layer->input_count; k++) {
        if (!call->dx[k]) continue;
        struct tr_op_scale copy = {call->rows * tr_shape_count(&call->layer->out), 1, call->dy, call->dx[k]};
        TR_TRY(tr_device_scale(call->device, &copy));
    }
    return TR_OK;
}

static enum tr_tail_kind tail(const struct tr_layer *layer, struct tr_layer_tail *to)
{
    (void)to;
    return layer->input_count == 2 ? TR_TAIL_SUM : TR_TAIL_NONE;
}

const struct tr_layer_class tr_layer_add = {
    .name = "add",
    .help = "the sum of several outputs, for instance a residual connection",
    TR_ENTRY_OPTIONS(table, struct options),
    .inputs = 2,
    .by_row = true,
    .fusing.tail = tail,
    .build = build,
    .forward = forward,
    .backward = backward,
};
