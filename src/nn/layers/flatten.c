/* flatten: gives an image the shape of a vector; the bytes stay where they are. */
#include "nn/layers/table.h"

static tr_status build(struct tr_layer *layer, struct tr_builder *builder)
{
    (void)builder;
    layer->out = (struct tr_shape){1, {tr_shape_count(&layer->in[0])}, layer->in[0].sequence};
    layer->alias = true;
    return TR_OK;
}

const struct tr_layer_class tr_layer_flatten = {
    .name = "flatten",
    .help = "height x width x channels as one vector",
    .inputs = 1,
    .build = build,
};
