/* Convolutions and pools of images. */
#include "export/onnx/graph.h"

#include "base/fail.h"

#include <assert.h>
#include <stdio.h>

static struct tr_onnx_value image_of(const struct tr_sliding_window *window, int64_t channels,
                                     struct tr_onnx_name name)
{
    return (struct tr_onnx_value){
        .name = name,
        .form = TR_ONNX_IMAGE,
        .size = {window->out_h, window->out_w, channels},
    };
}

/* Attributes of convolutions and pools. A window that begins inside of the padding may end inside of it too.
 */
static void add_window(struct tr_onnx_graph *graph, const struct tr_sliding_window *window)
{
    int64_t bottom = (int64_t)(window->out_h - 1) * window->stride_h +
                     (int64_t)(window->kernel_h - 1) * window->dilation_h + 1 - window->in_h -
                     window->pad_top;
    int64_t right = (int64_t)(window->out_w - 1) * window->stride_w +
                    (int64_t)(window->kernel_w - 1) * window->dilation_w + 1 - window->in_w -
                    window->pad_left;
    const int64_t kernel[] = {window->kernel_h, window->kernel_w};
    const int64_t strides[] = {window->stride_h, window->stride_w};
    const int64_t dilations[] = {window->dilation_h, window->dilation_w};
    const int64_t pads[] = {window->pad_top, window->pad_left, bottom > 0 ? bottom : 0,
                            right > 0 ? right : 0};
    tr_onnx_attribute_integers(graph->onnx, "kernel_shape", 2, kernel);
    tr_onnx_attribute_integers(graph->onnx, "strides", 2, strides);
    tr_onnx_attribute_integers(graph->onnx, "pads", 4, pads);
    if (dilations[0] > 1 || dilations[1] > 1)
        tr_onnx_attribute_integers(graph->onnx, "dilations", 2, dilations);
}

/* [height][width][in][out] becomes [out][in][height][width]. */
static struct tr_onnx_name kernel_of(struct tr_onnx_graph *graph, const struct tr_sliding_window *window,
                                     int64_t in, int64_t out, const float *w)
{
    int64_t taps = (int64_t)window->kernel_h * window->kernel_w;
    const int64_t size[] = {out, in, window->kernel_h, window->kernel_w};
    struct tr_onnx_name name;
    snprintf(name.text, sizeof name.text, "%s", tr_onnx_parameter_name(graph, w));
    float *data = tr_onnx_floats(graph->onnx, name.text, 4, size);
    for (int64_t o = 0; data && o < out; o++)
        for (int64_t i = 0; i < in; i++)
            for (int64_t tap = 0; tap < taps; tap++) *data++ = w[(tap * in + i) * out + o];
    return name;
}

/* Devices choose how they compute it; `op` is of either definition. */
static tr_status add_conv(struct tr_onnx_graph *graph, const struct tr_traced *traced,
                          const struct tr_op_conv_forward *op, int64_t groups)
{
    const struct tr_onnx_value *x = tr_onnx_value_of(graph, op->x);
    const int64_t outputs = op->out_c;
    if (x->form == TR_ONNX_SEQUENCE) return tr_onnx_translate_strided_conv1d(graph, traced, op, groups);
    struct tr_onnx_name weights = kernel_of(graph, &op->window, op->in_c / groups, op->out_c, op->w);
    struct tr_onnx_name bias = {""};
    assert(x->form == TR_ONNX_IMAGE);
    if (op->b) bias = tr_onnx_parameter(graph, op->b, 1, &outputs);
    struct tr_onnx_name name =
        tr_onnx_emit(graph, "Conv", op->b ? 3 : 2, x->name.text, weights.text, bias.text);
    add_window(graph, &op->window);
    if (groups > 1) tr_onnx_attribute_integer(graph->onnx, "group", groups);
    TR_TRY(tr_onnx_activate(graph, traced, op->activation, op->slope, &name));
    struct tr_onnx_value y = image_of(&op->window, outputs, name);
    tr_onnx_define(graph, op->y, &y);
    return TR_OK;
}

