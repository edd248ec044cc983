#include "device/cpu/products/pack.h"

#include <stdbool.h>

#define GROUPS_MAX (TILE_COLUMNS / VW)

/* Rows this far apart map to one or two sets of the first-level cache, which has fewer ways than a block
   has rows. Then a line must be read once, as a whole, or it is fetched anew for each part. */
#define COLLIDING_BYTES 2048

/* VW steps of VW rows. */
V_INLINE void load_transposed(vf t[VW], const float *const row[VW], int64_t k, bool whole_lines)
{
#ifdef V_HAS_LOAD_TRANSPOSED
    if (!whole_lines) {
        v_load_transposed(t, row, k);
        return;
    }
#else
    (void)whole_lines;
#endif
    V_UNROLL for (int i = 0; i < VW; i++) t[i] = v_load(row[i] + k);
    v_transpose(t);
}

/* One block of at most VW steps of at most VW rows; VW pointers are readable if rows == width. Where width is
   not a multiple of VW a store spills into the next step, which is written later: steps ascend, and the last
   group of rows comes first. */
V_INLINE void transpose_block(float *to, int64_t width, const float *const *from, int64_t rows, int64_t k,
                              int64_t steps, bool full, bool whole_lines)
{
    vf t[VW];
    if (full && steps == VW) {
        load_transposed(t, from, k, whole_lines);
    } else {
        for (int i = 0; i < VW; i++) t[i] = i < rows ? v_load_part(from[i] + k, steps) : v_zero();
        v_transpose(t);
    }
    if (steps == VW) {
        V_UNROLL for (int i = 0; i < VW; i++) v_store(to + i * width, t[i]);
    } else {
        for (int i = 0; i < steps; i++) v_store(to + i * width, t[i]);
    }
}

void pack_pointers(float *to, int64_t width, const float *const *from, int64_t rows, int64_t depth)
{
    const float *row[TILE_COLUMNS];
    const int64_t groups = (width + VW - 1) / VW;
    for (int64_t r = 0; r < groups * VW; r++) row[r] = from[r < rows ? r : 0];
    const bool whole_lines = rows > 1 && ((uintptr_t)from[1] - (uintptr_t)from[0]) % COLLIDING_BYTES == 0;
    for (int64_t g = groups - 1; g >= 0; g--) {
        /* Rows that stand in for missing ones spill over, unless they must be 0. */
        const bool full = rows == width || rows - g * VW >= VW;
        for (int64_t k = 0; k < depth; k += VW)
            transpose_block(to + k * width + g * VW, width, row + g * VW, rows - g * VW, k,
                            depth - k < VW ? depth - k : VW, full, whole_lines);
    }
}

void pack_rows(float *to, int64_t width, const float *from, int64_t step, int64_t rows, int64_t depth)
{
    const float *row[TILE_COLUMNS];
    for (int64_t r = 0; r < rows; r++) row[r] = from + r * step;
    pack_pointers(to, width, row, rows, depth);
}

void pack_columns(float *to, int64_t width, const float *from, int64_t step, int64_t columns, int64_t depth)
{
    if (columns == TILE_COLUMNS) {
        for (int64_t k = 0; k < depth; k++)
            V_UNROLL for (int g = 0; g < GROUPS_MAX; g++)
                v_store(to + k * TILE_COLUMNS + g * VW, v_load(from + k * step + g * VW));
        return;
    }
    if (width <= VW && columns == width) { /* one store spills into the next step, which is written later */
        for (int64_t k = 0; k < depth; k++) v_store(to + k * width, v_load_part(from + k * step, columns));
        return;
    }
    const int64_t whole = columns / VW * VW;
    for (int64_t k = 0; k < depth; k++) {
        const float *source = from + k * step;
        float *target = to + k * width;
        int64_t j = 0;
        for (; j < whole; j += VW) v_store(target + j, v_load(source + j));
        if (j < columns) {
            v_store(target + j, v_load_part(source + j, columns - j));
            j += VW;
        }
        for (; j < width; j += VW) v_store(target + j, v_zero());
    }
}

/* Floats that stay in the first-level cache while they are copied. */
#define CACHED 2048

/* Writes `count` floats with stores of whole vectors; floats beyond them are overwritten later or lie in
   the slack. */
V_INLINE void copy_part(float *to, const float *from, int64_t count)
{
    int64_t j = 0;
    for (; j + VW <= count; j += VW) v_store(to + j, v_load(from + j));
    if (j < count) v_store(to + j, v_load_part(from + j, count - j));
}

void pack_lines(float *to, int64_t to_step, const float *from, int64_t step, int64_t rows, int64_t depth)
{
    for (int64_t r = 0; r < rows; r++) copy_part(to + r * to_step, from + r * step, depth);
}

void pack_panels(float *to, int64_t panel_step, const float *from, int64_t step, int64_t columns,
                 int64_t depth)
{
    const int64_t whole = columns / TILE_COLUMNS;
    for (int64_t k = 0; k < depth; k++) {
        const float *source = from + k * step;
        float *target = to + k * TILE_COLUMNS;
        for (int64_t p = 0; p < whole; p++) {
            V_UNROLL for (int g = 0; g < GROUPS_MAX; g++) v_store(target + g * VW, v_load(source + g * VW));
            source += TILE_COLUMNS;
            target += panel_step;
        }
    }
    if (columns % TILE_COLUMNS)
        pack_columns(to + whole * panel_step, TILE_COLUMNS, from + whole * TILE_COLUMNS, step,
                     columns % TILE_COLUMNS, depth);
}

/* Copies the columns of one tile. */
V_INLINE void copy_tile(float *to, const float *from, int64_t step, int64_t columns, int64_t depth)
{
    if (columns <= VW) /* most tiles: one vector of the same lanes */
        for (int64_t k = 0; k < depth; k++) v_store(to + k * columns, v_load_part(from + k * step, columns));
    else
        for (int64_t k = 0; k < depth; k++) copy_part(to + k * columns, from + k * step, columns);
}

void pack_tiles(float *to, int64_t done, int64_t room, const float *from, int64_t step, int64_t columns,
                int64_t tiles, int64_t depth)
{
    /* So many rows of `from` at a time as stay in the first-level cache for all tiles. */
    const int64_t most = columns < CACHED / 2 ? CACHED / columns : 2;
    const int64_t low = columns / tiles, high_tiles = columns % tiles;
    for (int64_t k = 0; k < depth;) {
        const int64_t rows = depth - k < most ? depth - k : most;
        const float *source = from + k * step;
        float *target = to;
        for (int64_t t = 0; t < tiles; t++) {
            const int64_t width = low + (t < high_tiles);
            copy_tile(target + (done + k) * width, source, step, width, rows);
            source += width;
            target += width * room + PACK_SLACK;
        }
        k += rows;
    }
}
