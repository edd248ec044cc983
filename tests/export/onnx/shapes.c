/* Operators that move, choose, repeat or count numbers, and change none. */
#include "export/onnx/node.h"

#include <setjmp.h>
#include <math.h>
#include <stdarg.h>
#include <string.h>
#include <cmocka.h>

static void same_numbers(struct node *node, int rank, const int64_t *size)
{
    const struct onnx_value *x = node->x;
    struct onnx_value *y = node_out(node, rank, size);
    assert_int_equal(y->count, x->count);
    memcpy(y->v, x->v, (size_t)x->count * sizeof *x->v);
}

static void reshape(struct node *node)
{
    const struct onnx_value *shape = node_in(node, 1);
    int64_t size[ONNX_AXES], known = 1;
    int open = -1;
    assert_true(shape->rank == 1 && shape->count <= ONNX_AXES);
    for (int i = 0; i < (int)shape->count; i++) {
        assert_true(shape->v[i] != 0 || i < node->x->rank);
        size[i] = shape->v[i] == 0 ? node->x->size[i] : (int64_t)shape->v[i];
        if (size[i] < 0) {
            assert_true(size[i] == -1 && open < 0);
            open = i;
        } else {
            known *= size[i];
        }
    }
    if (open >= 0) size[open] = node->x->count / known;
    same_numbers(node, (int)shape->count, size);
}

static void flatten(struct node *node)
{
    int64_t size[] = {1, 1};
    const int axis = (int)node_integer(node, "axis", 1);
    for (int i = 0; i < node->x->rank; i++) size[i >= axis] *= node->x->size[i];
    same_numbers(node, 2, size);
}

static void squeeze(struct node *node)
{
    int64_t size[ONNX_AXES];
    int rank = 0;
    for (int i = 0; i < node->x->rank; i++) {
        if (is_among(node_in(node, 1), i, node->x->rank))
            assert_int_equal(node->x->size[i], 1);
        else
            size[rank++] = node->x->size[i];
    }
    same_numbers(node, rank, size);
}

static void unsqueeze(struct node *node)
{
    const int rank = node->x->rank + (int)node_in(node, 1)->count;
    int64_t size[ONNX_AXES];
    for (int i = 0, k = 0; i < rank; i++)
        size[i] = is_among(node_in(node, 1), i, rank) ? 1 : node->x->size[k++];
    same_numbers(node, rank, size);
}

static void transpose(struct node *node)
{
    const struct onnx_value *x = node->x;
    int64_t order[ONNX_AXES], size[ONNX_AXES], index[ONNX_AXES], from[ONNX_AXES];
    unsigned seen = 0;
    node_integers(node, "perm", x->rank, -1, order);
    for (int i = 0; i < x->rank; i++) {
        assert_in_range(order[i], 0, x->rank - 1);
        seen |= 1U << order[i];
        size[i] = x->size[order[i]];
    }
    assert_int_equal(seen, (1U << x->rank) - 1);
    struct onnx_value *y = node_out(node, x->rank, size);
    for (int64_t k = 0; k < y->count; k++) {
        index_of(k, x->rank, size, index);
        for (int i = 0; i < x->rank; i++) from[order[i]] = index[i];
        y->v[k] = x->v[place_of(x, from)];
    }
}

static void concat(struct node *node)
{
    const int rank = node->x->rank, axis = axis_of(node_integer(node, "axis", INT64_MAX), rank);
    int64_t size[ONNX_AXES], index[ONNX_AXES], first = 0;
    memcpy(size, node->x->size, sizeof size);
    for (size_t i = 1; i < node->proto->n_input; i++) size[axis] += node_in(node, i)->size[axis];
    struct onnx_value *y = node_out(node, rank, size);
    for (size_t i = 0; i < node->proto->n_input; i++) {
        const struct onnx_value *x = node_in(node, i);
        assert_int_equal(x->rank, rank);
        for (int a = 0; a < rank; a++)
            if (a != axis) assert_int_equal(x->size[a], size[a]);
        for (int64_t k = 0; k < x->count; k++) {
            index_of(k, rank, x->size, index);
            index[axis] += first;
            y->v[place_of(y, index)] = x->v[k];
        }
        first += x->size[axis];
    }
}

static void slice(struct node *node)
{
    const struct onnx_value *x = node->x, *from = node_in(node, 1), *to = node_in(node, 2),
                            *axes = node_in(node, 3);
    int64_t size[ONNX_AXES], index[ONNX_AXES], begin[ONNX_AXES] = {0}, step[ONNX_AXES];
    assert_true(from->rank == 1 && to->rank == 1 && axes->rank == 1);
    assert_true(from->count == axes->count && to->count == axes->count);
    if (node_has(node, 4)) assert_int_equal(node_in(node, 4)->count, axes->count);
    memcpy(size, x->size, sizeof size);
    for (int i = 0; i < x->rank; i++) step[i] = 1;
    for (int64_t i = 0; i < axes->count; i++) {
        const int a = axis_of((int64_t)axes->v[i], x->rank);
        const double all = (double)x->size[a];
        double b = from->v[i], e = to->v[i];
        step[a] = node_has(node, 4) ? (int64_t)node_in(node, 4)->v[i] : 1;
        assert_true(step[a] == 1 || step[a] == -1);
        if (b < 0) b += all;
        if (e < 0) e += all;
        b = fmax(0, fmin(b, step[a] > 0 ? all : all - 1));
        e = fmax(step[a] > 0 ? 0 : -1, fmin(e, all));
        begin[a] = (int64_t)b;
        size[a] = (int64_t)fmax(0, (e - b) / (double)step[a]);
    }
    struct onnx_value *y = node_out(node, x->rank, size);
    for (int64_t k = 0; k < y->count; k++) {
        index_of(k, x->rank, size, index);
        for (int i = 0; i < x->rank; i++) index[i] = begin[i] + index[i] * step[i];
        y->v[k] = x->v[place_of(x, index)];
    }
}

