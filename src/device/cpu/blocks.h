/* Sizes of the blocks in which kernels process their operands, and choices that follow from sizes: one row
 * for each kind of processor and instruction set. The bits of results do not depend on them.
 *
 * A row was measured with the caches of room.h; kernels scale it to the caches of the machine. bench/tune
 * measures a row on the processor where it runs, and prints it as a line for blocks.c.
 */
#ifndef TR_DEVICE_CPU_BLOCKS_H
#define TR_DEVICE_CPU_BLOCKS_H

#include "base/processor.h"

#include <stdint.h>

/* X(field, least, most, cache that determines the size, description). Outside of least and most the
   kernels do not work or bench/tune does not search. */
#define CPU_BLOCKS(X)                                                                                        \
    X(product_depth, 32, 256, "first", "steps of a block of weights")                                        \
    X(product_columns, 64, 4096, "second", "columns of a block of weights")                                  \
    X(product_group, 1 << 16, 1 << 24, "last", "floats of the blocks of weights that bands share")           \
    X(product_band, 1 << 14, 1 << 22, "last", "floats of the results of a band of rows")                     \
    X(product_rows, 64, 4096, "none", "most rows of a band")                                                 \
    X(product_few, 1, 64, "none", "most tiles of rows for which weights are not packed")                     \
    X(gradient_rows, 32, 256, "first", "examples of a block of a weight gradient")                           \
    X(gradient_columns, 64, 4096, "second", "columns of a chunk of a weight gradient")                       \
    X(gradient_waiting, 1 << 16, 1 << 24, "last", "floats of the tiles of a chunk that wait")                \
    X(conv_band, 1 << 14, 1 << 22, "second", "floats of the interleaved images of a band")                   \
    X(conv_gradient_pixels, 64, 4096, "second", "pixels of a block of a convolution's weight gradient")      \
    X(conv_gradient_waiting, 1 << 16, 1 << 24, "last", "floats of its tiles that wait")                      \
    X(conv_in_place, 1, 256, "none", "most channels of a pixel that is not packed for it")                   \
    X(winograd_band_least, 1 << 14, 1 << 20, "second", "floats of a band of Winograd tiles, at least")       \
    X(winograd_band_most, 1 << 15, 1 << 22, "second", "the same, where the weights are large")               \
    X(winograd_few_band, 1 << 12, 1 << 20, "second", "floats of a band with few channels")                   \
    X(winograd_gradient_z, 1 << 14, 1 << 21, "second", "floats of Z of a block of the gradient")             \
    X(winograd_gradient_v, 1 << 16, 1 << 23, "last", "floats of V of such a block")                          \
    X(winograd_gradient_waiting, 1 << 16, 1 << 24, "last", "floats that wait in its slots and sums")

struct cpu_blocks {
#define CPU_BLOCKS_FIELD(field, least, most, cache, help) int64_t field;
    CPU_BLOCKS(CPU_BLOCKS_FIELD)
#undef CPU_BLOCKS_FIELD
};

struct cpu_blocks_row {
    const char *vendor;    /* of struct tr_processor; NULL: any */
    int family, model_end; /* family 0: any; models below model_end, 0: all */
    const char *isa;       /* NULL: any */
    struct cpu_blocks blocks;
};

/* Ends with a row for any processor, whose vendor is NULL. */
extern const struct cpu_blocks_row cpu_blocks_table[];

/* The first row for the processor and the instruction set. Static storage. */
const struct cpu_blocks *cpu_blocks_find(const struct tr_processor *processor, const char *isa);

#endif
