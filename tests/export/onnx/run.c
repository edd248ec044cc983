#include "export/onnx/run.h"

#include "export/onnx/graph.h"
#include "export/onnx/node.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

struct onnx_value *onnx_make(struct onnx_run *run, const char *name, int rank, const int64_t *size)
{
    assert_true(run->count < ONNX_VALUES && rank <= ONNX_AXES);
    struct onnx_value *value = &run->value[run->count++];
    *value = (struct onnx_value){.name = name, .rank = rank, .count = 1};
    for (int i = 0; i < rank; i++) value->count *= value->size[i] = size[i];
    assert_true(value->count >= 0);
    value->v = calloc((size_t)value->count + 1, sizeof *value->v);
    assert_non_null(value->v);
    return value;
}

double *onnx_give(struct onnx_run *run, const char *name, int rank, const int64_t *size)
{
    return onnx_make(run, name, rank, size)->v;
}

const struct onnx_value *onnx_find(const struct onnx_run *run, const char *name)
{
    for (int i = 0; i < run->count; i++)
        if (strcmp(run->value[i].name, name) == 0) return &run->value[i];
    fail_msg("there is no value %s", name);
    return NULL;
}

void onnx_release(struct onnx_run *run)
{
    for (int i = 0; i < run->count; i++) free(run->value[i].v);
    run->count = 0;
}

static void add_constant(struct onnx_run *run, const Onnx__TensorProto *tensor)
{
    struct onnx_value *value = onnx_make(run, tensor->name, (int)tensor->n_dims, tensor->dims);
    const uint8_t *data = tensor->raw_data.data;
    for (int64_t i = 0; i < value->count; i++) {
        float single;
        int32_t small;
        int64_t large;
        if (tensor->data_type == TR_ONNX_FLOAT) {
            memcpy(&single, data + 4 * i, 4);
            value->v[i] = (double)single;
        } else if (tensor->data_type == TR_ONNX_INT32) {
            memcpy(&small, data + 4 * i, 4);
            value->v[i] = small;
        } else {
            assert_int_equal(tensor->data_type, TR_ONNX_INT64);
            memcpy(&large, data + 8 * i, 8);
            value->v[i] = (double)large;
        }
    }
}

void onnx_run(const Onnx__GraphProto *graph, struct onnx_run *run)
{
    static const struct onnx_operator *const kinds[] = {onnx_shapes, onnx_sums, onnx_windows, onnx_cells};
    for (size_t i = 0; i < graph->n_initializer; i++) add_constant(run, graph->initializer[i]);
    for (size_t i = 0; i < graph->n_node; i++) {
        struct node node = {run, graph->node[i], NULL};
        void (*compute)(struct node * node) = onnx_elements;
        node.x = node_in(&node, 0);
        for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++)
            for (const struct onnx_operator *known = kinds[k]; known->name; known++)
                if (strcmp(known->name, node.proto->op_type) == 0) compute = known->run;
        compute(&node);
    }
}