static void gather(struct node *node)
{
    const struct onnx_value *x = node->x, *places = node_in(node, 1);
    const int axis = axis_of(node_integer(node, "axis", 0), x->rank), rank = x->rank - 1 + places->rank;
    int64_t size[ONNX_AXES], index[ONNX_AXES], from[ONNX_AXES];
    for (int i = 0; i < rank; i++)
        size[i] = i < axis                  ? x->size[i]
                  : i < axis + places->rank ? places->size[i - axis]
                                            : x->size[i - places->rank + 1];
    struct onnx_value *y = node_out(node, rank, size);
    for (int64_t k = 0; k < y->count; k++) {
        index_of(k, rank, size, index);
        const double place = places->v[place_of(places, index + axis)];
        for (int i = 0; i < x->rank; i++)
            from[i] = i < axis   ? index[i]
                      : i > axis ? index[i + places->rank - 1]
                                 : (int64_t)(place < 0 ? place + (double)x->size[axis] : place);
        y->v[k] = x->v[place_of(x, from)];
    }
}

/* Of [batch, ..] with one place for each of the batch. */
static void gather_nd(struct node *node)
{
    const struct onnx_value *x = node->x, *places = node_in(node, 1);
    assert_int_equal(node_integer(node, "batch_dims", 0), 1);
    assert_true(places->rank == 2 && places->size[1] == 1 && places->size[0] == x->size[0] && x->rank == 3);
    struct onnx_value *y = node_out(node, 2, (const int64_t[]){x->size[0], x->size[2]});
    for (int64_t k = 0; k < y->count; k++) {
        const int64_t row = k / x->size[2], from[] = {row, (int64_t)places->v[row], k % x->size[2]};
        y->v[k] = x->v[place_of(x, from)];
    }
}

static void shape(struct node *node)
{
    const int64_t rank = node->x->rank;
    struct onnx_value *y = node_out(node, 1, &rank);
    for (int i = 0; i < node->x->rank; i++) y->v[i] = (double)node->x->size[i];
}

static void range(struct node *node)
{
    for (size_t i = 0; i < 3; i++) assert_int_equal(node_in(node, i)->rank, 0);
    const double begin = node->x->v[0], end = node_in(node, 1)->v[0], step = node_in(node, 2)->v[0];
    const int64_t count = (int64_t)ceil((end - begin) / step);
    struct onnx_value *y = node_out(node, 1, &count);
    for (int64_t i = 0; i < count; i++) y->v[i] = begin + (double)i * step;
}

static void pad(struct node *node)
{
    const struct onnx_value *x = node->x, *pads = node_in(node, 1);
    int64_t size[ONNX_AXES], index[ONNX_AXES];
    assert_int_equal(pads->count, 2 * x->rank);
    for (int i = 0; i < x->rank; i++) size[i] = x->size[i] + (int64_t)(pads->v[i] + pads->v[x->rank + i]);
    struct onnx_value *y = node_out(node, x->rank, size);
    for (int64_t k = 0; k < x->count; k++) {
        index_of(k, x->rank, x->size, index);
        for (int i = 0; i < x->rank; i++) index[i] += (int64_t)pads->v[i];
        y->v[place_of(y, index)] = x->v[k];
    }
}

/* By whole factors, where all ways to round places agree. */
static void resize(struct node *node)
{
    const struct onnx_value *x = node->x, *scales = node_in(node, 2);
    int64_t size[ONNX_AXES], index[ONNX_AXES];
    assert_int_equal(scales->count, x->rank);
    for (int i = 0; i < x->rank; i++) size[i] = x->size[i] * (int64_t)scales->v[i];
    struct onnx_value *y = node_out(node, x->rank, size);
    for (int64_t k = 0; k < y->count; k++) {
        index_of(k, x->rank, size, index);
        for (int i = 0; i < x->rank; i++) index[i] /= (int64_t)scales->v[i];
        y->v[k] = x->v[place_of(x, index)];
    }
}

static void reverse_sequence(struct node *node)
{
    const struct onnx_value *x = node->x, *lengths = node_in(node, 1);
    const int time = (int)node_integer(node, "time_axis", 0),
              batch = (int)node_integer(node, "batch_axis", 1);
    int64_t index[ONNX_AXES];
    struct onnx_value *y = node_out(node, x->rank, x->size);
    for (int64_t k = 0; k < y->count; k++) {
        index_of(k, x->rank, x->size, index);
        const int64_t length = (int64_t)lengths->v[index[batch]];
        if (index[time] < length) index[time] = length - 1 - index[time];
        y->v[k] = x->v[place_of(x, index)];
    }
}

const struct onnx_operator onnx_shapes[] = {
    {"Concat", concat},
    {"Flatten", flatten},
    {"Gather", gather},
    {"GatherND", gather_nd},
    {"Pad", pad},
    {"Range", range},
    {"Reshape", reshape},
    {"Resize", resize},
    {"ReverseSequence", reverse_sequence},
    {"Shape", shape},
    {"Slice", slice},
    {"Squeeze", squeeze},
    {"Transpose", transpose},
    {"Unsqueeze", unsqueeze},
    {NULL, NULL},
};
