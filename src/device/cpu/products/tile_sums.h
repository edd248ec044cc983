/* The beginning, a step and the end of a tile's sums, shared by the tile kernels. Rows and vectors
 * are constants where this is inlined, so that the sums are registers.
 */
#ifndef TR_DEVICE_CPU_TILE_SUMS_H
#define TR_DEVICE_CPU_TILE_SUMS_H

#include "device/cpu/products/tile.h"
#include "device/cpu/vectors/math.h"

#include <assert.h>
#include <stdbool.h>

#define AHEAD_VECTORS (64 / (VW * (int)sizeof(float))) /* vectors in a cache line */
/* Tiles of few rows use b quickly; they prefetch it so many steps ahead. */
#define AHEAD_STEPS 24
#define AHEAD_ROWS  (TILE_ROWS / 2)

V_INLINE void tile_prefetch(const int vectors, const float *from)
{
    V_UNROLL for (int v = 0; v < vectors; v += AHEAD_VECTORS) __builtin_prefetch(from + v * VW);
}

/* Columns of vector v that are valid. */
V_INLINE int64_t tile_part(int64_t columns, int v)
{
    int64_t left = columns - v * VW;
    return left < 0 ? 0 : left < VW ? left : VW;
}

/* Initial sums. */
V_INLINE void tile_begin(const int rows, const int vectors, const struct tile *tile,
                         vf sum[TILE_ROWS][TILE_VECTORS])
{
    if (!tile->from) {
        V_UNROLL for (int r = 0; r < rows; r++) V_UNROLL for (int v = 0; v < vectors; v++) sum[r][v] =
            v_zero();
    } else if (tile->columns == vectors * VW) {
        V_UNROLL for (int r = 0; r < rows; r++) V_UNROLL for (int v = 0; v < vectors; v++) sum[r][v] =
            v_load(tile->from + r * tile->from_step + v * VW);
    } else {
        V_UNROLL for (int r = 0; r < rows; r++) V_UNROLL for (int v = 0; v < vectors; v++) sum[r][v] =
            v_load_part(tile->from + r * tile->from_step + v * VW, tile_part(tile->columns, v));
    }
}

/* One step: a number of a for each row, and the same numbers of b for all. */
V_INLINE void tile_step(const int rows, const int vectors, const float *a, const float *b,
                        vf sum[TILE_ROWS][TILE_VECTORS])
{
    vf right[TILE_VECTORS];
    V_UNROLL for (int v = 0; v < vectors; v++) right[v] = v_load(b + v * VW);
    V_UNROLL for (int r = 0; r < rows; r++)
    {
        vf left = v_set1(a[r]);
        V_UNROLL for (int v = 0; v < vectors; v++) sum[r][v] = v_fma(left, right[v], sum[r][v]);
    }
}

/* Completes and stores the sums. */
V_INLINE void tile_end(const int rows, const int vectors, const struct tile *tile,
                       vf sum[TILE_ROWS][TILE_VECTORS])
{
    for (int i = 0; i < tile->lefts; i++) {
        const float *left = tile->left[i];
        V_UNROLL for (int r = 0; r < rows; r++) V_UNROLL for (int v = 0; v < vectors; v++) sum[r][v] =
            v_add(v_load(left + r * TILE_COLUMNS + v * VW), sum[r][v]);
    }
    if (tile->bias) {
        V_UNROLL for (int v = 0; v < vectors; v++)
        {
            vf bias = v_load(tile->bias + v * VW);
            V_UNROLL for (int r = 0; r < rows; r++) sum[r][v] = v_add(sum[r][v], bias);
        }
    }
    if (tile->activation == TR_ACT_RELU) {
        const vf zero = v_zero();
        V_UNROLL for (int r = 0; r < rows; r++) V_UNROLL for (int v = 0; v < vectors; v++) sum[r][v] =
            v_select(v_gt(zero, sum[r][v]), zero, sum[r][v]);
    } else if (tile->activation == TR_ACT_LEAKY_RELU) {
        const vf zero = v_zero(), slope = v_set1(tile->slope);
        V_UNROLL for (int r = 0; r < rows; r++) V_UNROLL for (int v = 0; v < vectors; v++) sum[r][v] =
            v_select(v_gt(zero, sum[r][v]), v_mul(slope, sum[r][v]), sum[r][v]);
    }
    if (tile->factor) {
        V_UNROLL for (int r = 0; r < rows; r++) V_UNROLL for (int v = 0; v < vectors; v++)
        {
            const float *factor = tile->factor + r * tile->to_step + v * VW;
            sum[r][v] = v_mul(sum[r][v], tile->columns == vectors * VW
                                             ? v_load(factor)
                                             : v_load_part(factor, tile_part(tile->columns, v)));
        }
    }
    if (tile->columns == vectors * VW) {
        V_UNROLL for (int r = 0; r < rows; r++) V_UNROLL for (int v = 0; v < vectors; v++)
            v_store(tile->to + r * tile->to_step + v * VW, sum[r][v]);
    } else {
        V_UNROLL for (int r = 0; r < rows; r++) V_UNROLL for (int v = 0; v < vectors; v++)
            v_store_part(tile->to + r * tile->to_step + v * VW, sum[r][v], tile_part(tile->columns, v));
    }
}

