/* Depthwise convolutions, forward and their input gradient, line by line, or two lines at once. Where there
 * is an unrolled copy for the kernel, several target pixels of one vector of channels are computed at once:
 * each source is loaded once and added to all targets that read it, in the order of their taps. Sources
 * outside the image are passed over there. For other kernels, and for fewer channels than a vector has,
 * pixels are computed one by one, with several vectors of channels at once.
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

/* Target pixels one by one. */
static void pixels(const struct grouped *g, const struct line *line)
{
    const int64_t channels = g->call.target_c;
    for (int32_t t = 0; t < g->call.target_w; t++) {
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
/* How the taps of a kernel row lie on a line, all known where a copy is compiled: target p of a block meets
   source s at tap up * s - step * p + shift, where there is one. Forward, and with stride 1: up is 1; the
   input gradient of stride 2: up is 2 and step 1. */
struct taps {
    int kernel, step, up, shift;
};

/* Target lines and a block of them. */
struct strip {
    const float *rows[4];        /* of two lines: the source lines under them; NULL: outside the image */
    const struct conv_run *runs; /* of one: [count] */
    int32_t count;
    const float *image;
    float *target;
    bool second; /* of two: it exists */
};

V_INLINE int last_source(const int pixels, const struct taps of)
{
    return ((pixels - 1) * of.step + of.kernel - 1 - of.shift) / of.up;
}

/* Adds the sources of a line to `pixels` sums of the first target line, of the second, or of both. x: the
   first source of the block; taps: those of the first line, of the second a kernel's row before. Sources
   before `begin` and from `end` on do not exist. */
V_INLINE void add_row(const float *x, const float *taps, int64_t channels, int64_t tap_step, const bool first,
                      const bool second, const int pixels, const struct taps of, const bool edges,
                      int32_t begin, int32_t end, vf *sum)
{
    vf one[DEPTHWISE_LARGEST], two[DEPTHWISE_LARGEST];
    V_UNROLL for (int k = 0; k < of.kernel; k++)
    {
        one[k] = first ? v_load(taps + k * tap_step) : v_zero();
        two[k] = second ? v_load(taps + (k - of.kernel) * tap_step) : v_zero();
    }
    V_UNROLL for (int s = 0; s <= last_source(pixels, of); s++)
    {
        if (edges && ((s < of.kernel && s < begin) || s >= end)) continue;
        vf from = v_load(x + s * channels);
        V_KEEP(from);
        V_UNROLL for (int p = 0; p < pixels; p++)
        {
            const int k = of.up * s - of.step * p + of.shift;
            if (k < 0 || k >= of.kernel) continue;
            if (first) sum[p] = v_fma(from, one[k], sum[p]);
            if (second) sum[pixels + p] = v_fma(from, two[k], sum[pixels + p]);
        }
    }
}

/* The first `count` of `pixels` targets. */
V_INLINE void store(const vf *sum, const int pixels, int32_t count, int64_t step, float *to)
{
    V_UNROLL for (int p = 0; p < pixels; p++)
    {
        if (p < count) v_store(to + p * step, sum[p]);
    }
}

/* `pixels` targets from t on, of one line or of two neighbours with the whole kernel 3x3; `source` is the
   first that they read. */
V_INLINE void block(const struct grouped *g, const struct strip *strip, int32_t t, int32_t source,
                    const int lines, const int pixels, const struct taps of, const bool edges)
{
    const struct conv_call *call = &g->call;
    const int64_t channels = call->target_c, tap_step = g->tap_step;
    const int32_t begin = -source, end = call->source_w - source;
    const int32_t count = edges ? (int32_t)smaller(pixels, call->target_w - t) : pixels;
    for (int64_t from = 0; from < channels; from += VW) {
        const int64_t c = smaller(from, channels - VW), at = source * channels + c;
        const float *taps = g->tap0 + c;
        vf sum[2 * PIXELS];
        V_UNROLL for (int p = 0; p < lines * pixels; p++) sum[p] = v_zero();
        if (lines == 2) {
            V_UNROLL for (int i = 0; i < 4; i++)
            {
                const bool first = i<3, second = i> 0;
                if (!strip->rows[i]) continue;
                add_row(strip->rows[i] + at, taps + i * of.kernel * tap_step, channels, tap_step, first,
                        second, pixels, of, edges, begin, end, sum);
            }
        } else {
            for (int32_t i = 0; i < strip->count; i++) {
                const struct conv_run *run = strip->runs + i;
                add_row(strip->image + (int64_t)run->source * call->source_w * channels + at,
                        taps + run->kernel * of.kernel * tap_step, channels, tap_step, true, false, pixels,
                        of, edges, begin, end, sum);
            }
        }
        const vf bias = call->bias ? v_load(call->bias + c) : v_zero();
        V_UNROLL for (int p = 0; p < lines * pixels; p++) sum[p] =
            grouped_finish(sum[p], bias, call->bias != NULL, call->activation, call->slope);
        float *to = strip->target + t * channels + c;
        store(sum, pixels, count, channels, to);
        if (lines == 2 && strip->second)
            store(sum + pixels, pixels, count, channels, to + call->target_w * channels);
    }
}

/* apart: blocks whose sources and targets all exist have a copy of their own. */
V_INLINE void blocks(const struct grouped *g, const struct strip *strip, const int lines, const int pixels,
                     const struct taps of, const bool apart)
{
    const struct conv_call *call = &g->call;
    for (int32_t t = 0; t < call->target_w; t += pixels) {
        const int32_t source = (t * of.step - g->lead + of.shift) / of.up;
        const int32_t last = source + last_source(pixels, of);
        if (apart && source >= 0 && last < call->source_w && t + pixels <= call->target_w)
            block(g, strip, t, source, lines, pixels, of, false);
        else
            block(g, strip, t, source, lines, pixels, of, true);
    }
}

V_INLINE struct taps forward(const int kernel, const int step)
{
    return (struct taps){.kernel = kernel, .step = step, .up = 1};
}

V_INLINE void two_lines(const struct grouped *g, int64_t r, int32_t h, int32_t count)
{
    const struct conv_call *call = &g->call;
    const int64_t source_line = (int64_t)call->source_w * call->source_c;
    struct strip strip = {.second = count == 2,
                          .target =
                              call->target + (r * call->target_h + h) * call->target_w * call->target_c};
    for (int32_t i = 0; i < 4; i++) {
        const int32_t source = h - g->lead_h + i;
        if (source >= 0 && source < call->source_h)
            strip.rows[i] = call->source + (r * call->source_h + source) * source_line;
    }
    blocks(g, &strip, 2, VW >= 16 ? 8 : 4, forward(3, 1), true);
}

static void one_line(const struct grouped *g, int64_t r, int32_t h)
{
    const struct conv_call *call = &g->call;
    const struct strip strip = {
        .runs = g->h.runs + g->h.start[h],
        .count = g->h.start[h + 1] - g->h.start[h],
        .image = call->source + r * call->source_h * call->source_w * call->source_c,
        .target = call->target + (r * call->target_h + h) * call->target_w * call->target_c,
    };
    const int32_t kernel = call->window->kernel_w, odd = g->lead & 1;
    if (g->up == 2 && kernel == 3)
        odd ? blocks(g, &strip, 1, 8, (struct taps){3, 1, 2, 1}, false)
            : blocks(g, &strip, 1, 8, (struct taps){3, 1, 2, 0}, false);
    else if (g->up == 2)
        odd ? blocks(g, &strip, 1, 8, (struct taps){5, 1, 2, 1}, false)
            : blocks(g, &strip, 1, 8, (struct taps){5, 1, 2, 0}, false);
    else if (g->step == 2 && kernel == 3)
        blocks(g, &strip, 1, 6, forward(3, 2), false);
    else if (g->step == 2)
        blocks(g, &strip, 1, 6, forward(5, 2), false);
    else if (kernel == 3)
        blocks(g, &strip, 1, 8, forward(3, 1), false);
    else if (kernel == 5)
        blocks(g, &strip, 1, 8, forward(5, 1), true);
    else
        blocks(g, &strip, 1, VW >= 16 ? 8 : 6, forward(7, 1), false);
}
#endif

static void line_by_pixels(const struct grouped *g, int64_t r, int32_t h)
{
    const struct conv_call *call = &g->call;
    const struct line line = {
        .rows = g->h.runs + g->h.start[h],
        .count = g->h.start[h + 1] - g->h.start[h],
        .image = call->source + r * call->source_h * call->source_w * call->source_c,
        .target = call->target + (r * call->target_h + h) * call->target_w * call->target_c,
    };
    pixels(g, &line);
}

void depthwise_lines(const struct grouped *g, int64_t r, int32_t h, int32_t count)
{
#if V_SHAPES
    if (g->lines == 2) {
        two_lines(g, r, h, count);
        return;
    }
    if (g->lines == 1) {
        one_line(g, r, h);
        return;
    }
#endif
    for (int32_t i = 0; i < count; i++) line_by_pixels(g, r, h + i);
}
