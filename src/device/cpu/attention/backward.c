/* Gradients of attention: per head in blocks of queries.
 *
 * The scores of a block are computed again, to the same bits, and lie [query][key]: in the order of the
 * chains of dk and dv, which wait in memory between blocks, and as rows for the chains of dq. A causal
 * chain ends at the query's own key, or begins there: these steps are the corner of a tile. Causal queries
 * and keys are therefore cut into the same tiles, and a block is whole tiles.
 */
#include "device/cpu/attention/attention.h"

#include "device/cpu/vectors/lanes.h"
#include "device/cpu/vectors/math.h"

#include <assert.h>
#include <stdbool.h>
#include <string.h>

/* Tiles in a block. */
#define BLOCK_TILES   (70 / TILE_ROWS)
#define BLOCK_QUERIES (BLOCK_TILES * TILE_ROWS)

struct backward {
    const struct tr_op_attention_backward *op;
    const struct head *head;
    struct head_ahead *ahead;
    int64_t tiles, key_tiles;           /* of queries, of keys; the same where causal */
    int64_t stride, padded;             /* floats in a row of scores, of a gradient */
    float *keys_across, *values_across; /* panels [size][TILE_COLUMNS] */
    float *keys_along;                  /* panels [keys][TILE_COLUMNS] */
    float *dk, *dv;                     /* [keys][padded] */
    /* of a block of queries */
    float *queries, *dy;     /* panels [queries][TILE_COLUMNS] */
    float *weights, *scores; /* [queries][stride]: kept(p), s; until then dy * v, z */
};

/* A row of scores ends with an unused cache line, so that rows do not all map to the same cache sets. */
static int64_t stride_of(int64_t keys)
{
    return round_up(keys, TILE_COLUMNS) + LANES;
}

static int64_t backward_floats(int64_t keys, int64_t size)
{
    return 2 * packed_floats(keys, TILE_COLUMNS, size) + 3 * packed_floats(size, TILE_COLUMNS, keys) +
           2 * packed_floats(size, TILE_COLUMNS, BLOCK_QUERIES) +
           2 * packed_floats(BLOCK_QUERIES, 1, stride_of(keys)) + 9 * CPU_ALIGN;
}

/* A block of queries. */
struct block {
    int64_t tile, tile_end, query, queries;
};

/* `rows` rows of `depth`, transposed, as panels of the b side: panel p at p * TILE_COLUMNS * depth. */
static void pack_across(float *to, const float *from, int64_t step, int64_t rows, int64_t depth)
{
    for (int64_t r = 0; r < rows; r += TILE_COLUMNS)
        pack_rows(to + r * depth, TILE_COLUMNS, from + r * step, step, smaller(TILE_COLUMNS, rows - r),
                  depth);
}

/* to[i][j] = chain over size of a[i] * b[j] for the block's queries i and the keys j that any query in the
   tile of i sees. */
static void backward_products(const struct backward *b, const struct block *block, const float *side,
                              const float *across, float *to)
{
    const int64_t size = b->head->at->size, all = b->head->queries;
    const struct tile_segment segment = {.length = (int32_t)size};
    for (int64_t t = block->tile; t < block->tile_end; t++) {
        const int64_t first = tile_first(all, b->tiles, t) - block->query;
        const int64_t height = tile_first(all, b->tiles, t + 1) - block->query - first;
        const int64_t begin = seen_from(b->head, block->query + first);
        const int64_t limit = seen(b->head, block->query + first + height - 1);
        for (int64_t j = begin / TILE_COLUMNS * TILE_COLUMNS; j < limit; j += TILE_COLUMNS) {
            struct row_tile tile = {.tile = {.segments = &segment,
                                             .count = 1,
                                             .a = side + first * TILE_COLUMNS,
                                             .a_step = TILE_COLUMNS,
                                             .b = across + j * size,
                                             .b_step = TILE_COLUMNS,
                                             .to = to + first * b->stride + j,
                                             .to_step = b->stride,
                                             .columns = whole_columns(smaller(TILE_COLUMNS, limit - j))},
                                    .run = TILE_COLUMNS,
                                    .jump = block->queries * TILE_COLUMNS};
            head_fetch(b->ahead, &tile);
            row_tile_compute(height, &tile);
        }
    }
}

