/* The weight gradient of a convolution.
 *
 * A tile is a group of channels (or, where a kernel row has few inputs, that kernel row or a part of it) by
 * a panel of filters; its chains run over the output pixels. A member takes a chunk of all (panel, group,
 * tap) tiles or, where these are few, all tiles of some microbatches (subtrees.h). The pixels are processed
 * in blocks of output lines, packed once for all taps (conv_block.c). A tile's segments are the runs of
 * pixels that have the tap inside the image (conv_segments.c). Sums that wait for the next block, or for
 * their partner in the tree over microbatches, lie in slots (reduction.h); where all pixels are one block,
 * all tiles use the same ones.
 *
 * With few channels a kernel row is read directly from the image: its next pixel is the next step of the
 * same rows. Pixels at the border have only some of the rows, as noted in the segment.
 */
#include "device/cpu/convolutions/conv_gradient.h"

#include "base/fail.h"
#include "device/cpu/convolutions/conv_pointwise.h"
#include "device/cpu/grid.h"
#include "device/cpu/products/piece_sums.h"
#include "device/cpu/products/subtree_sums.h"
#include "device/cpu/reduction.h"
#include "device/cpu/sizes.h"
#include "device/cpu/vectors/ahead.h"

/* Least output pixels in a block: its packed data stay in the second-level cache (blocks.h). */
#define BLOCK_PIXELS_LEAST 64

#define TILE_SIZE (TILE_ROWS * TILE_COLUMNS)

/* The beginning of every tile: where it reads dy, and which columns it has. */
static struct tile panel_tile(const struct conv_gradient *g, const struct conv_block *block, int64_t panel)
{
    const struct tr_op_conv_backward_weights *op = g->op;
    struct tile tile = {.from_step = TILE_COLUMNS,
                        .columns = smaller(TILE_COLUMNS, op->out_c - panel * TILE_COLUMNS)};
    if (g->direct) {
        tile.b = op->dy + block->line * op->window.out_w * op->out_c + panel * TILE_COLUMNS;
        tile.b_step = tile.b_unit = op->out_c;
    } else {
        tile.b = block->b + (panel - block->panel) * g->lines * op->window.out_w * TILE_COLUMNS;
        tile.b_step = tile.b_unit = TILE_COLUMNS;
    }
    return tile;
}

/* Computes one piece of a tile whose segments are set: from and to the slots, or to the node at `to`. */
static void reduce_piece(const struct conv_gradient *g, struct tile *tile, int64_t height,
                         const struct reduction_piece *piece, float *waiting, int64_t slot_step, float *to)
{
    const float *left[TR_TREE_DEPTH];
    for (int i = 0; i < piece->lefts; i++) left[i] = waiting + (piece->fresh - 1 - i) * slot_step;
    tile->left = left;
    tile->lefts = piece->lefts;
    tile->from = piece->resume ? waiting + piece->fresh * slot_step : NULL;
    tile->to = piece->slot < 0 ? to + piece->node * g->op->cut.stride : waiting + piece->slot * slot_step;
    tile->to_step = piece->slot < 0 ? g->op->out_c : TILE_COLUMNS;
    tile_compute(height, tile);
}

