/* The gelu of a tile. */
#ifndef TR_DEVICE_CPU_TILE_GELU_H
#define TR_DEVICE_CPU_TILE_GELU_H

#include "device/cpu/products/tile.h"

/* One for each instruction set. */
#define tile_gelu CPU_KERNEL(tile_gelu)

/* y = gelu of the tile x, whose rows lie TILE_COLUMNS apart, and its derivative, both `step` apart.
   `activation` is GELU or GELU_TANH. */
void tile_gelu(enum tr_activation activation, int64_t rows, int64_t columns, const float *x, float *y,
               float *derivative, int64_t step);

#endif
