/* tokens: an image as a sequence, row by row: each pixel is a token, and its channels are the token's
   vector. After a convolution whose stride equals its kernel, the tokens are the patches of a vision
   transformer (Dosovitskiy et al. 2021). */
#include "nn/layers/table.h"

static tr_status build(struct tr_layer *layer, struct tr_builder *builder)
{
    const struct tr_shape *in = &layer->in[0];
    char text[TR_SHAPE_TEXT];
    if (in->rank != 3 || in->sequence)
        return tr_fail(TR_EINVAL, "needs an image, its input is %s; use it on images, or after reshape",
                       tr_shape_text(in, text));
    layer->out = (struct tr_shape){1, {in->size[2]}, true};
    layer->alias = true;
    tr_builder_tokens(builder, layer, in->size[0] * in->size[1]);
    return TR_OK;
}

const struct tr_layer_class tr_layer_tokens = {
    .name = "tokens",
    .help = "an image as a sequence of its pixels, row by row; the channels are the vector of a pixel",
    .inputs = 1,
    .build = build,
};
