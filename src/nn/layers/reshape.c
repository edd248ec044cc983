/* reshape: gives a vector the shape of an image; the numbers stay in place. */
#include "nn/layers/table.h"

struct options {
    struct tr_int_list shape;
};

static const struct tr_option table[] = {
    {"shape", TR_OPTION_INT_LIST, offsetof(struct options, shape), NULL, 1, 1 << 24, NULL,
     "height, width, channels"},
};

static tr_status build(struct tr_layer *layer, struct tr_builder *builder)
{
    const struct options *options = layer->options;
    const struct tr_shape *in = &layer->in[0];
    char have[TR_SHAPE_TEXT], want[TR_SHAPE_TEXT];
    (void)builder;
    layer->out = (struct tr_shape){options->shape.count, {0}, false};
    if (options->shape.count != 3)
        return tr_fail(TR_EINVAL, "shape has %d sizes; an image has height, width and channels",
                       (int)options->shape.count);
    for (int32_t i = 0; i < 3; i++) layer->out.size[i] = options->shape.item[i];
    TR_TRY(tr_shape_check(&layer->out, "shape"));
    if (in->sequence || tr_shape_count(in) != tr_shape_count(&layer->out))
        return tr_fail(TR_EINVAL, "its input is %s, which has not as many numbers as %s",
                       tr_shape_text(in, have), tr_shape_text(&layer->out, want));
    layer->alias = true;
    return TR_OK;
}

const struct tr_layer_class tr_layer_reshape = {
    .name = "reshape",
    .help = "a vector as an image",
    TR_ENTRY_OPTIONS(table, struct options),
    .inputs = 1,
    .build = build,
};
