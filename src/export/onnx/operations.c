/* Operations of devices as operations of ONNX. */
#include "export/onnx/graph.h"

#include "base/fail.h"

#include <assert.h>
#include <string.h>

struct tr_onnx_value tr_onnx_alike(const struct tr_onnx_value *value, struct tr_onnx_name name)
{
    struct tr_onnx_value made = *value;
    made.name = name;
    made.ending.text[0] = 0;
    return made;
}

/* The same elements as a vector, channels first: the next layer needs its parameters in that order. */
static struct tr_onnx_name flattened(struct tr_onnx_graph *graph, const struct tr_onnx_value *value)
{
    if (value->form != TR_ONNX_IMAGE) return value->name;
    struct tr_onnx_name name = tr_onnx_emit(graph, "Flatten", 1, value->name.text);
    tr_onnx_attribute_integer(graph->onnx, "axis", 1);
    return name;
}

/* ---- elements ---- */

static tr_status translate_activation(struct tr_onnx_graph *graph, const struct tr_traced *traced)
{
    const struct tr_op_activation_forward *op = &traced->as.activation_forward;
    struct tr_onnx_value y =
        tr_onnx_alike(tr_onnx_value_of(graph, op->x), tr_onnx_value_of(graph, op->x)->name);
    TR_TRY(tr_onnx_activate(graph, traced, op->activation, op->slope, &y.name));
    tr_onnx_define(graph, op->y, &y);
    return TR_OK;
}

static tr_status translate_add(struct tr_onnx_graph *graph, const struct tr_traced *traced)
{
    const struct tr_op_add *op = &traced->as.add;
    struct tr_onnx_value a = *tr_onnx_value_of(graph, op->a), b = *tr_onnx_value_of(graph, op->b);
    /* A vector that was an image, and one that was not, or was another image. */
    if (a.form != b.form || (a.form == TR_ONNX_IMAGE && memcmp(a.size, b.size, sizeof a.size) != 0)) {
        a = tr_onnx_as_rows(graph, &a);
        b = tr_onnx_as_rows(graph, &b);
    }
    struct tr_onnx_value y = tr_onnx_alike(&a, tr_onnx_emit(graph, "Add", 2, a.name.text, b.name.text));
    tr_onnx_define(graph, op->y, &y);
    return TR_OK;
}

/* b [batch, channels] for the pixels of an image. */
static struct tr_onnx_name over_pixels(struct tr_onnx_graph *graph, struct tr_onnx_value b)
{
    static const int64_t size[] = {0, -1, 1, 1};
    const bool pixel = b.form == TR_ONNX_IMAGE && b.size[0] == 1 && b.size[1] == 1;
    if (pixel) return b.name;
    b = tr_onnx_as_rows(graph, &b);
    struct tr_onnx_name shape = tr_onnx_local_integers(graph, "shape", 4, size);
    return tr_onnx_emit(graph, "Reshape", 2, b.name.text, shape.text);
}

static tr_status translate_multiply(struct tr_onnx_graph *graph, const struct tr_traced *traced)
{
    const struct tr_op_multiply *op = &traced->as.multiply;
    struct tr_onnx_value a = *tr_onnx_value_of(graph, op->a), b = *tr_onnx_value_of(graph, op->b);
    if (op->spatial > 1)
        b.name = over_pixels(graph, b);
    else if (a.form != b.form || (a.form == TR_ONNX_IMAGE && memcmp(a.size, b.size, sizeof a.size) != 0)) {
        a = tr_onnx_as_rows(graph, &a);
        b = tr_onnx_as_rows(graph, &b);
    }
    struct tr_onnx_value y = tr_onnx_alike(&a, tr_onnx_emit(graph, "Mul", 2, a.name.text, b.name.text));
    tr_onnx_define(graph, op->y, &y);
    return TR_OK;
}

/* Two values: images along their channels if the operation does so, anything else as rows. */
static struct tr_onnx_value join(struct tr_onnx_graph *graph, bool channels, struct tr_onnx_value a,
                                 struct tr_onnx_value b)
{
    if (!channels) {
        a = tr_onnx_as_rows(graph, &a);
        b = tr_onnx_as_rows(graph, &b);
    }
    struct tr_onnx_value y = tr_onnx_alike(&a, tr_onnx_emit(graph, "Concat", 2, a.name.text, b.name.text));
    tr_onnx_attribute_integer(graph->onnx, "axis", channels ? 1 : -1);
    if (channels)
        y.size[2] += b.size[2];
    else
        y.width += b.width;
    return y;
}

