/* layer_norm (Ba et al. 2016). */
#include "nn/layers/common.h"
#include "nn/layers/table.h"

#include "base/alloc.h"
#include "base/fail.h"

enum { PER_EXAMPLE, PER_PIXEL };

struct options {
    int32_t per;
    float epsilon;
};

static const struct tr_choice units[] = {
    {.name = "example", .value = PER_EXAMPLE, .help = "all numbers of an example, or of a token"},
    {.name = "pixel",
     .value = PER_PIXEL,
     .help = "the channels of each pixel of an image, with a gain for each channel"},
    {.name = NULL},
};

static const struct tr_option table[] = {
    TR_EPSILON_OPTION(struct options),
    {.key = "per",
     .type = TR_OPTION_CHOICE,
     .offset = offsetof(struct options, per),
     .fallback = "example",
     .choices = units,
     .flags = TR_OPTION_QUIET,
     .help = "what is normalized together"},
};

/* The numbers that are normalized together: how many, and in how many places of an example. */
static int64_t width_of(const struct tr_layer *layer)
{
    const struct options *options = layer->options;
    return options->per == PER_PIXEL ? layer->out.size[2] : tr_shape_count(&layer->out);
}

static int64_t places_of(const struct tr_layer *layer)
{
    return tr_shape_count(&layer->out) / width_of(layer);
}

static tr_status build(struct tr_layer *layer, struct tr_builder *builder)
{
    const struct options *options = layer->options;
    char text[TR_SHAPE_TEXT];
    if (options->per == PER_PIXEL && (layer->in[0].rank != 3 || layer->in[0].sequence))
        return tr_fail(
            TR_EINVAL,
            "per: pixel wants images (height x width x channels), its input is %s; leave `per` out",
            tr_shape_text(&layer->in[0], text));
    layer->out = layer->in[0];
    layer->keeps_input = true;
    layer->flops = 8 * tr_shape_count(&layer->out);
    for (int i = 0; i < 2; i++) /* mean, inv */
        tr_layer_buffer(layer,
                        (struct tr_buffer){TR_PER_ROW, places_of(layer) * (int64_t)sizeof(float), 0, false});
    return tr_layer_scale(layer, builder, width_of(layer));
}

static tr_status forward(const struct tr_layer_call *call)
{
    const struct options *options = call->layer->options;
    struct tr_op_layer_norm_forward op = {
        .rows = call->rows * places_of(call->layer),
        .width = width_of(call->layer),
        .epsilon = options->epsilon,
        .x = call->x[0],
        .gamma = call->parameter[0],
        .beta = call->parameter[1],
        .y = call->y,
        .mean = call->buffer[0],
        .inv = call->buffer[1],
    };
    return tr_device_layer_norm_forward(call->device, &op);
}

static tr_status run_backward(const struct tr_layer_call *call, const struct tr_cut *cut)
{
    struct tr_op_layer_norm_backward op = {
        .width = width_of(call->layer),
        .x = call->x[0],
        .gamma = call->parameter[0],
        .mean = call->buffer[0],
        .inv = call->buffer[1],
        .dy = call->dy,
        .dx = call->dx[0],
        .dgamma = call->gradient[0],
        .dbeta = call->gradient[1],
        .cut = *cut,
    };
    return tr_device_layer_norm_backward(call->device, &op);
}

/* The rows of a microbatch are the places of its examples. */
static tr_status backward(const struct tr_layer_call *call)
{
    const int64_t places = places_of(call->layer);
    struct tr_cut cut = *call->cut;
    if (places == 1) return run_backward(call, &cut);
    int64_t *row = tr_alloc((size_t)cut.count + 1, sizeof *row);
    if (!row) return TR_ENOMEM;
    for (int32_t i = 0; i <= cut.count; i++) row[i] = cut.row[i] * places;
    cut.row = row;
    tr_status status = run_backward(call, &cut);
    tr_free(row);
    return status;
}

const struct tr_layer_class tr_layer_layer_norm = {
    .name = "layer_norm",
    .help = "normalizes each example, each token, or each pixel of an image",
    TR_ENTRY_OPTIONS(table, struct options),
    .inputs = 1,
    .by_row = true,
    .build = build,
    .forward = forward,
    .backward = backward,
};
