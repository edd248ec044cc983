/* Blocking: a member takes a rectangle of c; of it, a block's columns at a time; of those, a block's steps
 * of the chains at a time. Such a block of b is packed into panels once, stays in the second-level cache
 * and meets all rows of the rectangle in bands of tiles. A tile's rows of a are copied just before they
 * meet all panels of the block, and prefetched during the steps of the tile before. Between blocks of
 * depth the partial sums wait in c. A band meets a group of blocks of b before the next band does, so that
 * its part of c stays in the last-level cache.
 */
#include "device/cpu/products/product.h"

#include "base/fail.h"
#include "base/numbers/tree.h"

#include "device/cpu/grid.h"
#include "device/cpu/products/pack.h"
#include "device/cpu/products/row_tile.h"
#include "device/cpu/products/tile_gelu.h"
#include "device/cpu/sizes.h"
#include "device/cpu/vectors/ahead.h"

/* A packed tile of a, and the unused part of the panel that meets it, lie in the first-level cache. A
   block of b takes half of a second-level cache (blocks.h, room.h). Most steps, whatever the cache. */
#define BLOCK_DEPTH 256
/* Results of a band of rows, and the blocks of b that are kept while there are many bands, stay in the
   last-level cache. With fewer tiles than this, the blocks of b would be read too often. */
#define BAND_TILES_LEAST 8

/* Floats from one row of a to the next where they are copied, such that rows map to different cache sets. */
#define STEP_A   (BLOCK_DEPTH + 16)
#define PACKED_A (TILE_ROWS * STEP_A + PACK_SLACK)
/* For few rows: a packed panel, and the tiles of a. */
#define FEW_FLOATS(tiles) (TILE_COLUMNS * BLOCK_DEPTH + PACK_SLACK + (tiles)*PACKED_A)

struct work {
    struct cpu_device *cpu;
    const struct product *product;
    int parts_rows; /* the grid of rectangles, one per member, has so many rows */
    /* Of a block of b: steps, columns and floats; blocks kept with many bands; tiles of a band. */
    int64_t depth, columns, packed_b, group, tiles;
};

/* Steps of the chains that are computed together. */
struct depths {
    int64_t begin, count;
    bool first, last; /* whether they are the first, or the last, of the chains */
};

/* All steps in `count` blocks of at most `most` steps each: their number, and block `index`. */
static int64_t depth_blocks(const struct product *p, int64_t most)
{
    return p->depth > 0 ? divide_up(p->depth, most) : 1;
}

static struct depths depth_block(const struct product *p, int64_t blocks, int64_t index)
{
    const int64_t begin = tr_cut(p->depth, blocks, index), end = tr_cut(p->depth, blocks, index + 1);
    return (struct depths){begin, end - begin, index == 0, index + 1 == blocks};
}

/* A block of the computation: tiles of rows times packed panels of columns. */
struct block {
    int64_t row, rows, column, columns;
    struct depths depth;
    float *a;            /* memory for one packed tile */
    const float *b;      /* packed panels */
    const float *next_a; /* the rows of a after those of the last tile, or NULL */
};

/* The end of a tile at `column` after its chains, except a gelu; `bias` has room for TILE_COLUMNS. */
static void finish_tile(const struct product *p, int64_t column, float *bias, struct tile *tile)
{
    tile->activation = p->derivative ? TR_ACT_NONE : p->activation;
    tile->slope = p->slope;
    tile->bias = p->bias ? p->bias + column : NULL;
    if (!tile->bias || tile->columns == TILE_COLUMNS) return;
    for (int64_t i = 0; i < TILE_COLUMNS; i++) bias[i] = i < tile->columns ? tile->bias[i] : 0.0f;
    tile->bias = bias;
}

/* Where a tile begins in c. With a gelu the tile is written to scratch first, since rows of c may evict
   each other from the first-level cache. */
static void aim_tile(const struct product *p, int64_t place, bool first, bool last, float *aside,
                     struct tile *tile)
{
    tile->from = first ? NULL : p->c + place;
    tile->from_step = p->columns;
    tile->to = last && p->derivative ? aside : p->c + place;
    tile->to_step = last && p->derivative ? TILE_COLUMNS : p->columns;
    tile->factor = last && p->factor ? p->factor + place : NULL;
}

/* The gelu of a tile in scratch. */
static void end_tile(const struct product *p, int64_t place, int64_t height, const struct tile *tile)
{
    tile_gelu(p->activation, height, tile->columns, tile->to, p->c + place, p->derivative + place,
              p->columns);
}