/* The repetitions of rows and of columns, if that is what the layer computes; else NULL. */
static const int32_t *repeats_of(const struct tr_onnx_graph *graph, const struct tr_traced *traced)
{
    const struct tr_layer *layer = &graph->trace->model->layers[traced->layer];
    return strcmp(layer->class->name, "upsample") == 0 ? tr_layer_option(layer, "size") : NULL;
}

/* The last of its operations stands for all. */
static tr_status translate_upsample(struct tr_onnx_graph *graph, const struct tr_op_join_columns *op,
                                    const int32_t *size)
{
    static const int64_t dimensions = 4;
    struct tr_onnx_value y = *tr_onnx_value_of(graph, op->x[0]);
    int place = tr_trace_value(graph->trace, op->y);
    assert(y.form == TR_ONNX_IMAGE);
    if (place >= TR_VALUE_LAYERS + graph->trace->model->layer_count) {
        graph->value[place] = y;
        return TR_OK;
    }
    struct tr_onnx_name scales = tr_onnx_local(graph, "scales");
    float *data = tr_onnx_floats(graph->onnx, scales.text, 1, &dimensions);
    if (data) memcpy(data, (const float[]){1, 1, (float)size[0], (float)size[1]}, 4 * sizeof *data);
    y.name = tr_onnx_emit(graph, "Resize", 3, y.name.text, "", scales.text);
    for (int i = 0; i < 2; i++) y.size[i] *= size[i];
    tr_onnx_define(graph, op->y, &y);
    return TR_OK;
}

static tr_status translate_concat(struct tr_onnx_graph *graph, const struct tr_traced *traced)
{
    const struct tr_op_join_columns *op = &traced->as.join_columns;
    if (repeats_of(graph, traced)) return translate_upsample(graph, op, repeats_of(graph, traced));
    struct tr_onnx_value y = *tr_onnx_value_of(graph, op->x[0]);
    bool channels = y.form == TR_ONNX_IMAGE && graph->trace->model->layers[traced->layer].out.rank == 3;
    for (int32_t i = 1; i < op->parts; i++) y = join(graph, channels, y, *tr_onnx_value_of(graph, op->x[i]));
    tr_onnx_define(graph, op->y, &y);
    return TR_OK;
}

/* For images. */
static tr_status translate_pool_rows(struct tr_onnx_graph *graph, const struct tr_traced *traced)
{
    const struct tr_op_pool_rows_forward *op = &traced->as.pool_rows_forward;
    const struct tr_onnx_value *x = tr_onnx_value_of(graph, op->x);
    const char *name = op->kind == TR_POOL_MAX ? "GlobalMaxPool" : "GlobalAveragePool";
    if (x->form == TR_ONNX_SEQUENCE) return tr_onnx_translate_pool_tokens(graph, traced);
    struct tr_onnx_name pooled = tr_onnx_emit(graph, name, 1, x->name.text);
    struct tr_onnx_value y = {.form = TR_ONNX_ROWS, .width = op->width};
    y.name = tr_onnx_emit(graph, "Flatten", 1, pooled.text);
    tr_onnx_attribute_integer(graph->onnx, "axis", 1);
    tr_onnx_define(graph, op->y, &y);
    return TR_OK;
}

static tr_status translate_scale(struct tr_onnx_graph *graph, const struct tr_traced *traced)
{
    const struct tr_op_scale *op = &traced->as.scale;
    const struct tr_onnx_value *x = tr_onnx_value_of(graph, op->x);
    struct tr_onnx_name factor = tr_onnx_local_number(graph, "factor", op->factor);
    struct tr_onnx_value y = tr_onnx_alike(x, tr_onnx_emit(graph, "Mul", 2, x->name.text, factor.text));
    tr_onnx_define(graph, op->y, &y);
    return TR_OK;
}

/* ---- sums of products ---- */

/* Whether a value is the inputs' part of the gates of a recurrent layer. */
static bool is_of_gates(const struct tr_trace *trace, const float *pointer)
{
    const int value = tr_trace_value(trace, pointer);
    for (int i = 0; i < trace->count; i++) {
        const struct tr_traced *traced = &trace->item[i];
        if (traced->kind != TR_TRACED_lstm_forward && traced->kind != TR_TRACED_gru_forward) continue;
        if (tr_trace_ports(trace, traced).read[0] == value) return true;
    }
    return false;
}

static tr_status translate_dense(struct tr_onnx_graph *graph, const struct tr_traced *traced)
{
    const struct tr_op_dense_forward *op = &traced->as.dense_forward;
    if (is_of_gates(graph->trace, op->y)) return TR_OK; /* the recurrence after it translates it */
    const struct tr_onnx_value *x = tr_onnx_value_of(graph, op->x);
    if (x->taps > 0) return tr_onnx_translate_conv1d(graph, traced);
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
    TR_TRY(tr_onnx_activate(graph, traced, op->activation, op->slope, &y.name));
    tr_onnx_define(graph, op->y, &y);
    return TR_OK;
}

