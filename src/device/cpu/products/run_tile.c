#include "device/cpu/products/run_tile.h"

#include "device/cpu/products/tile_sums.h"

#include <assert.h>
#include <stdbool.h>

/* Tiles of few rows use b quickly; they prefetch it so many steps ahead. */
#define AHEAD_STEPS 24
#define AHEAD_ROWS  (TILE_ROWS / 2)

V_INLINE void prefetch_columns(const int vectors, const float *from)
{
    V_UNROLL for (int v = 0; v < vectors; v += AHEAD_VECTORS) __builtin_prefetch(from + v * VW);
}

V_INLINE void compute_segment(const int rows, const int vectors, const struct tile *tile,
                              const struct tile_segment *s, vf sum[TILE_ROWS][TILE_VECTORS])
{
    const float *a = tile->a + s->a * tile->a_unit, *b = tile->b + s->b * tile->b_unit;
    for (int32_t i = s->length; i > 0; i--, a += tile->a_step, b += tile->b_step) {
        vf right[TILE_VECTORS];
        if (rows <= AHEAD_ROWS) prefetch_columns(vectors, b + AHEAD_STEPS * tile->b_step);
        V_UNROLL for (int v = 0; v < vectors; v++) right[v] = v_load(b + v * VW);
        V_UNROLL for (int r = 0; r < rows; r++)
        {
            vf left = v_set1(a[r]);
            V_UNROLL for (int v = 0; v < vectors; v++) sum[r][v] = v_fma(left, right[v], sum[r][v]);
        }
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
            prefetch_columns(vectors, tile->to + run->to_step + r * tile->to_step);
        for (const struct tile_segment *s = tile->segments; s < tile->segments + tile->count; s++)
            compute_segment(rows, vectors, tile, s, sum);
        tile_end(rows, vectors, tile, sum);
        tile->a += run->a_step;
        tile->to += run->to_step;
        __asm__("" : : : "memory");
    }
}

#define DEFINE(rows)                                                                                         \
    static void whole_##rows(struct run_tile *run)                                                           \
    {                                                                                                        \
        compute(rows, TILE_VECTORS, run);                                                                    \
    }                                                                                                        \
    static void half_##rows(struct run_tile *run)                                                            \
    {                                                                                                        \
        compute(rows, TILE_VECTORS / 2, run);                                                                \
    }
TILE_EACH_ROWS(DEFINE)

/* By rows; half or all of the columns. */
#define ENTRY(rows) {half_##rows, whole_##rows},
static void (*const kernel[][2])(struct run_tile *run) = {TILE_EACH_ROWS(ENTRY)};

void run_tile_compute(int64_t rows, struct run_tile *run)
{
    const struct tile *tile = &run->tile;
    assert(rows >= 1 && rows <= TILE_ROWS && tile->columns >= 1 && tile->columns <= TILE_COLUMNS);
    assert(!tile->corner && !tile->next.from && !tile->from && !tile->lefts && !tile->factor);
    const bool whole = tile->columns > TILE_COLUMNS / 2;
    if (V_SHAPES)
        kernel[rows - 1][whole](run);
    else
        compute((int)rows, whole ? TILE_VECTORS : TILE_VECTORS / 2, run);
    if (tile->activation != TR_ACT_TANH && tile->activation != TR_ACT_SIGMOID) return;
    struct tile done = *tile;
    for (int64_t i = run->count; i > 0; i--) {
        done.to -= run->to_step;
        tile_activate(rows, &done);
    }
}
