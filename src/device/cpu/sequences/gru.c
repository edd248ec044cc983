/* GRU layers: the gates between the products of device/cpu/sequences/recurrent.h. */
#include "device/cpu/sequences/recurrent.h"
#include "device/cpu/vectors/math.h"

#define GATES 3

/* A row's gates, forward: u has the products of the row before, with the hidden bias. */
struct forward_row {
    int64_t hidden;
    const float *b, *u;
    float *gates, *inner, *h;
    bool first;
};

/* Units [k, k + n) of gate q, n <= VW: the part from the input. */
V_INLINE vf input_of(const struct forward_row *row, int q, int64_t k, int64_t n)
{
    const int64_t at = q * row->hidden + k;
    return v_add(recurrent_load(row->gates + at, n), recurrent_load(row->b + at, n));
}

/* Those of the first two gates. */
V_INLINE void forward_gates(const struct forward_row *row, int64_t k, int64_t n)
{
    const int64_t hidden = row->hidden;
    const vf r = v_sigmoid(v_add(input_of(row, 0, k, n), recurrent_load(row->u + k, n)));
    const vf z = v_sigmoid(v_add(input_of(row, 1, k, n), recurrent_load(row->u + hidden + k, n)));
    recurrent_store(row->gates + k, r, n);
    recurrent_store(row->gates + hidden + k, z, n);
}

/* Then the third gate and the output. */
V_INLINE void forward_output(const struct forward_row *row, int64_t k, int64_t n)
{
    const int64_t hidden = row->hidden;
    const vf r = recurrent_load(row->gates + k, n), z = recurrent_load(row->gates + hidden + k, n);
    const vf added = recurrent_load(row->u + 2 * hidden + k, n);
    const vf fresh = v_tanh(v_fma(r, added, input_of(row, 2, k, n)));
    const vf before = row->first ? v_zero() : recurrent_load(row->h - hidden + k, n);
    recurrent_store(row->gates + 2 * hidden + k, fresh, n);
    recurrent_store(row->inner + k, added, n);
    recurrent_store(row->h + k, v_fma(z, v_sub(before, fresh), fresh), n);
}

/* One row of one sequence, forward. Separate loops let the processor overlap the chains of several
   vectors. */
static void forward_row(const struct tr_op_gru_forward *op, const float *u, int64_t row, bool first)
{
    const int64_t hidden = op->hidden, whole = hidden / VW * VW;
    const struct forward_row r = {.hidden = hidden,
                                  .b = op->b,
                                  .u = u,
                                  .gates = op->gates + row * GATES * hidden,
                                  .inner = op->inner + row * hidden,
                                  .h = op->h + row * hidden,
                                  .first = first};
    for (int64_t k = 0; k < whole; k += VW) forward_gates(&r, k, VW);
    if (whole < hidden) forward_gates(&r, whole, hidden - whole);
    for (int64_t k = 0; k < whole; k += VW) forward_output(&r, k, VW);
    if (whole < hidden) forward_output(&r, whole, hidden - whole);
}

static void forward_tile(const struct recurrent *l, const struct sequences *s, float *memory)
{
    const struct tr_op_gru_forward *op = l->op;
    const int64_t hidden = op->hidden;
    float *u = memory, *a = u + TILE_ROWS * GATES * hidden;
    const float *before[TILE_ROWS];
    for (int64_t t = 0; t < s->length[0]; t++) {
        const int64_t count = recurrent_running(s, t);
        for (int64_t r = 0; r < count; r++) {
            if (t > 0) before[r] = op->h + (s->row[r] + t - 1) * hidden;
            /* +0 + bias, as the product gives it from the second row on. */
            for (int64_t j = 0; t == 0 && j < GATES * hidden; j++)
                u[r * GATES * hidden + j] = 0.0f + l->bias[j];
        }
        const struct recurrent_product product = {.rows = before, .count = count, .a = a, .to = u};
        if (t > 0) recurrent_multiply(l, &product);
        for (int64_t r = 0; r < count; r++) forward_row(op, u + r * GATES * hidden, s->row[r] + t, t == 0);
    }
}