/* Row i of the scores: p and s. Values outside of the keys that it sees are undefined. */
static void backward_row(const struct tr_op_attention_backward *a, const struct head *h, int64_t i,
                         float *weights, float *scores)
{
    const struct tr_attention *at = h->at;
    const int64_t from = seen_from(h, i), keys = seen(h, i), place = (h->row + i) * at->heads + h->number;
    const float *y = a->y + place * at->size, *dy = a->dy + place * at->size;
    struct lanes products = lanes_set1(0);
    for (int64_t k = 0; k < at->size; k += LANES)
        products = lanes_fma(lanes_load(dy + k, at->size - k), lanes_load(y + k, at->size - k), products);
    const vf d = v_set1(lanes_total(products));
    const vf shift = v_set1(at->shift[place]), inv = v_set1(at->inv[place]), scale = v_set1(at->scale);
    if (!(at->rate > 0)) {
        for (int64_t j = from / VW * VW; j < keys; j += VW) {
            const vf p = v_mul(v_exp(v_fma(v_load(scores + j), scale, shift)), inv);
            v_store(scores + j, v_mul(p, v_sub(v_load(weights + j), d)));
            v_store(weights + j, p);
        }
        return;
    }
    const uint64_t blocks = ((uint64_t)h->keys + 3) / 4;
    const uint32_t block = (uint32_t)((uint64_t)(h->number * h->queries + i) * blocks);
    for (int64_t j = from / (4 * VW) * (4 * VW); j < keys; j += 4 * VW) {
        vi words[4];
        mask_words(&h->mask, block + (uint32_t)(j / 4), h->example, words);
        for (int w = 0; w < 4 && j + w * VW < keys; w++) {
            float *score = scores + j + w * VW, *weight = weights + j + w * VW;
            const vf p = v_mul(v_exp(v_fma(v_load(score), scale, shift)), inv);
            const vf g = mask_kept(&h->mask, words[w], v_load(weight));
            v_store(score, v_mul(p, v_sub(g, d)));
            v_store(weight, mask_kept(&h->mask, words[w], p));
        }
    }
}

/* to = scale * from, for `rows` rows. */
static void scale_rows(const struct tr_attention *at, int64_t rows, const float *from, int64_t from_step,
                       float *to, int64_t to_step)
{
    const struct lanes factor = lanes_set1(at->scale);
    for (int64_t r = 0; r < rows; r++) {
        for (int64_t k = 0; k < at->size; k += LANES)
            lanes_store(to + r * to_step + k,
                        lanes_mul(factor, lanes_load(from + r * from_step + k, at->size - k)), at->size - k);
    }
}

/* to = to + from, for `rows` rows. */
static void add_rows(const struct tr_attention *at, int64_t rows, const float *from, int64_t from_step,
                     float *to, int64_t to_step)
{
    for (int64_t r = 0; r < rows; r++)
        for (int64_t k = 0; k < at->size; k += LANES) {
            float *sum = to + r * to_step + k;
            lanes_store(
                sum,
                lanes_add(lanes_load(sum, at->size - k), lanes_load(from + r * from_step + k, at->size - k)),
                at->size - k);
        }
}

/* dq of the block's queries. */
static void backward_queries(const struct backward *b, const struct block *block)
{
    const struct tr_attention *at = b->head->at;
    const int64_t all = b->head->queries, step = b->op->gradient_step, rows = b->head->keys;
    /* With a window each query sees different keys. */
    const bool single = at->window > 0;
    const int64_t tiles = single ? block->queries : block->tile_end - block->tile;
    for (int64_t t = 0; t < tiles; t++) {
        const int64_t i = single ? block->query + t : tile_first(all, b->tiles, block->tile + t);
        const int64_t height = single ? 1 : tile_first(all, b->tiles, block->tile + t + 1) - i;
        const int64_t from = seen_from(b->head, i), keys = seen(b->head, i) - from;
        const struct tile_segment segment = {.length = (int32_t)keys};
        float *to = b->op->dq + (b->head->row + i) * step + b->head->number * at->size;
        for (int64_t c = 0; c < at->size; c += TILE_COLUMNS) {
            const struct row_tile tile = {.tile = {.segments = &segment,
                                                   .count = 1,
                                                   .corner = at->causal ? TILE_FALLING : TILE_NO_CORNER,
                                                   .a = b->scores + (i - block->query) * b->stride + from,
                                                   .a_step = b->stride,
                                                   .b = b->keys_along + c * rows + from * TILE_COLUMNS,
                                                   .b_step = TILE_COLUMNS,
                                                   .to = to + c,
                                                   .to_step = step,
                                                   .columns = smaller(TILE_COLUMNS, at->size - c)},
                                          .run = keys};
            row_tile_compute(height, &tile);
        }
        scale_rows(at, height, to, step, to, step);
    }
}