/* ---- what layers take in another form ---- */

/* An image that a layer takes as tokens, or the other way round: later operations see it in that form. */
static void take_tokens(struct tr_onnx_graph *graph, const struct tr_traced *traced)
{
    static const int64_t flat[] = {0, 0, -1}, time_first[] = {2, 0, 1}, time_second[] = {1, 0, 2},
                         batch_first[] = {1, 2, 0};
    const struct tr_layer *layer = traced->layer < 0 ? NULL : &graph->trace->model->layers[traced->layer];
    struct tr_traced_ports ports = tr_trace_ports(graph->trace, traced);
    for (int k = 0; layer && k < TR_TRACED_READS; k++) {
        if (ports.read[k] < 0 || graph->trace->model->image_tokens == 0) continue;
        struct tr_onnx_value *value = &graph->value[ports.read[k]];
        const struct tr_shape *image = &graph->trace->value[ports.read[k]].shape;
        if (value->form == TR_ONNX_IMAGE && layer->in[0].sequence) {
            struct tr_onnx_name shape = tr_onnx_local_integers(graph, "flat", 3, flat);
            struct tr_onnx_name rows = tr_onnx_emit(graph, "Reshape", 2, value->name.text, shape.text);
            const int64_t channels = value->size[2];
            *value = (struct tr_onnx_value){.form = TR_ONNX_SEQUENCE, .width = channels};
            value->name = tr_onnx_emit(graph, "Transpose", 1, rows.text);
            tr_onnx_attribute_integers(graph->onnx, "perm", 3, time_first);
        } else if (value->form == TR_ONNX_ROWS && image->rank == 1 && !image->sequence &&
                   layer->in[0].sequence && ports.read[k] < TR_VALUE_LAYERS) { /* numbers of the data */
            const int64_t all = tr_shape_count(image), tokens = layer->tokens_in,
                          size[] = {-1, tokens, all / tokens};
            struct tr_onnx_name shape = tr_onnx_local_integers(graph, "steps", 3, size);
            struct tr_onnx_name rows = tr_onnx_emit(graph, "Reshape", 2, value->name.text, shape.text);
            *value = (struct tr_onnx_value){.form = TR_ONNX_SEQUENCE, .width = all / tokens};
            value->name = tr_onnx_emit(graph, "Transpose", 1, rows.text);
            tr_onnx_attribute_integers(graph->onnx, "perm", 3, time_second);
        } else if (value->form == TR_ONNX_SEQUENCE && image->rank == 3 && !layer->in[0].sequence) {
            const int64_t size[] = {0, 0, image->size[0], image->size[1]};
            struct tr_onnx_name shape = tr_onnx_local_integers(graph, "image", 4, size);
            struct tr_onnx_name rows = tr_onnx_emit(graph, "Transpose", 1, value->name.text);
            tr_onnx_attribute_integers(graph->onnx, "perm", 3, batch_first);
            *value = (struct tr_onnx_value){.form = TR_ONNX_IMAGE};
            memcpy(value->size, image->size, sizeof value->size);
            value->name = tr_onnx_emit(graph, "Reshape", 2, rows.text, shape.text);
        }
    }
}

/* Rows that a layer takes as an image (reshape): later operations see them as one. */
static void take_images(struct tr_onnx_graph *graph, const struct tr_traced *traced)
{
    static const int64_t channels_first[] = {0, 3, 1, 2};
    const struct tr_layer *layer = traced->layer < 0 ? NULL : &graph->trace->model->layers[traced->layer];
    if (!layer || layer->in[0].rank != 3) return;
    struct tr_traced_ports ports = tr_trace_ports(graph->trace, traced);
    for (int k = 0; k < TR_TRACED_READS; k++) {
        if (ports.read[k] < 0 || graph->value[ports.read[k]].form != TR_ONNX_ROWS) continue;
        struct tr_onnx_value *value = &graph->value[ports.read[k]];
        const struct tr_shape *in = &layer->in[k < layer->input_count ? k : 0];
        const int64_t *size = in->size;
        if (in->rank != 3) continue; /* factors of an image's channels */
        const int64_t shape[] = {-1, size[0], size[1], size[2]};
        struct tr_onnx_name to = tr_onnx_local_integers(graph, "shape", 4, shape);
        struct tr_onnx_name image = tr_onnx_emit(graph, "Reshape", 2, value->name.text, to.text);
        *value = (struct tr_onnx_value){.form = TR_ONNX_IMAGE, .size = {size[0], size[1], size[2]}};
        value->name = tr_onnx_emit(graph, "Transpose", 1, image.text);
        tr_onnx_attribute_integers(graph->onnx, "perm", 4, channels_first);
    }
}

