/* Units of recurrent layers: a number of one row, from the operation's own outputs in the neighbouring
 * row. The gradient of a cell, which is not an output, is followed through the later rows.
 */
#include "dispute/units/numbers.h"

UNIT(lstm_forward)
{
    const bool is_gate = is(to, "gates");
    const int64_t hidden = a->hidden, columns = is_gate ? 4 * hidden : hidden;
    const int64_t r = to->at / columns, k = to->at % hidden, column = to->at % columns;
    const struct unit_example rows = example_of(a->offset, a->examples, r);
    const bool first = r == rows.begin;
    const float *gates = a->gates + 4 * r * hidden;
    if (is(to, "h")) return mul(own(gates + 3 * hidden + k), tangent(own(a->c + to->at)));
    if (is(to, "c")) {
        const struct num fresh = mul(own(gates + k), own(gates + 2 * hidden + k));
        if (first && !a->c_before) return fresh;
        const struct num before =
            first ? in(a->c_before + rows.number * hidden + k) : own(a->c + to->at - hidden);
        return fused(own(gates + hidden + k), before, fresh);
    }
    struct num sum = in(gates + column);
    for (int64_t i = 0; i < hidden && (!first || a->h_before); i++) {
        const struct num h =
            first ? in(a->h_before + rows.number * hidden + i) : own(a->h + (r - 1) * hidden + i);
        sum = fused(h, in(a->w + i * columns + column), sum);
    }
    sum = add(sum, in(a->b + column));
    return column / hidden == 2 ? tangent(sum) : sigmoid(sum);
}

/* dh and dc of a unit in a row, by dc of the next row where there is one. */
struct flow {
    struct num dh, dc, tc;
};

static struct flow lstm_flow(const struct tr_op_lstm_backward *a, int64_t r, int64_t k,
                             const struct num *next)
{
    const int64_t hidden = a->hidden;
    const float *gates = a->gates + 4 * r * hidden;
    const struct num one = constant(1);
    struct flow flow = {.dh = in(a->dy + r * hidden + k), .tc = tangent(in(a->c + r * hidden + k))};
    if (next) {
        struct num sum = constant(0);
        for (int64_t j = 0; j < 4 * hidden; j++)
            sum = fused(own(a->dgates + 4 * (r + 1) * hidden + j), in(a->w + k * 4 * hidden + j), sum);
        flow.dh = add(flow.dh, sum);
    }
    const struct num q = mul(flow.dh, in(gates + 3 * hidden + k));
    const struct num slope = fused(negated(flow.tc), flow.tc, one);
    flow.dc = next ? fused(q, slope, mul(*next, in(gates + 5 * hidden + k))) : mul(q, slope);
    return flow;
}

UNIT(lstm_backward)
{
    const int64_t hidden = a->hidden, r = to->at / (4 * hidden), k = to->at % hidden;
    const int64_t gate = to->at / hidden % 4;
    const struct unit_example rows = example_of(a->offset, a->examples, r);
    const float *gates = a->gates + 4 * r * hidden;
    int64_t last = r;
    while (last + 1 < rows.end && !(a->truncate > 0 && (last - rows.begin + 1) % a->truncate == 0)) last++;
    if (gate == 1 && r == rows.begin) return constant(0);
    struct flow flow = lstm_flow(a, last, k, NULL);
    while (last > r) {
        const struct num next = flow.dc;
        flow = lstm_flow(a, --last, k, &next);
    }
    const struct num i = in(gates + k), f = in(gates + hidden + k), g = in(gates + 2 * hidden + k);
    const struct num o = in(gates + 3 * hidden + k), one = constant(1);
    switch (gate) {
    case 0:
        return mul(mul(flow.dc, g), mul(i, sub(one, i)));
    case 1:
        return mul(mul(flow.dc, in(a->c + (r - 1) * hidden + k)), mul(f, sub(one, f)));
    case 2:
        return mul(mul(flow.dc, i), fused(negated(g), g, one));
    default:
        return mul(mul(flow.dh, flow.tc), mul(o, sub(one, o)));
    }
}

/* Shared by the gradients of recurrent weights. */
struct weights {
    const struct tr_cut *cut;
    const int32_t *offset;
    int64_t hidden, columns;
    const float *h, *dgates;
};

