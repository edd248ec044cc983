/* Small pieces of arithmetic that several operations of `ref` share: lane sums, the maximum, activations. */
#ifndef TR_DEVICE_REF_SCALAR_H
#define TR_DEVICE_REF_SCALAR_H

#include "base/numbers/mathf.h"
#include "device/ops.h"

#include <assert.h>
#include <math.h>
#include <stdbool.h>

#define REF_LANES 16

/* Ends a lane sum: combines the 16 lanes in the order of device/ops.h. Overwrites `lane`. */
static inline float ref_lanes_total(float lane[REF_LANES])
{
    for (int half = REF_LANES / 2; half > 0; half /= 2)
        for (int j = 0; j < half; j++) lane[j] += lane[j + half];
    return lane[0];
}

/* Whether a later value replaces the kept one in a maximum: the first of equal values stays, NaN wins over
 * numbers.
 */
static inline bool ref_replaces(float later, float kept)
{
    return later > kept || (later != later && kept == kept);
}

/* Where the maximum of x [width] is, width >= 1. */
static inline int64_t ref_greatest(int64_t width, const float *x)
{
    int64_t best = 0;
    for (int64_t k = 1; k < width; k++)
        if (ref_replaces(x[k], x[best])) best = k;
    return best;
}

/* The error function part of GELU: erf(x / sqrt(2)). */
static inline float ref_gelu_erf(float x)
{
    return tr_erff(x * 0x1.6a09e6p-1f);
}

/* The same with the hyperbolic tangent, which approximates the error function. */
static inline float ref_gelu_tanh(float x)
{
    return tr_tanhf(x * fmaf(x * x, 0x1.2444f2p-5f, 0x1.988454p-1f));
}

/* hard_swish over x: a straight line from 0 at -3 to 1 at 3. */
static inline float ref_hard_gate(float x)
{
    const float t = x + 3;
    return (0 > t ? 0 : t > 6 ? 6 : t) * 0x1.555556p-3f;
}

static inline float ref_activate(enum tr_activation activation, float slope, float x)
{
    switch (activation) {
    case TR_ACT_NONE:
        return x;
    case TR_ACT_RELU:
        return 0 > x ? 0 : x;
    case TR_ACT_LEAKY_RELU:
        return 0 > x ? slope * x : x;
    case TR_ACT_TANH:
        return tr_tanhf(x);
    case TR_ACT_SIGMOID:
        return tr_sigmoidf(x);
    case TR_ACT_GELU:
        return (0.5f * x) * (1 + ref_gelu_erf(x));
    case TR_ACT_GELU_TANH:
        return (0.5f * x) * (1 + ref_gelu_tanh(x));
    case TR_ACT_SILU:
        return x * tr_sigmoidf(x);
    case TR_ACT_HARD_SWISH:
        return x * ref_hard_gate(x);
    case TR_ACT_RELU6:
        return 0 > x ? 0 : x > 6 ? 6 : x;
    }
    assert(!"an activation of enum tr_activation");
    return x;
}

/* The end of a row of a dense or convolution layer, after its chains: y = act(y + b), y [width], b [width]
 * or NULL.
 */
static inline void ref_finish_row(int64_t width, const float *b, enum tr_activation activation, float slope,
                                  float *y)
{
    for (int64_t j = 0; j < width; j++) y[j] = ref_activate(activation, slope, b ? y[j] + b[j] : y[j]);
}

#endif
