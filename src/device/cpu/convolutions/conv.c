/* Convolution forward and its input gradient: one walk over target pixels with two tables (conv_axis.h).
 *
 * A tile holds up to TILE_ROWS *images* at one target pixel, so that the whole tile has the same taps,
 * padding costs nothing, and every tap is a segment of the tile kernel. The images of a tile are
 * interleaved once, to [y][x][channel][image], for all filters. Neighbouring taps of a kernel row are
 * neighbours in both packed operands and form one segment. Pixels of a row that meet the same taps are one
 * call of the kernel: neighbours forward, pixels a stride apart backward. With fewer images than fill a
 * tile, its rows are such pixels of one image instead, gathered tap by tap.
 *
 * Most kernels of one tap are products of matrices (conv_pointwise.h).
 *
 * With a fused pool after it, the target rows under a row of windows stay in the member's scratch, and
 * only the pool's results are written. Backward, with a pool, the source rows are computed where they are
 * packed.
 */
#include "base/fail.h"
#include "base/numbers/tree.h"
#include "device/cpu/convolutions/conv.h"
#include "device/cpu/convolutions/conv_pointwise.h"
#include "device/cpu/grid.h"
#include "device/cpu/products/run_tile.h"

/* With fewer images than this, the tile kernel would wait for the latency of its own sums. */
#define IMAGES_LEAST (TILE_ROWS < 4 ? 2 : 4)

/* Panels that take as long as packing the images. */
#define PACKING_PANELS 0.3

/* Packs a member's chunk of the weights. */
static void pack_weights(void *arguments, int member, int size)
{
    const struct conv *c = arguments;
    int64_t begin, end;
    const int64_t taps = (int64_t)c->call.window->kernel_h * c->call.window->kernel_w,
                  depth = taps * c->call.source_c;
    if (!c->call.backward) {
        tr_team_chunk(depth, 16, member, size, &begin, &end);
        pack_panels(c->packed + begin * TILE_COLUMNS, c->panel, c->call.weights + begin * c->call.target_c,
                    c->call.target_c, c->call.target_c, end - begin);
        return;
    }
    const int64_t panels = divide_up(c->call.target_c, TILE_COLUMNS);
    tr_team_chunk(taps * panels, 1, member, size, &begin, &end);
    for (int64_t i = begin; i < end; i++) {
        const int64_t tap = i / panels, column = i % panels * TILE_COLUMNS;
        pack_rows(c->packed + i % panels * c->panel + (taps - 1 - tap) * c->call.source_c * TILE_COLUMNS,
                  TILE_COLUMNS, c->call.weights + (tap * c->call.target_c + column) * c->call.source_c,
                  c->call.source_c, smaller(TILE_COLUMNS, c->call.target_c - column), c->call.source_c);
    }
}

/* Lists the segments of the tiles at target row h and pixel w; returns their number. */
static int64_t list_segments(const struct conv *c, int32_t h, int32_t w, int32_t first,
                             struct tile_segment *segments)
{
    int64_t count = 0;
    for (int32_t i = c->h.start[h]; i < c->h.start[h + 1]; i++)
        for (int32_t j = c->w.start[w]; j < c->w.start[w + 1]; j++) {
            const struct conv_run *y = c->h.runs + i, *x = c->w.runs + j;
            segments[count++] = (struct tile_segment){
                .a = ((y->source - first) * c->call.source_w + x->source) * c->call.source_c,
                .b = (y->kernel * c->call.window->kernel_w + x->kernel) * c->call.source_c,
                .length = x->length * c->call.source_c};
        }
    return count;
}

/* Computes of target row h, which goes to `to`, pixel `begin` and those that may be like it. `run` has the
   panel; the packed source rows begin with `first`. */
static void walk_row(const struct conv *c, struct run_tile *run, int32_t h, int32_t begin,
                     const struct conv_memory *memory, int32_t first, float *to)
{
    const int64_t height = run->tile.a_step;
    for (int64_t w = begin; w < c->call.target_w; w += run->count * c->alike) {
        const int32_t most = (int32_t)divide_up(c->call.target_w - w, c->alike);
        int32_t shift;
        run->tile.count = list_segments(c, h, (int32_t)w, first, memory->segments);
        run->tile.a = memory->a;
        run->tile.to = to + w * c->call.target_c;
        run->count = cpu_conv_axis_alike(&c->w, (int32_t)w, c->alike, most, &shift);
        run->a_step = (int64_t)shift * c->call.source_c * height;
        run_tile_compute(height, run);
    }
}

/* Computes target rows [h_begin, h_end) of `height` images; their source rows from `first` on are packed.
   Row h_begin of the first image goes to `to`, those of other images to_step further. */
