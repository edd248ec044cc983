#include "device/cpu/products/piece_tile.h"

#include "device/cpu/products/tile_sums.h"

#include <assert.h>
#include <stdbool.h>

/* Rows left to fetch, and the steps until the next one. */
struct fetching {
    struct row_fetch now;
    const struct row_fetch *then, *end;
    int64_t wait;
};

V_INLINE void fetch_row(const int vectors, int64_t every, struct fetching *f)
{
    tile_prefetch(vectors, f->now.from);
    f->now.from += f->now.step;
    f->wait = every;
    if (--f->now.rows > 0) return;
    if (f->then < f->end)
        f->now = *f->then++;
    else
        f->wait = INT64_MAX;
}

/* The initial sums of a piece: its slot, or NULL for +0. */
V_INLINE void begin_piece(const int rows, const int vectors, const float *from,
                          vf sum[TILE_ROWS][TILE_VECTORS])
{
    V_UNROLL for (int r = 0; r < rows; r++) V_UNROLL for (int v = 0; v < vectors; v++) sum[r][v] =
        from ? v_load(from + r * TILE_COLUMNS + v * VW) : v_zero();
}

V_INLINE void write_slot(const int rows, const int vectors, float *to, vf sum[TILE_ROWS][TILE_VECTORS])
{
    V_UNROLL for (int r = 0; r < rows; r++) V_UNROLL for (int v = 0; v < vectors; v++)
        v_store(to + r * TILE_COLUMNS + v * VW, sum[r][v]);
}

V_INLINE void write_node(const int rows, const int vectors, const struct piece_tile *tile, float *to,
                         vf sum[TILE_ROWS][TILE_VECTORS])
{
    if (tile->columns == vectors * VW) {
        V_UNROLL for (int r = 0; r < rows; r++) V_UNROLL for (int v = 0; v < vectors; v++)
            v_store(to + r * tile->to_step + v * VW, sum[r][v]);
    } else {
        V_UNROLL for (int r = 0; r < rows; r++) V_UNROLL for (int v = 0; v < vectors; v++)
            v_store_part(to + r * tile->to_step + v * VW, sum[r][v], tile_part(tile->columns, v));
    }
}

/* `rows` and `vectors` are constants where this is inlined, so that the sums become registers. */
V_INLINE void compute(const int rows, const int vectors, const struct piece_tile *tile)
{
    const float *a = tile->a, *b = tile->b;
    struct fetching f = {.then = tile->fetch, .end = tile->fetch + tile->fetches, .wait = INT64_MAX};
    if (f.then < f.end) {
        f.now = *f.then++;
        f.wait = 1;
    }
    for (const struct reduction_piece *p = tile->pieces; p < tile->pieces + tile->count; p++) {
        vf sum[TILE_ROWS][TILE_VECTORS];
        const float *fresh = tile->waiting + p->fresh * tile->slot_step;
        if (p->resume)
            begin_piece(rows, vectors, fresh, sum);
        else
            begin_piece(rows, vectors, NULL, sum);
        for (int64_t i = p->rows; i > 0; i--, a += PIECE_STEP, b += TILE_COLUMNS) {
            if (rows <= AHEAD_ROWS) tile_prefetch(vectors, b + AHEAD_STEPS * TILE_COLUMNS);
            if (--f.wait == 0) fetch_row(vectors, tile->every, &f);
            tile_step(rows, vectors, a, b, sum);
        }
        for (int i = 0; i < p->lefts; i++) {
            fresh -= tile->slot_step;
            V_UNROLL for (int r = 0; r < rows; r++) V_UNROLL for (int v = 0; v < vectors; v++) sum[r][v] =
                v_add(v_load(fresh + r * TILE_COLUMNS + v * VW), sum[r][v]);
        }
        if (p->slot >= 0)
            write_slot(rows, vectors, tile->waiting + p->slot * tile->slot_step, sum);
        else
            write_node(rows, vectors, tile, tile->to + p->node * tile->node_step, sum);
    }
}

#define TILE_ARGUMENT const struct piece_tile *
TILE_KERNELS

void piece_tile_compute(int64_t rows, const struct piece_tile *tile)
{
    run_kernel(rows, tile->columns, tile);
}
