/* The weight gradient of depthwise convolutions, by vectors of channels. The sums of a kernel row stay in
 * registers along a line of output pixels; those of a unit wait in the member's scratch between lines.
 * Kernel sizes without an unrolled copy are computed tap by tap, with several vectors of channels at once.
 *
 * Sums of channels beyond the last are computed too, from +0, and not written.
 */
#include "device/cpu/convolutions/pool.h"
#include "device/cpu/grouped/grouped.h"

/* The work of a unit: channels from c on, rows [row, row_end) of the kernel and, where it has one tap,
   column `tap`. */
struct part {
    int64_t c, n; /* n: number of channels that exist */
    int32_t row, row_end, tap;
    int64_t floats; /* its sums: [rows][columns][DEPTHWISE_BLOCK] */
};

static struct part part_of(const struct grouped_gradient *g, int64_t unit)
{
    const struct tr_sliding_window *w = &g->op->window;
    const int64_t each = !g->whole_rows ? (int64_t)w->kernel_h * w->kernel_w : g->by_row ? w->kernel_h : 1;
    struct part part = {.c = unit / each * DEPTHWISE_BLOCK};
    part.n = smaller(DEPTHWISE_BLOCK, g->groups - part.c);
    if (!g->whole_rows) {
        part.row = (int32_t)(unit % each / w->kernel_w);
        part.tap = (int32_t)(unit % each % w->kernel_w);
    } else if (g->by_row) {
        part.row = (int32_t)(unit % each);
    }
    part.row_end = g->whole_rows && !g->by_row ? w->kernel_h : part.row + 1;
    part.floats = (int64_t)(part.row_end - part.row) * (g->whole_rows ? w->kernel_w : 1) * DEPTHWISE_BLOCK;
    return part;
}

V_INLINE vf load(const float *p, bool whole, int64_t n)
{
    return whole ? v_load(p) : v_load_part(p, n);
}

/* Channels that are left of n after those before vector v. */
static inline int64_t rest(int64_t n, int v)
{
    return n > v * VW ? smaller(VW, n - v * VW) : 0;
}

/* One pixel, and the taps [begin, end) of a kernel row that it has. */
static void border_pixel(const float *x, const float *dy, int64_t channels, int32_t begin, int32_t end,
                         int64_t n, float *sums)
{
    for (int v = 0; v * VW < n; v++) {
        const int64_t m = rest(n, v);
        const vf d = v_load_part(dy + v * VW, m);
        for (int32_t k = begin; k < end; k++) {
            float *sum = sums + k * DEPTHWISE_BLOCK + v * VW;
            v_store(sum, v_fma(v_load_part(x + k * channels + v * VW, m), d, v_load(sum)));
        }
    }
}

#if V_SHAPES
/* `count` pixels with all `kernel` taps, x `step` channels further for each: `vectors` vectors of channels.
 */
V_INLINE void whole_pixels(const float *x, const float *dy, int64_t channels, int64_t step, int32_t count,
                           const int kernel, const int vectors, bool whole, int64_t n, float *sums)
{
    vf sum[DEPTHWISE_LARGEST][DEPTHWISE_VECTORS];
    V_UNROLL for (int k = 0; k < kernel; k++)
    {
        V_UNROLL for (int v = 0; v < vectors; v++) sum[k][v] = v_load(sums + k * DEPTHWISE_BLOCK + v * VW);
    }
    for (int32_t i = 0; i < count; i++, x += step, dy += channels) {
        V_UNROLL for (int v = 0; v < vectors; v++)
        {
            const vf d = load(dy + v * VW, whole, n);
            V_UNROLL for (int k = 0; k < kernel; k++)
            {
                sum[k][v] = v_fma(load(x + k * channels + v * VW, whole, n), d, sum[k][v]);
            }
        }
    }
    V_UNROLL for (int k = 0; k < kernel; k++)
    {
        V_UNROLL for (int v = 0; v < vectors; v++) v_store(sums + k * DEPTHWISE_BLOCK + v * VW, sum[k][v]);
    }
}

/* All channels of a unit: as many vectors at once as registers allow. */
V_INLINE void whole_channels(const float *x, const float *dy, int64_t channels, int64_t step, int32_t count,
                             const int kernel, const int vectors, int64_t n, float *sums)
{
    int v = 0;
    for (; (v + vectors) * VW <= n; v += vectors)
        whole_pixels(x + v * VW, dy + v * VW, channels, step, count, kernel, vectors, true, VW,
                     sums + v * VW);
    for (; (v + 1) * VW <= n; v++)
        whole_pixels(x + v * VW, dy + v * VW, channels, step, count, kernel, 1, true, VW, sums + v * VW);
    if (v * VW < n)
        whole_pixels(x + v * VW, dy + v * VW, channels, step, count, kernel, 1, false, n - v * VW,
                     sums + v * VW);
}

static void whole_line(const float *x, const float *dy, int64_t channels, int64_t step, int32_t count,
                       int32_t kernel, int64_t n, float *sums)
{
    if (kernel == 3)
        whole_channels(x, dy, channels, step, count, 3, 4, n, sums);
    else if (kernel == 5)
        whole_channels(x, dy, channels, step, count, 5, 2, n, sums);
    else
        whole_channels(x, dy, channels, step, count, 7, 1, n, sums);
}
#else
static void whole_line(const float *x, const float *dy, int64_t channels, int64_t step, int32_t count,
                       int32_t kernel, int64_t n, float *sums)
{
    for (int32_t i = 0; i < count; i++)
        border_pixel(x + i * step, dy + i * channels, channels, 0, kernel, n, sums);
}
#endif

