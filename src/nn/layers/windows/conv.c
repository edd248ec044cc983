/* conv: two-dimensional convolution over images, by one of the two definitions of device/ops.h. */
#include "nn/layers/common.h"
#include "nn/layers/table.h"
#include "nn/layers/windows/window.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "device/winograd.h"

#include <inttypes.h>
#include <stdio.h>

enum algorithm { AUTO, DIRECT, WINOGRAD };

static const struct tr_choice algorithm_choices[] = {
    {"auto", AUTO},
    {"direct", DIRECT},
    {"winograd", WINOGRAD},
    {NULL, 0},
};

struct options {
    int64_t filters, groups;
    struct tr_window_options window;
    int32_t algorithm; /* enum algorithm, as the model file says */
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
    TR_GROUPS_OPTION(struct options),
    {"algorithm", TR_OPTION_CHOICE, offsetof(struct options, algorithm), "auto", 0, 0, algorithm_choices,
     "algorithm, which changes rounding: winograd has a quarter of the products of a 3x3 kernel, 36 % of "
     "those of "
     "5x5; auto takes it if kernel, channels and outputs suit it, else direct"},
    TR_AFFINE_OPTIONS(struct options),
};

/* What a layer stores beside its options. */
struct state {
    struct tr_sliding_window window; /* first, as in every layer with a window */
    bool winograd;
};

/* From here on Winograd's algorithm is faster with vectors of fused multiply-adds, also in passes of few
   examples; below, its transforms cost more than the products that it saves. See docs/explanation/kernels.md.
 */
#define LEAST_CHANNELS     16
#define LEAST_OUTPUTS_OF_3 6
#define LEAST_OUTPUTS_OF_5 8

/* Chooses only by the model file and shapes, never by the machine, since the choice changes the bits. */
static tr_status choose(struct tr_layer *layer, const struct options *options, struct state *state)
{
    const struct tr_sliding_window *w = &state->window;
    const int64_t channels = layer->in[0].size[2];
    const int least = w->kernel_h == 3 ? LEAST_OUTPUTS_OF_3 : LEAST_OUTPUTS_OF_5;
    const bool suits = tr_winograd_suits(w) && options->groups == 1;
    char *reason = layer->reason;
    const size_t size = sizeof layer->reason;
    if (options->algorithm == WINOGRAD && options->groups > 1)
        return tr_fail(TR_EINVAL,
                       "algorithm: winograd is for convolutions of 1 group, not %" PRId64
                       "; write algorithm: auto or direct",
                       options->groups);
    if (options->algorithm == WINOGRAD && !suits)
        return tr_fail(
            TR_EINVAL,
            "algorithm: winograd is for 3x3 and 5x5 kernels of stride 1 and dilation 1 with at least "
            "2x2 outputs, not for kernel %dx%d, stride %dx%d, dilation %dx%d and %dx%d outputs; write "
            "algorithm: auto or direct",
            w->kernel_h, w->kernel_w, w->stride_h, w->stride_w, w->dilation_h, w->dilation_w, w->out_h,
            w->out_w);
    state->winograd = options->algorithm == WINOGRAD;
    if (options->algorithm != AUTO)
        snprintf(reason, size, "as the model file says");
    else if (options->groups > 1)
        snprintf(reason, size, "%" PRId64 " groups", options->groups);
    else if (w->kernel_h != w->kernel_w || (w->kernel_h != 3 && w->kernel_h != 5))
        snprintf(reason, size, "kernel %dx%d, not 3x3 or 5x5", w->kernel_h, w->kernel_w);
    else if (!suits && (w->stride_h > 1 || w->stride_w > 1))
        snprintf(reason, size, "stride %dx%d", w->stride_h, w->stride_w);
    else if (!suits && (w->dilation_h > 1 || w->dilation_w > 1))
        snprintf(reason, size, "dilation %dx%d", w->dilation_h, w->dilation_w);
    else if (channels < LEAST_CHANNELS || options->filters < LEAST_CHANNELS)
        snprintf(reason, size, "fewer than %d channels", LEAST_CHANNELS);
    else if (w->out_h < least || w->out_w < least)
        snprintf(reason, size, "fewer than %dx%d outputs", least, least);
    else {
        snprintf(reason, size, "%dx%d from %" PRId64 " to %" PRId64 " channels", w->kernel_h, w->kernel_w,
                 channels, options->filters);
        state->winograd = true;
    }
    layer->algorithm = algorithm_choices[state->winograd ? WINOGRAD : DIRECT].name;
    return TR_OK;
}

static tr_status build(struct tr_layer *layer, struct tr_builder *builder)
{
    const struct options *options = layer->options;
    struct state *state = layer->state = tr_alloc(1, sizeof *state);
    if (!state) return TR_ENOMEM;
    const struct tr_sliding_window *window = &state->window;
    TR_TRY(tr_window_make(&options->window, &layer->in[0], &state->window));
    TR_TRY(tr_layer_groups(options->groups, layer->in[0].size[2], options->filters));
    TR_TRY(choose(layer, options, state));
    int64_t taps = (int64_t)window->kernel_h * window->kernel_w;
    int64_t channels = layer->in[0].size[2] / options->groups; /* channels that an output sees */
    layer->out = (struct tr_shape){3, {window->out_h, window->out_w, options->filters}, false};
    layer->flops = 2 * taps * channels * tr_shape_count(&layer->out);
    struct tr_shape weights = {4, {window->kernel_h, window->kernel_w, channels, options->filters}, false};
    return tr_affine_build(layer, builder, &options->affine, weights, options->filters, taps * channels,
                           taps * (options->filters / options->groups));
}

/* A max pool after it needs nothing of its output but the pool's own data, provided that the activation's
   gradient does not. */