static tr_status translate_slice(struct tr_onnx_graph *graph, const struct tr_traced *traced)
{
    const struct tr_op_split_columns *op = &traced->as.split_columns;
    struct tr_onnx_value x = tr_onnx_as_rows(graph, tr_onnx_value_of(graph, op->x));
    const int64_t begin = op->width[0], end = op->width[0] + op->width[1], last = -1;
    struct tr_onnx_name from = tr_onnx_local_integers(graph, "begin", 1, &begin);
    struct tr_onnx_name to = tr_onnx_local_integers(graph, "end", 1, &end);
    struct tr_onnx_name axis = tr_onnx_local_integers(graph, "axis", 1, &last);
    struct tr_onnx_value y =
        tr_onnx_alike(&x, tr_onnx_emit(graph, "Slice", 4, x.name.text, from.text, to.text, axis.text));
    y.width = op->width[1];
    tr_onnx_define(graph, op->y[1], &y);
    return TR_OK;
}

/* ---- all ---- */

static tr_status (*const translators[TR_TRACED_KINDS])(struct tr_onnx_graph *graph,
                                                       const struct tr_traced *traced) = {
    [TR_TRACED_dense_forward] = translate_dense,
    [TR_TRACED_conv_forward] = tr_onnx_translate_conv,
    [TR_TRACED_winograd_forward] = tr_onnx_translate_winograd,
    [TR_TRACED_conv_backward_data] = tr_onnx_translate_conv_transpose,
    [TR_TRACED_grouped_conv_forward] = tr_onnx_translate_grouped_conv,
    [TR_TRACED_grouped_conv_backward_data] = tr_onnx_translate_grouped_conv_transpose,
    [TR_TRACED_activation_forward] = translate_activation,
    [TR_TRACED_add] = translate_add,
    [TR_TRACED_multiply] = translate_multiply,
    [TR_TRACED_join_columns] = translate_concat,
    [TR_TRACED_split_columns] = translate_slice,
    [TR_TRACED_scale] = translate_scale,
    [TR_TRACED_pool_rows_forward] = translate_pool_rows,
    [TR_TRACED_pool_forward] = tr_onnx_translate_pool,
    [TR_TRACED_softmax_forward] = tr_onnx_translate_softmax,
    [TR_TRACED_layer_norm_forward] = tr_onnx_translate_layer_norm,
    [TR_TRACED_rms_norm_forward] = tr_onnx_translate_rms_norm,
    [TR_TRACED_group_norm_forward] = tr_onnx_translate_group_norm,
    [TR_TRACED_batch_norm_infer] = tr_onnx_translate_batch_norm,
    [TR_TRACED_embedding_forward] = tr_onnx_translate_embedding,
    [TR_TRACED_lstm_forward] = tr_onnx_translate_lstm,
    [TR_TRACED_gru_forward] = tr_onnx_translate_gru,
    [TR_TRACED_sequence_copy] = tr_onnx_translate_copy,
    [TR_TRACED_sequence_unfold] = tr_onnx_translate_unfold,
    [TR_TRACED_position_forward] = tr_onnx_translate_position,
    [TR_TRACED_rotary] = tr_onnx_translate_rotary,
    [TR_TRACED_attention_forward] = tr_onnx_translate_attention,
    [TR_TRACED_dense_backward_data] = tr_onnx_translate_unembedding,
    [TR_TRACED_sequence_last_forward] = tr_onnx_translate_last,
    [TR_TRACED_load_images] = tr_onnx_translate_pixels,
    [TR_TRACED_standardize] = tr_onnx_translate_standardize,
};

tr_status tr_onnx_translate(struct tr_onnx_graph *graph, const struct tr_traced *traced)
{
    if (!translators[traced->kind]) return tr_trace_refuse(graph->trace, traced, "ONNX");
    tr_onnx_begin_part(graph, traced->layer < 0 ? "input" : graph->trace->model->layers[traced->layer].name);
    const int64_t tokens = traced->layer < 0 ? 0 : graph->trace->model->layers[traced->layer].tokens_in;
    if (tokens != graph->tokens) graph->times = (struct tr_onnx_name){""};
    graph->tokens = tokens;
    take_tokens(graph, traced);
    take_images(graph, traced);
    return translators[traced->kind](graph, traced);
}
