/* The function that predicts: one call of a part for each operation. */
#include "export/c_network.h"

#include "base/fail.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>

/* ---- names ---- */

/* The C name of the value that a pointer in an operation's arguments stands for. */
static const char *value_name(const struct tr_c_network *network, const void *pointer)
{
    int value = tr_trace_value(network->trace, pointer);
    while (network->value[value].place == TR_C_SAME) value = network->value[value].same;
    return network->value[value].place == TR_C_OUTPUT ? "output" : network->value[value].name;
}

/* The C name of a parameter's array, which the file gets from now on. */
struct array_name {
    char text[3 * TR_C_IDENTIFIER];
};
static struct array_name array_of(struct tr_c_network *network, const float *pointer)
{
    const struct tr_parameter *parameter = tr_trace_parameter(network->trace, pointer);
    assert(parameter);
    int number = (int)(parameter - network->trace->model->parameters);
    char own[2 * TR_C_IDENTIFIER];
    struct array_name name;
    network->parameter_used[number] = true;
    snprintf(name.text, sizeof name.text, "%s_%s", network->name, tr_c_parameter_name(network, number, own));
    return name;
}

/* Begins a call of a part: "    net_dense(". The caller adds arguments and the end. */
static void begin_call(struct tr_c_network *network, const struct tr_traced *traced, enum tr_c_part part,
                       const char *function)
{
    tr_c_parts_use(&network->parts, part);
    tr_text_pad(&network->body, ' ', traced && traced->per_token ? 8 : 4);
    tr_text_addf(&network->body, "%s_%s(", network->name, function);
}
#define BEGIN(part) begin_call(network, traced, TR_C_##part, #part)

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
        BEGIN(relu);
        break;
    case TR_ACT_LEAKY_RELU:
        BEGIN(leaky_relu);
        tr_text_addf(&network->body, "%" PRId64 ", %s, %s, %s);\n", count, constant(slope, text), x, y);
        return TR_OK;
    case TR_ACT_TANH:
        BEGIN(tanh_of);
        break;
    case TR_ACT_SIGMOID:
        BEGIN(sigmoid_of);
        break;
    case TR_ACT_GELU:
        BEGIN(gelu);
        break;
    default:
        return tr_trace_refuse(network->trace, traced, "C");
    }
    tr_text_addf(&network->body, "%" PRId64 ", %s, %s);\n", count, x, y);
    return TR_OK;
}

/* What follows the sums of a dense or convolution layer, in place. */
static tr_status finish_affine(struct tr_c_network *network, const struct tr_traced *traced, int64_t rows,
                               int64_t width, const float *bias, enum tr_activation activation, float slope,
                               const char *y)
{
    if (bias) {
        BEGIN(plus_bias);
        tr_text_addf(&network->body, "%" PRId64 ", %" PRId64 ", %s, %s);\n", rows, width,
                     array_of(network, bias).text, y);
    }
    return write_activation(network, traced, activation, slope, rows * width, y, y);
}

static tr_status write_dense(struct tr_c_network *network, const struct tr_traced *traced)
{
    const struct tr_op_dense_forward *op = &traced->as.dense_forward;
    const char *y = value_name(network, op->y);
    BEGIN(dense);
    tr_text_addf(&network->body, "%" PRId64 ", %" PRId64 ", %s, %s, %s);\n", op->in, op->out,
                 value_name(network, op->x), array_of(network, op->w).text, y);
    return finish_affine(network, traced, 1, op->out, op->b, op->activation, op->slope, y);
}

/* The geometry is a constant in front of the call; its name is the layer's. */
static void write_window(struct tr_c_network *network, const struct tr_traced *traced,
                         const struct tr_window *window)
{
    tr_text_addf(
        &network->body,
        "    static const struct %s_window %s_window = {%d, %d, %d, %d, %d, %d, %d, %d, %d, %d, %d, %d};\n",
        network->name, network->layer_name[traced->layer], window->in_h, window->in_w, window->out_h,
        window->out_w, window->kernel_h, window->kernel_w, window->stride_h, window->stride_w,
        window->dilation_h, window->dilation_w, window->pad_top, window->pad_left);
}

static tr_status write_conv(struct tr_c_network *network, const struct tr_traced *traced)
{
    const struct tr_op_conv_forward *op = &traced->as.conv_forward;
    const char *y = value_name(network, op->y);
    write_window(network, traced, &op->window);
    BEGIN(conv);
    tr_text_addf(&network->body, "&%s_window, %d, %d, %s, %s, %s);\n", network->layer_name[traced->layer],
                 op->in_c, op->out_c, value_name(network, op->x), array_of(network, op->w).text, y);
    return finish_affine(network, traced, (int64_t)op->window.out_h * op->window.out_w, op->out_c, op->b,
                         op->activation, op->slope, y);
}

