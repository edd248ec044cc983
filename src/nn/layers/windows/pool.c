/* max_pool and average_pool: one value for each window and channel. */
#include "base/alloc.h"
#include "nn/layers/table.h"
#include "nn/layers/windows/window.h"

struct options {
    struct tr_window_options window;
    bool count_border;
};

static const struct tr_option table[] = {
    {"size", TR_OPTION_PAIR, offsetof(struct options, window.kernel), "2", 1, 16, NULL,
     "height and width of a window"},
    {"stride", TR_OPTION_PAIR, offsetof(struct options, window.stride), "0", 0, 1024, NULL,
     "distance of neighbouring windows; 0: their size"},
    {"padding", TR_OPTION_CHOICE, offsetof(struct options, window.padding), "valid", 0, 0, tr_padding_choices,
     "valid, or same: as many outputs as inputs / stride"},
    {"pad", TR_OPTION_PAIR, offsetof(struct options, window.pad), "-1", -1, 15, NULL,
     "rows and columns on every side, instead of padding"},
    {.key = "count_border",
     .type = TR_OPTION_BOOL,
     .offset = offsetof(struct options, count_border),
     .fallback = "false",
     .flags = TR_OPTION_QUIET,
     .help = "count the border as zeros: every mean is over the whole window, as with PyTorch's "
             "`count_include_pad`; otherwise over the part inside the image"},
};
enum { MAX_OPTIONS = TR_OPTION_COUNT(table) - 1 }; /* without the last option */

static tr_status build_window(struct tr_layer *layer)
{
    struct options *options = layer->options;
    struct tr_sliding_window *window = layer->state = tr_alloc(1, sizeof *window);
    if (!window) return TR_ENOMEM;
    for (int i = 0; i < 2; i++) {
        options->window.dilation[i] = 1;
        if (options->window.stride[i] == 0) options->window.stride[i] = options->window.kernel[i];
    }
    TR_TRY(tr_window_make(&options->window, &layer->in[0], window));
    layer->out = (struct tr_shape){3, {window->out_h, window->out_w, layer->in[0].size[2]}, false};
    layer->flops = tr_shape_count(&layer->out) * window->kernel_h * window->kernel_w;
    return TR_OK;
}

static tr_status build_max(struct tr_layer *layer, struct tr_builder *builder)
{
    (void)builder;
    TR_TRY(build_window(layer));
    /* Which tap was the maximum, a byte for each output. */
    tr_layer_buffer(layer, (struct tr_buffer){TR_PER_ROW, tr_shape_count(&layer->out), 0, false});
    layer->keeps_output = true;
    return TR_OK;
}

static tr_status build_average(struct tr_layer *layer, struct tr_builder *builder)
{
    (void)builder;
    return build_window(layer);
}

static enum tr_tail_kind tail(const struct tr_layer *layer, struct tr_layer_tail *to)
{
    const struct tr_sliding_window *w = layer->state;
    to->pool = w;
    return w->stride_h == w->kernel_h && w->stride_w == w->kernel_w && w->pad_top == 0 && w->pad_left == 0 &&
                   w->out_h * w->kernel_h <= w->in_h && w->out_w * w->kernel_w <= w->in_w
               ? TR_TAIL_POOL
               : TR_TAIL_NONE;
}

static tr_status run_forward(const struct tr_layer_call *call, enum tr_pool kind)
{
    struct tr_op_pool_forward op = {
        .rows = call->rows,
        .channels = (int32_t)call->layer->in[0].size[2],
        .window = *(const struct tr_sliding_window *)call->layer->state,
        .kind = kind,
        .x = call->x[0],
        .y = call->y,
        .taken = kind == TR_POOL_MAX && call->training ? call->buffer[0] : NULL,
        .count_border = ((const struct options *)call->layer->options)->count_border,
    };
    return tr_device_pool_forward(call->device, &op);
}

static tr_status run_backward(const struct tr_layer_call *call, enum tr_pool kind)
{
    struct tr_op_pool_backward op = {
        .rows = call->rows,
        .channels = (int32_t)call->layer->in[0].size[2],
        .window = *(const struct tr_sliding_window *)call->layer->state,
        .kind = kind,
        .dy = call->dy,
        .taken = call->buffer[0],
        .relu_output = call->layer->relu.of_input ? call->y : NULL,
        .dx = call->dx[0],
        .count_border = ((const struct options *)call->layer->options)->count_border,
    };
    return tr_device_pool_backward(call->device, &op);
}

static tr_status forward_max(const struct tr_layer_call *call)
{
    return run_forward(call, TR_POOL_MAX);
}

static tr_status backward_max(const struct tr_layer_call *call)
{
    return run_backward(call, TR_POOL_MAX);
}

static tr_status forward_average(const struct tr_layer_call *call)
{
    return run_forward(call, TR_POOL_AVERAGE);
}

static tr_status backward_average(const struct tr_layer_call *call)
{
    return run_backward(call, TR_POOL_AVERAGE);
}

const struct tr_layer_class tr_layer_max_pool = {
    .name = "max_pool",
    .help = "greatest value of each window",
    .options = table,
    .option_count = MAX_OPTIONS,
    .options_size = sizeof(struct options),
    .inputs = 1,
    .slides = true,
    .fusing.applies_relu_gradient = true,
    .fusing.tail = tail,
    .build = build_max,
    .forward = forward_max,
    .backward = backward_max,
};

const struct tr_layer_class tr_layer_average_pool = {
    .name = "average_pool",
    .help = "mean of each window",
    TR_ENTRY_OPTIONS(table, struct options),
    .inputs = 1,
    .slides = true,
    .build = build_average,
    .forward = forward_average,
    .backward = backward_average,
};
