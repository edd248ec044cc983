/* instance_norm (Ulyanov et al. 2016): each channel of each image is normalized by its own mean and variance.
 * It is group_norm with a group for each channel. */
#include "nn/layers/common.h"
#include "nn/layers/table.h"

#include "base/fail.h"

struct options {
    float epsilon;
};

static const struct tr_option table[] = {
    TR_EPSILON_OPTION(struct options),
};

static tr_status build(struct tr_layer *layer, struct tr_builder *builder)
{
    const struct tr_shape *in = &layer->in[0];
    const int64_t channels = in->rank == 3 ? in->size[2] : 0;
    char text[TR_SHAPE_TEXT];
    if (in->sequence || in->rank != 3)
        return tr_fail(TR_EINVAL, "needs images (height x width x channels), its input is %s; use layer_norm",
                       tr_shape_text(in, text));
    if (in->size[0] * in->size[1] == 1)
        return tr_fail(TR_EINVAL,
                       "would make 0 of every number, as its input %s has one for each channel; "
                       "use layer_norm",
                       tr_shape_text(in, text));
    layer->out = *in;
    layer->keeps_input = true;
    layer->flops = 8 * tr_shape_count(&layer->out);
    for (int i = 0; i < 2; i++) /* mean, inv */
        tr_layer_buffer(layer, (struct tr_buffer){TR_PER_ROW, channels * (int64_t)sizeof(float), 0, false});
    return tr_layer_scale(layer, builder, channels);
}

static tr_status forward(const struct tr_layer_call *call)
{
    const struct options *options = call->layer->options;
    return tr_layer_group_norm_forward(call, tr_layer_channels(call->layer), options->epsilon);
}

static tr_status backward(const struct tr_layer_call *call)
{
    return tr_layer_group_norm_backward(call, tr_layer_channels(call->layer));
}

const struct tr_layer_class tr_layer_instance_norm = {
    .name = "instance_norm",
    .help = "normalizes each channel of each image",
    TR_ENTRY_OPTIONS(table, struct options),
    .inputs = 1,
    .by_row = true,
    .build = build,
    .forward = forward,
    .backward = backward,
};
