/* LSTM layers: the gates between the products of device/cpu/sequences/recurrent.h. */
#include "device/cpu/sequences/recurrent.h"
#include "device/cpu/vectors/math.h"

#include <string.h>

#define GATES 4

/* Operands of a row's gates, forward. */
struct forward_row {
    int64_t hidden;
    const float *sum;    /* of the gates, bias included */
    const float *before; /* the cell of the row before, or NULL */
    float *gates, *c, *h;
};

/* Units [k, k + n) of it, n <= VW: the gates and the cell. */
V_INLINE void forward_cell(const struct forward_row *row, int64_t k, int64_t n)
{
    const int64_t hidden = row->hidden;
    const float *sum = row->sum + k;
    float *gates = row->gates + k;
    const vf i = v_sigmoid(recurrent_load(sum, n)), f = v_sigmoid(recurrent_load(sum + hidden, n));
    const vf g = v_tanh(recurrent_load(sum + 2 * hidden, n)), input = v_mul(i, g);
    const vf cell = row->before ? v_fma(f, recurrent_load(row->before + k, n), input) : input;
    recurrent_store(gates, i, n);
    recurrent_store(gates + hidden, f, n);
    recurrent_store(gates + 2 * hidden, g, n);
    recurrent_store(row->c + k, cell, n);
}

/* And the output. */
V_INLINE void forward_output(const struct forward_row *row, int64_t k, int64_t n)
{
    const vf o = v_sigmoid(recurrent_load(row->sum + 3 * row->hidden + k, n));
    recurrent_store(row->gates + 3 * row->hidden + k, o, n);
    recurrent_store(row->h + k, v_mul(o, v_tanh(recurrent_load(row->c + k, n))), n);
}

/* One row of one sequence, forward: from the sums of its gates, with the bias, and the cell of the row
   before, or NULL. An output depends on its cell, which is a long chain: separate loops let the processor
   overlap the chains of several vectors. */
static void forward_row(const struct tr_op_lstm_forward *op, const float *sum, int64_t row,
                        const float *before)
{
    const int64_t hidden = op->hidden, whole = hidden / VW * VW;
    const struct forward_row r = {
        hidden, sum, before, op->gates + row * GATES * hidden, op->c + row * hidden, op->h + row * hidden};
    for (int64_t k = 0; k < whole; k += VW) forward_cell(&r, k, VW);
    if (whole < hidden) forward_cell(&r, whole, hidden - whole);
    for (int64_t k = 0; k < whole; k += VW) forward_output(&r, k, VW);
    if (whole < hidden) forward_output(&r, whole, hidden - whole);
}

/* The distance in rows between the sequences of a tile, if it is the same for all: then sums of gates are
   read in place, and the next ones are prefetched. Else 0. */
static int64_t distance_of(const struct sequences *s)
{
    const int64_t distance = s->count > 1 ? s->row[1] - s->row[0] : 1;
    for (int64_t r = 2; r < s->count; r++)
        if (s->row[r] - s->row[r - 1] != distance) return 0;
    return distance;
}

static void forward_tile(const struct recurrent *l, const struct sequences *s, float *memory)
{
    const struct tr_op_lstm_forward *op = l->op;
    const int64_t wide = GATES * op->hidden;
    float *sums = memory, *a = sums + TILE_ROWS * wide;
    const float *before[TILE_ROWS];
    const int64_t distance = distance_of(s);
    for (int64_t t = 0; t < s->length[0]; t++) {
        const int64_t count = recurrent_running(s, t);
        for (int64_t r = 0; r < count; r++) {
            const int64_t row = s->row[r] + t;
            const float *gates = op->gates + row * wide;
            if (t > 0 || op->h_before) {
                before[r] =
                    t > 0 ? op->h + (row - 1) * op->hidden : op->h_before + s->example[r] * op->hidden;
                if (distance == 0) memcpy(sums + r * wide, gates, (size_t)wide * sizeof(float));
            } else {
                for (int64_t j = 0; j < wide; j++) sums[r * wide + j] = gates[j] + l->bias[j];
            }
        }
        if (t > 0 || op->h_before) {
            const struct recurrent_product product = {
                .rows = before,
                .count = count,
                .a = a,
                .from = distance ? op->gates + (s->row[0] + t) * wide : sums,
                .from_step = distance ? distance * wide : wide,
                .to = sums,
            };
            recurrent_multiply(l, &product);
        }
        for (int64_t r = 0; r < count; r++) {
            const int64_t row = s->row[r] + t;
            forward_row(op, sums + r * wide, row,
                        t > 0          ? op->c + (row - 1) * op->hidden
                        : op->c_before ? op->c_before + s->example[r] * op->hidden
                                       : NULL);
        }
    }
}

