/* Operations in C: one call of a part for each. */
#include "export/c/network.h"

#include "base/fail.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- names ---- */

/* The value that a pointer stands for, at its place. */
static int value_of(const struct tr_c_network *network, const void *pointer)
{
    int value = tr_trace_value(network->trace, pointer);
    while (network->value[value].storage == TR_C_SAME) value = network->value[value].same;
    return value;
}

struct tr_c_name tr_c_all_name(const struct tr_c_network *network, const void *pointer)
{
    const struct tr_c_value *value = &network->value[value_of(network, pointer)];
    const int64_t column = tr_trace_column(network->trace, pointer);
    struct tr_c_name name;
    int length =
        snprintf(name.text, sizeof name.text, "%s", value->storage == TR_C_OUTPUT ? "output" : value->name);
    if (column > 0) snprintf(name.text + length, sizeof name.text - (size_t)length, " + %" PRId64, column);
    return name;
}

struct tr_c_name tr_c_value_name(const struct tr_c_network *network, const struct tr_traced *traced,
                                 const void *pointer)
{
    const struct tr_c_value *value = &network->value[value_of(network, pointer)];
    struct tr_c_name name = tr_c_all_name(network, pointer);
    size_t length = strlen(name.text);
    if (network->whole && traced->per_token && value->row > 0)
        snprintf(name.text + length, sizeof name.text - length, " + t * %" PRId64, value->row);
    return name;
}

struct tr_c_name tr_c_size(const struct tr_c_network *network, int64_t floats, int64_t each)
{
    struct tr_c_name name;
    if (each == 0)
        snprintf(name.text, sizeof name.text, "%" PRId64, floats);
    else
        snprintf(name.text, sizeof name.text, "%" PRId64 " + %" PRId64 " * %s_TOKENS", floats, each,
                 network->upper);
    return name;
}

struct tr_c_name tr_c_array_name(struct tr_c_network *network, const float *pointer)
{
    const struct tr_parameter *parameter = tr_trace_parameter(network->trace, pointer);
    assert(parameter);
    int number = (int)(parameter - network->trace->model->parameters);
    char own[2 * TR_C_IDENTIFIER];
    struct tr_c_name name;
    network->parameter_used[number] = true;
    snprintf(name.text, sizeof name.text, "%s_%s", network->name, tr_c_parameter_name(network, number, own));
    return name;
}

int tr_c_indent(const struct tr_c_network *network, const struct tr_traced *traced)
{
    bool alone = network->whole && tr_c_is_of_all(traced);
    return traced->per_token && !alone ? network->indent : 4;
}

void tr_c_begin_call(struct tr_c_network *network, const struct tr_traced *traced, enum tr_c_part part,
                     const char *function)
{
    tr_c_parts_use(&network->parts, part);
    tr_text_pad(&network->body, ' ', traced ? tr_c_indent(network, traced) : 4);
    tr_text_addf(&network->body, "%s_%s(", network->name, function);
}

/* A float as a constant of C. */
static const char *constant(float value, char text[TR_C_CONSTANT])
{
    tr_c_constant(value, text);
    return text;
}

/* ---- operations ---- */

static tr_status write_activation(struct tr_c_network *network, const struct tr_traced *traced,
                                  enum tr_activation activation, float slope, int64_t count, const char *x,
                                  const char *y)
{
    char text[TR_C_CONSTANT];
    switch (activation) {
    case TR_ACT_NONE:
        return TR_OK;
    case TR_ACT_RELU:
        TR_C_BEGIN(relu);
        break;
    case TR_ACT_LEAKY_RELU:
        TR_C_BEGIN(leaky_relu);
        tr_text_addf(&network->body, "%" PRId64 ", %s, %s, %s);\n", count, constant(slope, text), x, y);
        return TR_OK;
    case TR_ACT_TANH:
        TR_C_BEGIN(tanh_of);
        break;
    case TR_ACT_SIGMOID:
        TR_C_BEGIN(sigmoid_of);
        break;
    case TR_ACT_GELU:
        TR_C_BEGIN(gelu);
        break;
    case TR_ACT_GELU_TANH:
        TR_C_BEGIN(gelu_tanh);
        break;
    case TR_ACT_SILU:
        TR_C_BEGIN(silu);
        break;
    case TR_ACT_HARD_SWISH:
        TR_C_BEGIN(hard_swish);
        break;
    case TR_ACT_RELU6:
        TR_C_BEGIN(relu6);
        break;
    default:
        return tr_trace_refuse(network->trace, traced, "C");
    }
    tr_text_addf(&network->body, "%" PRId64 ", %s, %s);\n", count, x, y);
    return TR_OK;
}

