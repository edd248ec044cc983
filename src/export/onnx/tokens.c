/* Operations of ONNX for tokens that see each other: places, attention, means over them, scores of the
 * vocabulary. Sequences are [time, batch, width]. */
#include "export/onnx/graph.h"

#include "device/rotary.h"

#include <math.h>
#include <stdio.h>

static struct tr_onnx_name unsqueeze(struct tr_onnx_graph *graph, const char *x, int count,
                                     const int64_t *axes)
{
    struct tr_onnx_name axis = tr_onnx_local_integers(graph, "axes", count, axes);
    return tr_onnx_emit(graph, "Unsqueeze", 2, x, axis.text);
}

static struct tr_onnx_name reshape(struct tr_onnx_graph *graph, const char *x, int rank, const int64_t *size)
{
    struct tr_onnx_name shape = tr_onnx_local_integers(graph, "shape", rank, size);
    return tr_onnx_emit(graph, "Reshape", 2, x, shape.text);
}

static struct tr_onnx_name transpose(struct tr_onnx_graph *graph, const char *x, int rank,
                                     const int64_t *order)
{
    struct tr_onnx_name y = tr_onnx_emit(graph, "Transpose", 1, x);
    tr_onnx_attribute_integers(graph->onnx, "perm", rank, order);
    return y;
}

static struct tr_onnx_name concat(struct tr_onnx_graph *graph, const char *a, const char *b, int64_t axis)
{
    struct tr_onnx_name y = tr_onnx_emit(graph, "Concat", 2, a, b);
    tr_onnx_attribute_integer(graph->onnx, "axis", axis);
    return y;
}

/* ---- places ---- */

const char *tr_onnx_times(struct tr_onnx_graph *graph, const char *x)
{
    if (graph->times.text[0]) return graph->times.text;
    struct tr_onnx_name shape = tr_onnx_emit(graph, "Shape", 1, x);
    struct tr_onnx_name none = tr_onnx_local_integer(graph, "zero", 0),
                        one = tr_onnx_local_integer(graph, "one", 1);
    struct tr_onnx_name count = tr_onnx_emit(graph, "Gather", 2, shape.text, none.text);
    graph->times = tr_onnx_emit(graph, "Range", 3, none.text, count.text, one.text);
    return graph->times.text;
}

const char *tr_onnx_inside(struct tr_onnx_graph *graph, const char *x)
{
    static const int64_t around[] = {1, 2}, behind[] = {0, 2};
    if (!graph->trace->model->input.sequence) return NULL;
    if (graph->inside.text[0]) return graph->inside.text;
    struct tr_onnx_name times = unsqueeze(graph, tr_onnx_times(graph, x), 2, around);
    struct tr_onnx_name lengths = unsqueeze(graph, "lengths", 2, behind);
    graph->inside = tr_onnx_emit(graph, "Less", 2, times.text, lengths.text);
    return graph->inside.text;
}

struct tr_onnx_name tr_onnx_mask(struct tr_onnx_graph *graph, const char *x, float other)
{
    const char *inside = tr_onnx_inside(graph, x);
    struct tr_onnx_name same;
    snprintf(same.text, sizeof same.text, "%s", x);
    if (!inside) return same;
    struct tr_onnx_name number = tr_onnx_local_number(graph, "outside", other);
    return tr_onnx_emit(graph, "Where", 3, inside, x, number.text);
}

/* Places after the table have its last vector. */
tr_status tr_onnx_translate_position(struct tr_onnx_graph *graph, const struct tr_traced *traced)
{
    static const int64_t batch = 1;
    const struct tr_op_position_forward *op = &traced->as.position_forward;
    const int64_t size[] = {op->length, op->width};
    struct tr_onnx_value y = *tr_onnx_value_of(graph, op->x);
    struct tr_onnx_name table = tr_onnx_parameter(graph, op->table, 2, size);
    struct tr_onnx_name last = tr_onnx_local_integer(graph, "last", op->length - 1);
    const char *times = tr_onnx_times(graph, y.name.text);
    struct tr_onnx_name place = tr_onnx_emit(graph, "Min", 2, times, last.text);
    struct tr_onnx_name vectors = tr_onnx_emit(graph, "Gather", 2, table.text, place.text);
    struct tr_onnx_name all = unsqueeze(graph, vectors.text, 1, &batch);
    y.ending.text[0] = 0;
    y.name = tr_onnx_emit(graph, "Add", 2, y.name.text, all.text);
    tr_onnx_define(graph, op->x == op->y ? op->x : op->y, &y);
    return TR_OK;
}

