/* concat: several layers' outputs one after another: vectors, tokens, or images along their channels. */
#include "nn/layers/table.h"

struct options {
    struct tr_string_list with;
};

static const struct tr_option table[] = {
    TR_LAYER_WITH_OPTION(struct options,
                         "layers whose outputs are appended to the previous layer's output; or give `from`"),
};

static tr_status build(struct tr_layer *layer, struct tr_builder *builder)
{
    char a[TR_SHAPE_TEXT], b[TR_SHAPE_TEXT];
    struct tr_shape *out = &layer->out;
    *out = layer->in[0];
    for (int k = 1; k < layer->input_count; k++) {
        struct tr_shape other = layer->in[k];
        int last = out->rank - 1;
        bool fits = other.rank == out->rank && other.sequence == out->sequence;
        for (int i = 0; fits && i < last; i++) fits = other.size[i] == out->size[i];
        if (!fits)
            return tr_fail(TR_EINVAL,
                           "cannot join shapes %s and %s (of \"%s\"); all sizes but the last must be equal: "
                           "flatten images that meet vectors, and end sequences that do",
                           tr_shape_text(&layer->in[0], a), tr_shape_text(&layer->in[k], b),
                           tr_builder_input(builder, layer, k));
        out->size[last] += other.size[last];
    }
    return TR_OK;
}

static int64_t width_of(const struct tr_shape *shape)
{
    return shape->size[shape->rank - 1];
}

/* Rows of the call, times the pixels of an image. */
static int64_t rows_of(const struct tr_layer_call *call)
{
    return call->rows * (tr_shape_count(&call->layer->out) / width_of(&call->layer->out));
}

static tr_status forward(const struct tr_layer_call *call)
{
    struct tr_op_join_columns op = {rows_of(call), call->layer->input_count};
    for (int k = 0; k < op.parts; k++) {
        op.width[k] = width_of(&call->layer->in[k]);
        op.x[k] = call->x[k];
    }
    op.y = call->y;
    return tr_device_join_columns(call->device, &op);
}

static tr_status backward(const struct tr_layer_call *call)
{
    struct tr_op_split_columns op = {rows_of(call), call->layer->input_count};
    for (int k = 0; k < op.parts; k++) {
        op.width[k] = width_of(&call->layer->in[k]);
        op.y[k] = call->dx[k];
    }
    op.x = call->dy;
    return tr_device_split_columns(call->device, &op);
}

const struct tr_layer_class tr_layer_concat = {
    .name = "concat",
    .help = "several outputs one after another; images along their channels",
    TR_ENTRY_OPTIONS(table, struct options),
    .inputs = 2,
    .build = build,
    .forward = forward,
    .backward = backward,
};