/* Operations in place after the sums of a dense or convolution layer. */
static tr_status finish_affine(struct tr_c_network *network, const struct tr_traced *traced, int64_t rows,
                               int64_t width, const float *bias, enum tr_activation activation, float slope,
                               const char *y)
{
    if (bias) {
        TR_C_BEGIN(plus_bias);
        tr_text_addf(&network->body, "%" PRId64 ", %" PRId64 ", %s, %s);\n", rows, width, TR_C_ARRAY(bias),
                     y);
    }
    return write_activation(network, traced, activation, slope, rows * width, y, y);
}

static tr_status write_dense(struct tr_c_network *network, const struct tr_traced *traced)
{
    const struct tr_op_dense_forward *op = &traced->as.dense_forward;
    const struct tr_c_name y = tr_c_value_name(network, traced, op->y);
    TR_C_BEGIN(dense);
    tr_text_addf(&network->body, "%" PRId64 ", %" PRId64 ", %s, %s, %s);\n", op->in, op->out,
                 TR_C_VALUE(op->x), TR_C_ARRAY(op->w), y.text);
    return finish_affine(network, traced, 1, op->out, op->b, op->activation, op->slope, y.text);
}

/* The geometry is a constant before the call; its name is the layer's. */
static void write_window(struct tr_c_network *network, const struct tr_traced *traced,
                         const struct tr_sliding_window *window)
{
    tr_text_addf(
        &network->body,
        "    static const struct %s_window %s_window = {%d, %d, %d, %d, %d, %d, %d, %d, %d, %d, %d, %d};\n",
        network->name, network->layer_name[traced->layer], window->in_h, window->in_w, window->out_h,
        window->out_w, window->kernel_h, window->kernel_w, window->stride_h, window->stride_w,
        window->dilation_h, window->dilation_w, window->pad_top, window->pad_left);
}

/* By either definition: its part has been chosen, its arguments are the same. */
static tr_status call_conv(struct tr_c_network *network, const struct tr_traced *traced,
                           const struct tr_op_conv_forward *op)
{
    const struct tr_c_name y = tr_c_value_name(network, traced, op->y);
    tr_text_addf(&network->body, "&%s_window, %d, %d, %s, %s, %s);\n", network->layer_name[traced->layer],
                 op->in_c, op->out_c, TR_C_VALUE(op->x), TR_C_ARRAY(op->w), y.text);
    return finish_affine(network, traced, (int64_t)op->window.out_h * op->window.out_w, op->out_c, op->b,
                         op->activation, op->slope, y.text);
}

static tr_status write_conv(struct tr_c_network *network, const struct tr_traced *traced)
{
    const struct tr_op_conv_forward *op = &traced->as.conv_forward;
    write_window(network, traced, &op->window);
    TR_C_BEGIN(conv);
    return call_conv(network, traced, op);
}

static tr_status write_winograd(struct tr_c_network *network, const struct tr_traced *traced)
{
    const struct tr_op_conv_forward *op = &traced->as.winograd_forward.conv;
    write_window(network, traced, &op->window);
    TR_C_BEGIN(winograd);
    return call_conv(network, traced, op);
}

static tr_status write_conv_transpose(struct tr_c_network *network, const struct tr_traced *traced)
{
    const struct tr_op_conv_backward_data *op = &traced->as.conv_backward_data;
    write_window(network, traced, &op->window);
    TR_C_BEGIN(conv_transpose);
    tr_text_addf(&network->body, "&%s_window, %d, %d, %s, %s, %s);\n", network->layer_name[traced->layer],
                 op->in_c, op->out_c, TR_C_VALUE(op->dy), TR_C_ARRAY(op->w), TR_C_VALUE(op->dx));
    return TR_OK;
}