tr_status tr_onnx_translate_conv(struct tr_onnx_graph *graph, const struct tr_traced *traced)
{
    return add_conv(graph, traced, &traced->as.conv_forward, 1);
}

tr_status tr_onnx_translate_winograd(struct tr_onnx_graph *graph, const struct tr_traced *traced)
{
    return add_conv(graph, traced, &traced->as.winograd_forward.conv, 1);
}

tr_status tr_onnx_translate_grouped_conv(struct tr_onnx_graph *graph, const struct tr_traced *traced)
{
    const struct tr_op_grouped_conv_forward *op = &traced->as.grouped_conv_forward;
    if (tr_onnx_value_of(graph, op->conv.x)->taps > 0) return tr_onnx_translate_grouped_conv1d(graph, traced);
    return add_conv(graph, traced, &op->conv, op->groups);
}

/* The input gradient of a convolution; the output image is that convolution's input. Where strides leave
   rows without a tap at its end, they are added. */
static tr_status add_conv_transpose(struct tr_onnx_graph *graph, const struct tr_op_conv_backward_data *op,
                                    int64_t groups)
{
    const struct tr_sliding_window *window = &op->window;
    const struct tr_onnx_value *x = tr_onnx_value_of(graph, op->dy);
    struct tr_onnx_name weights = kernel_of(graph, window, op->in_c / groups, op->out_c, op->w);
    assert(x->form == TR_ONNX_IMAGE);
    int64_t left_h = (int64_t)(window->out_h - 1) * window->stride_h + window->kernel_h - window->in_h -
                     window->pad_top,
            left_w = (int64_t)(window->out_w - 1) * window->stride_w + window->kernel_w - window->in_w -
                     window->pad_left;
    struct tr_onnx_value y = {.form = TR_ONNX_IMAGE, .size = {window->in_h, window->in_w, op->in_c}};
    y.name = tr_onnx_emit(graph, "ConvTranspose", 2, x->name.text, weights.text);
    add_window(graph, window);
    if (groups > 1) tr_onnx_attribute_integer(graph->onnx, "group", groups);
    if (left_h < 0 || left_w < 0) {
        const int64_t more[] = {left_h < 0 ? -left_h : 0, left_w < 0 ? -left_w : 0};
        tr_onnx_attribute_integers(graph->onnx, "output_padding", 2, more);
    }
    tr_onnx_define(graph, op->dx, &y);
    return TR_OK;
}

tr_status tr_onnx_translate_conv_transpose(struct tr_onnx_graph *graph, const struct tr_traced *traced)
{
    return add_conv_transpose(graph, &traced->as.conv_backward_data, 1);
}

tr_status tr_onnx_translate_grouped_conv_transpose(struct tr_onnx_graph *graph,
                                                   const struct tr_traced *traced)
{
    const struct tr_op_grouped_conv_backward_data *op = &traced->as.grouped_conv_backward_data;
    return add_conv_transpose(graph, &op->conv, op->groups);
}

tr_status tr_onnx_translate_pool(struct tr_onnx_graph *graph, const struct tr_traced *traced)
{
    const struct tr_op_pool_forward *op = &traced->as.pool_forward;
    const struct tr_onnx_value *x = tr_onnx_value_of(graph, op->x);
    assert(x->form == TR_ONNX_IMAGE);
    struct tr_onnx_value y =
        image_of(&op->window, op->channels,
                 tr_onnx_emit(graph, op->kind == TR_POOL_MAX ? "MaxPool" : "AveragePool", 1, x->name.text));
    add_window(graph, &op->window);
    if (op->count_border) tr_onnx_attribute_integer(graph->onnx, "count_include_pad", 1);
    tr_onnx_define(graph, op->y, &y);
    return TR_OK;
}