/* The angles [time, 1, 1, half] by which pairs are rotated. */
static struct tr_onnx_name angles(struct tr_onnx_graph *graph, const struct tr_op_rotary *op, const char *x)
{
    static const int64_t behind[] = {1, 2, 3};
    const int64_t half = op->size / 2;
    struct tr_onnx_name frequency = tr_onnx_local(graph, "frequency");
    float *data = tr_onnx_floats(graph->onnx, frequency.text, 1, &half);
    for (int64_t k = 0; data && k < half; k++) data[k] = (float)tr_rotary_turn(op, k);
    struct tr_onnx_name times = unsqueeze(graph, tr_onnx_times(graph, x), 3, behind);
    struct tr_onnx_name place = tr_onnx_emit(graph, "Cast", 1, times.text);
    tr_onnx_attribute_integer(graph->onnx, "to", TR_ONNX_FLOAT);
    return tr_onnx_emit(graph, "Mul", 2, place.text, frequency.text);
}

/* One of the two numbers of each pair, [time, batch, heads, half], of vectors [time, batch, heads, size]. */
static struct tr_onnx_name half_of(struct tr_onnx_graph *graph, const struct tr_op_rotary *op, const char *x,
                                   int64_t which)
{
    const int64_t half = op->size / 2, pairs[] = {0, 0, op->heads, half, 2},
                  single[] = {0, 0, op->heads, half};
    if (!op->pairs) return tr_onnx_slice(graph, x, 3, which * half, (which + 1) * half);
    struct tr_onnx_name parts = reshape(graph, x, 5, pairs);
    struct tr_onnx_name one = tr_onnx_slice(graph, parts.text, 4, which, which + 1);
    return reshape(graph, one.text, 4, single);
}

/* Joins the halves to vectors again. */
static struct tr_onnx_name halves(struct tr_onnx_graph *graph, const struct tr_op_rotary *op,
                                  const char *first, const char *second)
{
    static const int64_t behind = 4;
    const int64_t vectors[] = {0, 0, op->heads, op->size};
    if (!op->pairs) return concat(graph, first, second, 3);
    struct tr_onnx_name a = unsqueeze(graph, first, 1, &behind), b = unsqueeze(graph, second, 1, &behind);
    struct tr_onnx_name pairs = concat(graph, a.text, b.text, 4);
    return reshape(graph, pairs.text, 4, vectors);
}

/* In place: later operations see the rotated vectors. */
tr_status tr_onnx_translate_rotary(struct tr_onnx_graph *graph, const struct tr_traced *traced)
{
    const struct tr_op_rotary *op = &traced->as.rotary;
    const int64_t vectors[] = {0, 0, op->step / op->size, op->size};
    const int64_t rows[] = {0, 0, op->step};
    struct tr_onnx_value y = *tr_onnx_value_of(graph, op->x);
    struct tr_onnx_name angle = angles(graph, op, y.name.text);
    struct tr_onnx_name c = tr_onnx_emit(graph, "Cos", 1, angle.text),
                        s = tr_onnx_emit(graph, "Sin", 1, angle.text);
    struct tr_onnx_name all = reshape(graph, y.name.text, 4, vectors);
    struct tr_onnx_name turning = tr_onnx_slice(graph, all.text, 2, 0, op->heads),
                        staying = tr_onnx_slice(graph, all.text, 2, op->heads, vectors[2]);
    struct tr_onnx_name a = half_of(graph, op, turning.text, 0), b = half_of(graph, op, turning.text, 1);
    struct tr_onnx_name ca = tr_onnx_emit(graph, "Mul", 2, c.text, a.text),
                        sb = tr_onnx_emit(graph, "Mul", 2, s.text, b.text),
                        cb = tr_onnx_emit(graph, "Mul", 2, c.text, b.text),
                        sa = tr_onnx_emit(graph, "Mul", 2, s.text, a.text);
    struct tr_onnx_name first = tr_onnx_emit(graph, "Sub", 2, ca.text, sb.text),
                        second = tr_onnx_emit(graph, "Add", 2, cb.text, sa.text);
    struct tr_onnx_name turned = halves(graph, op, first.text, second.text);
    struct tr_onnx_name joined = concat(graph, turned.text, staying.text, 2);
    y.name = reshape(graph, joined.text, 3, rows);
    tr_onnx_define(graph, op->x, &y);
    return TR_OK;
}

/* ---- attention ---- */

/* Queries, keys or values [batch, heads, time, size] from [time, batch, heads + 2 * kv_heads, size]. Each
   head of keys is repeated for the heads of queries that share it. */
