/* Depthwise convolutions, forward and their input gradient, line by line. Where there is an unrolled copy for
 * the kernel's rows, several target pixels of one vector of channels are computed at once: each source is
 * loaded once and added to all targets that read it, in the order of their taps. Sources outside the image
 * are passed over. For other kernels, and for fewer channels than a vector has, pixels are computed one by
 * one, with several vectors of channels at once.
 *
 * The last vector of channels begins early enough to be whole: the channels it shares with the one before
 * are computed and written twice, with the same bits.
 */
#include "device/cpu/grouped/grouped.h"

#define PIXELS   8 /* most target pixels at once */
#define STRAIGHT 3 /* most kernel rows in straight code */
#define VECTORS  4 /* most vectors of channels at once, where pixels are computed one by one */

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

V_INLINE int last_source(const int pixels, const struct taps of)
{
    return ((pixels - 1) * of.step + of.kernel - 1 - of.shift) / of.up;
}

/* Adds the sources of a line to `pixels` sums. x: the first source of the block, those before `begin` and
   from `end` on do not exist; w: the kernel row's taps. */
V_INLINE void add_row(const float *x, int64_t channels, const float *w, int64_t tap_step, const int pixels,
                      const struct taps of, const bool edges, int32_t begin, int32_t end, vf *sum)
{
    vf tap[DEPTHWISE_LARGEST];
    V_UNROLL for (int k = 0; k < of.kernel; k++) tap[k] = v_load(w + k * tap_step);
    V_UNROLL for (int s = 0; s <= last_source(pixels, of); s++)
    {
        if (edges && ((s < of.kernel && s < begin) || s >= end)) continue;
        vf from = v_load(x + s * channels);
        V_KEEP(from);
        V_UNROLL for (int p = 0; p < pixels; p++)
        {
            const int k = of.up * s - of.step * p + of.shift;
            if (k >= 0 && k < of.kernel) sum[p] = v_fma(from, tap[k], sum[p]);
        }
    }
}

/* `pixels` targets from t on; `source` is the first that they read. rows: that many kernel rows at most, in
   straight code, or 0: any number. */
V_INLINE void block(const struct grouped *g, const struct line *line, int32_t t, int32_t source,
                    const int pixels, const struct taps of, const int rows, const bool edges)
{
    const struct conv_call *call = &g->call;
    const int64_t channels = call->target_c, below = call->source_w * channels;
    const int64_t tap_step = g->tap_step, row_step = of.kernel * tap_step;
    const int32_t begin = -source, end = call->source_w - source;
    const int32_t count = edges ? (int32_t)smaller(pixels, call->target_w - t) : pixels;
    const float *image[STRAIGHT] = {NULL}, *taps[STRAIGHT] = {NULL};
    const int32_t exist = line->count;
    V_UNROLL for (int i = 0; i < rows; i++)
    {
        if (i >= exist) continue;
        image[i] = line->image + line->rows[i].source * below + source * channels;
        taps[i] = g->tap0 + line->rows[i].kernel * row_step;
    }
    for (int64_t from = 0; from < channels; from += VW) {
        const int64_t c = smaller(from, channels - VW);
        const float *x = line->image + source * channels + c, *w = g->tap0 + c;
        vf sum[PIXELS];
        V_UNROLL for (int p = 0; p < pixels; p++) sum[p] = v_zero();
        if (rows > 0) {
            V_UNROLL for (int i = 0; i < rows; i++)
            {
                if (i < exist)
                    add_row(image[i] + c, channels, taps[i] + c, tap_step, pixels, of, edges, begin, end,
                            sum);
            }
        } else {
            for (int32_t i = 0; i < line->count; i++)
                add_row(x + line->rows[i].source * below, channels, w + line->rows[i].kernel * row_step,
                        tap_step, pixels, of, edges, begin, end, sum);
        }
        const vf bias = call->bias ? v_load(call->bias + c) : v_zero();
        float *to = line->target + t * channels + c;
        /* All at once, so that conditions are met once. */
        V_UNROLL for (int p = 0; p < pixels; p++) sum[p] =
            grouped_finish(sum[p], bias, call->bias != NULL, call->activation, call->slope);
        V_UNROLL for (int p = 0; p < pixels; p++)
        {
            if (p < count) v_store(to + p * channels, sum[p]);
        }
    }
}

/* apart: blocks whose sources and targets all exist have a copy of their own. */
V_INLINE void blocks(const struct grouped *g, const struct line *line, const int pixels, const struct taps of,
                     const int rows, const bool apart)
{
    const struct conv_call *call = &g->call;
    for (int32_t t = 0; t < call->target_w; t += pixels) {
        const int32_t source = (t * of.step - g->lead + of.shift) / of.up;
        const int32_t last = source + last_source(pixels, of);
        if (apart && source >= 0 && last < call->source_w && t + pixels <= call->target_w)
            block(g, line, t, source, pixels, of, rows, false);
        else
            block(g, line, t, source, pixels, of, rows, true);
    }
}

V_INLINE struct taps forward(const int kernel, const int step)
{
    return (struct taps){.kernel = kernel, .step = step, .up = 1};
}

/* With two shifts, by the pads. */
V_INLINE void backward_by_two(const struct grouped *g, const struct line *line, const int kernel)
{
    if (g->lead & 1)
        blocks(g, line, 8, (struct taps){kernel, 1, 2, 1}, 0, false);
    else
        blocks(g, line, 8, (struct taps){kernel, 1, 2, 0}, 0, false);
}

static void unrolled(const struct grouped *g, const struct line *line)
{
    const int32_t kernel = g->call.window->kernel_w;
    if (g->up == 2 && kernel == 3)
        backward_by_two(g, line, 3);
    else if (g->up == 2)
        backward_by_two(g, line, 5);
    else if (g->step == 2 && kernel == 3)
        blocks(g, line, 6, forward(3, 2), 0, false);
    else if (g->step == 2)
        blocks(g, line, 6, forward(5, 2), 0, false);
    else if (kernel == 3 && line->count <= 3)
        blocks(g, line, 8, forward(3, 1), 3, true);
    else if (kernel == 3)
        blocks(g, line, 8, forward(3, 1), 0, false);
    else if (kernel == 5)
        blocks(g, line, 8, forward(5, 1), 0, true);
    else
        blocks(g, line, VW >= 16 ? 8 : 6, forward(7, 1), 0, false);
}
#else
static void unrolled(const struct grouped *g, const struct line *line)
{
    (void)g, (void)line; /* g->unrolled is false */
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
    if (g->unrolled)
        unrolled(g, &line);
    else
        pixels(g, &line);
}