static bool fuses(const struct tr_layer *layer, const struct tr_device_class *device)
{
    const struct options *options = layer->options;
    const struct state *state = layer->state;
    if (state->winograd || options->groups > 1 ||
        (options->affine.activation != TR_ACT_NONE && !layer->relu.left_to_consumer))
        return false;
    return !device || (device->conv_pool_forward && device->conv_pool_backward_data &&
                       device->conv_pool_backward_weights);
}

static struct tr_op_pool_backward pool_backward(const struct tr_layer_call *call)
{
    return (struct tr_op_pool_backward){
        .rows = call->rows,
        .channels = (int32_t)call->layer->out.size[2],
        .window = *call->tail->pool,
        .kind = TR_POOL_MAX,
        .dy = call->dy,
        .taken = call->tail->taken,
        .relu_output = call->tail->relu ? call->y : NULL,
    };
}

static tr_status forward_with_pool(const struct tr_layer_call *call, const struct tr_op_conv_forward *conv)
{
    struct tr_op_conv_pool_forward op = {*conv,
                                         {
                                             .rows = call->rows,
                                             .channels = conv->out_c,
                                             .window = *call->tail->pool,
                                             .kind = TR_POOL_MAX,
                                             .y = call->y,
                                             .taken = call->tail->taken,
                                         }};
    op.conv.y = NULL;
    return tr_device_conv_pool_forward(call->device, &op);
}

static int32_t groups_of(const struct tr_layer_call *call)
{
    return (int32_t)((const struct options *)call->layer->options)->groups;
}

static tr_status backward_weights(const struct tr_layer_call *call,
                                  const struct tr_op_winograd_backward_weights *op)
{
    const struct state *state = call->layer->state;
    if (state->winograd) return tr_device_winograd_backward_weights(call->device, op);
    if (groups_of(call) > 1) {
        const struct tr_op_grouped_conv_backward_weights grouped = {op->conv, groups_of(call)};
        return tr_device_grouped_conv_backward_weights(call->device, &grouped);
    }
    if (!call->tail) return tr_device_conv_backward_weights(call->device, &op->conv);
    const struct tr_op_conv_pool_backward_weights fused = {op->conv, pool_backward(call)};
    return tr_device_conv_pool_backward_weights(call->device, &fused);
}

/* In Winograd's algorithm both gradients use the same transformed gradients of the outputs. */
static bool joins_gradients(const struct tr_layer_call *call)
{
    const struct state *state = call->layer->state;
    return state->winograd && call->dx[0] && call->device->class->winograd_backward;
}

static tr_status backward_data(const struct tr_layer_call *call,
                               const struct tr_op_winograd_backward_data *op)
{
    const struct state *state = call->layer->state;
    if (state->winograd) return tr_device_winograd_backward_data(call->device, op);
    if (groups_of(call) > 1) {
        const struct tr_op_grouped_conv_backward_data grouped = {op->conv, groups_of(call)};
        return tr_device_grouped_conv_backward_data(call->device, &grouped);
    }
    if (!call->tail) return tr_device_conv_backward_data(call->device, &op->conv);
    const struct tr_op_conv_pool_backward_data fused = {op->conv, pool_backward(call)};
    return tr_device_conv_pool_backward_data(call->device, &fused);
}

static tr_status forward(const struct tr_layer_call *call)
{
    const struct options *options = call->layer->options;
    const struct state *state = call->layer->state;
    const struct tr_op_winograd_forward op = {{
        .rows = call->rows,
        .in_c = (int32_t)call->layer->in[0].size[2],
        .out_c = (int32_t)options->filters,
        .window = state->window,
        .x = call->x[0],
        .w = call->parameter[0],
        .b = tr_affine_bias(call),
        .y = call->y,
        .activation = (enum tr_activation)options->affine.activation,
        .slope = options->affine.slope,
    }};
    if (call->tail) return forward_with_pool(call, &op.conv);
    if (groups_of(call) > 1) {
        const struct tr_op_grouped_conv_forward grouped = {op.conv, groups_of(call)};
        return tr_device_grouped_conv_forward(call->device, &grouped);
    }
    return state->winograd ? tr_device_winograd_forward(call->device, &op)
                           : tr_device_conv_forward(call->device, &op.conv);
}

static tr_status backward(const struct tr_layer_call *call)
{
    const struct options *options = call->layer->options;
    const struct state *state = call->layer->state;
    TR_TRY(tr_affine_activation_backward(call, &options->affine));
    const struct tr_op_winograd_backward_weights weights = {{
        .in_c = (int32_t)call->layer->in[0].size[2],
        .out_c = (int32_t)options->filters,
        .window = state->window,
        .x = call->x[0],
        .dy = call->dy,
        .dw = call->gradient[0],
        .db = tr_affine_bias_gradient(call),
        .cut = *call->cut,
    }};
    const struct tr_op_winograd_backward_data data = {{
        .rows = call->rows,
        .in_c = weights.conv.in_c,
        .out_c = weights.conv.out_c,
        .window = state->window,
        .dy = call->dy,
        .w = call->parameter[0],
        .dx = call->dx[0],
    }};
    if (joins_gradients(call)) {
        const struct tr_op_winograd_backward both = {weights, data};
        return tr_device_winograd_backward(call->device, &both);
    }
    TR_TRY(backward_weights(call, &weights));
    return call->dx[0] ? backward_data(call, &data) : TR_OK;
}

const struct tr_layer_class tr_layer_conv = {
    .name = "conv",
    .help = "two-dimensional convolution over height x width x channels",
    TR_ENTRY_OPTIONS(table, struct options),
    .inputs = 1,
    .slides = true,
    .fusing = {.tails = TR_TAIL_POOL, .fuses = fuses},
    .build = build,
    .forward = forward,
    .backward = backward,
};
