#include "export/onnx_run.h"

#include "export/onnx/graph.h"

#include <setjmp.h>
#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

/* ---- values ---- */

static struct onnx_value *make(struct onnx_run *run, const char *name, int rank, const int64_t *size)
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
    return make(run, name, rank, size)->v;
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
    struct onnx_value *value = make(run, tensor->name, (int)tensor->n_dims, tensor->dims);
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

/* ---- nodes ---- */

struct node {
    struct onnx_run *run;
    const Onnx__NodeProto *proto;
    const struct onnx_value *x; /* the first input */
};

static bool has(const struct node *node, size_t i)
{
    return i < node->proto->n_input && node->proto->input[i][0];
}

static const struct onnx_value *in(const struct node *node, size_t i)
{
    assert_true(has(node, i));
    return onnx_find(node->run, node->proto->input[i]);
}

/* The output; the value of the first input may move. */
static struct onnx_value *out(struct node *node, int rank, const int64_t *size)
{
    return make(node->run, node->proto->output[0], rank, size);
}

static const Onnx__AttributeProto *attribute(const struct node *node, const char *name)
{
    for (size_t i = 0; i < node->proto->n_attribute; i++)
        if (strcmp(node->proto->attribute[i]->name, name) == 0) return node->proto->attribute[i];
    return NULL;
}

static int64_t integer(const struct node *node, const char *name, int64_t usual)
{
    const Onnx__AttributeProto *found = attribute(node, name);
    return found ? found->i : usual;
}

static double number(const struct node *node, const char *name, double usual)
{
    const Onnx__AttributeProto *found = attribute(node, name);
    return found ? (double)found->f : usual;
}

static void integers(const struct node *node, const char *name, int count, int64_t usual, int64_t *to)
{
    const Onnx__AttributeProto *found = attribute(node, name);
    if (found) assert_int_equal(found->n_ints, count);
    for (int i = 0; i < count; i++) to[i] = found ? found->ints[i] : usual;
}

/* An axis that counts from the end if it is negative. */
static int axis_of(int64_t axis, int rank)
{
    assert_true(axis >= -rank && axis < rank);
    return (int)(axis < 0 ? axis + rank : axis);
}

static void index_of(int64_t at, int rank, const int64_t *size, int64_t *index)
{
    for (int i = rank - 1; i >= 0; i--) {
        index[i] = at % size[i];
        at /= size[i];
    }
}

static int64_t place_of(const struct onnx_value *x, const int64_t *index)
{
    int64_t at = 0;
    for (int i = 0; i < x->rank; i++) {
        assert_true(index[i] >= 0 && index[i] < x->size[i]);
        at = at * x->size[i] + index[i];
    }
    return at;
}

/* The place for an index of `rank` axes, of which x has the last ones, some of size 1. */
static int64_t place_within(const struct onnx_value *x, int rank, const int64_t *index)
{
    int64_t own[ONNX_AXES];
    for (int i = 0; i < x->rank; i++) own[i] = x->size[i] == 1 ? 0 : index[rank - x->rank + i];
    return place_of(x, own);
}

/* ---- elements ---- */

static double unary(const struct node *node, const char *op, double x)
{
    if (strcmp(op, "Identity") == 0 || strcmp(op, "Cast") == 0) return x;
    if (strcmp(op, "Relu") == 0) return x > 0 ? x : 0;
    if (strcmp(op, "LeakyRelu") == 0) return x > 0 ? x : number(node, "alpha", 0.01) * x;
    if (strcmp(op, "Tanh") == 0) return tanh(x);
    if (strcmp(op, "Sigmoid") == 0) return 1 / (1 + exp(-x));
    if (strcmp(op, "HardSigmoid") == 0)
        return fmax(0, fmin(1, number(node, "alpha", 0.2) * x + number(node, "beta", 0.5)));
    if (strcmp(op, "Erf") == 0) return erf(x);
    if (strcmp(op, "Sqrt") == 0) return sqrt(x);
    if (strcmp(op, "Sin") == 0) return sin(x);
    if (strcmp(op, "Cos") == 0) return cos(x);
    if (strcmp(op, "Not") == 0) return x == 0;
    if (strcmp(op, "IsNaN") == 0) return isnan(x) != 0;
    fail_msg("the operation %s is not known", op);
    return 0;
}

