/* The weight gradient of a Winograd convolution, and both gradients.
 *
 * Per position a product of two tall matrices, of channels by tiles and tiles by filters; a tile of sums
 * is a group of channels by a panel of filters at one position. A member takes a rectangle of channels and
 * filters or, where these are few, all of them for some microbatches (subtrees.h). It processes the
 * filters in chunks of panels. The lines of Winograd tiles go by in blocks (block.c), of whole
 * microbatches where these are small enough: V of all the member's channels is made once for a block, Z
 * panel by panel. The rows of a position are the tiles that have it, stored consecutively, so that they
 * form one segment.
 *
 * When a microbatch ends, the 36 sums of a pair become its weights. Weights that wait for their
 * partner in the tree (reduction.h) lie in slots. Sums of a microbatch that continues in the next block
 * stay in place.
 *
 * Both gradients use the same transformed gradients of the outputs. Where a member computes Z for all
 * filters, in whole lines, the input gradient of a block follows while its Z is in the cache (few.c). A slow
 * member leaves this of some images to its neighbours, which compute Z once more.
 */
#include "device/cpu/winograd/block.h"

#include "base/fail.h"
#include "device/cpu/grid.h"
#include "device/cpu/products/gradient.h"
#include "device/cpu/products/subtree_sums.h"

#include <assert.h>

/* Most floats of Z of all panels with which the input gradient is computed as well. So few stay in the
   second-level cache; but at least twice the floats of the sums, which each block loads and stores. */
#define BOTH_LEAST (32 * 1024)

/* Gives the block, whose Z is complete for all panels, to the input gradient, but for lines that other
   members form. */
static void form_inputs(const struct winograd_block *block)
{
    const struct winograd_work *g = block->work;
    const int64_t line = larger(block->line, block->form),
                  lines_end = smaller(block->line + block->lines, block->form_end);
    if (line >= lines_end) return;
    const struct winograd_lines lines = {.z = block->z + (line - block->line) * g->tiles_w * g->columns,
                                         .position = z_position(g),
                                         .row = g->columns,
                                         .run = smaller(g->columns, g->op->out_c),
                                         .panel = z_panel(g),
                                         .line = line,
                                         .lines = lines_end - line,
                                         .sums = block->data};
    winograd_few_gradient(g->data, &lines);
}

/* Lines of the next block: whole microbatches, unless a single one is longer than a block. */
static int64_t next_lines(const struct winograd_work *g, const struct reduction *reduction)
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

/* Processes a chunk of panels for all blocks of the images from `image` on. */
static void reduce_chunk(struct winograd_block *block, int64_t image)
{
    const struct winograd_work *g = block->work;
    struct reduction reduction;
    struct reduction_piece pieces[REDUCTION_PIECES];
    int count;
    cpu_reduction_begin(&reduction, &g->op->cut, g->tiles_h, NULL);
    block->line = image * g->tiles_h;
    while ((count = cpu_reduction_next(&reduction, next_lines(g, &reduction), pieces, &block->lines)) > 0) {
        winograd_block_inputs(block);
        for (int64_t panel = block->panel; panel < block->panel + block->panels; panel++)
            winograd_block_reduce(block, panel, pieces, count, reduction.done > 0);
        if (g->data) form_inputs(block);
        block->line += block->lines;
    }
}

/* Forms the input gradient of lines [begin, end), whose weight gradient another member computes. */
static void form_others(struct winograd_block *block, int64_t begin, int64_t end)
{
    block->panel = 0;
    block->panels = block->work->panels;
    for (block->line = begin; block->line < end; block->line += block->lines) {
        block->lines = smaller(block->work->lines, end - block->line);
        winograd_block_gradients(block);
        form_inputs(block);
    }
}