/* Most of a tile's fetches: the outputs of the next tile, its operands beside them, and the panel's part
   of the rows of a that are packed next. */
#define FETCHES (2 + (BLOCK_DEPTH + TILE_COLUMNS - 1) / TILE_COLUMNS)

/* Lists part `index` of `parts` of `rows` rows of a; returns the number of pieces. */
static int fetch_rows(const struct product *p, const float *from, int64_t rows, int64_t depth, int64_t index,
                      int64_t parts, struct row_fetch *fetch)
{
    const int64_t wide = divide_up(depth, TILE_COLUMNS);
    int count = 0;
    for (int64_t i = wide * index / parts; i < wide * (index + 1) / parts; i++)
        fetch[count++] = (struct row_fetch){from + i * TILE_COLUMNS, p->depth, rows};
    return count;
}

static void multiply_block(const struct product *p, const struct block *block, struct ahead *ahead_b)
{
    struct row_fetch fetch[FETCHES];
    _Alignas(CPU_ALIGN) float aside[TILE_ROWS * TILE_COLUMNS];
    float bias[TILE_COLUMNS];
    const int64_t tiles = tile_count(block->rows), panels = divide_up(block->columns, TILE_COLUMNS);
    const struct tile_segment segment = {.length = (int32_t)block->depth.count};
    const float *beside = !block->depth.last ? NULL : p->factor ? p->factor : p->derivative;
    /* Set once: setting it for each tile takes more than a hundred cycles. */
    struct row_tile tile = {
        .tile = {.segments = &segment, .count = 1, .a = block->a, .a_step = STEP_A, .b_step = TILE_COLUMNS},
        .run = STEP_A,
        .fetch = fetch};
    for (int64_t t = 0; t < tiles; t++) {
        const int64_t first = tile_first(block->rows, tiles, t);
        const int64_t height = tile_first(block->rows, tiles, t + 1) - first;
        const float *a = p->a + (block->row + first) * p->depth + block->depth.begin;
        pack_lines(block->a, STEP_A, a, p->depth, height, block->depth.count);
        const bool last = t + 1 == tiles;
        const float *next_a = last ? block->next_a : a + height * p->depth;
        for (int64_t j = 0; j < block->columns; j += TILE_COLUMNS) {
            const int64_t place = (block->row + first) * p->columns + block->column + j;
            tile.tile.b = block->b + j * block->depth.count;
            tile.tile.columns = smaller(TILE_COLUMNS, block->columns - j);
            aim_tile(p, place, block->depth.first, block->depth.last, aside, &tile.tile);
            if (block->depth.last) finish_tile(p, block->column + j, bias, &tile.tile);
            const bool wraps = j + TILE_COLUMNS >= block->columns;
            int fetches = 0;
            if (!wraps || !last) {
                const int64_t next = wraps ? place - j + height * p->columns : place + TILE_COLUMNS;
                fetch[fetches++] = (struct row_fetch){p->c + next, p->columns, height};
                if (beside) fetch[fetches++] = (struct row_fetch){beside + next, p->columns, height};
            }
            if (next_a)
                fetches += fetch_rows(p, next_a, height, block->depth.count, j / TILE_COLUMNS, panels,
                                      fetch + fetches);
            tile.fetches = fetches;
            ahead_fetch(ahead_b);
            row_tile_compute(height, &tile);
            if (block->depth.last && p->derivative) end_tile(p, place, height, &tile.tile);
        }
    }
}

static void pack_b(const struct product *p, float *to, struct depths d, int64_t column, int64_t columns)
{
    for (int64_t j = 0; j < columns; j += TILE_COLUMNS) {
        const int64_t valid = smaller(TILE_COLUMNS, columns - j);
        if (p->transposed)
            pack_rows(to + j * d.count, TILE_COLUMNS, p->b + (column + j) * p->depth + d.begin, p->depth,
                      valid, d.count);
        else
            pack_columns(to + j * d.count, TILE_COLUMNS, p->b + d.begin * p->columns + column + j, p->columns,
                         valid, d.count);
    }
}

/* A panel of b for few rows: packed if it is transposed, else in place. */
static void take_panel(const struct product *p, struct depths d, int64_t column, float *packed,
                       struct tile *tile)
{
    const int64_t columns = smaller(TILE_COLUMNS, p->columns - column);
    tile->columns = columns;
    tile->b = p->b + d.begin * p->columns + column;
    tile->b_step = p->columns;
    if (!p->transposed && columns == TILE_COLUMNS) return;
    pack_b(p, packed, d, column, columns);
    tile->b = packed;
    tile->b_step = TILE_COLUMNS;
}