static tr_status write_pool(struct tr_c_network *network, const struct tr_traced *traced)
{
    const struct tr_op_pool_forward *op = &traced->as.pool_forward;
    write_window(network, traced, &op->window);
    if (op->kind == TR_POOL_MAX)
        BEGIN(max_pool);
    else
        BEGIN(average_pool);
    tr_text_addf(&network->body, "&%s_window, %d, %s, %s);\n", network->layer_name[traced->layer],
                 op->channels, value_name(network, op->x), value_name(network, op->y));
    return TR_OK;
}

static tr_status write_activation_layer(struct tr_c_network *network, const struct tr_traced *traced)
{
    const struct tr_op_activation_forward *op = &traced->as.activation_forward;
    return write_activation(network, traced, op->activation, op->slope, op->count, value_name(network, op->x),
                            value_name(network, op->y));
}

static tr_status write_add(struct tr_c_network *network, const struct tr_traced *traced)
{
    const struct tr_op_add *op = &traced->as.add;
    BEGIN(add);
    tr_text_addf(&network->body, "%" PRId64 ", %s, %s, %s);\n", op->count, value_name(network, op->a),
                 value_name(network, op->b), value_name(network, op->y));
    return TR_OK;
}

static tr_status write_scale(struct tr_c_network *network, const struct tr_traced *traced)
{
    const struct tr_op_scale *op = &traced->as.scale;
    char text[TR_C_CONSTANT];
    BEGIN(scale);
    tr_text_addf(&network->body, "%" PRId64 ", %s, %s, %s);\n", op->count, constant(op->factor, text),
                 value_name(network, op->x), value_name(network, op->y));
    return TR_OK;
}

static tr_status write_softmax(struct tr_c_network *network, const struct tr_traced *traced)
{
    const struct tr_op_softmax_forward *op = &traced->as.softmax_forward;
    BEGIN(softmax);
    tr_text_addf(&network->body, "%" PRId64 ", %" PRId64 ", %s, %s);\n", op->rows, op->width,
                 value_name(network, op->x), value_name(network, op->y));
    return TR_OK;
}

static tr_status write_layer_norm(struct tr_c_network *network, const struct tr_traced *traced)
{
    const struct tr_op_layer_norm_forward *op = &traced->as.layer_norm_forward;
    char text[TR_C_CONSTANT];
    BEGIN(layer_norm);
    tr_text_addf(&network->body, "%" PRId64 ", %s, %s, %s, %s, %s);\n", op->width,
                 constant(op->epsilon, text), array_of(network, op->gamma).text,
                 array_of(network, op->beta).text, value_name(network, op->x), value_name(network, op->y));
    return TR_OK;
}

static tr_status write_batch_norm(struct tr_c_network *network, const struct tr_traced *traced)
{
    const struct tr_op_batch_norm_infer *op = &traced->as.batch_norm_infer;
    char text[TR_C_CONSTANT];
    BEGIN(batch_norm);
    tr_text_addf(&network->body, "%" PRId64 ", %" PRId64 ", %s, %s, %s, %s, %s, %s, %s);\n", op->rows,
                 op->channels, constant(op->epsilon, text), array_of(network, op->gamma).text,
                 array_of(network, op->beta).text, array_of(network, op->mean).text,
                 array_of(network, op->var).text, value_name(network, op->x), value_name(network, op->y));
    return TR_OK;
}

static tr_status write_embedding(struct tr_c_network *network, const struct tr_traced *traced)
{
    const struct tr_op_embedding_forward *op = &traced->as.embedding_forward;
    BEGIN(embedding);
    tr_text_addf(&network->body, "%" PRId64 ", %" PRId64 ", %s, tokens[t], %s);\n", op->vocabulary, op->width,
                 array_of(network, op->table).text, value_name(network, op->y));
    return TR_OK;
}

static tr_status write_lstm(struct tr_c_network *network, const struct tr_traced *traced)
{
    const struct tr_op_lstm_forward *op = &traced->as.lstm_forward;
    BEGIN(lstm);
    tr_text_addf(&network->body, "t == 0, %" PRId64 ", %s, %s, %s, %s, %s);\n", op->hidden,
                 array_of(network, op->w).text, array_of(network, op->b).text, value_name(network, op->gates),
                 value_name(network, op->c), value_name(network, op->h));
    return TR_OK;
}

static tr_status write_nothing(struct tr_c_network *network, const struct tr_traced *traced)
{
    (void)network, (void)traced;
    return TR_OK;
}