static tr_status write_grouped_conv(struct tr_c_network *network, const struct tr_traced *traced)
{
    const struct tr_op_grouped_conv_forward *grouped = &traced->as.grouped_conv_forward;
    const struct tr_op_conv_forward *op = &grouped->conv;
    const struct tr_c_name y = tr_c_value_name(network, traced, op->y);
    write_window(network, traced, &op->window);
    TR_C_BEGIN(grouped_conv);
    tr_text_addf(&network->body, "&%s_window, %d, %d, %d, %s, %s, %s);\n", network->layer_name[traced->layer],
                 grouped->groups, op->in_c, op->out_c, TR_C_VALUE(op->x), TR_C_ARRAY(op->w), y.text);
    return finish_affine(network, traced, (int64_t)op->window.out_h * op->window.out_w, op->out_c, op->b,
                         op->activation, op->slope, y.text);
}

static tr_status write_grouped_conv_transpose(struct tr_c_network *network, const struct tr_traced *traced)
{
    const struct tr_op_grouped_conv_backward_data *grouped = &traced->as.grouped_conv_backward_data;
    const struct tr_op_conv_backward_data *op = &grouped->conv;
    write_window(network, traced, &op->window);
    TR_C_BEGIN(grouped_conv_transpose);
    tr_text_addf(&network->body, "&%s_window, %d, %d, %d, %s, %s, %s);\n", network->layer_name[traced->layer],
                 grouped->groups, op->in_c, op->out_c, TR_C_VALUE(op->dy), TR_C_ARRAY(op->w),
                 TR_C_VALUE(op->dx));
    return TR_OK;
}

static tr_status write_pool(struct tr_c_network *network, const struct tr_traced *traced)
{
    const struct tr_op_pool_forward *op = &traced->as.pool_forward;
    write_window(network, traced, &op->window);
    if (op->kind == TR_POOL_MAX)
        TR_C_BEGIN(max_pool);
    else
        TR_C_BEGIN(average_pool);
    tr_text_addf(&network->body, "&%s_window, ", network->layer_name[traced->layer]);
    if (op->kind == TR_POOL_AVERAGE) tr_text_add(&network->body, op->count_border ? "1, " : "0, ");
    tr_text_addf(&network->body, "%d, %s, %s);\n", op->channels, TR_C_VALUE(op->x), TR_C_VALUE(op->y));
    return TR_OK;
}

static tr_status write_activation_layer(struct tr_c_network *network, const struct tr_traced *traced)
{
    const struct tr_op_activation_forward *op = &traced->as.activation_forward;
    return write_activation(network, traced, op->activation, op->slope, op->count, TR_C_VALUE(op->x),
                            TR_C_VALUE(op->y));
}

static tr_status write_add(struct tr_c_network *network, const struct tr_traced *traced)
{
    const struct tr_op_add *op = &traced->as.add;
    TR_C_BEGIN(add);
    tr_text_addf(&network->body, "%" PRId64 ", %s, %s, %s);\n", op->count, TR_C_VALUE(op->a),
                 TR_C_VALUE(op->b), TR_C_VALUE(op->y));
    return TR_OK;
}

static tr_status write_multiply(struct tr_c_network *network, const struct tr_traced *traced)
{
    const struct tr_op_multiply *op = &traced->as.multiply;
    TR_C_BEGIN(multiply);
    tr_text_addf(&network->body, "%" PRId64 ", %" PRId64 ", %s, %s, %s);\n", op->spatial, op->width,
                 TR_C_VALUE(op->a), TR_C_VALUE(op->b), TR_C_VALUE(op->y));
    return TR_OK;
}

static tr_status write_concat(struct tr_c_network *network, const struct tr_traced *traced)
{
    const struct tr_op_join_columns *op = &traced->as.join_columns;
    int64_t all = 0, before = 0;
    for (int32_t i = 0; i < op->parts; i++) all += op->width[i];
    for (int32_t i = 0; i < op->parts; before += op->width[i++]) {
        TR_C_BEGIN(concat);
        tr_text_addf(&network->body, "%" PRId64 ", %" PRId64 ", %" PRId64 ", %s, %s + %" PRId64 ");\n",
                     op->rows, op->width[i], all, TR_C_VALUE(op->x[i]), TR_C_VALUE(op->y), before);
    }
    return TR_OK;
}

