/* The weight gradient of depthwise convolutions, by vectors of channels. Where a kernel row has a copy of its
 * own, several output pixels of a line meet it at once: for each vector of channels their gradients and the
 * row's sums are in registers, and an input that several of them read is loaded once. The sums of a unit wait
 * in the member's scratch meanwhile. Other kernels go tap by tap, with several vectors of channels under way.
 *
 * Every sum takes its products in the order of lines and pixels, whichever way it goes. The last vector of
 * channels begins early enough to be whole: it has sums of its own for the channels that it shares with the
 * one before, which are not written. Tap by tap, sums of channels that do not exist are formed, of +0, and
 * not written.
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

/* Channels that are left of n after those before vector v. */
static inline int64_t rest(int64_t n, int v)
{
    return n > v * VW ? smaller(VW, n - v * VW) : 0;
}

/* A line of output pixels and the lines of the image under it, from the unit's channels on. */
struct line {
    const float *x; /* under the first kernel row, where the first tap of pixel 0 would be */
    int64_t below;  /* floats from a kernel row's line to the next */
    const float *dy;
    int64_t channels, n, block; /* floats between pixels; channels of the unit; floats between sums */
    int32_t pixels, step;
    int32_t first, last; /* columns of the image: [first, last), counted from tap 0 of pixel 0 */
};

#if V_SHAPES
/* The products of `count` pixels, whose gradients are d, with a kernel row. x: under the first tap of the
   first pixel. edges: inputs before `begin` and from `end` on do not exist. Ascending inputs give each sum
   its pixels in ascending order. */
V_INLINE void kernel_row(const float *x, int64_t channels, const vf *d, const int count, const int step,
                         const int kernel, const bool edges, int32_t begin, int32_t end, int64_t block,
                         float *sums)
{
    vf sum[DEPTHWISE_LARGEST];
    V_UNROLL for (int k = 0; k < kernel; k++) sum[k] = v_load(sums + k * block);
    V_UNROLL for (int s = 0; s < (count - 1) * step + kernel; s++)
    {
        if (edges && (s < begin || s >= end)) continue;
        vf from = v_load(x + s * channels);
        V_KEEP(from);
        V_UNROLL for (int p = 0; p < count; p++)
        {
            const int k = s - p * step;
            if (k >= 0 && k < kernel) sum[k] = v_fma(from, d[p], sum[k]);
        }
    }
    V_UNROLL for (int k = 0; k < kernel; k++) v_store(sums + k * block, sum[k]);
}

/* `count` pixels from `pixel` on with `rows` neighbouring kernel rows, whose sums are at `sums`. */
V_INLINE void some_pixels(const struct line *line, int32_t pixel, const float *x, const int rows,
                          const int count, const int step, const int kernel, const bool edges, float *sums)
{
    const int64_t channels = line->channels, block = line->block;
    const int32_t begin = line->first - pixel * step, end = line->last - pixel * step;
    for (int64_t slot = 0; slot < line->n; slot += VW) {
        const int64_t c = smaller(slot, line->n - VW);
        const float *dy = line->dy + pixel * channels + c;
        vf d[DEPTHWISE_PIXELS];
        V_UNROLL for (int p = 0; p < count; p++) d[p] = v_load(dy + p * channels);
        V_UNROLL for (int r = 0; r < rows; r++)
            kernel_row(x + r * line->below + (int64_t)pixel * step * channels + c, channels, d, count, step,
                       kernel, edges, begin, end, block, sums + r * kernel * block + slot);
    }
}

/* A line with `rows` neighbouring kernel rows. most: pixels at once; one less where that fits the line.
   apart: inputs that all exist have a copy of their own. */
V_INLINE void some_rows(const struct line *line, const float *x, const int rows, const int most,
                        const int step, const int kernel, const bool apart, float *sums)
{
    const int32_t width = line->pixels;
    int32_t pixel = 0;
    const int32_t each = apart && width % most != 0 && width % (most - 1) == 0 ? most - 1 : most;
    for (; pixel + each <= width; pixel += each) {
        const bool inside = pixel * step >= line->first && (pixel + each - 1) * step + kernel <= line->last;
        if (apart && each < most)
            some_pixels(line, pixel, x, rows, most - 1, step, kernel, true, sums);
        else if (apart && inside)
            some_pixels(line, pixel, x, rows, most, step, kernel, false, sums);
        else
            some_pixels(line, pixel, x, rows, most, step, kernel, true, sums);
    }
    for (; pixel + 3 <= width; pixel += 3) some_pixels(line, pixel, x, rows, 3, step, kernel, true, sums);
    for (; pixel < width; pixel++) some_pixels(line, pixel, x, rows, 1, step, kernel, true, sums);
}

