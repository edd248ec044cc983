/* Sums and maxima of rows in 16 fixed lanes, whatever the width of a vector: the "lane sum" of device/ops.h.
 *
 * Invariant: lanes past the end of a row add +0, which changes no sum that began with +0.
 */
#ifndef TR_DEVICE_CPU_LANES_H
#define TR_DEVICE_CPU_LANES_H

#include "device/cpu/vectors/vec.h"

#include <stdbool.h>

#define LANES        16
#define LANE_VECTORS (LANES / VW)

/* Sixteen floats. */
struct lanes {
    vf part[LANE_VECTORS];
};

/* For every vector of a `struct lanes`, by number. */
#define LANES_EACH(v) for (int v = 0; v < LANE_VECTORS; v++)

/* How many of the VW floats at vector v of a block exist, when n of the block do. */
static inline int64_t lanes_count(int64_t n, int v)
{
    int64_t left = n - v * VW;
    return left < 0 ? 0 : left > VW ? VW : left;
}

V_INLINE struct lanes lanes_set1(float x)
{
    struct lanes l;
    LANES_EACH(v) l.part[v] = v_set1(x);
    return l;
}

/* The first n >= 1 of sixteen floats, the others +0; n may be larger. */
V_INLINE struct lanes lanes_load(const float *p, int64_t n)
{
    struct lanes l;
    if (n >= LANES) {
        LANES_EACH(v) l.part[v] = v_load(p + v * VW);
    } else {
        /* The address of an empty part may lie past the end of the array, so it is not computed. */
        LANES_EACH(v) l.part[v] = v * VW < n ? v_load_part(p + v * VW, lanes_count(n, v)) : v_zero();
    }
    return l;
}

V_INLINE void lanes_store(float *p, struct lanes l, int64_t n)
{
    if (n >= LANES) {
        LANES_EACH(v) v_store(p + v * VW, l.part[v]);
    } else {
        for (int v = 0; v * VW < n; v++) v_store_part(p + v * VW, l.part[v], lanes_count(n, v));
    }
}

/* The first n lanes, the others +0. */
V_INLINE struct lanes lanes_keep(struct lanes l, int64_t n)
{
    if (n < LANES) LANES_EACH(v) l.part[v] = v_keep_part(l.part[v], lanes_count(n, v));
    return l;
}

V_INLINE struct lanes lanes_add(struct lanes a, struct lanes b)
{
    LANES_EACH(v) a.part[v] = v_add(a.part[v], b.part[v]);
    return a;
}

V_INLINE struct lanes lanes_sub(struct lanes a, struct lanes b)
{
    LANES_EACH(v) a.part[v] = v_sub(a.part[v], b.part[v]);
    return a;
}

V_INLINE struct lanes lanes_mul(struct lanes a, struct lanes b)
{
    LANES_EACH(v) a.part[v] = v_mul(a.part[v], b.part[v]);
    return a;
}

V_INLINE struct lanes lanes_div(struct lanes a, struct lanes b)
{
    LANES_EACH(v) a.part[v] = v_div(a.part[v], b.part[v]);
    return a;
}

V_INLINE struct lanes lanes_fma(struct lanes a, struct lanes b, struct lanes c)
{
    LANES_EACH(v) c.part[v] = v_fma(a.part[v], b.part[v], c.part[v]);
    return c;
}

V_INLINE struct lanes lanes_fnma(struct lanes a, struct lanes b, struct lanes c)
{
    LANES_EACH(v) c.part[v] = v_fnma(a.part[v], b.part[v], c.part[v]);
    return c;
}

/* Combines the lanes in the order of the definition. */
V_INLINE float lanes_total(struct lanes l)
{
    for (int n = LANE_VECTORS / 2; n > 0; n /= 2)
        for (int v = 0; v < n; v++) l.part[v] = v_add(l.part[v], l.part[v + n]);
    return v_fold(l.part[0]);
}

/* Whether a later value replaces the kept one in a maximum: it is greater, or it is NaN and the kept one
 * is not.
 */
V_INLINE vm v_replaces(vf later, vf kept)
{
    return vm_and(v_not_le(later, kept), v_eq(kept, kept));
}

/* Keeps the greater of each pair of lanes; those of `later` are of later elements. */
V_INLINE struct lanes lanes_greater(struct lanes kept, struct lanes later)
{
    LANES_EACH(v)
    {
        vm replaces = v_replaces(later.part[v], kept.part[v]);
        kept.part[v] = v_select(replaces, later.part[v], kept.part[v]);
    }
    return kept;
}

/* The maximum of x [width], width >= 1: NaN if there is any. Of zeros of both signs either may result;
 * results computed from maxima do not depend on that.
 */
V_INLINE float lanes_maximum(const float *x, int64_t width)
{
    float lane[LANES];
    if (width >= LANES) {
        struct lanes kept = lanes_load(x, LANES);
        /* The last block overlaps the one before it, which does not change a maximum. */
        for (int64_t k = LANES; k < width; k += LANES)
            kept = lanes_greater(kept, lanes_load(k + LANES <= width ? x + k : x + width - LANES, LANES));
        lanes_store(lane, kept, LANES);
    } else {
        for (int64_t k = 0; k < LANES; k++) lane[k] = x[k < width ? k : 0];
    }
    for (int half = LANES / 2; half > 0; half /= 2) {
        for (int j = 0; j < half; j++) {
            float kept = lane[j], later = lane[j + half];
            bool replaces = (later > kept) | ((later != later) & (kept == kept));
            lane[j] = replaces ? later : kept;
        }
    }
    return lane[0];
}

#endif