static double binary(const char *op, double a, double b)
{
    if (strcmp(op, "Add") == 0) return a + b;
    if (strcmp(op, "Sub") == 0) return a - b;
    if (strcmp(op, "Mul") == 0) return a * b;
    if (strcmp(op, "Div") == 0) return a / b;
    if (strcmp(op, "Min") == 0) return fmin(a, b);
    if (strcmp(op, "Less") == 0) return a < b;
    if (strcmp(op, "LessOrEqual") == 0) return a <= b;
    if (strcmp(op, "Equal") == 0) return a == b;
    if (strcmp(op, "And") == 0) return a != 0 && b != 0;
    if (strcmp(op, "Or") == 0) return a != 0 || b != 0;
    fail_msg("the operation %s of two values is not known", op);
    return 0;
}

/* Of up to three values, stretched to one shape; a Clip's bounds are such values, too. */
static void elements(struct node *node)
{
    const char *op = node->proto->op_type;
    const int inputs = (int)node->proto->n_input;
    int64_t size[ONNX_AXES], index[ONNX_AXES];
    int rank = 0;
    for (int i = 0; i < inputs; i++)
        rank = in(node, (size_t)i)->rank > rank ? in(node, (size_t)i)->rank : rank;
    for (int a = 0; a < rank; a++) size[a] = 1;
    for (int i = 0; i < inputs; i++) {
        const struct onnx_value *x = in(node, (size_t)i);
        for (int a = 0; a < x->rank; a++) {
            int64_t *to = &size[rank - x->rank + a];
            if (*to != x->size[a] && *to != 1 && x->size[a] != 1)
                fail_msg("%s: sizes %d and %d", node->proto->name, (int)*to, (int)x->size[a]);
            if (x->size[a] != 1) *to = x->size[a];
        }
    }
    struct onnx_value *y = out(node, rank, size);
    const struct onnx_value *x[3] = {in(node, 0), inputs > 1 ? in(node, 1) : NULL,
                                     inputs > 2 ? in(node, 2) : NULL};
    for (int64_t k = 0; k < y->count; k++) {
        double v[3] = {0};
        index_of(k, rank, size, index);
        for (int i = 0; i < inputs; i++) v[i] = x[i]->v[place_within(x[i], rank, index)];
        if (inputs == 1)
            y->v[k] = unary(node, op, v[0]);
        else if (inputs == 2)
            y->v[k] = binary(op, v[0], v[1]);
        else if (strcmp(op, "Where") == 0)
            y->v[k] = v[0] != 0 ? v[1] : v[2];
        else
            y->v[k] = fmin(fmax(v[0], v[1]), v[2]); /* Clip */
    }
}

/* ---- shapes ---- */

static void same_numbers(struct node *node, int rank, const int64_t *size)
{
    const struct onnx_value *x = node->x;
    struct onnx_value *y = out(node, rank, size);
    assert_int_equal(y->count, x->count);
    memcpy(y->v, x->v, (size_t)x->count * sizeof *x->v);
}

static void reshape(struct node *node)
{
    const struct onnx_value *shape = in(node, 1);
    int64_t size[ONNX_AXES], known = 1;
    int open = -1;
    for (int i = 0; i < (int)shape->count; i++) {
        size[i] = shape->v[i] == 0 ? node->x->size[i] : (int64_t)shape->v[i];
        if (size[i] < 0)
            open = i;
        else
            known *= size[i];
    }
    if (open >= 0) size[open] = node->x->count / known;
    same_numbers(node, (int)shape->count, size);
}

static void flatten(struct node *node)
{
    int64_t size[] = {1, 1};
    const int axis = (int)integer(node, "axis", 1);
    for (int i = 0; i < node->x->rank; i++) size[i >= axis] *= node->x->size[i];
    same_numbers(node, 2, size);
}

static bool is_among(const struct onnx_value *axes, int axis, int rank)
{
    for (int64_t i = 0; i < axes->count; i++)
        if (axis_of((int64_t)axes->v[i], rank) == axis) return true;
    return false;
}

