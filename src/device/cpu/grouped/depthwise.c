/* Depthwise convolutions, forward and their input gradient, line by line. Where all taps of a kernel row
 * exist, several target pixels of one vector of channels are computed at once: each source is loaded once
 * and added to all targets that read it, in the order of their taps. At the borders, and for kernel sizes
 * without an unrolled copy, pixels are computed one by one, with several vectors of channels at once.
 *
 * The last vector of channels begins early enough to be whole: the channels it shares with the one before
 * are computed and written twice, with the same bits.
 */
#include "device/cpu/grouped/grouped.h"

#define PIXELS  8 /* most target pixels at once */
#define VECTORS 4 /* most vectors of channels at once, where pixels are computed one by one */

/* The sources and targets of a line. */
struct line {
    const struct conv_run *rows; /* [count] */
    int32_t count;
    const float *image;
    float *target;
};

V_INLINE vf load(const float *p, bool whole, int64_t n)
{
    return whole ? v_load(p) : v_load_part(p, n);
}

V_INLINE void finish(const struct grouped *g, int64_t c, vf sum, bool whole, int64_t n, float *to)
{
    const bool biased = g->call.bias != NULL;
    const vf bias = biased ? load(g->call.bias + c, whole, n) : v_zero();
    const vf y = grouped_finish(sum, bias, biased, g->call.activation, g->call.slope);
    if (whole)
        v_store(to, y);
    else
        v_store_part(to, y, n);
}

/* `vectors` vectors of channels from c on of target pixel t. */
V_INLINE void pixel(const struct grouped *g, const struct line *line, int32_t t, int64_t c, const int vectors,
                    bool whole, int64_t n)
{
    const int64_t channels = g->call.target_c;
    vf sum[VECTORS];
    V_UNROLL for (int v = 0; v < vectors; v++) sum[v] = v_zero();
    for (int32_t i = 0; i < line->count; i++) {
        const struct conv_run *row = line->rows + i;
        const float *sources = line->image + (int64_t)row->source * g->call.source_w * channels + c;
        const float *taps = g->tap0 + row->kernel * g->call.window->kernel_w * g->tap_step + c;
        for (int32_t j = g->w.start[t]; j < g->w.start[t + 1]; j++) {
            const struct conv_run *run = g->w.runs + j;
            const float *x = sources + run->source * channels, *w = taps + run->kernel * g->tap_step;
            for (int32_t k = 0; k < run->length; k++, x += channels, w += g->tap_step) {
                V_UNROLL for (int v = 0; v < vectors; v++)
                {
                    sum[v] = v_fma(load(x + v * VW, whole, n), load(w + v * VW, whole, n), sum[v]);
                }
            }
        }
    }
    float *to = line->target + t * channels + c;
    V_UNROLL for (int v = 0; v < vectors; v++) finish(g, c + v * VW, sum[v], whole, n, to + v * VW);
}

/* Target pixels [begin, end), one by one. */
static void pixels(const struct grouped *g, const struct line *line, int32_t begin, int32_t end)
{
    const int64_t channels = g->call.target_c;
    for (int32_t t = begin; t < end; t++) {
        int64_t c = 0;
        for (; c + VECTORS * VW <= channels; c += VECTORS * VW) pixel(g, line, t, c, VECTORS, true, VW);
        for (; c + VW <= channels; c += VW) pixel(g, line, t, c, 1, true, VW);
        if (c < channels && channels > VW)
            pixel(g, line, t, channels - VW, 1, true, VW);
        else if (c < channels)
            pixel(g, line, t, c, 1, false, channels - c);
    }
}

#if V_SHAPES
/* `count` target pixels from t on, channels from c on: each with all `kernel` taps of the rows. */
V_INLINE void block(const struct grouped *g, const struct line *line, int32_t t, int64_t c, const int count,
                    const int kernel, const int step, bool whole, int64_t n)
{
    const int64_t channels = g->call.target_c;
    const int64_t source = g->w.runs[g->w.start[t]].source;
    vf sum[PIXELS];
    V_UNROLL for (int p = 0; p < count; p++) sum[p] = v_zero();
    for (int32_t i = 0; i < line->count; i++) {
        const struct conv_run *row = line->rows + i;
        const float *x = line->image + ((int64_t)row->source * g->call.source_w + source) * channels + c;
        const float *taps = g->tap0 + (int64_t)row->kernel * kernel * g->tap_step + c;
        vf w[DEPTHWISE_LARGEST];
        V_UNROLL for (int k = 0; k < kernel; k++) w[k] = load(taps + k * g->tap_step, whole, n);
        V_UNROLL for (int s = 0; s < (count - 1) * step + kernel; s++)
        {
            const vf from = load(x + s * channels, whole, n);
            V_UNROLL for (int p = 0; p < count; p++)
            {
                const int k = s - p * step;
                if (k >= 0 && k < kernel) sum[p] = v_fma(from, w[k], sum[p]);
            }
        }
    }
    V_UNROLL for (int p = 0; p < count; p++)
        finish(g, c, sum[p], whole, n, line->target + (t + p) * channels + c);
}

V_INLINE void block_of_channels(const struct grouped *g, const struct line *line, int32_t t, const int count,
                                const int kernel, const int step)
{
    const int64_t channels = g->call.target_c;
    if (channels < VW) {
        block(g, line, t, 0, count, kernel, step, false, channels);
        return;
    }
    for (int64_t c = 0; c < channels; c += VW) {
        const int64_t whole = c + VW <= channels ? c : channels - VW;
        block(g, line, t, whole, count, kernel, step, true, VW);
    }
}

/* The full pixels of a line. */
V_INLINE void full(const struct grouped *g, const struct line *line, const int kernel, const int step,
                   const int most)
{
    int32_t t = g->full_begin;
    for (; t + most <= g->full_end; t += most) block_of_channels(g, line, t, most, kernel, step);
    for (; t + 2 <= g->full_end; t += 2) block_of_channels(g, line, t, 2, kernel, step);
    if (t < g->full_end) block_of_channels(g, line, t, 1, kernel, step);
}

/* Computes the full pixels of a line; false where no unrolled copy fits. */
static bool full_line(const struct grouped *g, const struct line *line)
{
    const int32_t kernel = g->call.window->kernel_w;
    if (g->step == 1 && kernel == 3)
        full(g, line, 3, 1, 8);
    else if (g->step == 1 && kernel == 5)
        full(g, line, 5, 1, 8);
    else if (g->step == 1 && kernel == 7)
        full(g, line, 7, 1, 6);
    else if (g->step == 2 && kernel == 3)
        full(g, line, 3, 2, 6);
    else if (g->step == 2 && kernel == 5)
        full(g, line, 5, 2, 6);
    else
        return false;
    return true;
}
#else
static bool full_line(const struct grouped *g, const struct line *line)
{
    (void)g;
    (void)line;
    return false;
}
#endif

void depthwise_line(const struct grouped *g, int64_t r, int32_t h)
{
    const struct conv_call *call = &g->call;
    const struct line line = {
        .rows = g->h.runs + g->h.start[h],
        .count = g->h.start[h + 1] - g->h.start[h],
        .image = call->source + r * call->source_h * call->source_w * call->source_c,
        .target = call->target + (r * call->target_h + h) * call->target_w * call->target_c,
    };
    if (g->full_end == g->full_begin || !full_line(g, &line)) {
        pixels(g, &line, 0, call->target_w);
        return;
    }
    pixels(g, &line, 0, g->full_begin);
    pixels(g, &line, g->full_end, call->target_w);
}
