#include "device/cpu/products/row_tile.h"

#include "device/cpu/products/tile_sums.h"

#include <assert.h>
#include <stdbool.h>

/* There is a pointer to every third row; addressing modes reach the two others from it. */
#define GROUP  3
#define GROUPS ((TILE_ROWS + GROUP - 1) / GROUP)
/* Steps between two branches. */
#define STEPS 2

/* Hides that the pointers do not change: compilers would keep one for each row, which needs more registers
   than there are. */
#define KEEP(pointer) __asm__("" : "+r"(pointer))

/* `steps` steps: of all rows or, falling, of the rows after the number of the step. */
V_INLINE void compute_steps(const int rows, const int vectors, const int steps, const bool falling,
                            const float *const group[GROUPS], int64_t a_step, const float *b,
                            vf sum[TILE_ROWS][TILE_VECTORS])
{
    V_UNROLL for (int s = 0; s < steps; s++)
    {
        vf right[TILE_VECTORS];
        V_UNROLL for (int v = 0; v < vectors; v++) right[v] = v_load(b + s * TILE_COLUMNS + v * VW);
        V_UNROLL for (int r = 0; r < rows; r++)
        {
            if (falling && r <= s) continue;
            vf left = v_set1(group[r / GROUP][r % GROUP * a_step + s]);
            V_UNROLL for (int v = 0; v < vectors; v++) sum[r][v] = v_fma(left, right[v], sum[r][v]);
        }
    }
}

/* `rows` and `vectors` are constants where this is inlined. */
V_INLINE void compute(const int rows, const int vectors, const struct row_tile *row_tile)
{
    const struct tile *tile = &row_tile->tile;
    const bool falling = tile->corner == TILE_FALLING;
    vf sum[TILE_ROWS][TILE_VECTORS];
    tile_begin(rows, vectors, tile, sum);
    const int64_t a_step = tile->a_step;
    const float *a = tile->a, *b = tile->b, *group[GROUPS];
    struct row_fetch next = row_tile->fetches > 0 ? row_tile->fetch[0] : (struct row_fetch){0};
    int fetch = 1;
    for (int64_t left = tile->segments->length, run; left > 0; left -= run) {
        run = left < row_tile->run ? left : row_tile->run;
        V_UNROLL for (int g = 0; g < GROUPS; g++) group[g] = a + (g * GROUP < rows ? g * GROUP * a_step : 0);
        int64_t i = run;
        for (; !falling && next.rows > 0 && i >= STEPS; i -= STEPS) {
            V_UNROLL for (int s = 0; s < STEPS; s++, next.from += next.step)
                tile_prefetch(TILE_VECTORS, next.from);
            next.rows -= STEPS;
            if (next.rows <= 0 && fetch < row_tile->fetches) next = row_tile->fetch[fetch++];
            V_UNROLL for (int g = 0; g * GROUP < rows; g++) KEEP(group[g]);
            compute_steps(rows, vectors, STEPS, false, group, a_step, b, sum);
            V_UNROLL for (int g = 0; g * GROUP < rows; g++) group[g] += STEPS;
            b += STEPS * TILE_COLUMNS;
        }
        for (; i >= STEPS; i -= STEPS) {
            V_UNROLL for (int g = 0; g * GROUP < rows; g++) KEEP(group[g]);
            compute_steps(rows, vectors, STEPS, false, group, a_step, b, sum);
            V_UNROLL for (int g = 0; g * GROUP < rows; g++) group[g] += STEPS;
            b += STEPS * TILE_COLUMNS;
        }
        for (; i > 0; i--) {
            V_UNROLL for (int g = 0; g * GROUP < rows; g++) KEEP(group[g]);
            compute_steps(rows, vectors, 1, false, group, a_step, b, sum);
            V_UNROLL for (int g = 0; g * GROUP < rows; g++) group[g]++;
            b += TILE_COLUMNS;
        }
        a += falling ? run : row_tile->jump;
    }
    if (falling) {
        V_UNROLL for (int g = 0; g < GROUPS; g++) group[g] = a + (g * GROUP < rows ? g * GROUP * a_step : 0);
        compute_steps(rows, vectors, rows - 1, true, group, a_step, b, sum);
    }
    tile_end(rows, vectors, tile, sum);
}

#define TILE_ARGUMENT const struct row_tile *
TILE_KERNELS

void row_tile_compute(int64_t rows, const struct row_tile *row_tile)
{
    const struct tile *tile = &row_tile->tile;
    assert(tile->count == 1 && tile->b_step == TILE_COLUMNS && !tile->next.from && row_tile->run > 0);
    assert(tile->corner == TILE_NO_CORNER ||
           (tile->corner == TILE_FALLING && row_tile->run >= tile->segments->length));
    run_kernel(rows, tile->columns, row_tile);
    tile_activate(rows, tile);
}