/* A line of output pixels against one kernel row; `line` is the image's line under it. */
static void row_of_taps(const struct grouped_gradient *g, const struct part *part, const float *line,
                        const float *dy, float *sums)
{
    const struct tr_sliding_window *w = &g->op->window;
    const int64_t channels = g->groups;
    int32_t ow = 0;
    while (ow < w->out_w) {
        const struct pool_range taps =
            pool_taps(ow, w->stride_w, w->pad_left, w->dilation_w, w->kernel_w, w->in_w);
        const int64_t x = ((int64_t)ow * w->stride_w - w->pad_left) * channels + part->c;
        int32_t count = 1;
        if (taps.begin > 0 || taps.end < w->kernel_w) {
            border_pixel(line + x, dy + ow * channels + part->c, channels, taps.begin, taps.end, part->n,
                         sums);
        } else {
            /* While the last tap lies inside the image. */
            count = (w->in_w - w->kernel_w + w->pad_left - ow * w->stride_w) / w->stride_w + 1;
            count = (int32_t)smaller(count, w->out_w - ow);
            whole_line(line + x, dy + ow * channels + part->c, channels, w->stride_w * channels, count,
                       w->kernel_w, part->n, sums);
        }
        ow += count;
    }
}

/* A line of output pixels against one tap. */
static void line_of_tap(const struct grouped_gradient *g, const struct part *part, const float *line,
                        const float *dy, float *sums)
{
    const struct tr_sliding_window *w = &g->op->window;
    const int64_t channels = g->groups, tap = part->tap * w->dilation_w - w->pad_left;
    vf sum[DEPTHWISE_VECTORS];
    for (int v = 0; v < DEPTHWISE_VECTORS; v++) sum[v] = v_load(sums + v * VW);
    for (int32_t ow = 0; ow < w->out_w; ow++) {
        const int64_t iw = (int64_t)ow * w->stride_w + tap;
        if (iw < 0 || iw >= w->in_w) continue;
        const float *x = line + iw * channels + part->c, *d = dy + ow * channels + part->c;
        if (part->n == DEPTHWISE_BLOCK) {
            for (int v = 0; v < DEPTHWISE_VECTORS; v++)
                sum[v] = v_fma(v_load(x + v * VW), v_load(d + v * VW), sum[v]);
        } else {
            for (int v = 0; v < DEPTHWISE_VECTORS; v++)
                if (v * VW < part->n)
                    sum[v] = v_fma(v_load_part(x + v * VW, rest(part->n, v)),
                                   v_load_part(d + v * VW, rest(part->n, v)), sum[v]);
        }
    }
    for (int v = 0; v < DEPTHWISE_VECTORS; v++) v_store(sums + v * VW, sum[v]);
}

static void microbatch(const struct grouped_gradient *g, const struct part *part, int32_t number, float *sums)
{
    const struct tr_op_conv_backward_weights *op = g->op;
    const struct tr_sliding_window *w = &op->window;
    const int64_t line = (int64_t)w->in_w * g->groups, out_line = (int64_t)w->out_w * g->groups;
    const int64_t row_floats = (int64_t)(g->whole_rows ? w->kernel_w : 1) * DEPTHWISE_BLOCK;
    for (int64_t i = 0; i < part->floats; i++) sums[i] = 0;
    for (int64_t r = op->cut.row[number]; r < op->cut.row[number + 1]; r++)
        for (int32_t oh = 0; oh < w->out_h; oh++) {
            const float *dy = op->dy + (r * w->out_h + oh) * out_line;
            for (int32_t kh = part->row; kh < part->row_end; kh++) {
                const int64_t ih = (int64_t)oh * w->stride_h + kh * w->dilation_h - w->pad_top;
                if (ih < 0 || ih >= w->in_h) continue;
                const float *x = op->x + (r * w->in_h + ih) * line;
                float *row = sums + (kh - part->row) * row_floats;
                if (g->whole_rows)
                    row_of_taps(g, part, x, dy, row);
                else
                    line_of_tap(g, part, x, dy, row);
            }
        }
}

static void write(const struct grouped_gradient *g, const struct part *part, const float *sums, float *dw)
{
    const int32_t kernel_w = g->op->window.kernel_w;
    const int64_t rows = part->floats / DEPTHWISE_BLOCK;
    float *to = dw + ((int64_t)part->row * kernel_w + part->tap) * g->groups + part->c;
    for (int64_t k = 0; k < rows; k++)
        for (int64_t i = 0; i < part->n; i++) to[k * g->groups + i] = sums[k * DEPTHWISE_BLOCK + i];
}

void depthwise_gradient(const struct grouped_gradient *g, int64_t unit, float *sums)
{
    const struct part part = part_of(g, unit);
    const struct tr_cut *cut = &g->op->cut;
    for (int32_t node = 0; node < cut->nodes; node++) {
        struct tr_tree_fold fold = {0};
        const int32_t begin = cut->bound[node], end = cut->bound[node + 1];
        if (begin == end)
            for (int64_t i = 0; i < part.floats; i++) sums[i] = 0;
        for (int32_t i = begin; i < end; i++) {
            microbatch(g, &part, i, sums + fold.waiting * part.floats);
            tr_tree_push(&fold, i + 1 == end);
            grouped_combine(&fold, sums, part.floats);
        }
        write(g, &part, sums, g->op->dw + node * cut->stride);
    }
}
