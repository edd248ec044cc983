/* Operations over tokens. Examples of a batch are padded to one length after their end, and `lengths` says
 * where that is; time comes first, as ONNX's recurrent operations have it. */
#include "export/onnx/graph.h"

#include "base/fail.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

tr_status tr_onnx_translate_embedding(struct tr_onnx_graph *graph, const struct tr_traced *traced)
{
    const struct tr_op_embedding_forward *op = &traced->as.embedding_forward;
    static const int64_t time_first[] = {1, 0};
    const int64_t size[] = {op->vocabulary, op->width};
    struct tr_onnx_name table = tr_onnx_parameter(graph, op->table, 2, size);
    struct tr_onnx_name tokens = tr_onnx_emit(graph, "Transpose", 1, "tokens");
    tr_onnx_attribute_integers(graph->onnx, "perm", 2, time_first);
    struct tr_onnx_value y = {
        .name = tr_onnx_emit(graph, "Gather", 2, table.text, tokens.text),
        .form = TR_ONNX_SEQUENCE,
        .width = op->width,
    };
    tr_onnx_define(graph, op->y, &y);
    return TR_OK;
}

/* ---- recurrent layers ---- */

#define GATES_MOST 4

/* A recurrent layer in ONNX: gates of an LSTM are i, f, g, o here, and i, o, f, g there; of a GRU r, z, n
   here, and z, r, h there. */
struct cell {
    const char *operation;
    int64_t gates;
    int64_t gate_of_theirs[GATES_MOST];
    const float *w, *b, *b_hidden; /* b_hidden: NULL for an LSTM, whose bias becomes that of the inputs */
    int64_t hidden;
    float *h;
};

/* Weights [inputs][gates * hidden] become [1, gates * hidden, inputs]. */
static struct tr_onnx_name cell_weights(struct tr_onnx_graph *graph, const struct cell *cell,
                                        const float *weights, int64_t inputs)
{
    const int64_t hidden = cell->hidden, columns = cell->gates * hidden, size[] = {1, columns, inputs};
    struct tr_onnx_name name;
    snprintf(name.text, sizeof name.text, "%s", tr_onnx_parameter_name(graph, weights));
    float *data = tr_onnx_floats(graph->onnx, name.text, 3, size);
    for (int64_t row = 0; data && row < columns; row++) {
        const float *column = weights + cell->gate_of_theirs[row / hidden] * hidden + row % hidden;
        for (int64_t i = 0; i < inputs; i++) *data++ = column[i * columns];
    }
    return name;
}

static struct tr_onnx_name cell_bias(struct tr_onnx_graph *graph, const struct cell *cell)
{
    const int64_t hidden = cell->hidden, columns = cell->gates * hidden, size[] = {1, 2 * columns};
    struct tr_onnx_name name;
    snprintf(name.text, sizeof name.text, "%s", tr_onnx_parameter_name(graph, cell->b));
    float *data = tr_onnx_floats(graph->onnx, name.text, 2, size);
    for (int64_t row = 0; data && row < columns; row++) {
        const int64_t place = cell->gate_of_theirs[row / hidden] * hidden + row % hidden;
        data[row] = cell->b[place];
        if (cell->b_hidden) data[columns + row] = cell->b_hidden[place];
    }
    return name;
}

/* The readers of a recurrent layer's output: of its last vector, of all vectors, or of both. */
static void find_readers(const struct tr_trace *trace, int value, bool *last, bool *all)
{
    *last = false;
    *all = trace->output == value;
    for (int i = 0; i < trace->count; i++) {
        struct tr_traced_ports ports = tr_trace_ports(trace, &trace->item[i]);
        bool reads = false;
        for (int k = 0; k < TR_TRACED_READS; k++) reads |= ports.read[k] == value;
        if (!reads) continue;
        if (trace->item[i].kind == TR_TRACED_sequence_last_forward)
            *last = true;
        else
            *all = true;
    }
}

static struct tr_onnx_name squeeze(struct tr_onnx_graph *graph, const char *what, int64_t axis, const char *x)
{
    struct tr_onnx_name axes = tr_onnx_local_integers(graph, what, 1, &axis);
    return tr_onnx_emit(graph, "Squeeze", 2, x, axes.text);
}