/* Applies activations that need more registers than a tile leaves, to the written outputs. */
static inline void tile_activate(int64_t rows, const struct tile *tile)
{
    if (tile->activation != TR_ACT_TANH && tile->activation != TR_ACT_SIGMOID) return;
    for (int64_t r = 0; r < rows; r++)
        for (int64_t j = 0; j < tile->columns; j += VW) {
            float *to = tile->to + r * tile->to_step + j;
            const int64_t n = tile->columns - j < VW ? tile->columns - j : VW;
            vf x = v_load_part(to, n);
            v_store_part(to, tile->activation == TR_ACT_TANH ? v_tanh(x) : v_sigmoid(x), n);
        }
}

/* For each number of rows of a tile. */
#if TILE_ROWS == 14
#define TILE_EACH_ROWS(X) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11) X(12) X(13) X(14)
#elif TILE_ROWS == 6
#define TILE_EACH_ROWS(X) X(1) X(2) X(3) X(4) X(5) X(6)
#elif TILE_ROWS == 5
#define TILE_EACH_ROWS(X) X(1) X(2) X(3) X(4) X(5)
#else
#define TILE_EACH_ROWS(X) X(1) X(2) X(3) X(4)
#endif

/* From a function compute(rows, vectors, argument) of a file, one for each number of rows and for half or all
   of the columns; and run_kernel(), which calls the right one. TILE_ARGUMENT is the type of the argument. */
#define TILE_KERNEL(rows)                                                                                    \
    static void whole_##rows(TILE_ARGUMENT argument)                                                         \
    {                                                                                                        \
        compute(rows, TILE_VECTORS, argument);                                                               \
    }                                                                                                        \
    static void half_##rows(TILE_ARGUMENT argument)                                                          \
    {                                                                                                        \
        compute(rows, TILE_VECTORS / 2, argument);                                                           \
    }
#define TILE_KERNEL_ENTRY(rows) {half_##rows, whole_##rows},
#define TILE_KERNELS                                                                                         \
    TILE_EACH_ROWS(TILE_KERNEL)                                                                              \
    static void (*const kernel[][2])(TILE_ARGUMENT argument) = {TILE_EACH_ROWS(TILE_KERNEL_ENTRY)};          \
    V_INLINE void run_kernel(int64_t rows, int64_t columns, TILE_ARGUMENT argument)                          \
    {                                                                                                        \
        assert(rows >= 1 && rows <= TILE_ROWS && columns >= 1 && columns <= TILE_COLUMNS);                   \
        const bool whole = columns > TILE_COLUMNS / 2;                                                       \
        if (V_SHAPES)                                                                                        \
            kernel[rows - 1][whole](argument);                                                               \
        else                                                                                                 \
            compute((int)rows, whole ? TILE_VECTORS : TILE_VECTORS / 2, argument);                           \
    }

#endif