/* Makes one tile process all pieces of the block. */
static void reduce_tile(const struct conv_gradient *g, const struct conv_block *block, int64_t unit,
                        const struct reduction_piece *pieces, int count, float *waiting)
{
    const struct tr_op_conv_backward_weights *op = g->op;
    const struct tr_sliding_window *w = &op->window;
    const int64_t tap = unit % g->taps, group = unit / g->taps % g->groups,
                  panel = unit / g->taps / g->groups;
    struct tile tile = panel_tile(g, block, panel);
    const float *image = op->x + block->line / w->out_h * w->in_h * w->in_w * op->in_c;
    const int64_t first = tile_first(op->in_c, g->groups, group);
    int64_t height = tile_first(op->in_c, g->groups, group + 1) - first, row = tap * op->in_c + first;
    if (g->by_row) {
        const struct conv_row_part part = conv_row_part(g, tap);
        height = part.count;
        row = tap / g->parts * w->kernel_w * op->in_c + part.first;
        tile.a = image + part.first;
        tile.a_unit = op->in_c;
    } else if (g->in_place) {
        tile.a = image + first;
        tile.a_unit = op->in_c;
    } else {
        const int64_t base = tile_first(op->in_c, g->groups, block->group);
        tile.a = block->a + (first - base) * g->positions + (group - block->group) * PACK_SLACK;
        tile.a_unit = height;
    }
    tile.a_step = g->by_row || g->in_place ? w->stride_w * tile.a_unit : tile.a_unit;
    float *to = op->dw + row * op->out_c + panel * TILE_COLUMNS;
    if (g->tile_step == 0) ahead_tile(to, op->out_c, height, tile.columns);
    const int32_t *starts = block->starts + tap * (g->lines + 1);
    for (const struct reduction_piece *piece = pieces; piece < pieces + count; piece++) {
        tile.segments = block->segments + tap * g->list + starts[piece->row];
        tile.count = starts[piece->row + piece->rows] - starts[piece->row];
        reduce_piece(g, &tile, height, piece, waiting, g->slot_step, to);
    }
}

/* Adds up dy of the packed panels [panel, end) over the pieces of the block. */
static void reduce_bias(const struct conv_gradient *g, const struct conv_block *block, int64_t panel,
                        int64_t end, const struct reduction_piece *pieces, int count)
{
    if (panel >= end) return;
    const struct tile tile = panel_tile(g, block, panel);
    const int64_t column = panel * TILE_COLUMNS, line = g->op->window.out_w;
    const struct piece_sums sums = {.pieces = pieces,
                                    .count = count,
                                    .b = tile.b,
                                    .step = tile.b_step,
                                    .panel_step = g->direct ? TILE_COLUMNS : g->lines * line * TILE_COLUMNS,
                                    .repeat = line,
                                    .waiting = block->bias + column,
                                    .slot_step = g->panels * TILE_COLUMNS,
                                    .to = g->op->db + column,
                                    .node_step = g->op->cut.stride,
                                    .columns = smaller(g->op->out_c, end * TILE_COLUMNS) - column};
    piece_sums_compute(&sums);
}

/* Processes tiles [begin, end) for all blocks of the images from `image` on. */
static void reduce_chunk(const struct conv_gradient *g, struct conv_block *block, int64_t image,
                         int64_t begin, int64_t end)
{
    const int64_t per_panel = g->groups * g->taps;
    block->panel = begin / per_panel;
    block->panels = (end - 1) / per_panel + 1 - block->panel;
    block->group = block->panels > 1 ? 0 : begin / g->taps % g->groups;
    block->groups = block->panels > 1 ? g->groups : (end - 1) / g->taps % g->groups + 1 - block->group;

    struct reduction reduction;
    struct reduction_piece pieces[REDUCTION_PIECES];
    int count;
    cpu_reduction_begin(&reduction, &g->op->cut, g->op->window.out_h, NULL);
    block->line = image * g->op->window.out_h;
    while ((count = cpu_reduction_next(&reduction, g->lines, pieces, &block->lines)) > 0) {
        if (block->lines > 0) conv_pack_block(g, block);
        conv_list_segments(g, block);
        struct ahead x, dy;
        conv_look_ahead(g, block, end - begin, &x, &dy);
        for (int64_t unit = begin; unit < end; unit++) {
            float *waiting = block->waiting + (unit - begin) * g->tile_step;
            if (g->tile_step > 0) ahead_tile(waiting + g->tile_step, TILE_COLUMNS, TILE_ROWS, TILE_COLUMNS);
            reduce_tile(g, block, unit, pieces, count, waiting);
            ahead_fetch(&x);
            ahead_fetch(&dy);
        }
        /* The member with the first tile of a panel sums up its bias. */
        if (g->op->db)
            reduce_bias(g, block, divide_up(begin, per_panel), (end - 1) / per_panel + 1, pieces, count);
        block->line += block->lines;
    }
}

