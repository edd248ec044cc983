#include "export/onnx/node.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <string.h>
#include <cmocka.h>

bool node_has(const struct node *node, size_t i)
{
    return i < node->proto->n_input && node->proto->input[i][0];
}

const struct onnx_value *node_in(const struct node *node, size_t i)
{
    assert_true(node_has(node, i));
    return onnx_find(node->run, node->proto->input[i]);
}

struct onnx_value *node_out(struct node *node, int rank, const int64_t *size)
{
    return onnx_make(node->run, node->proto->output[0], rank, size);
}

const Onnx__AttributeProto *node_attribute(const struct node *node, const char *name)
{
    for (size_t i = 0; i < node->proto->n_attribute; i++)
        if (strcmp(node->proto->attribute[i]->name, name) == 0) return node->proto->attribute[i];
    return NULL;
}

int64_t node_integer(const struct node *node, const char *name, int64_t usual)
{
    const Onnx__AttributeProto *found = node_attribute(node, name);
    return found ? found->i : usual;
}

double node_number(const struct node *node, const char *name, double usual)
{
    const Onnx__AttributeProto *found = node_attribute(node, name);
    return found ? (double)found->f : usual;
}

void node_integers(const struct node *node, const char *name, int count, int64_t usual, int64_t *to)
{
    const Onnx__AttributeProto *found = node_attribute(node, name);
    if (found) assert_int_equal(found->n_ints, count);
    for (int i = 0; i < count; i++) to[i] = found ? found->ints[i] : usual;
}

int axis_of(int64_t axis, int rank)
{
    assert_true(axis >= -rank && axis < rank);
    return (int)(axis < 0 ? axis + rank : axis);
}

void index_of(int64_t at, int rank, const int64_t *size, int64_t *index)
{
    for (int i = rank - 1; i >= 0; i--) {
        index[i] = at % size[i];
        at /= size[i];
    }
}

int64_t place_of(const struct onnx_value *x, const int64_t *index)
{
    int64_t at = 0;
    for (int i = 0; i < x->rank; i++) {
        assert_true(index[i] >= 0 && index[i] < x->size[i]);
        at = at * x->size[i] + index[i];
    }
    return at;
}

int64_t place_within(const struct onnx_value *x, int rank, const int64_t *index)
{
    int64_t own[ONNX_AXES];
    for (int i = 0; i < x->rank; i++) own[i] = x->size[i] == 1 ? 0 : index[rank - x->rank + i];
    return place_of(x, own);
}

bool is_among(const struct onnx_value *axes, int axis, int rank)
{
    for (int64_t i = 0; i < axes->count; i++)
        if (axis_of((int64_t)axes->v[i], rank) == axis) return true;
    return false;
}
