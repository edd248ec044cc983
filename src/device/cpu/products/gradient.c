/* Blocking: a member takes a rectangle of the outputs, in it a chunk of tiles at a time. Over a chunk the
 * rows go by in blocks. The block's columns of b are packed and rest in the second-level cache, while
 * each tile fetches some of the next block's; those of a are packed just before the tile that needs them,
 * stay in the first-level cache while it meets all of b, and are fetched while the tile before is computed.
 * Every tile takes all the pieces of the block (reduction.h). The bias takes part as a row of a whose numbers
 * are 1. Tiles that wait for the next block or for their partner in the tree lie in slots; where all rows fit
 * into one block the slots of one tile serve them all, in the first-level cache. Where the gradient is for an
 * update alone, a tile of it is applied at once and lies nowhere else.
 */
#include "device/cpu/products/gradient.h"

#include "base/fail.h"
#include "device/cpu/vectors/ahead.h"
#include "device/cpu/products/pack.h"
#include "device/cpu/reduction.h"
#include "device/cpu/sizes.h"
#include "device/cpu/products/tile.h"
#include "device/cpu/elementwise/update.h"

#include <math.h>

#define BLOCK_ROWS 256 /* at most, whatever the cache; other sizes are in blocks.h */

/* How much longer members may take who have whole rows. */
#define WHOLE_ROWS 1.03

#define TILE_SIZE (TILE_ROWS * TILE_COLUMNS)
#define PACKED_A  (TILE_ROWS * BLOCK_ROWS + PACK_SLACK)

struct work {
    struct cpu_device *cpu;
    const struct gradient *gradient;
    int64_t rows; /* of all microbatches */
    int slots;
    int parts_rows; /* the grid of rectangles, one per member, has so many of them below each other */
    /* Rows of a block, columns of a chunk, and its waiting tiles over all slots. */
    int64_t block_rows, columns, waiting_tiles;
};

/* Where the packing of rows stands. */
struct cursor {
    int64_t row;     /* the next row of b */
    int64_t example; /* whose row that is, where examples matter */
};

/* A part of the outputs, and the member's memory for it. */
struct chunk {
    int64_t row, rows, column, columns;
    float *a; /* of one tile */
    float *b, *waiting;
    int64_t slot_step; /* floats between the slots of a tile */
    int64_t tile_step; /* floats between tiles of a slot; 0 when they share it */
    const float *ones; /* BLOCK_ROWS times 1 */
    float *sums;       /* slots of the bias, or NULL: others sum it up */
    int64_t sums_step; /* floats between them */
};

/* Rows of all columns of a chunk that go by together; b is packed. */
struct block {
    const struct reduction_piece *pieces;
    int count;
    int64_t depth;
    const float *next; /* the rows of b behind these, as they lie, or NULL */
};

/* Tiles of one group of rows of a, and where they go. */
struct band {
    const float *a; /* packed */
    int64_t height;
    int64_t slot_step, tile_step; /* of the chunk, or those of the bias */
    float *to;                    /* node 0; NULL where each tile is applied */
    int64_t place;                /* in that, of the first output */
    int64_t index, count;         /* fetches this part of so many of the next rows; none if count is 0 */
};

/* A run of `length` rows of a and b that lie behind each other in both. */
struct run {
    int64_t a, b, length;
};

/* The next run, of at most `most` rows; there are rows left. */
static struct run next_run(const struct gradient *g, struct cursor *cursor, int64_t most)
{
    struct run run = {.a = cursor->row, .b = cursor->row, .length = most};
    if (g->offset) {
        for (;; cursor->example++) {
            const int64_t begin = g->offset[cursor->example], end = g->offset[cursor->example + 1];
            if (cursor->row <= begin) cursor->row = begin + 1; /* the first row has none before it */
            if (cursor->row >= end) continue;
            run = (struct run){cursor->row - 1, cursor->row, smaller(end - cursor->row, most)};
            break;
        }
    }
    cursor->row += run.length;
    return run;
}

/* Packs the columns of b for the next `depth` rows, a panel at a time: the target of a panel stays in the
   first-level cache, while those of all panels, a power of two apart, would push each other out of it.
   Returns where the rows after them begin. */
static struct cursor pack_b(const struct gradient *g, const struct chunk *chunk, struct cursor cursor,
                            int64_t depth)
{
    for (int64_t done = 0; done < depth;) {
        const struct run run = next_run(g, &cursor, depth - done);
        for (int64_t j = 0; j < chunk->columns; j += TILE_COLUMNS)
            pack_columns(chunk->b + j * depth + done * TILE_COLUMNS, TILE_COLUMNS,
                         g->b + run.b * g->width + chunk->column + j, g->width,
                         smaller(TILE_COLUMNS, chunk->columns - j), run.length);
        done += run.length;
    }
    return cursor;
}

