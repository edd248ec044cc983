/* Winograd convolutions of few channels, forward and input gradient, whose outputs are whole tiles.
 *
 * The rows of a tile of sums are Winograd tiles, one after the other through lines and images. Their
 * transformed numbers lie as [position][tile][channel], as the transform of a pixel's channels leaves them,
 * so nothing is interleaved; and outputs are written image by image. Lines of tiles go through in bands,
 * whose transformed numbers and sums stay in the second-level cache.
 *
 * Backward, neighbouring tiles overlap by taps - 1 pixels, to which they add in order. A member that begins
 * inside of an image also computes the lines of tiles before its own that share lines of pixels with them.
 */
#include "device/cpu/grid.h"
#include "device/cpu/products/row_tile.h"
#include "device/cpu/sizes.h"
#include "device/cpu/winograd/walk.h"

#define POINTS    TR_WINOGRAD_POINTS
#define POSITIONS TR_WINOGRAD_POSITIONS

/* Most lines of tiles in a band. */
#define BAND_LINES 64
/* Padding between positions: a distance that is a power of two would map all of them to one cache set. */
#define GAP 16

/* A line of tiles, and the lines of the target that it may write. */
struct line {
    int64_t image;
    int32_t tile_h;
    int32_t begin, end;
};

/* A member's memory, and the lines that wait in it. */
struct band {
    const struct walk *walk;
    float *border, *sums;
    const float *v;                         /* V or, backward, Z */
    int64_t row, v_position, sums_position; /* floats between tiles of V, between positions */
    int64_t run, jump;                      /* channels that lie side by side in V, floats to the next such
                                               group */
    int count;
    struct line lines[BAND_LINES];
};

/* Channels rounded up to whole vectors, so that a tile's stores do not reach into the next tile. */
static int64_t row_floats(const struct walk *c)
{
    return (c->call.source_c + VW - 1) / VW * VW;
}

/* Transforms the sources of all tiles of the band. */
static void transform_band(const struct band *band, float *to)
{
    const struct walk *c = band->walk;
    const int64_t size = c->call.source_c, line = c->call.source_w * size, image = c->call.source_h * line;
    int64_t offset[POSITIONS];
    for (int p = 0; p < POSITIONS; p++) offset[p] = p * band->v_position;
    struct winograd_read read = {.pixel = size, .count = size, .readable = size, .to = to, .offset = offset};
    for (const struct line *l = band->lines; l < band->lines + band->count; l++) {
        const float *from = c->call.source + l->image * image;
        const struct tr_winograd_tile y = tr_winograd_tile(c->taps, c->call.window->out_h, l->tile_h);
        struct winograd_strip strip = {.image = from + y.first * line,
                                       .next = from + (int64_t)(y.first + c->outputs) * line,
                                       .line = line,
                                       .inside_end = c->call.window->out_w + c->overlap};
        if (!c->call.backward)
            winograd_strip(c->call.window, c->call.source_c, from, y, band->border, &strip);
        read.next_line = line;
        for (int32_t w = 0; w < c->tiles_w; w++, read.to += band->row) {
            const struct tr_winograd_tile x = tr_winograd_tile(c->taps, c->call.window->out_w, w);
            read.from = winograd_strip_tile(&strip, x, size, &read.line);
            read.next = strip.next + x.first * size;
            if (c->call.backward)
                winograd_output_adjoint(c->taps, POINTS, POINTS, &read);
            else
                winograd_input(POINTS, POINTS, &read);
        }
    }
}

/* Multiplies the band with a panel of transformed weights. */
static void multiply_band(const struct band *band, const float *u)
{
    const struct walk *c = band->walk;
    const int64_t rows = (int64_t)band->count * c->tiles_w, tiles = tile_count(rows);
    const struct tile_segment segment = {.length = c->call.source_c};
    struct row_tile tile = {.tile = {.segments = &segment,
                                     .count = 1,
                                     .a_step = band->row,
                                     .b_step = TILE_COLUMNS,
                                     .to_step = c->columns,
                                     .columns = c->columns},
                            .run = band->run,
                            .jump = band->jump};
    for (int p = 0; p < POSITIONS; p++) {
        tile.tile.b = u + p * c->u_position;
        for (int64_t t = 0; t < tiles; t++) {
            const int64_t first = tile_first(rows, tiles, t);
            tile.tile.a = band->v + p * band->v_position + first * band->row;
            tile.tile.to = band->sums + p * band->sums_position + first * c->columns;
            row_tile_compute(tile_first(rows, tiles, t + 1) - first, &tile);
        }
    }
}

/* Gradients of the inputs of a line of tiles: the tiles at its ends may extend beyond the image. */
static void finish_backward(const struct walk *c, const struct line *line, struct winograd_write *write)
{
    const int32_t i = line->tile_h * c->outputs - c->call.window->pad_top;
    struct winograd_clip clip = {.line = (int)larger(line->begin - i, 0),
                                 .line_end = (int)smaller(line->end - i, POINTS),
                                 .added_above = line->tile_h > 0,
                                 .overlap = c->overlap};
    float *const target = write->to;
    for (int32_t w = 0, more; w < c->tiles_w; w += more) {
        const int32_t j = w * c->outputs - c->call.window->pad_left;
        more = 1;
        if (w > 0 && j >= 0) /* tiles that lie inside as a whole */
            while (w + more < c->tiles_w && j + more * c->outputs + POINTS <= c->call.target_w) more++;
        write->to = target + (int64_t)i * write->line + (int64_t)j * write->pixel;
        write->rows = more;
        clip.column = (int)larger(-j, 0);
        clip.column_end = (int)smaller(c->call.target_w - j, POINTS);
        clip.added_left = w > 0;
        winograd_input_adjoint(POINTS, POINTS, write, &clip);
        write->from += more * write->row;
    }
}

