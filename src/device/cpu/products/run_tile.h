/* The tile kernel (tile.h) for a series of similar tiles: neighbouring pixels of a convolution, which read
 * the same segments shifted. A pixel of few channels has few steps, so that a separate call and list of
 * segments for each would take as long as its steps.
 */
#ifndef TR_DEVICE_CPU_RUN_TILE_H
#define TR_DEVICE_CPU_RUN_TILE_H

#include "device/cpu/products/tile.h"

/* One for each instruction set. */
#define run_tile_compute CPU_KERNEL(run_tile_compute)

struct run_tile {
    /* The first tile. Segments have all rows; there are no corner, `next`, `from`, `left` and `factor`. */
    struct tile tile;
    int64_t count, a_step, to_step; /* each tile reads and writes so many floats after the one before it */
};

/* Computes tiles of `rows` rows (1..TILE_ROWS). On return `a` and `to` are those after the last tile. */
void run_tile_compute(int64_t rows, struct run_tile *run);

#endif
