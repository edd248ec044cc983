/* The operations that exports use, as https://onnx.ai/onnx/operators/ gives them for set 13: least and most
 * inputs, most outputs. */
#include "export/onnx/rules.h"

#include "export/onnx/graph.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

struct operation {
    const char *name;
    size_t least, most, outputs;
};

static const struct operation *operation_of(const char *name)
{
    static const struct operation set_13[] = {
        {"Add", 2, 2, 1},
        {"And", 2, 2, 1},
        {"AveragePool", 1, 1, 1},
        {"BatchNormalization", 5, 5, 1},
        {"Cast", 1, 1, 1},
        {"Clip", 1, 3, 1},
        {"Concat", 1, 8, 1},
        {"Conv", 2, 3, 1},
        {"ConvTranspose", 2, 3, 1},
        {"Cos", 1, 1, 1},
        {"Div", 2, 2, 1},
        {"Equal", 2, 2, 1},
        {"Erf", 1, 1, 1},
        {"Flatten", 1, 1, 1},
        {"GRU", 3, 6, 2},
        {"Gather", 2, 2, 1},
        {"GatherND", 2, 2, 1},
        {"Gemm", 2, 3, 1},
        {"GlobalAveragePool", 1, 1, 1},
        {"GlobalMaxPool", 1, 1, 1},
        {"HardSigmoid", 1, 1, 1},
        {"Identity", 1, 1, 1},
        {"IsNaN", 1, 1, 1},
        {"LSTM", 3, 8, 3},
        {"LeakyRelu", 1, 1, 1},
        {"Less", 2, 2, 1},
        {"LessOrEqual", 2, 2, 1},
        {"MatMul", 2, 2, 1},
        {"MaxPool", 1, 1, 2},
        {"Min", 1, 8, 1},
        {"Mul", 2, 2, 1},
        {"Not", 1, 1, 1},
        {"Or", 2, 2, 1},
        {"Pad", 2, 3, 1},
        {"Range", 3, 3, 1},
        {"ReduceMax", 1, 1, 1},
        {"ReduceMean", 1, 1, 1},
        {"ReduceSum", 1, 2, 1},
        {"Relu", 1, 1, 1},
        {"Reshape", 2, 2, 1},
        {"Resize", 1, 4, 1},
        {"ReverseSequence", 2, 2, 1},
        {"Shape", 1, 1, 1},
        {"Sigmoid", 1, 1, 1},
        {"Sin", 1, 1, 1},
        {"Slice", 3, 5, 1},
        {"Softmax", 1, 1, 1},
        {"Sqrt", 1, 1, 1},
        {"Squeeze", 1, 2, 1},
        {"Sub", 2, 2, 1},
        {"Tanh", 1, 1, 1},
        {"Transpose", 1, 1, 1},
        {"Unsqueeze", 2, 2, 1},
        {"Where", 3, 3, 1},
    };
    for (size_t i = 0; i < sizeof set_13 / sizeof set_13[0]; i++)
        if (strcmp(name, set_13[i].name) == 0) return &set_13[i];
    fail_msg("operation %s", name);
    return NULL;
}

static bool is_known(const Onnx__GraphProto *graph, size_t nodes, const char *name)
{
    for (size_t i = 0; i < graph->n_input; i++)
        if (strcmp(graph->input[i]->name, name) == 0) return true;
    for (size_t i = 0; i < graph->n_initializer; i++)
        if (strcmp(graph->initializer[i]->name, name) == 0) return true;
    for (size_t i = 0; i < nodes; i++)
        for (size_t k = 0; k < graph->node[i]->n_output; k++)
            if (strcmp(graph->node[i]->output[k], name) == 0) return true;
    return false;
}

/* Axes that are given as an input: some, of tensors of at most six dimensions, each once. */
static void check_axes(const Onnx__GraphProto *graph, const Onnx__NodeProto *node)
{
    static const char *const with[] = {"Unsqueeze", "Squeeze", "ReduceSum"};
    bool has_axes = false;
    for (size_t i = 0; i < sizeof with / sizeof with[0]; i++) has_axes |= strcmp(node->op_type, with[i]) == 0;
    if (!has_axes || node->n_input < 2) return;
    const Onnx__TensorProto *axes = NULL;
    for (size_t i = 0; i < graph->n_initializer; i++)
        if (strcmp(graph->initializer[i]->name, node->input[1]) == 0) axes = graph->initializer[i];
    if (!axes) fail_msg("%s: axes that are no constant", node->name);
    assert_int_equal(axes->data_type, TR_ONNX_INT64);
    assert_int_equal(axes->n_dims, 1);
    unsigned seen = 0;
    for (size_t i = 0; i < axes->raw_data.len / sizeof(int64_t); i++) {
        int64_t axis;
        memcpy(&axis, axes->raw_data.data + i * sizeof axis, sizeof axis);
        if (axis < -6 || axis > 5 || (seen & 1U << (axis + 6)))
            fail_msg("%s: axis %d", node->name, (int)axis);
        seen |= 1U << (axis + 6);
    }
    if (!seen) fail_msg("%s: no axes", node->name);
}

