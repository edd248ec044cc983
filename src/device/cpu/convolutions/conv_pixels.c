/* Convolutions of few images: the rows of a tile are pixels of one image. */
#include "device/cpu/convolutions/conv.h"

/* Computes of target row h of one image, which goes to `target`, the pixel `begin` and those that may be like
   it; the rows of a tile are such pixels that meet the same taps. */
static void convolve_pixels(const struct conv *c, int64_t image, int32_t h, int32_t begin,
                            const struct conv_memory *memory, float *target)
{
    const float *source = c->call.source + image * c->image_h * c->image_w * c->call.source_c;
    float *a = memory->a;
    struct tile_segment *segments = memory->segments;
    for (int64_t w = begin; w < c->call.target_w;) {
        int32_t shift;
        const int32_t most = (int32_t)smaller(TILE_ROWS, divide_up(c->call.target_w - w, c->alike));
        const int32_t height = cpu_conv_axis_alike(&c->w, (int32_t)w, c->alike, most, &shift);
        int32_t steps = 0;
        int64_t count = 0;
        for (int32_t i = c->h.start[h]; i < c->h.start[h + 1]; i++)
            for (int32_t j = c->w.start[w]; j < c->w.start[w + 1]; j++) {
                const struct conv_run *y = c->h.runs + i, *x = c->w.runs + j;
                const int32_t depth = x->length * c->call.source_c;
                pack_rows(a + steps * height, height,
                          source + ((int64_t)y->source * c->every_h * c->image_w + x->source * c->every_w) *
                                       c->call.source_c,
                          (int64_t)shift * c->every_w * c->call.source_c, height, depth);
                segments[count++] = (struct tile_segment){
                    .a = steps,
                    .b = (y->kernel * c->call.window->kernel_w + x->kernel) * c->call.source_c,
                    .length = depth};
                steps += depth;
            }
        for (int64_t column = memory->column; column < memory->column_end; column += TILE_COLUMNS) {
            struct tile tile = conv_panel(c, column, segments);
            tile.count = count;
            tile.a = a;
            tile.a_step = tile.a_unit = height;
            tile.to = target + w * c->call.target_c + column;
            tile.to_step = (int64_t)c->alike * c->call.target_c;
            tile_compute(height, &tile);
        }
        w += (int64_t)height * c->alike;
    }
}

void conv_image(const struct conv *c, int64_t image, int32_t begin, int32_t end,
                const struct conv_memory *memory)
{
    const int64_t row = (int64_t)c->call.target_w * c->call.target_c;
    for (int32_t h = begin; h < end; h += c->unit) {
        float *to = c->pool ? memory->lines : c->call.target + (image * c->call.target_h + h) * row;
        for (int32_t i = 0; i < c->unit; i++)
            for (int32_t w = 0; w < smaller(c->alike, c->call.target_w); w++)
                convolve_pixels(c, image, h + i, w, memory, to + i * row);
        if (c->pool) pool_forward_line(c->pool, image, h / c->unit, memory->lines);
    }
}
