/* Placing buffers with known lifetimes in one block of memory.
 *
 * Time is an integer that counts the events of a step. Two buffers may share memory only if their
 * lifetimes do not overlap. Greedy by size: the largest first, each at the lowest offset that is free
 * during its life; on typical networks this is within a few per cent of the optimum.
 */
#ifndef TR_TENSOR_PLANNER_H
#define TR_TENSOR_PLANNER_H

#include "trireme/status.h"

#include <stddef.h>

struct tr_interval {
    size_t bytes;
    int first, last; /* alive from event `first` to event `last`, both included */
    size_t offset;   /* set by tr_plan(); a multiple of 64 */
};

/* Sets every offset and *total. Buffers of 0 bytes get offset 0. TR_ENOMEM when scratch memory fails. Any
 * thread. */
tr_status tr_plan(struct tr_interval *intervals, size_t count, size_t *total);

#endif
