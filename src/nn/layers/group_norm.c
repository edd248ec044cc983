/* group_norm (Wu, He 2018): groups of channels of each example, or token, are normalized by their own mean
 * and variance; unlike batch_norm it does not depend on the batch.
 */
#include "nn/layers/common.h"
#include "nn/layers/table.h"

#include "base/fail.h"

#include <inttypes.h>

struct options {
    int64_t groups;
    float epsilon;
};

static const struct tr_option table[] = {
    {"groups", TR_OPTION_INT64, offsetof(struct options, groups), NULL, 1, 1 << 20, NULL,
     "number of groups of neighbouring channels; it divides the channels"},
    TR_EPSILON_OPTION(struct options),
};

static tr_status build(struct tr_layer *layer, struct tr_builder *builder)
{
    const struct options *options = layer->options;
    layer->out = layer->in[0];
    layer->keeps_input = true;
    layer->flops = 8 * tr_shape_count(&layer->out);
    if (tr_layer_channels(layer) % options->groups)
        return tr_fail(TR_EINVAL,
                       "%" PRId64 " channels are not a multiple of %" PRId64 " groups; choose a divisor",
                       tr_layer_channels(layer), options->groups);
    for (int i = 0; i < 2; i++) /* mean, inv */
        tr_layer_buffer(layer,
                        (struct tr_buffer){TR_PER_ROW, options->groups * (int64_t)sizeof(float), 0, false});
    return tr_layer_scale(layer, builder, tr_layer_channels(layer));
}

static tr_status forward(const struct tr_layer_call *call)
{
    const struct options *options = call->layer->options;
    return tr_layer_group_norm_forward(call, options->groups, options->epsilon);
}

static tr_status backward(const struct tr_layer_call *call)
{
    const struct options *options = call->layer->options;
    return tr_layer_group_norm_backward(call, options->groups);
}

const struct tr_layer_class tr_layer_group_norm = {
    .name = "group_norm",
    .help = "normalizes groups of channels of each example, or each token",
    TR_ENTRY_OPTIONS(table, struct options),
    .inputs = 1,
    .by_row = true,
    .build = build,
    .forward = forward,
    .backward = backward,
};