static struct tr_onnx_name group(struct tr_onnx_graph *graph, const struct tr_attention *at, const char *x,
                                 int64_t which)
{
    static const int64_t heads_second[] = {1, 2, 0, 3};
    const int64_t begin = which == 0 ? 0 : at->heads + (which - 1) * at->kv_heads;
    struct tr_onnx_name part =
        tr_onnx_slice(graph, x, 2, begin, begin + (which == 0 ? at->heads : at->kv_heads));
    struct tr_onnx_name y = transpose(graph, part.text, 4, heads_second);
    if (which == 0) return y;
    struct tr_onnx_name places = tr_onnx_local(graph, "shared");
    int64_t *place = tr_onnx_integers(graph->onnx, places.text, at->heads, NULL);
    for (int64_t h = 0; place && h < at->heads; h++) place[h] = h / (at->heads / at->kv_heads);
    y = tr_onnx_emit(graph, "Gather", 2, y.text, places.text);
    tr_onnx_attribute_integer(graph->onnx, "axis", 1);
    return y;
}

/* Queries, keys or values [batch, heads, time, size] from [3, batch, heads, time, size]. */
static struct tr_onnx_name third(struct tr_onnx_graph *graph, const char *projected, int64_t which)
{
    static const char *const names[] = {"queries", "keys", "values"};
    struct tr_onnx_name number = tr_onnx_local_integer(graph, names[which], which);
    struct tr_onnx_name y = tr_onnx_emit(graph, "Gather", 2, projected, number.text);
    tr_onnx_attribute_integer(graph->onnx, "axis", 0);
    return y;
}

/* Which keys a query sees by its place: [queries, keys]. */
static struct tr_onnx_name in_sight(struct tr_onnx_graph *graph, const struct tr_attention *at, const char *x)
{
    static const int64_t first = 0, second = 1;
    const char *times = tr_onnx_times(graph, x);
    struct tr_onnx_name keys = unsqueeze(graph, times, 1, &first),
                        queries = unsqueeze(graph, times, 1, &second);
    struct tr_onnx_name seen = {""};
    if (at->causal) seen = tr_onnx_emit(graph, "LessOrEqual", 2, keys.text, queries.text);
    if (at->window == 0) return seen;
    struct tr_onnx_name window = tr_onnx_local_integer(graph, "window", at->window);
    struct tr_onnx_name reach = tr_onnx_emit(graph, "Add", 2, keys.text, window.text);
    struct tr_onnx_name near = tr_onnx_emit(graph, "Less", 2, queries.text, reach.text);
    if (!at->causal) {
        struct tr_onnx_name end = tr_onnx_emit(graph, "Add", 2, queries.text, window.text);
        seen = tr_onnx_emit(graph, "Less", 2, keys.text, end.text);
    }
    return tr_onnx_emit(graph, "And", 2, seen.text, near.text);
}

/* Scores [batch, heads, queries, keys] of keys that a query does not see become -infinite. A causal query
   of an example never sees tokens after the example's end. A query after the end of its example sees all
   keys within its window, as otherwise it might see none. */
static struct tr_onnx_name hide(struct tr_onnx_graph *graph, const struct tr_attention *at, const char *x,
                                const char *scores)
{
    static const int64_t batch_first[] = {1, 2, 0}, heads = 1;
    struct tr_onnx_name seen, same;
    const char *inside = at->causal ? NULL : tr_onnx_inside(graph, x);
    snprintf(same.text, sizeof same.text, "%s", scores);
    if (!at->causal && !inside && at->window == 0) return same;
    if (inside) {
        struct tr_onnx_name keys = transpose(graph, inside, 3, batch_first); /* [batch, 1, keys] */
        seen = unsqueeze(graph, keys.text, 1, &heads);
        if (at->window > 0) {
            struct tr_onnx_name near = in_sight(graph, at, x);
            static const int64_t last = 3;
            struct tr_onnx_name queries = unsqueeze(graph, keys.text, 1, &last);
            struct tr_onnx_name beyond = tr_onnx_emit(graph, "Not", 1, queries.text);
            struct tr_onnx_name any = tr_onnx_emit(graph, "Or", 2, seen.text, beyond.text);
            seen = tr_onnx_emit(graph, "And", 2, any.text, near.text);
        }
    } else {
        seen = in_sight(graph, at, x);
    }
    struct tr_onnx_name never = tr_onnx_local_number(graph, "hidden", -INFINITY);
    return tr_onnx_emit(graph, "Where", 3, seen.text, scores, never.text);
}

