/* Double-precision functions. Powers are computed with about 100 bits, since the exponent multiplies the
 * relative error of the logarithm.
 */
#include "base/numbers/math.h"

#include <math.h>
#include <string.h>

/* ln 2 in two parts, the upper with 32 bits, so that its products with exponents are exact. */
#define LN2_HIGH 0x1.62e42feep-1
#define LN2_LOW  0x1.a39ef35793c76p-33

/* Adding it rounds to an integer, which is then in the low bits. */
#define SHIFT 0x1.8p52

/* A value as high + low, |low| at most half a unit in the last place of high. */
struct twofold {
    double high, low;
};

static int64_t bits_of(double x)
{
    int64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static double of_bits(int64_t bits)
{
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* 2^n, -1022 <= n <= 1023. */
static double power_of_two(int64_t n)
{
    return of_bits((n + 1023) << 52);
}

/* The polynomial constant[0] + constant[1] x + ... */
static double polynomial(double x, const double *constant, int count)
{
    double sum = constant[count - 1];
    for (int i = count - 2; i >= 0; i--) sum = sum * x + constant[i];
    return sum;
}

/* exp(x + low) for a small low. */
static double exp_twofold(double x, double low)
{
    /* 1 / k!, k from 2; the next term is below 2^-57 for |r| < 0.35. */
    static const double constant[] = {
        0x1p-1,
        0x1.5555555555555p-3,
        0x1.5555555555555p-5,
        0x1.1111111111111p-7,
        0x1.6c16c16c16c17p-10,
        0x1.a01a01a01a01ap-13,
        0x1.a01a01a01a01ap-16,
        0x1.71de3a556c734p-19,
        0x1.27e4fb7789f5cp-22,
        0x1.ae64567f544e4p-26,
        0x1.1eed8eff8d898p-29,
        0x1.6124613a86d09p-33,
    };
    if (x != x) return x;
    if (x > 710) return INFINITY;
    if (x < -746) return 0;
    double whole = (x * 0x1.71547652b82fep0 + SHIFT) - SHIFT;
    double r = ((x - whole * LN2_HIGH) - whole * LN2_LOW) + low;
    double p = r + r * r * polynomial(r, constant, sizeof constant / sizeof constant[0]);
    int64_t n = (int64_t)whole, half = n / 2;
    return (1 + p) * power_of_two(half) * power_of_two(n - half);
}

double tr_exp(double x)
{
    return exp_twofold(x, 0);
}

/* log(m), positive and finite, as 2^e * (1 + f) with sqrt(1/2) <= 1 + f < sqrt(2): returns f, sets e. f is
 * exact. */
static double log_split(double x, double *e)
{
    double bias = 0;
    if (x < 0x1p-1022) {
        x *= 0x1p54;
        bias = -54;
    }
    int64_t exponent = (bits_of(x) - 0x3fe6a09e667f3bcd) >> 52;
    *e = (double)exponent + bias;
    return of_bits(bits_of(x) - (int64_t)((uint64_t)exponent << 52)) - 1;
}

/* With s = f / (2 + f): log(1 + f) = 2 s + s * (2/3 s^2 + 2/5 s^4 + ...). The bracket, for |s| < 0.172. */
static double log_tail(double s)
{
    static const double constant[] = {
        2.0 / 3, 2.0 / 5, 2.0 / 7, 2.0 / 9, 2.0 / 11, 2.0 / 13, 2.0 / 15, 2.0 / 17, 2.0 / 19, 2.0 / 21,
    };
    return s * s * polynomial(s * s, constant, sizeof constant / sizeof constant[0]);
}

double tr_log(double x)
{
    if (x != x || x == INFINITY) return x;
    if (x < 0) return NAN;
    if (x == 0) return -INFINITY;
    double e, f = log_split(x, &e), s = f / (2 + f), square = 0.5 * f * f;
    /* 2 s is f - square + s * square: f is exact, so little is lost. */
    return e * LN2_HIGH + (f - (square - (s * (square + log_tail(s)) + e * LN2_LOW)));
}

/* a + b, |a| >= |b| or a == 0. */
static struct twofold fast_sum(double a, double b)
{
    double high = a + b;
    return (struct twofold){high, b - (high - a)};
}

/* The logarithm of a positive, finite number to about 2^-60 relative. */
static struct twofold log_twofold(double x)
{
    double e, f = log_split(x, &e);
    struct twofold below = fast_sum(2, f);
    double s = f / below.high;
    double rest = (fma(-s, below.high, f) - s * below.low) / below.high;
    /* e * LN2_HIGH is exact; 2 s is smaller than it unless e is 0. */
    struct twofold sum = fast_sum(e * LN2_HIGH, 2 * s);
    double low = sum.low + (2 * rest + (s * log_tail(s) + e * LN2_LOW));
    return fast_sum(sum.high, low);
}

const struct tr_cosine tr_cosine = {
    .most = 1e6,
    .quarters = 0x1.45f306dc9c883p-1,
    .shift = SHIFT,
    .part = {0x1.921fb544p0, 0x1.0b4611a6p-34,
             0x1.3198a2e037073p-69}, /* pi / 2; the first two have 33 bits */
    .even =
        {
            1,
            -1.0 / 2,
            1.0 / 24,
            -1.0 / 720,
            1.0 / 40320,
            -1.0 / 3628800,
            1.0 / 479001600,
            -1.0 / 87178291200,
            1.0 / 20922789888000,
        },
    .odd =
        {
            1,
            -1.0 / 6,
            1.0 / 120,
            -1.0 / 5040,
            1.0 / 362880,
            -1.0 / 39916800,
            1.0 / 6227020800,
            -1.0 / 1307674368000,
            1.0 / 355687428096000,
        },
};

double tr_cos(double x)
{
    const struct tr_cosine *of = &tr_cosine;
    if (!(x >= -of->most && x <= of->most)) return NAN;
    double quarters = (x * of->quarters + of->shift) - of->shift;
    double r = ((x - quarters * of->part[0]) - quarters * of->part[1]) - quarters * of->part[2];
    double square = r * r;
    int64_t quarter = (int64_t)quarters & 3;
    double value = quarter % 2 ? r * polynomial(square, of->odd, sizeof of->odd / sizeof of->odd[0])
                               : polynomial(square, of->even, sizeof of->even / sizeof of->even[0]);
    return quarter == 1 || quarter == 2 ? -value : value;
}

static struct twofold product(struct twofold a, struct twofold b)
{
    double high = a.high * b.high;
    if (high == 0 || high - high != 0) return (struct twofold){high, 0}; /* zero, infinite or NaN */
    return fast_sum(high, fma(a.high, b.high, -high) + (a.high * b.low + a.low * b.high));
}

double tr_pow_int(double base, int64_t n)
{
    struct twofold power = {base, 0}, result = {1, 0};
    uint64_t left = n < 0 ? 0 - (uint64_t)n : (uint64_t)n;
    if (n < 0) {
        /* The reciprocal first: results that are subnormal would otherwise pass through infinity. */
        power.high = 1 / base;
        if (power.high - power.high == 0 && power.high != 0) power.low = fma(-power.high, base, 1) / base;
    }
    while (left) {
        if (left & 1) result = product(result, power);
        left >>= 1;
        if (left) power = product(power, power);
    }
    return result.high;
}

double tr_pow(double base, double x)
{
    if (x > -0x1p53 && x < 0x1p53 && x == (double)(int64_t)x) return tr_pow_int(base, (int64_t)x);
    if (base != base || x != x) return base + x;
    if (base < 0) return NAN;
    if (base == 0) return x > 0 ? 0 : INFINITY;
    if (base == 1) return 1;
    if (base == INFINITY) return x > 0 ? INFINITY : 0;
    struct twofold logarithm = log_twofold(base);
    double high = x * logarithm.high;
    if (!(high > -746 && high < 710)) return high > 0 ? INFINITY : 0;
    return exp_twofold(high, fma(x, logarithm.high, -high) + x * logarithm.low);
}