/* One row of one sequence, backward. chain: the gradient from the next row through the weights, or NULL;
   dh: of the next row on entry, of this one on return. */
static void backward_row(const struct tr_op_gru_backward *op, const float *chain, float *dh, int64_t row,
                         bool first)
{
    const int64_t hidden = op->hidden;
    const float *gates = op->gates + row * GATES * hidden, *h = op->h + row * hidden;
    float *dgates = op->dgates + row * GATES * hidden, *dhidden = op->dhidden + row * GATES * hidden;
    const vf one = v_set1(1.0f);
    for (int64_t k = 0; k < hidden; k += VW) {
        const int64_t n = hidden - k;
        const vf r = recurrent_load(gates + k, n), z = recurrent_load(gates + hidden + k, n);
        const vf fresh = recurrent_load(gates + 2 * hidden + k, n);
        const vf before = first ? v_zero() : recurrent_load(h - hidden + k, n);
        vf d = recurrent_load(op->dy + row * hidden + k, n);
        if (chain)
            d = v_fma(recurrent_load(dh + k, n), recurrent_load(gates + (GATES + 1) * hidden + k, n),
                      v_add(d, recurrent_load(chain + k, n)));
        const vf dn = v_mul(v_mul(d, v_sub(one, z)), v_fnma(fresh, fresh, one));
        const vf dz = v_mul(v_mul(d, v_sub(before, fresh)), v_mul(z, v_sub(one, z)));
        const vf inner = recurrent_load(op->inner + row * hidden + k, n);
        const vf dr = v_mul(v_mul(dn, inner), v_mul(r, v_sub(one, r)));
        recurrent_store(dgates + k, dr, n);
        recurrent_store(dhidden + k, dr, n);
        recurrent_store(dgates + hidden + k, dz, n);
        recurrent_store(dhidden + hidden + k, dz, n);
        recurrent_store(dgates + 2 * hidden + k, dn, n);
        recurrent_store(dhidden + 2 * hidden + k, v_mul(dn, r), n);
        recurrent_store(dh + k, d, n);
    }
}

static void backward_tile(const struct recurrent *l, const struct sequences *s, float *memory)
{
    const struct tr_op_gru_backward *op = l->op;
    const int64_t hidden = op->hidden;
    float *chain = memory, *dh = chain + TILE_ROWS * hidden, *a = dh + TILE_ROWS * hidden;
    const float *after[TILE_ROWS];
    for (int64_t t = s->length[0] - 1; t >= 0; t--) {
        const int64_t count = recurrent_running(s, t), next = recurrent_running(s, t + 1);
        for (int64_t r = 0; r < next; r++) after[r] = op->dhidden + (s->row[r] + t + 1) * GATES * hidden;
        const struct recurrent_product product = {.rows = after, .count = next, .a = a, .to = chain};
        if (next > 0) recurrent_multiply(l, &product);
        for (int64_t r = 0; r < count; r++)
            backward_row(op, r < next ? chain + r * hidden : NULL, dh + r * hidden, s->row[r] + t, t == 0);
    }
}

tr_status CPU_KERNEL(gru_forward)(tr_device *device, const struct tr_op_gru_forward *a)
{
    const struct recurrent_layer layer = {device, a->examples, a->hidden, GATES, a->offset, a->w};
    return recurrent_forward(&layer, a->b_hidden, forward_tile, a);
}

tr_status CPU_KERNEL(gru_backward)(tr_device *device, const struct tr_op_gru_backward *a)
{
    const struct recurrent_layer layer = {device, a->examples, a->hidden, GATES, a->offset, a->w};
    return recurrent_backward(&layer, backward_tile, a);
}

tr_status CPU_KERNEL(gru_backward_weights)(tr_device *device, const struct tr_op_gru_backward_weights *a)
{
    const struct recurrent_layer layer = {device, a->examples, a->hidden, GATES, a->offset, NULL};
    return recurrent_weights(&layer, a->h, a->dhidden, &a->cut, a->dw);
}
