/* Fetching the next block while the current one is being computed.
 *
 * Packing reads memory in short runs that the hardware does not foresee, and nothing else goes on meanwhile.
 * So the lines of the block that will be packed next are asked for in small portions between tiles.
 */
#ifndef TR_DEVICE_CPU_AHEAD_H
#define TR_DEVICE_CPU_AHEAD_H

#include <stdint.h>

#define AHEAD_LINE 16 /* floats */

struct ahead {
    const float *row;
    int64_t rows, step; /* rows that remain, floats between them */
    int64_t width, at;  /* floats in a row, and how many of the current one have been asked for */
    int64_t portion;    /* lines per call */
};

/* Will ask for `rows` rows of `width` floats that are `step` apart in about `calls` calls. */
static inline struct ahead ahead_begin(const float *from, int64_t step, int64_t rows, int64_t width,
                                       int64_t calls)
{
    const int64_t lines = rows * (width / AHEAD_LINE + 1);
    return (struct ahead){from, rows, step, width, 0, calls > 0 ? (lines + calls - 1) / calls : 0};
}

/* Asks for the next portion. */
static inline void ahead_fetch(struct ahead *ahead)
{
    for (int64_t n = ahead->portion; n > 0 && ahead->rows > 0; n--) {
        __builtin_prefetch(ahead->row + ahead->at, 0, 2);
        ahead->at += AHEAD_LINE;
        if (ahead->at >= ahead->width) {
            ahead->at = 0;
            ahead->row += ahead->step;
            ahead->rows--;
        }
    }
}

/* Asks for a tile that is about to be written. */
static inline void ahead_tile(const float *to, int64_t step, int64_t rows, int64_t columns)
{
    for (int64_t r = 0; r < rows; r++)
        for (int64_t j = 0; j < columns; j += AHEAD_LINE) __builtin_prefetch(to + r * step + j, 1, 3);
}

#endif
