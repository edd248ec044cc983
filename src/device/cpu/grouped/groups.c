/* Convolutions by groups of several channels, forward and their input gradient, line by line: with vectors
 * over the outputs of a group, each source number is multiplied with all of them. Where all taps of a
 * kernel row exist, several target pixels are computed at once.
 */
#include "device/cpu/grouped/grouped.h"

#define PIXELS  4
#define VECTORS 2

void groups_pack(const struct grouped *g, int64_t begin, int64_t end)
{
    const struct conv_call *call = &g->call;
    const int64_t taps = (int64_t)call->window->kernel_h * call->window->kernel_w;
    const int64_t out_c = call->backward ? call->source_c : call->target_c;
    const int64_t in_each = call->backward ? g->target_each : g->source_each;
    float *to = g->packed + begin * taps * g->source_each * g->padded;
    for (int64_t i = begin; i < end; i++)
        for (int64_t tap = 0; tap < taps; tap++)
            for (int64_t s = 0; s < g->source_each; s++)
                for (int64_t t = 0; t < g->padded; t++, to++) {
                    const int64_t in = call->backward ? t : s, out = call->backward ? s : t;
                    const int64_t each = call->backward ? g->source_each : g->target_each;
                    const int64_t from = call->backward ? taps - 1 - tap : tap;
                    *to = t < g->target_each ? call->weights[(from * in_each + in) * out_c + i * each + out]
                                             : 0;
                }
}

/* `count` target pixels from t on, `vectors` vectors of channels from c of group i on; `columns` of them
   exist. All of the pixels have the runs of the first, shifted. */
V_INLINE void block(const struct grouped *g, const float *image, int32_t h, int64_t i, int32_t t, int64_t c,
                    const int count, const int vectors, int64_t columns, float *line)
{
    const struct conv_call *call = &g->call;
    const int64_t channels = call->source_c, step = g->step * channels,
                  tap_floats = g->source_each * g->padded;
    const float *packed = g->packed + i * call->window->kernel_h * call->window->kernel_w * tap_floats + c;
    vf sum[PIXELS][VECTORS];
    V_UNROLL for (int p = 0; p < count; p++)
    {
        V_UNROLL for (int v = 0; v < vectors; v++) sum[p][v] = v_zero();
    }
    for (int32_t row = g->h.start[h]; row < g->h.start[h + 1]; row++)
        for (int32_t j = g->w.start[t]; j < g->w.start[t + 1]; j++) {
            const struct conv_run *down = g->h.runs + row, *across = g->w.runs + j;
            const float *x = image + ((int64_t)down->source * call->source_w + across->source) * channels +
                             i * g->source_each;
            const float *w =
                packed + ((int64_t)down->kernel * call->window->kernel_w + across->kernel) * tap_floats;
            for (int32_t k = 0; k < across->length; k++, x += channels)
                for (int64_t s = 0; s < g->source_each; s++, w += g->padded) {
                    vf weight[VECTORS];
                    V_UNROLL for (int v = 0; v < vectors; v++) weight[v] = v_load(w + v * VW);
                    V_UNROLL for (int p = 0; p < count; p++)
                    {
                        const vf from = v_set1(x[p * step + s]);
                        V_UNROLL for (int v = 0; v < vectors; v++) sum[p][v] =
                            v_fma(from, weight[v], sum[p][v]);
                    }
                }
        }
    V_UNROLL for (int p = 0; p < count; p++)
    {
        V_UNROLL for (int v = 0; v < vectors; v++)
        {
            const int64_t n = smaller(VW, columns - v * VW), at = i * g->target_each + c + v * VW;
            const bool biased = call->bias != NULL;
            const vf bias = biased ? v_load_part(call->bias + at, n) : v_zero();
            v_store_part(line + (t + p) * call->target_c + at,
                         grouped_finish(sum[p][v], bias, biased, call->activation, call->slope), n);
        }
    }
}

V_INLINE void columns_of(const struct grouped *g, const float *image, int32_t h, int64_t i, int32_t t,
                         const int count, float *line)
{
    int64_t c = 0;
    for (; c + VW < g->target_each; c += VECTORS * VW)
        block(g, image, h, i, t, c, count, VECTORS, g->target_each - c, line);
    if (c < g->target_each) block(g, image, h, i, t, c, count, 1, g->target_each - c, line);
}

void groups_line(const struct grouped *g, int64_t r, int32_t h)
{
    const struct conv_call *call = &g->call;
    const float *image = call->source + r * call->source_h * call->source_w * call->source_c;
    float *line = call->target + (r * call->target_h + h) * call->target_w * call->target_c;
    for (int64_t i = 0; i < g->groups; i++)
        for (int32_t t = 0; t < call->target_w;) {
            const bool several = V_SHAPES && t >= g->full_begin && t + PIXELS <= g->full_end;
            if (several)
                columns_of(g, image, h, i, t, PIXELS, line);
            else
                columns_of(g, image, h, i, t, 1, line);
            t += several ? PIXELS : 1;
        }
}
