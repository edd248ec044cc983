/* Activations as operations of ONNX. */
#include "export/onnx/graph.h"

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

/* 0.5 x (1 + tanh(x (c + d x x))) */
static struct tr_onnx_name gelu_tanh(struct tr_onnx_graph *graph, struct tr_onnx_name x)
{
    struct tr_onnx_name one = tr_onnx_local_number(graph, "one", 1);
    struct tr_onnx_name half = tr_onnx_local_number(graph, "half", 0.5f);
    struct tr_onnx_name linear = tr_onnx_local_number(graph, "linear", 0x1.988454p-1f);
    struct tr_onnx_name cubic = tr_onnx_local_number(graph, "cubic", 0x1.2444f2p-5f);
    struct tr_onnx_name square = tr_onnx_emit(graph, "Mul", 2, x.text, x.text);
    struct tr_onnx_name part = tr_onnx_emit(graph, "Mul", 2, square.text, cubic.text);
    struct tr_onnx_name both = tr_onnx_emit(graph, "Add", 2, part.text, linear.text);
    struct tr_onnx_name inner = tr_onnx_emit(graph, "Mul", 2, x.text, both.text);
    struct tr_onnx_name tangent = tr_onnx_emit(graph, "Tanh", 1, inner.text);
    struct tr_onnx_name sum = tr_onnx_emit(graph, "Add", 2, tangent.text, one.text);
    struct tr_onnx_name halved = tr_onnx_emit(graph, "Mul", 2, x.text, half.text);
    return tr_onnx_emit(graph, "Mul", 2, halved.text, sum.text);
}

static struct tr_onnx_name silu(struct tr_onnx_graph *graph, struct tr_onnx_name x)
{
    struct tr_onnx_name gate = tr_onnx_emit(graph, "Sigmoid", 1, x.text);
    return tr_onnx_emit(graph, "Mul", 2, x.text, gate.text);
}

/* Operator set 13 has only the gate. */
static struct tr_onnx_name hard_swish(struct tr_onnx_graph *graph, struct tr_onnx_name x)
{
    struct tr_onnx_name gate = tr_onnx_emit(graph, "HardSigmoid", 1, x.text);
    tr_onnx_attribute_float(graph->onnx, "alpha", 0x1.555556p-3f);
    tr_onnx_attribute_float(graph->onnx, "beta", 0.5f);
    return tr_onnx_emit(graph, "Mul", 2, x.text, gate.text);
}

static struct tr_onnx_name relu6(struct tr_onnx_graph *graph, struct tr_onnx_name x)
{
    struct tr_onnx_name least = tr_onnx_local_number(graph, "least", 0);
    struct tr_onnx_name most = tr_onnx_local_number(graph, "most", 6);
    return tr_onnx_emit(graph, "Clip", 3, x.text, least.text, most.text);
}

tr_status tr_onnx_activate(struct tr_onnx_graph *graph, const struct tr_traced *traced,
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
    case TR_ACT_GELU_TANH:
        *name = gelu_tanh(graph, *name);
        return TR_OK;
    case TR_ACT_SILU:
        *name = silu(graph, *name);
        return TR_OK;
    case TR_ACT_HARD_SWISH:
        *name = hard_swish(graph, *name);
        return TR_OK;
    case TR_ACT_RELU6:
        *name = relu6(graph, *name);
        return TR_OK;
    }
    return tr_trace_refuse(graph->trace, traced, "ONNX");
}
