/* Winograd convolutions, forward and input gradient: one walk (device/ops.h, docs/kernels.md), but for few
 * channels, which have another (winograd_few.c).
 *
 * A tile of sums holds up to TILE_ROWS *images* at one position of one Winograd tile. The images are
 * interleaved to [line][pixel][channel][image], as for direct convolutions, with zeros where a tile reaches
 * beyond the image; so a transform is the same for all lanes, and the transformed numbers of a tile lie as
 * the tile kernel wants them. A member takes image tiles, or lines of Winograd tiles of them, in bands whose
 * transformed numbers stay in the cache: they meet a panel of transformed weights after the other, and what a
 * panel yields is transformed back at once.
 *
 * Backward, neighbouring tiles overlap by two pixels, to which they give their parts in order. A member that
 * begins inside of an image computes the line of tiles before its own for its part of the two lines of pixels
 * that they share.
 */
#include "device/cpu/winograd/walk.h"

#include "base/fail.h"
#include "device/cpu/vectors/ahead.h"
#include "device/cpu/cpu.h"
#include "device/cpu/products/pack.h"
#include "device/cpu/sizes.h"

#include <assert.h>
#include <string.h>

#define POINTS    TR_WINOGRAD_POINTS
#define POSITIONS TR_WINOGRAD_POSITIONS

/* Floats of a band, transformed numbers and sums: so many at least, so that it stays in the second-level
   cache (room.h), more where the weights, which every band reads, are large. */
#define BAND_LEAST (128 * 1024)
#define BAND_MOST  (640 * 1024)
#define CACHE_LINE 16 /* floats */
/* Steps of a panel whose weights are transformed together. */
#define WEIGHT_STEPS 16

/* A member's part of an image tile: lines of tiles [tile_h, tile_h_end) and tiles of them. */
struct band {
    int64_t image, height; /* images */
    int32_t tile_h, tile_h_end, tile_w, tile_w_end;
    int32_t line, line_end; /* of the target: what the member writes */
    float *packed, *v, *sums;
    int64_t v_tile, v_position; /* floats between tiles, between positions */
};

/* ---- weights ---- */

/* Transforms a member's share of the weights; its scratch holds the taps of some steps of a panel. */
static void transform_weights(void *arguments, int member, int size)
{
    const struct walk *c = arguments;
    const int64_t chunks = divide_up(c->source_c, WEIGHT_STEPS);
    const int64_t pairs = (int64_t)c->source_c * c->target_c;
    float *taps = cpu_scratch(c->cpu, member);
    int64_t unit, end;
    tr_team_share(c->panels * chunks, 1, member, size, &unit, &end);
    for (; unit < end; unit++) {
        const int64_t panel = unit / chunks, step = unit % chunks * WEIGHT_STEPS;
        const int64_t steps = smaller(WEIGHT_STEPS, c->source_c - step);
        const int64_t column = (c->panel_begin + panel) * TILE_COLUMNS;
        const int64_t columns = smaller(TILE_COLUMNS, c->target_c - column);
        for (int64_t tap = 0; tap < 9; tap++) {
            float *to = taps + tap * steps * TILE_COLUMNS;
            const float *from = c->weights + tap * pairs;
            if (c->backward)
                pack_rows(to, TILE_COLUMNS, from + column * c->source_c + step, c->source_c, columns, steps);
            else
                pack_columns(to, TILE_COLUMNS, from + step * c->target_c + column, c->target_c, columns,
                             steps);
        }
        winograd_weights(taps, steps, c->u + panel * POSITIONS * c->u_position + step * TILE_COLUMNS,
                         c->u_position);
    }
}

/* ---- a band ---- */

static struct tr_winograd_tile tile_h(const struct walk *c, int32_t index)
{
    return tr_winograd_tile(c->window->out_h, index);
}

