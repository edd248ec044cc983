/* Blocking: a member takes a rectangle of c. Of it, BLOCK_COLUMNS columns at a time; of those, BLOCK_DEPTH
 * steps of the chains at a time: that block of b is packed into panels once and meets all rows of the
 * rectangle, whose blocks of a are packed one after the other. Between blocks of depth the chains rest in c.
 */
#include "device/cpu/product.h"

#include "base/fail.h"
#include "base/tree.h"

#include "device/cpu/pack.h"
#include "device/cpu/tile.h"

/* A panel of b (BLOCK_DEPTH x TILE_COLUMNS) and a tile's share of a lie in the first-level cache, a block of
   a and most of a block of b in the second. */
#ifndef BLOCK_DEPTH
#define BLOCK_DEPTH 256
#endif
#ifndef BLOCK_COLUMNS
#define BLOCK_COLUMNS 512
#endif
#ifndef BLOCK_TILES
#define BLOCK_TILES 12
#endif

struct work {
    struct cpu_device *cpu;
    const struct product *product;
    int parts_rows; /* the grid of rectangles, one per member, has so many of them below each other */
};

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t divide_up(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}

/* Tiles of rows [row, row + rows) times the packed panels of columns [column, column + columns). */
static void multiply_block(const struct product *p, int64_t row, int64_t rows, const float *a, int64_t column,
                           int64_t columns, const float *b, int64_t depth, bool first, bool last)
{
    float bias[TILE_COLUMNS];
    const int64_t tiles = tile_count(rows);
    for (int64_t j = 0; j < columns; j += TILE_COLUMNS) {
        struct tile_segment segment = {.b = b + j * depth, .length = depth};
        struct tile tile = {.segments = &segment,
                            .count = 1,
                            .b_step = TILE_COLUMNS,
                            .to_step = p->columns,
                            .from_step = p->columns,
                            .columns = smaller(TILE_COLUMNS, columns - j)};
        if (last && p->bias) {
            tile.bias = p->bias + column + j;
            if (tile.columns < TILE_COLUMNS) {
                for (int64_t i = 0; i < TILE_COLUMNS; i++) bias[i] = i < tile.columns ? tile.bias[i] : 0.0f;
                tile.bias = bias;
            }
        }
        if (last) {
            tile.activation = p->activation;
            tile.slope = p->slope;
        }
        for (int64_t t = 0; t < tiles; t++) {
            const int64_t r = tile_first(rows, tiles, t), height = tile_first(rows, tiles, t + 1) - r;
            segment.a = a + r * depth;
            tile.a_step = height;
            tile.to = p->c + (row + r) * p->columns + column + j;
            tile.from = first ? NULL : tile.to;
            CPU_KERNEL(tile)(height, &tile);
        }
    }
}

static void pack_b(const struct product *p, float *to, int64_t k, int64_t depth, int64_t column,
                   int64_t columns)
{
    if (!p->transposed) {
        CPU_KERNEL(pack_panels)
        (to, depth * TILE_COLUMNS, p->b + k * p->columns + column, p->columns, columns, depth);
        return;
    }
    for (int64_t j = 0; j < columns; j += TILE_COLUMNS)
        CPU_KERNEL(pack_rows)
        (to + j * depth, TILE_COLUMNS, p->b + (column + j) * p->depth + k, p->depth,
         smaller(TILE_COLUMNS, columns - j), depth);
}

static void pack_a(const struct product *p, float *to, int64_t row, int64_t rows, int64_t k, int64_t depth)
{
    const int64_t tiles = tile_count(rows);
    for (int64_t t = 0; t < tiles; t++) {
        const int64_t r = tile_first(rows, tiles, t), height = tile_first(rows, tiles, t + 1) - r;
        CPU_KERNEL(pack_rows)
        (to + r * depth, height, p->a + (row + r) * p->depth + k, p->depth, height, depth);
    }
}

#define PACKED_A (BLOCK_TILES * TILE_ROWS * BLOCK_DEPTH + PACK_SLACK)
#define PACKED_B (BLOCK_COLUMNS * BLOCK_DEPTH + PACK_SLACK)

static void multiply(void *arguments, int member, int size)
{
    const struct work *work = arguments;
    const struct product *p = work->product;
    const int parts_rows = size == 1 ? 1 : work->parts_rows, parts_columns = size / parts_rows;
    int64_t row, row_end, column, column_end;
    tr_team_share(p->rows, 1, member / parts_columns, parts_rows, &row, &row_end);
    tr_team_share(p->columns, TILE_COLUMNS, member % parts_columns, parts_columns, &column, &column_end);
    if (row == row_end || column == column_end) return;

    float *a = cpu_scratch(work->cpu, member), *b = a + cpu_round(PACKED_A * sizeof *a) / sizeof *a;
    const int64_t blocks = p->depth > 0 ? divide_up(p->depth, BLOCK_DEPTH) : 1;
    const int64_t tiles = tile_count(row_end - row), bands = divide_up(tiles, BLOCK_TILES);
    for (; column < column_end; column += BLOCK_COLUMNS) {
        const int64_t columns = smaller(BLOCK_COLUMNS, column_end - column);
        for (int64_t block = 0; block < blocks; block++) {
            const int64_t k = tr_cut(p->depth, blocks, block),
                          depth = tr_cut(p->depth, blocks, block + 1) - k;
            pack_b(p, b, k, depth, column, columns);
            for (int64_t band = 0; band < bands; band++) {
                /* Bands begin where tiles do, so that only the even split over all tiles decides on sizes. */
                const int64_t r = tile_first(row_end - row, tiles, tr_cut(tiles, bands, band));
                const int64_t end = tile_first(row_end - row, tiles, tr_cut(tiles, bands, band + 1));
                pack_a(p, a, row + r, end - r, k, depth);
                multiply_block(p, row + r, end - r, a, column, columns, b, depth, block == 0,
                               block == blocks - 1);
            }
        }
    }
}

/* Cycles that a member spends with a rectangle of such a size; the constants only weigh the choices. */
static double cost(int64_t rows, int64_t depth, int64_t columns)
{
    const double steps = (double)depth * (double)divide_up(columns, TILE_COLUMNS);
    const int64_t height = rows < 4 * tile_count(rows) ? 4 * tile_count(rows) : rows;
    return steps * ((double)height + 8.0) +
           0.3 * (double)depth * (double)rows * (double)divide_up(columns, BLOCK_COLUMNS);
}

tr_status CPU_KERNEL(product)(struct cpu_device *cpu, const struct product *product)
{
    if (product->rows == 0 || product->columns == 0) return TR_OK;
    struct work work = {.cpu = cpu, .product = product};
    double best = 0.0;
    for (int parts = 1; parts <= cpu->base.threads; parts++) {
        if (cpu->base.threads % parts) continue;
        const double cycles = cost(
            divide_up(product->rows, parts), product->depth,
            divide_up(divide_up(product->columns, TILE_COLUMNS), cpu->base.threads / parts) * TILE_COLUMNS);
        if (work.parts_rows == 0 || cycles < best) {
            best = cycles;
            work.parts_rows = parts;
        }
    }
    TR_TRY(cpu_reserve(cpu, cpu_round(PACKED_A * sizeof(float)) + cpu_round(PACKED_B * sizeof(float)), 0));
    const double products = (double)product->rows * (double)product->depth * (double)product->columns;
    cpu_run(cpu, products / (8.0 * VW), multiply, &work);
    return TR_OK;
}