static tr_status write_pixels(struct tr_c_network *network, const struct tr_traced *traced)
{
    const struct tr_op_load_images *op = &traced->as.load_images;
    static const char *const names[] = {"scale", "shift"};
    const float *const values[] = {op->scale, op->shift};
    for (int i = 0; i < 2; i++) {
        char text[TR_C_CONSTANT];
        tr_text_addf(&network->body, "    static const float %s[4] = {", names[i]);
        for (int c = 0; c < 4; c++)
            tr_text_addf(&network->body, "%s%s", constant(values[i][c], text), c < 3 ? ", " : "};\n");
    }
    BEGIN(pixels);
    tr_text_addf(&network->body, "%d, %d, %d, %d, %d, scale, shift, %s, %s);\n", op->in_h, op->in_w,
                 op->out_h, op->out_w, op->channels, value_name(network, op->source),
                 value_name(network, op->y));
    return TR_OK;
}

static tr_status (*const writers[TR_TRACED_KINDS])(struct tr_c_network *network,
                                                   const struct tr_traced *traced) = {
    [TR_TRACED_dense_forward] = write_dense,
    [TR_TRACED_conv_forward] = write_conv,
    [TR_TRACED_activation_forward] = write_activation_layer,
    [TR_TRACED_add] = write_add,
    [TR_TRACED_scale] = write_scale,
    [TR_TRACED_pool_forward] = write_pool,
    [TR_TRACED_softmax_forward] = write_softmax,
    [TR_TRACED_layer_norm_forward] = write_layer_norm,
    [TR_TRACED_batch_norm_infer] = write_batch_norm,
    [TR_TRACED_embedding_forward] = write_embedding,
    [TR_TRACED_lstm_forward] = write_lstm,
    [TR_TRACED_sequence_last_forward] = write_nothing, /* a matter of places, see c_plan.c */
    [TR_TRACED_load_images] = write_pixels,
};

/* ---- the function ---- */

static void write_places(struct tr_c_network *network)
{
    for (int i = 0; i < network->trace->value_count; i++) {
        const struct tr_c_value *value = &network->value[i];
        if (value->place != TR_C_WORKSPACE) continue;
        tr_text_addf(&network->body, "    float *const %s = workspace + %" PRId64 ";\n", value->name,
                     value->offset);
    }
    for (int i = 0; i < network->trace->value_count; i++) {
        if (!network->value[i].zeroed) continue;
        begin_call(network, NULL, TR_C_zero, "zero");
        tr_text_addf(&network->body, "%" PRId64 ", %s);\n", network->value[i].floats, network->value[i].name);
    }
}

static void write_comment(struct tr_c_network *network, const struct tr_traced *traced)
{
    char shape[TR_SHAPE_TEXT];
    if (traced->layer < 0 || traced->kind == TR_TRACED_sequence_last_forward) return;
    const struct tr_layer *layer = &network->trace->model->layers[traced->layer];
    tr_text_pad(&network->body, ' ', traced->per_token ? 8 : 4);
    tr_text_addf(&network->body, "/* %s: %s */\n", network->layer_name[traced->layer],
                 tr_shape_text(&layer->out, shape));
}

/* The operations of every token, or those of the whole example. */
static tr_status write_operations(struct tr_c_network *network, bool per_token)
{
    const struct tr_trace *trace = network->trace;
    int layer = -1;
    for (int i = 0; i < trace->count; i++) {
        const struct tr_traced *traced = &trace->item[i];
        if (traced->per_token != per_token) continue;
        if (!writers[traced->kind]) return tr_trace_refuse(trace, traced, "C");
        if (traced->layer != layer) write_comment(network, traced);
        layer = traced->layer;
        TR_TRY(writers[traced->kind](network, traced));
    }
    return TR_OK;
}

tr_status tr_c_network_body(struct tr_c_network *network)
{
    const struct tr_trace *trace = network->trace;
    struct tr_text *body = &network->body;
    if (network->tokens)
        tr_text_addf(
            body,
            "void %s_predict(const int32_t *tokens, int32_t length, float *output, float *workspace)\n{\n",
            network->name);
    else
        tr_text_addf(body, "void %s_predict(const float *input, float *output, float *workspace)\n{\n",
                     network->name);
    size_t before = body->length;
    write_places(network);
    if (body->length == before) tr_text_add(body, "    (void)workspace;\n");
    if (network->tokens) {
        tr_text_add(body, "    for (int32_t t = 0; t < length; t++) {\n");
        TR_TRY(write_operations(network, true));
        tr_text_add(body, "    }\n");
    }
    TR_TRY(write_operations(network, false));
    if (network->value[trace->output].place != TR_C_OUTPUT) {
        begin_call(network, NULL, TR_C_copy, "copy");
        tr_text_addf(body, "%" PRId64 ", %s, output);\n", tr_shape_count(&trace->model->output),
                     value_name(network, &trace->place[trace->output]));
    }
    tr_text_add(body, "}\n");
    return TR_OK;
}
