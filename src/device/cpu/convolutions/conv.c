/* Convolution forward and its input gradient: one walk over target pixels with two tables (conv_axis.h).
 *
 * A tile holds up to TILE_ROWS *images* at one target pixel, so that the taps that exist are the same for the
 * whole tile, padding costs nothing, and every tap is a segment of the tile kernel. The images of a tile are
 * interleaved once, to [y][x][channel][image], and serve all filters; neighbouring taps of a kernel row are
 * neighbours in both packed operands and make one segment. With fewer images than fill a tile, its rows are
 * neighbouring pixels of one image instead, gathered tap by tap.
 *
 * With a pool behind it, the target rows of a row of windows stay in the member's scratch, and what the pool
 * makes of them is written. With one before it, backward, the source rows are made where they are packed.
 */
#include "base/fail.h"
#include "device/cpu/vectors/ahead.h"
#include "device/cpu/conv_axis.h"
#include "device/cpu/cpu.h"
#include "device/cpu/products/pack.h"
#include "device/cpu/convolutions/pool.h"
#include "device/cpu/sizes.h"
#include "device/cpu/products/tile.h"

#include <stdbool.h>

/* Packed images of a tile take about this much of the second-level cache, in floats (room.h), if a target row
   does not need more. */
#define BAND_FLOATS (256 * 1024)
/* Fewer images than this leave the tile kernel waiting for its own sums. */
#define IMAGES_LEAST (TILE_ROWS < 4 ? 2 : 4)

/* A pass in the terms of the walk. */
struct conv {
    struct cpu_device *cpu;
    bool backward;
    int64_t rows;
    int32_t source_h, source_w, source_c, target_h, target_w, target_c;
    int32_t kernel_h, kernel_w;
    const float *source; /* [rows][image_h][image_w][source_c] */
    /* Of which every so many lines and pixels are sources: all, but where a kernel of one tap steps over
       some. */
    int32_t image_h, image_w, every_h, every_w;
    float *target; /* [rows][target_h][target_w][target_c] */
    const float *weights;
    const float *bias; /* [target_c] or NULL */
    enum tr_activation activation;
    float slope;
    const struct tr_op_pool_forward *pool;    /* forward: behind it, or NULL */
    const struct tr_op_pool_backward *unpool; /* backward: what gives the source, or NULL */
    int32_t unit;                             /* target rows that are computed together */
    struct conv_axis h, w;
    /* Parts of the shared scratch. */
    float *packed;      /* [panel][kernel_h][kernel_w][source_c][TILE_COLUMNS], taps in the walk's order */
    float *packed_bias; /* [panel][TILE_COLUMNS] or NULL */
    int64_t panel;      /* floats in a panel of packed weights */
    int64_t band_rows;  /* source rows that a member's scratch holds */
    /* Where in it, in bytes, the list of segments is, and lines of images. */
    int64_t member_segments, member_lines;
};

/* A member's scratch. */
struct memory {
    float *a;
    struct tile_segment *segments;
    float *lines;
};

/* Packs a member's share of the weights. */
static void pack_weights(void *arguments, int member, int size)
{
    const struct conv *c = arguments;
    int64_t begin, end;
    const int64_t taps = (int64_t)c->kernel_h * c->kernel_w, depth = taps * c->source_c;
    if (!c->backward) {
        tr_team_share(depth, 16, member, size, &begin, &end);
        pack_panels(c->packed + begin * TILE_COLUMNS, c->panel, c->weights + begin * c->target_c, c->target_c,
                    c->target_c, end - begin);
        return;
    }
    const int64_t panels = divide_up(c->target_c, TILE_COLUMNS);
    tr_team_share(taps * panels, 1, member, size, &begin, &end);
    for (int64_t i = begin; i < end; i++) {
        const int64_t tap = i / panels, column = i % panels * TILE_COLUMNS;
        pack_rows(c->packed + i % panels * c->panel + (taps - 1 - tap) * c->source_c * TILE_COLUMNS,
                  TILE_COLUMNS, c->weights + (tap * c->target_c + column) * c->source_c, c->source_c,
                  smaller(TILE_COLUMNS, c->target_c - column), c->source_c);
    }
}

