/* Arithmetic of counts and sizes, none of which is negative. */
#ifndef TR_DEVICE_CPU_SIZES_H
#define TR_DEVICE_CPU_SIZES_H

#include "device/cpu/cpu.h"

static inline int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static inline int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* How many times b covers a: the quotient, rounded up. */
static inline int64_t divide_up(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}

/* Rounds up to where the next part of a scratch may begin. */
static inline int64_t floats_round(int64_t floats)
{
    return (int64_t)(cpu_round((size_t)floats * sizeof(float)) / sizeof(float));
}

#endif
