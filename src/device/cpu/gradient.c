/* Blocking: a member takes a rectangle of the outputs, in it a chunk of tiles at a time. Over a chunk the
 * rows go by in blocks; the block's columns of a and b are packed and every tile takes all the pieces of the
 * block (see reduction.h). Tiles that wait for the next block or for their partner in the tree lie in slots;
 * where all rows fit into one block the slots of one tile serve them all, in the first-level cache.
 */
#include "device/cpu/gradient.h"

#include "base/fail.h"
#include "device/cpu/ahead.h"
#include "device/cpu/pack.h"
#include "device/cpu/reduction.h"
#include "device/cpu/tile.h"

#define BLOCK_ROWS    256
#define CHUNK_COLUMNS 512
#define CHUNK_TILES   (672 / TILE_ROWS) /* tiles above each other */
/* Waiting tiles of a chunk, over all slots. */
#define WAITING_TILES (4 * (CHUNK_COLUMNS / TILE_COLUMNS * CHUNK_TILES))

#define TILE_SIZE (TILE_ROWS * TILE_COLUMNS)
#define PACKED_A  (CHUNK_TILES * (TILE_ROWS * BLOCK_ROWS + PACK_SLACK))
#define PACKED_B  (CHUNK_COLUMNS * BLOCK_ROWS + PACK_SLACK)
#define SCRATCH                                                                                              \
    (cpu_round(PACKED_A * sizeof(float)) + cpu_round(PACKED_B * sizeof(float)) +                             \
     WAITING_TILES * TILE_SIZE * sizeof(float))

struct work {
    struct cpu_device *cpu;
    const struct gradient *gradient;
    int64_t rows; /* of all microbatches */
    int slots;
    int parts_rows; /* the grid of rectangles, one per member, has so many of them below each other */
};

/* Where the packing of rows stands. */
struct cursor {
    int64_t row;     /* the next row of b */
    int64_t example; /* whose row that is, where examples matter */
};

/* A part of the outputs, and the member's memory for it. */
struct chunk {
    int64_t row, rows, column, columns;
    float *a, *b, *waiting;
    int64_t slot_step; /* floats between the slots of a tile */
    int64_t tile_step; /* floats between tiles of a slot; 0 when they share it */
};

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t divide_up(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}

/* A tile's block of packed a; each has room behind it, since rows may come in several runs. */
static float *packed_a(const struct chunk *chunk, int64_t tile, int64_t first, int64_t depth)
{
    return chunk->a + first * depth + tile * PACK_SLACK;
}

/* Packs `length` rows from row `a_row` of a and `b_row` of b behind the `done` rows of a block of `depth`. */
static void pack_run(const struct gradient *g, const struct chunk *chunk, int64_t a_row, int64_t b_row,
                     int64_t length, int64_t done, int64_t depth)
{
    /* Blocks of a lie as packed_a() says; `done` steps of a tile are done * height floats, which is how much
       further each block begins. */
    pack_tiles(chunk->a, done, depth, g->a + a_row * g->height + chunk->row, g->height, chunk->rows,
               tile_count(chunk->rows), length);
    pack_panels(chunk->b + done * TILE_COLUMNS, depth * TILE_COLUMNS, g->b + b_row * g->width + chunk->column,
                g->width, chunk->columns, length);
}

/* Packs the next `depth` rows. */
static void pack_block(const struct gradient *g, const struct chunk *chunk, struct cursor *cursor,
                       int64_t depth)
{
    if (!g->offset) {
        pack_run(g, chunk, cursor->row, cursor->row, depth, 0, depth);
        cursor->row += depth;
        return;
    }
    for (int64_t done = 0; done < depth;) {
        const int64_t begin = g->offset[cursor->example], end = g->offset[cursor->example + 1];
        if (cursor->row <= begin) cursor->row = begin + 1; /* the first row has none before it */
        if (cursor->row >= end) {
            cursor->example++;
            continue;
        }
        const int64_t length = smaller(end - cursor->row, depth - done);
        pack_run(g, chunk, cursor->row - 1, cursor->row, length, done, depth);
        cursor->row += length;
        done += length;
    }
}