/* What all tiles of a panel have in common. */
static struct tile panel_tile(const struct conv *c, int64_t column, const struct tile_segment *segments)
{
    return (struct tile){.segments = segments,
                         .b = c->packed + column / TILE_COLUMNS * c->panel,
                         .b_step = TILE_COLUMNS,
                         .b_unit = TILE_COLUMNS,
                         .columns = smaller(TILE_COLUMNS, c->target_c - column),
                         .bias = c->packed_bias ? c->packed_bias + column : NULL,
                         .activation = c->activation,
                         .slope = c->slope};
}

/* Target rows [h_begin, h_end) of `height` images, whose source rows from `first` on are packed. Row h_begin
   of the first image goes to `to`, other images to_step further. */
static void walk_images(const struct conv *c, int64_t height, int32_t h_begin, int32_t h_end,
                        const struct memory *memory, int32_t first, float *to, int64_t to_step)
{
    struct tile_segment *segments = memory->segments;
    for (int64_t column = 0; column < c->target_c; column += TILE_COLUMNS) {
        struct tile tile = panel_tile(c, column, segments);
        tile.a = memory->a;
        tile.a_step = tile.a_unit = height;
        tile.to_step = to_step;
        tile.to = to + column;
        for (int32_t h = h_begin; h < h_end; h++)
            for (int32_t w = 0; w < c->target_w; w++) {
                tile.count = 0;
                for (int32_t i = c->h.start[h]; i < c->h.start[h + 1]; i++)
                    for (int32_t j = c->w.start[w]; j < c->w.start[w + 1]; j++) {
                        const struct conv_run *y = c->h.runs + i, *x = c->w.runs + j;
                        segments[tile.count++] = (struct tile_segment){
                            .a = ((y->source - first) * c->source_w + x->source) * c->source_c,
                            .b = (y->kernel * c->kernel_w + x->kernel) * c->source_c,
                            .length = x->length * c->source_c};
                    }
                ahead_tile(tile.to + c->target_c, to_step, height, tile.columns);
                tile_compute(height, &tile);
                tile.to += c->target_c;
            }
    }
}

/* Packs source rows [first, last) of a tile of images. */
static void pack_images(const struct conv *c, int64_t image, int64_t height, int32_t first, int32_t last,
                        const struct memory *memory)
{
    const int64_t row = (int64_t)c->source_w * c->source_c;
    const int64_t line = (int64_t)c->image_w * c->source_c, image_size = line * c->image_h;
    if (c->every_h > 1 || c->every_w > 1) {
        float *to = memory->a;
        for (int32_t h = first; h < last; h++)
            for (int32_t w = 0; w < c->source_w; w++, to += c->source_c * height)
                pack_rows(to, height,
                          c->source + image * image_size + h * c->every_h * line +
                              (int64_t)w * c->every_w * c->source_c,
                          image_size, height, c->source_c);
        return;
    }
    if (!c->unpool) {
        pack_rows(memory->a, height, c->source + image * image_size + first * row, image_size, height,
                  (last - first) * row);
        return;
    }
    for (int32_t h = first; h < last; h++) {
        for (int64_t r = 0; r < height; r++)
            pool_backward_line(c->unpool, image + r, h, 0, c->source_c, memory->lines + r * row);
        pack_rows(memory->a + (h - first) * row * height, height, memory->lines, row, height, row);
    }
}

