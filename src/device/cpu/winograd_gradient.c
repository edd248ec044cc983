/* The weight gradient of a Winograd convolution, and both gradients.
 *
 * Per position a product of two tall matrices, of channels by tiles and tiles by filters; a tile of sums is a
 * group of channels by a panel of filters at one position. A member takes a rectangle of channels and
 * filters, or where these are few all of them for some microbatches (subtrees.h); of the filters a chunk of
 * panels at a time. The lines of Winograd tiles go by in blocks, of whole
 * microbatches where these are small enough: V of all the member's channels is made once for a block, Z panel
 * by panel. Rows of a position are the tiles that have it, so that they lie behind each other and make one
 * segment.
 *
 * When a microbatch ends, the 36 sums of a pair become its nine weights, and what waits for its partner in
 * the tree (reduction.h) lies in slots in that form. Sums of a microbatch that goes on in the next block rest
 * where they are.
 *
 * Both gradients take the same transformed gradients of the outputs. Where a member makes Z for all filters,
 * whole lines of it, the input gradient of a block follows while its Z is in the cache (winograd_few.c).
 */
#include "device/cpu/winograd_walk.h"

#include "base/fail.h"
#include "device/cpu/cpu.h"
#include "device/cpu/gradient.h"
#include "device/cpu/pack.h"
#include "device/cpu/reduction.h"
#include "device/cpu/subtrees.h"

#include <assert.h>
#include <string.h>

#define POINTS    TR_WINOGRAD_POINTS
#define POSITIONS TR_WINOGRAD_POSITIONS
#define TAPS      9

/* So few channels lie in V side by side, in rows that all their groups read; more lie group by group. */
#define TOGETHER 32

/* Floats of a block: Z of a panel stays in the second-level cache, V of all channels in the last. */
#define Z_MOST (256 * 1024)
#define V_MOST (1536 * 1024)
/* Floats that wait in slots and sums, over the panels of a chunk. */
#define WAITING_MOST (2 * 1024 * 1024)
/* Floats of Z of all panels that the input gradient takes as well: so few that they stay in the second-level
   cache, but twice those of the sums, which each block takes up and leaves. */
#define BOTH_LEAST (32 * 1024)

struct work {
    struct cpu_device *cpu;
    const struct tr_op_conv_backward_weights *op;
    const struct walk *data; /* of the input gradient that is formed as well, or NULL */
    int64_t data_sums;       /* floats that it takes */
    int32_t tiles_h, tiles_w;
    int64_t width[POINTS]; /* tiles of a line that have the point of the width */
    int parts_rows;        /* the grid of rectangles, one per member, has so many of them below each other */
    int64_t channels, panels; /* of a rectangle, at most */
    int64_t columns;          /* of a tile of sums: all, or half of them where out_c is no more */
    int64_t lines;            /* of a block, at most */
    int64_t chunk;            /* panels */
    bool split;               /* a microbatch may be longer than a block */
    int slots;
    struct subtrees subtrees; /* members that share microbatches instead of rectangles */
    int64_t *pixel_row;       /* the cut's rows counted in pixels, for the bias */
    /* Parts of a member's scratch, in floats; `lines_at` in bytes. */
    int64_t z_at, sums_at, slots_at, border_at, data_at;
    size_t lines_at;
};

/* A member's rectangle, its memory and the block. */
struct block {
    const struct work *work;
    int64_t channel, channels, groups; /* of the rectangle */
    int64_t parts;                     /* of V: all channels, or groups */
    int64_t panel, panels;             /* of the chunk */
    float *v;                          /* [group][position][line, tile][channel of the group] */
    float *z;      /* [position][line, tile][columns], of a panel or, for the input gradient, of each */
    float *sums;   /* [panel of the chunk][group] if microbatches are split, else one: [position][tile] */
    float *slots;  /* [slot][panel of the chunk][tap][channel][columns] */
    float *border; /* for winograd_strip() */
    float *data;   /* for winograd_few_gradient() */
    int32_t (*before)[POINTS]; /* [lines + 1]: lines of the block before this one that have the point */
    int64_t line, lines;       /* of tiles, counted over all images */
};

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static int64_t divide_up(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}

static int64_t floats_round(int64_t floats)
{
    return (int64_t)(cpu_round((size_t)floats * sizeof(float)) / sizeof(float));
}

/* ---- where things lie ---- */

