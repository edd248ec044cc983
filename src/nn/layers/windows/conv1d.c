/* conv1d: convolution over the tokens of each example: every token sees its neighbours, and zeros beyond
 * the ends of the example. There are as many outputs as tokens. With a stride, which needs sequences of
 * one length, there is one for every STRIDE tokens, and an example is computed as an image of one column.
 */
#include "nn/layers/common.h"
#include "nn/layers/table.h"

#include "base/alloc.h"

#include <inttypes.h>

struct options {
    int64_t filters, kernel, groups, dilation, stride;
    bool causal;
    struct tr_affine_options affine;
};

enum { UNFOLDED, UNFOLDED_GRADIENT };

static const struct tr_option table[] = {
    {"filters", TR_OPTION_INT64, offsetof(struct options, filters), NULL, 1, 1 << 20, NULL,
     "number of output channels"},
    {"kernel", TR_OPTION_INT64, offsetof(struct options, kernel), NULL, 1, 1024, NULL,
     "tokens seen by an output"},
    {"causal", TR_OPTION_BOOL, offsetof(struct options, causal), "false", 0, 0, NULL,
     "an output sees its own token and earlier ones, instead of as many on both sides"},
    TR_GROUPS_OPTION(struct options),
    TR_AFFINE_OPTIONS(struct options),
    {"dilation", TR_OPTION_INT64, offsetof(struct options, dilation), "1", 1, 1 << 16, NULL,
     "distance of neighbouring taps; with 2 an output sees every other token", .flags = TR_OPTION_QUIET},
    {"stride", TR_OPTION_INT64, offsetof(struct options, stride), "1", 1, 1 << 16, NULL,
     "distance of neighbouring outputs; with 2 there is one for every other token. Only for sequences of one "
     "length, such as windows of time series",
     .flags = TR_OPTION_QUIET},
};

static int64_t in_of(const struct tr_layer *layer)
{
    return tr_shape_count(&layer->in[0]);
}

/* Where the window cannot be symmetric, it reaches one token further to the right. */
static int64_t before_of(const struct options *options)
{
    const int64_t reach = (options->kernel - 1) * options->dilation;
    return options->causal ? reach : reach / 2;
}

/* The same for an example as an image of one column. */
static tr_status build_strided(struct tr_layer *layer, struct tr_builder *builder, int64_t seen)
{
    const struct options *options = layer->options;
    const int64_t tokens = layer->tokens_in, outputs = (tokens + options->stride - 1) / options->stride;
    struct tr_sliding_window *window = layer->state = tr_alloc(1, sizeof *window);
    if (!window) return TR_ENOMEM;
    if (tokens == 0)
        return tr_fail(TR_EINVAL,
                       "has a stride of %" PRId64
                       ", and its examples differ in how many tokens they have; leave "
                       "out the stride, or use it on windows of time series or tokens of images",
                       options->stride);
    /* With what an output sees beyond both ends, by the limits of kernel and dilation, still an int32. */
    if (tokens > INT32_MAX / 4)
        return tr_fail(TR_EINVAL, "takes up to %d tokens with a stride, an example has %" PRId64, INT32_MAX / 4,
                       tokens);
    *window = (struct tr_sliding_window){
        .in_h = (int32_t)tokens,
        .in_w = 1,
        .out_h = (int32_t)outputs,
        .out_w = 1,
        .kernel_h = (int32_t)options->kernel,
        .kernel_w = 1,
        .stride_h = (int32_t)options->stride,
        .stride_w = 1,
        .dilation_h = (int32_t)options->dilation,
        .dilation_w = 1,
        .pad_top = (int32_t)before_of(options),
    };
    layer->flops = 2 * seen * options->filters * outputs / tokens;
    tr_builder_tokens(builder, layer, outputs);
    return TR_OK;
}