/* Continues dk or dv by the block's queries. In causal attention no query of the block sees the keys of
   later blocks. The keys of the block's own tiles are seen by some of the tile's queries, and then by all
   queries after them. */
static void backward_keys(const struct backward *b, const struct block *block, const float *scores,
                          const float *along, float *gradient)
{
    const bool causal = b->head->at->causal;
    const int64_t tiles = causal ? block->tile_end : b->key_tiles, all = b->head->keys;
    for (int64_t t = 0; t < tiles; t++) {
        const int64_t first = tile_first(all, b->key_tiles, t),
                      height = tile_first(all, b->key_tiles, t + 1) - first;
        const bool own = causal && t >= block->tile;
        const int64_t begin = own ? first - block->query : 0, full = own ? begin + height - 1 : 0;
        const struct tile_segment segment = {.length = (int32_t)(block->queries - full)};
        for (int64_t c = 0; c < b->padded; c += TILE_COLUMNS) {
            const float *side = scores + first, *panel = along + c * block->queries;
            float *to = gradient + first * b->padded + c;
            const struct tile tile = {.segments = &segment,
                                      .count = 1,
                                      .corner = own ? TILE_RISING : TILE_NO_CORNER,
                                      .corner_a = side + begin * b->stride,
                                      .corner_b = panel + begin * TILE_COLUMNS,
                                      .a = side + full * b->stride,
                                      .a_step = b->stride,
                                      .b = panel + full * TILE_COLUMNS,
                                      .b_step = TILE_COLUMNS,
                                      .from = own || block->tile == 0 ? NULL : to,
                                      .from_step = b->padded,
                                      .to = to,
                                      .to_step = b->padded,
                                      .columns = smaller(TILE_COLUMNS, b->padded - c)};
            tile_compute(height, &tile);
        }
    }
}

/* The same where a window lets different queries see each key. */
static void backward_windows(const struct backward *b, const struct block *block, const float *scores,
                             const float *along, float *gradient)
{
    const struct head *h = b->head;
    const int64_t window = h->at->window, end = block->query + block->queries;
    for (int64_t j = seen_from(h, block->query); j < seen(h, end - 1); j++) {
        /* All queries that see key j, and those of the block among them. */
        const int64_t eldest = h->at->causal ? j : j < window ? 0 : j - window + 1;
        const int64_t first = eldest > block->query ? eldest : block->query, last = smaller(j + window, end);
        if (first >= last) continue;
        const struct tile_segment segment = {.length = (int32_t)(last - first)};
        for (int64_t c = 0; c < b->padded; c += TILE_COLUMNS) {
            float *to = gradient + j * b->padded + c;
            const struct tile tile = {.segments = &segment,
                                      .count = 1,
                                      .a = scores + (first - block->query) * b->stride + j,
                                      .a_step = b->stride,
                                      .b = along + c * block->queries + (first - block->query) * TILE_COLUMNS,
                                      .b_step = TILE_COLUMNS,
                                      .from = eldest >= block->query ? NULL : to,
                                      .from_step = b->padded,
                                      .to = to,
                                      .to_step = b->padded,
                                      .columns = smaller(TILE_COLUMNS, b->padded - c)};
            tile_compute(1, &tile);
        }
    }
}

static void backward_block(const struct backward *b, const struct block *block)
{
    const struct head *h = b->head;
    const int64_t size = h->at->size, width = h->at->heads * size;
    const float *q = query_of(h, block->query);
    const float *dy = b->op->dy + (h->row + block->query) * width + h->number * size;
    pack_along(b->queries, q, h->at->q_step, block->queries, size);
    pack_along(b->dy, dy, width, block->queries, size);
    backward_products(b, block, b->queries, b->keys_across, b->scores);
    backward_products(b, block, b->dy, b->values_across, b->weights);
    for (int64_t r = 0; r < block->queries; r++)
        backward_row(b->op, h, block->query + r, b->weights + r * b->stride, b->scores + r * b->stride);
    if (h->at->window > 0) {
        backward_windows(b, block, b->weights, b->dy, b->dv);
        backward_windows(b, block, b->scores, b->queries, b->dk);
    } else {
        backward_keys(b, block, b->weights, b->dy, b->dv);
        backward_keys(b, block, b->scores, b->queries, b->dk);
    }
    backward_queries(b, block);
}

