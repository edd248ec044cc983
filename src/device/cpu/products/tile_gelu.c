/* gelu and its derivative of a tile.
 *
 * The error function has two branches (base/numbers/mathf.inc), of which the one for large numbers costs
 * twice the other. Few numbers take it, but they are spread over nearly all vectors. Where lanes can be
 * compressed (compress.h), it is computed only for these numbers, packed into separate vectors. The bits of a
 * result do not depend on its lane.
 */
#include "device/cpu/products/tile_gelu.h"

#include "device/cpu/products/gelu.h"
#include "device/cpu/vectors/compress.h"

/* Vector by vector. */
V_INLINE void each_vector(const enum tr_activation activation, int64_t rows, int64_t columns, const float *x,
                          float *y, float *derivative, int64_t step)
{
    for (int64_t r = 0; r < rows; r++, x += TILE_COLUMNS, y += step, derivative += step)
        for (int64_t j = 0; j < columns; j += VW) {
            const int64_t n = columns - j;
            vf value, slope;
            gelu_both(activation, n < VW ? v_load_part(x + j, n) : v_load(x + j), &value, &slope);
            if (n < VW) {
                v_store_part(y + j, value, n);
                v_store_part(derivative + j, slope, n);
            } else {
                v_store(y + j, value);
                v_store(derivative + j, slope);
            }
        }
}

#ifdef V_HAS_COMPRESS
/* All columns of a tile, by the error function. */
static void gathered(int64_t rows, const float *x, float *y, float *derivative, int64_t step)
{
    _Alignas(64) float middle[TILE_ROWS * TILE_COLUMNS], outside[TILE_ROWS * TILE_COLUMNS + VW];
    vm is_outside[TILE_ROWS * TILE_VECTORS];
    int64_t vectors = 0, count = 0;
    for (int64_t r = 0; r < rows; r++)
        for (int64_t j = 0; j < TILE_COLUMNS; j += VW, vectors++) {
            const vf inner = v_mul(v_load(x + r * TILE_COLUMNS + j), v_set1(GELU_INNER));
            const vf size = v_from_bits(vi_and(v_bits(inner), vi_set1(0x7fffffff)));
            const vm far = vm_not(v_lt(size, v_erf_bound()));
            v_store(middle + vectors * VW, v_erf_middle(inner));
            v_store(outside + count, v_compress(far, inner));
            is_outside[vectors] = far;
            count += vm_count(far);
        }
    for (int64_t i = 0; i < count; i += VW) v_store(outside + i, v_erf_outside(v_load(outside + i)));
    vectors = count = 0;
    for (int64_t r = 0; r < rows; r++)
        for (int64_t j = 0; j < TILE_COLUMNS; j += VW, vectors++) {
            const vm far = is_outside[vectors];
            const vf core = v_expand(far, v_load(outside + count), v_load(middle + vectors * VW));
            vf value, slope;
            gelu_finish(TR_ACT_GELU, v_load(x + r * TILE_COLUMNS + j), core, &value, &slope);
            v_store(y + r * step + j, value);
            v_store(derivative + r * step + j, slope);
            count += vm_count(far);
        }
}
#endif

void tile_gelu(enum tr_activation activation, int64_t rows, int64_t columns, const float *x, float *y,
               float *derivative, int64_t step)
{
    if (activation == TR_ACT_GELU_TANH) {
        each_vector(TR_ACT_GELU_TANH, rows, columns, x, y, derivative, step);
        return;
    }
#ifdef V_HAS_COMPRESS
    if (columns == TILE_COLUMNS) {
        gathered(rows, x, y, derivative, step);
        return;
    }
#endif
    each_vector(TR_ACT_GELU, rows, columns, x, y, derivative, step);
}