static void check_node(const Onnx__GraphProto *graph, size_t i)
{
    const Onnx__NodeProto *node = graph->node[i];
    const struct operation *operation = operation_of(node->op_type);
    if (node->n_input < operation->least || node->n_input > operation->most || node->n_output < 1 ||
        node->n_output > operation->outputs)
        fail_msg("%s: %s has %zu inputs and %zu outputs", node->name, node->op_type, node->n_input,
                 node->n_output);
    for (size_t k = 0; k < node->n_input; k++) {
        if (k < operation->least && !*node->input[k]) fail_msg("%s lacks input %zu", node->name, k);
        if (*node->input[k] && !is_known(graph, i, node->input[k]))
            fail_msg("%s reads %s, which nothing has made", node->name, node->input[k]);
    }
    check_axes(graph, node);
    for (size_t k = 0; k < node->n_output; k++)
        if (*node->output[k] && is_known(graph, i, node->output[k]))
            fail_msg("%s makes %s once more", node->name, node->output[k]);
    for (size_t k = 0; k < node->n_attribute; k++) {
        const Onnx__AttributeProto *attribute = node->attribute[k];
        assert_int_equal(attribute->type, attribute->has_f ? 1 : attribute->has_i ? 2 : 7);
        assert_int_equal(attribute->has_f + attribute->has_i + (attribute->n_ints > 0), 1);
    }
}

static void check_tensors(const Onnx__GraphProto *graph)
{
    for (size_t i = 0; i < graph->n_initializer; i++) {
        const Onnx__TensorProto *tensor = graph->initializer[i];
        size_t bytes = tensor->data_type == TR_ONNX_INT64 ? 8 : 4;
        for (size_t k = 0; k < tensor->n_dims; k++) bytes *= (size_t)tensor->dims[k];
        assert_int_equal(tensor->raw_data.len, bytes);
        for (size_t k = 0; k < i; k++) assert_string_not_equal(tensor->name, graph->initializer[k]->name);
    }
}

static void check_value(const Onnx__ValueInfoProto *value)
{
    assert_non_null(value->type->tensor_type->shape);
    assert_true(value->type->tensor_type->has_elem_type);
    for (size_t i = 0; i < value->type->tensor_type->shape->n_dim; i++) {
        const Onnx__TensorShapeProto__Dimension *size = value->type->tensor_type->shape->dim[i];
        assert_int_equal(size->has_dim_value + (size->dim_param != NULL), 1);
    }
}

/* ---- how many dimensions a value has ---- */

enum { VALUES = 4096, UNKNOWN = -1 };

struct ranks {
    const Onnx__GraphProto *graph;
    const char *name[VALUES];
    int rank[VALUES];
    size_t count;
};

static void note_rank(struct ranks *ranks, const char *name, int rank)
{
    assert_true(ranks->count < VALUES);
    ranks->name[ranks->count] = name;
    ranks->rank[ranks->count++] = rank;
}

static int rank_of(const struct ranks *ranks, const char *name)
{
    for (size_t i = 0; i < ranks->count; i++)
        if (strcmp(ranks->name[i], name) == 0) return ranks->rank[i];
    return UNKNOWN;
}

/* The length of a constant vector; UNKNOWN where it is computed. */
static int length_of(const struct ranks *ranks, const char *name)
{
    for (size_t i = 0; i < ranks->graph->n_initializer; i++) {
        const Onnx__TensorProto *tensor = ranks->graph->initializer[i];
        if (strcmp(tensor->name, name) == 0) return tensor->n_dims == 1 ? (int)tensor->dims[0] : UNKNOWN;
    }
    return UNKNOWN;
}

static const Onnx__AttributeProto *attribute_of(const Onnx__NodeProto *node, const char *name)
{
    for (size_t k = 0; k < node->n_attribute; k++)
        if (strcmp(node->attribute[k]->name, name) == 0) return node->attribute[k];
    return NULL;
}

static bool is_one_of(const char *name, const char *const *names)
{
    while (*names && strcmp(*names, name) != 0) names++;
    return *names != NULL;
}

/* The dimensions of a node's output by those of its inputs, which are checked where the operation fixes them.
 */