tr_status tr_onnx_translate_attention(struct tr_onnx_graph *graph, const struct tr_traced *traced)
{
    static const int64_t thirds_first[] = {2, 1, 3, 0, 4}, keys_last[] = {0, 1, 3, 2},
                         time_first[] = {2, 0, 1, 3};
    const struct tr_op_attention_forward *op = &traced->as.attention_forward;
    const int64_t heads = op->at.heads, size = op->at.size, width = heads * size;
    const int64_t thirds[] = {0, 0, 3, heads, size}, rows[] = {0, 0, width};
    const int64_t groups[] = {0, 0, heads + 2 * op->at.kv_heads, size};
    const char *x = tr_onnx_value_of(graph, op->at.q)->name.text;
    struct tr_onnx_name q, k, v;
    if (op->at.kv_heads == heads) {
        struct tr_onnx_name parts = reshape(graph, x, 5, thirds);
        struct tr_onnx_name projected = transpose(graph, parts.text, 5, thirds_first);
        q = third(graph, projected.text, 0);
        k = third(graph, projected.text, 1);
        v = third(graph, projected.text, 2);
    } else {
        struct tr_onnx_name parts = reshape(graph, x, 4, groups);
        q = group(graph, &op->at, parts.text, 0);
        k = group(graph, &op->at, parts.text, 1);
        v = group(graph, &op->at, parts.text, 2);
    }
    struct tr_onnx_name across = transpose(graph, k.text, 4, keys_last);
    struct tr_onnx_name products = tr_onnx_emit(graph, "MatMul", 2, q.text, across.text);
    struct tr_onnx_name factor = tr_onnx_local_number(graph, "factor", op->at.scale);
    struct tr_onnx_name scores = tr_onnx_emit(graph, "Mul", 2, products.text, factor.text);
    struct tr_onnx_name seen = hide(graph, &op->at, x, scores.text);
    struct tr_onnx_name weights = tr_onnx_emit(graph, "Softmax", 1, seen.text);
    tr_onnx_attribute_integer(graph->onnx, "axis", -1);
    struct tr_onnx_name sums = tr_onnx_emit(graph, "MatMul", 2, weights.text, v.text);
    struct tr_onnx_name turned = transpose(graph, sums.text, 4, time_first);
    struct tr_onnx_value y = {.form = TR_ONNX_SEQUENCE, .width = width};
    y.name = reshape(graph, turned.text, 3, rows);
    tr_onnx_define(graph, op->y, &y);
    return TR_OK;
}

/* ---- all tokens of an example, all tokens of the vocabulary ---- */

static struct tr_onnx_name mean_over(struct tr_onnx_graph *graph, const char *x)
{
    static const int64_t time = 0, columns = 1;
    if (!graph->trace->model->input.sequence) {
        struct tr_onnx_name mean = tr_onnx_emit(graph, "ReduceMean", 1, x);
        tr_onnx_attribute_integers(graph->onnx, "axes", 1, &time);
        tr_onnx_attribute_integer(graph->onnx, "keepdims", 0);
        return mean;
    }
    struct tr_onnx_name inside = tr_onnx_mask(graph, x, 0);
    struct tr_onnx_name axes = tr_onnx_local_integers(graph, "time", 1, &time);
    struct tr_onnx_name sum = tr_onnx_emit(graph, "ReduceSum", 2, inside.text, axes.text);
    tr_onnx_attribute_integer(graph->onnx, "keepdims", 0);
    struct tr_onnx_name count = tr_onnx_emit(graph, "Cast", 1, "lengths");
    tr_onnx_attribute_integer(graph->onnx, "to", TR_ONNX_FLOAT);
    struct tr_onnx_name each = unsqueeze(graph, count.text, 1, &columns);
    return tr_onnx_emit(graph, "Div", 2, sum.text, each.text);
}

static struct tr_onnx_name most_of(struct tr_onnx_graph *graph, const char *x)
{
    static const int64_t time = 0;
    struct tr_onnx_name inside = tr_onnx_mask(graph, x, -INFINITY);
    struct tr_onnx_name most = tr_onnx_emit(graph, "ReduceMax", 1, inside.text);
    tr_onnx_attribute_integers(graph->onnx, "axes", 1, &time);
    tr_onnx_attribute_integer(graph->onnx, "keepdims", 0);
    return most;
}

tr_status tr_onnx_translate_pool_tokens(struct tr_onnx_graph *graph, const struct tr_traced *traced)
{
    const struct tr_op_pool_rows_forward *op = &traced->as.pool_rows_forward;
    const char *x = tr_onnx_value_of(graph, op->x)->name.text;
    struct tr_onnx_value y = {.form = TR_ONNX_ROWS, .width = op->width};
    y.name = op->kind == TR_POOL_MAX ? most_of(graph, x) : mean_over(graph, x);
    tr_onnx_define(graph, op->y, &y);
    return TR_OK;
}

/* The table is that of the embedding, which has been added. */
tr_status tr_onnx_translate_unembedding(struct tr_onnx_graph *graph, const struct tr_traced *traced)
{
    static const int64_t across[] = {1, 0};
    const struct tr_op_dense_backward_data *op = &traced->as.dense_backward_data;
    const struct tr_onnx_value *x = tr_onnx_value_of(graph, op->dy);
    struct tr_onnx_name table = transpose(graph, tr_onnx_parameter_name(graph, op->w), 2, across);
    struct tr_onnx_value y = {.form = x->form, .width = op->in};
    y.name = tr_onnx_emit(graph, "MatMul", 2, x->name.text, table.text);
    tr_onnx_define(graph, op->dx, &y);
    return TR_OK;
}
