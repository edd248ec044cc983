/* Shared by both directions of attention: one head of one example, and its packed matrices. */
#ifndef TR_DEVICE_CPU_ATTENTION_H
#define TR_DEVICE_CPU_ATTENTION_H

#include "device/cpu/cpu.h"
#include "device/cpu/kernels.h"
#include "device/cpu/vectors/mask.h"
#include "device/cpu/products/pack.h"
#include "device/cpu/products/row_tile.h"
#include "device/cpu/sizes.h"

/* One for each instruction set. */
#define attention_run CPU_KERNEL(attention_run)

#define HALF_COLUMNS (TILE_COLUMNS / 2)

_Static_assert(TILE_VECTORS % 2 == 0, "half a tile is whole vectors");

/* One head of one example. */
struct head {
    const struct tr_attention *at;
    int64_t number, queries, keys, before; /* before: number of keys that are older than the first query */
    int64_t kv_number;                     /* of the head of keys and values */
    int64_t row, key;                      /* the first ones */
    uint32_t example;
    struct mask mask;
    const struct head *next; /* the head that the member will probably take next, or NULL */
};

/* Rows that a head prefetches during the steps of its tiles of scores: where its results go, and the rows
   of the next head. The hardware prefetcher does not find them, since each is a part of a token's row; and
   a head is too short to wait for them. */
#define HEAD_TENSORS 8
#define HEAD_WIDEST  4 /* in tiles; of wider heads the rest is not prefetched */
struct head_ahead {
    struct row_fetch list[HEAD_TENSORS * HEAD_WIDEST];
    int count, current;
    int64_t rows, portion; /* of all rows, of a tile's portion */
    struct row_fetch next; /* the portion of the current tile */
};

/* Computes a head in a member's scratch. */
typedef void (*attention_head)(const void *arguments, const struct head *head, float *memory);

/* Calls `function` for every head of every example that has queries, on the whole team, each with `floats`
   of scratch. Groups of `together` heads, a divisor of an example's heads, go to one member in order.
   `products` counts the matrix products of a head. */
tr_status attention_run(tr_device *device, const struct tr_attention *at, int products, int64_t floats,
                        int64_t together, attention_head function, const void *arguments);

/* Keys of the longest example. */
static inline int64_t attention_keys(const struct tr_attention *at)
{
    int64_t most = 0;
    for (int64_t e = 0; e < at->examples; e++) {
        const int64_t keys = at->key_offset[e + 1] - at->key_offset[e];
        most = keys > most ? keys : most;
    }
    return most;
}

static inline int64_t round_up(int64_t a, int64_t b)
{
    return (a + b - 1) / b * b;
}

/* Columns to compute where `columns` are wanted: half the tile's if these are enough. */
static inline int64_t whole_columns(int64_t columns)
{
    return columns <= HALF_COLUMNS ? HALF_COLUMNS : TILE_COLUMNS;
}

/* Floats of `rows` rows of `depth` packed into tiles or panels of at most `width`, each with its slack. */
static inline int64_t packed_floats(int64_t rows, int64_t width, int64_t depth)
{
    return round_up(rows, width) * depth + PACK_SLACK;
}

/* Takes a piece of memory, in whole cache lines. */
static inline float *take(float **memory, int64_t floats)
{
    float *piece = *memory;
    *memory += round_up(floats, CPU_ALIGN / (int64_t)sizeof(float));
    return piece;
}

/* Adds `rows` rows of `size` from a tensor. */
static inline void head_ahead_add(struct head_ahead *ahead, const float *from, int64_t step, int64_t rows,
                                  int64_t size)
{
    for (int64_t j = 0; j < smaller(size, HEAD_WIDEST * TILE_COLUMNS) && rows > 0; j += TILE_COLUMNS) {
        ahead->list[ahead->count++] = (struct row_fetch){from + j, step, rows};
        ahead->rows += rows;
    }
}

/* Spreads the rows over the first half of `tiles` tiles, or over as many tiles as they need: a tile has
 * `depth` steps.
 */
static inline void head_ahead_begin(struct head_ahead *ahead, int64_t tiles, int64_t depth)
{
    ahead->portion = smaller(tiles > 0 ? 2 * ahead->rows / tiles + 1 : depth, depth);
}

/* Makes a tile prefetch the next portion. */
static inline void head_fetch(struct head_ahead *ahead, struct row_tile *tile)
{
    if (ahead->current == ahead->count) return;
    struct row_fetch *rows = &ahead->list[ahead->current];
    ahead->next = (struct row_fetch){rows->from, rows->step, smaller(rows->rows, ahead->portion)};
    tile->fetch = &ahead->next;
    tile->fetches = 1;
    rows->from += ahead->portion * rows->step;
    rows->rows -= ahead->portion;
    if (rows->rows <= 0) ahead->current++;
}

/* Query i sees the keys from seen_from() on and below seen(). Both ascend with i. */
static inline int64_t seen_from(const struct head *h, int64_t i)
{
    const int64_t window = h->at->window, behind = h->before + i + 1 - window;
    return window == 0 || behind < 0 ? 0 : behind;
}

static inline int64_t seen(const struct head *h, int64_t i)
{
    const int64_t window = h->at->window;
    if (h->at->causal) return h->before + i + 1;
    return window == 0 || h->keys - (h->before + i) < window ? h->keys : h->before + i + window;
}

static inline const float *query_of(const struct head *h, int64_t i)
{
    return h->at->q + (h->row + i) * h->at->q_step + h->number * h->at->size;
}

static inline const float *row_of(const struct head *h, const float *tensor, int64_t j)
{
    return tensor + (h->key + j) * h->at->kv_step + h->kv_number * h->at->size;
}

/* `rows` rows of `width` as panels of b, whose steps are the rows: panel p is at p * TILE_COLUMNS * rows. */
static inline void pack_along(float *to, const float *from, int64_t step, int64_t rows, int64_t width)
{
    for (int64_t c = 0; c < width; c += TILE_COLUMNS)
        pack_columns(to + c * rows, TILE_COLUMNS, from + c, step, smaller(TILE_COLUMNS, width - c), rows);
}

#endif