/* Target rows [begin, end) of a tile of images, in bands whose source rows fit into the scratch. */
static void convolve_images(const struct conv *c, int64_t image, int64_t height, int32_t begin, int32_t end,
                            const struct memory *memory)
{
    const int64_t row = (int64_t)c->target_w * c->target_c, image_size = row * c->target_h;
    while (begin < end) {
        int32_t stop = begin + c->unit, first, last, more_first, more_last;
        cpu_conv_axis_sources(&c->h, begin, stop, &first, &last);
        while (stop < end) {
            cpu_conv_axis_sources(&c->h, begin, stop + c->unit, &more_first, &more_last);
            if (more_last - more_first > c->band_rows) break;
            first = more_first;
            last = more_last;
            stop += c->unit;
        }
        if (last > first) pack_images(c, image, height, first, last, memory);
        if (!c->pool)
            walk_images(c, height, begin, stop, memory, first, c->target + image * image_size + begin * row,
                        image_size);
        for (int32_t h = begin; c->pool && h < stop; h += c->unit) {
            walk_images(c, height, h, h + c->unit, memory, first, memory->lines, c->unit * row);
            for (int64_t r = 0; r < height; r++)
                pool_forward_line(c->pool, image + r, h / c->unit, memory->lines + r * c->unit * row);
        }
        begin = stop;
    }
}

/* True if targets w and w + 1 meet the same taps, with sources that lie `*shift` apart. */
static bool alike(const struct conv_axis *axis, int32_t w, int32_t *shift)
{
    const struct conv_run *a = axis->runs + axis->start[w], *b = axis->runs + axis->start[w + 1];
    const int32_t count = axis->start[w + 1] - axis->start[w];
    if (count == 0 || axis->start[w + 2] - axis->start[w + 1] != count) return false;
    *shift = b->source - a->source;
    for (int32_t i = 0; i < count; i++)
        if (a[i].kernel != b[i].kernel || a[i].length != b[i].length || b[i].source - a[i].source != *shift)
            return false;
    return *shift > 0;
}

/* Target row h of one image to `target`, a tile being neighbouring pixels that meet the same taps. */
static void convolve_pixels(const struct conv *c, int64_t image, int32_t h, const struct memory *memory,
                            float *target)
{
    const float *source = c->source + image * c->image_h * c->image_w * c->source_c;
    float *a = memory->a;
    struct tile_segment *segments = memory->segments;
    for (int32_t w = 0; w < c->target_w;) {
        int32_t height = 1, shift = 1, next_shift;
        while (height < TILE_ROWS && w + height < c->target_w && alike(&c->w, w + height - 1, &next_shift) &&
               (height == 1 || next_shift == shift)) {
            shift = next_shift;
            height++;
        }
        int32_t steps = 0;
        int64_t count = 0;
        for (int32_t i = c->h.start[h]; i < c->h.start[h + 1]; i++)
            for (int32_t j = c->w.start[w]; j < c->w.start[w + 1]; j++) {
                const struct conv_run *y = c->h.runs + i, *x = c->w.runs + j;
                const int32_t depth = x->length * c->source_c;
                pack_rows(a + steps * height, height,
                          source + ((int64_t)y->source * c->every_h * c->image_w + x->source * c->every_w) *
                                       c->source_c,
                          (int64_t)shift * c->every_w * c->source_c, height, depth);
                segments[count++] = (struct tile_segment){
                    .a = steps, .b = (y->kernel * c->kernel_w + x->kernel) * c->source_c, .length = depth};
                steps += depth;
            }
        for (int64_t column = 0; column < c->target_c; column += TILE_COLUMNS) {
            struct tile tile = panel_tile(c, column, segments);
            tile.count = count;
            tile.a = a;
            tile.a_step = tile.a_unit = height;
            tile.to = target + w * c->target_c + column;
            tile.to_step = c->target_c;
            tile_compute(height, &tile);
        }
        w += height;
    }
}

/* Target rows [begin, end) of one image. */
static void convolve_image(const struct conv *c, int64_t image, int32_t begin, int32_t end,
                           const struct memory *memory)
{
    const int64_t row = (int64_t)c->target_w * c->target_c;
    for (int32_t h = begin; h < end; h += c->unit) {
        float *to = c->pool ? memory->lines : c->target + (image * c->target_h + h) * row;
        for (int32_t i = 0; i < c->unit; i++) convolve_pixels(c, image, h + i, memory, to + i * row);
        if (c->pool) pool_forward_line(c->pool, image, h / c->unit, memory->lines);
    }
}