static tr_status write_slice(struct tr_c_network *network, const struct tr_traced *traced)
{
    const struct tr_op_split_columns *op = &traced->as.split_columns;
    TR_C_BEGIN(copy);
    tr_text_addf(&network->body, "%" PRId64 ", %s + %" PRId64 ", %s);\n", op->width[1], TR_C_VALUE(op->x),
                 op->width[0], TR_C_VALUE(op->y[1]));
    return TR_OK;
}

static tr_status write_pool_rows(struct tr_c_network *network, const struct tr_traced *traced)
{
    const struct tr_op_pool_rows_forward *op = &traced->as.pool_rows_forward;
    if (op->kind == TR_POOL_MAX)
        TR_C_BEGIN(greatest_row);
    else
        TR_C_BEGIN(mean_row);
    tr_text_addf(&network->body, "%" PRId64 ", %" PRId64 ", %s, %s);\n", op->spatial, op->width,
                 TR_C_VALUE(op->x), TR_C_VALUE(op->y));
    return TR_OK;
}

static tr_status write_scale(struct tr_c_network *network, const struct tr_traced *traced)
{
    const struct tr_op_scale *op = &traced->as.scale;
    char text[TR_C_CONSTANT];
    TR_C_BEGIN(scale);
    tr_text_addf(&network->body, "%" PRId64 ", %s, %s, %s);\n", op->count, constant(op->factor, text),
                 TR_C_VALUE(op->x), TR_C_VALUE(op->y));
    return TR_OK;
}

static tr_status write_softmax(struct tr_c_network *network, const struct tr_traced *traced)
{
    const struct tr_op_softmax_forward *op = &traced->as.softmax_forward;
    TR_C_BEGIN(softmax);
    tr_text_addf(&network->body, "%" PRId64 ", %" PRId64 ", %s, %s);\n", op->rows, op->width,
                 TR_C_VALUE(op->x), TR_C_VALUE(op->y));
    return TR_OK;
}

static tr_status write_layer_norm(struct tr_c_network *network, const struct tr_traced *traced)
{
    const struct tr_op_layer_norm_forward *op = &traced->as.layer_norm_forward;
    char text[TR_C_CONSTANT];
    if (op->rows > 1) { /* of pixels */
        tr_text_pad(&network->body, ' ', tr_c_indent(network, traced));
        tr_text_addf(&network->body, "for (int32_t p = 0; p < %" PRId64 "; p++)\n    ", op->rows);
        TR_C_BEGIN(layer_norm);
        tr_text_addf(&network->body,
                     "%" PRId64 ", %s, %s, %s, %s + %" PRId64 " * p, %s + %" PRId64 " * p);\n", op->width,
                     constant(op->epsilon, text), TR_C_ARRAY(op->gamma), TR_C_ARRAY(op->beta),
                     TR_C_VALUE(op->x), op->width, TR_C_VALUE(op->y), op->width);
        return TR_OK;
    }
    TR_C_BEGIN(layer_norm);
    tr_text_addf(&network->body, "%" PRId64 ", %s, %s, %s, %s, %s);\n", op->width,
                 constant(op->epsilon, text), TR_C_ARRAY(op->gamma), TR_C_ARRAY(op->beta), TR_C_VALUE(op->x),
                 TR_C_VALUE(op->y));
    return TR_OK;
}

static tr_status write_rms_norm(struct tr_c_network *network, const struct tr_traced *traced)
{
    const struct tr_op_rms_norm_forward *op = &traced->as.rms_norm_forward;
    char text[TR_C_CONSTANT];
    TR_C_BEGIN(rms_norm);
    tr_text_addf(&network->body, "%" PRId64 ", %s, %s, %s, %s);\n", op->width, constant(op->epsilon, text),
                 TR_C_ARRAY(op->gamma), TR_C_VALUE(op->x), TR_C_VALUE(op->y));
    return TR_OK;
}

