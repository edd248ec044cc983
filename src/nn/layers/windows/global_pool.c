/* global_average_pool and global_max_pool: one vector for each image or sequence: the mean or the maximum
 * of each channel over all pixels or tokens.
 */
#include "nn/layers/table.h"

static tr_status build(struct tr_layer *layer)
{
    const struct tr_shape *in = &layer->in[0];
    char text[TR_SHAPE_TEXT];
    bool image = in->rank == 3 && !in->sequence, vectors = in->rank == 1 && in->sequence;
    if (!image && !vectors)
        return tr_fail(TR_EINVAL, "needs an image or a sequence of vectors, its input is %s",
                       tr_shape_text(in, text));
    layer->out = (struct tr_shape){1, {in->size[in->rank - 1]}, false};
    layer->flops = tr_shape_count(in);
    return TR_OK;
}

static tr_status build_average(struct tr_layer *layer, struct tr_builder *builder)
{
    (void)builder;
    return build(layer);
}

static tr_status build_max(struct tr_layer *layer, struct tr_builder *builder)
{
    (void)builder;
    TR_TRY(build(layer));
    /* Which pixel or token was the maximum. */
    tr_layer_buffer(
        layer,
        (struct tr_buffer){TR_PER_EXAMPLE, tr_shape_count(&layer->out) * (int64_t)sizeof(int32_t), 0, false});
    return TR_OK;
}

static int64_t spatial_of(const struct tr_layer *layer)
{
    const struct tr_shape *in = &layer->in[0];
    return in->sequence ? 0 : in->size[0] * in->size[1];
}

static tr_status run_forward(const struct tr_layer_call *call, enum tr_pool kind)
{
    struct tr_op_pool_rows_forward op = {
        .examples = call->examples,
        .spatial = spatial_of(call->layer),
        .width = call->layer->out.size[0],
        .offset = call->layer->in[0].sequence ? call->offset : NULL,
        .kind = kind,
        .x = call->x[0],
        .y = call->y,
        .taken = kind == TR_POOL_MAX && call->training ? call->buffer[0] : NULL,
    };
    return tr_device_pool_rows_forward(call->device, &op);
}

static tr_status run_backward(const struct tr_layer_call *call, enum tr_pool kind)
{
    struct tr_op_pool_rows_backward op = {
        .examples = call->examples,
        .spatial = spatial_of(call->layer),
        .width = call->layer->out.size[0],
        .offset = call->layer->in[0].sequence ? call->offset : NULL,
        .kind = kind,
        .dy = call->dy,
        .taken = call->buffer[0],
        .dx = call->dx[0],
    };
    return tr_device_pool_rows_backward(call->device, &op);
}

static tr_status forward_average(const struct tr_layer_call *call)
{
    return run_forward(call, TR_POOL_AVERAGE);
}

static tr_status backward_average(const struct tr_layer_call *call)
{
    return run_backward(call, TR_POOL_AVERAGE);
}

static tr_status forward_max(const struct tr_layer_call *call)
{
    return run_forward(call, TR_POOL_MAX);
}

static tr_status backward_max(const struct tr_layer_call *call)
{
    return run_backward(call, TR_POOL_MAX);
}

const struct tr_layer_class tr_layer_global_average_pool = {
    .name = "global_average_pool",
    .help = "mean of each channel over an image, or over the tokens of a sequence",
    .inputs = 1,
    .build = build_average,
    .forward = forward_average,
    .backward = backward_average,
};

const struct tr_layer_class tr_layer_global_max_pool = {
    .name = "global_max_pool",
    .help = "greatest value of each channel over an image, or over the tokens of a sequence",
    .inputs = 1,
    .build = build_max,
    .forward = forward_max,
    .backward = backward_max,
};