static struct num weights_leaf(const void *arguments, int32_t microbatch, int64_t at)
{
    const struct weights *a = arguments;
    struct num sum = constant(0);
    for (int64_t e = cut_begin(a->cut, microbatch); e < cut_end(a->cut, microbatch); e++) {
        const int64_t begin = whole(a->offset + e), end = whole(a->offset + e + 1);
        for (int64_t r = begin + 1; r < end; r++)
            sum = fused(in(a->h + (r - 1) * a->hidden + at / a->columns),
                        in(a->dgates + r * a->columns + at % a->columns), sum);
    }
    return sum;
}

UNIT(lstm_backward_weights)
{
    const struct weights weights = {&a->cut, a->offset, a->hidden, 4 * a->hidden, a->h, a->dgates};
    return over_cut(&a->cut, to->node, weights_leaf, &weights, to->at);
}

UNIT(gru_forward)
{
    const bool is_gate = is(to, "gates");
    const int64_t hidden = a->hidden, columns = is_gate ? 3 * hidden : hidden;
    const int64_t r = to->at / columns, k = to->at % hidden, gate = is_gate ? to->at % columns / hidden : 2;
    const struct unit_example rows = example_of(a->offset, a->examples, r);
    const bool first = r == rows.begin;
    const float *gates = a->gates + 3 * r * hidden;
    if (is(to, "h")) {
        const struct num n = own(gates + 2 * hidden + k);
        const struct num before = first ? constant(0) : own(a->h + to->at - hidden);
        return fused(own(gates + hidden + k), sub(before, n), n);
    }
    const int64_t column = gate * hidden + k;
    struct num u = constant(0);
    if (is_gate && gate == 2) {
        u = own(a->inner + r * hidden + k);
    } else {
        for (int64_t i = 0; i < hidden && !first; i++)
            u = fused(own(a->h + (r - 1) * hidden + i), in(a->w + i * 3 * hidden + column), u);
        u = add(u, in(a->b_hidden + column));
    }
    if (!is_gate) return u;
    const struct num sum = add(in(gates + column), in(a->b + column));
    return gate == 2 ? tangent(fused(own(gates + k), u, sum)) : sigmoid(add(sum, u));
}

/* dh of a unit in a row, by that of the next row where there is one. */
static struct num gru_flow(const struct tr_op_gru_backward *a, int64_t r, int64_t k, const struct num *next)
{
    const int64_t hidden = a->hidden;
    const struct num dy = in(a->dy + r * hidden + k);
    struct num sum = constant(0);
    if (!next) return dy;
    for (int64_t j = 0; j < 3 * hidden; j++)
        sum = fused(own(a->dhidden + 3 * (r + 1) * hidden + j), in(a->w + k * 3 * hidden + j), sum);
    return fused(*next, in(a->gates + 3 * r * hidden + 4 * hidden + k), add(dy, sum));
}

UNIT(gru_backward)
{
    const int64_t hidden = a->hidden, r = to->at / (3 * hidden), k = to->at % hidden;
    const int64_t gate = to->at / hidden % 3;
    const struct unit_example rows = example_of(a->offset, a->examples, r);
    const float *gates = a->gates + 3 * r * hidden;
    struct num dh = gru_flow(a, rows.end - 1, k, NULL);
    for (int64_t row = rows.end - 2; row >= r; row--) {
        const struct num next = dh;
        dh = gru_flow(a, row, k, &next);
    }
    const struct num reset = in(gates + k), z = in(gates + hidden + k), n = in(gates + 2 * hidden + k);
    const struct num one = constant(1);
    if (gate == 1) {
        const struct num before = r == rows.begin ? constant(0) : in(a->h + (r - 1) * hidden + k);
        return mul(mul(dh, sub(before, n)), mul(z, sub(one, z)));
    }
    const struct num dn = mul(mul(dh, sub(one, z)), fused(negated(n), n, one));
    if (gate == 0) return mul(mul(dn, in(a->inner + r * hidden + k)), mul(reset, sub(one, reset)));
    return is(to, "dhidden") ? mul(dn, reset) : dn;
}

UNIT(gru_backward_weights)
{
    const struct weights weights = {&a->cut, a->offset, a->hidden, 3 * a->hidden, a->h, a->dhidden};
    return over_cut(&a->cut, to->node, weights_leaf, &weights, to->at);
}

const struct unit_entry unit_recurrent[] = {
    UNIT_ENTRY(lstm_forward) UNIT_ENTRY(lstm_backward) UNIT_ENTRY(lstm_backward_weights)
        UNIT_ENTRY(gru_forward) UNIT_ENTRY(gru_backward) UNIT_ENTRY(gru_backward_weights) UNIT_END};
