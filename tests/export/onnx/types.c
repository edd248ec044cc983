/* The types of values, as https://onnx.ai/onnx/operators/ gives them for set 13. */
#include "export/onnx/rules.h"

#include "io/onnx.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

/* Of inputs and outputs: a letter for any type, the same one for all with this letter; f: float, l: int64, i:
   int32, b: bool, n: an integer, t: what the attribute "to" says. The last input stands for all that follow.
 */
static const struct {
    const char *name, *inputs;
    char output;
} operations[] = {
    {"Add", "TT", 'T'},
    {"And", "bb", 'b'},
    {"AveragePool", "f", 'f'},
    {"BatchNormalization", "fffff", 'f'},
    {"Cast", "T", 't'},
    {"Clip", "TTT", 'T'},
    {"Concat", "TT", 'T'},
    {"Conv", "fff", 'f'},
    {"ConvTranspose", "fff", 'f'},
    {"Cos", "f", 'f'},
    {"Div", "TT", 'T'},
    {"Equal", "TT", 'b'},
    {"Erf", "f", 'f'},
    {"Flatten", "T", 'T'},
    {"GRU", "ffffif", 'f'},
    {"Gather", "Tn", 'T'},
    {"GatherND", "Tl", 'T'},
    {"Gemm", "fff", 'f'},
    {"GlobalAveragePool", "f", 'f'},
    {"GlobalMaxPool", "f", 'f'},
    {"HardSigmoid", "f", 'f'},
    {"Identity", "T", 'T'},
    {"IsNaN", "f", 'b'},
    {"LSTM", "ffffifff", 'f'},
    {"LeakyRelu", "f", 'f'},
    {"Less", "TT", 'b'},
    {"LessOrEqual", "TT", 'b'},
    {"MatMul", "ff", 'f'},
    {"MaxPool", "f", 'f'},
    {"Min", "TT", 'T'},
    {"Mul", "TT", 'T'},
    {"Not", "b", 'b'},
    {"Or", "bb", 'b'},
    {"Pad", "TlT", 'T'},
    {"Range", "TTT", 'T'},
    {"ReduceMax", "T", 'T'},
    {"ReduceMean", "f", 'f'},
    {"ReduceSum", "Tl", 'T'},
    {"Relu", "f", 'f'},
    {"Reshape", "Tl", 'T'},
    {"Resize", "Tffl", 'T'},
    {"ReverseSequence", "Tl", 'T'},
    {"Shape", "T", 'l'},
    {"Sigmoid", "f", 'f'},
    {"Sin", "f", 'f'},
    {"Slice", "Tnnnn", 'T'},
    {"Softmax", "f", 'f'},
    {"Sqrt", "f", 'f'},
    {"Squeeze", "Tl", 'T'},
    {"Sub", "TT", 'T'},
    {"Tanh", "f", 'f'},
    {"Transpose", "T", 'T'},
    {"Unsqueeze", "Tl", 'T'},
    {"Where", "bTT", 'T'},
};

enum { BOOL = 9, VALUES = 4096 };

struct types {
    const char *name[VALUES];
    int type[VALUES];
    size_t count;
};

static void note(struct types *types, const char *name, int type)
{
    assert_true(types->count < VALUES);
    types->name[types->count] = name;
    types->type[types->count++] = type;
}

static int type_of(const struct types *types, const char *name)
{
    for (size_t i = 0; i < types->count; i++)
        if (strcmp(types->name[i], name) == 0) return types->type[i];
    fail_msg("there is no value %s", name);
    return 0;
}

static bool suits(char letter, int type, int *any)
{
    switch (letter) {
    case 'f':
        return type == TR_ONNX_FLOAT;
    case 'l':
        return type == TR_ONNX_INT64;
    case 'i':
        return type == TR_ONNX_INT32;
    case 'b':
        return type == BOOL;
    case 'n':
        return type == TR_ONNX_INT32 || type == TR_ONNX_INT64;
    default:
        if (*any == 0) *any = type;
        return type == *any;
    }
}

/* The type of the outputs; fails where an input has another one than the operation takes. */
static int infer(const struct types *types, const Onnx__NodeProto *node)
{
    size_t which = 0;
    while (which < sizeof operations / sizeof operations[0] &&
           strcmp(operations[which].name, node->op_type) != 0)
        which++;
    if (which == sizeof operations / sizeof operations[0]) fail_msg("operation %s", node->op_type);
    const char *letters = operations[which].inputs;
    int any = 0;
    for (size_t i = 0; i < node->n_input; i++) {
        const char letter = i < strlen(letters) ? letters[i] : letters[strlen(letters) - 1];
        if (!*node->input[i]) continue;
        const int type = type_of(types, node->input[i]);
        if (!suits(letter, type, &any))
            fail_msg("%s: input %zu of %s has type %d", node->name, i, node->op_type, type);
    }
    switch (operations[which].output) {
    case 'f':
        return TR_ONNX_FLOAT;
    case 'l':
        return TR_ONNX_INT64;
    case 'b':
        return BOOL;
    case 't':
        for (size_t k = 0; k < node->n_attribute; k++)
            if (strcmp(node->attribute[k]->name, "to") == 0) return (int)node->attribute[k]->i;
        fail_msg("%s: a Cast to nothing", node->name);
        return 0;
    default:
        return any;
    }
}

void onnx_check_types(const Onnx__GraphProto *graph)
{
    static struct types types;
    types.count = 0;
    for (size_t i = 0; i < graph->n_initializer; i++)
        note(&types, graph->initializer[i]->name, graph->initializer[i]->data_type);
    for (size_t i = 0; i < graph->n_input; i++)
        note(&types, graph->input[i]->name, graph->input[i]->type->tensor_type->elem_type);
    for (size_t i = 0; i < graph->n_node; i++) {
        const int type = infer(&types, graph->node[i]);
        for (size_t k = 0; k < graph->node[i]->n_output; k++)
            if (*graph->node[i]->output[k]) note(&types, graph->node[i]->output[k], type);
    }
    for (size_t i = 0; i < graph->n_output + graph->n_value_info; i++) {
        const Onnx__ValueInfoProto *value =
            i < graph->n_output ? graph->output[i] : graph->value_info[i - graph->n_output];
        const int type = type_of(&types, value->name), said = value->type->tensor_type->elem_type;
        if (type != said) fail_msg("%s has type %d, and the graph says %d", value->name, type, said);
    }
}