/* Lets one tile take all pieces of a block. */
static void reduce_tile(const struct gradient *g, const float *a, int64_t height, const float *b,
                        const struct reduction_piece *pieces, int count, float *waiting, int64_t slot_step,
                        float *to, int64_t columns)
{
    const float *left[TR_TREE_DEPTH];
    struct tile_segment segment = {0};
    struct tile tile = {.segments = &segment,
                        .count = 1,
                        .a_step = height,
                        .b_step = TILE_COLUMNS,
                        .from_step = TILE_COLUMNS,
                        .columns = columns,
                        .left = left};
    for (const struct reduction_piece *piece = pieces; piece < pieces + count; piece++) {
        segment.length = (int32_t)piece->rows;
        tile.a = a + piece->row * height;
        tile.b = b + piece->row * TILE_COLUMNS;
        tile.from = piece->resume ? waiting + piece->fresh * slot_step : NULL;
        tile.lefts = piece->lefts;
        for (int i = 0; i < piece->lefts; i++) left[i] = waiting + (piece->fresh - 1 - i) * slot_step;
        tile.to = piece->slot < 0 ? to + piece->node * g->cut->stride : waiting + piece->slot * slot_step;
        tile.to_step = piece->slot < 0 ? g->width : TILE_COLUMNS;
        tile_compute(height, &tile);
    }
}

static void reduce_chunk(const struct gradient *g, int64_t rows, const struct chunk *chunk)
{
    struct reduction reduction;
    struct reduction_piece pieces[REDUCTION_PIECES];
    struct cursor cursor = {0};
    const int64_t tiles = tile_count(chunk->rows), panels = divide_up(chunk->columns, TILE_COLUMNS);
    int64_t depth;
    int count;
    cpu_reduction_begin(&reduction, g->cut, 1, g->offset);
    while ((count = cpu_reduction_next(&reduction, BLOCK_ROWS, pieces, &depth)) > 0) {
        pack_block(g, chunk, &cursor, depth);
        struct ahead ahead_a = {0}, ahead_b = {0};
        if (!g->offset) {
            const int64_t next = smaller(depth, rows - cursor.row);
            ahead_a = ahead_begin(g->a + cursor.row * g->height + chunk->row, g->height, next, chunk->rows,
                                  tiles * panels);
            ahead_b = ahead_begin(g->b + cursor.row * g->width + chunk->column, g->width, next,
                                  chunk->columns, tiles * panels);
        }
        float *waiting = chunk->waiting;
        for (int64_t t = 0; t < tiles; t++) {
            const int64_t r = tile_first(chunk->rows, tiles, t);
            const int64_t height = tile_first(chunk->rows, tiles, t + 1) - r;
            for (int64_t j = 0; j < chunk->columns; j += TILE_COLUMNS) {
                float *to = g->to + (chunk->row + r) * g->width + chunk->column + j;
                if (chunk->tile_step > 0)
                    ahead_tile(waiting + chunk->tile_step, TILE_COLUMNS, height, TILE_COLUMNS);
                else
                    ahead_tile(to + TILE_COLUMNS, g->width, height, TILE_COLUMNS);
                ahead_fetch(&ahead_a);
                ahead_fetch(&ahead_b);
                reduce_tile(g, packed_a(chunk, t, r, depth), height, chunk->b + j * depth, pieces, count,
                            waiting, chunk->slot_step,
                            g->to + (chunk->row + r) * g->width + chunk->column + j,
                            smaller(TILE_COLUMNS, chunk->columns - j));
                waiting += chunk->tile_step;
            }
        }
    }
}