/* The lengths in the form of these operations; "" if all examples have the same length. */
static const char *short_lengths(struct tr_onnx_graph *graph)
{
    if (!graph->trace->model->input.sequence) return "";
    if (!graph->lengths.text[0]) {
        graph->lengths = tr_onnx_emit(graph, "Cast", 1, "lengths");
        tr_onnx_attribute_integer(graph->onnx, "to", TR_ONNX_INT32);
    }
    return graph->lengths.text;
}

/* The node writes all vectors [time, 1, batch, hidden] and the last ones [1, batch, hidden], if they are
 * read.
 */
static void emit_cell(struct tr_onnx_graph *graph, const struct cell *cell,
                      const struct tr_op_dense_forward *input, struct tr_onnx_value *y)
{
    bool last, all, lstm = !cell->b_hidden;
    find_readers(graph->trace, tr_trace_value(graph->trace, cell->h), &last, &all);
    const char *lengths = short_lengths(graph);
    struct tr_onnx_name weights = cell_weights(graph, cell, input->w, input->in);
    struct tr_onnx_name recurrent = cell_weights(graph, cell, cell->w, cell->hidden);
    struct tr_onnx_name bias = cell_bias(graph, cell);
    struct tr_onnx_name node = tr_onnx_local(graph, cell->operation),
                        ending = tr_onnx_local(graph, lstm ? "LSTM_last" : "GRU_last");
    const char *inputs[] = {tr_onnx_value_of(graph, input->x)->name.text, weights.text, recurrent.text,
                            bias.text, lengths};
    const char *outputs[] = {all ? node.text : "", last ? ending.text : ""};
    tr_onnx_node(graph->onnx, cell->operation, node.text, *lengths ? 5 : 4, inputs, last ? 2 : 1, outputs);
    tr_onnx_attribute_integer(graph->onnx, "hidden_size", cell->hidden);
    if (!lstm) tr_onnx_attribute_integer(graph->onnx, "linear_before_reset", 1);
    if (all) y->name = squeeze(graph, "direction_axis", 1, node.text);
    if (last) y->ending = squeeze(graph, "last_axis", 0, ending.text);
}

static tr_status translate_cell(struct tr_onnx_graph *graph, const struct tr_traced *traced,
                                const struct cell *cell)
{
    const struct tr_trace *trace = graph->trace;
    int writer = tr_trace_writer(trace, tr_trace_ports(trace, traced).read[0]);
    const struct tr_traced *before = writer < 0 ? NULL : &trace->item[writer];
    if (!before || before->kind != TR_TRACED_dense_forward || before->as.dense_forward.b ||
        before->as.dense_forward.activation != TR_ACT_NONE)
        return tr_trace_refuse(trace, traced, "ONNX");
    struct tr_onnx_value y = {.form = TR_ONNX_SEQUENCE, .width = cell->hidden};
    emit_cell(graph, cell, &before->as.dense_forward, &y);
    tr_onnx_define(graph, cell->h, &y);
    return TR_OK;
}

tr_status tr_onnx_translate_lstm(struct tr_onnx_graph *graph, const struct tr_traced *traced)
{
    const struct tr_op_lstm_forward *op = &traced->as.lstm_forward;
    const struct cell cell = {"LSTM", 4, {0, 3, 1, 2}, op->w, op->b, NULL, op->hidden, op->h};
    return translate_cell(graph, traced, &cell);
}

tr_status tr_onnx_translate_gru(struct tr_onnx_graph *graph, const struct tr_traced *traced)
{
    const struct tr_op_gru_forward *op = &traced->as.gru_forward;
    const struct cell cell = {"GRU", 3, {1, 0, 2}, op->w, op->b, op->b_hidden, op->hidden, op->h};
    return translate_cell(graph, traced, &cell);
}

/* ---- other orders of tokens ---- */

/* The tokens of each example from its end on; what is after the end stays there. */
static struct tr_onnx_name reversed(struct tr_onnx_graph *graph, const char *x)
{
    static const int64_t last = -1, before_all = INT64_MIN, time = 0;
    if (graph->trace->model->input.sequence) {
        struct tr_onnx_name y = tr_onnx_emit(graph, "ReverseSequence", 2, x, "lengths");
        tr_onnx_attribute_integer(graph->onnx, "time_axis", 0);
        tr_onnx_attribute_integer(graph->onnx, "batch_axis", 1);
        return y;
    }
    struct tr_onnx_name from = tr_onnx_local_integers(graph, "from", 1, &last);
    struct tr_onnx_name to = tr_onnx_local_integers(graph, "to", 1, &before_all);
    struct tr_onnx_name axis = tr_onnx_local_integers(graph, "time", 1, &time);
    struct tr_onnx_name step = tr_onnx_local_integers(graph, "step", 1, &last);
    return tr_onnx_emit(graph, "Slice", 5, x, from.text, to.text, axis.text, step.text);
}