static tr_status write_group_norm(struct tr_c_network *network, const struct tr_traced *traced)
{
    const struct tr_op_group_norm_forward *op = &traced->as.group_norm_forward;
    char text[TR_C_CONSTANT];
    TR_C_BEGIN(group_norm);
    tr_text_addf(&network->body, "%" PRId64 ", %" PRId64 ", %" PRId64 ", %s, %s, %s, %s, %s);\n", op->spatial,
                 op->channels, op->groups, constant(op->epsilon, text), TR_C_ARRAY(op->gamma),
                 TR_C_ARRAY(op->beta), TR_C_VALUE(op->x), TR_C_VALUE(op->y));
    return TR_OK;
}

static tr_status write_batch_norm(struct tr_c_network *network, const struct tr_traced *traced)
{
    const struct tr_op_batch_norm_infer *op = &traced->as.batch_norm_infer;
    char text[TR_C_CONSTANT];
    TR_C_BEGIN(batch_norm);
    tr_text_addf(&network->body, "%" PRId64 ", %" PRId64 ", %s, %s, %s, %s, %s, %s, %s);\n", op->rows,
                 op->channels, constant(op->epsilon, text), TR_C_ARRAY(op->gamma), TR_C_ARRAY(op->beta),
                 TR_C_ARRAY(op->mean), TR_C_ARRAY(op->var), TR_C_VALUE(op->x), TR_C_VALUE(op->y));
    return TR_OK;
}

static tr_status write_pixels(struct tr_c_network *network, const struct tr_traced *traced)
{
    const struct tr_op_load_images *op = &traced->as.load_images;
    static const char *const names[] = {"scale", "shift"};
    const float *const values[] = {op->scale, op->shift};
    tr_text_add(&network->body, "    {\n"); /* there may be several images */
    for (int i = 0; i < 2; i++) {
        char text[TR_C_CONSTANT];
        tr_text_addf(&network->body, "    static const float %s[4] = {", names[i]);
        for (int c = 0; c < 4; c++)
            tr_text_addf(&network->body, "%s%s", constant(values[i][c], text), c < 3 ? ", " : "};\n");
    }
    TR_C_BEGIN(pixels);
    tr_text_addf(&network->body, "%d, %d, %d, %d, %d, scale, shift, %s, %s);\n", op->in_h, op->in_w,
                 op->out_h, op->out_w, op->channels, TR_C_VALUE(op->source), TR_C_VALUE(op->y));
    tr_text_add(&network->body, "    }\n");
    return TR_OK;
}

/* In hexadecimal, like floats. */
void tr_c_write_doubles(struct tr_text *text, const char *name, int64_t count, const double *values)
{
    tr_text_addf(text, "    static const double %s[%" PRId64 "] = {", name, count);
    for (int64_t i = 0; i < count; i++) tr_text_addf(text, "%s%a,", i % 4 ? " " : "\n        ", values[i]);
    tr_text_add(text, "\n    };\n");
}

/* A name with the characters that a comment can hold. */
static void add_name(struct tr_text *text, const char *name)
{
    for (; *name; name++) {
        bool plain = (unsigned char)*name >= ' ' && (unsigned char)*name < 127 && *name != '*' &&
                     *name != '?' && *name != '\\' && *name != '/';
        tr_text_addf(text, "%c", plain ? *name : '_');
    }
}

/* A comment with the numbers that stand for names, and the count of them for each column. */
static void write_names(struct tr_text *text, const struct tr_op_standardize *op)
{
    for (int32_t c = 0; op->categories && c < op->columns; c++) {
        const struct tr_class_names *names = &op->categories->names[c];
        if (names->count == 0) continue;
        tr_text_addf(text, "    /* Value %" PRId32 " stands for a name:", c);
        for (int32_t i = 0; i < names->count; i++) {
            tr_text_addf(text, "%s%" PRId32 " ", i ? ", " : i % 8 ? " " : "\n       ", i);
            add_name(text, names->name[i]);
        }
        tr_text_add(text, "; -1 is none of them. */\n");
    }
    tr_text_addf(text, "    static const int32_t names[%" PRId64 "] = {", op->columns);
    for (int32_t c = 0; c < op->columns; c++)
        tr_text_addf(text, "%s%" PRId32 ",", c % 16 ? " " : "\n        ",
                     op->categories ? op->categories->names[c].count : 0);
    tr_text_add(text, "\n    };\n");
}