/* What the tiles that meet a panel prefetch: the next panel, at `column`. A transposed one has a row for
   each column. */
static struct tile_fetches fetch_panel(const struct product *p, struct depths d, int64_t column)
{
    if (!p->transposed) return tile_fetch(p->b + d.begin * p->columns + column, p->columns, d.count, 0);
    const int64_t run = divide_up(d.count, TILE_COLUMNS);
    return tile_fetch(p->b + column * p->depth + d.begin, TILE_COLUMNS, run, p->depth - run * TILE_COLUMNS);
}

/* The same where the last panel is adjacent. Rows of unpacked weights begin anywhere in a cache line, so a
   panel's row may touch one line more than it fills: the first line, which came with that panel. */
static struct tile_fetches fetch_panel_beside(const struct product *p, struct depths d, int64_t column)
{
    struct tile_fetches fetches = fetch_panel(p, d, column);
    if (!p->transposed) fetches.from += AHEAD_LINE;
    return fetches;
}

/* Few rows, at most `most` steps at a time. So few tiles meet b that packing it is not worth it, and
   fetching it takes as long as computing. So it is prefetched a panel ahead, in equal parts while each of
   the tiles is computed. `scratch` has room for a packed panel, then for the tiles of a. */
static void multiply_few(const struct product *p, int64_t most, int64_t row, int64_t rows, int64_t column,
                         int64_t column_end, float *scratch)
{
    const int64_t tiles = tile_count(rows), steps = depth_blocks(p, most);
    float *a = scratch + TILE_COLUMNS * BLOCK_DEPTH + PACK_SLACK;
    for (int64_t step = 0; step < steps; step++) {
        const struct depths d = depth_block(p, steps, step);
        const struct tile_segment segment = {.length = (int32_t)d.count};
        for (int64_t t = 0; t < tiles; t++) {
            const int64_t first = tile_first(rows, tiles, t), height = tile_first(rows, tiles, t + 1) - first;
            pack_rows(a + t * PACKED_A, height, p->a + (row + first) * p->depth + d.begin, p->depth, height,
                      d.count);
        }
        for (int64_t j = column; j < column_end; j += TILE_COLUMNS) {
            _Alignas(CPU_ALIGN) float aside[TILE_ROWS * TILE_COLUMNS];
            float bias[TILE_COLUMNS];
            struct tile tile = {.segments = &segment, .count = 1};
            take_panel(p, d, j, scratch, &tile);
            if (d.last) finish_tile(p, j, bias, &tile);
            struct tile_fetches next = {0};
            if (j + TILE_COLUMNS < column_end)
                next = fetch_panel_beside(p, d, j + TILE_COLUMNS);
            else if (!d.last)
                next = fetch_panel(p, depth_block(p, steps, step + 1), column);
            for (int64_t t = 0; t < tiles; t++) {
                const int64_t first = tile_first(rows, tiles, t);
                const int64_t height = tile_first(rows, tiles, t + 1) - first;
                const int64_t place = (row + first) * p->columns + j;
                tile.a = a + t * PACKED_A;
                tile.a_step = height;
                tile.next = tile_fetch_part(&next, d.count, t, tiles);
                aim_tile(p, place, d.first, d.last, aside, &tile);
                tile_compute(height, &tile);
                if (d.last && p->derivative) end_tile(p, place, height, &tile);
            }
        }
    }
}

/* The block of b that is packed next, unpacked. */
static struct ahead ahead_block(const struct product *p, struct depths d, int64_t column, int64_t columns,
                                int64_t calls)
{
    if (p->transposed)
        return ahead_rows(p->b + column * p->depth + d.begin, p->depth, columns, d.count, calls);
    return ahead_rows(p->b + d.begin * p->columns + column, p->columns, d.count, columns, calls);
}