/* Parts of rows come one after the other. */
tr_status tr_onnx_translate_copy(struct tr_onnx_graph *graph, const struct tr_traced *traced)
{
    const struct tr_op_sequence_copy *op = &traced->as.sequence_copy;
    const int64_t column = tr_trace_column(graph->trace, op->y);
    struct tr_onnx_value *all = &graph->value[tr_trace_value(graph->trace, op->y)];
    struct tr_onnx_value y = {.form = TR_ONNX_SEQUENCE, .width = column + op->width};
    y.name = tr_onnx_value_of(graph, op->x)->name;
    if (op->reverse) y.name = reversed(graph, y.name.text);
    if (column > 0 && all->width != column) return tr_trace_refuse(graph->trace, traced, "ONNX");
    if (column > 0) {
        y.name = tr_onnx_emit(graph, "Concat", 2, all->name.text, y.name.text);
        tr_onnx_attribute_integer(graph->onnx, "axis", -1);
    }
    if (y.width == op->y_step)
        tr_onnx_define(graph, op->y, &y);
    else
        *all = y;
    return TR_OK;
}

/* Tokens with their neighbours are left to the convolution that takes them. */
tr_status tr_onnx_translate_unfold(struct tr_onnx_graph *graph, const struct tr_traced *traced)
{
    const struct tr_op_sequence_unfold *op = &traced->as.sequence_unfold;
    struct tr_onnx_value *y = &graph->value[tr_trace_value(graph->trace, op->y)];
    *y = (struct tr_onnx_value){.form = TR_ONNX_SEQUENCE, .width = op->width};
    y->name = tr_onnx_mask(graph, tr_onnx_value_of(graph, op->x)->name.text, 0);
    y->taps = op->taps;
    y->before = op->before;
    y->dilation = op->dilation;
    return TR_OK;
}

/* Weights [taps][in][out] become [out, in, taps]. */
static struct tr_onnx_name kernel_of(struct tr_onnx_graph *graph, const struct tr_op_dense_forward *op,
                                     int64_t in, int64_t taps)
{
    const int64_t size[] = {op->out, in, taps};
    struct tr_onnx_name name;
    snprintf(name.text, sizeof name.text, "%s", tr_onnx_parameter_name(graph, op->w));
    float *data = tr_onnx_floats(graph->onnx, name.text, 3, size);
    for (int64_t o = 0; data && o < op->out; o++)
        for (int64_t i = 0; i < in; i++)
            for (int64_t tap = 0; tap < taps; tap++) *data++ = op->w[(tap * in + i) * op->out + o];
    return name;
}

struct neighbours {
    int64_t taps, before, dilation, stride;
};

/* For tokens that stand for themselves and their neighbours. */
static struct neighbours unfolded(const struct tr_onnx_graph *graph, const float *x)
{
    const struct tr_onnx_value *value = tr_onnx_value_of(graph, x);
    return (struct neighbours){value->taps, value->before, value->dilation, 1};
}

/* For rows with their neighbours, as a dense layer takes them. */
static tr_status add_conv1d(struct tr_onnx_graph *graph, const struct tr_traced *traced,
                            const struct tr_op_dense_forward *op, const struct neighbours *seen,
                            int64_t groups)
{
    static const int64_t channels_first[] = {1, 2, 0}, time_first[] = {2, 0, 1};
    const struct tr_onnx_value *x = tr_onnx_value_of(graph, op->x);
    const int64_t pads[] = {seen->before, (seen->taps - 1) * seen->dilation - seen->before};
    struct tr_onnx_name kernel = kernel_of(graph, op, x->width / groups, seen->taps), bias = {""};
    if (op->b) bias = tr_onnx_parameter(graph, op->b, 1, &op->out);
    struct tr_onnx_name channels = tr_onnx_emit(graph, "Transpose", 1, x->name.text);
    tr_onnx_attribute_integers(graph->onnx, "perm", 3, channels_first);
    struct tr_onnx_name sums =
        tr_onnx_emit(graph, "Conv", op->b ? 3 : 2, channels.text, kernel.text, bias.text);
    tr_onnx_attribute_integers(graph->onnx, "kernel_shape", 1, &seen->taps);
    tr_onnx_attribute_integers(graph->onnx, "pads", 2, pads);
    if (seen->stride > 1) tr_onnx_attribute_integers(graph->onnx, "strides", 1, &seen->stride);
    if (seen->dilation > 1) tr_onnx_attribute_integers(graph->onnx, "dilations", 1, &seen->dilation);
    if (groups > 1) tr_onnx_attribute_integer(graph->onnx, "group", groups);
    TR_TRY(tr_onnx_activate(graph, traced, op->activation, op->slope, &sums));
    struct tr_onnx_value y = {.form = TR_ONNX_SEQUENCE, .width = op->out};
    y.name = tr_onnx_emit(graph, "Transpose", 1, sums.text);
    tr_onnx_attribute_integers(graph->onnx, "perm", 3, time_first);
    tr_onnx_define(graph, op->y, &y);
    return TR_OK;
}

