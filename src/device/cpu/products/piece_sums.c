#include "device/cpu/products/piece_sums.h"

#include "device/cpu/products/tile.h"
#include "device/cpu/sizes.h"

/* Panels that are summed at the same time, to hide the latency of an addition. */
#define PANELS 4

/* The sums of `panels` panels from column j on, `vectors` of each. Both are constants where this is inlined.
 */
V_INLINE void sum_panels(const int panels, const int vectors, const struct piece_sums *s, int64_t j)
{
    const float *b = s->b + j / TILE_COLUMNS * s->panel_step;
    for (const struct reduction_piece *piece = s->pieces; piece < s->pieces + s->count; piece++) {
        vf sum[PANELS][TILE_VECTORS];
        const float *fresh = s->waiting + piece->fresh * s->slot_step + j;
        V_UNROLL for (int p = 0; p < panels; p++) V_UNROLL for (int v = 0; v < vectors; v++) sum[p][v] =
            piece->resume ? v_load(fresh + p * TILE_COLUMNS + v * VW) : v_zero();
        for (int64_t i = piece->rows * s->repeat; i > 0; i--, b += s->step)
            V_UNROLL for (int p = 0; p < panels; p++) V_UNROLL for (int v = 0; v < vectors; v++) sum[p][v] =
                v_add(sum[p][v], v_load(b + p * s->panel_step + v * VW));
        for (int i = 0; i < piece->lefts; i++) {
            fresh -= s->slot_step;
            V_UNROLL for (int p = 0; p < panels; p++) V_UNROLL for (int v = 0; v < vectors; v++) sum[p][v] =
                v_add(v_load(fresh + p * TILE_COLUMNS + v * VW), sum[p][v]);
        }
        float *to = piece->slot >= 0 ? s->waiting + piece->slot * s->slot_step + j
                                     : s->to + piece->node * s->node_step + j;
        const int64_t valid = piece->slot >= 0 ? panels * TILE_COLUMNS : s->columns - j;
        V_UNROLL for (int p = 0; p < panels; p++) V_UNROLL for (int v = 0; v < vectors; v++)
        {
            const int64_t at = p * TILE_COLUMNS + v * VW;
            v_store_part(to + at, sum[p][v], larger(0, smaller(VW, valid - at)));
        }
    }
}

void piece_sums_compute(const struct piece_sums *s)
{
    int64_t j = 0;
    for (; j + PANELS * TILE_COLUMNS <= s->columns; j += PANELS * TILE_COLUMNS)
        sum_panels(PANELS, TILE_VECTORS, s, j);
    for (; j + 2 * TILE_COLUMNS <= s->columns; j += 2 * TILE_COLUMNS) sum_panels(2, TILE_VECTORS, s, j);
    for (; j + TILE_COLUMNS / 2 < s->columns; j += TILE_COLUMNS) sum_panels(1, TILE_VECTORS, s, j);
    if (j < s->columns) sum_panels(1, TILE_VECTORS / 2, s, j);
}
