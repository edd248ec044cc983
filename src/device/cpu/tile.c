#include "device/cpu/tile.h"
#include "device/cpu/vec_math.h"

#include <assert.h>
#include <stdbool.h>

/* Tiles of few rows use up b fast; they ask for it so many steps ahead. */
#define AHEAD_STEPS   24
#define AHEAD_ROWS    (TILE_ROWS / 2)
#define AHEAD_VECTORS (64 / (VW * (int)sizeof(float))) /* in a cache line */

/* Columns of vector v that are valid. */
V_INLINE int64_t part(int64_t columns, int v)
{
    int64_t left = columns - v * VW;
    return left < 0 ? 0 : left < VW ? left : VW;
}

/* The whole computation. `rows`, `vectors` and `full` are constants where this is inlined, so that the
   accumulators become registers. */
V_INLINE void compute(const int rows, const int vectors, const struct tile *tile)
{
    vf sum[TILE_ROWS][TILE_VECTORS];
    const bool full = tile->columns == vectors * VW;
    if (!tile->from) {
        V_UNROLL for (int r = 0; r < rows; r++) V_UNROLL for (int v = 0; v < vectors; v++) sum[r][v] =
            v_zero();
    } else if (full) {
        V_UNROLL for (int r = 0; r < rows; r++) V_UNROLL for (int v = 0; v < vectors; v++) sum[r][v] =
            v_load(tile->from + r * tile->from_step + v * VW);
    } else {
        V_UNROLL for (int r = 0; r < rows; r++) V_UNROLL for (int v = 0; v < vectors; v++) sum[r][v] =
            v_load_part(tile->from + r * tile->from_step + v * VW, part(tile->columns, v));
    }

    const int64_t a_step = tile->a_step, b_step = tile->b_step;
    const struct tile_segment *end = tile->segments + tile->count;
    if (tile->next) {
        const float *a = tile->a, *b = tile->b, *next = tile->next;
        int64_t run = tile->next_run;
        for (int64_t i = tile->segments->length; i > 0; i--) {
            vf right[TILE_VECTORS];
            V_UNROLL for (int v = 0; v < vectors; v += AHEAD_VECTORS) __builtin_prefetch(next + v * VW);
            V_UNROLL for (int v = 0; v < vectors; v++) right[v] = v_load(b + v * VW);
            V_UNROLL for (int r = 0; r < rows; r++)
            {
                vf left = v_set1(a[r]);
                V_UNROLL for (int v = 0; v < vectors; v++) sum[r][v] = v_fma(left, right[v], sum[r][v]);
            }
            a += a_step;
            b += b_step;
            next += tile->next_step;
            if (--run == 0) {
                next += tile->next_jump;
                run = tile->next_run;
            }
        }
        end = tile->segments; /* there are no others */
    }
    for (const struct tile_segment *s = tile->segments; s < end; s++) {
        const float *a = tile->a + s->a * tile->a_unit, *b = tile->b + s->b * tile->b_unit;
        if (s->only) {
            for (int64_t i = s->length; i > 0; i--) {
                vf right[TILE_VECTORS];
                V_UNROLL for (int v = 0; v < vectors; v++) right[v] = v_load(b + v * VW);
                V_UNROLL for (int r = 0; r < rows; r++)
                {
                    if (!(s->only >> r & 1)) continue;
                    vf left = v_set1(a[r]);
                    V_UNROLL for (int v = 0; v < vectors; v++) sum[r][v] = v_fma(left, right[v], sum[r][v]);
                }
                a += a_step;
                b += b_step;
            }
            continue;
        }
        for (int64_t i = s->length; i > 0; i--) {
            vf right[TILE_VECTORS];
            if (rows <= AHEAD_ROWS) {
                V_UNROLL for (int v = 0; v < vectors; v += AHEAD_VECTORS)
                    __builtin_prefetch(b + AHEAD_STEPS * b_step + v * VW);
            }
            V_UNROLL for (int v = 0; v < vectors; v++) right[v] = v_load(b + v * VW);
            V_UNROLL for (int r = 0; r < rows; r++)
            {
                vf left = v_set1(a[r]);
                V_UNROLL for (int v = 0; v < vectors; v++) sum[r][v] = v_fma(left, right[v], sum[r][v]);
            }
            a += a_step;
            b += b_step;
        }
    }

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
    if (full) {
        V_UNROLL for (int r = 0; r < rows; r++) V_UNROLL for (int v = 0; v < vectors; v++)
            v_store(tile->to + r * tile->to_step + v * VW, sum[r][v]);
    } else {
        V_UNROLL for (int r = 0; r < rows; r++) V_UNROLL for (int v = 0; v < vectors; v++)
            v_store_part(tile->to + r * tile->to_step + v * VW, sum[r][v], part(tile->columns, v));
    }
}

#if TILE_ROWS == 14
#define EACH_ROWS(X) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11) X(12) X(13) X(14)
#elif TILE_ROWS == 6
#define EACH_ROWS(X) X(1) X(2) X(3) X(4) X(5) X(6)
#elif TILE_ROWS == 5
#define EACH_ROWS(X) X(1) X(2) X(3) X(4) X(5)
#else
#define EACH_ROWS(X) X(1) X(2) X(3) X(4)
#endif

#define DEFINE(rows)                                                                                         \
    static void whole_##rows(const struct tile *tile)                                                        \
    {                                                                                                        \
        compute(rows, TILE_VECTORS, tile);                                                                   \
    }                                                                                                        \
    static void half_##rows(const struct tile *tile)                                                         \
    {                                                                                                        \
        compute(rows, TILE_VECTORS / 2, tile);                                                               \
    }
EACH_ROWS(DEFINE)

#define WHOLE(rows) whole_##rows,
#define HALF(rows)  half_##rows,
static void (*const whole[])(const struct tile *) = {EACH_ROWS(WHOLE)};
static void (*const half[])(const struct tile *) = {EACH_ROWS(HALF)};

/* The activations that take more registers than a tile leaves. */
static void activate(int64_t rows, const struct tile *tile)
{
    for (int64_t r = 0; r < rows; r++)
        for (int64_t j = 0; j < tile->columns; j += VW) {
            float *to = tile->to + r * tile->to_step + j;
            const int64_t n = tile->columns - j < VW ? tile->columns - j : VW;
            vf x = v_load_part(to, n);
            v_store_part(to, tile->activation == TR_ACT_TANH ? v_tanh(x) : v_sigmoid(x), n);
        }
}

void tile_compute(int64_t rows, const struct tile *tile)
{
    assert(rows >= 1 && rows <= TILE_ROWS && tile->columns >= 1 && tile->columns <= TILE_COLUMNS);
    if (tile->columns <= TILE_COLUMNS / 2)
        half[rows - 1](tile);
    else
        whole[rows - 1](tile);
    if (tile->activation == TR_ACT_TANH || tile->activation == TR_ACT_SIGMOID) activate(rows, tile);
}
