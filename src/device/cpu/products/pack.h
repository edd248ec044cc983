/* Copies of matrix blocks in the order in which the tile kernel reads them: [depth][width].
 *
 * All functions may write up to VW - 1 floats beyond the end of `to`, so consecutive blocks are packed in
 * ascending order and a buffer needs that much room after its last block (PACK_SLACK).
 */
#ifndef TR_DEVICE_CPU_PACK_H
#define TR_DEVICE_CPU_PACK_H

#include "device/cpu/kernels.h"
#include "device/cpu/products/tile.h"

/* One for each instruction set. */
#define pack_pointers CPU_KERNEL(pack_pointers)
#define pack_rows     CPU_KERNEL(pack_rows)
#define pack_columns  CPU_KERNEL(pack_columns)
#define pack_lines    CPU_KERNEL(pack_lines)
#define pack_panels   CPU_KERNEL(pack_panels)
#define pack_tiles    CPU_KERNEL(pack_tiles)

#define PACK_SLACK 16

/* Transposes: to[k][r] = from[r][k] for r < rows, +0 for rows <= r < width. 1 <= rows <= width <=
   TILE_COLUMNS. */
void pack_pointers(float *to, int64_t width, const float *const *from, int64_t rows, int64_t depth);

/* The same with row r at from + r * step. */
void pack_rows(float *to, int64_t width, const float *from, int64_t step, int64_t rows, int64_t depth);

/* Copies: to[k][j] = from[k * step + j] for j < columns, +0 for columns <= j < width. 1 <= columns <= width
   <= TILE_COLUMNS. */
void pack_columns(float *to, int64_t width, const float *from, int64_t step, int64_t columns, int64_t depth);

/* Copies rows: to[r * to_step + k] = from[r * step + k] for k < depth, to_step >= depth. */
void pack_lines(float *to, int64_t to_step, const float *from, int64_t step, int64_t rows, int64_t depth);

/* Copies many panels of TILE_COLUMNS at once, so that long rows are read in one pass: panel p of the
   `columns` columns, the last one padded with +0, goes to `to + p * panel_step`. */
void pack_panels(float *to, int64_t panel_step, const float *from, int64_t step, int64_t columns,
                 int64_t depth);

/* Copies the columns of tiles: `columns` columns are split into `tiles` as tile_first() does, and tile t, of
   columns [first, last), goes to `to + first * room + t * PACK_SLACK` as [room][last - first], into its steps
   [done, done + depth). Each block has its own slack, so that blocks may be filled in several runs. */
void pack_tiles(float *to, int64_t done, int64_t room, const float *from, int64_t step, int64_t columns,
                int64_t tiles, int64_t depth);

#endif