static void write_fill(struct tr_text *text, const struct tr_op_standardize *op)
{
    tr_text_addf(text, "    static const float fill[%" PRId64 "] = {", op->columns);
    for (int64_t c = 0; c < op->columns; c++) {
        char number[TR_C_CONSTANT] = "-1.0f"; /* a missing name is none of them */
        if (op->fill && !isnan(op->fill[c])) tr_c_constant(op->fill[c], number);
        tr_text_addf(text, "%s%s,", c % 4 ? " " : "\n        ", number);
    }
    tr_text_add(text, "\n    };\n");
}

/* Where nothing is filled in, a missing number stays missing. */
static tr_status write_prepare(struct tr_c_network *network, const struct tr_traced *traced)
{
    const struct tr_op_standardize *op = &traced->as.standardize;
    tr_text_add(&network->body, "    {\n");
    write_names(&network->body, op);
    if (op->fill) write_fill(&network->body, op);
    tr_c_write_doubles(&network->body, "mean", op->width, op->mean);
    tr_c_write_doubles(&network->body, "deviation", op->width, op->deviation);
    TR_C_BEGIN(prepare);
    tr_text_addf(&network->body, "%" PRId64 ", names, %s, mean, deviation, %s, %s);\n", op->columns,
                 op->fill ? "fill" : TR_C_VALUE(op->x), TR_C_VALUE(op->x), TR_C_VALUE(op->y));
    tr_text_add(&network->body, "    }\n");
    return TR_OK;
}

static tr_status write_standardize(struct tr_c_network *network, const struct tr_traced *traced)
{
    const struct tr_op_standardize *op = &traced->as.standardize;
    if (op->categories || op->fill) return write_prepare(network, traced);
    tr_text_add(&network->body, "    {\n");
    tr_c_write_doubles(&network->body, "mean", op->width, op->mean);
    tr_c_write_doubles(&network->body, "deviation", op->width, op->deviation);
    TR_C_BEGIN(standardize);
    tr_text_addf(&network->body, "%" PRId64 ", mean, deviation, %s, %s);\n", op->width, TR_C_VALUE(op->x),
                 TR_C_VALUE(op->y));
    tr_text_add(&network->body, "    }\n");
    return TR_OK;
}

static tr_status (*const writers[TR_TRACED_KINDS])(struct tr_c_network *network,
                                                   const struct tr_traced *traced) = {
    [TR_TRACED_dense_forward] = write_dense,
    [TR_TRACED_conv_forward] = write_conv,
    [TR_TRACED_winograd_forward] = write_winograd,
    [TR_TRACED_conv_backward_data] = write_conv_transpose,
    [TR_TRACED_grouped_conv_forward] = write_grouped_conv,
    [TR_TRACED_grouped_conv_backward_data] = write_grouped_conv_transpose,
    [TR_TRACED_activation_forward] = write_activation_layer,
    [TR_TRACED_add] = write_add,
    [TR_TRACED_multiply] = write_multiply,
    [TR_TRACED_join_columns] = write_concat,
    [TR_TRACED_split_columns] = write_slice,
    [TR_TRACED_scale] = write_scale,
    [TR_TRACED_pool_rows_forward] = write_pool_rows,
    [TR_TRACED_pool_forward] = write_pool,
    [TR_TRACED_softmax_forward] = write_softmax,
    [TR_TRACED_layer_norm_forward] = write_layer_norm,
    [TR_TRACED_rms_norm_forward] = write_rms_norm,
    [TR_TRACED_group_norm_forward] = write_group_norm,
    [TR_TRACED_batch_norm_infer] = write_batch_norm,
    [TR_TRACED_load_images] = write_pixels,
    [TR_TRACED_standardize] = write_standardize,
};

tr_status tr_c_write_operation(struct tr_c_network *network, const struct tr_traced *traced)
{
    tr_status status = tr_c_write_tokens(network, traced);
    if (status != TR_ENOTFOUND) return status;
    return writers[traced->kind] ? writers[traced->kind](network, traced)
                                 : tr_trace_refuse(network->trace, traced, "C");
}
