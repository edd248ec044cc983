/* Winograd convolutions, forward and input gradient: a walk (device/ops.h, docs/explanation/kernels.md)
 * for all but few channels, for which few.c has another.
 *
 * A tile of sums holds up to TILE_ROWS *images* at one position of one Winograd tile. The images are
 * interleaved to [line][pixel][channel][image], as for direct convolutions, with zeros where a tile
 * reaches beyond the image; so a transform is the same for all lanes, and the transformed numbers of a
 * tile have the layout of the tile kernel. A member takes image tiles, or lines of Winograd tiles of them,
 * or some panels of the filters where there are few lines, in bands whose transformed numbers stay in the
 * cache. A band meets one panel of transformed weights after the other, and the product with each panel is
 * transformed back at once.
 *
 * Backward, neighbouring tiles overlap by taps - 1 pixels, to which they add in order. A member that begins
 * inside of an image also computes the lines of tiles before its own that share lines of pixels with them:
 * one of a kernel of 3 taps, two of one of 5.
 */
#include "device/cpu/winograd/walk.h"

#include "base/fail.h"
#include "base/numbers/tree.h"
#include "device/cpu/vectors/ahead.h"
#include "device/cpu/cpu.h"
#include "device/cpu/grid.h"
#include "device/cpu/products/pack.h"
#include "device/cpu/sizes.h"

#include <assert.h>
#include <string.h>

#define POINTS    TR_WINOGRAD_POINTS
#define POSITIONS TR_WINOGRAD_POSITIONS

/* Panels whose products take as long as the transform of a line of tiles. */
#define TRANSFORM_PANELS 0.2

/* A member's part of an image tile: lines of tiles [tile_h, tile_h_end) and tiles of them. */
struct band {
    int64_t image, height; /* images */
    int32_t tile_h, tile_h_end, tile_w, tile_w_end;
    int32_t line, line_end; /* lines of the target that the member writes */
    int64_t panel, panel_end;
    float *packed, *v, *sums;
    int64_t v_tile, v_position; /* floats between tiles, between positions */
};

/* ---- a band ---- */

static struct tr_winograd_tile tile_h(const struct walk *c, int32_t index)
{
    return tr_winograd_tile(c->taps, c->call.window->out_h, index);
}

static struct tr_winograd_tile tile_w(const struct walk *c, int32_t index)
{
    return tr_winograd_tile(c->taps, c->call.window->out_w, index);
}

/* The sources [*begin, *end) that tiles [first, last) of an axis read, which may lie outside the image. */
static void sources(bool backward, int32_t pad, struct tr_winograd_tile first, struct tr_winograd_tile last,
                    int32_t *begin, int32_t *end)
{
    *begin = backward ? first.first : first.first - pad;
    *end = backward ? last.first + last.outputs : last.first - pad + last.points;
}

/* Interleaves the images of the band, with zeros around them: [line - *line][pixel - *pixel][channel]
   [image]. */
static void pack_band(const struct walk *c, const struct band *band, int32_t *line, int32_t *pixel,
                      int32_t *width)
{
    const int64_t size = c->call.source_c * band->height;
    const int64_t image_size = (int64_t)c->call.source_h * c->call.source_w * c->call.source_c;
    int32_t line_end, pixel_end;
    sources(c->call.backward, c->call.window->pad_top, tile_h(c, band->tile_h),
            tile_h(c, band->tile_h_end - 1), line, &line_end);
    sources(c->call.backward, c->call.window->pad_left, tile_w(c, band->tile_w),
            tile_w(c, band->tile_w_end - 1), pixel, &pixel_end);
    *width = pixel_end - *pixel;
    const int32_t left = (int32_t)larger(*pixel, 0), right = (int32_t)smaller(pixel_end, c->call.source_w);
    for (int32_t h = *line; h < line_end; h++) { /* ascending, since stores of packing may spill over */
        float *to = band->packed + (int64_t)(h - *line) * *width * size;
        if (h < 0 || h >= c->call.source_h) {
            memset(to, 0, (size_t)(*width * size) * sizeof *to);
            continue;
        }
        memset(to, 0, (size_t)((left - *pixel) * size) * sizeof *to);
        pack_rows(to + (left - *pixel) * size, band->height,
                  c->call.source + band->image * image_size +
                      ((int64_t)h * c->call.source_w + left) * c->call.source_c,
                  image_size, band->height, (int64_t)(right - left) * c->call.source_c);
        memset(to + (right - *pixel) * size, 0, (size_t)((pixel_end - right) * size) * sizeof *to);
    }
}

