#include "device/cpu/products/tile.h"

#include "device/cpu/products/tile_sums.h"

#include <assert.h>
#include <stdbool.h>

/* One step for the rows whose bit is set in `taking`: a number of a for each, and the same numbers of b
   for all. */
#define ALL_ROWS ~0u
V_INLINE void compute_step(const int rows, const int vectors, const unsigned taking, const float *a,
                           const float *b, vf sum[TILE_ROWS][TILE_VECTORS])
{
    vf right[TILE_VECTORS];
    V_UNROLL for (int v = 0; v < vectors; v++) right[v] = v_load(b + v * VW);
    V_UNROLL for (int r = 0; r < rows; r++)
    {
        if (!(taking >> r & 1)) continue;
        vf left = v_set1(a[r]);
        V_UNROLL for (int v = 0; v < vectors; v++) sum[r][v] = v_fma(left, right[v], sum[r][v]);
    }
}

/* The steps of a corner: in step s the rows [falling ? s + 1 : 0, falling ? rows : s + 1). */
V_INLINE void compute_corner(const int rows, const int vectors, const bool falling, const struct tile *tile,
                             vf sum[TILE_ROWS][TILE_VECTORS])
{
    const float *a = tile->corner_a, *b = tile->corner_b;
    V_UNROLL for (int s = 0; s < rows - 1; s++, a += tile->a_step, b += tile->b_step)
        compute_step(rows, vectors, falling ? ALL_ROWS << (s + 1) : ~(ALL_ROWS << (s + 1)), a, b, sum);
}

/* Computes the only segment of a tile that also prefetches. */
V_INLINE void compute_fetching(const int rows, const int vectors, const struct tile *tile,
                               vf sum[TILE_ROWS][TILE_VECTORS])
{
    const struct tile_fetches *next = &tile->next;
    const float *a = tile->a, *b = tile->b, *from = next->from;
    const int64_t a_step = tile->a_step, b_step = tile->b_step;
    int64_t run = next->first, wait = 1;
    for (int64_t i = tile->segments->length; i > 0; i--, a += a_step, b += b_step) {
        if (--wait == 0) {
            tile_prefetch(vectors, from);
            from += next->step;
            if (--run == 0) {
                from += next->jump;
                run = next->run;
            }
            wait = next->every;
        }
        compute_step(rows, vectors, ALL_ROWS, a, b, sum);
    }
}

V_INLINE void compute_segment(const int rows, const int vectors, const struct tile *tile,
                              const struct tile_segment *s, vf sum[TILE_ROWS][TILE_VECTORS])
{
    const float *a = tile->a + s->a * tile->a_unit, *b = tile->b + s->b * tile->b_unit;
    const int64_t a_step = tile->a_step, b_step = tile->b_step;
    if (s->only) {
        for (int64_t i = s->length; i > 0; i--, a += a_step, b += b_step)
            compute_step(rows, vectors, s->only, a, b, sum);
        return;
    }
    for (int64_t i = s->length; i > 0; i--, a += a_step, b += b_step) {
        /* The hardware prefetches less where steps are not packed. */
        if (rows <= AHEAD_ROWS || b_step != TILE_COLUMNS) tile_prefetch(vectors, b + AHEAD_STEPS * b_step);
        compute_step(rows, vectors, ALL_ROWS, a, b, sum);
    }
}

/* The whole computation. `rows` and `vectors` are constants where this is inlined, so that the accumulators
   become registers. */
V_INLINE void compute(const int rows, const int vectors, const struct tile *tile)
{
    vf sum[TILE_ROWS][TILE_VECTORS];
    tile_begin(rows, vectors, tile, sum);
    if (tile->corner == TILE_RISING) compute_corner(rows, vectors, false, tile, sum);
    if (tile->next.from)
        compute_fetching(rows, vectors, tile, sum);
    else
        for (const struct tile_segment *s = tile->segments; s < tile->segments + tile->count; s++)
            compute_segment(rows, vectors, tile, s, sum);
    if (tile->corner == TILE_FALLING) compute_corner(rows, vectors, true, tile, sum);
    tile_end(rows, vectors, tile, sum);
}

#define TILE_ARGUMENT const struct tile *
TILE_KERNELS

void tile_compute(int64_t rows, const struct tile *tile)
{
    run_kernel(rows, tile->columns, tile);
    tile_activate(rows, tile);
}