static struct tr_winograd_tile tile_w(const struct walk *c, int32_t index)
{
    return tr_winograd_tile(c->window->out_w, index);
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
    const int64_t size = c->source_c * band->height;
    const int64_t image_size = (int64_t)c->source_h * c->source_w * c->source_c;
    int32_t line_end, pixel_end;
    sources(c->backward, c->window->pad_top, tile_h(c, band->tile_h), tile_h(c, band->tile_h_end - 1), line,
            &line_end);
    sources(c->backward, c->window->pad_left, tile_w(c, band->tile_w), tile_w(c, band->tile_w_end - 1), pixel,
            &pixel_end);
    *width = pixel_end - *pixel;
    const int32_t left = (int32_t)larger(*pixel, 0), right = (int32_t)smaller(pixel_end, c->source_w);
    for (int32_t h = *line; h < line_end; h++) { /* ascending, since packing may spill */
        float *to = band->packed + (int64_t)(h - *line) * *width * size;
        if (h < 0 || h >= c->source_h) {
            memset(to, 0, (size_t)(*width * size) * sizeof *to);
            continue;
        }
        memset(to, 0, (size_t)((left - *pixel) * size) * sizeof *to);
        pack_rows(to + (left - *pixel) * size, band->height,
                  c->source + band->image * image_size + ((int64_t)h * c->source_w + left) * c->source_c,
                  image_size, band->height, (int64_t)(right - left) * c->source_c);
        memset(to + (right - *pixel) * size, 0, (size_t)((pixel_end - right) * size) * sizeof *to);
    }
}

/* Transforms all tiles of the band. */
static void transform_band(const struct walk *c, const struct band *band)
{
    const int64_t size = c->source_c * band->height;
    int64_t offset[POSITIONS];
    int32_t line, pixel, width;
    pack_band(c, band, &line, &pixel, &width);
    for (int p = 0; p < POSITIONS; p++) offset[p] = p * band->v_position;
    float *to = band->v;
    for (int32_t h = band->tile_h; h < band->tile_h_end; h++)
        for (int32_t w = band->tile_w; w < band->tile_w_end; w++, to += band->v_tile) {
            const struct tr_winograd_tile y = tile_h(c, h), x = tile_w(c, w);
            const int32_t i = y.first - (c->backward ? 0 : c->window->pad_top) - line;
            const int32_t j = x.first - (c->backward ? 0 : c->window->pad_left) - pixel;
            const struct winograd_read read = {.from = band->packed + ((int64_t)i * width + j) * size,
                                               .line = width * size,
                                               .pixel = size,
                                               .count = size,
                                               .readable = size + VW - 1,
                                               .to = to,
                                               .offset = offset};
            if (c->backward)
                winograd_output_adjoint(y.points, x.points, &read);
            else
                winograd_input(y.points, x.points, &read);
        }
}

/* How far, in floats, `to` is from `from`, which may be of another object: for memory that is only fetched.
 */
static int64_t distance(const float *from, const float *to)
{
    return ((intptr_t)to - (intptr_t)from) / (intptr_t)sizeof *to;
}

/* Multiplies the band with a panel of transformed weights, of which `columns` are valid. */
static void multiply_band(const struct walk *c, const struct band *band, const float *u, int64_t columns)
{
    const int64_t tiles = (int64_t)(band->tile_h_end - band->tile_h) * (band->tile_w_end - band->tile_w);
    const int64_t tile_sums = TILE_ROWS * c->columns, run = divide_up(c->source_c, 2);
    const struct tile_segment segment = {.length = c->source_c};
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
                /* Meanwhile the next tile, and a part of the next position's weights. */
                const float *next = tile.a + band->v_tile;
                const int64_t step = smaller(g * c->source_c / tiles, c->source_c / 2);
                tile_fetch(&tile, next, TILE_COLUMNS, run,
                           distance(next + run * TILE_COLUMNS, u + c->u_position + step * TILE_COLUMNS));
                tile_compute(band->height, &tile);
            }
        }
    }
}

/* Transforms the sums of the band back, into the target's panel at `column`. */
static void finish_band(const struct walk *c, const struct band *band, int64_t column)
{
    const int64_t image_size = (int64_t)c->target_h * c->target_w * c->target_c;
    const struct winograd_finish finish = {.bias = c->packed_bias ? c->packed_bias + column : NULL,
                                           .activation = c->activation,
                                           .slope = c->slope};
    struct winograd_write write = {.from = band->sums,
                                   .position = TILE_ROWS * c->columns,
                                   .row = c->columns,
                                   .rows = band->height,
                                   .columns = smaller(TILE_COLUMNS, c->target_c - column),
                                   .image = image_size,
                                   .line = (int64_t)c->target_w * c->target_c,
                                   .pixel = c->target_c};
    for (int32_t h = band->tile_h; h < band->tile_h_end; h++)
        for (int32_t w = band->tile_w; w < band->tile_w_end; w++) {
            const struct tr_winograd_tile y = tile_h(c, h), x = tile_w(c, w);
            const int32_t i = y.first - (c->backward ? c->window->pad_top : 0);
            const int32_t j = x.first - (c->backward ? c->window->pad_left : 0);
            write.to = c->target + band->image * image_size + i * write.line + j * write.pixel + column;
            if (!c->backward) {
                winograd_output(y.points, x.points, &write, &finish);
            } else {
                const struct winograd_clip clip = {
                    .line = (int)larger(band->line - i, 0),
                    .line_end = (int)smaller(band->line_end - i, y.points),
                    .column = (int)larger(-j, 0),
                    .column_end = (int)smaller(c->target_w - j, x.points),
                    .added_above = h > 0,
                    .added_left = w > 0,
                };
                winograd_input_adjoint(y.points, x.points, &write, &clip);
            }
            write.from += POSITIONS * write.position;
        }
}