static void squeeze(struct node *node)
{
    int64_t size[ONNX_AXES];
    int rank = 0;
    for (int i = 0; i < node->x->rank; i++) {
        if (is_among(in(node, 1), i, node->x->rank))
            assert_int_equal(node->x->size[i], 1);
        else
            size[rank++] = node->x->size[i];
    }
    same_numbers(node, rank, size);
}

static void unsqueeze(struct node *node)
{
    const int rank = node->x->rank + (int)in(node, 1)->count;
    int64_t size[ONNX_AXES];
    for (int i = 0, k = 0; i < rank; i++) size[i] = is_among(in(node, 1), i, rank) ? 1 : node->x->size[k++];
    same_numbers(node, rank, size);
}

static void transpose(struct node *node)
{
    const struct onnx_value *x = node->x;
    int64_t order[ONNX_AXES], size[ONNX_AXES], index[ONNX_AXES], from[ONNX_AXES];
    unsigned seen = 0;
    integers(node, "perm", x->rank, -1, order);
    for (int i = 0; i < x->rank; i++) {
        assert_in_range(order[i], 0, x->rank - 1);
        seen |= 1U << order[i];
        size[i] = x->size[order[i]];
    }
    assert_int_equal(seen, (1U << x->rank) - 1);
    struct onnx_value *y = out(node, x->rank, size);
    for (int64_t k = 0; k < y->count; k++) {
        index_of(k, x->rank, size, index);
        for (int i = 0; i < x->rank; i++) from[order[i]] = index[i];
        y->v[k] = x->v[place_of(x, from)];
    }
}