static void convolve(void *arguments, int member, int size)
{
    const struct conv *c = arguments;
    char *scratch = cpu_scratch(c->cpu, member);
    const struct memory memory = {(float *)scratch, (struct tile_segment *)(scratch + c->member_segments),
                                  (float *)(scratch + c->member_lines)};
    const bool by_pixel = c->rows < IMAGES_LEAST && !c->unpool;
    /* Units of work are target rows of a tile, or rows of windows. */
    const int64_t tiles = by_pixel ? c->rows : tile_count(c->rows), units = c->target_h / c->unit;
    int64_t unit, end;
    tr_team_share(tiles * units, 1, member, size, &unit, &end);
    while (unit < end) {
        const int64_t tile = unit / units, h = unit % units, stop = smaller(units, h + end - unit);
        const int32_t first = (int32_t)h * c->unit, last = (int32_t)stop * c->unit;
        if (by_pixel) {
            convolve_image(c, tile, first, last, &memory);
        } else {
            const int64_t image = tile_first(c->rows, tiles, tile);
            convolve_images(c, image, tile_first(c->rows, tiles, tile + 1) - image, first, last, &memory);
        }
        unit += stop - h;
    }
}

/* The most source rows that `unit` target rows span. */
static int64_t widest_span(const struct conv_axis *axis, int32_t unit)
{
    int64_t most = 1;
    for (int32_t t = 0; t + unit <= axis->targets; t += unit) {
        int32_t first, last;
        cpu_conv_axis_sources(axis, t, t + unit, &first, &last);
        if (last - first > most) most = last - first;
    }
    return most;
}

/* Leaves out sources that nothing reads: a kernel of one tap, that is, becomes one without steps. */
static void thin_out(struct conv *c, struct conv_extent *h, struct conv_extent *w)
{
    c->image_h = c->source_h;
    c->image_w = c->source_w;
    c->every_h = c->every_w = 1;
    if (c->backward || c->kernel_h > 1 || c->kernel_w > 1 || h->pad > 0 || w->pad > 0) return;
    if ((h->out - 1) * h->stride >= h->in || (w->out - 1) * w->stride >= w->in) return;
    c->every_h = h->stride;
    c->every_w = w->stride;
    c->source_h = h->in = h->out;
    c->source_w = w->in = w->out;
    h->stride = w->stride = 1;
}

