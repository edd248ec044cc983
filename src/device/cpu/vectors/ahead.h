/* Fetching the next block while the current one is being computed.
 *
 * Packing reads memory in short runs that the hardware prefetcher does not find, and computes nothing
 * meanwhile. So the cache lines of the block that is packed next are prefetched in small portions between
 * tiles.
 */
#ifndef TR_DEVICE_CPU_AHEAD_H
#define TR_DEVICE_CPU_AHEAD_H

#include <stdint.h>

#define AHEAD_LINE 16 /* floats */

/* Always inlined: compilers take a function that only prefetches for one without effect, and drop calls of
   it. */
#define AHEAD_INLINE static inline __attribute__((always_inline))

/* Lines in runs: `count` more of the current run, `step` floats apart, then further runs. */
struct ahead {
    const float *at;
    int64_t count, step;
    const float *run; /* where the current run began */
    int64_t runs, run_count, run_step;
    int64_t portion; /* lines per call */
};

/* Prepares to prefetch `runs` runs, run_step floats apart, of `count` lines that are `step` apart, in
   about `calls` calls. */
AHEAD_INLINE struct ahead ahead_begin(const float *from, int64_t runs, int64_t run_step, int64_t count,
                                      int64_t step, int64_t calls)
{
    if (runs <= 0 || count <= 0 || calls <= 0) return (struct ahead){0};
    return (struct ahead){from, count, step, from, runs, count, run_step, (runs * count + calls - 1) / calls};
}

/* The same for all lines of `rows` rows of `width` floats. */
AHEAD_INLINE struct ahead ahead_rows(const float *from, int64_t step, int64_t rows, int64_t width,
                                     int64_t calls)
{
    if (width == step) { /* one run */
        width *= rows;
        rows = 1;
    }
    return ahead_begin(from, rows, step, width / AHEAD_LINE + 1, AHEAD_LINE, calls);
}

/* Prefetches the next portion. */
AHEAD_INLINE void ahead_fetch(struct ahead *ahead)
{
    int64_t n = ahead->portion;
    while (n > 0 && ahead->runs > 0) {
        const int64_t part = n < ahead->count ? n : ahead->count;
        const float *at = ahead->at;
        for (int64_t i = 0; i < part; i++, at += ahead->step) __builtin_prefetch(at, 0, 3);
        n -= part;
        ahead->at = at;
        ahead->count -= part;
        if (ahead->count == 0) {
            ahead->run += ahead->run_step;
            ahead->at = ahead->run;
            ahead->count = ahead->run_count;
            ahead->runs--;
        }
    }
}

/* Prefetches a tile that is about to be written. */
AHEAD_INLINE void ahead_tile(const float *to, int64_t step, int64_t rows, int64_t columns)
{
    for (int64_t r = 0; r < rows; r++)
        for (int64_t j = 0; j < columns; j += AHEAD_LINE) __builtin_prefetch(to + r * step + j, 1, 3);
}

#endif