/* Transforms all tiles of the band. */
static void transform_band(const struct walk *c, const struct band *band)
{
    const int64_t size = c->call.source_c * band->height;
    int64_t offset[POSITIONS];
    int32_t line, pixel, width;
    pack_band(c, band, &line, &pixel, &width);
    for (int p = 0; p < POSITIONS; p++) offset[p] = p * band->v_position;
    float *to = band->v;
    for (int32_t h = band->tile_h; h < band->tile_h_end; h++)
        for (int32_t w = band->tile_w; w < band->tile_w_end; w++, to += band->v_tile) {
            const struct tr_winograd_tile y = tile_h(c, h), x = tile_w(c, w);
            const int32_t i = y.first - (c->call.backward ? 0 : c->call.window->pad_top) - line;
            const int32_t j = x.first - (c->call.backward ? 0 : c->call.window->pad_left) - pixel;
            const struct winograd_read read = {.from = band->packed + ((int64_t)i * width + j) * size,
                                               .line = width * size,
                                               .pixel = size,
                                               .count = size,
                                               .readable = size + VW - 1,
                                               .to = to,
                                               .offset = offset};
            if (c->call.backward)
                winograd_output_adjoint(c->taps, y.points, x.points, &read);
            else
                winograd_input(y.points, x.points, &read);
        }
}

/* The distance, in floats, from `from` to `to`, which may belong to another object: only for prefetching. */
static int64_t distance(const float *from, const float *to)
{
    return ((intptr_t)to - (intptr_t)from) / (intptr_t)sizeof *to;
}

/* Multiplies the band with a panel of transformed weights, of which `columns` are valid. */
static void multiply_band(const struct walk *c, const struct band *band, const float *u, int64_t columns)
{
    const int64_t tiles = (int64_t)(band->tile_h_end - band->tile_h) * (band->tile_w_end - band->tile_w);
    const int64_t tile_sums = TILE_ROWS * c->columns, run = divide_up(c->call.source_c, 2);
    const struct tile_segment segment = {.length = c->call.source_c};
    struct tile tile = {.segments = &segment,
                        .count = 1,
                        .a_step = band->height,
                        .b_step = TILE_COLUMNS,
                        .to_step = c->columns,
                        .columns = columns <= TILE_COLUMNS / 2 ? TILE_COLUMNS / 2 : TILE_COLUMNS};
    for (int p = 0; p < POSITIONS; p++, u += c->u_position) {
        const float *v = band->v + p * band->v_position;
        float *to = band->sums + p * tile_sums;
        int64_t g = 0;
        for (int32_t h = band->tile_h; h < band->tile_h_end; h++) {
            if (!tr_winograd_has(tile_h(c, h).points, p / POINTS)) {
                g += band->tile_w_end - band->tile_w;
                continue;
            }
            for (int32_t w = band->tile_w; w < band->tile_w_end; w++, g++) {
                if (!tr_winograd_has(tile_w(c, w).points, p % POINTS)) continue;
                tile.a = v + g * band->v_tile;
                tile.b = u;
                tile.to = to + g * POSITIONS * tile_sums;
                /* Meanwhile prefetches the next tile, and a part of the next position's weights. */
                const float *next = tile.a + band->v_tile;
                const int64_t step = smaller(g * c->call.source_c / tiles, c->call.source_c / 2);
                tile.next =
                    tile_fetch(next, TILE_COLUMNS, run,
                               distance(next + run * TILE_COLUMNS, u + c->u_position + step * TILE_COLUMNS));
                tile_compute(band->height, &tile);
            }
        }
    }
}