/* Processes tiles [begin, end) in chunks. */
static void reduce_tiles(const struct conv_gradient *g, struct conv_block *block, int64_t image,
                         int64_t begin, int64_t end)
{
    for (int64_t unit = begin; unit < end; unit += g->chunk)
        reduce_chunk(g, block, image, unit, smaller(end, unit + g->chunk));
}

/* The member's tiles of each subtree. */
static void reduce_subtrees(const struct conv_gradient *g, struct conv_block *block, int member)
{
    const int64_t units = g->panels * g->groups * g->taps;
    const struct subtree_tiles part =
        cpu_subtree_tiles(g->cpu->balance, &g->subtrees, &g->op->cut, units, member);
    for (int i = part.first; i <= part.last && i < g->subtrees.count; i++) {
        struct conv_gradient own = *g;
        struct tr_op_conv_backward_weights op = *g->op;
        int32_t bound[2];
        own.op = &op;
        op.cut = subtrees_cut(&g->subtrees, &g->op->cut, i, bound);
        if (i > 0) op.dw = subtrees_sums(&g->subtrees, i);
        if (i > 0 && op.db) op.db = op.dw + g->subtrees.weights;
        reduce_tiles(&own, block, op.cut.row[0], i == part.first ? part.begin : 0,
                     i == part.last ? part.end : units);
    }
}

static void reduce(void *arguments, int member, int size)
{
    const struct conv_gradient *g = arguments;
    char *memory = cpu_scratch(g->cpu, member);
    struct conv_block block = {.a = (float *)memory,
                               .b = (float *)(memory + g->b_at),
                               .waiting = (float *)(memory + g->waiting_at),
                               .bias = (float *)(memory + g->bias_at),
                               .segments = (struct tile_segment *)(memory + g->segments_at),
                               .starts = (int32_t *)(memory + g->starts_at),
                               .pixels = (float *)(memory + g->line_at)};
    if (g->subtrees.count > 0) {
        reduce_subtrees(g, &block, member);
        return;
    }
    int64_t begin, end;
    cpu_items(g->cpu->balance, g->panels * g->groups * g->taps, 1, member, size, &begin, &end);
    reduce_tiles(g, &block, 0, begin, end);
}

/* Whether the inputs of a kernel row fill fewer tiles than its taps do one by one. */
static bool is_by_row(const struct tr_sliding_window *w, int64_t in_c)
{
    const int64_t inputs = w->kernel_w * in_c;
    if (w->dilation_w > 1 || inputs > ROW_INPUTS) return false;
    return inputs <= TILE_ROWS || tile_count(inputs) < w->kernel_w * tile_count(in_c);
}

