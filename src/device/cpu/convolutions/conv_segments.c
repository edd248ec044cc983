/* Finds the runs of a block's pixels that have a tap inside the image. */
#include "device/cpu/convolutions/conv_gradient.h"
#include "device/cpu/sizes.h"

/* The first source line that output line `oh` reads, clamped into the image. */
static int64_t first_source(const struct tr_sliding_window *w, int64_t oh)
{
    return smaller(larger(oh * w->stride_h - w->pad_top, 0), w->in_h);
}

/* One beyond the last source line that output line `oh` reads, clamped likewise. */
static int64_t last_source(const struct tr_sliding_window *w, int64_t oh)
{
    const int64_t last = oh * w->stride_h - w->pad_top + (int64_t)(w->kernel_h - 1) * w->dilation_h + 1;
    return smaller(larger(last, 0), w->in_h);
}

struct conv_portion conv_portion_at(const struct tr_sliding_window *w, int64_t line, int64_t end)
{
    struct conv_portion p = {.image = line / w->out_h, .oh = line % w->out_h};
    p.oh_end = smaller(w->out_h, p.oh + end - line);
    p.ih = first_source(w, p.oh);
    p.ih_end = larger(p.ih, last_source(w, p.oh_end - 1));
    return p;
}

/* The outputs [*begin, *end) of an axis for which the tap at `offset` (tap * dilation - pad) is inside. */
static void valid_range(int64_t offset, int64_t stride, int64_t in, int64_t out, int64_t *begin, int64_t *end)
{
    *begin = offset < 0 ? divide_up(-offset, stride) : 0;
    *end = in - offset > 0 ? smaller(out, divide_up(in - offset, stride)) : 0;
    if (*begin > *end) *begin = *end;
}

/* Most runs of a line's pixels that have the same taps of a kernel row inside the image. */
#define ROW_RUNS (2 * ROW_INPUTS + 1)

/* The segments of an output line for a whole kernel row, whose taps are neighbours: runs of pixels with the
   same taps inside; each has the bits of its inputs. Returns their number. */
static int64_t runs_of_row(const struct tr_sliding_window *w, int64_t channels,
                           struct tile_segment runs[ROW_RUNS])
{
    uint32_t before = 0;
    int64_t count = 0;
    for (int64_t ow = 0; ow < w->out_w; ow++) {
        const int64_t left = ow * w->stride_w - w->pad_left;
        const int64_t first = larger(0, -left), last = smaller(w->kernel_w, w->in_w - left);
        if (first >= last) {
            before = 0;
            continue;
        }
        const uint32_t rows =
            (uint32_t)((UINT64_C(1) << last * channels) - (UINT64_C(1) << first * channels));
        if (rows == before)
            runs[count - 1].length++;
        else
            runs[count++] =
                (struct tile_segment){.a = (int32_t)left, .b = (int32_t)ow, .length = 1, .only = rows};
        before = rows;
    }
    return count;
}

/* Appends the segments of an output line for a part of a kernel row: the runs that have some of its inputs.
   Returns the new end of the list. */
static struct tile_segment *line_of_part(struct conv_row_part part, const struct tile_segment *runs,
                                         int64_t count, int64_t source, int64_t target,
                                         struct tile_segment *to)
{
    const uint32_t all = (uint32_t)((UINT64_C(1) << part.count) - 1);
    for (int64_t i = 0; i < count; i++) {
        const uint32_t only = runs[i].only >> part.first & all;
        if (only == 0) continue;
        *to++ = (struct tile_segment){.a = runs[i].a + (int32_t)source,
                                      .b = runs[i].b + (int32_t)target,
                                      .length = runs[i].length,
                                      .only = only == all ? 0 : only};
    }
    return to;
}

/* The output lines of a portion for which a kernel line is inside the image. */
struct kernel_lines {
    int64_t count;
    int64_t source; /* the first one's source line */
    int64_t target; /* the first one, counted from the portion's first */
};

