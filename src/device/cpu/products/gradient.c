/* Blocking: a member takes a rectangle of the outputs, and in it a chunk of tiles at a time. The rows are
 * processed in blocks. The block's columns of b are packed and stay in the second-level cache, while each
 * tile prefetches some of the next block's. The columns of a are packed just before the tiles that need
 * them, a few tiles at a time, and are prefetched while earlier tiles are computed. Every tile takes all
 * the pieces of the block in one call (piece_tile.h). The bias is summed up from the packed panels. Tiles
 * that wait for the next block, or for their partner in the tree, lie in slots. Where all rows fit into
 * one block, all tiles use the same slots, in the first-level cache. Where only an update needs the
 * gradient, each tile of it is applied at once and not stored.
 */
#include "device/cpu/products/gradient.h"

#include "base/fail.h"
#include "device/cpu/vectors/ahead.h"
#include "device/cpu/grid.h"
#include "device/cpu/products/pack.h"
#include "device/cpu/reduction.h"
#include "device/cpu/sizes.h"
#include "device/cpu/products/piece_sums.h"
#include "device/cpu/products/piece_tile.h"
#include "device/cpu/elementwise/update.h"

#include <math.h>

#define BLOCK_ROWS 256 /* most rows, whatever the cache; blocks.h has other sizes */

/* How much longer members that have whole rows may take. */
#define WHOLE_ROWS 1.03

/* Most fetches of a tile: a panel, the arrays of an update, slots. */
#define FETCHES 12

#define TILE_SIZE (TILE_ROWS * TILE_COLUMNS)
/* Tiles whose rows of a are packed together: some whole cache lines of each row, so that each line is read
   once. */
#define GROUP    (48 / TILE_ROWS)
#define PACKED_A (GROUP * (PIECE_STEP * BLOCK_ROWS + PACK_SLACK))

struct work {
    struct cpu_device *cpu;
    const struct gradient *gradient;
    int64_t rows; /* of all microbatches */
    int slots;
    int parts_rows; /* the grid of rectangles, one per member, has so many rows */
    /* Rows of a block, columns of a chunk, and its waiting tiles over all slots. */
    int64_t block_rows, columns, waiting_tiles;
};

/* Position of the packing of rows. */
struct cursor {
    int64_t row;     /* the next row of b */
    int64_t example; /* the example of that row, where examples matter */
};

/* A part of the outputs, and the member's memory for it. */
struct chunk {
    int64_t row, rows, column, columns;
    float *a; /* of a group of tiles */
    float *b, *waiting;
    int64_t slot_step; /* floats between the slots of a tile */
    int64_t tile_step; /* floats between tiles of a slot; 0 when they share it */
    float *sums;       /* slots of the bias, or NULL: another member sums it up */
    int64_t sums_step; /* floats between them */
};

/* Rows of all columns of a chunk that are processed together; b is packed. */
struct block {
    const struct reduction_piece *pieces;
    int count;
    int64_t depth;
    const float *next; /* the rows of b after these, unpacked, or NULL */
    int slots;         /* that its pieces use */
    bool ends;         /* ends a node; the last such node is `node` */
    int32_t node;
};

/* The tiles of one group of rows of a, and their outputs. */
struct band {
    const float *a;        /* packed */
    int64_t height, place; /* of its first output in a node */
    int64_t index, count;  /* fetches this part of so many of the next rows */
};

/* A run of `length` rows of a and b that are consecutive in both. */
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
            if (cursor->row <= begin)
                cursor->row = begin + 1; /* the first row of an example has none
                                            before it */
            if (cursor->row >= end) continue;
            run = (struct run){cursor->row - 1, cursor->row, smaller(end - cursor->row, most)};
            break;
        }
    }
    cursor->row += run.length;
    return run;
}

/* Packs the columns of b for the next `depth` rows, a panel at a time: the target of a panel stays in the
   first-level cache, while those of all panels, a power of two apart, would evict each other. Returns the
   position after these rows. */
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

/* Packs the columns of a of the tiles [begin, end) of the chunk for the next `depth` rows. A tile has
   PIECE_STEP columns of them: its own and then its neighbours', so that all copies are whole vectors. */
static void pack_a(const struct gradient *g, const struct chunk *chunk, struct cursor cursor, int64_t tiles,
                   int64_t begin, int64_t end, int64_t depth)
{
    int64_t column[GROUP], whole = 0;
    for (int64_t t = begin; t < end; t++) {
        column[t - begin] = chunk->row + tile_first(chunk->rows, tiles, t);
        if (column[t - begin] + PIECE_STEP <= g->height) whole = t + 1 - begin;
    }
    const int64_t tile_step = depth * PIECE_STEP + PACK_SLACK;
    float *to = chunk->a;
    for (int64_t done = 0; done < depth;) {
        const struct run run = next_run(g, &cursor, depth - done);
        done += run.length;
        for (int64_t i = 0; i < run.length; i++, to += PIECE_STEP) {
            const float *from = g->a + (run.a + i) * g->height;
            int64_t t = 0;
            for (; t < whole; t++)
                V_UNROLL for (int v = 0; v < PIECE_STEP; v += VW)
                    v_store(to + t * tile_step + v, v_load(from + column[t] + v));
            for (; t < end - begin; t++)
                V_UNROLL for (int v = 0; v < PIECE_STEP; v += VW) v_store(
                    to + t * tile_step + v,
                    v_load_part(from + column[t] + v, larger(0, smaller(VW, g->height - column[t] - v))));
        }
    }
}

