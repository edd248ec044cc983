/* multiply: two layers' outputs elementwise, or an image by one factor for each of its channels
 * (squeeze-and-excitation, Hu et al. 2018); gated layers use it (Shazeer 2020).
 */
#include "nn/layers/table.h"

struct options {
    struct tr_string_list with;
};

static const struct tr_option table[] = {
    TR_LAYER_WITH_OPTION(
        struct options,
        "the layer by whose output the previous layer's output is multiplied; or give `from`"),
};

/* Whether b [channels] or [1][1][channels] multiplies every pixel of an image a. */
static bool spreads(const struct tr_shape *a, const struct tr_shape *b)
{
    const int64_t count = tr_shape_count(b);
    if (a->rank != 3 || a->sequence || b->sequence || count != a->size[2]) return false;
    return b->rank == 1 || (b->rank == 3 && b->size[2] == count);
}

/* Which input is broadcast over the other one's pixels; the second where their shapes are equal. */
static int spread_of(const struct tr_layer *layer)
{
    return tr_shape_equal(&layer->in[0], &layer->in[1]) || spreads(&layer->in[0], &layer->in[1]) ? 1 : 0;
}

static int64_t spatial_of(const struct tr_layer *layer)
{
    if (tr_shape_equal(&layer->in[0], &layer->in[1])) return 1;
    return layer->out.size[0] * layer->out.size[1];
}

static tr_status build(struct tr_layer *layer, struct tr_builder *builder)
{
    const struct tr_shape *a = &layer->in[0], *b = &layer->in[1];
    char text[2][TR_SHAPE_TEXT];
    if (layer->input_count != 2)
        return tr_fail(TR_EINVAL, "multiplies two outputs, not %d; write one multiply after another",
                       layer->input_count);
    if (!tr_shape_equal(a, b) && !spreads(a, b) && !spreads(b, a))
        return tr_fail(
            TR_EINVAL,
            "cannot multiply shapes %s and %s (of \"%s\"); they must be equal, or one is an image and "
            "the other has one number for each of its channels",
            tr_shape_text(a, text[0]), tr_shape_text(b, text[1]), tr_builder_input(builder, layer, 1));
    layer->out = layer->in[1 - spread_of(layer)];
    layer->flops = tr_shape_count(&layer->out);
    layer->keeps_input = true;
    return TR_OK;
}

/* y = a * b, with b broadcast over the pixels. */
static tr_status multiply(const struct tr_layer_call *call, const float *a, const float *b, float *y)
{
    const int64_t spatial = spatial_of(call->layer);
    const struct tr_op_multiply op = {call->rows, spatial, tr_shape_count(&call->layer->out) / spatial,
                                      a,          b,       y};
    return tr_device_multiply(call->device, &op);
}

static tr_status forward(const struct tr_layer_call *call)
{
    const int spread = spread_of(call->layer);
    return multiply(call, call->x[1 - spread], call->x[spread], call->y);
}

static tr_status backward(const struct tr_layer_call *call)
{
    const int spread = spread_of(call->layer), whole = 1 - spread;
    const int64_t spatial = spatial_of(call->layer);
    if (call->dx[whole]) TR_TRY(multiply(call, call->dy, call->x[spread], call->dx[whole]));
    if (!call->dx[spread]) return TR_OK;
    if (spatial == 1) return multiply(call, call->dy, call->x[whole], call->dx[spread]);
    const struct tr_op_multiply_sum op = {
        call->rows, spatial,        tr_shape_count(&call->layer->out) / spatial,
        call->dy,   call->x[whole], call->dx[spread]};
    return tr_device_multiply_sum(call->device, &op);
}

const struct tr_layer_class tr_layer_multiply = {
    .name = "multiply",
    .help = "the product of two layers' outputs; of an image and a factor for each channel",
    TR_ENTRY_OPTIONS(table, struct options),
    .inputs = 2,
    .by_row = true,
    .build = build,
    .forward = forward,
    .backward = backward,
};