static tr_status build(struct tr_layer *layer, struct tr_builder *builder)
{
    const struct options *options = layer->options;
    char text[TR_SHAPE_TEXT];
    if (!layer->in[0].sequence)
        return tr_fail(TR_EINVAL, "needs a sequence, its input is %s; use conv for images",
                       tr_shape_text(&layer->in[0], text));
    const int64_t in = in_of(layer), unfolded = options->kernel * in;
    TR_TRY(tr_layer_groups(options->groups, in, options->filters));
    const int64_t seen = unfolded / options->groups;
    layer->out = (struct tr_shape){1, {options->filters}, true};
    layer->flops = 2 * seen * options->filters;
    if (options->stride > 1) {
        TR_TRY(build_strided(layer, builder, seen));
    } else {
        tr_layer_buffer(layer, (struct tr_buffer){TR_PER_ROW, unfolded * (int64_t)sizeof(float), 0, false});
        tr_layer_buffer(layer, (struct tr_buffer){TR_PER_ROW, unfolded * (int64_t)sizeof(float), 0, true});
    }
    const struct tr_shape weights = {3, {options->kernel, in / options->groups, options->filters}, false};
    TR_TRY(tr_affine_build(layer, builder, &options->affine, weights, options->filters, seen,
                           options->kernel * (options->filters / options->groups)));
    layer->keeps_input = options->stride > 1; /* otherwise the buffer holds it */
    return TR_OK;
}

/* By groups of channels, a token with its neighbours is an image of one column that the kernel covers. */
static struct tr_sliding_window window_of(const struct options *options)
{
    const int32_t kernel = (int32_t)options->kernel;
    return (struct tr_sliding_window){kernel, 1, 1, 1, kernel, 1, 1, 1, 1, 1, 0, 0};
}

static tr_status forward_by_groups(const struct tr_layer_call *call)
{
    const struct options *options = call->layer->options;
    const struct tr_op_grouped_conv_forward op = {
        {
            .rows = call->rows,
            .in_c = (int32_t)in_of(call->layer),
            .out_c = (int32_t)options->filters,
            .window = window_of(options),
            .x = call->buffer[UNFOLDED],
            .w = call->parameter[0],
            .b = tr_affine_bias(call),
            .y = call->y,
            .activation = (enum tr_activation)options->affine.activation,
            .slope = options->affine.slope,
        },
        (int32_t)options->groups,
    };
    return tr_device_grouped_conv_forward(call->device, &op);
}

static tr_status forward_strided(const struct tr_layer_call *call)
{
    const struct options *options = call->layer->options;
    const struct tr_op_grouped_conv_forward op = {
        {
            .rows = call->examples,
            .in_c = (int32_t)in_of(call->layer),
            .out_c = (int32_t)options->filters,
            .window = *(const struct tr_sliding_window *)call->layer->state,
            .x = call->x[0],
            .w = call->parameter[0],
            .b = tr_affine_bias(call),
            .y = call->y,
            .activation = (enum tr_activation)options->affine.activation,
            .slope = options->affine.slope,
        },
        (int32_t)options->groups,
    };
    return options->groups > 1 ? tr_device_grouped_conv_forward(call->device, &op)
                               : tr_device_conv_forward(call->device, &op.conv);
}

static tr_status backward_strided(const struct tr_layer_call *call)
{
    const struct options *options = call->layer->options;
    const struct tr_sliding_window *window = call->layer->state;
    const struct tr_op_grouped_conv_backward_weights weights = {
        {
            .in_c = (int32_t)in_of(call->layer),
            .out_c = (int32_t)options->filters,
            .window = *window,
            .x = call->x[0],
            .dy = call->dy,
            .dw = call->gradient[0],
            .db = tr_affine_bias_gradient(call),
            .cut = *call->example_cut,
        },
        (int32_t)options->groups,
    };
    const struct tr_op_grouped_conv_backward_data data = {
        {
            .rows = call->examples,
            .in_c = weights.conv.in_c,
            .out_c = weights.conv.out_c,
            .window = *window,
            .dy = call->dy,
            .w = call->parameter[0],
            .dx = call->dx[0],
        },
        weights.groups,
    };
    const bool grouped = options->groups > 1;
    TR_TRY(grouped ? tr_device_grouped_conv_backward_weights(call->device, &weights)
                   : tr_device_conv_backward_weights(call->device, &weights.conv));
    if (!call->dx[0]) return TR_OK;
    return grouped ? tr_device_grouped_conv_backward_data(call->device, &data)
                   : tr_device_conv_backward_data(call->device, &data.conv);
}

