/* The sum of a gradient of weights over the subtrees of its microbatches (device/cpu/subtrees.h). */
#ifndef TR_DEVICE_CPU_SUBTREE_SUMS_H
#define TR_DEVICE_CPU_SUBTREE_SUMS_H

#include "device/cpu/kernels.h"
#include "device/cpu/subtrees.h"

/* One for each instruction set. */
#define subtrees_add CPU_KERNEL(subtrees_add)

/* Adds the sums of all members to those of the first, dw and db, along the tree over the subtrees. */
void subtrees_add(struct cpu_device *cpu, const struct subtrees *subtrees, float *dw, float *db);

#endif
