/* Normal numbers from uniform ones, fast and with the same bits on every machine.
 *
 * The inverse of the normal distribution function, z(p), in double arithmetic without libm and contraction.
 * With s = 2p - 1 and L = -ln(1 - s^2), the quotient z / s is a smooth function of L, from sqrt(pi / 2) at L
 * = 0, growing like the root of L: one rational function covers it down to the last 32-bit number, without
 * branches, so that compilers can vectorize loops over it.
 *
 * Relative error below 2e-9, a thirtieth of a float's rounding, which the tests check against erfc.
 */
#ifndef TR_OPTIM_NORMAL_H
#define TR_OPTIM_NORMAL_H

#include <stdint.h>
#include <string.h>

/* -ln(x) for normal x > 0; absolute error below 2e-11. */
static inline double normal_minus_log(double x)
{
    /* x = 2^k m with m in [sqrt(1/2), sqrt(2)). */
    const uint64_t root_half = 0x3FE6A09E667F3BCD, one = (uint64_t)1023 << 52;
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    uint64_t biased = (bits - root_half + one) >> 52;
    uint64_t mantissa = bits - (biased << 52) + one;
    /* k as a double without a conversion from 64 bits, which vectors of two lack: 2^52 + k + 1023, less 2^52
     * + 1023. */
    uint64_t shifted = biased | 0x4330000000000000;
    double k, m;
    memcpy(&k, &shifted, sizeof k);
    memcpy(&m, &mantissa, sizeof m);
    k -= 0x1p52 + 1023;
    /* ln(m) = 2 artanh(r), |r| < 0.172: the series up to r^11. */
    double r = (m - 1) / (m + 1), q = r * r;
    double series = 1.0 / 11;
    series = series * q + 1.0 / 9;
    series = series * q + 1.0 / 7;
    series = series * q + 1.0 / 5;
    series = series * q + 1.0 / 3;
    series = series * q + 1;
    return -(k * 0x1.62e42fefa39efp-1 + 2 * r * series);
}

/* z(p) for s = 2p - 1, |s| <= 1 - 2^-32. Odd in s. */
static inline double normal_quantile(double s)
{
    double t = normal_minus_log((1 - s) * (1 + s)) * (2 / 21.5) - 1;
    double p = 0x1.87940e014ec27p-7;
    p = p * t + 0x1.7fbec74312295p-2;
    p = p * t + 0x1.67d761ecb7804p+1;
    p = p * t + 0x1.4115e9410daf3p+3;
    p = p * t + 0x1.42d4f8d88a44ep+4;
    p = p * t + 0x1.7be65f93f30fdp+4;
    p = p * t + 0x1.ef9a9600a100cp+3;
    p = p * t + 0x1.19bc222a008cfp+2;
    double q = 0x1.3ea3f35226c6ep-6;
    q = q * t + 0x1.eb115b7c66b58p-3;
    q = q * t + 0x1.24e84a5afa505p+0;
    q = q * t + 0x1.6915fdb8877cep+1;
    q = q * t + 0x1.f8316a5b76179p+1;
    q = q * t + 0x1.7e8bdb8dc37e9p+1;
    q = q * t + 1;
    return s * (p / q);
}

/* A random word as s in (-1, 1), symmetric about 0 and never 0: (2 word + 1) / 2^32 - 1, exactly. */
static inline double normal_symmetric(uint32_t word)
{
    return (double)(int32_t)(word ^ 0x80000000u) * 0x1p-31 + 0x1p-32;
}

#endif
