#include "device/cpu/winograd/block.h"

#include <string.h>

/* ---- where things lie ---- */

static int64_t group_first(const struct winograd_block *block, int64_t group)
{
    return tile_first(block->channels, block->groups, group);
}

static int64_t part_first(const struct winograd_block *block, int64_t part)
{
    return tile_first(block->channels, block->parts, part);
}

/* Floats of V at one position of a part of so many channels; the slack is for stores of whole vectors. */
static int64_t v_position(const struct winograd_work *g, int64_t width)
{
    return g->lines * g->tiles_w * width + PACK_SLACK;
}

static float *v_part(const struct winograd_block *block, int64_t part)
{
    const struct winograd_work *g = block->work;
    return block->v + POSITIONS * (part_first(block, part) * g->lines * g->tiles_w + part * PACK_SLACK);
}

/* The first row, at a position, of a line of the block. */
static int64_t row_at(const struct winograd_block *block, int64_t line, int p)
{
    return block->before[line][p / POINTS] * block->work->width[p % POINTS];
}

/* For each position, where the first tile of a line goes. */
static void offsets(const struct winograd_block *block, int64_t line, int64_t position, int64_t width,
                    int64_t offset[POSITIONS])
{
    for (int p = 0; p < POSITIONS; p++) offset[p] = p * position + row_at(block, line, p) * width;
}

/* ---- transforms ---- */

static struct tr_winograd_tile line_tile(const struct winograd_work *g, int64_t line)
{
    return tr_winograd_tile(g->taps, g->op->window.out_h, (int32_t)(line % g->tiles_h));
}

/* Counts the lines of the block that have each point. */
static void count_lines(const struct winograd_block *block)
{
    memset(block->before[0], 0, sizeof block->before[0]);
    for (int64_t i = 0; i < block->lines; i++) {
        const int32_t points = line_tile(block->work, block->line + i).points;
        for (int k = 0; k < POINTS; k++)
            block->before[i + 1][k] = block->before[i][k] + tr_winograd_has(points, k);
    }
}

/* V of a tile, for all channels. */
static void transform_tile(const struct winograd_block *block, const struct winograd_strip *strip,
                           int points_h, struct tr_winograd_tile x, int64_t index,
                           int64_t offset[2][POSITIONS])
{
    const int64_t in_c = block->work->op->in_c, low = block->channels / block->parts;
    struct winograd_read read = {.pixel = in_c, .readable = in_c - block->channel};
    read.from = winograd_strip_tile(strip, x, in_c, &read.line) + block->channel;
    read.next = strip->next + x.first * in_c + block->channel;
    read.next_line = block->work->op->window.in_w * in_c;
    for (int64_t k = 0; k < block->parts; k++) {
        const int64_t width = part_first(block, k + 1) - part_first(block, k);
        read.count = width;
        read.to = v_part(block, k) + index * width;
        read.offset = offset[width - low];
        winograd_input(points_h, x.points, &read);
        read.from += width;
        read.next += width;
        read.readable -= width;
    }
}

void winograd_block_inputs(const struct winograd_block *block)
{
    const struct winograd_work *g = block->work;
    const struct tr_sliding_window *window = &g->op->window;
    const int64_t low = block->channels / block->parts;
    count_lines(block);
    for (int64_t i = 0; i < block->lines; i++) {
        const int64_t line = block->line + i;
        const struct tr_winograd_tile y = line_tile(g, line);
        struct winograd_strip strip;
        winograd_strip(window, g->op->in_c,
                       g->op->x + line / g->tiles_h * window->in_h * window->in_w * g->op->in_c, y,
                       block->border, &strip);
        int64_t offset[2][POSITIONS];
        for (int k = 0; k < 2; k++) offsets(block, i, v_position(g, low + k), low + k, offset[k]);
        for (int32_t w = 0; w < g->tiles_w; w++)
            transform_tile(block, &strip, y.points, tr_winograd_tile(g->taps, window->out_w, w), w, offset);
    }
}

/* Z of the block and a panel. */
static void transform_gradients(const struct winograd_block *block, int64_t panel)
{
    const struct winograd_work *g = block->work;
    const struct tr_sliding_window *window = &g->op->window;
    const int64_t column = panel * TILE_COLUMNS, left = g->op->out_c - column;
    for (int64_t i = 0; i < block->lines; i++) {
        const int64_t line = block->line + i, image = line / g->tiles_h;
        const struct tr_winograd_tile y = line_tile(g, line);
        int64_t offset[POSITIONS];
        offsets(block, i, z_position(g), g->columns, offset);
        struct winograd_read read = {.line = (int64_t)window->out_w * g->op->out_c,
                                     .pixel = g->op->out_c,
                                     .count = g->columns,
                                     .readable = left,
                                     .to = block->z + (panel - block->panel) * z_panel(g),
                                     .offset = offset,
                                     .next_line = (int64_t)window->out_w * g->op->out_c};
        for (int32_t w = 0; w < g->tiles_w; w++) {
            const struct tr_winograd_tile x = tr_winograd_tile(g->taps, window->out_w, w);
            read.from = g->op->dy +
                        ((image * window->out_h + y.first) * window->out_w + x.first) * g->op->out_c + column;
            read.next = read.from + tr_winograd_whole(g->taps) * read.line;
            winograd_output_adjoint(g->taps, y.points, x.points, &read);
            read.to += g->columns;
        }
    }
}