static int64_t group_first(const struct block *block, int64_t group)
{
    return tile_first(block->channels, block->groups, group);
}

static int64_t part_first(const struct block *block, int64_t part)
{
    return tile_first(block->channels, block->parts, part);
}

/* Floats of V at one position of a part of so many channels; the slack is for stores of whole vectors. */
static int64_t v_position(const struct work *g, int64_t width)
{
    return g->lines * g->tiles_w * width + PACK_SLACK;
}

static float *v_part(const struct block *block, int64_t part)
{
    const struct work *g = block->work;
    return block->v + POSITIONS * (part_first(block, part) * g->lines * g->tiles_w + part * PACK_SLACK);
}

static int64_t z_position(const struct work *g)
{
    return g->lines * g->tiles_w * g->columns + PACK_SLACK; /* not a power of two */
}

/* Floats of Z of a panel that stays until those of all panels are there. */
static int64_t z_panel(const struct work *g)
{
    return g->data ? floats_round(POSITIONS * z_position(g)) : 0;
}

/* The first row of a line of the block, at a position. */
static int64_t row_at(const struct block *block, int64_t line, int p)
{
    return block->before[line][p / POINTS] * block->work->width[p % POINTS];
}

/* Per position, where the first tile of a line goes. */
static void offsets(const struct block *block, int64_t line, int64_t position, int64_t width,
                    int64_t offset[POSITIONS])
{
    for (int p = 0; p < POSITIONS; p++) offset[p] = p * position + row_at(block, line, p) * width;
}

/* ---- transforms ---- */

static struct tr_winograd_tile line_tile(const struct work *g, int64_t line)
{
    return tr_winograd_tile(g->op->window.out_h, (int32_t)(line % g->tiles_h));
}

/* Counts the lines of the block that have a point. */
static void count_lines(const struct block *block)
{
    memset(block->before[0], 0, sizeof block->before[0]);
    for (int64_t i = 0; i < block->lines; i++) {
        const int32_t points = line_tile(block->work, block->line + i).points;
        for (int k = 0; k < POINTS; k++)
            block->before[i + 1][k] = block->before[i][k] + tr_winograd_has(points, k);
    }
}

/* V of a tile, for all channels. */
static void transform_tile(const struct block *block, const struct winograd_strip *strip, int points_h,
                           struct tr_winograd_tile x, int64_t index, int64_t offset[2][POSITIONS])
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

/* V of the block. */
static void transform_inputs(const struct block *block)
{
    const struct work *g = block->work;
    const struct tr_sliding_window *window = &g->op->window;
    const int64_t low = block->channels / block->parts;
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
            transform_tile(block, &strip, y.points, tr_winograd_tile(window->out_w, w), w, offset);
    }
}

/* Z of the block and a panel. */
static void transform_gradients(const struct block *block, int64_t panel)
{
    const struct work *g = block->work;
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
            const struct tr_winograd_tile x = tr_winograd_tile(window->out_w, w);
            read.from = g->op->dy +
                        ((image * window->out_h + y.first) * window->out_w + x.first) * g->op->out_c + column;
            read.next = read.from + TR_WINOGRAD_OUTPUTS * read.line;
            winograd_output_adjoint(y.points, x.points, &read);
            read.to += g->columns;
        }
    }
}

/* ---- sums ---- */

/* A group of channels by a panel of Z. A tile is described once and only aimed at each position: blocks may
   be so short that describing it takes as long as a few steps. */
struct product {
    struct tile tile;
    const float *v; /* of the group, at the first position */
    int64_t width;  /* floats between rows of V */
    int64_t height; /* channels */
    float *sums;
};