/* Packs `height` columns of a from `first` for the next `depth` rows. */
static void pack_a(const struct gradient *g, const struct chunk *chunk, struct cursor cursor, int64_t first,
                   int64_t height, int64_t depth)
{
    for (int64_t done = 0; done < depth;) {
        const struct run run = next_run(g, &cursor, depth - done);
        pack_columns(chunk->a + done * height, height, g->a + run.a * g->height + first, g->height, height,
                     run.length);
        done += run.length;
    }
}

/* Asks for what the tile after this one will find in the slots of the same piece. */
AHEAD_INLINE void ahead_waiting(const struct tile *tile, const struct reduction_piece *piece, int64_t height,
                                int64_t tile_step)
{
    if (piece->slot >= 0) ahead_tile(tile->to + tile_step, TILE_COLUMNS, height, TILE_COLUMNS);
    if (tile->from && tile->from != tile->to)
        ahead_tile(tile->from + tile_step, TILE_COLUMNS, height, TILE_COLUMNS);
    for (int i = 0; i < tile->lefts; i++)
        if (tile->left[i] != tile->to)
            ahead_tile(tile->left[i] + tile_step, TILE_COLUMNS, height, TILE_COLUMNS);
}

/* Lets a tile fetch a part of the panel that is at the same columns in the next block: rows spread evenly
   over all tiles and their steps. Not a tile of few rows, which has to fetch the panel that it meets. */
static void fetch_next(const struct block *block, const struct band *band, int64_t row, int64_t j,
                       int64_t width, struct tile *tile)
{
    if (band->count == 0 || band->height <= TILE_ROWS / 2) return;
    const float *from = block->next + (block->depth * band->index + row) / band->count * width + j;
    tile->next = tile_fetch(from, 0, band->count, width);
}

/* Lets the tiles of a block's `count` pieces fetch what the update of their outputs, at `place`, reads:
   `piece` an array, or two of them if there are more arrays than pieces. Rows begin anywhere in a line: the
   first one came with the tile before. */
static void fetch_update(const struct gradient *g, int64_t place, int64_t height, int64_t piece,
                         int64_t count, struct tile *tile)
{
    const float *const all[] = {g->update->w, g->update->ema, g->update->m, g->update->v};
    const float *array[4];
    int64_t arrays = 0;
    for (int i = 0; i < 4; i++)
        if (all[i]) array[arrays++] = all[i];
    const int64_t each = arrays > count ? 2 : 1;
    const float *one = array[each * piece % arrays], *two = array[(each * piece + each - 1) % arrays];
    /* From the rows of one to those of the other, or to the same again; these are there already. */
    const int64_t apart = ((intptr_t)two - (intptr_t)one) / (int64_t)sizeof *one;
    tile->next = tile_fetch(one + place + AHEAD_LINE, g->width, height, apart - height * g->width);
}

/* Lets the tile at column j of the chunk take all pieces of a block. */
static void reduce_tile(const struct gradient *g, const struct chunk *chunk, const struct block *block,
                        const struct band *band, int64_t j, float *waiting)
{
    _Alignas(CPU_ALIGN) float formed[TILE_SIZE];
    const float *left[TR_TREE_DEPTH];
    struct tile_segment segment = {0};
    struct tile tile = {.segments = &segment,
                        .count = 1,
                        .a_step = band->height,
                        .b_step = TILE_COLUMNS,
                        .from_step = TILE_COLUMNS,
                        .columns = smaller(TILE_COLUMNS, chunk->columns - j),
                        .left = left};
    const int64_t place = band->place + j;
    const bool ends = g->update && block->pieces[block->count - 1].slot < 0;
    for (const struct reduction_piece *piece = block->pieces; piece < block->pieces + block->count; piece++) {
        segment.length = (int32_t)piece->rows;
        tile.a = band->a + piece->row * band->height;
        tile.b = chunk->b + j * block->depth + piece->row * TILE_COLUMNS;
        tile.from = piece->resume ? waiting + piece->fresh * band->slot_step : NULL;
        tile.lefts = piece->lefts;
        for (int i = 0; i < piece->lefts; i++) left[i] = waiting + (piece->fresh - 1 - i) * band->slot_step;
        const bool applied = piece->slot < 0 && g->update;
        if (applied) {
            tile.to = formed;
            tile.to_step = TILE_COLUMNS;
        } else if (piece->slot < 0) {
            tile.to = band->to + piece->node * g->cut->stride + place;
            tile.to_step = g->width;
            ahead_tile(tile.to + TILE_COLUMNS, g->width, band->height, TILE_COLUMNS);
        } else {
            tile.to = waiting + piece->slot * band->slot_step;
            tile.to_step = TILE_COLUMNS;
        }
        if (band->tile_step > 0) ahead_waiting(&tile, piece, band->height, band->tile_step);
        if (block->next)
            fetch_next(block, band, piece->row, j, g->width, &tile);
        else if (ends)
            fetch_update(g, place, band->height, piece - block->pieces, block->count, &tile);
        tile_compute(band->height, &tile);
        if (applied)
            update_rows(g->update, place, g->width, band->height, tile.columns, formed, TILE_COLUMNS);
    }
}