void winograd_block_gradients(const struct winograd_block *block)
{
    count_lines(block);
    for (int64_t panel = block->panel; panel < block->panel + block->panels; panel++)
        transform_gradients(block, panel);
}

/* ---- sums ---- */

/* A group of channels by a panel of Z. A tile is set up once and only pointed at each position: blocks may
   be so short that setting it up takes as long as a few steps. */
struct product {
    struct tile tile;
    const float *v; /* of the group, at the first position */
    int64_t width;  /* floats between rows of V */
    int64_t height; /* channels */
    float *sums;
};

static void begin_product(const struct winograd_block *block, int64_t group, bool resume, float *sums,
                          const struct tile_segment *segment, struct product *product)
{
    const struct winograd_work *g = block->work;
    const int64_t first = group_first(block, group), part = block->parts > 1 ? group : 0;
    product->width = part_first(block, part + 1) - part_first(block, part);
    product->height = group_first(block, group + 1) - first;
    product->v = v_part(block, part) + first - part_first(block, part);
    product->sums = sums;
    product->tile = (struct tile){.segments = segment,
                                  .count = 1,
                                  .a_step = product->width,
                                  .b_step = g->columns,
                                  .from = resume ? sums : NULL,
                                  .from_step = g->columns,
                                  .to_step = g->columns,
                                  .columns = g->columns};
}

/* Makes the sums at one position take the rows from `row` on, the first of which is z. */
static void multiply(const struct winograd_work *g, struct product *product, int p, int64_t row,
                     const float *z)
{
    struct tile *tile = &product->tile;
    tile->a = product->v + p * v_position(g, product->width) + row * product->width;
    tile->b = z;
    tile->to = product->sums + p * TILE_ROWS * g->columns;
    if (tile->from) tile->from = tile->to;
    tile_compute(product->height, tile);
}

/* Ends a microbatch of a group and panel: its weights go to a slot, or to their node. */
static void end_microbatch(const struct winograd_block *block, int64_t group, int64_t panel,
                           const struct reduction_piece *piece, const float *sums)
{
    const struct winograd_work *g = block->work;
    const struct tr_op_conv_backward_weights *op = g->op;
    const int64_t first = group_first(block, group);
    const int64_t slot_tap = block->channels * g->columns, slot = block->panels * block_taps(g) * slot_tap;
    float *waiting = block->slots + (panel - block->panel) * block_taps(g) * slot_tap + first * g->columns;
    const float *left[TR_TREE_DEPTH];
    struct winograd_leaf leaf = {.taps = g->taps,
                                 .from = sums,
                                 .position = TILE_ROWS * g->columns,
                                 .width = g->columns,
                                 .rows = group_first(block, group + 1) - first,
                                 .columns = smaller(g->columns, op->out_c - panel * TILE_COLUMNS),
                                 .left = left,
                                 .lefts = piece->lefts,
                                 .left_tap = slot_tap,
                                 .left_row = g->columns};
    for (int i = 0; i < piece->lefts; i++) left[i] = waiting + (piece->fresh - 1 - i) * slot;
    if (piece->slot < 0) {
        leaf.to = op->dw + piece->node * op->cut.stride + (block->channel + first) * op->out_c +
                  panel * TILE_COLUMNS;
        leaf.tap = (int64_t)op->in_c * op->out_c;
        leaf.row = op->out_c;
    } else {
        leaf.to = waiting + piece->slot * slot;
        leaf.tap = slot_tap;
        leaf.row = g->columns;
        leaf.columns = g->columns;
    }
    winograd_sums(&leaf);
}

/* With channels side by side all groups process a position together, and find its rows in the first-level
   cache. */
void winograd_block_reduce(const struct winograd_block *block, int64_t panel,
                           const struct reduction_piece *pieces, int count, bool unfinished)
{
    const struct winograd_work *g = block->work;
    const int64_t size = POSITIONS * TILE_ROWS * g->columns;
    const int64_t together = block->parts > 1 ? 1 : block->groups;
    const float *z = block->z + (panel - block->panel) * z_panel(g);
    struct product products[TOGETHER / TILE_ROWS + 1];
    struct tile_segment segment = {0};
    transform_gradients(block, panel);
    for (int64_t group = 0; group < block->groups; group += together) {
        float *sums = block->sums + (g->split ? ((panel - block->panel) * block->groups + group) * size : 0);
        for (int i = 0; i < count; i++) {
            const struct reduction_piece *piece = &pieces[i];
            for (int64_t k = 0; k < together; k++)
                begin_product(block, group + k, piece->resume, sums + k * size, &segment, &products[k]);
            for (int p = 0; p < POSITIONS; p++) {
                const int64_t row = row_at(block, piece->row, p);
                segment.length = (int32_t)(row_at(block, piece->row + piece->rows, p) - row);
                for (int64_t k = 0; k < together; k++)
                    multiply(g, &products[k], p, row, z + p * z_position(g) + row * g->columns);
            }
            if (i + 1 < count || !unfinished)
                for (int64_t k = 0; k < together; k++)
                    end_microbatch(block, group + k, panel, piece, sums + k * size);
        }
    }
}
