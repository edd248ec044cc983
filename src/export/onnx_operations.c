/* Operations of devices as operations of ONNX. */
#include "export/onnx_graph.h"

#include "base/fail.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

/* A value of the same shape as another. */
static struct tr_onnx_value alike(const struct tr_onnx_value *value, struct tr_onnx_name name)
{
    struct tr_onnx_value made = *value;
    made.name = name;
    made.ending.text[0] = 0;
    return made;
}

static struct tr_onnx_value image_of(const struct tr_window *window, int64_t channels,
                                     struct tr_onnx_name name)
{
    return (struct tr_onnx_value){
        .name = name,
        .form = TR_ONNX_IMAGE,
        .size = {window->out_h, window->out_w, channels},
    };
}

/* The same elements as a vector, channels first: what follows must have its parameters in that order. */
static struct tr_onnx_name flattened(struct tr_onnx_graph *graph, const struct tr_onnx_value *value)
{
    if (value->form != TR_ONNX_IMAGE) return value->name;
    struct tr_onnx_name name = tr_onnx_emit(graph, "Flatten", 1, value->name.text);
    tr_onnx_attribute_integer(graph->onnx, "axis", 1);
    return name;
}

/* ---- elements ---- */

/* 0.5 x (1 + erf(x / sqrt(2))) */
static struct tr_onnx_name gelu(struct tr_onnx_graph *graph, struct tr_onnx_name x)
{
    struct tr_onnx_name root = tr_onnx_local_number(graph, "root", 0x1.6a09e6p-1f);
    struct tr_onnx_name one = tr_onnx_local_number(graph, "one", 1);
    struct tr_onnx_name half = tr_onnx_local_number(graph, "half", 0.5f);
    struct tr_onnx_name scaled = tr_onnx_emit(graph, "Mul", 2, x.text, root.text);
    struct tr_onnx_name erf = tr_onnx_emit(graph, "Erf", 1, scaled.text);
    struct tr_onnx_name sum = tr_onnx_emit(graph, "Add", 2, erf.text, one.text);
    struct tr_onnx_name halved = tr_onnx_emit(graph, "Mul", 2, x.text, half.text);
    return tr_onnx_emit(graph, "Mul", 2, halved.text, sum.text);
}

static tr_status activate(struct tr_onnx_graph *graph, const struct tr_traced *traced,
                          enum tr_activation activation, float slope, struct tr_onnx_name *name)
{
    switch (activation) {
    case TR_ACT_NONE:
        return TR_OK;
    case TR_ACT_RELU:
        *name = tr_onnx_emit(graph, "Relu", 1, name->text);
        return TR_OK;
    case TR_ACT_LEAKY_RELU:
        *name = tr_onnx_emit(graph, "LeakyRelu", 1, name->text);
        tr_onnx_attribute_float(graph->onnx, "alpha", slope);
        return TR_OK;
    case TR_ACT_TANH:
        *name = tr_onnx_emit(graph, "Tanh", 1, name->text);
        return TR_OK;
    case TR_ACT_SIGMOID:
        *name = tr_onnx_emit(graph, "Sigmoid", 1, name->text);
        return TR_OK;
    case TR_ACT_GELU:
        *name = gelu(graph, *name);
        return TR_OK;
    }
    return tr_trace_refuse(graph->trace, traced, "ONNX");
}

static tr_status translate_activation(struct tr_onnx_graph *graph, const struct tr_traced *traced)
{
    const struct tr_op_activation_forward *op = &traced->as.activation_forward;
    struct tr_onnx_value y = alike(tr_onnx_value_of(graph, op->x), tr_onnx_value_of(graph, op->x)->name);
    TR_TRY(activate(graph, traced, op->activation, op->slope, &y.name));
    tr_onnx_define(graph, op->y, &y);
    return TR_OK;
}

