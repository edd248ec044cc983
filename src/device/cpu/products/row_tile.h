/* The tile kernel (tile.h) for a matrix a in row order, which need not be transposed. It is as fast as
 * with a packed a where the rows of a tile and their next steps stay in the first-level cache, that is,
 * where a_step is not a multiple of a page.
 */
#ifndef TR_DEVICE_CPU_ROW_TILE_H
#define TR_DEVICE_CPU_ROW_TILE_H

#include "device/cpu/products/tile.h"

/* One for each instruction set. */
#define row_tile_compute CPU_KERNEL(row_tile_compute)

/* Rows of memory to prefetch, as wide as a tile and `step` floats apart. */
struct row_fetch {
    const float *from;
    int64_t step, rows;
};

struct row_tile {
    /* One segment; step i reads a number for each row at a[i / run * jump + row * a_step + i % run]. b is
       packed: b_step is TILE_COLUMNS. A corner, which can only be TILE_FALLING, continues at the end of
       the segment, and a then has one run; corner_a and corner_b are ignored. There is no `next`. */
    struct tile tile;
    int64_t run, jump; /* run > 0 */
    /* Prefetches one row with each step as far as there are steps; nothing with a corner. Prefetching them
       all at once would stall the processor, whose number of outstanding lines is limited. */
    const struct row_fetch *fetch;
    int fetches;
};

/* Computes a tile of `rows` rows (1..TILE_ROWS). */
void row_tile_compute(int64_t rows, const struct row_tile *tile);

#endif