/* Prefetches memory for the results, and the next head. */
static void look_ahead(const struct tr_op_attention_backward *a, const struct head *h,
                       struct head_ahead *ahead)
{
    const struct tr_attention *at = h->at;
    const int64_t size = at->size, width = at->heads * size, step = a->gradient_step;
    const int64_t column = h->number * size, kv_column = h->kv_number * size;
    head_ahead_add(ahead, a->dv + h->key * step + kv_column, step, h->keys, size);
    head_ahead_add(ahead, a->dk + h->key * step + kv_column, step, h->keys, size);
    head_ahead_add(ahead, a->dq + h->row * step + column, step, h->queries, size);
    if (h->next) {
        const struct head *next = h->next;
        const int64_t place = next->row * width + next->number * size;
        head_ahead_add(ahead, row_of(next, at->k, 0), at->kv_step, next->keys, size);
        head_ahead_add(ahead, row_of(next, at->v, 0), at->kv_step, next->keys, size);
        head_ahead_add(ahead, query_of(next, 0), at->q_step, next->queries, size);
        head_ahead_add(ahead, a->dy + place, width, next->queries, size);
        head_ahead_add(ahead, a->y + place, width, next->queries, size);
    }
    const int64_t tiles = 2 * tile_count(h->queries) * ((h->keys + TILE_COLUMNS - 1) / TILE_COLUMNS);
    head_ahead_begin(ahead, at->causal ? tiles / 2 : tiles, size);
}

static void backward_head(const void *arguments, const struct head *h, float *memory)
{
    const struct tr_op_attention_backward *a = arguments;
    const struct tr_attention *at = h->at;
    const int64_t size = at->size, stride = stride_of(h->keys);
    const int64_t across = packed_floats(h->keys, TILE_COLUMNS, size);
    const int64_t along = packed_floats(size, TILE_COLUMNS, h->keys);
    struct head_ahead ahead = {0};
    look_ahead(a, h, &ahead);
    const struct backward b = {
        .op = a,
        .head = h,
        .ahead = &ahead,
        .tiles = tile_count(h->queries),
        .key_tiles = tile_count(h->keys),
        .stride = stride,
        .padded = round_up(size, HALF_COLUMNS),
        .keys_across = take(&memory, across),
        .values_across = take(&memory, across),
        .keys_along = take(&memory, along),
        .dk = take(&memory, along),
        .dv = take(&memory, along),
        .queries = take(&memory, packed_floats(size, TILE_COLUMNS, BLOCK_QUERIES)),
        .dy = take(&memory, packed_floats(size, TILE_COLUMNS, BLOCK_QUERIES)),
        .weights = take(&memory, packed_floats(BLOCK_QUERIES, 1, stride)),
        .scores = take(&memory, packed_floats(BLOCK_QUERIES, 1, stride)),
    };
    pack_across(b.keys_across, row_of(h, at->k, 0), at->kv_step, h->keys, size);
    pack_across(b.values_across, row_of(h, at->v, 0), at->kv_step, h->keys, size);
    pack_along(b.keys_along, row_of(h, at->k, 0), at->kv_step, h->keys, size);
    const int64_t blocks = (b.tiles + BLOCK_TILES - 1) / BLOCK_TILES;
    for (int64_t n = 0; n < blocks; n++) {
        struct block block = {.tile = b.tiles * n / blocks, .tile_end = b.tiles * (n + 1) / blocks};
        block.query = tile_first(h->queries, b.tiles, block.tile);
        block.queries = tile_first(h->queries, b.tiles, block.tile_end) - block.query;
        backward_block(&b, &block);
    }
    const int64_t to = h->key * a->gradient_step + h->kv_number * size;
    if (h->number % (at->heads / at->kv_heads) == 0) {
        scale_rows(at, h->keys, b.dk, b.padded, a->dk + to, a->gradient_step);
        for (int64_t j = 0; j < h->keys; j++)
            memcpy(a->dv + to + j * a->gradient_step, b.dv + j * b.padded, (size_t)size * sizeof(float));
    } else {
        scale_rows(at, h->keys, b.dk, b.padded, b.dk, b.padded);
        add_rows(at, h->keys, b.dk, b.padded, a->dk + to, a->gradient_step);
        add_rows(at, h->keys, b.dv, b.padded, a->dv + to, a->gradient_step);
    }
}

tr_status CPU_KERNEL(attention_backward)(tr_device *device, const struct tr_op_attention_backward *a)
{
    const int64_t floats = backward_floats(attention_keys(&a->at), a->at.size);
    assert(a->at.key_offset == a->at.offset || (!a->at.causal && a->at.window == 0));
    return attention_run(device, &a->at, 5, floats, a->at.heads / a->at.kv_heads, backward_head, a);
}