static tr_status translate_add(struct tr_onnx_graph *graph, const struct tr_traced *traced)
{
    const struct tr_op_add *op = &traced->as.add;
    struct tr_onnx_value a = *tr_onnx_value_of(graph, op->a), b = *tr_onnx_value_of(graph, op->b);
    /* A vector that was an image, and one that was none or another image. */
    if (a.form != b.form || (a.form == TR_ONNX_IMAGE && memcmp(a.size, b.size, sizeof a.size) != 0)) {
        a = tr_onnx_as_rows(graph, &a);
        b = tr_onnx_as_rows(graph, &b);
    }
    struct tr_onnx_value y = alike(&a, tr_onnx_emit(graph, "Add", 2, a.name.text, b.name.text));
    tr_onnx_define(graph, op->y, &y);
    return TR_OK;
}

static tr_status translate_scale(struct tr_onnx_graph *graph, const struct tr_traced *traced)
{
    const struct tr_op_scale *op = &traced->as.scale;
    const struct tr_onnx_value *x = tr_onnx_value_of(graph, op->x);
    struct tr_onnx_name factor = tr_onnx_local_number(graph, "factor", op->factor);
    struct tr_onnx_value y = alike(x, tr_onnx_emit(graph, "Mul", 2, x->name.text, factor.text));
    tr_onnx_define(graph, op->y, &y);
    return TR_OK;
}

/* ---- sums of products ---- */

static tr_status translate_dense(struct tr_onnx_graph *graph, const struct tr_traced *traced)
{
    const struct tr_op_dense_forward *op = &traced->as.dense_forward;
    if (tr_trace_value(graph->trace, op->y) >= TR_VALUE_LAYERS + graph->trace->model->layer_count)
        return TR_OK; /* a part of an operation that follows, which translates it */
    const struct tr_onnx_value *x = tr_onnx_value_of(graph, op->x);
    const int64_t size[] = {op->in, op->out};
    struct tr_onnx_value y = {.form = x->form == TR_ONNX_IMAGE ? TR_ONNX_ROWS : x->form, .width = op->out};
    struct tr_onnx_name in = flattened(graph, x), bias = {""};
    struct tr_onnx_name weights = x->form == TR_ONNX_IMAGE
                                      ? tr_onnx_parameter_of_image(graph, op->w, x->size, op->out, 2, size)
                                      : tr_onnx_parameter(graph, op->w, 2, size);
    if (op->b) bias = tr_onnx_parameter(graph, op->b, 1, &op->out);
    if (y.form == TR_ONNX_ROWS) {
        y.name = tr_onnx_emit(graph, "Gemm", op->b ? 3 : 2, in.text, weights.text, bias.text);
    } else {
        y.name = tr_onnx_emit(graph, "MatMul", 2, in.text, weights.text);
        if (op->b) y.name = tr_onnx_emit(graph, "Add", 2, y.name.text, bias.text);
    }
    TR_TRY(activate(graph, traced, op->activation, op->slope, &y.name));
    tr_onnx_define(graph, op->y, &y);
    return TR_OK;
}

/* Attributes of convolutions and pools. A window that begins inside of the padding may end inside of it too.
 */
static void add_window(struct tr_onnx_graph *graph, const struct tr_window *window)
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
static struct tr_onnx_name kernel_of(struct tr_onnx_graph *graph, const struct tr_op_conv_forward *op)
{
    int64_t taps = (int64_t)op->window.kernel_h * op->window.kernel_w;
    const int64_t size[] = {op->out_c, op->in_c, op->window.kernel_h, op->window.kernel_w};
    struct tr_onnx_name name;
    snprintf(name.text, sizeof name.text, "%s", tr_onnx_parameter_name(graph, op->w));
    float *data = tr_onnx_floats(graph->onnx, name.text, 4, size);
    for (int64_t o = 0; data && o < op->out_c; o++)
        for (int64_t i = 0; i < op->in_c; i++)
            for (int64_t tap = 0; tap < taps; tap++) *data++ = op->w[(tap * op->in_c + i) * op->out_c + o];
    return name;
}

