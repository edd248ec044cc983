/* Gradients of weight matrices: per microbatch a product of two tall matrices, per node the tree over them.
 */
#ifndef TR_DEVICE_CPU_GRADIENT_H
#define TR_DEVICE_CPU_GRADIENT_H

#include "device/cpu/cpu.h"
#include "device/cpu/kernels.h"

/* One for each instruction set. */
#define gradient_compute CPU_KERNEL(gradient_compute)
#define sum_columns      CPU_KERNEL(sum_columns)

struct gradient {
    int64_t height, width;
    const float *a; /* [rows][height] */
    const float *b; /* [rows][width] */
    /* NULL: row r of a meets row r of b. Else the cut counts examples, example e has rows [offset[e],
       offset[e+1]), and row r of b meets row r - 1 of a unless r is the first of its example. */
    const int32_t *offset;
    const struct tr_cut *cut;
    int64_t repeat; /* rows of a and b for each row of the cut: 1, or the pixels of an image */
    float *to;      /* [height][width] per node */
    const struct tr_op_update *update; /* NULL, or receives each part of the only node once it is computed,
                                          in place of `to`; its `grad` is not used */
    float *bias;                       /* per node the sums of b over rows, [width], or NULL */
};

tr_status gradient_compute(struct cpu_device *cpu, const struct gradient *gradient);

/* Per node: to = tree over microbatches of the sum chain over rows of x[r][begin .. end), `repeat` of them
   for each row of the cut. Rows are `width` apart. */
void sum_columns(const struct tr_cut *cut, int64_t repeat, const float *x, int64_t width, int64_t begin,
                 int64_t end, float *to);

#endif
