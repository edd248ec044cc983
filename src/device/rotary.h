/* The angle by which a pair of numbers turns from a token to the next, as ops/attention.h defines it. */
#ifndef TR_DEVICE_ROTARY_H
#define TR_DEVICE_ROTARY_H

#include "base/numbers/math.h"
#include "device/ops/attention.h"

static inline double tr_rotary_turn(const struct tr_op_rotary *a, int64_t k)
{
    const double f = tr_pow(a->base, -2.0 * (double)k / (double)a->size);
    if (!(a->original > 0)) return f / a->factor;
    const double tokens = 0x1.921fb54442d18p2 / f;
    if (tokens < a->original / a->high) return f;
    if (tokens > a->original / a->low) return f / a->factor;
    const double u = (a->original / tokens - a->low) / (a->high - a->low);
    return (1 - u) * f / a->factor + u * f;
}

#endif