static tr_status translate_conv(struct tr_onnx_graph *graph, const struct tr_traced *traced)
{
    const struct tr_op_conv_forward *op = &traced->as.conv_forward;
    const struct tr_onnx_value *x = tr_onnx_value_of(graph, op->x);
    const int64_t outputs = op->out_c;
    struct tr_onnx_name weights = kernel_of(graph, op), bias = {""};
    assert(x->form == TR_ONNX_IMAGE);
    if (op->b) bias = tr_onnx_parameter(graph, op->b, 1, &outputs);
    struct tr_onnx_name name =
        tr_onnx_emit(graph, "Conv", op->b ? 3 : 2, x->name.text, weights.text, bias.text);
    add_window(graph, &op->window);
    TR_TRY(activate(graph, traced, op->activation, op->slope, &name));
    struct tr_onnx_value y = image_of(&op->window, outputs, name);
    tr_onnx_define(graph, op->y, &y);
    return TR_OK;
}

static tr_status translate_pool(struct tr_onnx_graph *graph, const struct tr_traced *traced)
{
    const struct tr_op_pool_forward *op = &traced->as.pool_forward;
    const struct tr_onnx_value *x = tr_onnx_value_of(graph, op->x);
    assert(x->form == TR_ONNX_IMAGE);
    struct tr_onnx_value y =
        image_of(&op->window, op->channels,
                 tr_onnx_emit(graph, op->kind == TR_POOL_MAX ? "MaxPool" : "AveragePool", 1, x->name.text));
    add_window(graph, &op->window);
    tr_onnx_define(graph, op->y, &y);
    return TR_OK;
}

/* ---- rows ---- */

static tr_status translate_softmax(struct tr_onnx_graph *graph, const struct tr_traced *traced)
{
    const struct tr_op_softmax_forward *op = &traced->as.softmax_forward;
    struct tr_onnx_value x = *tr_onnx_value_of(graph, op->x);
    if (x.form == TR_ONNX_IMAGE && op->width != x.size[2]) x = tr_onnx_as_rows(graph, &x);
    struct tr_onnx_value y = alike(&x, tr_onnx_emit(graph, "Softmax", 1, x.name.text));
    tr_onnx_attribute_integer(graph->onnx, "axis", x.form == TR_ONNX_IMAGE ? 1 : -1);
    tr_onnx_define(graph, op->y, &y);
    return TR_OK;
}

static struct tr_onnx_name mean_of(struct tr_onnx_graph *graph, bool image, const char *x)
{
    static const int64_t all[] = {1, 2, 3}, last[] = {-1};
    struct tr_onnx_name mean = tr_onnx_emit(graph, "ReduceMean", 1, x);
    tr_onnx_attribute_integers(graph->onnx, "axes", image ? 3 : 1, image ? all : last);
    tr_onnx_attribute_integer(graph->onnx, "keepdims", 1);
    return mean;
}

