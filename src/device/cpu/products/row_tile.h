/* The tile kernel (tile.h) for an a side that lies as rows, as matrices do: nothing has to be transposed for
 * it. It takes as long as with a packed a side where the rows of a tile and their next steps stay in the
 * first-level cache, that is, where a_step is not a multiple of a page.
 */
#ifndef TR_DEVICE_CPU_ROW_TILE_H
#define TR_DEVICE_CPU_ROW_TILE_H

#include "device/cpu/products/tile.h"

/* Every instruction set has its own. */
#define row_tile_compute CPU_KERNEL(row_tile_compute)

/* Rows of memory, as wide as a tile and `step` floats apart, that will be needed soon. */
struct row_fetch {
    const float *from;
    int64_t step, rows;
};

struct row_tile {
    /* One segment; step i reads a number for each row at a[i / run * jump + row * a_step + i % run]. b is
       packed: b_step is TILE_COLUMNS. A corner, which can only be TILE_FALLING, goes on where the segment
       ends, and a has one run then; corner_a and corner_b mean nothing. There is no `next`. */
    struct tile tile;
    int64_t run, jump; /* run > 0 */
    /* What is fetched meanwhile, a row with each step as far as there are steps; nothing with a corner. Rows
       asked for at once would hold up the processor, which has only so many places for lines on their way. */
    const struct row_fetch *fetch;
    int fetches;
};

/* Computes a tile of `rows` rows (1..TILE_ROWS). */
void row_tile_compute(int64_t rows, const struct row_tile *tile);

#endif
