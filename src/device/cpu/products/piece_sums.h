/* Sums over rows, column by column, for gradients of weights that go through pieces (reduction.h): the
 * gradient of the bias from the b side of the tiles. */
#ifndef TR_DEVICE_CPU_PIECE_SUMS_H
#define TR_DEVICE_CPU_PIECE_SUMS_H

#include "device/cpu/kernels.h"
#include "device/cpu/reduction.h"

/* One for each instruction set. */
#define piece_sums_compute CPU_KERNEL(piece_sums_compute)

struct piece_sums {
    const struct reduction_piece *pieces;
    int64_t count;
    /* Row r of panel p, of TILE_COLUMNS, is at b + p * panel_step + r * step; a row of a piece is `repeat`
       of them. Of the last panel, half or all of it is read, as far as there are columns. */
    const float *b;
    int64_t step, panel_step, repeat;
    /* Slot s of column j is waiting[s * slot_step + j]; to the end of the last panel. */
    float *waiting;
    int64_t slot_step;
    float *to; /* the sums of node n at to + n * node_step */
    int64_t node_step, columns;
};

void piece_sums_compute(const struct piece_sums *sums);

#endif