tr_status tr_onnx_translate_conv1d(struct tr_onnx_graph *graph, const struct tr_traced *traced)
{
    const struct tr_op_dense_forward *op = &traced->as.dense_forward;
    const struct neighbours seen = unfolded(graph, op->x);
    return add_conv1d(graph, traced, op, &seen, 1);
}

/* The steps of a convolution that a dense layer has, too. */
static struct tr_op_dense_forward as_dense(const struct tr_op_conv_forward *conv)
{
    return (struct tr_op_dense_forward){.out = conv->out_c,
                                        .x = conv->x,
                                        .w = conv->w,
                                        .b = conv->b,
                                        .y = conv->y,
                                        .activation = conv->activation,
                                        .slope = conv->slope};
}

tr_status tr_onnx_translate_grouped_conv1d(struct tr_onnx_graph *graph, const struct tr_traced *traced)
{
    const struct tr_op_grouped_conv_forward *grouped = &traced->as.grouped_conv_forward;
    const struct tr_op_dense_forward op = as_dense(&grouped->conv);
    const struct neighbours seen = unfolded(graph, op.x);
    return add_conv1d(graph, traced, &op, &seen, grouped->groups);
}

tr_status tr_onnx_translate_strided_conv1d(struct tr_onnx_graph *graph, const struct tr_traced *traced,
                                           const struct tr_op_conv_forward *conv, int64_t groups)
{
    const struct tr_sliding_window *window = &conv->window;
    const struct tr_op_dense_forward op = as_dense(conv);
    const struct neighbours seen = {window->kernel_h, window->pad_top, window->dilation_h, window->stride_h};
    return add_conv1d(graph, traced, &op, &seen, groups);
}

/* ---- the last vector ---- */

tr_status tr_onnx_translate_last(struct tr_onnx_graph *graph, const struct tr_traced *traced)
{
    const struct tr_op_sequence_last_forward *op = &traced->as.sequence_last_forward;
    const struct tr_onnx_value *x = tr_onnx_value_of(graph, op->x);
    static const int64_t batch_first[] = {1, 0, 2}, one = 1, last_axis = 1;
    struct tr_onnx_value y = {.form = TR_ONNX_ROWS, .width = op->width, .name = x->ending};
    if (!x->ending.text[0] && !graph->trace->model->input.sequence) {
        struct tr_onnx_name end = tr_onnx_local_integer(graph, "end", -1);
        y.name = tr_onnx_emit(graph, "Gather", 2, x->name.text, end.text);
    } else if (!x->ending.text[0]) {
        struct tr_onnx_name rows = tr_onnx_emit(graph, "Transpose", 1, x->name.text);
        tr_onnx_attribute_integers(graph->onnx, "perm", 3, batch_first);
        struct tr_onnx_name step = tr_onnx_local_integers(graph, "one", 1, &one);
        struct tr_onnx_name axis = tr_onnx_local_integers(graph, "axis", 1, &last_axis);
        struct tr_onnx_name end = tr_onnx_emit(graph, "Sub", 2, "lengths", step.text);
        struct tr_onnx_name index = tr_onnx_emit(graph, "Unsqueeze", 2, end.text, axis.text);
        y.name = tr_onnx_emit(graph, "GatherND", 2, rows.text, index.text);
        tr_onnx_attribute_integer(graph->onnx, "batch_dims", 1);
    }
    tr_onnx_define(graph, op->y, &y);
    return TR_OK;
}