V_INLINE void row_by_row(const struct line *line, int32_t rows, const int most, const int step,
                         const int kernel, const bool apart, float *sums)
{
    for (int32_t r = 0; r < rows; r++)
        some_rows(line, line->x + r * line->below, 1, most, step, kernel, apart,
                  sums + r * kernel * line->block);
}

static void rows_of_taps(const struct line *line, int32_t kernel, int32_t rows, float *sums)
{
    if (line->step == 1 && kernel == 3 && rows == 3)
        some_rows(line, line->x, 3, 8, 1, 3, true, sums);
    else if (line->step == 1 && kernel == 3)
        row_by_row(line, rows, 8, 1, 3, false, sums);
    else if (line->step == 1 && kernel == 5)
        row_by_row(line, rows, 8, 1, 5, true, sums);
    else if (line->step == 1)
        row_by_row(line, rows, 7, 1, 7, false, sums);
    else if (kernel == 3)
        row_by_row(line, rows, 7, 2, 3, true, sums);
    else
        row_by_row(line, rows, 6, 2, 5, false, sums);
}
#else
static void rows_of_taps(const struct line *line, int32_t kernel, int32_t rows, float *sums)
{
    (void)line, (void)kernel, (void)rows, (void)sums; /* g->whole_rows is false */
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

static void microbatch(const struct grouped_gradient *g, const struct part *part, int32_t number, float *sums)
{
    const struct tr_op_conv_backward_weights *op = g->op;
    const struct tr_sliding_window *w = &op->window;
    const int64_t in_line = (int64_t)w->in_w * g->groups, out_line = (int64_t)w->out_w * g->groups;
    const int64_t row_floats = (int64_t)(g->whole_rows ? w->kernel_w : 1) * g->block;
    struct line line = {.below = w->dilation_h * in_line,
                        .channels = g->groups,
                        .n = part->n,
                        .block = g->block,
                        .pixels = w->out_w,
                        .step = w->stride_w,
                        .first = w->pad_left,
                        .last = w->pad_left + w->in_w};
    for (int64_t i = 0; i < part->floats; i++) sums[i] = 0;
    for (int64_t r = op->cut.row[number]; r < op->cut.row[number + 1]; r++)
        for (int32_t oh = 0; oh < w->out_h; oh++) {
            const struct pool_range rows = rows_in(w, part, oh);
            if (rows.begin >= rows.end) continue;
            const int64_t ih = (int64_t)oh * w->stride_h + rows.begin * w->dilation_h - w->pad_top;
            const float *x = op->x + (r * w->in_h + ih) * in_line;
            const float *dy = op->dy + (r * w->out_h + oh) * out_line;
            float *row = sums + (rows.begin - part->row) * row_floats;
            if (g->whole_rows) {
                line.x = x - (int64_t)w->pad_left * g->groups + part->c;
                line.dy = dy + part->c;
                rows_of_taps(&line, w->kernel_w, rows.end - rows.begin, row);
            } else {
                line_of_tap(g, part, x, dy, row);
            }
        }
}

static void write(const struct grouped_gradient *g, const struct part *part, const float *sums, float *dw)
{
    const int32_t kernel_w = g->op->window.kernel_w;
    const int64_t rows = part->floats / g->block;
    /* The last vector of whole rows has the last VW channels, the first of them a second time. */
    const int64_t alone = g->whole_rows ? part->n / VW * VW : part->n;
    const int64_t skipped = alone < part->n ? VW - (part->n - alone) : 0;
    float *to = dw + ((int64_t)part->row * kernel_w + part->tap) * g->groups + part->c;
    for (int64_t k = 0; k < rows; k++)
        for (int64_t i = 0; i < part->n; i++)
            to[k * g->groups + i] = sums[k * g->block + i + (i < alone ? 0 : skipped)];
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