/* Lets a row of numbers 1 take all pieces of a block. */
static void reduce_bias(const struct gradient *g, const struct chunk *chunk, const struct block *block)
{
    const struct band band = {
        .a = chunk->ones, .height = 1, .slot_step = chunk->sums_step, .to = g->bias, .place = chunk->column};
    for (int64_t j = 0; j < chunk->columns; j += TILE_COLUMNS)
        reduce_tile(g, chunk, block, &band, j, chunk->sums + j);
}

static void reduce_chunk(const struct work *work, const struct chunk *chunk)
{
    const struct gradient *g = work->gradient;
    int64_t rows = work->rows;
    struct reduction reduction;
    struct reduction_piece pieces[REDUCTION_PIECES];
    struct cursor cursor = {0};
    struct block block = {.pieces = pieces};
    const int64_t tiles = tile_count(chunk->rows), panels = divide_up(chunk->columns, TILE_COLUMNS);
    cpu_reduction_begin(&reduction, g->cut, 1, g->offset);
    while ((block.count = cpu_reduction_next(&reduction, work->block_rows, pieces, &block.depth)) > 0) {
        const int64_t depth = block.depth;
        const struct cursor after = pack_b(g, chunk, cursor, depth);
        rows -= depth;
        block.next = rows > 0 ? g->b + after.row * g->width + chunk->column : NULL;
        float *waiting = chunk->waiting;
        for (int64_t t = 0; t < tiles; t++) {
            const int64_t first = chunk->row + tile_first(chunk->rows, tiles, t);
            const int64_t next = chunk->row + tile_first(chunk->rows, tiles, t + 1), height = next - first;
            const struct band band = {.a = chunk->a,
                                      .height = height,
                                      .slot_step = chunk->slot_step,
                                      .tile_step = chunk->tile_step,
                                      .to = g->to,
                                      .place = first * g->width + chunk->column,
                                      .index = t,
                                      .count = tiles};
            pack_a(g, chunk, cursor, first, height, depth);
            /* A tile's part of a row is at most a line, whose end is what the tile before has not fetched. */
            struct ahead ahead_a = t + 1 < tiles
                                       ? ahead_begin(g->a + cursor.row * g->height + next + height - 1, 1, 0,
                                                     depth, g->height, panels)
                                       : ahead_begin(g->a + after.row * g->height + chunk->row + height - 1,
                                                     1, 0, smaller(depth, rows), g->height, panels);
            for (int64_t j = 0; j < chunk->columns; j += TILE_COLUMNS) {
                ahead_fetch(&ahead_a);
                reduce_tile(g, chunk, &block, &band, j, waiting);
                waiting += chunk->tile_step;
            }
        }
        if (chunk->sums) reduce_bias(g, chunk, &block);
        cursor = after;
    }
}

/* ---- a member's memory ---- */

#define SUMS(work) ((TR_TREE_DEPTH + 1) * (work)->columns)

static int64_t packed_b(const struct work *work)
{
    return floats_round(work->columns * work->block_rows + PACK_SLACK);
}

static size_t scratch_bytes(const struct work *work)
{
    return (size_t)(floats_round(PACKED_A) + packed_b(work) + SUMS(work) + BLOCK_ROWS +
                    work->waiting_tiles * TILE_SIZE) *
           sizeof(float);
}