static tr_status forward(const struct tr_layer_call *call)
{
    const struct options *options = call->layer->options;
    const int64_t in = in_of(call->layer);
    if (options->stride > 1) return forward_strided(call);
    const struct tr_op_sequence_unfold unfold = {
        .examples = call->examples,
        .width = in,
        .taps = options->kernel,
        .before = before_of(options),
        .dilation = options->dilation,
        .offset = call->offset,
        .x = call->x[0],
        .y = call->buffer[UNFOLDED],
    };
    TR_TRY(tr_device_sequence_unfold(call->device, &unfold));
    if (options->groups > 1) return forward_by_groups(call);
    const struct tr_op_dense_forward op = {
        .rows = call->rows,
        .in = options->kernel * in,
        .out = options->filters,
        .x = call->buffer[UNFOLDED],
        .w = call->parameter[0],
        .b = tr_affine_bias(call),
        .y = call->y,
        .activation = (enum tr_activation)options->affine.activation,
        .slope = options->affine.slope,
    };
    return tr_device_dense_forward(call->device, &op);
}

static tr_status backward_weights(const struct tr_layer_call *call)
{
    const struct options *options = call->layer->options;
    const struct tr_op_dense_backward_weights weights = {
        .in = options->kernel * in_of(call->layer),
        .out = options->filters,
        .x = call->buffer[UNFOLDED],
        .dy = call->dy,
        .dw = call->gradient[0],
        .db = tr_affine_bias_gradient(call),
        .cut = *call->cut,
    };
    if (options->groups == 1) return tr_device_dense_backward_weights(call->device, &weights);
    const struct tr_op_grouped_conv_backward_weights by_groups = {
        {
            .in_c = (int32_t)in_of(call->layer),
            .out_c = (int32_t)options->filters,
            .window = window_of(options),
            .x = weights.x,
            .dy = weights.dy,
            .dw = weights.dw,
            .db = weights.db,
            .cut = weights.cut,
        },
        (int32_t)options->groups,
    };
    return tr_device_grouped_conv_backward_weights(call->device, &by_groups);
}

/* Gradient of the unfolded input. */
static tr_status backward_data(const struct tr_layer_call *call)
{
    const struct options *options = call->layer->options;
    const struct tr_op_dense_backward_data data = {
        call->rows,         options->kernel * in_of(call->layer), options->filters, call->dy,
        call->parameter[0], call->buffer[UNFOLDED_GRADIENT],
    };
    if (options->groups == 1) return tr_device_dense_backward_data(call->device, &data);
    const struct tr_op_grouped_conv_backward_data by_groups = {
        {
            .rows = call->rows,
            .in_c = (int32_t)in_of(call->layer),
            .out_c = (int32_t)options->filters,
            .window = window_of(options),
            .dy = data.dy,
            .w = data.w,
            .dx = data.dx,
        },
        (int32_t)options->groups,
    };
    return tr_device_grouped_conv_backward_data(call->device, &by_groups);
}

static tr_status backward(const struct tr_layer_call *call)
{
    const struct options *options = call->layer->options;
    struct tr_layer_call outputs = *call;
    if (options->stride > 1) outputs.rows = call->examples * call->layer->tokens_out;
    TR_TRY(tr_affine_activation_backward(&outputs, &options->affine));
    if (options->stride > 1) return backward_strided(call);
    TR_TRY(backward_weights(call));
    if (!call->dx[0]) return TR_OK;
    TR_TRY(backward_data(call));
    const struct tr_op_sequence_fold fold = {
        .examples = call->examples,
        .width = in_of(call->layer),
        .taps = options->kernel,
        .before = before_of(options),
        .dilation = options->dilation,
        .offset = call->offset,
        .dy = call->buffer[UNFOLDED_GRADIENT],
        .dx = call->dx[0],
    };
    return tr_device_sequence_fold(call->device, &fold);
}

const struct tr_layer_class tr_layer_conv1d = {
    .name = "conv1d",
    .help = "convolution over the tokens of each example",
    TR_ENTRY_OPTIONS(table, struct options),
    .inputs = 1,
    .build = build,
    .forward = forward,
    .backward = backward,
};
