/* Packs the blocks of a convolution's weight gradient: x to [pixel][channel of the group] and dy to
 * [pixel][filter], unless memory has nearly this layout. The next block is prefetched between tiles.
 */
#include "device/cpu/conv_call.h"
#include "device/cpu/convolutions/conv_gradient.h"
#include "device/cpu/convolutions/pool.h"

/* Packs dy for the panels that the member needs. */
static void pack_dy(const struct conv_gradient *g, const struct conv_block *block)
{
    const struct tr_op_conv_backward_weights *op = g->op;
    const int64_t out_w = op->window.out_w, out_h = op->window.out_h, column = block->panel * TILE_COLUMNS;
    const int64_t columns = smaller(op->out_c - column, block->panels * TILE_COLUMNS);
    const int64_t panel_step = g->lines * out_w * TILE_COLUMNS;
    if (!g->unpool) {
        pack_panels(block->b, panel_step, op->dy + block->line * out_w * op->out_c + column, op->out_c,
                    columns, block->lines * out_w);
        return;
    }
    for (int64_t i = 0; i < block->lines; i++) {
        const int64_t line = block->line + i;
        float *to = block->b + i * out_w * TILE_COLUMNS;
        const bool packed = columns == TILE_COLUMNS; /* copies a panel of the usual layout */
        float *pixels = packed ? to : block->pixels;
        pool_backward_line(g->unpool, line / out_h, (int32_t)(line % out_h), column, columns, pixels);
        if (!packed) pack_panels(to, panel_step, pixels, columns, columns, out_w);
    }
}

/* Packs a portion's x. */
static void pack_portion(const struct conv_gradient *g, const struct conv_block *block,
                         const struct conv_portion *p, int64_t packed, int64_t channel, int64_t channels)
{
    const struct tr_sliding_window *w = &g->op->window;
    const int64_t in_c = g->op->in_c, lines = p->ih_end - p->ih;
    const float *x = g->op->x + (p->image * w->in_h + p->ih) * w->in_w * in_c + channel;
    if (w->stride_h == 1 && w->stride_w == 1) {
        pack_tiles(block->a, packed, g->positions, x, in_c, channels, block->groups, lines * w->in_w);
        return;
    }
    for (int64_t line = 0; line < lines; line++)
        for (int64_t column = 0; column < smaller(w->in_w, w->stride_w); column++) {
            const struct conv_plane plane = conv_plane_of(w, p, line, column);
            pack_tiles(block->a, packed + plane.at + line / w->stride_h * plane.columns, g->positions,
                       x + (line * w->in_w + column) * in_c, in_c * w->stride_w, channels, block->groups,
                       plane.columns);
        }
}

void conv_pack_block(const struct conv_gradient *g, const struct conv_block *block)
{
    const struct tr_op_conv_backward_weights *op = g->op;
    const struct tr_sliding_window *w = &op->window;
    const int64_t end = block->line + block->lines;
    if (!g->direct) pack_dy(g, block);
    if (g->by_row || g->in_place) return;
    const int64_t channel = tile_first(op->in_c, g->groups, block->group);
    const int64_t channels = tile_first(op->in_c, g->groups, block->group + block->groups) - channel;
    int64_t packed = 0;
    for (int64_t line = block->line; line < end;) {
        const struct conv_portion p = conv_portion_at(w, line, end);
        pack_portion(g, block, &p, packed, channel, channels);
        packed += conv_planes_pixels(w, p.ih_end - p.ih);
        line += p.oh_end - p.oh;
    }
}

/* The source line where output line `line` begins to read, both counted over all images. */
static int64_t source_line(const struct tr_sliding_window *w, int64_t line)
{
    return line / w->out_h * w->in_h + conv_portion_at(w, line, line + 1).ih;
}

void conv_look_ahead(const struct conv_gradient *g, const struct conv_block *block, int64_t calls,
                     struct ahead *x, struct ahead *dy)
{
    const struct tr_op_conv_backward_weights *op = g->op;
    const struct tr_sliding_window *w = &op->window;
    const int64_t all = op->cut.count > 0 ? op->cut.row[op->cut.count] * w->out_h : 0;
    const int64_t line = block->line + block->lines, end = smaller(line + g->lines, all);
    *x = *dy = (struct ahead){0};
    /* One tap with strides computes too little for all these lines. */
    if (line >= end || cpu_conv_is_pointwise(w)) return;
    const int64_t first = source_line(w, line), pixels = (source_line(w, end) - first) * w->in_w;
    const int64_t channel = g->by_row ? 0 : tile_first(op->in_c, g->groups, block->group),
                  channel_end =
                      g->by_row ? op->in_c : tile_first(op->in_c, g->groups, block->group + block->groups);
    *x = ahead_rows(op->x + first * w->in_w * op->in_c + channel, op->in_c, pixels, channel_end - channel,
                    calls);
    const int64_t column = block->panel * TILE_COLUMNS,
                  columns = smaller(op->out_c - column, block->panels * TILE_COLUMNS);
    if (!g->unpool)
        *dy = ahead_rows(op->dy + line * w->out_w * op->out_c + column, op->out_c, (end - line) * w->out_w,
                         columns, calls);
}
