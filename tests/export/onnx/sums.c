/* Operators that combine numbers along axes: sums, means and maxima, softmax, products of matrices, and batch
 * normalization. */
#include "export/onnx/node.h"

#include <setjmp.h>
#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <string.h>
#include <cmocka.h>

static void reduce(struct node *node)
{
    const struct onnx_value *x = node->x;
    const char *op = node->proto->op_type;
    const Onnx__AttributeProto *given = node_attribute(node, "axes");
    bool reduced[ONNX_AXES] = {false};
    int64_t size[ONNX_AXES], kept[ONNX_AXES], index[ONNX_AXES], over = 1;
    int rank = 0;
    if (strcmp(op, "ReduceSum") == 0)
        for (int i = 0; i < x->rank; i++) reduced[i] = is_among(node_in(node, 1), i, x->rank);
    else
        for (size_t i = 0; i < given->n_ints; i++) reduced[axis_of(given->ints[i], x->rank)] = true;
    for (int i = 0; i < x->rank; i++) {
        if (reduced[i]) over *= x->size[i];
        kept[i] = reduced[i] ? 1 : x->size[i];
        if (!reduced[i] || node_integer(node, "keepdims", 1)) size[rank++] = kept[i];
    }
    struct onnx_value *y = node_out(node, rank, size), whole = {.rank = x->rank};
    memcpy(whole.size, kept, sizeof kept);
    const bool most = strcmp(op, "ReduceMax") == 0;
    for (int64_t k = 0; k < y->count && most; k++) y->v[k] = -INFINITY;
    for (int64_t k = 0; k < x->count; k++) {
        index_of(k, x->rank, x->size, index);
        double *to = &y->v[place_within(&whole, x->rank, index)];
        *to = most ? fmax(*to, x->v[k]) : *to + x->v[k];
    }
    for (int64_t k = 0; k < y->count && strcmp(op, "ReduceMean") == 0; k++) y->v[k] /= (double)over;
}

static void softmax(struct node *node)
{
    const struct onnx_value *x = node->x;
    const int axis = axis_of(node_integer(node, "axis", -1), x->rank);
    int64_t step = 1;
    for (int i = axis + 1; i < x->rank; i++) step *= x->size[i];
    const int64_t width = x->size[axis];
    struct onnx_value *y = node_out(node, x->rank, x->size);
    for (int64_t k = 0; k < x->count; k++) {
        const int64_t first = k - k / step % width * step;
        double most = -INFINITY, sum = 0;
        for (int64_t i = 0; i < width; i++) most = fmax(most, x->v[first + i * step]);
        for (int64_t i = 0; i < width; i++) sum += exp(x->v[first + i * step] - most);
        y->v[k] = exp(x->v[k] - most) / sum;
    }
}

/* Matrices of all leading axes, of which the shorter value may have none. */
static void matmul(struct node *node)
{
    const struct onnx_value *a = node->x, *b = node_in(node, 1);
    const int rank = a->rank > b->rank ? a->rank : b->rank;
    int64_t size[ONNX_AXES], index[ONNX_AXES];
    assert_true(a->rank >= 2 && b->rank >= 2);
    for (int i = 0; i < rank - 2; i++)
        size[i] = i < rank - a->rank || (i >= rank - b->rank && a->size[i - rank + a->rank] == 1)
                      ? b->size[i - rank + b->rank]
                      : a->size[i - rank + a->rank];
    size[rank - 2] = a->size[a->rank - 2];
    size[rank - 1] = b->size[b->rank - 1];
    const int64_t inner = a->size[a->rank - 1];
    assert_int_equal(inner, b->size[b->rank - 2]);
    struct onnx_value *y = node_out(node, rank, size);
    for (int64_t k = 0; k < y->count; k++) {
        index_of(k, rank, size, index);
        const int64_t row = index[rank - 2], column = index[rank - 1];
        for (int64_t i = 0; i < inner; i++) {
            index[rank - 2] = row, index[rank - 1] = i;
            const double left = a->v[place_within(a, rank, index)];
            index[rank - 2] = i, index[rank - 1] = column;
            y->v[k] += left * b->v[place_within(b, rank, index)];
        }
    }
}

static void gemm(struct node *node)
{
    const struct onnx_value *a = node->x, *b = node_in(node, 1);
    assert_true(a->rank == 2 && b->rank == 2 && a->size[1] == b->size[0] && node->proto->n_attribute == 0);
    if (node_has(node, 2)) assert_int_equal(node_in(node, 2)->count, b->size[1]);
    struct onnx_value *y = node_out(node, 2, (const int64_t[]){a->size[0], b->size[1]});
    for (int64_t k = 0; k < y->count; k++) {
        const int64_t row = k / b->size[1], column = k % b->size[1];
        y->v[k] = node_has(node, 2) ? node_in(node, 2)->v[column] : 0;
        for (int64_t i = 0; i < a->size[1]; i++)
            y->v[k] += a->v[row * a->size[1] + i] * b->v[i * b->size[1] + column];
    }
}

static void batch_norm(struct node *node)
{
    const struct onnx_value *x = node->x;
    int64_t index[ONNX_AXES];
    struct onnx_value *y = node_out(node, x->rank, x->size);
    for (size_t i = 1; i < 5; i++) assert_int_equal(node_in(node, i)->count, x->size[1]);
    for (int64_t k = 0; k < x->count; k++) {
        index_of(k, x->rank, x->size, index);
        const int64_t c = index[1];
        y->v[k] = (x->v[k] - node_in(node, 3)->v[c]) /
                      sqrt(node_in(node, 4)->v[c] + node_number(node, "epsilon", 1e-5)) *
                      node_in(node, 1)->v[c] +
                  node_in(node, 2)->v[c];
    }
}

const struct onnx_operator onnx_sums[] = {
    {"BatchNormalization", batch_norm},
    {"Gemm", gemm},
    {"MatMul", matmul},
    {"ReduceMax", reduce},
    {"ReduceMean", reduce},
    {"ReduceSum", reduce},
    {"Softmax", softmax},
    {NULL, NULL},
};
