/* exp, log, tanh, sigmoid and erf in float32, the same bits on every machine, in vectors and on accelerators.
 *
 * The sequences of operations are in base/numbers/mathf.inc, which vector code instantiates too. All
 * functions are pure and may be called from any thread; infinities, NaN, signed zeros and subnormal numbers
 * are handled as in Annex F of C11.
 */
#ifndef TR_BASE_MATHF_H
#define TR_BASE_MATHF_H

#include <math.h>
#include <stdint.h>
#include <string.h>

static inline int32_t tr_mathf_bits(float x)
{
    int32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static inline float tr_mathf_float(int32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

#define M_NAME(name)           tr_mathf_##name
#define M_F                    float
#define M_I                    int32_t
#define M_SET(c)               (c)
#define M_SET_INT(c)           (c)
#define M_INFINITY             __builtin_inff()
#define M_NAN                  __builtin_nanf("")
#define M_FMA(a, b, c)         fmaf(a, b, c)
#define M_ADD(a, b)            ((a) + (b))
#define M_SUB(a, b)            ((a) - (b))
#define M_MUL(a, b)            ((a) * (b))
#define M_DIV(a, b)            ((a) / (b))
#define M_LESS(a, b, yes, no)  ((a) < (b) ? (yes) : (no))
#define M_EQUAL(a, b, yes, no) ((a) == (b) ? (yes) : (no))
#define M_BITS(x)              tr_mathf_bits(x)
#define M_FLOAT(bits)          tr_mathf_float(bits)
#define M_TO_FLOAT(n)          ((float)(n))
/* Through uint32_t, where wrapping is defined. */
#define M_IADD(a, b)    ((int32_t)((uint32_t)(a) + (uint32_t)(b)))
#define M_ISUB(a, b)    ((int32_t)((uint32_t)(a) - (uint32_t)(b)))
#define M_AND(a, b)     ((a) & (b))
#define M_OR(a, b)      ((a) | (b))
#define M_SHL(a, count) ((int32_t)((uint32_t)(a) << (count)))
#define M_SHR(a, count) ((a) >> (count))
#include "base/numbers/mathf.inc"

static inline float tr_expf(float x)
{
    return tr_mathf_exp(x);
}

/* log(+-0) is -inf; log of a negative number is NaN. */
static inline float tr_logf(float x)
{
    return tr_mathf_log(x);
}

static inline float tr_tanhf(float x)
{
    return tr_mathf_tanh(x);
}

static inline float tr_sigmoidf(float x)
{
    return tr_mathf_sigmoid(x);
}

static inline float tr_erff(float x)
{
    return tr_mathf_erf(x);
}

/* x, but +0 where |x| < 2^-100. */
static inline float tr_flushf(float x)
{
    return tr_mathf_flush(x);
}

#endif