static tr_status run(tr_device *device, const struct tr_op_conv_backward_weights *a,
                     const struct tr_op_pool_backward *unpool)
{
    const struct tr_sliding_window *w = &a->window;
    struct conv_gradient g = {.cpu = cpu_device_of(device), .op = a, .unpool = unpool};
    const struct cpu_room *room = &g.cpu->room;
    const struct cpu_blocks *blocks = &g.cpu->blocks;
    g.parts = tile_count((int64_t)w->kernel_w * a->in_c);
    g.by_row = is_by_row(w, a->in_c);
    g.groups = g.by_row ? 1 : tile_count(a->in_c);
    g.taps = w->kernel_h * (g.by_row ? g.parts : w->kernel_w);
    g.panels = divide_up(a->out_c, TILE_COLUMNS);
    /* A pixel of few channels is a large part of its cache lines for each tile; but packing also makes the
       pixels of a tap with strides neighbours, where several taps read each. */
    const int64_t strides = (int64_t)w->stride_h * w->stride_w; /* pixels of x to each of dy */
    const bool apart = w->stride_w > 1 && w->kernel_w > w->stride_w;
    g.in_place = !g.by_row && !apart && a->in_c <= blocks->conv_in_place;
    const bool dense = a->out_c == TILE_COLUMNS || a->out_c == TILE_COLUMNS / 2;
    g.direct = !unpool && (dense ? g.by_row || g.in_place : g.by_row && a->out_c % TILE_COLUMNS == 0);
    g.slots = cpu_reduction_slots(&a->cut);

    /* Blocks of whole images where an image is not larger than a block. */
    const int64_t pixels = cpu_room_second(room, blocks->conv_gradient_pixels, BLOCK_PIXELS_LEAST);
    g.lines = larger(1, (g.by_row || g.in_place ? pixels : pixels * 2 / (1 + strides)) / w->out_w);
    if (g.lines > w->out_h) g.lines -= g.lines % w->out_h;
    const int64_t units = g.panels * g.groups * g.taps,
                  images = a->cut.count > 0 ? a->cut.row[a->cut.count] : 0;
    /* In one block, provided that it ends with the images and not with its table of pieces. */
    const bool at_once = images * w->out_h <= g.lines && a->cut.count + a->cut.nodes <= REDUCTION_PIECES;
    const int64_t waiting = cpu_room_last(room, blocks->conv_gradient_waiting, 0) / TILE_SIZE / g.slots;
    g.chunk = at_once ? units : smaller(units, larger(1, waiting));
    g.tile_step = at_once ? 0 : TILE_SIZE;
    g.slot_step = at_once ? TILE_SIZE : g.chunk * TILE_SIZE;
    g.list = g.lines * (g.by_row ? smaller(w->out_w, 2 * (int64_t)w->kernel_w + 1) : 1);
    const int64_t portions = divide_up(g.lines, w->out_h) + 1;
    const int64_t extent = (int64_t)(w->kernel_h - 1) * w->dilation_h + 1;
    g.positions = smaller(portions * w->in_h, g.lines * w->stride_h + portions * extent) * w->in_w +
                  portions * conv_planes_pixels(w, 0);

    const int64_t a_floats = g.by_row || g.in_place ? 0 : a->in_c * g.positions + g.groups * PACK_SLACK;
    g.b_at = cpu_round((size_t)a_floats * sizeof(float));
    g.waiting_at = g.b_at + cpu_round((size_t)(g.panels * g.lines * w->out_w * TILE_COLUMNS + PACK_SLACK) *
                                      sizeof(float));
    g.bias_at = g.waiting_at + cpu_round((size_t)(g.slots * g.slot_step) * sizeof(float));
    g.segments_at = g.bias_at + cpu_round((size_t)(g.slots * g.panels * TILE_COLUMNS) * sizeof(float));
    g.starts_at = g.segments_at + cpu_round((size_t)(g.taps * g.list) * sizeof(struct tile_segment));
    g.line_at = g.starts_at + cpu_round((size_t)(g.taps * (g.lines + 1)) * sizeof(int32_t));
    const size_t line_bytes = unpool ? (size_t)w->out_w * (size_t)a->out_c * sizeof(float) : 0;
    const double outputs = (double)images * w->out_h * w->out_w;
    const int64_t weights = (int64_t)w->kernel_h * w->kernel_w * a->in_c * a->out_c;
    const double nanoseconds = (outputs + 8.0) * (double)weights / (8.0 * VW);
    g.subtrees = subtrees_plan(g.cpu, nanoseconds, &a->cut, weights, a->db ? a->out_c : 0);
    TR_TRY(cpu_reserve(g.cpu, g.line_at + line_bytes, subtrees_bytes(&g.subtrees)));
    g.subtrees.sums = cpu_shared(g.cpu);
    cpu_run(g.cpu, nanoseconds, reduce, &g);
    if (g.subtrees.count > 0) subtrees_add(g.cpu, &g.subtrees, a->dw, a->db);
    return TR_OK;
}

tr_status CPU_KERNEL(conv_backward_weights)(tr_device *device, const struct tr_op_conv_backward_weights *a)
{
    struct cpu_device *cpu = cpu_device_of(device);
    if (cpu_conv_is_pointwise(&a->window) && a->in_c > cpu->blocks.conv_in_place)
        return conv_pointwise_gradient(cpu, a);
    return run(device, a, NULL);
}

tr_status CPU_KERNEL(conv_pool_backward_weights)(tr_device *device,
                                                 const struct tr_op_conv_pool_backward_weights *a)
{
    return run(device, &a->conv, &a->pool);
}
