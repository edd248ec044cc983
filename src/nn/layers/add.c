/* add: the sum of the previous layer's output and that of a named earlier layer (a residual connection, He et
 * al. 2015). */
#include "nn/layers/table.h"

struct options {
    char *with;
};

static const struct tr_option table[] = {
    {TR_LAYER_SECOND_INPUT, TR_OPTION_STRING, offsetof(struct options, with), NULL, 0, 0, NULL,
     "name of the layer whose output is added"},
};

static tr_status build(struct tr_layer *layer, struct tr_builder *builder)
{
    (void)builder;
    char a[TR_SHAPE_TEXT], b[TR_SHAPE_TEXT];
    if (!tr_shape_equal(&layer->in[0], &layer->in[1]))
        return tr_fail(TR_EINVAL, "cannot add shapes %s and %s (of \"%s\"); make them equal",
                       tr_shape_text(&layer->in[0], a), tr_shape_text(&layer->in[1], b),
                       ((const struct options *)layer->options)->with);
    layer->out = layer->in[0];
    layer->flops = tr_shape_count(&layer->out);
    return TR_OK;
}

static tr_status forward(const struct tr_layer_call *call)
{
    struct tr_op_add op = {call->rows * tr_shape_count(&call->layer->out), call->x[0], call->x[1], call->y};
    return tr_device_add(call->device, &op);
}

static tr_status backward(const struct tr_layer_call *call)
{
    for (int k = 0; k < TR_LAYER_INPUTS; k++) {
        if (!call->dx[k]) continue;
        struct tr_op_scale copy = {call->rows * tr_shape_count(&call->layer->out), 1, call->dy, call->dx[k]};
        TR_TRY(tr_device_scale(call->device, &copy));
    }
    return TR_OK;
}

const struct tr_layer_class tr_layer_add = {
    .name = "add",
    .help = "residual connection: adds the output of an earlier layer",
    TR_LAYER_OPTIONS(table, struct options),
    .inputs = 2,
    .build = build,
    .forward = forward,
    .backward = backward,
};
