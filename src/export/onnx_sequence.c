/* Operations over tokens. Examples of a batch are padded to one length behind their end, and `lengths` says
 * where that is; time comes first, as ONNX's recurrent operations have it. */
#include "export/onnx_graph.h"

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

/* ---- LSTM ---- */

enum { GATES = 4 };

/* Gates are i, f, g, o here; there i, o, f, g. */
static const int64_t gate_of_theirs[GATES] = {0, 3, 1, 2};

/* Weights [inputs][4 * hidden] become [1, 4 * hidden, inputs]. */
static struct tr_onnx_name lstm_weights(struct tr_onnx_graph *graph, const float *weights, int64_t inputs,
                                        int64_t hidden)
{
    const int64_t size[] = {1, GATES * hidden, inputs};
    struct tr_onnx_name name;
    snprintf(name.text, sizeof name.text, "%s", tr_onnx_parameter_name(graph, weights));
    float *data = tr_onnx_floats(graph->onnx, name.text, 3, size);
    for (int64_t row = 0; data && row < GATES * hidden; row++) {
        const float *column = weights + gate_of_theirs[row / hidden] * hidden + row % hidden;
        for (int64_t i = 0; i < inputs; i++) *data++ = column[i * GATES * hidden];
    }
    return name;
}

/* The bias becomes that of the inputs; that of the recurrence is zero. */
static struct tr_onnx_name lstm_bias(struct tr_onnx_graph *graph, const float *bias, int64_t hidden)
{
    const int64_t size[] = {1, 2 * GATES * hidden};
    struct tr_onnx_name name;
    snprintf(name.text, sizeof name.text, "%s", tr_onnx_parameter_name(graph, bias));
    float *data = tr_onnx_floats(graph->onnx, name.text, 2, size);
    for (int64_t row = 0; data && row < GATES * hidden; row++)
        data[row] = bias[gate_of_theirs[row / hidden] * hidden + row % hidden];
    return name;
}

/* Who reads the output of an LSTM: its last vector, all of them, or both. */
static void find_readers(const struct tr_trace *trace, int value, bool *last, bool *all)
{
    *last = false;
    *all = trace->output == value;
    for (int i = 0; i < trace->count; i++) {
        struct tr_traced_ports ports = tr_trace_ports(trace, &trace->item[i]);
        if (ports.read[0] != value && ports.read[1] != value) continue;
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

/* The node writes all vectors [time, 1, batch, hidden] and the last ones [1, batch, hidden], as far as they
 * are read. */
static void emit_lstm(struct tr_onnx_graph *graph, const struct tr_op_lstm_forward *op,
                      const struct tr_op_dense_forward *input, struct tr_onnx_value *y)
{
    bool last, all;
    find_readers(graph->trace, tr_trace_value(graph->trace, op->h), &last, &all);
    struct tr_onnx_name weights = lstm_weights(graph, input->w, input->in, op->hidden);
    struct tr_onnx_name recurrent = lstm_weights(graph, op->w, op->hidden, op->hidden);
    struct tr_onnx_name bias = lstm_bias(graph, op->b, op->hidden);
    struct tr_onnx_name node = tr_onnx_local(graph, "LSTM"), ending = tr_onnx_local(graph, "LSTM_last");
    const char *inputs[] = {tr_onnx_value_of(graph, input->x)->name.text, weights.text, recurrent.text,
                            bias.text, graph->lengths.text};
    const char *outputs[] = {all ? node.text : "", last ? ending.text : ""};
    tr_onnx_node(graph->onnx, "LSTM", node.text, 5, inputs, last ? 2 : 1, outputs);
    tr_onnx_attribute_integer(graph->onnx, "hidden_size", op->hidden);
    if (all) y->name = squeeze(graph, "direction_axis", 1, node.text);
    if (last) y->ending = squeeze(graph, "last_axis", 0, ending.text);
}

tr_status tr_onnx_translate_lstm(struct tr_onnx_graph *graph, const struct tr_traced *traced)
{
    const struct tr_trace *trace = graph->trace;
    const struct tr_op_lstm_forward *op = &traced->as.lstm_forward;
    int writer = tr_trace_writer(trace, tr_trace_value(trace, op->gates));
    const struct tr_traced *before = writer < 0 ? NULL : &trace->item[writer];
    if (!before || before->kind != TR_TRACED_dense_forward || before->as.dense_forward.b ||
        before->as.dense_forward.activation != TR_ACT_NONE)
        return tr_trace_refuse(trace, traced, "ONNX");
    if (!graph->lengths.text[0]) {
        graph->lengths = tr_onnx_emit(graph, "Cast", 1, "lengths");
        tr_onnx_attribute_integer(graph->onnx, "to", TR_ONNX_INT32);
    }
    struct tr_onnx_value y = {.form = TR_ONNX_SEQUENCE, .width = op->hidden};
    emit_lstm(graph, op, &before->as.dense_forward, &y);
    tr_onnx_define(graph, op->h, &y);
    return TR_OK;
}

/* ---- the last vector ---- */

tr_status tr_onnx_translate_last(struct tr_onnx_graph *graph, const struct tr_traced *traced)
{
    const struct tr_op_sequence_last_forward *op = &traced->as.sequence_last_forward;
    const struct tr_onnx_value *x = tr_onnx_value_of(graph, op->x);
    static const int64_t batch_first[] = {1, 0, 2}, one = 1, last_axis = 1;
    struct tr_onnx_value y = {.form = TR_ONNX_ROWS, .width = op->width, .name = x->ending};
    if (!x->ending.text[0]) {
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