static void multiply(void *arguments, int member, int size)
{
    const struct work *work = arguments;
    const struct product *p = work->product;
    const struct cpu_part part =
        cpu_part(work->cpu->balance, work->parts_rows, p->rows, p->columns, TILE_COLUMNS, member, size);
    const int64_t row = part.row, row_end = part.row_end, column_end = part.column_end;
    int64_t column = part.column;
    if (row == row_end || column == column_end) return;

    float *a = cpu_scratch(work->cpu, member), *b = a + cpu_round(PACKED_A * sizeof *a) / sizeof *a;
    const int64_t rows = row_end - row, tiles = tile_count(rows), bands = divide_up(tiles, work->tiles);
    if (tiles <= work->cpu->blocks.product_few) {
        multiply_few(p, work->depth, row, rows, column, column_end, b);
        return;
    }
    const int64_t steps = depth_blocks(p, work->depth);
    const int64_t group = bands > 1 ? work->group : 1;
    for (; column < column_end; column += work->columns) {
        struct block block = {
            .column = column, .columns = smaller(work->columns, column_end - column), .a = a};
        const int64_t panels = divide_up(block.columns, TILE_COLUMNS);
        for (int64_t first = 0; first < steps; first += group) {
            const int64_t last = smaller(first + group, steps);
            struct ahead ahead_b = {0};
            for (int64_t step = first; step < last; step++)
                pack_b(p, b + (step - first) * work->packed_b, depth_block(p, steps, step), column,
                       block.columns);
            if (group == 1 && last < steps)
                ahead_b = ahead_block(p, depth_block(p, steps, last), column, block.columns, panels * tiles);
            /* Bands begin where tiles begin, so that the sizes of tiles stay even. */
            for (int64_t band = 0; band < bands; band++) {
                const int64_t from = tile_first(rows, tiles, tr_cut(tiles, bands, band));
                const int64_t to = tile_first(rows, tiles, tr_cut(tiles, bands, band + 1));
                block.row = row + from;
                block.rows = to - from;
                for (int64_t step = first; step < last; step++) {
                    block.depth = depth_block(p, steps, step);
                    block.b = b + (step - first) * work->packed_b;
                    const int64_t end = block.depth.begin + block.depth.count;
                    if (step + 1 < last)
                        block.next_a = p->a + block.row * p->depth + end;
                    else if (band + 1 < bands)
                        block.next_a = p->a + (row + to) * p->depth + tr_cut(p->depth, steps, first);
                    else
                        block.next_a = last < steps ? p->a + row * p->depth + end : NULL;
                    multiply_block(p, &block, &ahead_b);
                }
            }
        }
    }
}

/* An estimate of the cycles that a member takes for a rectangle of this size; its constants only serve to
   compare choices. */
static double cost(const struct work *work, int64_t rows, int64_t depth, int64_t columns)
{
    const double steps = (double)depth * (double)divide_up(columns, TILE_COLUMNS);
    const int64_t height = rows < 4 * tile_count(rows) ? 4 * tile_count(rows) : rows;
    return steps * ((double)height + 8.0) +
           0.3 * (double)depth * (double)rows * (double)divide_up(columns, work->columns);
}

static void choose_blocks(const struct cpu_room *room, const struct cpu_blocks *blocks, struct work *work)
{
    const int64_t columns = cpu_room_second(room, blocks->product_columns, TILE_COLUMNS);
    work->depth = smaller(BLOCK_DEPTH, cpu_room_first(room, blocks->product_depth, 16));
    work->columns = columns - columns % TILE_COLUMNS;
    work->packed_b = work->columns * work->depth + PACK_SLACK;
    work->group = cpu_room_last(room, blocks->product_group, 0) / (work->columns * work->depth);
    work->group = larger(1, work->group);
    work->tiles = cpu_room_last(room, blocks->product_band, 0) / (work->columns * TILE_ROWS);
    work->tiles = larger(BAND_TILES_LEAST, smaller(blocks->product_rows / TILE_ROWS, work->tiles));
}

tr_status product_compute(struct cpu_device *cpu, const struct product *product)
{
    if (product->rows == 0 || product->columns == 0) return TR_OK;
    struct work work = {.cpu = cpu, .product = product};
    choose_blocks(&cpu->room, &cpu->blocks, &work);
    double best = 0.0;
    for (int parts = 1; parts <= cpu->base.threads; parts++) {
        if (cpu->base.threads % parts) continue;
        const double cycles = cost(
            &work, divide_up(product->rows, parts), product->depth,
            divide_up(divide_up(product->columns, TILE_COLUMNS), cpu->base.threads / parts) * TILE_COLUMNS);
        if (work.parts_rows == 0 || cycles < best) {
            best = cycles;
            work.parts_rows = parts;
        }
    }
    const bool banded = tile_count(product->rows) > work.tiles;
    const int64_t kept = banded ? larger(1, smaller(divide_up(product->depth, work.depth), work.group)) : 1;
    const int64_t floats = larger(FEW_FLOATS(cpu->blocks.product_few), kept * work.packed_b);
    TR_TRY(cpu_reserve(cpu, cpu_round(PACKED_A * sizeof(float)) + (size_t)floats * sizeof(float), 0));
    cpu_run(cpu, tile_nanoseconds(product->rows, product->columns, product->depth), multiply, &work);
    return TR_OK;
}