/* The operator set has no layer normalization of its own. */
static tr_status translate_layer_norm(struct tr_onnx_graph *graph, const struct tr_traced *traced)
{
    const struct tr_op_layer_norm_forward *op = &traced->as.layer_norm_forward;
    const struct tr_onnx_value *x = tr_onnx_value_of(graph, op->x);
    bool image = x->form == TR_ONNX_IMAGE;
    const int64_t size[] = {x->size[2], x->size[0], x->size[1]};
    struct tr_onnx_name gamma = image ? tr_onnx_parameter_of_image(graph, op->gamma, x->size, 1, 3, size)
                                      : tr_onnx_parameter(graph, op->gamma, 1, &op->width);
    struct tr_onnx_name beta = image ? tr_onnx_parameter_of_image(graph, op->beta, x->size, 1, 3, size)
                                     : tr_onnx_parameter(graph, op->beta, 1, &op->width);
    struct tr_onnx_name epsilon = tr_onnx_local_number(graph, "epsilon", op->epsilon);
    struct tr_onnx_name mean = mean_of(graph, image, x->name.text);
    struct tr_onnx_name d = tr_onnx_emit(graph, "Sub", 2, x->name.text, mean.text);
    struct tr_onnx_name square = tr_onnx_emit(graph, "Mul", 2, d.text, d.text);
    struct tr_onnx_name variance = mean_of(graph, image, square.text);
    struct tr_onnx_name raised = tr_onnx_emit(graph, "Add", 2, variance.text, epsilon.text);
    struct tr_onnx_name deviation = tr_onnx_emit(graph, "Sqrt", 1, raised.text);
    struct tr_onnx_name normal = tr_onnx_emit(graph, "Div", 2, d.text, deviation.text);
    struct tr_onnx_name scaled = tr_onnx_emit(graph, "Mul", 2, normal.text, gamma.text);
    struct tr_onnx_value y = alike(x, tr_onnx_emit(graph, "Add", 2, scaled.text, beta.text));
    tr_onnx_define(graph, op->y, &y);
    return TR_OK;
}

static tr_status translate_batch_norm(struct tr_onnx_graph *graph, const struct tr_traced *traced)
{
    const struct tr_op_batch_norm_infer *op = &traced->as.batch_norm_infer;
    struct tr_onnx_value x = *tr_onnx_value_of(graph, op->x);
    if (x.form == TR_ONNX_IMAGE && op->channels != x.size[2]) x = tr_onnx_as_rows(graph, &x);
    struct tr_onnx_name gamma = tr_onnx_parameter(graph, op->gamma, 1, &op->channels);
    struct tr_onnx_name beta = tr_onnx_parameter(graph, op->beta, 1, &op->channels);
    struct tr_onnx_name mean = tr_onnx_parameter(graph, op->mean, 1, &op->channels);
    struct tr_onnx_name variance = tr_onnx_parameter(graph, op->var, 1, &op->channels);
    struct tr_onnx_value y = alike(&x, tr_onnx_emit(graph, "BatchNormalization", 5, x.name.text, gamma.text,
                                                    beta.text, mean.text, variance.text));
    tr_onnx_attribute_float(graph->onnx, "epsilon", op->epsilon);
    tr_onnx_define(graph, op->y, &y);
    return TR_OK;
}

/* ---- all ---- */

static tr_status (*const translators[TR_TRACED_KINDS])(struct tr_onnx_graph *graph,
                                                       const struct tr_traced *traced) = {
    [TR_TRACED_dense_forward] = translate_dense,
    [TR_TRACED_conv_forward] = translate_conv,
    [TR_TRACED_activation_forward] = translate_activation,
    [TR_TRACED_add] = translate_add,
    [TR_TRACED_scale] = translate_scale,
    [TR_TRACED_pool_forward] = translate_pool,
    [TR_TRACED_softmax_forward] = translate_softmax,
    [TR_TRACED_layer_norm_forward] = translate_layer_norm,
    [TR_TRACED_batch_norm_infer] = translate_batch_norm,
    [TR_TRACED_embedding_forward] = tr_onnx_translate_embedding,
    [TR_TRACED_lstm_forward] = tr_onnx_translate_lstm,
    [TR_TRACED_sequence_last_forward] = tr_onnx_translate_last,
    [TR_TRACED_load_images] = tr_onnx_translate_pixels,
};

tr_status tr_onnx_translate(struct tr_onnx_graph *graph, const struct tr_traced *traced)
{
    if (!translators[traced->kind]) return tr_trace_refuse(graph->trace, traced, "ONNX");
    tr_onnx_begin_part(graph, traced->layer < 0 ? "input" : graph->trace->model->layers[traced->layer].name);
    return translators[traced->kind](graph, traced);
}