static void begin_product(const struct block *block, int64_t group, bool resume, float *sums,
                          const struct tile_segment *segment, struct product *product)
{
    const struct work *g = block->work;
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

/* Lets the sums at one position take the rows from `row` on, of which z is the first. */
static void multiply(const struct work *g, struct product *product, int p, int64_t row, const float *z)
{
    struct tile *tile = &product->tile;
    tile->a = product->v + p * v_position(g, product->width) + row * product->width;
    tile->b = z;
    tile->to = product->sums + p * TILE_ROWS * g->columns;
    if (tile->from) tile->from = tile->to;
    tile_compute(product->height, tile);
}

/* Ends a microbatch of a group and panel: its weights go to a slot, or to their node. */
static void end_microbatch(const struct block *block, int64_t group, int64_t panel,
                           const struct reduction_piece *piece, const float *sums)
{
    const struct work *g = block->work;
    const struct tr_op_conv_backward_weights *op = g->op;
    const int64_t first = group_first(block, group);
    const int64_t slot_tap = block->channels * g->columns, slot = block->panels * TAPS * slot_tap;
    float *waiting = block->slots + (panel - block->panel) * TAPS * slot_tap + first * g->columns;
    const float *left[TR_TREE_DEPTH];
    struct winograd_leaf leaf = {.from = sums,
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

/* Lets all tiles of a panel take the pieces of the block; the last one may be unfinished. With channels side
   by side all groups take a position together, whose rows they find in the first-level cache. */
static void reduce_panel(const struct block *block, int64_t panel, const struct reduction_piece *pieces,
                         int count, bool unfinished)
{
    const struct work *g = block->work;
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

/* Gives the input gradient its part of the block, whose Z is there for all panels. */
static void form_inputs(const struct block *block)
{
    const struct work *g = block->work;
    const struct winograd_lines lines = {.z = block->z,
                                         .position = z_position(g),
                                         .row = g->columns,
                                         .run = smaller(g->columns, g->op->out_c),
                                         .panel = z_panel(g),
                                         .line = block->line,
                                         .lines = block->lines,
                                         .sums = block->data};
    winograd_few_gradient(g->data, &lines);
}

/* How many lines the next block takes: whole microbatches, unless one alone is longer than a block. */
static int64_t next_lines(const struct work *g, const struct reduction *reduction)
{
    const struct tr_cut *cut = &g->op->cut;
    int64_t lines = 0, done = reduction->done;
    for (int32_t i = reduction->microbatch; i < cut->count; i++, done = 0) {
        const int64_t more = (cut->row[i + 1] - cut->row[i]) * g->tiles_h - done;
        if (lines + more > g->lines) break;
        lines += more;
    }
    return lines > 0 ? lines : g->lines;
}

/* Takes a chunk of panels through all blocks of the images from `image` on. */
static void reduce_chunk(struct block *block, int64_t image)
{
    const struct work *g = block->work;
    struct reduction reduction;
    struct reduction_piece pieces[REDUCTION_PIECES];
    int count;
    cpu_reduction_begin(&reduction, &g->op->cut, g->tiles_h, NULL);
    block->line = image * g->tiles_h;
    while ((count = cpu_reduction_next(&reduction, next_lines(g, &reduction), pieces, &block->lines)) > 0) {
        count_lines(block);
        transform_inputs(block);
        for (int64_t panel = block->panel; panel < block->panel + block->panels; panel++)
            reduce_panel(block, panel, pieces, count, reduction.done > 0);
        if (g->data) form_inputs(block);
        block->line += block->lines;
    }
}

static void reduce(void *arguments, int member, int size)
{
    const struct work *g = arguments;
    const bool all = size == 1 || g->subtrees.count > 0;
    const int parts_rows = all ? 1 : g->parts_rows, parts_columns = all ? 1 : size / parts_rows;
    float *memory = cpu_scratch(g->cpu, member);
    int64_t channel, channel_end, panel, panel_end;
    tr_team_share(g->op->in_c, 1, member / parts_columns % parts_rows, parts_rows, &channel, &channel_end);
    tr_team_share(divide_up(g->op->out_c, TILE_COLUMNS), 1, member % parts_columns, parts_columns, &panel,
                  &panel_end);
    struct block block = {.work = g,
                          .channel = channel,
                          .channels = channel_end - channel,
                          .groups = tile_count(channel_end - channel),
                          .parts = channel_end - channel > TOGETHER ? tile_count(channel_end - channel) : 1,
                          .v = memory,
                          .z = memory + g->z_at,
                          .sums = memory + g->sums_at,
                          .slots = memory + g->slots_at,
                          .border = memory + g->border_at,
                          .data = memory + g->data_at,
                          .before = (int32_t(*)[POINTS])((char *)memory + g->lines_at)};
    struct work own = *g;
    struct tr_op_conv_backward_weights op = *g->op;
    int32_t bound[2];
    int64_t image = 0;
    if (g->subtrees.count > 0) {
        op.cut = subtrees_cut(&g->subtrees, &g->op->cut, member, bound);
        image = op.cut.row[0];
        if (member > 0) op.dw = subtrees_sums(&g->subtrees, member);
        own.op = &op;
        block.work = &own;
    }
    for (; channel < channel_end && panel < panel_end; panel += block.panels) {
        block.panel = panel;
        block.panels = smaller(g->chunk, panel_end - panel);
        reduce_chunk(&block, image);
    }
    if (g->op->db) {
        struct tr_cut cut = g->op->cut;
        cut.row = g->pixel_row;
        tr_team_share(g->op->out_c, 16, member, size, &channel, &channel_end);
        sum_columns(&cut, g->op->dy, g->op->out_c, channel, channel_end, g->op->db);
    }
}

/* ---- sizes ---- */

/* Cycles that a member spends with a rectangle of such a size; the constants only weigh the choices. */
static double cost(int64_t channels, int64_t panels)
{
    const int64_t groups = tile_count(channels);
    const int64_t height = channels < 4 * groups ? 4 * groups : channels;
    return (double)panels * ((double)height + 6.0) + (double)groups * 4.0;
}

static void choose_parts(struct work *g)
{
    const int64_t panels = divide_up(g->op->out_c, TILE_COLUMNS);
    double best = 0.0;
    for (int parts = 1; parts <= g->cpu->base.threads; parts++) {
        if (g->cpu->base.threads % parts) continue;
        const int64_t channels = divide_up(g->op->in_c, parts);
        const int64_t across = divide_up(panels, g->cpu->base.threads / parts);
        if (g->parts_rows > 0 && cost(channels, across) >= best) continue;
        best = cost(channels, across);
        g->parts_rows = parts;
    }
    /* A small call is left to the caller alone, with all of it. */
    g->channels = g->op->in_c;
    g->panels = panels;
}

static int64_t longest_microbatch(const struct tr_cut *cut)
{
    int64_t rows = 0;
    for (int32_t i = 0; i < cut->count; i++) rows = larger(rows, cut->row[i + 1] - cut->row[i]);
    return rows;
}

/* Chooses blocks and chunks, and lays out a member's scratch. Returns its size in bytes. */
static size_t plan_member(struct work *g)
{
    const int64_t across = POSITIONS * g->tiles_w; /* numbers of a line, per channel */
    const int64_t groups = tile_count(g->channels) + 1;
    const int64_t all = larger(1, g->op->cut.count > 0 ? g->op->cut.row[g->op->cut.count] * g->tiles_h : 0);
    const struct cpu_room *room = &g->cpu->room;
    int64_t most = smaller(cpu_room_second(room, Z_MOST, 0) / (across * g->columns),
                           cpu_room_last(room, V_MOST, 0) / (across * g->channels));
    if (g->data) {
        const int64_t z = larger(BOTH_LEAST, 2 * POSITIONS * g->channels * g->columns * g->panels);
        most = smaller(most, cpu_room_second(room, z, 0) / (across * g->columns * g->panels));
    }
    g->lines = smaller(all, larger(1, most));
    g->split = longest_microbatch(&g->op->cut) * g->tiles_h > g->lines;
    g->slots = cpu_reduction_slots(&g->op->cut);
    const int64_t sums = POSITIONS * TILE_ROWS * g->columns;
    const int64_t waiting = g->slots * TAPS * g->channels * g->columns;
    g->chunk = smaller(g->panels, larger(1, cpu_room_last(room, WAITING_MOST, 0) /
                                                (waiting + (g->split ? groups * sums : 0))));
    if (g->data) g->chunk = g->panels; /* few enough */
    g->z_at = floats_round(across * g->lines * g->channels + groups * POSITIONS * PACK_SLACK);
    const int64_t z_panels = g->data ? g->panels : 1;
    g->sums_at = g->z_at + z_panels * floats_round(POSITIONS * z_position(g)) + floats_round(PACK_SLACK);
    g->slots_at = g->sums_at + floats_round(sums * (g->split ? g->chunk * groups : tile_count(TOGETHER)));
    g->border_at = g->slots_at + floats_round(g->chunk * waiting);
    g->data_at = g->border_at + floats_round(winograd_strip_floats(&g->op->window, g->op->in_c));
    g->lines_at = (size_t)(g->data_at + floats_round(g->data_sums)) * sizeof(float);
    return g->lines_at + (size_t)(g->lines + 1) * POINTS * sizeof(int32_t);
}

/* What follows from the shape and the cut. Returns the work in nanoseconds. */
static double plan(struct work *g)
{
    const struct tr_op_conv_backward_weights *a = g->op;
    const struct tr_sliding_window *window = &a->window;
    assert(tr_winograd_suits(window));
    g->tiles_h = tr_winograd_tiles(window->out_h);
    g->tiles_w = tr_winograd_tiles(window->out_w);
    g->columns = a->out_c <= TILE_COLUMNS / 2 ? TILE_COLUMNS / 2 : TILE_COLUMNS;
    for (int32_t w = 0; w < g->tiles_w; w++)
        for (int k = 0; k < POINTS; k++)
            g->width[k] += tr_winograd_has(tr_winograd_tile(window->out_w, w).points, k);
    choose_parts(g);
    const int64_t rows = a->cut.count > 0 ? a->cut.row[a->cut.count] : 0;
    const double products = (double)(rows * g->tiles_h * g->tiles_w + 8) * POSITIONS * a->in_c * a->out_c;
    const double nanoseconds = products / (8.0 * VW);
    g->subtrees = subtrees_plan(g->cpu, nanoseconds, &a->cut, (int64_t)TAPS * a->in_c * a->out_c, 0);
    return nanoseconds;
}

/* Forms the gradient of the weights and, if there is a walk for it, that of the inputs. */
static tr_status run(struct work *g, double nanoseconds, struct walk *data)
{
    const struct tr_op_conv_backward_weights *a = g->op;
    const int64_t pixels = (int64_t)a->window.out_h * a->window.out_w;
    const int64_t panels = data ? winograd_walk_shape(data) : 0;
    const int64_t u_floats = data ? CPU_KERNEL(winograd_walk_weights_floats)(data, panels) : 0;
    if (data) g->data_sums = CPU_KERNEL(winograd_few_sums)(data);
    g->data = data;
    const size_t row_bytes = cpu_round((size_t)(a->cut.count + 1) * sizeof(int64_t));
    const size_t u_at = row_bytes + cpu_round(subtrees_bytes(&g->subtrees));
    size_t bytes = plan_member(g);
    if (data && bytes < CPU_KERNEL(winograd_walk_weights_scratch)())
        bytes = CPU_KERNEL(winograd_walk_weights_scratch)();
    TR_TRY(cpu_reserve(g->cpu, bytes, u_at + (size_t)u_floats * sizeof(float)));
    g->pixel_row = cpu_shared(g->cpu);
    g->subtrees.sums = (float *)((char *)cpu_shared(g->cpu) + row_bytes);
    for (int32_t i = 0; i < a->cut.count; i++) g->pixel_row[i + 1] = a->cut.row[i + 1] * pixels;
    g->pixel_row[0] = 0;
    if (data) {
        data->u = (float *)((char *)cpu_shared(g->cpu) + u_at);
        winograd_walk_weights(data, 0, panels);
    }
    cpu_run(g->cpu, nanoseconds, reduce, g);
    if (g->subtrees.count > 0) subtrees_add(g->cpu, &g->subtrees, a->dw, NULL);
    return TR_OK;
}

tr_status CPU_KERNEL(winograd_backward_weights)(tr_device *device,
                                                const struct tr_op_winograd_backward_weights *arguments)
{
    struct work g = {.cpu = cpu_device_of(device), .op = &arguments->conv};
    return run(&g, plan(&g), NULL);
}

/* Whether one member makes Z of whole blocks, for all filters, in the form that the input gradient takes. */
static bool shares_z(const struct work *g, const struct walk *data)
{
    const struct tr_cut *cut = &g->op->cut;
    if (cut->count == 0 || cut->row[cut->count] != data->rows) return false;
    if (!winograd_few_suits(data) || data->target_c > WINOGRAD_FEW) return false;
    return data->target_c > 0 && (g->cpu->base.threads == 1 || g->subtrees.count > 0);
}

tr_status CPU_KERNEL(winograd_backward)(tr_device *device, const struct tr_op_winograd_backward *arguments)
{
    struct walk data = winograd_walk_backward(device, &arguments->data.conv);
    struct work g = {.cpu = cpu_device_of(device), .op = &arguments->weights.conv};
    const double nanoseconds = plan(&g);
    if (shares_z(&g, &data)) return run(&g, 2.0 * nanoseconds, &data);
    TR_TRY(run(&g, nanoseconds, NULL));
    return CPU_KERNEL(winograd_backward_data)(device, &arguments->data);
}