/* Transforms the sums of the band back, into the target's panel at `column`. */
static void finish_band(const struct walk *c, const struct band *band, int64_t column)
{
    const int64_t image_size = (int64_t)c->call.target_h * c->call.target_w * c->call.target_c;
    const struct winograd_finish finish = {.bias = c->packed_bias ? c->packed_bias + column : NULL,
                                           .activation = c->call.activation,
                                           .slope = c->call.slope};
    struct winograd_write write = {.from = band->sums,
                                   .position = TILE_ROWS * c->columns,
                                   .row = c->columns,
                                   .rows = band->height,
                                   .columns = smaller(TILE_COLUMNS, c->call.target_c - column),
                                   .image = image_size,
                                   .line = (int64_t)c->call.target_w * c->call.target_c,
                                   .pixel = c->call.target_c};
    for (int32_t h = band->tile_h; h < band->tile_h_end; h++)
        for (int32_t w = band->tile_w; w < band->tile_w_end; w++) {
            const struct tr_winograd_tile y = tile_h(c, h), x = tile_w(c, w);
            const int32_t i = y.first - (c->call.backward ? c->call.window->pad_top : 0);
            const int32_t j = x.first - (c->call.backward ? c->call.window->pad_left : 0);
            write.to = c->call.target + band->image * image_size + i * write.line + j * write.pixel + column;
            if (!c->call.backward) {
                winograd_output(c->taps, y.points, x.points, &write, &finish);
            } else {
                const struct winograd_clip clip = {
                    .line = (int)larger(band->line - i, 0),
                    .line_end = (int)smaller(band->line_end - i, y.points),
                    .column = (int)larger(-j, 0),
                    .column_end = (int)smaller(c->call.target_w - j, x.points),
                    .added_above = h > 0,
                    .added_left = w > 0,
                    .overlap = c->overlap,
                };
                winograd_input_adjoint(y.points, x.points, &write, &clip);
            }
            write.from += POSITIONS * write.position;
        }
}

static void convolve_band(const struct walk *c, struct band *band)
{
    const int64_t tiles = (int64_t)(band->tile_h_end - band->tile_h) * (band->tile_w_end - band->tile_w);
    band->v_tile = c->call.source_c * band->height + PACK_SLACK;
    band->v_position = tiles * band->v_tile;
    transform_band(c, band);
    for (int64_t panel = band->panel; panel < band->panel_end; panel++) {
        const int64_t column = (c->panel_begin + panel) * TILE_COLUMNS;
        multiply_band(c, band, c->u + panel * POSITIONS * c->u_position, c->call.target_c - column);
        finish_band(c, band, column);
    }
}

/* ---- chunks ---- */

/* Lines of tiles [begin, end) of an image tile. */
static void convolve_lines(const struct walk *c, struct band *band, int32_t begin, int32_t end)
{
    band->line = 0;
    band->line_end = c->call.target_h;
    if (c->call.backward) {
        if (begin > 0) band->line = (int32_t)larger(0, tile_h(c, begin).first - c->call.window->pad_top);
        if (end < c->tiles_h) band->line_end = tile_h(c, end).first - c->call.window->pad_top;
        begin = (int32_t)larger(0, begin - walk_lines_above(c));
    }
    for (band->tile_h = begin; band->tile_h < end; band->tile_h = band->tile_h_end) {
        band->tile_h_end = (int32_t)smaller(end, band->tile_h + c->band_h);
        for (band->tile_w = 0; band->tile_w < c->tiles_w; band->tile_w = band->tile_w_end) {
            band->tile_w_end = (int32_t)smaller(c->tiles_w, band->tile_w + c->band_w);
            convolve_band(c, band);
        }
    }
}

static void convolve(void *arguments, int member, int size)
{
    const struct walk *c = arguments;
    const int64_t tiles = tile_count(c->call.rows);
    struct band band = {.packed = cpu_scratch(c->call.cpu, member)};
    band.v = band.packed + c->v_at;
    band.sums = band.packed + c->sums_at;
    const struct cpu_part part =
        cpu_part(c->call.cpu->balance, c->line_parts, tiles * c->tiles_h, c->panels, 1, member, size);
    band.panel = part.column;
    band.panel_end = part.column_end;
    for (int64_t unit = part.row; unit < part.row_end && part.column < part.column_end;) {
        const int64_t tile = unit / c->tiles_h, line = unit % c->tiles_h;
        const int64_t stop = smaller(c->tiles_h, line + part.row_end - unit);
        /* Larger tiles lie between smaller ones: equally many tiles have equally many images. */
        band.image = tr_cut(c->call.rows, tiles, tile);
        band.height = tr_cut(c->call.rows, tiles, tile + 1) - band.image;
        convolve_lines(c, &band, (int32_t)line, (int32_t)stop);
        unit += stop - line;
    }
}

/* ---- sizes ---- */

