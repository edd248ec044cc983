/* conv_transpose: the transposed convolution, which enlarges images. Its forward pass is the input
 * gradient of a convolution from its output to its input, and its backward pass is that convolution; the
 * same operations compute them.
 */
#include "nn/layers/common.h"
#include "nn/layers/table.h"
#include "nn/layers/windows/window.h"

#include "base/alloc.h"

struct options {
    int64_t filters, groups;
    struct tr_window_options window;
    const tr_config *weights;
};

static const struct tr_option table[] = {
    {"filters", TR_OPTION_INT64, offsetof(struct options, filters), NULL, 1, 1 << 20, NULL,
     "number of output channels"},
    {"kernel", TR_OPTION_PAIR, offsetof(struct options, window.kernel), NULL, 1, 1024, NULL,
     "height and width"},
    {"stride", TR_OPTION_PAIR, offsetof(struct options, window.stride), "1", 1, 1024, NULL,
     "distance of neighbouring windows in the output: the factor of enlargement"},
    {"padding", TR_OPTION_CHOICE, offsetof(struct options, window.padding), "valid", 0, 0, tr_padding_choices,
     "valid: (input - 1) * stride + kernel rows and columns, or same: input * stride"},
    {"pad", TR_OPTION_PAIR, offsetof(struct options, window.pad), "-1", -1, 1024, NULL,
     "rows and columns removed on every side of the valid output, instead of padding"},
    TR_GROUPS_OPTION(struct options),
    {"weights", TR_OPTION_NODE, offsetof(struct options, weights), "glorot_uniform", 0, 0, NULL,
     "initializer of the weights"},
};

/* The output's size in one direction. */
static int64_t size_of(const struct tr_window_options *window, int i, int64_t in)
{
    int64_t full = (in - 1) * window->stride[i] + window->kernel[i];
    if (window->pad[i] >= 0) return full - 2 * window->pad[i];
    return window->padding == TR_PADDING_SAME ? in * window->stride[i] : full;
}

static tr_status build(struct tr_layer *layer, struct tr_builder *builder)
{
    struct options *options = layer->options;
    const struct tr_shape *in = &layer->in[0];
    struct tr_sliding_window *window = layer->state = tr_alloc(1, sizeof *window);
    char text[TR_SHAPE_TEXT];
    if (!window) return TR_ENOMEM;
    if (in->rank != 3 || in->sequence)
        return tr_fail(TR_EINVAL,
                       "needs images (height x width x channels), its input is %s; reshape makes them",
                       tr_shape_text(in, text));
    if (in->size[2] > INT32_MAX / 4)
        return tr_fail(TR_EINVAL, "image %s is too large", tr_shape_text(in, text));
    TR_TRY(tr_layer_groups(options->groups, in->size[2], options->filters));
    options->window.dilation[0] = options->window.dilation[1] = 1;
    layer->out = (struct tr_shape){3, {0, 0, options->filters}, false};
    for (int i = 0; i < 2; i++) layer->out.size[i] = size_of(&options->window, i, in->size[i]);
    TR_TRY(tr_shape_check(&layer->out, "output"));
    TR_TRY(tr_window_make(&options->window, &layer->out, window));
    int64_t taps = (int64_t)window->kernel_h * window->kernel_w, channels = in->size[2];
    const int64_t filters = options->filters / options->groups; /* filters that see an input */
    layer->flops = 2 * taps * channels * filters * in->size[0] * in->size[1];
    layer->keeps_input = true;
    struct tr_initializer weights;
    TR_TRY(tr_initializer_read(options->weights, "glorot_uniform", &weights));
    struct tr_shape shape = {4, {window->kernel_h, window->kernel_w, filters, channels}, false};
    return tr_builder_parameter(builder, layer, "weights", TR_PARAMETER_WEIGHT, shape, &weights,
                                taps * (channels / options->groups), taps * filters);
}

static tr_status forward(const struct tr_layer_call *call)
{
    const struct options *options = call->layer->options;
    const struct tr_op_conv_backward_data op = {
        .rows = call->rows,
        .in_c = (int32_t)options->filters,
        .out_c = (int32_t)call->layer->in[0].size[2],
        .window = *(const struct tr_sliding_window *)call->layer->state,
        .dy = call->x[0],
        .w = call->parameter[0],
        .dx = call->y,
    };
    const struct tr_op_grouped_conv_backward_data grouped = {op, (int32_t)options->groups};
    return options->groups > 1 ? tr_device_grouped_conv_backward_data(call->device, &grouped)
                               : tr_device_conv_backward_data(call->device, &op);
}

static tr_status backward(const struct tr_layer_call *call)
{
    const struct options *options = call->layer->options;
    const struct tr_op_conv_backward_weights weights = {
        .in_c = (int32_t)options->filters,
        .out_c = (int32_t)call->layer->in[0].size[2],
        .window = *(const struct tr_sliding_window *)call->layer->state,
        .x = call->dy,
        .dy = call->x[0],
        .dw = call->gradient[0],
        .cut = *call->cut,
    };
    const int32_t groups = (int32_t)options->groups;
    const struct tr_op_grouped_conv_backward_weights grouped = {weights, groups};
    TR_TRY(groups > 1 ? tr_device_grouped_conv_backward_weights(call->device, &grouped)
                      : tr_device_conv_backward_weights(call->device, &weights));
    if (!call->dx[0]) return TR_OK;
    const struct tr_op_conv_forward data = {
        .rows = call->rows,
        .in_c = weights.in_c,
        .out_c = weights.out_c,
        .window = weights.window,
        .x = call->dy,
        .w = call->parameter[0],
        .y = call->dx[0],
        .activation = TR_ACT_NONE,
    };
    const struct tr_op_grouped_conv_forward grouped_data = {data, groups};
    return groups > 1 ? tr_device_grouped_conv_forward(call->device, &grouped_data)
                      : tr_device_conv_forward(call->device, &data);
}

const struct tr_layer_class tr_layer_conv_transpose = {
    .name = "conv_transpose",
    .help = "transposed convolution, which enlarges images; without bias",
    TR_ENTRY_OPTIONS(table, struct options),
    .inputs = 1,
    .slides = true,
    .build = build,
    .forward = forward,
    .backward = backward,
};