/* Lays out the scratch, builds the tables and runs the walk. */
static tr_status run(struct conv *c, const struct tr_sliding_window *window)
{
    if (c->rows == 0) return TR_OK;
    c->unit = c->pool ? c->pool->window.kernel_h : 1;
    struct conv_extent h = {window->in_h,     window->out_h,      window->kernel_h,
                            window->stride_h, window->dilation_h, window->pad_top};
    struct conv_extent w = {window->in_w,     window->out_w,      window->kernel_w,
                            window->stride_w, window->dilation_w, window->pad_left};
    thin_out(c, &h, &w);
    const int64_t panels = divide_up(c->target_c, TILE_COLUMNS), taps = (int64_t)c->kernel_h * c->kernel_w;
    c->panel = taps * c->source_c * TILE_COLUMNS;
    const size_t packed_bytes = cpu_round(((size_t)(panels * c->panel) + PACK_SLACK) * sizeof(float));
    const size_t bias_bytes = cpu_round((size_t)panels * TILE_COLUMNS * sizeof(float));
    const size_t h_bytes = cpu_round(cpu_conv_axis_bytes(c->target_h, c->kernel_h));
    const size_t w_bytes = cpu_round(cpu_conv_axis_bytes(c->target_w, c->kernel_w));
    TR_TRY(cpu_reserve(c->cpu, 0, packed_bytes + bias_bytes + h_bytes + w_bytes));
    char *shared = cpu_shared(c->cpu);
    c->packed = (float *)shared;
    cpu_conv_axis_build(&c->h, &h, c->backward, false, shared + packed_bytes + bias_bytes);
    cpu_conv_axis_build(&c->w, &w, c->backward, true, shared + packed_bytes + bias_bytes + h_bytes);
    if (c->bias) {
        c->packed_bias = (float *)(shared + packed_bytes);
        for (int64_t i = 0; i < panels * TILE_COLUMNS; i++)
            c->packed_bias[i] = i < c->target_c ? c->bias[i] : 0.0f;
    }

    const int64_t row = (int64_t)c->source_w * c->source_c * TILE_ROWS;
    c->band_rows = smaller(c->source_h, cpu_room_second(&c->cpu->room, BAND_FLOATS, 0) / row);
    const int64_t span = widest_span(&c->h, c->unit);
    if (c->band_rows < span) c->band_rows = span;
    int64_t floats = c->band_rows * row;
    if (floats < taps * c->source_c * TILE_ROWS) floats = taps * c->source_c * TILE_ROWS;
    const size_t image_bytes = cpu_round((size_t)(floats + PACK_SLACK) * sizeof(float));
    c->member_segments = (int64_t)image_bytes;
    c->member_lines = (int64_t)(image_bytes + cpu_round((size_t)taps * sizeof(struct tile_segment)));
    int64_t lines = c->pool ? (int64_t)c->unit * c->target_w * c->target_c * TILE_ROWS : 0;
    if (c->unpool) lines = row;
    TR_TRY(cpu_reserve(c->cpu, (size_t)c->member_lines + (size_t)lines * sizeof(float), 0));

    const double outputs = (double)c->rows * c->target_h * c->target_w * c->target_c;
    cpu_run(c->cpu, (double)taps * c->source_c * c->target_c, pack_weights, c);
    cpu_run(c->cpu, outputs * (double)taps * c->source_c / (8.0 * VW), convolve, c);
    return TR_OK;
}

static struct conv forward_of(tr_device *device, const struct tr_op_conv_forward *a)
{
    return (struct conv){.cpu = cpu_device_of(device),
                         .rows = a->rows,
                         .source_h = a->window.in_h,
                         .source_w = a->window.in_w,
                         .source_c = a->in_c,
                         .target_h = a->window.out_h,
                         .target_w = a->window.out_w,
                         .target_c = a->out_c,
                         .kernel_h = a->window.kernel_h,
                         .kernel_w = a->window.kernel_w,
                         .source = a->x,
                         .target = a->y,
                         .weights = a->w,
                         .bias = a->b,
                         .activation = a->activation,
                         .slope = a->slope};
}

tr_status CPU_KERNEL(conv_forward)(tr_device *device, const struct tr_op_conv_forward *a)
{
    struct conv c = forward_of(device, a);
    return run(&c, &a->window);
}

tr_status CPU_KERNEL(conv_pool_forward)(tr_device *device, const struct tr_op_conv_pool_forward *a)
{
    struct conv c = forward_of(device, &a->conv);
    c.pool = &a->pool;
    return run(&c, &a->conv.window);
}

static struct conv backward_of(tr_device *device, const struct tr_op_conv_backward_data *a)
{
    return (struct conv){.cpu = cpu_device_of(device),
                         .backward = true,
                         .rows = a->rows,
                         .source_h = a->window.out_h,
                         .source_w = a->window.out_w,
                         .source_c = a->out_c,
                         .target_h = a->window.in_h,
                         .target_w = a->window.in_w,
                         .target_c = a->in_c,
                         .kernel_h = a->window.kernel_h,
                         .kernel_w = a->window.kernel_w,
                         .source = a->dy,
                         .target = a->dx,
                         .weights = a->w};
}

tr_status CPU_KERNEL(conv_backward_data)(tr_device *device, const struct tr_op_conv_backward_data *a)
{
    struct conv c = backward_of(device, a);
    return run(&c, &a->window);
}

tr_status CPU_KERNEL(conv_pool_backward_data)(tr_device *device,
                                              const struct tr_op_conv_pool_backward_data *a)
{
    struct conv c = backward_of(device, &a->conv);
    c.unpool = &a->pool;
    return run(&c, &a->conv.window);
}