static void reduce(void *arguments, int member, int size)
{
    const struct winograd_work *g = arguments;
    const bool all = size == 1 || g->subtrees.count > 0;
    float *memory = cpu_scratch(g->cpu, member);
    const struct cpu_part part =
        cpu_part(g->cpu->balance, g->parts_rows, g->op->in_c, divide_up(g->op->out_c, TILE_COLUMNS), 1,
                 all ? 0 : member, all ? 1 : size);
    const int64_t channels = part.row_end - part.row;
    struct winograd_block block = {.work = g,
                                   .channel = part.row,
                                   .channels = channels,
                                   .groups = tile_count(channels),
                                   .parts = channels > TOGETHER ? tile_count(channels) : 1,
                                   .v = memory,
                                   .z = memory + g->z_at,
                                   .sums = memory + g->sums_at,
                                   .slots = memory + g->slots_at,
                                   .border = memory + g->border_at,
                                   .data = memory + g->data_at,
                                   .before = (int32_t(*)[POINTS])((char *)memory + g->lines_at)};
    struct winograd_work own = *g;
    struct tr_op_conv_backward_weights op = *g->op;
    int32_t bound[2];
    int64_t image = 0, form = 0, form_end = op.cut.count > 0 ? op.cut.row[op.cut.count] : 0;
    if (g->subtrees.count > 0) {
        if (g->data) cpu_subtree_rows(g->cpu->balance, &g->subtrees, &g->op->cut, member, &form, &form_end);
        op.cut = subtrees_cut(&g->subtrees, &g->op->cut, member, bound);
        image = op.cut.row[0];
        if (member > 0) op.dw = subtrees_sums(&g->subtrees, member);
        own.op = &op;
        block.work = &own;
    }
    block.form = form * g->tiles_h;
    block.form_end = form_end * g->tiles_h;
    for (int64_t panel = part.column; channels > 0 && panel < part.column_end; panel += block.panels) {
        block.panel = panel;
        block.panels = smaller(g->chunk, part.column_end - panel);
        reduce_chunk(&block, image);
    }
    if (g->data) {
        const int64_t first = op.cut.row[0] * g->tiles_h, last = op.cut.row[op.cut.count] * g->tiles_h;
        form_others(&block, block.form, smaller(block.form_end, first));
        form_others(&block, larger(block.form, last), block.form_end);
    }
    if (g->op->db) {
        const int64_t pixels = (int64_t)g->op->window.out_h * g->op->window.out_w;
        int64_t begin, end;
        tr_team_chunk(g->op->out_c, 16, member, size, &begin, &end);
        sum_columns(&g->op->cut, pixels, g->op->dy, g->op->out_c, begin, end, g->op->db);
    }
}

/* ---- sizes ---- */

/* An estimate of the cycles that a member takes for a rectangle of this size; its constants only serve to
   compare choices. */
static double cost(int64_t channels, int64_t panels)
{
    const int64_t groups = tile_count(channels);
    const int64_t height = channels < 4 * groups ? 4 * groups : channels;
    return (double)panels * ((double)height + 6.0) + (double)groups * 4.0;
}