static void walk_images(const struct conv *c, int64_t height, int32_t h_begin, int32_t h_end,
                        const struct conv_memory *memory, int32_t first, float *to, int64_t to_step)
{
    const int64_t row = (int64_t)c->call.target_w * c->call.target_c;
    for (int64_t column = memory->column; column < memory->column_end; column += TILE_COLUMNS) {
        struct run_tile run = {.tile = conv_panel(c, column, memory->segments),
                               .to_step = (int64_t)c->alike * c->call.target_c};
        run.tile.a_step = run.tile.a_unit = height;
        run.tile.to_step = to_step;
        for (int32_t h = h_begin; h < h_end; h++)
            for (int32_t begin = 0; begin < smaller(c->alike, c->call.target_w); begin++)
                walk_row(c, &run, h, begin, memory, first, to + (h - h_begin) * row + column);
    }
}

/* Packs source rows [first, last) of a tile of images. */
static void pack_images(const struct conv *c, int64_t image, int64_t height, int32_t first, int32_t last,
                        const struct conv_memory *memory)
{
    const int64_t row = (int64_t)c->call.source_w * c->call.source_c;
    const int64_t line = (int64_t)c->image_w * c->call.source_c, image_size = line * c->image_h;
    if (c->every_h > 1 || c->every_w > 1) {
        float *to = memory->a;
        for (int32_t h = first; h < last; h++)
            for (int32_t w = 0; w < c->call.source_w; w++, to += c->call.source_c * height)
                pack_rows(to, height,
                          c->call.source + image * image_size + h * c->every_h * line +
                              (int64_t)w * c->every_w * c->call.source_c,
                          image_size, height, c->call.source_c);
        return;
    }
    if (!c->unpool) {
        pack_rows(memory->a, height, c->call.source + image * image_size + first * row, image_size, height,
                  (last - first) * row);
        return;
    }
    for (int32_t h = first; h < last; h++) {
        for (int64_t r = 0; r < height; r++)
            pool_backward_line(c->unpool, image + r, h, 0, c->call.source_c, memory->lines + r * row);
        pack_rows(memory->a + (h - first) * row * height, height, memory->lines, row, height, row);
    }
}

/* Computes target rows [begin, end) of a tile of images, in bands whose source rows fit into the scratch. */
static void convolve_images(const struct conv *c, int64_t image, int64_t height, int32_t begin, int32_t end,
                            const struct conv_memory *memory)
{
    const int64_t row = (int64_t)c->call.target_w * c->call.target_c, image_size = row * c->call.target_h;
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
            walk_images(c, height, begin, stop, memory, first,
                        c->call.target + image * image_size + begin * row, image_size);
        for (int32_t h = begin; c->pool && h < stop; h += c->unit) {
            walk_images(c, height, h, h + c->unit, memory, first, memory->lines, c->unit * row);
            for (int64_t r = 0; r < height; r++)
                pool_forward_line(c->pool, image + r, h / c->unit, memory->lines + r * c->unit * row);
        }
        begin = stop;
    }
}

/* Whether the rows of a tile are pixels of one image. */
static bool is_by_pixel(const struct conv *c)
{
    return c->call.rows < IMAGES_LEAST && !c->unpool;
}

/* Tiles of images. The team divides the target rows of all of them, or their rows of windows. */
static int64_t work_tiles(const struct conv *c)
{
    return is_by_pixel(c) ? c->call.rows : tile_count(c->call.rows);
}

