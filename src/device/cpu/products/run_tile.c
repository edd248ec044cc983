#include "device/cpu/products/run_tile.h"

#include "device/cpu/products/tile_sums.h"

#include <assert.h>
#include <stdbool.h>

V_INLINE void compute_segment(const int rows, const int vectors, const struct tile *tile,
                              const struct tile_segment *s, vf sum[TILE_ROWS][TILE_VECTORS])
{
    const float *a = tile->a + s->a * tile->a_unit, *b = tile->b + s->b * tile->b_unit;
    for (int32_t i = s->length; i > 0; i--, a += tile->a_step, b += tile->b_step) {
        if (rows <= AHEAD_ROWS) tile_prefetch(vectors, b + AHEAD_STEPS * tile->b_step);
        tile_step(rows, vectors, a, b, sum);
    }
}

/* `rows` and `vectors` are constants where this is inlined, so that the sums become registers. The
   position of a tile is kept in memory: when compilers run out of general registers they use vector
   registers, and a tile leaves none. */
V_INLINE void compute(const int rows, const int vectors, struct run_tile *run)
{
    struct tile *tile = &run->tile;
    for (int64_t i = run->count; i > 0; i--) {
        vf sum[TILE_ROWS][TILE_VECTORS];
        tile_begin(rows, vectors, tile, sum);
        V_UNROLL for (int r = 0; r < rows; r++)
            tile_prefetch(vectors, tile->to + run->to_step + r * tile->to_step);
        for (const struct tile_segment *s = tile->segments; s < tile->segments + tile->count; s++)
            compute_segment(rows, vectors, tile, s, sum);
        tile_end(rows, vectors, tile, sum);
        tile->a += run->a_step;
        tile->to += run->to_step;
        __asm__("" : : : "memory");
    }
}

#define TILE_ARGUMENT struct run_tile *
TILE_KERNELS

void run_tile_compute(int64_t rows, struct run_tile *run)
{
    const struct tile *tile = &run->tile;
    assert(!tile->corner && !tile->next.from && !tile->from && !tile->lefts && !tile->factor);
    run_kernel(rows, tile->columns, run);
    if (tile->activation != TR_ACT_TANH && tile->activation != TR_ACT_SIGMOID) return;
    struct tile done = *tile;
    for (int64_t i = run->count; i > 0; i--) {
        done.to -= run->to_step;
        tile_activate(rows, &done);
    }
}
