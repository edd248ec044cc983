/* conv: two-dimensional convolution over images. */
#include "nn/layers/common.h"
#include "nn/layers/table.h"
#include "nn/layers/window.h"

#include "base/alloc.h"

struct options {
    int64_t filters;
    struct tr_window_options window;
    struct tr_affine_options affine;
};

static const struct tr_option table[] = {
    {"filters", TR_OPTION_INT64, offsetof(struct options, filters), NULL, 1, 1 << 20, NULL,
     "number of output channels"},
    {"kernel", TR_OPTION_PAIR, offsetof(struct options, window.kernel), NULL, 1, 1024, NULL,
     "height and width"},
    {"stride", TR_OPTION_PAIR, offsetof(struct options, window.stride), "1", 1, 1024, NULL,
     "distance of neighbouring windows"},
    {"dilation", TR_OPTION_PAIR, offsetof(struct options, window.dilation), "1", 1, 1024, NULL,
     "distance of neighbouring taps"},
    {"padding", TR_OPTION_CHOICE, offsetof(struct options, window.padding), "valid", 0, 0, tr_padding_choices,
     "valid, or same: as many outputs as inputs / stride"},
    {"pad", TR_OPTION_PAIR, offsetof(struct options, window.pad), "-1", -1, 1024, NULL,
     "rows and columns on every side, instead of padding"},
    TR_AFFINE_OPTIONS(struct options),
};

static tr_status build(struct tr_layer *layer, struct tr_builder *builder)
{
    const struct options *options = layer->options;
    struct tr_window *window = layer->state = tr_alloc(1, sizeof *window);
    if (!window) return TR_ENOMEM;
    TR_TRY(tr_window_make(&options->window, &layer->in[0], window));
    int64_t taps = (int64_t)window->kernel_h * window->kernel_w, channels = layer->in[0].size[2];
    layer->out = (struct tr_shape){3, {window->out_h, window->out_w, options->filters}, false};
    layer->flops = 2 * taps * channels * tr_shape_count(&layer->out);
    struct tr_shape weights = {4, {window->kernel_h, window->kernel_w, channels, options->filters}, false};
    return tr_affine_build(layer, builder, &options->affine, weights, options->filters, taps * channels,
                           taps * options->filters);
}

static tr_status forward(const struct tr_layer_call *call)
{
    const struct options *options = call->layer->options;
    struct tr_op_conv_forward op = {
        .rows = call->rows,
        .in_c = (int32_t)call->layer->in[0].size[2],
        .out_c = (int32_t)options->filters,
        .window = *(const struct tr_window *)call->layer->state,
        .x = call->x[0],
        .w = call->parameter[0],
        .b = tr_affine_bias(call),
        .y = call->y,
        .activation = (enum tr_activation)options->affine.activation,
        .slope = options->affine.slope,
    };
    return tr_device_conv_forward(call->device, &op);
}

static tr_status backward(const struct tr_layer_call *call)
{
    const struct options *options = call->layer->options;
    TR_TRY(tr_affine_activation_backward(call, &options->affine));
    struct tr_op_conv_backward_weights weights = {
        .in_c = (int32_t)call->layer->in[0].size[2],
        .out_c = (int32_t)options->filters,
        .window = *(const struct tr_window *)call->layer->state,
        .x = call->x[0],
        .dy = call->dy,
        .dw = call->gradient[0],
        .db = tr_affine_bias_gradient(call),
        .cut = *call->cut,
    };
    TR_TRY(tr_device_conv_backward_weights(call->device, &weights));
    if (!call->dx[0]) return TR_OK;
    struct tr_op_conv_backward_data data = {
        .rows = call->rows,
        .in_c = weights.in_c,
        .out_c = weights.out_c,
        .window = weights.window,
        .dy = call->dy,
        .w = call->parameter[0],
        .dx = call->dx[0],
    };
    return tr_device_conv_backward_data(call->device, &data);
}

const struct tr_layer_class tr_layer_conv = {
    .name = "conv",
    .help = "two-dimensional convolution over height x width x channels",
    TR_LAYER_OPTIONS(table, struct options),
    .inputs = 1,
    .build = build,
    .forward = forward,
    .backward = backward,
};