/* Chooses the bands, and lays out a member's scratch. Returns its size in floats. */
static int64_t plan_member(struct walk *c, int64_t u_floats)
{
    const int64_t height = smaller(TILE_ROWS, c->call.rows);
    const int64_t tile = POSITIONS * (height * c->call.source_c + PACK_SLACK + TILE_ROWS * c->columns);
    const struct cpu_blocks *blocks = &c->call.cpu->blocks;
    /* The band stays in the second-level cache, unless the weights are so large that reading them for
       every band costs more. */
    const int64_t most =
        smaller(larger(blocks->winograd_band_least, u_floats / 8), blocks->winograd_band_most);
    const int64_t tiles = larger(1, cpu_room_second(&c->call.cpu->room, most, 0) / tile);
    c->band_w = (int32_t)smaller(c->tiles_w, tiles);
    c->band_h = (int32_t)smaller(c->tiles_h, larger(1, tiles / c->tiles_w));
    const int64_t all = (int64_t)c->band_h * c->band_w;
    const int64_t pixels =
        (int64_t)(c->band_h * c->outputs + c->overlap) * (c->band_w * c->outputs + c->overlap);
    const int64_t packed = pixels * c->call.source_c * height + PACK_SLACK;
    c->v_at = floats_round(packed);
    c->sums_at = c->v_at + floats_round(all * POSITIONS * (height * c->call.source_c + PACK_SLACK));
    return c->sums_at + all * POSITIONS * TILE_ROWS * c->columns;
}

static tr_status run(struct walk *c)
{
    if (c->call.rows == 0 || c->call.target_c == 0) return TR_OK;
    assert(tr_winograd_suits(c->call.window) && !tr_activation_reads_input(c->call.activation));
    const int64_t panels = winograd_walk_shape(c), panel_floats = POSITIONS * c->u_position;
    const int64_t kept =
        c->call.cpu->room.shared / (int64_t)sizeof(float); /* transformed weights at a time */
    const int64_t runs = divide_up(panels, larger(1, kept / panel_floats));
    const int64_t most = divide_up(panels, runs);
    const int64_t u_floats = CPU_KERNEL(winograd_walk_weights_floats)(c, most);
    const size_t bias_bytes = (size_t)(panels * TILE_COLUMNS) * sizeof(float);
    const bool few = winograd_few_suits(c);
    const int64_t floats = few ? CPU_KERNEL(winograd_few_plan)(c) : plan_member(c, u_floats);
    size_t bytes = (size_t)floats * sizeof(float);
    if (bytes < CPU_KERNEL(winograd_walk_weights_scratch)())
        bytes = CPU_KERNEL(winograd_walk_weights_scratch)();
    TR_TRY(cpu_reserve(c->call.cpu, bytes, (size_t)u_floats * sizeof(float) + bias_bytes));
    c->u = cpu_shared(c->call.cpu);
    if (c->call.bias) {
        c->packed_bias = c->u + u_floats;
        cpu_conv_bias(&c->call, panels * TILE_COLUMNS, c->packed_bias);
    }
    const double positions = (double)c->call.rows * c->call.window->out_h * c->call.window->out_w *
                             ((double)POSITIONS / (c->outputs * c->outputs)) * c->call.source_c;
    for (int64_t begin = 0; begin < panels; begin += most) {
        winograd_walk_weights(c, begin, smaller(most, panels - begin));
        if (!few)
            c->line_parts = cpu_conv_line_parts(
                c->call.cpu->base.threads, tile_count(c->call.rows) * c->tiles_h, c->tiles_h,
                c->call.backward ? walk_lines_above(c) : 0, c->panels, TRANSFORM_PANELS);
        cpu_run(c->call.cpu, positions * (double)(c->panels * TILE_COLUMNS + 8) / (8.0 * VW),
                few ? winograd_few : convolve, c);
    }
    return TR_OK;
}

tr_status CPU_KERNEL(winograd_forward)(tr_device *device, const struct tr_op_winograd_forward *a)
{
    struct walk c = {.call = cpu_conv_forward(device, &a->conv)};
    return run(&c);
}

tr_status CPU_KERNEL(winograd_backward_data)(tr_device *device, const struct tr_op_winograd_backward_data *a)
{
    struct walk c = {.call = cpu_conv_backward(device, &a->conv)};
    return run(&c);
}