static int infer(const struct ranks *ranks, const Onnx__NodeProto *node)
{
    static const char *const broadcast[] = {"Add", "And", "Div", "Equal", "Less",  "LessOrEqual",
                                            "Min", "Mul", "Or",  "Sub",   "Where", NULL};
    static const char *const of_images[] = {
        "AveragePool", "Conv", "ConvTranspose", "GlobalAveragePool", "GlobalMaxPool", "MaxPool", NULL};
    static const char *const matrices[] = {"Flatten", "Gemm", NULL};
    static const char *const vectors[] = {"Range", "Shape", NULL};
    static const char *const other[] = {"GRU", "GatherND", "LSTM", NULL};
    const char *type = node->op_type;
    const int x = rank_of(ranks, node->input[0]);
    if (is_one_of(type, other)) return UNKNOWN;
    if (is_one_of(type, vectors)) return 1;
    if (is_one_of(type, matrices)) return 2;
    if (strcmp(type, "Reshape") == 0) return length_of(ranks, node->input[1]);
    if (x == UNKNOWN) return UNKNOWN;
    if (is_one_of(type, broadcast) || strcmp(type, "MatMul") == 0) {
        int most = x;
        for (size_t k = 1; k < node->n_input; k++) {
            int rank = rank_of(ranks, node->input[k]);
            if (rank == UNKNOWN) return UNKNOWN;
            if (rank > most) most = rank;
        }
        return most;
    }
    if (is_one_of(type, of_images)) {
        const Onnx__AttributeProto *kernel = attribute_of(node, "kernel_shape");
        if (x < 3 || (kernel && (int)kernel->n_ints != x - 2))
            fail_msg("%s slides over %d dimensions", node->name, x);
        return x;
    }
    if (strcmp(type, "Gather") == 0) {
        int rows = rank_of(ranks, node->input[1]);
        return rows == UNKNOWN ? UNKNOWN : x - 1 + rows;
    }
    if (strcmp(type, "Transpose") == 0) {
        const Onnx__AttributeProto *order = attribute_of(node, "perm");
        if (order && (int)order->n_ints != x) fail_msg("%s turns %d dimensions", node->name, x);
        return x;
    }
    if (strcmp(type, "Unsqueeze") == 0 || strcmp(type, "Squeeze") == 0) {
        const int axes = node->n_input > 1 ? length_of(ranks, node->input[1]) : UNKNOWN;
        return axes == UNKNOWN ? UNKNOWN : x + (*type == 'U' ? axes : -axes);
    }
    if (strncmp(type, "Reduce", strlen("Reduce")) == 0) {
        const Onnx__AttributeProto *keeps = attribute_of(node, "keepdims"),
                                   *axes = attribute_of(node, "axes");
        const int count = axes ? (int)axes->n_ints : node->n_input > 1 ? length_of(ranks, node->input[1]) : x;
        return !keeps || keeps->i || count == UNKNOWN ? x : x - count;
    }
    return x;
}

/* Outputs, and the values that the graph describes, have as many dimensions as the nodes give them. */
static void check_ranks(const Onnx__GraphProto *graph)
{
    static struct ranks ranks;
    ranks.graph = graph;
    ranks.count = 0;
    for (size_t i = 0; i < graph->n_initializer; i++)
        note_rank(&ranks, graph->initializer[i]->name, (int)graph->initializer[i]->n_dims);
    for (size_t i = 0; i < graph->n_input; i++)
        note_rank(&ranks, graph->input[i]->name, (int)graph->input[i]->type->tensor_type->shape->n_dim);
    for (size_t i = 0; i < graph->n_node; i++)
        note_rank(&ranks, graph->node[i]->output[0], infer(&ranks, graph->node[i]));
    for (size_t i = 0; i < graph->n_output + graph->n_value_info; i++) {
        const Onnx__ValueInfoProto *value =
            i < graph->n_output ? graph->output[i] : graph->value_info[i - graph->n_output];
        const int rank = rank_of(&ranks, value->name), said = (int)value->type->tensor_type->shape->n_dim;
        if (rank != UNKNOWN && rank != said)
            fail_msg("%s has %d dimensions, and the graph says %d", value->name, rank, said);
    }
}

void onnx_expect_sound(const Onnx__GraphProto *graph)
{
    for (size_t i = 0; i < graph->n_node; i++) check_node(graph, i);
    check_tensors(graph);
    check_ranks(graph);
    onnx_check_types(graph);
    for (size_t i = 0; i < graph->n_input; i++) check_value(graph->input[i]);
    for (size_t i = 0; i < graph->n_output; i++) {
        check_value(graph->output[i]);
        assert_true(is_known(graph, graph->n_node, graph->output[i]->name));
    }
    for (size_t i = 0; i < graph->n_value_info; i++) {
        check_value(graph->value_info[i]);
        assert_true(is_known(graph, graph->n_node, graph->value_info[i]->name));
    }
}
