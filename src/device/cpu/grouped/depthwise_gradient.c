/* The weight gradient of depthwise convolutions, by vectors of channels. Where the kernel's rows have copies
 * of their own, the sums of a vector, of one kernel row or of all, stay in registers along a line of output
 * pixels, and an input that several pixels read is loaded once for all of them; those of a unit wait in the
 * member's scratch between lines. Other kernels go tap by tap, with several vectors of channels under way.
 *
 * Every sum takes its products in the order of lines and pixels, whichever way it goes. Sums of channels that
 * do not exist are formed too, of +0, and not written.
 */
#include "device/cpu/convolutions/pool.h"
#include "device/cpu/grouped/grouped.h"

/* The work of a unit: channels from c on, rows [row, row_end) of the kernel and, where it has one tap,
   column `tap`. */
struct part {
    int64_t c, n; /* n: number of channels that exist */
    int32_t row, row_end, tap;
    int64_t floats; /* its sums: [rows][columns][g->block] */
};

static struct part part_of(const struct grouped_gradient *g, int64_t unit)
{
    const struct tr_sliding_window *w = &g->op->window;
    const int64_t each = !g->whole_rows ? (int64_t)w->kernel_h * w->kernel_w : g->by_row ? w->kernel_h : 1;
    struct part part = {.c = unit / each * g->block};
    part.n = smaller(g->block, g->groups - part.c);
    if (!g->whole_rows) {
        part.row = (int32_t)(unit % each / w->kernel_w);
        part.tap = (int32_t)(unit % each % w->kernel_w);
    } else if (g->by_row) {
        part.row = (int32_t)(unit % each);
    }
    part.row_end = g->whole_rows && !g->by_row ? w->kernel_h : part.row + 1;
    part.floats = (int64_t)(part.row_end - part.row) * (g->whole_rows ? w->kernel_w : 1) * g->block;
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

/* Neighbouring lines of output pixels that meet the same kernel rows, and the lines of the image under them,
   from the unit's channels on. */
struct line {
    const float *x[DEPTHWISE_ROWS]; /* under each kernel row, where the first tap of pixel 0 would be */
    const float *dy;
    int32_t count;                              /* lines */
    int64_t x_next, dy_next;                    /* floats from a line to the next */
    int64_t channels;                           /* floats between pixels */
    int32_t pixels, step, full_begin, full_end; /* [full_begin, full_end) have all taps of a kernel row */
    int32_t first, last; /* columns of the image: [first, last), counted from tap 0 of pixel 0 */
};

/* Of a line whose pixel 0 has tap 0 at column -pad_left. */
static void find_full(const struct tr_sliding_window *w, struct line *line)
{
    int32_t end = (w->in_w - w->kernel_w + w->pad_left) >= 0
                      ? (w->in_w - w->kernel_w + w->pad_left) / w->stride_w + 1
                      : 0;
    line->pixels = w->out_w;
    line->step = w->stride_w;
    line->first = w->pad_left;
    line->last = w->pad_left + w->in_w;
    line->full_begin = (int32_t)smaller((w->pad_left + w->stride_w - 1) / w->stride_w, w->out_w);
    line->full_end = (int32_t)smaller(end, w->out_w);
    if (line->full_end < line->full_begin) line->full_end = line->full_begin;
}

#if V_SHAPES
/* A pixel that may lack taps. */
V_INLINE void edge(const struct line *line, int32_t pixel, int64_t c, const int rows, const int kernel,
                   const int vectors, bool whole, int64_t n, vf *sum)
{
    const int32_t at = pixel * line->step;
    vf d[DEPTHWISE_TOGETHER];
    V_UNROLL for (int v = 0; v < vectors; v++) d[v] =
        load(line->dy + pixel * line->channels + c + v * VW, whole, n);
    V_UNROLL for (int k = 0; k < kernel; k++)
    {
        if (at + k < line->first || at + k >= line->last) continue;
        V_UNROLL for (int r = 0; r < rows; r++)
        {
            const float *x = line->x[r] + (at + k) * line->channels + c;
            vf *own = sum + (r * kernel + k) * vectors;
            V_UNROLL for (int v = 0; v < vectors; v++) own[v] =
                v_fma(load(x + v * VW, whole, n), d[v], own[v]);
        }
    }
}

/* `count` pixels from `pixel` on with all taps, `step` columns apart. Ascending inputs give each sum its
   pixels in ascending order. */
V_INLINE void full_pixels(const struct line *line, int32_t pixel, int64_t c, const int count, const int step,
                          const int rows, const int kernel, const int vectors, const int v, bool whole,
                          int64_t n, vf *sum)
{
    vf d[DEPTHWISE_PIXELS];
    V_UNROLL for (int p = 0; p < count; p++) d[p] =
        load(line->dy + (pixel + p) * line->channels + c, whole, n);
    V_UNROLL for (int r = 0; r < rows; r++)
    {
        const float *x = line->x[r] + (int64_t)pixel * step * line->channels + c;
        V_UNROLL for (int s = 0; s < (count - 1) * step + kernel; s++)
        {
            vf from = load(x + s * line->channels, whole, n);
            V_KEEP(from);
            V_UNROLL for (int p = 0; p < count; p++)
            {
                const int k = s - p * step;
                vf *own = sum + (r * kernel + k) * vectors + v;
                if (k >= 0 && k < kernel) *own = v_fma(from, d[p], *own);
            }
        }
    }
}

/* The lines for some vectors of channels, c floats into the unit, and `rows` kernel rows whose sums are at
   `sums`, `block` floats apart. step: that of the line, or 0: any. */
V_INLINE void vector_line(const struct line *line, int64_t c, int64_t block, const int step, const int rows,
                          const int kernel, const int vectors, const int pixels, bool whole, int64_t n,
                          float *sums)
{
    vf sum[DEPTHWISE_SUMS];
    struct line one = *line;
    V_UNROLL for (int k = 0; k < rows * kernel; k++)
    {
        V_UNROLL for (int v = 0; v < vectors; v++) sum[k * vectors + v] =
            v_load(sums + k * block + c + v * VW);
    }
    for (int32_t i = 0; i < line->count; i++) {
        int32_t pixel = 0;
        for (; pixel < one.full_begin; pixel++) edge(&one, pixel, c, rows, kernel, vectors, whole, n, sum);
        for (; step > 0 && pixel + pixels <= one.full_end; pixel += pixels) {
            V_UNROLL for (int v = 0; v < vectors; v++)
                full_pixels(&one, pixel, c + v * VW, pixels, step, rows, kernel, vectors, v, whole, n, sum);
        }
        for (; pixel < one.pixels; pixel++) edge(&one, pixel, c, rows, kernel, vectors, whole, n, sum);
        V_UNROLL for (int r = 0; r < rows; r++) one.x[r] += one.x_next;
        one.dy += one.dy_next;
    }
    V_UNROLL for (int k = 0; k < rows * kernel; k++)
    {
        V_UNROLL for (int v = 0; v < vectors; v++)
            v_store(sums + k * block + c + v * VW, sum[k * vectors + v]);
    }
}

V_INLINE void lines(const struct line *line, int64_t block, const int step, const int rows, const int kernel,
                    const int vectors, const int pixels, int64_t n, float *sums)
{
    int64_t c = 0;
    for (; c + vectors * VW <= n; c += vectors * VW)
        vector_line(line, c, block, step, rows, kernel, vectors, pixels, true, VW, sums);
    for (; c + VW <= n; c += VW)
        vector_line(line, c, block, step, rows, kernel, 1, DEPTHWISE_PIXELS, true, VW, sums);
    if (c < n) vector_line(line, c, block, step, rows, kernel, 1, DEPTHWISE_PIXELS, false, n - c, sums);
}

V_INLINE void lines_by_step(const struct line *line, int64_t block, const int rows, const int kernel,
                            const int vectors, const int pixels, int64_t n, float *sums)
{
    if (line->step == 1)
        lines(line, block, 1, rows, kernel, vectors, pixels, n, sums);
    else if (line->step == 2)
        lines(line, block, 2, rows, kernel, vectors, pixels, n, sums);
    else
        lines(line, block, 0, rows, kernel, vectors, pixels, n, sums);
}

/* Three rows of three taps at once, where a vector is a line of the cache and there are registers enough;
   else row by row, with as many vectors and pixels as registers allow. */
static void three_rows(const struct line *line, int64_t block, int64_t n, float *sums)
{
    lines_by_step(line, block, 3, 3, 1, 4, n, sums);
}
static void one_row(const struct line *line, int64_t block, int32_t kernel, int64_t n, float *sums)
{
    if (kernel == 3)
        lines_by_step(line, block, 1, 3, 4, 2, n, sums);
    else if (kernel == 5)
        lines_by_step(line, block, 1, 5, 2, 4, n, sums);
    else
        lines_by_step(line, block, 1, 7, 1, 4, n, sums);
}

/* A line of output pixels against the rows of the unit that lie in the image: kernel row `row` has the line
   at `x`, later ones the lines below, `below` floats apart. */
static void rows_of_taps(const struct grouped_gradient *g, const struct part *part, struct line *line,
                         const float *x, int64_t below, int32_t rows, float *sums)
{
    const struct tr_sliding_window *w = &g->op->window;
    const float *first = x - (int64_t)w->pad_left * g->groups + part->c;
    if (VW >= 16 && rows == 3 && w->kernel_w == 3) {
        for (int32_t r = 0; r < rows; r++) line->x[r] = first + r * below;
        three_rows(line, g->block, part->n, sums);
        return;
    }
    for (int32_t r = 0; r < rows; r++) {
        line->x[0] = first + r * below;
        one_row(line, g->block, w->kernel_w, part->n, sums + r * w->kernel_w * g->block);
    }
}
#else
static void rows_of_taps(const struct grouped_gradient *g, const struct part *part, struct line *line,
                         const float *x, int64_t below, int32_t rows, float *sums)
{
    (void)g, (void)part, (void)line, (void)x, (void)below, (void)rows,
        (void)sums; /* g->whole_rows is false */
}
#endif

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

/* The rows of the unit that lie in the image under output line oh. */
static struct pool_range rows_in(const struct tr_sliding_window *w, const struct part *part, int32_t oh)
{
    struct pool_range rows = pool_taps(oh, w->stride_h, w->pad_top, w->dilation_h, w->kernel_h, w->in_h);
    rows.begin = (int32_t)larger(rows.begin, part->row);
    rows.end = (int32_t)smaller(rows.end, part->row_end);
    return rows;
}

/* How many output lines from oh on, at most DEPTHWISE_LINES, meet the same rows. */
static int32_t alike(const struct tr_sliding_window *w, const struct part *part, int32_t oh,
                     struct pool_range rows)
{
    int32_t count = 1;
    while (count < DEPTHWISE_LINES && oh + count < w->out_h) {
        const struct pool_range next = rows_in(w, part, oh + count);
        if (next.begin != rows.begin || next.end != rows.end) break;
        count++;
    }
    return count;
}

static void microbatch(const struct grouped_gradient *g, const struct part *part, int32_t number, float *sums)
{
    const struct tr_op_conv_backward_weights *op = g->op;
    const struct tr_sliding_window *w = &op->window;
    const int64_t in_line = (int64_t)w->in_w * g->groups, out_line = (int64_t)w->out_w * g->groups;
    const int64_t row_floats = (int64_t)(g->whole_rows ? w->kernel_w : 1) * g->block;
    struct line line = {.channels = g->groups, .x_next = w->stride_h * in_line, .dy_next = out_line};
    find_full(w, &line);
    for (int64_t i = 0; i < part->floats; i++) sums[i] = 0;
    for (int64_t r = op->cut.row[number]; r < op->cut.row[number + 1]; r++)
        for (int32_t oh = 0, count; oh < w->out_h; oh += count) {
            const struct pool_range rows = rows_in(w, part, oh);
            count = g->whole_rows ? alike(w, part, oh, rows) : 1;
            if (rows.begin >= rows.end) continue;
            const int64_t ih = (int64_t)oh * w->stride_h + rows.begin * w->dilation_h - w->pad_top;
            const float *x = op->x + (r * w->in_h + ih) * in_line;
            const float *dy = op->dy + (r * w->out_h + oh) * out_line;
            float *row = sums + (rows.begin - part->row) * row_floats;
            if (g->whole_rows) {
                line.dy = dy + part->c;
                line.count = count;
                rows_of_taps(g, part, &line, x, w->dilation_h * in_line, rows.end - rows.begin, row);
            } else {
                line_of_tap(g, part, x, dy, row);
            }
        }
}

static void write(const struct grouped_gradient *g, const struct part *part, const float *sums, float *dw)
{
    const int32_t kernel_w = g->op->window.kernel_w;
    const int64_t rows = part->floats / g->block;
    float *to = dw + ((int64_t)part->row * kernel_w + part->tap) * g->groups + part->c;
    for (int64_t k = 0; k < rows; k++)
        for (int64_t i = 0; i < part->n; i++) to[k * g->groups + i] = sums[k * g->block + i];
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
