/* flatten: gives an image the shape of a vector; the numbers stay in place. */
#include "nn/layers/table.h"

static tr_status build(struct tr_layer *layer, struct tr_builder *builder)
{
    (void)builder;
    char text[TR_SHAPE_TEXT];
    if (layer->in[0].sequence && layer->in[0].rank < 2)
        return tr_fail(
            TR_EINVAL,
            "its input is a sequence (%s), which flatten leaves as it is; leave it out, or end the "
            "sequence with last, global_average_pool or global_max_pool",
            tr_shape_text(&layer->in[0], text));
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
