/* Recurrent layers over ragged sequences.
 *
 * Sequences do not depend on each other, so a member takes a share of them with about as many tokens as
 * the others and steps through time without waiting for others. It sorts them by length and makes tiles of
 * sequences of similar length. At every time step a tile is one small product with the packed recurrent
 * weights. Its rows are the sequences that are running at that step, a prefix of the tile.
 */
#ifndef TR_DEVICE_CPU_RECURRENT_H
#define TR_DEVICE_CPU_RECURRENT_H

#include "device/cpu/cpu.h"
#include "device/cpu/kernels.h"
#include "device/cpu/products/pack.h"
#include "device/cpu/products/tile.h"

#include <stdbool.h>

/* One for each instruction set. */
#define recurrent_multiply CPU_KERNEL(recurrent_multiply)
#define recurrent_forward  CPU_KERNEL(recurrent_forward)
#define recurrent_backward CPU_KERNEL(recurrent_backward)
#define recurrent_weights  CPU_KERNEL(recurrent_weights)

/* A tile of sequences, longest first. */
struct sequences {
    int64_t count;
    int64_t row[TILE_ROWS], length[TILE_ROWS]; /* first row and number of rows */
    int64_t example[TILE_ROWS];
};

struct recurrent;
/* Walks a tile through time. `memory` has the size that recurrent_run() was given. */
typedef void (*recurrent_tile)(const struct recurrent *recurrent, const struct sequences *sequences,
                               float *memory);

struct recurrent {
    struct cpu_device *cpu;
    int64_t examples;
    const int32_t *offset;
    recurrent_tile tile;
    const void *op; /* for `tile` */
    const float *w; /* [depth][columns], or if `transposed` [columns][depth] */
    bool transposed;
    const float *added; /* added to each product: [columns], or NULL */
    int64_t depth, columns;
    float *packed; /* panels of w, or of its transpose: depth steps each */
    float *bias;   /* `added`, readable to the end of the last panel */
};

/* A recurrent layer of so many gates, each of `hidden` numbers. */
struct recurrent_layer {
    tr_device *device;
    int64_t examples, hidden, gates;
    const int32_t *offset;
    const float *w; /* [hidden][gates * hidden] */
};

/* Rows of `width` floats to prefetch, one for each sequence of a tile and `step` apart; or NULL. */
struct recurrent_soon {
    const float *rows;
    int64_t width, step;
};

struct recurrent_product {
    const float *const *rows;
    int64_t count;
    float *a;          /* for the packed rows: TILE_ROWS * depth + PACK_SLACK */
    const float *from; /* rows from_step apart, or NULL; may be `to` */
    int64_t from_step;
    float *to; /* rows of `columns` */
    const struct recurrent_soon *soon;
    int64_t soons;
};

/* to[row][columns] = (from, or +0 where NULL) + chain over depth of rows[row] and the packed weights, +
   added. Meanwhile prefetches the rows needed soon, one of them with each panel of weights; without any,
   the part of `from` for the next panel. */
void recurrent_multiply(const struct recurrent *recurrent, const struct recurrent_product *product);

/* Walks all sequences, `tile` with the argument `op`. Forward, products are those of a row's outputs with the
   weights, + bias, and a tile's memory has its rows of gates, then its packed rows. Backward, they are those
   of a row's gradients of the gates with the transposed weights, and the memory has two sets of rows of
   `hidden`, then the packed rows. */
tr_status recurrent_forward(const struct recurrent_layer *layer, const float *bias, recurrent_tile tile,
                            const void *op);
tr_status recurrent_backward(const struct recurrent_layer *layer, recurrent_tile tile, const void *op);
/* The gradient of the weights, from the outputs h [rows][hidden] and dgates [rows][gates * hidden]. */
tr_status recurrent_weights(const struct recurrent_layer *layer, const float *h, const float *dgates,
                            const struct tr_cut *cut, float *dw);

/* How many sequences of the tile have a row t. */
static inline int64_t recurrent_running(const struct sequences *s, int64_t t)
{
    int64_t count = s->count;
    while (count > 0 && s->length[count - 1] <= t) count--;
    return count;
}

static inline vf recurrent_load(const float *p, int64_t n)
{
    return n >= VW ? v_load(p) : v_load_part(p, n);
}

static inline void recurrent_store(float *p, vf v, int64_t n)
{
    if (n >= VW)
        v_store(p, v);
    else
        v_store_part(p, v, n);
}

#endif
