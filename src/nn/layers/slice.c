/* slice: some of the numbers of a vector, or of each token's. */
#include "nn/layers/table.h"

#include <inttypes.h>

struct options {
    int64_t begin, size;
};

static const struct tr_option table[] = {
    {"begin", TR_OPTION_INT64, offsetof(struct options, begin), NULL, 0, TR_OPTION_WHOLE, NULL,
     "index of the first number, from 0"},
    {"size", TR_OPTION_INT64, offsetof(struct options, size), NULL, 1, TR_OPTION_WHOLE, NULL, "how many"},
};

static tr_status build(struct tr_layer *layer, struct tr_builder *builder)
{
    const struct options *options = layer->options;
    const struct tr_shape *in = &layer->in[0];
    char text[TR_SHAPE_TEXT];
    (void)builder;
    if (in->rank != 1)
        return tr_fail(TR_EINVAL, "wants vectors, its input is %s; flatten images first",
                       tr_shape_text(in, text));
    if (options->begin > in->size[0] || options->size > in->size[0] - options->begin)
        return tr_fail(TR_EINVAL, "takes numbers %" PRId64 " to %" PRId64 ", its input has %" PRId64,
                       options->begin, options->begin + options->size - 1, in->size[0]);
    layer->out = (struct tr_shape){1, {options->size}, in->sequence};
    return TR_OK;
}

/* The widths before the slice, of the slice, and after it. */
static void widths_of(const struct tr_layer *layer, int64_t width[TR_JOIN_PARTS])
{
    const struct options *options = layer->options;
    width[0] = options->begin;
    width[1] = options->size;
    width[2] = layer->in[0].size[0] - options->begin - options->size;
}

static tr_status forward(const struct tr_layer_call *call)
{
    struct tr_op_split_columns op = {
        .rows = call->rows, .parts = 3, .x = call->x[0], .y = {NULL, call->y, NULL}};
    widths_of(call->layer, op.width);
    return tr_device_split_columns(call->device, &op);
}

static tr_status backward(const struct tr_layer_call *call)
{
    struct tr_op_join_columns op = {
        .rows = call->rows, .parts = 3, .x = {NULL, call->dy, NULL}, .y = call->dx[0]};
    widths_of(call->layer, op.width);
    return tr_device_join_columns(call->device, &op);
}

const struct tr_layer_class tr_layer_slice = {
    .name = "slice",
    .help = "some of the numbers of a vector",
    TR_ENTRY_OPTIONS(table, struct options),
    .inputs = 1,
    .build = build,
    .forward = forward,
    .backward = backward,
};