static void reduce(void *arguments, int member, int size)
{
    const struct work *work = arguments;
    const struct gradient *g = work->gradient;
    const int parts_rows = size == 1 ? 1 : work->parts_rows, parts_columns = size / parts_rows;
    int64_t row, row_end, column, column_end;
    tr_team_share(g->height, 1, member / parts_columns, parts_rows, &row, &row_end);
    tr_team_share(g->width, TILE_COLUMNS, member % parts_columns, parts_columns, &column, &column_end);

    struct chunk chunk = {.a = cpu_scratch(work->cpu, member)};
    chunk.b = chunk.a + cpu_round(PACKED_A * sizeof(float)) / sizeof(float);
    chunk.waiting = chunk.b + cpu_round(PACKED_B * sizeof(float)) / sizeof(float);
    /* In one block, if it ends with the rows and not with its table of pieces. */
    const bool at_once = work->rows <= BLOCK_ROWS && g->cut->count + g->cut->nodes <= REDUCTION_PIECES;
    const int64_t tiles = tile_count(row_end - row);
    for (chunk.column = column; chunk.column < column_end; chunk.column += CHUNK_COLUMNS) {
        chunk.columns = smaller(CHUNK_COLUMNS, column_end - chunk.column);
        const int64_t across = divide_up(chunk.columns, TILE_COLUMNS);
        int64_t most = CHUNK_TILES;
        if (at_once) {
            chunk.slot_step = TILE_SIZE;
            chunk.tile_step = 0;
        } else {
            most = smaller(most, WAITING_TILES / (across * work->slots));
            chunk.slot_step = across * most * TILE_SIZE;
            chunk.tile_step = TILE_SIZE;
        }
        const int64_t bands = divide_up(tiles, most);
        for (int64_t band = 0; band < bands; band++) {
            chunk.row = row + tile_first(row_end - row, tiles, tr_cut(tiles, bands, band));
            chunk.rows = row + tile_first(row_end - row, tiles, tr_cut(tiles, bands, band + 1)) - chunk.row;
            reduce_chunk(g, work->rows, &chunk);
        }
    }
    if (g->bias) {
        tr_team_share(g->width, 16, member, size, &column, &column_end);
        sum_columns(g->cut, g->b, g->width, column, column_end, g->bias);
    }
}

/* Cycles that a member spends with a rectangle of such a size; the constants only weigh the choices. */
static double cost(int64_t height, int64_t rows, int64_t width)
{
    const int64_t across = divide_up(width, TILE_COLUMNS);
    const int64_t rounded = height < 4 * tile_count(height) ? 4 * tile_count(height) : height;
    return (double)(rows + 4) * (double)across *
               (double)(rounded + 4 * divide_up(height, CHUNK_TILES * TILE_ROWS)) +
           0.3 * (double)rows * (double)height * (double)divide_up(width, CHUNK_COLUMNS);
}

tr_status gradient_compute(struct cpu_device *cpu, const struct gradient *g)
{
    if (g->height == 0 || g->width == 0) return TR_OK;
    struct work work = {.cpu = cpu,
                        .gradient = g,
                        .rows = cpu_reduction_rows(g->cut, 1, g->offset),
                        .slots = cpu_reduction_slots(g->cut)};
    double best = 0.0;
    for (int parts = 1; parts <= cpu->base.threads; parts++) {
        if (cpu->base.threads % parts) continue;
        const int64_t across = divide_up(divide_up(g->width, TILE_COLUMNS), cpu->base.threads / parts);
        const double cycles = cost(divide_up(g->height, parts), work.rows, across * TILE_COLUMNS);
        if (work.parts_rows == 0 || cycles < best) {
            best = cycles;
            work.parts_rows = parts;
        }
    }
    TR_TRY(cpu_reserve(cpu, SCRATCH, 0));
    const double products = (double)g->height * (double)(work.rows + 8) * (double)g->width;
    cpu_run(cpu, products / (8.0 * VW), reduce, &work);
    return TR_OK;
}