static void convolve(void *arguments, int member, int size)
{
    const struct conv *c = arguments;
    char *scratch = cpu_scratch(c->call.cpu, member);
    const int64_t tiles = work_tiles(c), units = c->call.target_h / c->unit;
    const struct cpu_part part = cpu_part(c->call.cpu->balance, c->line_parts, tiles * units,
                                          c->call.target_c, TILE_COLUMNS, member, size);
    const struct conv_memory memory = {.a = (float *)scratch,
                                       .segments = (struct tile_segment *)(scratch + c->member_segments),
                                       .lines = (float *)(scratch + c->member_lines),
                                       .column = part.column,
                                       .column_end = part.column_end};
    for (int64_t unit = part.row; unit < part.row_end && part.column < part.column_end;) {
        const int64_t tile = unit / units, h = unit % units, stop = smaller(units, h + part.row_end - unit);
        const int32_t first = (int32_t)h * c->unit, last = (int32_t)stop * c->unit;
        if (is_by_pixel(c)) {
            conv_image(c, tile, first, last, &memory);
        } else {
            /* Larger tiles lie between smaller ones: equally many tiles have equally many images. */
            const int64_t image = tr_cut(c->call.rows, tiles, tile);
            convolve_images(c, image, tr_cut(c->call.rows, tiles, tile + 1) - image, first, last, &memory);
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

/* Leaves out sources that no tap reads: a kernel of one tap with strides becomes one without. */
static void thin_out(struct conv *c, struct conv_extent *h, struct conv_extent *w)
{
    c->image_h = c->call.source_h;
    c->image_w = c->call.source_w;
    c->every_h = c->every_w = 1;
    if (c->call.backward || !cpu_conv_is_pointwise(c->call.window)) return;
    c->every_h = h->stride;
    c->every_w = w->stride;
    c->call.source_h = h->in = h->out;
    c->call.source_w = w->in = w->out;
    h->stride = w->stride = 1;
}

/* Lays out the scratch, builds the tables and runs the walk. */
static tr_status run(struct conv *c)
{
    const struct tr_sliding_window *window = c->call.window;
    if (c->call.rows == 0) return TR_OK;
    if (!c->pool && !c->unpool &&
        conv_pointwise_suits(c->call.cpu, window, c->call.backward ? c->call.target_c : c->call.source_c))
        return conv_pointwise(&c->call);
    c->unit = c->pool ? c->pool->window.kernel_h : 1;
    struct conv_extent h = {window->in_h,     window->out_h,      window->kernel_h,
                            window->stride_h, window->dilation_h, window->pad_top};
    struct conv_extent w = {window->in_w,     window->out_w,      window->kernel_w,
                            window->stride_w, window->dilation_w, window->pad_left};
    thin_out(c, &h, &w);
    c->alike = c->call.backward ? w.stride : 1;
    const int64_t panels = divide_up(c->call.target_c, TILE_COLUMNS),
                  taps = (int64_t)c->call.window->kernel_h * c->call.window->kernel_w;
    c->panel = taps * c->call.source_c * TILE_COLUMNS;
    const size_t packed_bytes = cpu_round(((size_t)(panels * c->panel) + PACK_SLACK) * sizeof(float));
    const size_t bias_bytes = cpu_round((size_t)panels * TILE_COLUMNS * sizeof(float));
    const size_t h_bytes = cpu_round(cpu_conv_axis_bytes(c->call.target_h, c->call.window->kernel_h));
    const size_t w_bytes = cpu_round(cpu_conv_axis_bytes(c->call.target_w, c->call.window->kernel_w));
    TR_TRY(cpu_reserve(c->call.cpu, 0, packed_bytes + bias_bytes + h_bytes + w_bytes));
    char *shared = cpu_shared(c->call.cpu);
    c->packed = (float *)shared;
    cpu_conv_axis_build(&c->h, &h, c->call.backward, false, shared + packed_bytes + bias_bytes);
    cpu_conv_axis_build(&c->w, &w, c->call.backward, true, shared + packed_bytes + bias_bytes + h_bytes);
    if (c->call.bias) {
        c->packed_bias = (float *)(shared + packed_bytes);
        cpu_conv_bias(&c->call, panels * TILE_COLUMNS, c->packed_bias);
    }

    const int64_t row = (int64_t)c->call.source_w * c->call.source_c * TILE_ROWS;
    /* The packed images of a tile take a part of the second-level cache, unless a target row needs more. */
    const int64_t band = cpu_room_second(&c->call.cpu->room, c->call.cpu->blocks.conv_band, 0);
    c->band_rows = smaller(c->call.source_h, band / row);
    const int64_t span = widest_span(&c->h, c->unit);
    if (c->band_rows < span) c->band_rows = span;
    int64_t floats = c->band_rows * row;
    if (floats < taps * c->call.source_c * TILE_ROWS) floats = taps * c->call.source_c * TILE_ROWS;
    const size_t image_bytes = cpu_round((size_t)(floats + PACK_SLACK) * sizeof(float));
    c->member_segments = (int64_t)image_bytes;
    c->member_lines = (int64_t)(image_bytes + cpu_round((size_t)taps * sizeof(struct tile_segment)));
    int64_t lines = c->pool ? (int64_t)c->unit * c->call.target_w * c->call.target_c * TILE_ROWS : 0;
    if (c->unpool) lines = row;
    TR_TRY(cpu_reserve(c->call.cpu, (size_t)c->member_lines + (size_t)lines * sizeof(float), 0));

    /* A pool needs all columns of a row. */
    const int64_t units = c->call.target_h / c->unit;
    const int threads = c->call.cpu->base.threads;
    c->line_parts =
        c->pool ? threads
                : cpu_conv_line_parts(threads, work_tiles(c) * units, units, 0, panels, PACKING_PANELS);
    const double outputs = (double)c->call.rows * c->call.target_h * c->call.target_w * c->call.target_c;
    cpu_run(c->call.cpu, (double)taps * c->call.source_c * c->call.target_c, pack_weights, c);
    cpu_run(c->call.cpu, outputs * (double)taps * c->call.source_c / (8.0 * VW), convolve, c);
    return TR_OK;
}

tr_status CPU_KERNEL(conv_forward)(tr_device *device, const struct tr_op_conv_forward *a)
{
    struct conv c = {.call = cpu_conv_forward(device, a)};
    return run(&c);
}

tr_status CPU_KERNEL(conv_pool_forward)(tr_device *device, const struct tr_op_conv_pool_forward *a)
{
    struct conv c = {.call = cpu_conv_forward(device, &a->conv), .pool = &a->pool};
    return run(&c);
}

tr_status CPU_KERNEL(conv_backward_data)(tr_device *device, const struct tr_op_conv_backward_data *a)
{
    struct conv c = {.call = cpu_conv_backward(device, a)};
    return run(&c);
}

tr_status CPU_KERNEL(conv_pool_backward_data)(tr_device *device,
                                              const struct tr_op_conv_pool_backward_data *a)
{
    struct conv c = {.call = cpu_conv_backward(device, &a->conv), .unpool = &a->pool};
    return run(&c);
}
