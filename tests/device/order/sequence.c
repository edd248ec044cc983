/* Embeddings, rows of sequences, recurrent layers. */
#include "device/order/order.h"

#include "base/alloc.h"
#include "base/numbers/mathf.h"

ORDER(embedding_forward)
{
    for (int64_t i = 0; i < a->rows * a->width; i++)
        a->y[i] = a->table[a->token[i / a->width] * a->width + i % a->width];
}

static float word_leaf(const void *arguments, int64_t first, int64_t end, int64_t k)
{
    const struct tr_op_embedding_backward *a = arguments;
    for (int64_t r = first; r < end; r++)
        if (a->token[r] == k / a->width) number(a->dy[r * a->width + k % a->width]);
    return sum_chain(0);
}

ORDER(embedding_backward)
{
    each_node(&a->cut, a->vocabulary * a->width, a->dtable, word_leaf, a);
}

ORDER(sequence_last_forward)
{
    for (int64_t i = 0; i < a->examples * a->width; i++) {
        const int32_t first = a->offset[i / a->width], end = a->offset[i / a->width + 1];
        a->y[i] = first < end ? a->x[(end - 1) * a->width + i % a->width] : 0;
    }
}

ORDER(sequence_last_backward)
{
    for (int64_t i = 0; i < a->offset[a->examples] * a->width; i++) a->dx[i] = 0;
    for (int64_t i = 0; i < a->examples * a->width; i++) {
        const int32_t first = a->offset[i / a->width], end = a->offset[i / a->width + 1];
        if (first < end) a->dx[(end - 1) * a->width + i % a->width] = a->dy[i];
    }
}

/* Whether `row` is one of example e. */
static bool is_row(const int32_t *offset, int64_t e, int64_t row)
{
    return row >= offset[e] && row < offset[e + 1];
}

ORDER(sequence_unfold)
{
    float *y = a->y;
    for (int64_t e = 0; e < a->examples; e++)
        for (int64_t r = a->offset[e]; r < a->offset[e + 1]; r++)
            for (int64_t i = 0; i < a->taps * a->width; i++) {
                const int64_t from = r + i / a->width * a->dilation - a->before;
                *y++ = is_row(a->offset, e, from) ? a->x[from * a->width + i % a->width] : 0;
            }
}

ORDER(sequence_fold)
{
    float *dx = a->dx;
    for (int64_t e = 0; e < a->examples; e++)
        for (int64_t i = a->offset[e] * a->width; i < a->offset[e + 1] * a->width; i++) {
            for (int64_t tap = 0; tap < a->taps; tap++) {
                const int64_t from = i / a->width - a->dilation * tap + a->before;
                if (is_row(a->offset, e, from))
                    number(a->dy[(from * a->taps + tap) * a->width + i % a->width]);
            }
            *dx++ = sum_chain(0);
        }
}

ORDER(sequence_copy)
{
    for (int64_t e = 0; e < a->examples; e++)
        for (int64_t t = 0, n = a->offset[e + 1] - a->offset[e]; t < n; t++)
            for (int64_t k = 0; k < a->width; k++)
                a->y[(a->offset[e] + t) * a->y_step + k] =
                    a->x[(a->offset[e] + (a->reverse ? n - 1 - t : t)) * a->x_step + k];
}

/* ---- LSTM: gates i f g o ---- */

static float before_of(const float *tensor, const float *given, const int32_t *offset, int64_t hidden,
                       int64_t e, int64_t r, int64_t k)
{
    return r > offset[e] ? tensor[(r - 1) * hidden + k] : given ? given[e * hidden + k] : NAN;
}

ORDER(lstm_forward)
{
    const int64_t n = a->hidden;
    for (int64_t e = 0; e < a->examples; e++)
        for (int64_t r = a->offset[e]; r < a->offset[e + 1]; r++) {
            const bool begins = r == a->offset[e] && !a->h_before;
            float *gates = a->gates + r * 4 * n;
            for (int64_t j = 0; j < 4 * n; j++) {
                for (int64_t k = 0; !begins && k < n; k++)
                    term(before_of(a->h, a->h_before, a->offset, n, e, r, k), a->w[k * 4 * n + j]);
                const float sum = chain(gates[j]) + a->b[j];
                gates[j] = j / n == 2 ? tr_tanhf(sum) : tr_sigmoidf(sum);
            }
            for (int64_t k = 0; k < n; k++) {
                const float fresh = gates[k] * gates[2 * n + k];
                const float c =
                    begins ? fresh
                           : fused(gates[n + k], before_of(a->c, a->c_before, a->offset, n, e, r, k), fresh);
                a->c[r * n + k] = c;
                a->h[r * n + k] = gates[3 * n + k] * tr_tanhf(c);
            }
        }
}

