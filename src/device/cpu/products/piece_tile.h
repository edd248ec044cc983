/* The tile kernel (tile.h) for gradients of weights: one call goes through all pieces of a block
 * (reduction.h). Pieces are short, often some twenty steps, and a call for each would take as long as a third
 * of them.
 */
#ifndef TR_DEVICE_CPU_PIECE_TILE_H
#define TR_DEVICE_CPU_PIECE_TILE_H

#include "device/cpu/products/row_tile.h"
#include "device/cpu/reduction.h"

/* One for each instruction set. */
#define piece_tile_compute CPU_KERNEL(piece_tile_compute)

/* Numbers of a in a step: whole vectors. */
#define PIECE_STEP ((TILE_ROWS + VW - 1) / VW * VW)

struct piece_tile {
    const struct reduction_piece *pieces; /* their rows are consecutive in a and b */
    int64_t count;
    const float *a; /* a number for each row, steps PIECE_STEP apart */
    const float *b; /* TILE_COLUMNS numbers, steps so far apart */
    /* Slot s begins at waiting + s * slot_step; rows of TILE_COLUMNS. */
    float *waiting;
    int64_t slot_step;
    /* The value of node n goes to `to` + n * node_step; only the first `columns` of each row are written. */
    float *to;
    int64_t to_step, node_step, columns;
    /* Prefetches one row with every `every` steps, as far as there are steps. */
    const struct row_fetch *fetch;
    int fetches;
    int64_t every;
};

/* Computes a tile of `rows` rows (1..TILE_ROWS). */
void piece_tile_compute(int64_t rows, const struct piece_tile *tile);

#endif
