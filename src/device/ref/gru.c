/* The gated recurrent unit over ragged sequences. */
#include "device/ref/loops/chain.h"
#include "device/ref/loops/recurrent.h"
#include "device/ref/ref.h"

#include "base/alloc.h"
#include "base/numbers/mathf.h"

#include <math.h>
#include <string.h>

/* One row; h_before is NULL at the first of an example, u [3 * hidden] working memory. */
static void forward_row(const struct tr_op_gru_forward *a, int64_t row, const float *h_before, float *u)
{
    int64_t hidden = a->hidden;
    float *gates = a->gates + 3 * row * hidden;
    memset(u, 0, 3 * (size_t)hidden * sizeof *u);
    if (h_before) ref_chain_rows(hidden, 3 * hidden, h_before, a->w, u);
    for (int64_t j = 0; j < 3 * hidden; j++) {
        u[j] = u[j] + a->b_hidden[j];
        gates[j] = gates[j] + a->b[j];
    }
    for (int64_t k = 0; k < hidden; k++) {
        float r = tr_sigmoidf(gates[k] + u[k]), z = tr_sigmoidf(gates[hidden + k] + u[hidden + k]);
        float n = tr_tanhf(fmaf(r, u[2 * hidden + k], gates[2 * hidden + k]));
        gates[k] = r;
        gates[hidden + k] = z;
        gates[2 * hidden + k] = n;
        a->inner[row * hidden + k] = u[2 * hidden + k];
        a->h[row * hidden + k] = fmaf(z, (h_before ? h_before[k] : 0) - n, n);
    }
}

tr_status ref_gru_forward(tr_device *device, const struct tr_op_gru_forward *a)
{
    (void)device;
    float *u = tr_alloc(3 * (size_t)a->hidden, sizeof *u);
    if (!u) return TR_ENOMEM;
    for (int64_t e = 0; e < a->examples; e++)
        for (int64_t r = a->offset[e]; r < a->offset[e + 1]; r++)
            forward_row(a, r, r == a->offset[e] ? NULL : a->h + (r - 1) * a->hidden, u);
    tr_free(u);
    return TR_OK;
}

/* dgates and dhidden of row r. dh [hidden] is that of the next row on entry, whose chains are in `chain`;
   on return it is that of this row. */
static void backward_row(const struct tr_op_gru_backward *a, int64_t r, bool first, bool next,
                         const float *chain, float *dh)
{
    int64_t hidden = a->hidden;
    const float *gates = a->gates + 3 * r * hidden;
    float *dgates = a->dgates + 3 * r * hidden, *dhidden = a->dhidden + 3 * r * hidden;
    for (int64_t k = 0; k < hidden; k++) {
        float reset = gates[k], z = gates[hidden + k], n = gates[2 * hidden + k];
        float dy = a->dy[r * hidden + k], before = first ? 0 : a->h[(r - 1) * hidden + k];
        dh[k] = next ? fmaf(dh[k], gates[4 * hidden + k], dy + chain[k]) : dy;
        float dn = (dh[k] * (1 - z)) * fmaf(-n, n, 1);
        dgates[hidden + k] = dhidden[hidden + k] = (dh[k] * (before - n)) * (z * (1 - z));
        dgates[k] = dhidden[k] = (dn * a->inner[r * hidden + k]) * (reset * (1 - reset));
        dgates[2 * hidden + k] = dn;
        dhidden[2 * hidden + k] = dn * reset;
    }
}

tr_status ref_gru_backward(tr_device *device, const struct tr_op_gru_backward *a)
{
    (void)device;
    int64_t hidden = a->hidden;
    float *transposed = ref_transposed(1, hidden, 3 * hidden, a->w);
    float *memory = tr_alloc(2 * (size_t)hidden, sizeof *memory);
    tr_status status = transposed && memory ? TR_OK : TR_ENOMEM;
    for (int64_t e = 0; status == TR_OK && e < a->examples; e++) {
        float *dh = memory, *chain = memory + hidden;
        for (int64_t r = a->offset[e + 1] - 1; r >= a->offset[e]; r--) {
            bool next = r + 1 < a->offset[e + 1];
            memset(chain, 0, (size_t)hidden * sizeof *chain);
            if (next)
                ref_chain_rows(3 * hidden, hidden, a->dhidden + 3 * (r + 1) * hidden, transposed, chain);
            backward_row(a, r, r == a->offset[e], next, chain, dh);
        }
    }
    tr_free(memory);
    tr_free(transposed);
    return status;
}

tr_status ref_gru_backward_weights(tr_device *device, const struct tr_op_gru_backward_weights *a)
{
    (void)device;
    const struct ref_recurrent_weights weights = {&a->cut, a->offset, a->hidden, 3, a->h, a->dhidden, a->dw};
    return ref_recurrent_weights(&weights);
}
