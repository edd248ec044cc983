/* gelu and its derivative, for elementwise operations and for tiles that end with a gelu. */
#ifndef TR_DEVICE_CPU_GELU_H
#define TR_DEVICE_CPU_GELU_H

#include "device/cpu/vectors/math.h"
#include "device/ops.h"

#define GELU_INNER 0x1.6a09e6p-1f /* 1 / sqrt(2) */
#define GELU_PDF   0x1.988454p-2f /* 1 / sqrt(2 pi) */

/* The approximation of the normal distribution that gelu uses: the error function or the hyperbolic
   tangent. `activation` is a constant where this is inlined. */
V_INLINE vf gelu_core(enum tr_activation activation, vf x)
{
    if (activation == TR_ACT_GELU) return v_erf(v_mul(x, v_set1(GELU_INNER)));
    return v_tanh(v_mul(x, v_fma(v_mul(x, x), v_set1(0x1.2444f2p-5f), v_set1(0x1.988454p-1f))));
}

V_INLINE vf gelu(enum tr_activation activation, vf x)
{
    return v_mul(v_mul(v_set1(0.5f), x), v_add(v_set1(1.0f), gelu_core(activation, x)));
}

/* y and dy/dx, given the core of x. */
V_INLINE void gelu_finish(enum tr_activation activation, vf x, vf core, vf *y, vf *derivative)
{
    const vf half = v_set1(0.5f), above = v_add(v_set1(1.0f), core), cdf = v_mul(half, above);
    *y = v_mul(v_mul(half, x), above);
    if (activation == TR_ACT_GELU) {
        const vf pdf = v_mul(v_exp(v_mul(v_set1(-0.5f), v_mul(x, x))), v_set1(GELU_PDF));
        *derivative = v_fma(x, pdf, cdf);
    } else {
        const vf inner = v_fma(v_mul(x, x), v_set1(0x1.b6676cp-4f), v_set1(0x1.988454p-1f));
        const vf outer = v_mul(v_mul(half, x), v_fnma(core, core, v_set1(1.0f)));
        *derivative = v_fma(outer, inner, cdf);
    }
}

V_INLINE void gelu_both(enum tr_activation activation, vf x, vf *y, vf *derivative)
{
    gelu_finish(activation, x, gelu_core(activation, x), y, derivative);
}

#endif
