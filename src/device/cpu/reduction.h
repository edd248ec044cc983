/* How a gradient over the microbatches of a cut is formed tile by tile.
 *
 * The rows of a cut are processed in blocks. Within a block, each piece (a microbatch or the part of one
 * that lies in the block) is one call of the tile kernel, and the combinations of the tree that become due
 * when a microbatch ends are done in its registers: the partial sums that wait are the `left` tiles of the
 * call. So the gradient of a microbatch is stored only while it waits for its partner, in a numbered slot.
 */
#ifndef TR_DEVICE_CPU_REDUCTION_H
#define TR_DEVICE_CPU_REDUCTION_H

#include "base/numbers/tree.h"
#include "device/ops.h"

#include <stdbool.h>
#include <stdint.h>

/* Most pieces of a block; with more microbatches the block ends earlier. */
#define REDUCTION_PIECES 32

struct reduction_piece {
    int64_t row, rows; /* within the block */
    bool resume;       /* the chain continues from slot `fresh` */
    int fresh;         /* the slot of an unfinished chain */
    int lefts;         /* combinations that follow: with slots fresh - 1, fresh - 2, ... */
    int slot;          /* where the result waits, or -1: it is the value of `node` */
    int32_t node;
};

struct reduction {
    const struct tr_cut *cut;
    int64_t repeat;        /* rows per unit of the cut */
    const int32_t *offset; /* NULL, or the cut counts examples, each with one row less than it has tokens */
    int32_t node, microbatch;
    int64_t done; /* rows of the current microbatch in earlier blocks */
    int top;      /* the highest slot in use, -1 if none */
};

/* Most slots that a cut needs. */
int cpu_reduction_slots(const struct tr_cut *cut);

/* Rows of all microbatches. */
int64_t cpu_reduction_rows(const struct tr_cut *cut, int64_t repeat, const int32_t *offset);

void cpu_reduction_begin(struct reduction *reduction, const struct tr_cut *cut, int64_t repeat,
                         const int32_t *offset);

/* Takes the next block of at most `rows_max` rows. Returns its number of pieces, 0 when all nodes are
   done. */
int cpu_reduction_next(struct reduction *reduction, int64_t rows_max,
                       struct reduction_piece pieces[REDUCTION_PIECES], int64_t *rows);

#endif