static void reduce(void *arguments, int member, int size)
{
    const struct work *work = arguments;
    const struct gradient *g = work->gradient;
    const int parts_rows = size == 1 ? 1 : work->parts_rows, parts_columns = size / parts_rows;
    int64_t row, row_end, column, column_end;
    tr_team_chunk(g->height, 1, member / parts_columns, parts_rows, &row, &row_end);
    tr_team_chunk(g->width, TILE_COLUMNS, member % parts_columns, parts_columns, &column, &column_end);

    struct chunk chunk = {.a = cpu_scratch(work->cpu, member), .sums_step = work->columns};
    chunk.b = chunk.a + floats_round(PACKED_A);
    float *sums = chunk.b + packed_b(work), *ones = sums + SUMS(work);
    chunk.waiting = ones + BLOCK_ROWS;
    chunk.ones = ones;
    for (int i = 0; i < BLOCK_ROWS; i++) ones[i] = 1.0f;
    /* The members with the first rows sum up the bias, if all of these have rows. */
    const bool has_bias = g->bias && g->height >= parts_rows;
    /* In one block, if it ends with the rows and not with its table of pieces. */
    const bool at_once = work->rows <= work->block_rows && g->cut->count + g->cut->nodes <= REDUCTION_PIECES;
    const int64_t tiles = tile_count(row_end - row);
    for (chunk.column = column; row < row_end && chunk.column < column_end; chunk.column += work->columns) {
        chunk.columns = smaller(work->columns, column_end - chunk.column);
        const int64_t across = divide_up(chunk.columns, TILE_COLUMNS);
        int64_t most = tiles;
        if (at_once) {
            chunk.slot_step = TILE_SIZE;
            chunk.tile_step = 0;
        } else {
            most = smaller(most, work->waiting_tiles / (across * work->slots));
            chunk.slot_step = across * most * TILE_SIZE;
            chunk.tile_step = TILE_SIZE;
        }
        const int64_t bands = divide_up(tiles, most);
        for (int64_t band = 0; band < bands; band++) {
            chunk.row = row + tile_first(row_end - row, tiles, tr_cut(tiles, bands, band));
            chunk.rows = row + tile_first(row_end - row, tiles, tr_cut(tiles, bands, band + 1)) - chunk.row;
            chunk.sums = has_bias && chunk.row == 0 ? sums : NULL;
            reduce_chunk(work, &chunk);
        }
    }
    if (g->bias && !has_bias) {
        tr_team_chunk(g->width, 16, member, size, &column, &column_end);
        sum_columns(g->cut, g->b, g->width, column, column_end, g->bias);
    }
}

/* Cycles that a member spends with a rectangle of such a size; the constants only weigh the choices. */
static double cost(const struct work *work, int64_t height, int64_t width)
{
    const int64_t rows = work->rows;
    const int64_t rounded = height < 4 * tile_count(height) ? 4 * tile_count(height) : height;
    return (double)(rows + 4) * (double)divide_up(width, TILE_COLUMNS) * (double)(rounded + 4) +
           0.3 * (double)rows * (double)height * (double)divide_up(width, work->columns);
}

static void choose_blocks(const struct cpu_room *room, const struct cpu_blocks *blocks, struct work *work)
{
    const int64_t columns = cpu_room_second(room, blocks->gradient_columns, TILE_COLUMNS);
    work->columns = columns - columns % TILE_COLUMNS;
    work->block_rows = smaller(BLOCK_ROWS, cpu_room_first(room, blocks->gradient_rows, 16));
    work->waiting_tiles =
        cpu_room_last(room, blocks->gradient_waiting, work->slots * work->columns * TILE_ROWS) / TILE_SIZE;
}

tr_status gradient_compute(struct cpu_device *cpu, const struct gradient *g)
{
    if (g->width == 0 || (g->height == 0 && !g->bias)) return TR_OK;
    struct work work = {.cpu = cpu,
                        .gradient = g,
                        .rows = cpu_reduction_rows(g->cut, 1, g->offset),
                        .slots = cpu_reduction_slots(g->cut)};
    choose_blocks(&cpu->room, &cpu->blocks, &work);
    double least = INFINITY;
    for (int parts = 1; parts <= cpu->base.threads; parts++) {
        if (cpu->base.threads % parts) continue;
        const int64_t across = divide_up(divide_up(g->width, TILE_COLUMNS), cpu->base.threads / parts);
        const double cycles = cost(&work, divide_up(g->height, parts), across * TILE_COLUMNS);
        /* Whole rows are worth a little: they are one stretch of memory, and the member that applies a
           gradient, a part of a stretch, then mostly is the one that has formed it. */
        if (cycles < WHOLE_ROWS * least) work.parts_rows = parts;
        if (cycles < least) least = cycles;
    }
    TR_TRY(cpu_reserve(cpu, scratch_bytes(&work), 0));
    cpu_run(cpu, tile_nanoseconds(g->height, g->width, work.rows), reduce, &work);
    return TR_OK;
}