static void convolve_band(const struct walk *c, struct band *band)
{
    const int64_t tiles = (int64_t)(band->tile_h_end - band->tile_h) * (band->tile_w_end - band->tile_w);
    band->v_tile = c->source_c * band->height + PACK_SLACK;
    band->v_position = tiles * band->v_tile;
    transform_band(c, band);
    for (int64_t panel = 0; panel < c->panels; panel++) {
        const int64_t column = (c->panel_begin + panel) * TILE_COLUMNS;
        multiply_band(c, band, c->u + panel * POSITIONS * c->u_position, c->target_c - column);
        finish_band(c, band, column);
    }
}

/* ---- shares ---- */

/* Lines of tiles [begin, end) of an image tile. */
static void convolve_lines(const struct walk *c, struct band *band, int32_t begin, int32_t end)
{
    band->line = 0;
    band->line_end = c->target_h;
    if (c->backward) {
        if (begin > 0) band->line = tile_h(c, begin).first - c->window->pad_top;
        if (end < c->tiles_h) band->line_end = tile_h(c, end).first - c->window->pad_top;
        if (begin > 0) begin--;
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
    const int64_t tiles = tile_count(c->rows);
    struct band band = {.packed = cpu_scratch(c->cpu, member)};
    band.v = band.packed + c->v_at;
    band.sums = band.packed + c->sums_at;
    int64_t unit, end;
    tr_team_share(tiles * c->tiles_h, 1, member, size, &unit, &end);
    while (unit < end) {
        const int64_t tile = unit / c->tiles_h, line = unit % c->tiles_h;
        const int64_t stop = smaller(c->tiles_h, line + end - unit);
        band.image = tile_first(c->rows, tiles, tile);
        band.height = tile_first(c->rows, tiles, tile + 1) - band.image;
        convolve_lines(c, &band, (int32_t)line, (int32_t)stop);
        unit += stop - line;
    }
}

/* ---- sizes ---- */

/* Chooses the bands, and lays out a member's scratch. Returns its size in floats. */
static int64_t plan_member(struct walk *c, int64_t u_floats)
{
    const int64_t height = smaller(TILE_ROWS, c->rows);
    const int64_t tile = POSITIONS * (height * c->source_c + PACK_SLACK + TILE_ROWS * c->columns);
    const int64_t most = smaller(larger(BAND_LEAST, u_floats / 8), BAND_MOST);
    const int64_t tiles = larger(1, cpu_room_second(&c->cpu->room, most, 0) / tile);
    c->band_w = (int32_t)smaller(c->tiles_w, tiles);
    c->band_h = (int32_t)smaller(c->tiles_h, larger(1, tiles / c->tiles_w));
    const int64_t all = (int64_t)c->band_h * c->band_w;
    const int64_t pixels =
        (int64_t)(c->band_h * TR_WINOGRAD_OUTPUTS + 2) * (c->band_w * TR_WINOGRAD_OUTPUTS + 2);
    const int64_t packed = pixels * c->source_c * height + PACK_SLACK;
    c->v_at = floats_round(packed);
    c->sums_at = c->v_at + floats_round(all * POSITIONS * (height * c->source_c + PACK_SLACK));
    return c->sums_at + all * POSITIONS * TILE_ROWS * c->columns;
}

int64_t winograd_walk_shape(struct walk *c)
{
    c->tiles_h = tr_winograd_tiles(c->window->out_h);
    c->tiles_w = tr_winograd_tiles(c->window->out_w);
    c->columns = c->target_c <= TILE_COLUMNS / 2 ? TILE_COLUMNS / 2 : TILE_COLUMNS;
    c->u_position = (int64_t)c->source_c * TILE_COLUMNS + CACHE_LINE;
    return divide_up(c->target_c, TILE_COLUMNS);
}

size_t CPU_KERNEL(winograd_walk_weights_scratch)(void)
{
    return (9 * WEIGHT_STEPS * TILE_COLUMNS + PACK_SLACK) * sizeof(float);
}

int64_t CPU_KERNEL(winograd_walk_weights_floats)(const struct walk *c, int64_t panels)
{
    return floats_round(panels * POSITIONS * c->u_position + PACK_SLACK);
}

void winograd_walk_weights(struct walk *c, int64_t begin, int64_t panels)
{
    c->panel_begin = begin;
    c->panels = panels;
    cpu_run(c->cpu, (double)(panels * POSITIONS * c->u_position) / VW, transform_weights, c);
}

static tr_status run(struct walk *c)
{
    if (c->rows == 0 || c->target_c == 0) return TR_OK;
    assert(tr_winograd_suits(c->window) && c->activation != TR_ACT_GELU);
    const int64_t panels = winograd_walk_shape(c), panel_floats = POSITIONS * c->u_position;
    const int64_t kept = c->cpu->room.shared / (int64_t)sizeof(float); /* transformed weights, at a time */
    const int64_t runs = divide_up(panels, larger(1, kept / panel_floats));
    const int64_t most = divide_up(panels, runs);
    const int64_t u_floats = CPU_KERNEL(winograd_walk_weights_floats)(c, most);
    const size_t bias_bytes = (size_t)(panels * TILE_COLUMNS) * sizeof(float);
    const bool few = winograd_few_suits(c);
    const int64_t floats = few ? CPU_KERNEL(winograd_few_plan)(c) : plan_member(c, u_floats);
    size_t bytes = (size_t)floats * sizeof(float);
    if (bytes < CPU_KERNEL(winograd_walk_weights_scratch)())
        bytes = CPU_KERNEL(winograd_walk_weights_scratch)();
    TR_TRY(cpu_reserve(c->cpu, bytes, (size_t)u_floats * sizeof(float) + bias_bytes));
    c->u = cpu_shared(c->cpu);
    if (c->bias) {
        c->packed_bias = c->u + u_floats;
        for (int64_t i = 0; i < panels * TILE_COLUMNS; i++)
            c->packed_bias[i] = i < c->target_c ? c->bias[i] : 0.0f;
    }
    const double positions =
        (double)c->rows * c->window->out_h * c->window->out_w * ((double)POSITIONS / 16.0) * c->source_c;
    for (int64_t begin = 0; begin < panels; begin += most) {
        winograd_walk_weights(c, begin, smaller(most, panels - begin));
        cpu_run(c->cpu, positions * (double)(c->panels * TILE_COLUMNS + 8) / (8.0 * VW),
                few ? winograd_few : convolve, c);
    }
    return TR_OK;
}

tr_status CPU_KERNEL(winograd_forward)(tr_device *device, const struct tr_op_winograd_forward *arguments)
{
    const struct tr_op_conv_forward *a = &arguments->conv;
    struct walk c = {.cpu = cpu_device_of(device),
                     .window = &a->window,
                     .rows = a->rows,
                     .source_h = a->window.in_h,
                     .source_w = a->window.in_w,
                     .source_c = a->in_c,
                     .target_h = a->window.out_h,
                     .target_w = a->window.out_w,
                     .target_c = a->out_c,
                     .source = a->x,
                     .target = a->y,
                     .weights = a->w,
                     .bias = a->b,
                     .activation = a->activation,
                     .slope = a->slope};
    return run(&c);
}

struct walk winograd_walk_backward(tr_device *device, const struct tr_op_conv_backward_data *a)
{
    return (struct walk){.cpu = cpu_device_of(device),
                         .window = &a->window,
                         .backward = true,
                         .rows = a->rows,
                         .source_h = a->window.out_h,
                         .source_w = a->window.out_w,
                         .source_c = a->out_c,
                         .target_h = a->window.in_h,
                         .target_w = a->window.in_w,
                         .target_c = a->in_c,
                         .source = a->dy,
                         .target = a->dx,
                         .weights = a->w};
}

tr_status CPU_KERNEL(winograd_backward_data)(tr_device *device,
                                             const struct tr_op_winograd_backward_data *arguments)
{
    struct walk c = winograd_walk_backward(device, &arguments->conv);
    return run(&c);
}