/* Transforms the sums of the band back, into the target's panel at `column`. */
static void finish_band(const struct band *band, int64_t column)
{
    const struct walk *c = band->walk;
    const struct winograd_finish finish = {.bias = c->packed_bias ? c->packed_bias + column : NULL,
                                           .activation = c->call.activation,
                                           .slope = c->call.slope};
    struct winograd_write write = {.from = band->sums,
                                   .position = band->sums_position,
                                   .row = c->columns,
                                   .columns = smaller(TILE_COLUMNS, c->call.target_c - column),
                                   .image = (int64_t)c->outputs * c->call.target_c,
                                   .line = (int64_t)c->call.target_w * c->call.target_c,
                                   .pixel = c->call.target_c};
    for (const struct line *l = band->lines; l < band->lines + band->count; l++) {
        write.to = c->call.target + l->image * c->call.target_h * write.line + column;
        if (c->call.backward) {
            finish_backward(c, l, &write);
        } else {
            write.to += l->tile_h * c->outputs * write.line;
            write.rows = c->tiles_w;
            winograd_output(c->taps, POINTS, POINTS, &write, &finish);
            write.from += c->tiles_w * write.row;
        }
    }
}

/* Computes the target from the transformed lines of the band. */
static void complete_band(struct band *band)
{
    const struct walk *c = band->walk;
    for (int64_t panel = 0; panel < c->panels; panel++) {
        multiply_band(band, c->u + panel * POSITIONS * c->u_position);
        finish_band(band, (c->panel_begin + panel) * TILE_COLUMNS);
    }
    band->count = 0;
}

static void convolve_band(struct band *band)
{
    if (band->count == 0) return;
    transform_band(band, band->border + band->walk->v_at);
    complete_band(band);
}

/* Lines of tiles [begin, end) of an image. */
static void convolve_lines(struct band *band, int64_t image, int32_t begin, int32_t end)
{
    const struct walk *c = band->walk;
    struct line line = {.image = image, .tile_h = begin, .end = c->call.target_h};
    if (c->call.backward) {
        if (begin > 0) line.begin = (int32_t)larger(0, begin * c->outputs - c->call.window->pad_top);
        if (end < c->tiles_h) line.end = end * c->outputs - c->call.window->pad_top;
        line.tile_h = (int32_t)larger(0, begin - walk_lines_above(c));
    }
    for (; line.tile_h < end; line.tile_h++) {
        band->lines[band->count++] = line;
        if (band->count == c->band_h) convolve_band(band);
    }
}

/* ---- chunks and sizes ---- */

static int64_t v_position(const struct walk *c)
{
    return (int64_t)c->band_h * c->tiles_w * row_floats(c) + GAP;
}

static int64_t sums_position(const struct walk *c)
{
    return (int64_t)c->band_h * c->tiles_w * c->columns + GAP;
}

void winograd_few(void *arguments, int member, int size)
{
    const struct walk *c = arguments;
    struct band band = {.walk = c,
                        .border = cpu_scratch(c->call.cpu, member),
                        .row = row_floats(c),
                        .run = c->call.source_c,
                        .v_position = v_position(c),
                        .sums_position = sums_position(c)};
    band.v = band.border + c->v_at;
    band.sums = band.border + c->sums_at;
    int64_t unit, end;
    cpu_items(c->call.cpu->balance, c->call.rows * c->tiles_h, 1, member, size, &unit, &end);
    while (unit < end) {
        const int64_t image = unit / c->tiles_h, line = unit % c->tiles_h;
        const int64_t stop = smaller(c->tiles_h, line + end - unit);
        convolve_lines(&band, image, (int32_t)line, (int32_t)stop);
        unit += stop - line;
    }
    convolve_band(&band);
}

void winograd_few_gradient(const struct walk *c, const struct winograd_lines *lines)
{
    struct band band = {.walk = c,
                        .sums = lines->sums,
                        .row = lines->row,
                        .run = lines->run,
                        .jump = lines->panel,
                        .v_position = lines->position,
                        .sums_position = sums_position(c)};
    for (int64_t i = 0; i < lines->lines; i += c->band_h) {
        const int64_t end = smaller(lines->lines, i + c->band_h);
        for (int64_t k = i; k < end; k++)
            band.lines[band.count++] = (struct line){.image = (lines->line + k) / c->tiles_h,
                                                     .tile_h = (int32_t)((lines->line + k) % c->tiles_h),
                                                     .end = c->call.target_h};
        band.v = lines->z + i * c->tiles_w * lines->row;
        complete_band(&band);
    }
}

/* An estimate of the floats of a band, transformed numbers and sums. */
static int64_t band_floats(const struct walk *c)
{
    return cpu_room_second(&c->call.cpu->room, c->call.cpu->blocks.winograd_few_band, 0);
}

int64_t CPU_KERNEL(winograd_few_plan)(struct walk *c)
{
    const int64_t line = POSITIONS * c->tiles_w * (row_floats(c) + c->columns);
    c->band_h = (int32_t)smaller(BAND_LINES, larger(1, band_floats(c) / line));
    c->band_w = c->tiles_w;
    c->v_at = floats_round(winograd_strip_floats(c->call.window, c->call.source_c));
    c->sums_at = c->v_at + floats_round(POSITIONS * v_position(c));
    return c->sums_at + POSITIONS * sums_position(c);
}

int64_t CPU_KERNEL(winograd_few_sums)(struct walk *c)
{
    const int64_t line = POSITIONS * c->tiles_w * c->columns;
    c->band_h = (int32_t)smaller(BAND_LINES, larger(1, band_floats(c) / 2 / line));
    c->band_w = c->tiles_w;
    return POSITIONS * sums_position(c);
}
