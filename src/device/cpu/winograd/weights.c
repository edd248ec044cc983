/* Shared by both walks: sizes that depend on the shape, and the transformed weights. */
#include "device/cpu/products/pack.h"
#include "device/cpu/sizes.h"
#include "device/cpu/winograd/walk.h"

#define POSITIONS  TR_WINOGRAD_POSITIONS
#define CACHE_LINE 16 /* floats */
/* Steps of a panel whose weights are transformed together. */
#define WEIGHT_STEPS 16
/* Of a transformed weight, written to lines that all members have read. */
#define WEIGHT_NANOSECONDS 1.0

/* Transforms a member's chunk of the weights; its scratch holds the taps of some steps of a panel. */
static void transform_weights(void *arguments, int member, int size)
{
    const struct walk *c = arguments;
    const int64_t chunks = divide_up(c->call.source_c, WEIGHT_STEPS);
    const int64_t pairs = (int64_t)c->call.source_c * c->call.target_c;
    float *taps = cpu_scratch(c->call.cpu, member);
    int64_t unit, end;
    tr_team_chunk(c->panels * chunks, 1, member, size, &unit, &end);
    for (; unit < end; unit++) {
        const int64_t panel = unit / chunks, step = unit % chunks * WEIGHT_STEPS;
        const int64_t steps = smaller(WEIGHT_STEPS, c->call.source_c - step);
        const int64_t column = (c->panel_begin + panel) * TILE_COLUMNS;
        const int64_t columns = smaller(TILE_COLUMNS, c->call.target_c - column);
        for (int64_t tap = 0; tap < c->taps * c->taps; tap++) {
            float *to = taps + tap * steps * TILE_COLUMNS;
            const float *from = c->call.weights + tap * pairs;
            if (c->call.backward)
                pack_rows(to, TILE_COLUMNS, from + column * c->call.source_c + step, c->call.source_c,
                          columns, steps);
            else
                pack_columns(to, TILE_COLUMNS, from + step * c->call.target_c + column, c->call.target_c,
                             columns, steps);
        }
        winograd_weights(c->taps, taps, steps, c->u + panel * POSITIONS * c->u_position + step * TILE_COLUMNS,
                         c->u_position);
    }
}

int64_t winograd_walk_shape(struct walk *c)
{
    c->taps = c->call.window->kernel_h;
    c->outputs = tr_winograd_whole(c->taps);
    c->overlap = c->taps - 1;
    c->tiles_h = tr_winograd_tiles(c->taps, c->call.window->out_h);
    c->tiles_w = tr_winograd_tiles(c->taps, c->call.window->out_w);
    c->columns = c->call.target_c <= TILE_COLUMNS / 2 ? TILE_COLUMNS / 2 : TILE_COLUMNS;
    c->u_position = (int64_t)c->call.source_c * TILE_COLUMNS + CACHE_LINE;
    return divide_up(c->call.target_c, TILE_COLUMNS);
}

size_t CPU_KERNEL(winograd_walk_weights_scratch)(void)
{
    return (TR_WINOGRAD_TAPS * TR_WINOGRAD_TAPS * WEIGHT_STEPS * TILE_COLUMNS + PACK_SLACK) * sizeof(float);
}

int64_t CPU_KERNEL(winograd_walk_weights_floats)(const struct walk *c, int64_t panels)
{
    return floats_round(panels * POSITIONS * c->u_position + PACK_SLACK);
}

void winograd_walk_weights(struct walk *c, int64_t begin, int64_t panels)
{
    c->panel_begin = begin;
    c->panels = panels;
    cpu_run(c->call.cpu, WEIGHT_NANOSECONDS * (double)(panels * POSITIONS * c->u_position), transform_weights,
            c);
}