static void choose_parts(struct winograd_work *g)
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
    /* A small call is done by the caller alone. */
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
static size_t plan_member(struct winograd_work *g)
{
    const int64_t across = POSITIONS * g->tiles_w; /* numbers of a line, per channel */
    const int64_t groups = tile_count(g->channels) + 1;
    const int64_t all = larger(1, g->op->cut.count > 0 ? g->op->cut.row[g->op->cut.count] * g->tiles_h : 0);
    const struct cpu_room *room = &g->cpu->room;
    const struct cpu_blocks *blocks = &g->cpu->blocks;
    /* Z of a panel stays in the second-level cache, V of all channels in the last. */
    int64_t most = smaller(cpu_room_second(room, blocks->winograd_gradient_z, 0) / (across * g->columns),
                           cpu_room_last(room, blocks->winograd_gradient_v, 0) / (across * g->channels));
    if (g->data) {
        const int64_t z = larger(BOTH_LEAST, 2 * POSITIONS * g->channels * g->columns * g->panels);
        most = smaller(most, cpu_room_second(room, z, 0) / (across * g->columns * g->panels));
    }
    g->lines = smaller(all, larger(1, most));
    g->split = longest_microbatch(&g->op->cut) * g->tiles_h > g->lines;
    g->slots = cpu_reduction_slots(&g->op->cut);
    const int64_t sums = POSITIONS * TILE_ROWS * g->columns;
    const int64_t waiting = g->slots * block_taps(g) * g->channels * g->columns;
    g->chunk = smaller(g->panels, larger(1, cpu_room_last(room, blocks->winograd_gradient_waiting, 0) /
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

/* Determines sizes from the shape and the cut. Returns the work in nanoseconds. */
static double plan(struct winograd_work *g)
{
    const struct tr_op_conv_backward_weights *a = g->op;
    const struct tr_sliding_window *window = &a->window;
    assert(tr_winograd_suits(window));
    g->taps = window->kernel_h;
    g->tiles_h = tr_winograd_tiles(g->taps, window->out_h);
    g->tiles_w = tr_winograd_tiles(g->taps, window->out_w);
    g->columns = a->out_c <= TILE_COLUMNS / 2 ? TILE_COLUMNS / 2 : TILE_COLUMNS;
    for (int32_t w = 0; w < g->tiles_w; w++)
        for (int k = 0; k < POINTS; k++)
            g->width[k] += tr_winograd_has(tr_winograd_tile(g->taps, window->out_w, w).points, k);
    choose_parts(g);
    const int64_t rows = a->cut.count > 0 ? a->cut.row[a->cut.count] : 0;
    const double products = (double)(rows * g->tiles_h * g->tiles_w + 8) * POSITIONS * a->in_c * a->out_c;
    const double nanoseconds = products / (8.0 * VW);
    g->subtrees = subtrees_plan(g->cpu, nanoseconds, &a->cut, block_taps(g) * a->in_c * a->out_c, 0);
    return nanoseconds;
}

/* Computes the gradient of the weights and, if there is a walk for it, that of the inputs. */
static tr_status run(struct winograd_work *g, double nanoseconds, struct walk *data)
{
    const struct tr_op_conv_backward_weights *a = g->op;
    const int64_t panels = data ? divide_up(data->call.target_c, TILE_COLUMNS) : 0;
    const int64_t u_floats = data ? CPU_KERNEL(winograd_walk_weights_floats)(data, panels) : 0;
    if (data) g->data_sums = CPU_KERNEL(winograd_few_sums)(data);
    g->data = data;
    const size_t u_at = cpu_round(subtrees_bytes(&g->subtrees));
    size_t bytes = plan_member(g);
    if (data && bytes < CPU_KERNEL(winograd_walk_weights_scratch)())
        bytes = CPU_KERNEL(winograd_walk_weights_scratch)();
    TR_TRY(cpu_reserve(g->cpu, bytes, u_at + (size_t)u_floats * sizeof(float)));
    g->subtrees.sums = cpu_shared(g->cpu);
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
    struct winograd_work g = {.cpu = cpu_device_of(device), .op = &arguments->conv};
    return run(&g, plan(&g), NULL);
}

/* Whether one member computes Z of whole blocks, for all filters, in the form that the input gradient
   uses; `data` has its sizes. */
static bool shares_z(const struct winograd_work *g, const struct walk *data)
{
    const struct tr_cut *cut = &g->op->cut;
    if (cut->count == 0 || cut->row[cut->count] != data->call.rows) return false;
    if (!winograd_few_suits(data) || data->call.target_c > WINOGRAD_FEW) return false;
    return data->call.target_c > 0 && (g->cpu->base.threads == 1 || g->subtrees.count > 0);
}

tr_status CPU_KERNEL(winograd_backward)(tr_device *device, const struct tr_op_winograd_backward *arguments)
{
    struct walk data = {.call = cpu_conv_backward(device, &arguments->data.conv)};
    struct winograd_work g = {.cpu = cpu_device_of(device), .op = &arguments->weights.conv};
    const double nanoseconds = plan(&g);
    winograd_walk_shape(&data);
    if (shares_z(&g, &data)) return run(&g, 2.0 * nanoseconds, &data);
    TR_TRY(run(&g, nanoseconds, NULL));
    return CPU_KERNEL(winograd_backward_data)(device, &arguments->data);
}