/* What the tiles of a band prefetch, each for the tile after it; rows begin `advance` further with each
   tile. */
struct fetches {
    struct row_fetch list[FETCHES];
    int64_t advance[FETCHES], every;
    int count;
};

static void add_fetch(struct fetches *f, const float *from, int64_t step, int64_t rows, int64_t advance)
{
    if (f->count == FETCHES || rows <= 0) return;
    f->list[f->count] = (struct row_fetch){from, step, rows};
    f->advance[f->count++] = advance;
}

/* A part of the panel at the same columns in the next block; of the next tile the outputs, or the operands
   of their update, and the slots. */
static void list_fetches(const struct gradient *g, const struct chunk *chunk, const struct block *block,
                         const struct band *band, const float *waiting, struct fetches *f)
{
    const int64_t height = band->height;
    f->count = 0;
    if (block->next && height > TILE_ROWS / 2) { /* fewer rows have to fetch their own panel */
        const int64_t first = block->depth * band->index / band->count;
        add_fetch(f, block->next + first * g->width, g->width,
                  block->depth * (band->index + 1) / band->count - first, TILE_COLUMNS);
    }
    /* Rows begin anywhere in a cache line: the first line came with the tile before. */
    if (block->ends && g->update) {
        const float *const all[] = {g->update->w, g->update->ema, g->update->m, g->update->v};
        for (int i = 0; i < 4; i++)
            if (all[i]) add_fetch(f, all[i] + band->place + AHEAD_LINE, g->width, height, TILE_COLUMNS);
    } else if (block->ends) {
        add_fetch(f, g->to + block->node * g->cut->stride + band->place + TILE_COLUMNS, g->width, height,
                  TILE_COLUMNS);
    }
    for (int s = 0; s < block->slots && chunk->tile_step > 0; s++)
        add_fetch(f, waiting + chunk->tile_step + s * chunk->slot_step, TILE_COLUMNS, height,
                  chunk->tile_step);
    int64_t rows = 1;
    for (int i = 0; i < f->count; i++) rows += f->list[i].rows;
    f->every = larger(1, block->depth / rows);
}

/* Makes the tiles of a band process all pieces of a block. `waiting` belongs to the first one. */
static void reduce_band(const struct gradient *g, const struct chunk *chunk, const struct block *block,
                        const struct band *band, float *waiting, struct ahead *ahead_a)
{
    _Alignas(CPU_ALIGN) float formed[TILE_SIZE];
    struct fetches fetches;
    list_fetches(g, chunk, block, band, waiting, &fetches);
    struct piece_tile tile = {.pieces = block->pieces,
                              .count = block->count,
                              .a = band->a,
                              .waiting = waiting,
                              .slot_step = chunk->slot_step,
                              .to = formed,
                              .to_step = TILE_COLUMNS,
                              .fetch = fetches.list,
                              .fetches = fetches.count,
                              .every = fetches.every};
    if (!g->update) {
        tile.to = g->to + band->place;
        tile.to_step = g->width;
        tile.node_step = g->cut->stride;
    }
    for (int64_t j = 0; j < chunk->columns; j += TILE_COLUMNS) {
        tile.b = chunk->b + j * block->depth;
        tile.columns = smaller(TILE_COLUMNS, chunk->columns - j);
        ahead_fetch(ahead_a);
        piece_tile_compute(band->height, &tile);
        tile.waiting += chunk->tile_step;
        for (int i = 0; i < fetches.count; i++) fetches.list[i].from += fetches.advance[i];
        if (!g->update)
            tile.to += TILE_COLUMNS;
        else if (block->ends)
            update_rows(g->update, band->place + j, g->width, band->height, tile.columns, formed,
                        TILE_COLUMNS);
    }
}

static void reduce_bias(const struct gradient *g, const struct chunk *chunk, const struct block *block)
{
    const struct piece_sums sums = {.pieces = block->pieces,
                                    .count = block->count,
                                    .b = chunk->b,
                                    .step = TILE_COLUMNS,
                                    .panel_step = TILE_COLUMNS * block->depth,
                                    .repeat = 1,
                                    .waiting = chunk->sums,
                                    .slot_step = chunk->sums_step,
                                    .to = g->bias + chunk->column,
                                    .node_step = g->cut->stride,
                                    .columns = chunk->columns};
    piece_sums_compute(&sums);
}

