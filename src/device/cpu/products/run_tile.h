/* The tile kernel (tile.h) for tiles that do the same one after the other: neighbouring pixels of a
 * convolution, which read the same segments further on. A pixel of few channels has few steps, and a call and
 * a list of segments for each would take as long as its steps.
 */
#ifndef TR_DEVICE_CPU_RUN_TILE_H
#define TR_DEVICE_CPU_RUN_TILE_H

#include "device/cpu/products/tile.h"

/* Every instruction set has its own. */
#define run_tile_compute CPU_KERNEL(run_tile_compute)

struct run_tile {
    /* The first one. Segments have all rows; there is neither corner, `next`, `from`, `left` nor `factor`. */
    struct tile tile;
    int64_t count, a_step, to_step; /* each reads and writes so many floats behind the one before */
};

/* Computes tiles of `rows` rows (1..TILE_ROWS). `a` and `to` are those behind the last one on return. */
void run_tile_compute(int64_t rows, struct run_tile *run);

#endif
