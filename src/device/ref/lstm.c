/* The long short-term memory layer over ragged sequences. */
#include "device/ref/loops/chain.h"
#include "device/ref/loops/recurrent.h"
#include "device/ref/ref.h"

#include "base/alloc.h"
#include "base/numbers/mathf.h"

#include <math.h>
#include <string.h>

/* One row: computes the gates from their sums, then cell and output. Previous values are NULL at the first
   row of an example. */
static void forward_row(const struct tr_op_lstm_forward *a, float *gates, const float *c_before,
                        const float *h_before, float *c, float *h)
{
    int64_t hidden = a->hidden;
    if (h_before) ref_chain_rows(hidden, 4 * hidden, h_before, a->w, gates);
    for (int64_t j = 0; j < 4 * hidden; j++) {
        float sum = gates[j] + a->b[j];
        gates[j] = j / hidden == 2 ? tr_tanhf(sum) : tr_sigmoidf(sum);
    }
    for (int64_t k = 0; k < hidden; k++) {
        float i = gates[k], f = gates[hidden + k], g = gates[2 * hidden + k], o = gates[3 * hidden + k];
        c[k] = c_before ? fmaf(f, c_before[k], i * g) : i * g;
        h[k] = o * tr_tanhf(c[k]);
    }
}

tr_status ref_lstm_forward(tr_device *device, const struct tr_op_lstm_forward *a)
{
    (void)device;
    int64_t hidden = a->hidden;
    for (int64_t e = 0; e < a->examples; e++) {
        for (int64_t r = a->offset[e]; r < a->offset[e + 1]; r++) {
            bool first = r == a->offset[e];
            float *c = a->c + r * hidden, *h = a->h + r * hidden;
            const float *c_before = !first ? c - hidden : a->c_before ? a->c_before + e * hidden : NULL;
            const float *h_before = !first ? h - hidden : a->h_before ? a->h_before + e * hidden : NULL;
            forward_row(a, a->gates + 4 * r * hidden, c_before, h_before, c, h);
        }
    }
    return TR_OK;
}

/* Gradients carried from row to row, backwards in time; working memory, [hidden] each. */
struct flow {
    float *dh; /* the part of dh that comes from the next row */
    float *dc; /* dc of the next row, before it passes the forget gate */
};

/* dgates of row r. `next`: a gradient comes from row r + 1, in `flow`. */
static void backward_row(const struct tr_op_lstm_backward *a, int64_t r, bool first, bool next,
                         const struct flow *flow)
{
    int64_t hidden = a->hidden;
    const float *gates = a->gates + 4 * r * hidden, *c = a->c + r * hidden, *dy = a->dy + r * hidden;
    float *dgates = a->dgates + 4 * r * hidden;
    for (int64_t k = 0; k < hidden; k++) {
        float i = gates[k], f = gates[hidden + k], g = gates[2 * hidden + k], o = gates[3 * hidden + k];
        float dh = next ? dy[k] + flow->dh[k] : dy[k];
        float tc = tr_tanhf(c[k]);
        float q = dh * o, slope = fmaf(-tc, tc, 1);
        float f_next = next ? gates[5 * hidden + k] : 0;
        float dc = next ? fmaf(q, slope, flow->dc[k] * f_next) : q * slope;
        dgates[k] = (dc * g) * (i * (1 - i));
        dgates[hidden + k] = first ? 0 : (dc * c[k - hidden]) * (f * (1 - f));
        dgates[2 * hidden + k] = (dc * i) * fmaf(-g, g, 1);
        dgates[3 * hidden + k] = (dh * tc) * (o * (1 - o));
        flow->dc[k] = dc;
    }
}

tr_status ref_lstm_backward(tr_device *device, const struct tr_op_lstm_backward *a)
{
    (void)device;
    int64_t hidden = a->hidden;
    float *transposed = ref_transposed(1, hidden, 4 * hidden, a->w);
    float *memory = tr_alloc(2 * (size_t)hidden, sizeof *memory);
    tr_status status = transposed && memory ? TR_OK : TR_ENOMEM;
    if (status != TR_OK) goto out;
    struct flow flow = {memory, memory + hidden};
    for (int64_t e = 0; e < a->examples; e++) {
        int64_t begin = a->offset[e], end = a->offset[e + 1];
        for (int64_t r = end - 1; r >= begin; r--) {
            bool cut = a->truncate > 0 && (r - begin + 1) % a->truncate == 0;
            bool next = r + 1 < end && !cut;
            if (next) {
                memset(flow.dh, 0, (size_t)hidden * sizeof *flow.dh);
                ref_chain_rows(4 * hidden, hidden, a->dgates + 4 * (r + 1) * hidden, transposed, flow.dh);
            }
            backward_row(a, r, r == begin, next, &flow);
        }
    }
out:
    tr_free(memory);
    tr_free(transposed);
    return status;
}

tr_status ref_lstm_backward_weights(tr_device *device, const struct tr_op_lstm_backward_weights *a)
{
    (void)device;
    const struct ref_recurrent_weights weights = {&a->cut, a->offset, a->hidden, 4, a->h, a->dgates, a->dw};
    return ref_recurrent_weights(&weights);
}