static struct kernel_lines lines_of(const struct tr_sliding_window *w, const struct conv_portion *p,
                                    int64_t kh)
{
    const int64_t offset = kh * w->dilation_h - w->pad_top;
    int64_t begin, end;
    valid_range(offset, w->stride_h, w->in_h, w->out_h, &begin, &end);
    begin = larger(begin, p->oh);
    end = smaller(end, p->oh_end);
    return (struct kernel_lines){larger(0, end - begin), begin * w->stride_h + offset, begin - p->oh};
}

/* Appends the segments of a portion for tap (kh, kw); `packed` is the first of its packed pixels, `target`
   of its outputs. Returns the new end of the list. */
static struct tile_segment *portion_of_tap(const struct conv_gradient *g, const struct conv_block *block,
                                           const struct conv_portion *p, int64_t kh, int64_t kw,
                                           int64_t packed, int64_t target, struct tile_segment *to)
{
    const struct tr_sliding_window *w = &g->op->window;
    const struct kernel_lines lines = lines_of(w, p, kh);
    const int64_t offset = kw * w->dilation_w - w->pad_left;
    int64_t begin, end;
    valid_range(offset, w->stride_w, w->in_w, w->out_w, &begin, &end);
    if (lines.count == 0 || begin == end) return to;
    const int64_t column = begin * w->stride_w + offset;
    int64_t source, step, line_step; /* from pixel to pixel, from line to line */
    if (g->in_place) {
        source = ((p->image - block->line / w->out_h) * w->in_h + lines.source) * w->in_w + column;
        step = w->stride_w;
        line_step = w->stride_h * w->in_w;
    } else {
        const struct conv_plane plane = conv_plane_of(w, p, lines.source - p->ih, column);
        source =
            packed + plane.at + (lines.source - p->ih) / w->stride_h * plane.columns + column / w->stride_w;
        step = 1;
        line_step = plane.columns;
    }
    target += lines.target * w->out_w + begin;
    const bool whole = end - begin == w->out_w && line_step == step * w->out_w;
    const int64_t count = whole ? 1 : lines.count, length = whole ? lines.count * w->out_w : end - begin;
    for (int64_t i = 0; i < count; i++)
        *to++ = (struct tile_segment){.a = (int32_t)(source + i * line_step),
                                      .b = (int32_t)(target + i * w->out_w),
                                      .length = (int32_t)length};
    return to;
}

/* The same for part `tap` of the kernel rows. */
static struct tile_segment *portion_of_part(const struct conv_gradient *g, const struct conv_block *block,
                                            const struct conv_portion *p, int64_t tap, int64_t target,
                                            const struct tile_segment *runs, int64_t count,
                                            struct tile_segment *to)
{
    const struct tr_sliding_window *w = &g->op->window;
    const struct kernel_lines lines = lines_of(w, p, tap / g->parts);
    const int64_t first = (p->image - block->line / w->out_h) * w->in_h + lines.source;
    for (int64_t i = 0; i < lines.count; i++)
        to = line_of_part(conv_row_part(g, tap), runs, count, (first + i * w->stride_h) * w->in_w,
                          target + (lines.target + i) * w->out_w, to);
    return to;
}

void conv_list_segments(const struct conv_gradient *g, const struct conv_block *block)
{
    const struct tr_sliding_window *w = &g->op->window;
    const int64_t end = block->line + block->lines;
    struct tile_segment runs[ROW_RUNS];
    const int64_t run_count = g->by_row ? runs_of_row(w, g->op->in_c, runs) : 0;
    for (int64_t tap = 0; tap < g->taps; tap++) {
        struct tile_segment *list = block->segments + tap * g->list, *to = list;
        int32_t *starts = block->starts + tap * (g->lines + 1);
        int64_t packed = 0;
        for (int64_t line = block->line; line < end;) {
            const struct conv_portion p = conv_portion_at(w, line, end);
            const int64_t target = (line - block->line) * w->out_w;
            starts[line - block->line] = (int32_t)(to - list);
            to = g->by_row
                     ? portion_of_part(g, block, &p, tap, target, runs, run_count, to)
                     : portion_of_tap(g, block, &p, tap / w->kernel_w, tap % w->kernel_w, packed, target, to);
            packed += conv_planes_pixels(w, p.ih_end - p.ih);
            line += p.oh_end - p.oh;
        }
        starts[block->lines] = (int32_t)(to - list);
    }
}
