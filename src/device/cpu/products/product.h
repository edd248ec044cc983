/* Matrix products c = act(a b + bias) for dense layers, blocked for the caches and split over the team. */
#ifndef TR_DEVICE_CPU_PRODUCT_H
#define TR_DEVICE_CPU_PRODUCT_H

#include "device/cpu/cpu.h"
#include "device/cpu/kernels.h"

#include <stdbool.h>

/* One for each instruction set. */
#define product_compute CPU_KERNEL(product_compute)

struct product {
    int64_t rows, depth, columns;
    const float *a; /* [rows][depth] */
    const float *b; /* [depth][columns], or [columns][depth] if `transposed` */
    bool transposed;
    float *c;          /* [rows][columns] */
    const float *bias; /* [columns] or NULL */
    enum tr_activation activation;
    float slope;
    float *derivative;   /* of a gelu: shape of c, else NULL */
    const float *factor; /* shape of c, or NULL */
};

/* Per output: chain over depth, + bias, activation, * factor. */
tr_status product_compute(struct cpu_device *cpu, const struct product *product);

#endif