static void concat(struct node *node)
{
    const int rank = node->x->rank, axis = axis_of(integer(node, "axis", INT64_MAX), rank);
    int64_t size[ONNX_AXES], index[ONNX_AXES], first = 0;
    memcpy(size, node->x->size, sizeof size);
    for (size_t i = 1; i < node->proto->n_input; i++) size[axis] += in(node, i)->size[axis];
    struct onnx_value *y = out(node, rank, size);
    for (size_t i = 0; i < node->proto->n_input; i++) {
        const struct onnx_value *x = in(node, i);
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
    const struct onnx_value *x = node->x, *from = in(node, 1), *to = in(node, 2), *axes = in(node, 3);
    int64_t size[ONNX_AXES], index[ONNX_AXES], begin[ONNX_AXES] = {0}, step[ONNX_AXES];
    memcpy(size, x->size, sizeof size);
    for (int i = 0; i < x->rank; i++) step[i] = 1;
    for (int64_t i = 0; i < axes->count; i++) {
        const int a = axis_of((int64_t)axes->v[i], x->rank);
        const double all = (double)x->size[a];
        double b = from->v[i], e = to->v[i];
        step[a] = has(node, 4) ? (int64_t)in(node, 4)->v[i] : 1;
        assert_true(step[a] == 1 || step[a] == -1);
        if (b < 0) b += all;
        if (e < 0) e += all;
        b = fmax(0, fmin(b, step[a] > 0 ? all : all - 1));
        e = fmax(step[a] > 0 ? 0 : -1, fmin(e, all));
        begin[a] = (int64_t)b;
        size[a] = (int64_t)fmax(0, (e - b) / (double)step[a]);
    }
    struct onnx_value *y = out(node, x->rank, size);
    for (int64_t k = 0; k < y->count; k++) {
        index_of(k, x->rank, size, index);
        for (int i = 0; i < x->rank; i++) index[i] = begin[i] + index[i] * step[i];
        y->v[k] = x->v[place_of(x, index)];
    }
}

static void gather(struct node *node)
{
    const struct onnx_value *x = node->x, *places = in(node, 1);
    const int axis = axis_of(integer(node, "axis", 0), x->rank), rank = x->rank - 1 + places->rank;
    int64_t size[ONNX_AXES], index[ONNX_AXES], from[ONNX_AXES];
    for (int i = 0; i < rank; i++)
        size[i] = i < axis                  ? x->size[i]
                  : i < axis + places->rank ? places->size[i - axis]
                                            : x->size[i - places->rank + 1];
    struct onnx_value *y = out(node, rank, size);
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
    const struct onnx_value *x = node->x, *places = in(node, 1);
    assert_int_equal(integer(node, "batch_dims", 0), 1);
    assert_true(places->rank == 2 && places->size[1] == 1 && places->size[0] == x->size[0] && x->rank == 3);
    struct onnx_value *y = out(node, 2, (const int64_t[]){x->size[0], x->size[2]});
    for (int64_t k = 0; k < y->count; k++) {
        const int64_t row = k / x->size[2], from[] = {row, (int64_t)places->v[row], k % x->size[2]};
        y->v[k] = x->v[place_of(x, from)];
    }
}

static void shape(struct node *node)
{
    const int64_t rank = node->x->rank;
    struct onnx_value *y = out(node, 1, &rank);
    for (int i = 0; i < node->x->rank; i++) y->v[i] = (double)node->x->size[i];
}

static void range(struct node *node)
{
    const double begin = node->x->v[0], end = in(node, 1)->v[0], step = in(node, 2)->v[0];
    const int64_t count = (int64_t)ceil((end - begin) / step);
    struct onnx_value *y = out(node, 1, &count);
    for (int64_t i = 0; i < count; i++) y->v[i] = begin + (double)i * step;
}

static void pad(struct node *node)
{
    const struct onnx_value *x = node->x, *pads = in(node, 1);
    int64_t size[ONNX_AXES], index[ONNX_AXES];
    assert_int_equal(pads->count, 2 * x->rank);
    for (int i = 0; i < x->rank; i++) size[i] = x->size[i] + (int64_t)(pads->v[i] + pads->v[x->rank + i]);
    struct onnx_value *y = out(node, x->rank, size);
    for (int64_t k = 0; k < x->count; k++) {
        index_of(k, x->rank, x->size, index);
        for (int i = 0; i < x->rank; i++) index[i] += (int64_t)pads->v[i];
        y->v[place_of(y, index)] = x->v[k];
    }
}

/* By whole factors, where all ways to round places agree. */
static void resize(struct node *node)
{
    const struct onnx_value *x = node->x, *scales = in(node, 2);
    int64_t size[ONNX_AXES], index[ONNX_AXES];
    assert_int_equal(scales->count, x->rank);
    for (int i = 0; i < x->rank; i++) size[i] = x->size[i] * (int64_t)scales->v[i];
    struct onnx_value *y = out(node, x->rank, size);
    for (int64_t k = 0; k < y->count; k++) {
        index_of(k, x->rank, size, index);
        for (int i = 0; i < x->rank; i++) index[i] /= (int64_t)scales->v[i];
        y->v[k] = x->v[place_of(x, index)];
    }
}

static void reverse_sequence(struct node *node)
{
    const struct onnx_value *x = node->x, *lengths = in(node, 1);
    const int time = (int)integer(node, "time_axis", 0), batch = (int)integer(node, "batch_axis", 1);
    int64_t index[ONNX_AXES];
    struct onnx_value *y = out(node, x->rank, x->size);
    for (int64_t k = 0; k < y->count; k++) {
        index_of(k, x->rank, x->size, index);
        const int64_t length = (int64_t)lengths->v[index[batch]];
        if (index[time] < length) index[time] = length - 1 - index[time];
        y->v[k] = x->v[place_of(x, index)];
    }
}

/* ---- sums ---- */

static void reduce(struct node *node)
{
    const struct onnx_value *x = node->x;
    const char *op = node->proto->op_type;
    const Onnx__AttributeProto *given = attribute(node, "axes");
    bool reduced[ONNX_AXES] = {false};
    int64_t size[ONNX_AXES], kept[ONNX_AXES], index[ONNX_AXES], over = 1;
    int rank = 0;
    if (strcmp(op, "ReduceSum") == 0)
        for (int i = 0; i < x->rank; i++) reduced[i] = is_among(in(node, 1), i, x->rank);
    else
        for (size_t i = 0; i < given->n_ints; i++) reduced[axis_of(given->ints[i], x->rank)] = true;
    for (int i = 0; i < x->rank; i++) {
        if (reduced[i]) over *= x->size[i];
        kept[i] = reduced[i] ? 1 : x->size[i];
        if (!reduced[i] || integer(node, "keepdims", 1)) size[rank++] = kept[i];
    }
    struct onnx_value *y = out(node, rank, size), whole = {.rank = x->rank};
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
    const int axis = axis_of(integer(node, "axis", -1), x->rank);
    int64_t step = 1;
    for (int i = axis + 1; i < x->rank; i++) step *= x->size[i];
    const int64_t width = x->size[axis];
    struct onnx_value *y = out(node, x->rank, x->size);
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
    const struct onnx_value *a = node->x, *b = in(node, 1);
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
    struct onnx_value *y = out(node, rank, size);
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
    const struct onnx_value *a = node->x, *b = in(node, 1);
    assert_true(a->rank == 2 && b->rank == 2 && a->size[1] == b->size[0] && node->proto->n_attribute == 0);
    struct onnx_value *y = out(node, 2, (const int64_t[]){a->size[0], b->size[1]});
    for (int64_t k = 0; k < y->count; k++) {
        const int64_t row = k / b->size[1], column = k % b->size[1];
        y->v[k] = has(node, 2) ? in(node, 2)->v[column] : 0;
        for (int64_t i = 0; i < a->size[1]; i++)
            y->v[k] += a->v[row * a->size[1] + i] * b->v[i * b->size[1] + column];
    }
}

static void batch_norm(struct node *node)
{
    const struct onnx_value *x = node->x;
    int64_t index[ONNX_AXES];
    struct onnx_value *y = out(node, x->rank, x->size);
    for (size_t i = 1; i < 5; i++) assert_int_equal(in(node, i)->count, x->size[1]);
    for (int64_t k = 0; k < x->count; k++) {
        index_of(k, x->rank, x->size, index);
        const int64_t c = index[1];
        y->v[k] = (x->v[k] - in(node, 3)->v[c]) / sqrt(in(node, 4)->v[c] + number(node, "epsilon", 1e-5)) *
                      in(node, 1)->v[c] +
                  in(node, 2)->v[c];
    }
}

/* ---- windows ---- */

struct window {
    int axes;
    int64_t kernel[2], stride[2], dilation[2], pads[4];
};

static struct window window_of(const struct node *node)
{
    struct window window = {.axes = node->x->rank - 2};
    integers(node, "kernel_shape", window.axes, -1, window.kernel);
    integers(node, "strides", window.axes, 1, window.stride);
    integers(node, "dilations", window.axes, 1, window.dilation);
    integers(node, "pads", 2 * window.axes, 0, window.pads);
    return window;
}

static int64_t taps_of(const struct window *window)
{
    return window->kernel[0] * (window->axes == 2 ? window->kernel[1] : 1);
}

/* The place in the input that tap `tap` meets at `index` of the output; false: in the padding. */
static bool meet(const struct window *window, const int64_t *size, const int64_t *index, int64_t tap,
                 int64_t *place)
{
    bool inside = true;
    for (int i = window->axes - 1; i >= 0; i--) {
        place[i] =
            index[i] * window->stride[i] - window->pads[i] + tap % window->kernel[i] * window->dilation[i];
        tap /= window->kernel[i];
        inside &= place[i] >= 0 && place[i] < size[i];
    }
    return inside;
}

static void size_under(const struct window *window, const struct onnx_value *x, int64_t channels,
                       int64_t *size)
{
    size[0] = x->size[0];
    size[1] = channels;
    for (int i = 0; i < window->axes; i++)
        size[2 + i] = (x->size[2 + i] + window->pads[i] + window->pads[window->axes + i] -
                       window->dilation[i] * (window->kernel[i] - 1) - 1) /
                          window->stride[i] +
                      1;
}

static void conv(struct node *node)
{
    const struct onnx_value *x = node->x, *w = in(node, 1);
    const struct window window = window_of(node);
    const int64_t groups = integer(node, "group", 1), own = w->size[1], each = w->size[0] / groups,
                  taps = taps_of(&window);
    int64_t size[ONNX_AXES], index[ONNX_AXES], from[ONNX_AXES];
    assert_int_equal(own * groups, x->size[1]);
    for (int i = 0; i < window.axes; i++) assert_int_equal(w->size[2 + i], window.kernel[i]);
    size_under(&window, x, w->size[0], size);
    struct onnx_value *y = out(node, x->rank, size);
    for (int64_t k = 0; k < y->count; k++) {
        index_of(k, x->rank, size, index);
        y->v[k] = has(node, 2) ? in(node, 2)->v[index[1]] : 0;
        for (int64_t c = 0; c < own; c++)
            for (int64_t tap = 0; tap < taps; tap++) {
                from[0] = index[0];
                from[1] = index[1] / each * own + c;
                if (meet(&window, x->size + 2, index + 2, tap, from + 2))
                    y->v[k] += x->v[place_of(x, from)] * w->v[(index[1] * own + c) * taps + tap];
            }
    }
}

/* Each number of the input adds a kernel to the output. */
static void conv_transpose(struct node *node)
{
    const struct onnx_value *x = node->x, *w = in(node, 1);
    const struct window window = window_of(node);
    const int64_t groups = integer(node, "group", 1), own = w->size[1], each = x->size[1] / groups,
                  taps = taps_of(&window);
    int64_t size[ONNX_AXES] = {x->size[0], own * groups}, index[ONNX_AXES], to[ONNX_AXES], more[2];
    integers(node, "output_padding", window.axes, 0, more);
    for (int i = 0; i < window.axes; i++)
        size[2 + i] = window.stride[i] * (x->size[2 + i] - 1) + more[i] +
                      (window.kernel[i] - 1) * window.dilation[i] + 1 - window.pads[i] -
                      window.pads[window.axes + i];
    struct onnx_value *y = out(node, x->rank, size);
    assert_int_equal(w->size[0], x->size[1]);
    for (int64_t k = 0; k < x->count; k++) {
        index_of(k, x->rank, x->size, index);
        for (int64_t c = 0; c < own; c++)
            for (int64_t tap = 0; tap < taps; tap++) {
                to[0] = index[0];
                to[1] = index[1] / each * own + c;
                if (meet(&window, size + 2, index + 2, tap, to + 2))
                    y->v[place_of(y, to)] += x->v[k] * w->v[(index[1] * own + c) * taps + tap];
            }
    }
}

static void pool(struct node *node)
{
    const struct onnx_value *x = node->x;
    const struct window window = window_of(node);
    const bool most = strcmp(node->proto->op_type, "MaxPool") == 0;
    int64_t size[ONNX_AXES], index[ONNX_AXES], from[ONNX_AXES];
    size_under(&window, x, x->size[1], size);
    struct onnx_value *y = out(node, x->rank, size);
    for (int64_t k = 0; k < y->count; k++) {
        double best = -INFINITY, sum = 0;
        int64_t met = 0;
        index_of(k, x->rank, size, index);
        from[0] = index[0], from[1] = index[1];
        for (int64_t tap = 0; tap < taps_of(&window); tap++) {
            if (!meet(&window, x->size + 2, index + 2, tap, from + 2)) continue;
            const double value = x->v[place_of(x, from)];
            best = fmax(best, value);
            sum += value;
            met++;
        }
        if (integer(node, "count_include_pad", 0)) met = taps_of(&window);
        y->v[k] = most ? best : sum / (double)met;
    }
}

static void global_pool(struct node *node)
{
    const struct onnx_value *x = node->x;
    const bool most = strcmp(node->proto->op_type, "GlobalMaxPool") == 0;
    const int64_t pixels = x->size[2] * x->size[3];
    struct onnx_value *y = out(node, 4, (const int64_t[]){x->size[0], x->size[1], 1, 1});
    for (int64_t k = 0; k < y->count; k++) {
        double best = -INFINITY, sum = 0;
        for (int64_t i = 0; i < pixels; i++) {
            best = fmax(best, x->v[k * pixels + i]);
            sum += x->v[k * pixels + i];
        }
        y->v[k] = most ? best : sum / (double)pixels;
    }
}

/* ---- recurrent layers ---- */

/* Row `row` of weights [1][rows][columns] times a vector. */
static double product(const struct onnx_value *w, int64_t row, const double *v)
{
    double sum = 0;
    for (int64_t i = 0; i < w->size[2]; i++) sum += w->v[row * w->size[2] + i] * v[i];
    return sum;
}

static double gate(double x)
{
    return 1 / (1 + exp(-x));
}

/* Gates are i, o, f, c of an LSTM and z, r, h of a GRU; biases of the inputs come first. */
static void cell(struct node *node)
{
    const bool lstm = strcmp(node->proto->op_type, "LSTM") == 0;
    const struct onnx_value *x = node->x, *w = in(node, 1), *r = in(node, 2);
    const int64_t times = x->size[0], batch = x->size[1], width = x->size[2],
                  n = integer(node, "hidden_size", 0), gates = lstm ? 4 : 3;
    const double *b = in(node, 3)->v;
    const char *all = node->proto->output[0], *last = node->proto->n_output > 1 ? node->proto->output[1] : "";
    assert_true(w->size[1] == gates * n && r->size[1] == gates * n && r->size[2] == n && w->size[2] == width);
    if (!lstm) assert_int_equal(integer(node, "linear_before_reset", 0), 1);
    struct onnx_value *y = make(node->run, *all ? all : "(all)", 4, (const int64_t[]){times, 1, batch, n});
    struct onnx_value *h = make(node->run, *last ? last : "(last)", 3, (const int64_t[]){1, batch, n});
    double c[64] = {0}, before[64], next[4];
    assert_true(n <= 64);
    for (int64_t e = 0; e < batch; e++) {
        const int64_t length = has(node, 4) ? (int64_t)in(node, 4)->v[e] : times;
        double *state = &h->v[e * n];
        memset(c, 0, sizeof c);
        for (int64_t t = 0; t < length; t++) {
            memcpy(before, state, (size_t)n * sizeof *before);
            for (int64_t i = 0; i < n; i++) {
                double of_state[4];
                for (int64_t g = 0; g < gates; g++) {
                    next[g] = product(w, g * n + i, &x->v[(t * batch + e) * width]) + b[g * n + i];
                    of_state[g] = product(r, g * n + i, before) + b[(gates + g) * n + i];
                }
                if (lstm) {
                    c[i] = gate(next[2] + of_state[2]) * c[i] +
                           gate(next[0] + of_state[0]) * tanh(next[3] + of_state[3]);
                    state[i] = gate(next[1] + of_state[1]) * tanh(c[i]);
                } else {
                    const double z = gate(next[0] + of_state[0]),
                                 candidate = tanh(next[2] + gate(next[1] + of_state[1]) * of_state[2]);
                    state[i] = (1 - z) * candidate + z * before[i];
                }
                y->v[(t * batch + e) * n + i] = state[i];
            }
        }
    }
}

/* ---- all ---- */

static const struct {
    const char *name;
    void (*run)(struct node *node);
} operations[] = {
    {"AveragePool", pool},
    {"BatchNormalization", batch_norm},
    {"Concat", concat},
    {"Conv", conv},
    {"ConvTranspose", conv_transpose},
    {"Flatten", flatten},
    {"GRU", cell},
    {"Gather", gather},
    {"GatherND", gather_nd},
    {"Gemm", gemm},
    {"GlobalAveragePool", global_pool},
    {"GlobalMaxPool", global_pool},
    {"LSTM", cell},
    {"MatMul", matmul},
    {"MaxPool", pool},
    {"Pad", pad},
    {"Range", range},
    {"ReduceMax", reduce},
    {"ReduceMean", reduce},
    {"ReduceSum", reduce},
    {"Reshape", reshape},
    {"Resize", resize},
    {"ReverseSequence", reverse_sequence},
    {"Shape", shape},
    {"Slice", slice},
    {"Softmax", softmax},
    {"Squeeze", squeeze},
    {"Transpose", transpose},
    {"Unsqueeze", unsqueeze},
};

void onnx_run(const Onnx__GraphProto *graph, struct onnx_run *run)
{
    for (size_t i = 0; i < graph->n_initializer; i++) add_constant(run, graph->initializer[i]);
    for (size_t i = 0; i < graph->n_node; i++) {
        struct node node = {run, graph->node[i], NULL};
        void (*compute)(struct node * node) = elements;
        node.x = in(&node, 0);
        for (size_t k = 0; k < sizeof operations / sizeof operations[0]; k++)
            if (strcmp(operations[k].name, node.proto->op_type) == 0) compute = operations[k].run;
        compute(&node);
    }
}
