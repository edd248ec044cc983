/* The one kernel below all matrix products: a tile of outputs that stays in registers.
 *
 * A tile is up to TILE_ROWS x TILE_COLUMNS outputs. Its inputs come in segments; within one, each step
 * adds the product of a number per row and a number per column to every output with one fma. The sums stay
 * in registers from one segment to the next; a convolution's taps, a microbatch's images or a sequence's
 * tokens are all lists of segments. Each output is one chain in the order of the segments. It does not
 * depend on how outputs are grouped into tiles, and a chain may be stored and continued later.
 */
#ifndef TR_DEVICE_CPU_TILE_H
#define TR_DEVICE_CPU_TILE_H

#include "device/cpu/kernels.h"
#include "device/cpu/vectors/vec.h"

#include <stdint.h>

/* One for each instruction set. */
#define tile_compute CPU_KERNEL(tile_compute)

/* Rows times vectors of accumulators, the vectors of b and one of a fill the register file. */
#if VW == 16
#define TILE_ROWS    14
#define TILE_VECTORS 2
#elif VW == 8
#define TILE_ROWS    6
#define TILE_VECTORS 2
#else
#define TILE_ROWS    5
#define TILE_VECTORS 4
#endif
#define TILE_COLUMNS (TILE_VECTORS * VW)

/* Step i reads a number for each row at tile.a[a * a_unit + i * a_step + row], and one for each column at
   tile.b[b * b_unit + i * b_step + column]. */
struct tile_segment {
    int32_t a, b;
    int32_t length;
    uint32_t only; /* 0, or bit r for each row r that takes part; nothing is read for the others */
};

/* Steps that not all rows of a tile take: a triangle of rows - 1 steps, from corner_a and corner_b on. */
enum tile_corner {
    TILE_NO_CORNER,
    TILE_RISING,  /* before the segments: in step s the rows 0 to s */
    TILE_FALLING, /* after them: in step s the rows from s + 1 on */
    TILE_CORNERS
};

/* Memory to prefetch while a tile is computed: a row of TILE_COLUMNS every `every` steps. Rows are `step`
   apart, with `jump` in addition after the `first` rows and after each further `run` rows. */
struct tile_fetches {
    const float *from; /* NULL: nothing */
    int64_t every, step, first, run, jump;
};

/* One row with each step; a `jump` after each `run` of rows. */
static inline struct tile_fetches tile_fetch(const float *from, int64_t step, int64_t run, int64_t jump)
{
    return (struct tile_fetches){
        .from = from, .every = 1, .step = step, .first = run, .run = run, .jump = jump};
}

/* Part `index` of `parts` of these rows, for one of `parts` tiles with `steps` steps that together fetch
   all. */
static inline struct tile_fetches tile_fetch_part(const struct tile_fetches *all, int64_t steps,
                                                  int64_t index, int64_t parts)
{
    if (!all->from || all->run == 0) return (struct tile_fetches){0};
    struct tile_fetches part = *all;
    const int64_t before = index * ((steps + parts - 1) / parts);
    part.from += before * all->step + before / all->run * all->jump;
    part.every = parts;
    part.first = all->run - before % all->run;
    return part;
}

struct tile {
    const struct tile_segment *segments;
    int64_t count;
    enum tile_corner corner;
    const float *corner_a, *corner_b;
    const float *a, *b; /* b: all columns of the tile are read, valid or not */
    int64_t a_step, b_step, a_unit, b_unit;
    struct tile_fetches next; /* for a tile of one segment with all rows, from its first step on */
    /* Initial values of the chains, +0 if NULL. May be `to`. */
    const float *from;
    int64_t from_step;
    /* Results; only the first `columns` of each row are written. */
    float *to;
    int64_t to_step;
    int64_t columns;
    /* Then, in this order: result = left[i] + result, for each of these tiles (rows of TILE_COLUMNS). */
    const float *const *left;
    int lefts;
    /* Then + bias[j] (NULL: nothing; TILE_COLUMNS readable), then the activation. */
    const float *bias;
    enum tr_activation activation; /* of the output's gradient */
    float slope;
    /* Then * factor[j], likewise to_step apart, or NULL. */
    const float *factor;
};

/* Computes a tile of `rows` rows (1..TILE_ROWS). */
void tile_compute(int64_t rows, const struct tile *tile);

/* An estimate of the nanoseconds of tiles with so many outputs and steps, including columns that are
   computed but not stored. */
static inline double tile_nanoseconds(int64_t rows, int64_t columns, int64_t steps)
{
    const int64_t half = TILE_COLUMNS / 2, computed = (columns + half - 1) / half * half;
    return (double)rows * (double)computed * (double)(steps + 8) / (VW > 8 ? 64.0 : 8.0 * VW);
}

/* `count` rows in the fewest tiles, of sizes that differ by at most one: tiles, and the first row of one. */
static inline int64_t tile_count(int64_t count)
{
    return (count + TILE_ROWS - 1) / TILE_ROWS;
}

static inline int64_t tile_first(int64_t count, int64_t tiles, int64_t index)
{
    return count / tiles * index + (index < count % tiles ? index : count % tiles);
}

#endif