ORDER(lstm_backward)
{
    const int64_t n = a->hidden;
    float *dc = tr_alloc_zero((size_t)n + 1, sizeof *dc);
    for (int64_t e = 0; e < a->examples; e++)
        for (int64_t r = a->offset[e + 1] - 1; r >= a->offset[e]; r--) {
            const int64_t t = r - a->offset[e];
            const bool last = r == a->offset[e + 1] - 1 || (a->truncate > 0 && (t + 1) % a->truncate == 0);
            const float *gates = a->gates + r * 4 * n, *next = a->dgates + (r + 1) * 4 * n;
            float *to = a->dgates + r * 4 * n;
            for (int64_t k = 0; k < n; k++) {
                const float i = gates[k], f = gates[n + k], g = gates[2 * n + k], o = gates[3 * n + k];
                const float tc = tr_tanhf(a->c[r * n + k]);
                for (int64_t j = 0; !last && j < 4 * n; j++) term(next[j], a->w[k * 4 * n + j]);
                const float dh = last ? a->dy[r * n + k] : a->dy[r * n + k] + chain(0), q = dh * o;
                dc[k] = last ? q * fused(-tc, tc, 1) : fused(q, fused(-tc, tc, 1), dc[k] * gates[5 * n + k]);
                to[k] = (dc[k] * g) * (i * (1 - i));
                to[n + k] = t == 0 ? 0 : (dc[k] * a->c[(r - 1) * n + k]) * (f * (1 - f));
                to[2 * n + k] = (dc[k] * i) * fused(-g, g, 1);
                to[3 * n + k] = (dh * tc) * (o * (1 - o));
            }
        }
    tr_free(dc);
}

/* The chain over rows that are no first ones of h[r - 1][k] * gradient[r][j]; examples [first, end). */
static float recurrent_weight(const int32_t *offset, int64_t first, int64_t end, const float *h,
                              int64_t hidden, const float *gradient, int64_t columns, int64_t at)
{
    for (int64_t e = first; e < end; e++)
        for (int64_t r = offset[e] + 1; r < offset[e + 1]; r++)
            term(h[(r - 1) * hidden + at / columns], gradient[r * columns + at % columns]);
    return chain(0);
}

static float lstm_leaf(const void *arguments, int64_t first, int64_t end, int64_t k)
{
    const struct tr_op_lstm_backward_weights *a = arguments;
    return recurrent_weight(a->offset, first, end, a->h, a->hidden, a->dgates, 4 * a->hidden, k);
}

ORDER(lstm_backward_weights)
{
    each_node(&a->cut, 4 * a->hidden * a->hidden, a->dw, lstm_leaf, a);
}

/* ---- GRU: gates r z n ---- */

ORDER(gru_forward)
{
    const int64_t n = a->hidden;
    for (int64_t e = 0; e < a->examples; e++)
        for (int64_t r = a->offset[e]; r < a->offset[e + 1]; r++) {
            const bool begins = r == a->offset[e];
            float *gates = a->gates + r * 3 * n, u[3];
            for (int64_t unit = 0; unit < n; unit++) {
                const float before = begins ? 0 : a->h[(r - 1) * n + unit];
                for (int q = 0; q < 3; q++) {
                    const int64_t j = q * n + unit;
                    for (int64_t k = 0; !begins && k < n; k++)
                        term(a->h[(r - 1) * n + k], a->w[k * 3 * n + j]);
                    u[q] = chain(0) + a->b_hidden[j];
                }
                const float reset = tr_sigmoidf((gates[unit] + a->b[unit]) + u[0]);
                const float z = tr_sigmoidf((gates[n + unit] + a->b[n + unit]) + u[1]);
                const float fresh = tr_tanhf(fused(reset, u[2], gates[2 * n + unit] + a->b[2 * n + unit]));
                gates[unit] = reset;
                gates[n + unit] = z;
                gates[2 * n + unit] = fresh;
                a->inner[r * n + unit] = u[2];
                a->h[r * n + unit] = fused(z, before - fresh, fresh);
            }
        }
}

ORDER(gru_backward)
{
    const int64_t n = a->hidden;
    float *dh = tr_alloc_zero((size_t)n + 1, sizeof *dh);
    for (int64_t e = 0; e < a->examples; e++)
        for (int64_t r = a->offset[e + 1] - 1; r >= a->offset[e]; r--) {
            const float *gates = a->gates + r * 3 * n;
            float *to = a->dgates + r * 3 * n, *hidden = a->dhidden + r * 3 * n;
            for (int64_t k = 0; k < n; k++) {
                const float reset = gates[k], z = gates[n + k], fresh = gates[2 * n + k];
                const float before = r == a->offset[e] ? 0 : a->h[(r - 1) * n + k], dy = a->dy[r * n + k];
                if (r == a->offset[e + 1] - 1)
                    dh[k] = dy;
                else {
                    for (int64_t j = 0; j < 3 * n; j++)
                        term(a->dhidden[(r + 1) * 3 * n + j], a->w[k * 3 * n + j]);
                    const float own = dy + chain(0);
                    dh[k] = fused(dh[k], gates[4 * n + k], own);
                }
                const float dn = (dh[k] * (1 - z)) * fused(-fresh, fresh, 1);
                to[k] = hidden[k] = (dn * a->inner[r * n + k]) * (reset * (1 - reset));
                to[n + k] = hidden[n + k] = (dh[k] * (before - fresh)) * (z * (1 - z));
                to[2 * n + k] = dn;
                hidden[2 * n + k] = dn * reset;
            }
        }
    tr_free(dh);
}

static float gru_leaf(const void *arguments, int64_t first, int64_t end, int64_t k)
{
    const struct tr_op_gru_backward_weights *a = arguments;
    return recurrent_weight(a->offset, first, end, a->h, a->hidden, a->dhidden, 3 * a->hidden, k);
}

ORDER(gru_backward_weights)
{
    each_node(&a->cut, 3 * a->hidden * a->hidden, a->dw, gru_leaf, a);
}