/* One row of one sequence, backward. dh: the gradient from the next row, or NULL; dc: the cell's gradient
   of the next row on entry, of this one on return. */
static void backward_row(const struct tr_op_lstm_backward *op, const float *dh, float *dc, int64_t row,
                         bool first)
{
    const int64_t hidden = op->hidden;
    const float *gates = op->gates + row * GATES * hidden, *c = op->c + row * hidden,
                *dy = op->dy + row * hidden;
    float *dgates = op->dgates + row * GATES * hidden;
    const vf one = v_set1(1.0f);
    for (int64_t k = 0; k < hidden; k += VW) {
        const int64_t n = hidden - k;
        const vf i = recurrent_load(gates + k, n), f = recurrent_load(gates + hidden + k, n);
        const vf g = recurrent_load(gates + 2 * hidden + k, n), o = recurrent_load(gates + 3 * hidden + k, n);
        vf dout = recurrent_load(dy + k, n);
        if (dh) dout = v_add(dout, recurrent_load(dh + k, n));
        const vf tc = v_tanh(recurrent_load(c + k, n));
        const vf q = v_mul(dout, o), slope = v_fnma(tc, tc, one);
        const vf dcell =
            dh ? v_fma(q, slope,
                       v_mul(recurrent_load(dc + k, n), recurrent_load(gates + (GATES + 1) * hidden + k, n)))
               : v_mul(q, slope);
        const vf df = first ? v_zero()
                            : v_mul(v_mul(dcell, recurrent_load(c - hidden + k, n)), v_mul(f, v_sub(one, f)));
        recurrent_store(dgates + k, v_mul(v_mul(dcell, g), v_mul(i, v_sub(one, i))), n);
        recurrent_store(dgates + hidden + k, df, n);
        recurrent_store(dgates + 2 * hidden + k, v_mul(v_mul(dcell, i), v_fnma(g, g, one)), n);
        recurrent_store(dgates + 3 * hidden + k, v_mul(v_mul(dout, tc), v_mul(o, v_sub(one, o))), n);
        recurrent_store(dc + k, dcell, n);
    }
}

static void backward_tile(const struct recurrent *l, const struct sequences *s, float *memory)
{
    const struct tr_op_lstm_backward *op = l->op;
    const int64_t hidden = op->hidden, wide = GATES * hidden, distance = distance_of(s);
    float *dh = memory, *dc = dh + TILE_ROWS * hidden, *a = dc + TILE_ROWS * hidden;
    const float *after[TILE_ROWS];
    for (int64_t t = s->length[0] - 1; t >= 0; t--) {
        const bool cut = op->truncate > 0 && (t + 1) % op->truncate == 0;
        const int64_t count = recurrent_running(s, t), next = cut ? 0 : recurrent_running(s, t + 1);
        for (int64_t r = 0; r < next; r++) after[r] = op->dgates + (s->row[r] + t + 1) * wide;
        const int64_t row = s->row[0] + t;
        /* Operands of these rows' gates, except their cells, which the next rows have read. */
        const struct recurrent_soon soon[] = {
            {op->gates + row * wide, wide, distance * wide},
            {op->dgates + row * wide, wide, distance * wide},
            {t > 0 ? op->c + (row - 1) * hidden : NULL, hidden, distance * hidden},
            {op->dy + row * hidden, hidden, distance * hidden},
        };
        const struct recurrent_product product = {
            .rows = after, .count = next, .a = a, .to = dh, .soon = soon, .soons = distance ? 4 : 0};
        if (next > 0) recurrent_multiply(l, &product);
        for (int64_t r = 0; r < count; r++)
            backward_row(op, r < next ? dh + r * hidden : NULL, dc + r * hidden, s->row[r] + t, t == 0);
    }
}

tr_status CPU_KERNEL(lstm_forward)(tr_device *device, const struct tr_op_lstm_forward *a)
{
    const struct recurrent_layer layer = {device, a->examples, a->hidden, GATES, a->offset, a->w};
    return recurrent_forward(&layer, a->b, forward_tile, a);
}

tr_status CPU_KERNEL(lstm_backward)(tr_device *device, const struct tr_op_lstm_backward *a)
{
    const struct recurrent_layer layer = {device, a->examples, a->hidden, GATES, a->offset, a->w};
    return recurrent_backward(&layer, backward_tile, a);
}

tr_status CPU_KERNEL(lstm_backward_weights)(tr_device *device, const struct tr_op_lstm_backward_weights *a)
{
    const struct recurrent_layer layer = {device, a->examples, a->hidden, GATES, a->offset, NULL};
    return recurrent_weights(&layer, a->h, a->dgates, &a->cut, a->dw);
}