/* Notes the facts that all pieces of a block share. */
static void look_at_pieces(struct block *block)
{
    block->slots = 0;
    block->ends = false;
    for (const struct reduction_piece *piece = block->pieces; piece < block->pieces + block->count; piece++) {
        if (piece->fresh >= block->slots) block->slots = piece->fresh + 1;
        if (piece->slot >= 0) continue;
        block->ends = true;
        block->node = piece->node;
    }
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
    cpu_reduction_begin(&reduction, g->cut, g->repeat, g->offset);
    while ((block.count = cpu_reduction_next(&reduction, work->block_rows, pieces, &block.depth)) > 0) {
        const int64_t depth = block.depth;
        const struct cursor after = pack_b(g, chunk, cursor, depth);
        rows -= depth;
        block.next = rows > 0 ? g->b + after.row * g->width + chunk->column : NULL;
        look_at_pieces(&block);
        float *waiting = chunk->waiting;
        for (int64_t group = 0; group < tiles; group += GROUP) {
            const int64_t end = smaller(group + GROUP, tiles), beyond = tile_first(chunk->rows, tiles, end);
            const bool last = end == tiles;
            pack_a(g, chunk, cursor, tiles, group, end, depth);
            struct ahead ahead_a =
                last ? ahead_rows(g->a + after.row * g->height + chunk->row, g->height, smaller(depth, rows),
                                  smaller(GROUP * TILE_ROWS, chunk->rows), (end - group) * panels)
                     : ahead_rows(g->a + cursor.row * g->height + chunk->row + beyond, g->height, depth,
                                  smaller(GROUP * TILE_ROWS, chunk->rows - beyond), (end - group) * panels);
            for (int64_t t = group; t < end; t++) {
                const int64_t first = tile_first(chunk->rows, tiles, t);
                const struct band band = {.a = chunk->a + (t - group) * (depth * PIECE_STEP + PACK_SLACK),
                                          .height = tile_first(chunk->rows, tiles, t + 1) - first,
                                          .place = (chunk->row + first) * g->width + chunk->column,
                                          .index = t,
                                          .count = tiles};
                reduce_band(g, chunk, &block, &band, waiting, &ahead_a);
                waiting += panels * chunk->tile_step;
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
    return (size_t)(floats_round(PACKED_A) + packed_b(work) + SUMS(work) + work->waiting_tiles * TILE_SIZE) *
           sizeof(float);
}

static void reduce(void *arguments, int member, int size)
{
    const struct work *work = arguments;
    const struct gradient *g = work->gradient;
    const int parts_rows = size == 1 ? 1 : work->parts_rows;
    const struct cpu_part part =
        cpu_part(work->cpu->balance, parts_rows, g->height, g->width, TILE_COLUMNS, member, size);
    const int64_t row = part.row, row_end = part.row_end;

    struct chunk chunk = {.a = cpu_scratch(work->cpu, member), .sums_step = work->columns};
    chunk.b = chunk.a + floats_round(PACKED_A);
    float *sums = chunk.b + packed_b(work);
    chunk.waiting = sums + SUMS(work);
    /* The members with the first rows sum up the bias, if all of these members have rows. */
    const bool has_bias = g->bias && g->height >= parts_rows;
    /* In one block, provided that it ends with the rows and not with its table of pieces. */
    const bool at_once = work->rows <= work->block_rows && g->cut->count + g->cut->nodes <= REDUCTION_PIECES;
    const int64_t tiles = tile_count(row_end - row);
    for (chunk.column = part.column; row < row_end && chunk.column < part.column_end;
         chunk.column += work->columns) {
        chunk.columns = smaller(work->columns, part.column_end - chunk.column);
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
        int64_t column, column_end;
        tr_team_chunk(g->width, 16, member, size, &column, &column_end);
        sum_columns(g->cut, g->repeat, g->b, g->width, column, column_end, g->bias);
    }
}

/* An estimate of the cycles that a member takes for a rectangle of this size; its constants only serve to
   compare choices. */
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
                        .rows = cpu_reduction_rows(g->cut, g->repeat, g->offset),
                        .slots = cpu_reduction_slots(g->cut)};
    choose_blocks(&cpu->room, &cpu->blocks, &work);
    double least = INFINITY;
    for (int parts = 1; parts <= cpu->base.threads; parts++) {
        if (cpu->base.threads % parts) continue;
        const int64_t across = divide_up(divide_up(g->width, TILE_COLUMNS), cpu->base.threads / parts);
        const double cycles = cost(&work, divide_up(g->height, parts), across * TILE_COLUMNS);
        /* Whole rows are worth a little: they are contiguous, and the member that applies a part of a
           gradient is then mostly the one that computed it. */
        if (cycles < WHOLE_ROWS * least) work.parts_rows = parts;
        if (cycles < least) least = cycles;
    }
    TR_TRY(cpu_reserve(cpu, scratch_bytes(&work), 0));
    cpu_run(cpu, tile_nanoseconds(g->height, g->width, work.rows), reduce, &work);
    return TR_OK;
}
