#include "device/gpu/rounding.h"

#include "base/alloc.h"
#include "base/numbers/mathf.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

/* Pairs that are gathered, and what became of them. */
struct trial {
    division_function judged;
    float *in, *out;
    int64_t count;
};

static bool same(float a, float b)
{
    return tr_mathf_bits(a) == tr_mathf_bits(b) || (isnan(a) && isnan(b));
}

static void judge(struct trial *trial)
{
    trial->judged(trial->in, trial->out, trial->count);
    for (int64_t i = 0; i < trial->count; i++) {
        float a = trial->in[2 * i], b = trial->in[2 * i + 1];
        float quotient = trial->out[2 * i], root = trial->out[2 * i + 1];
        if (!same(quotient, a / b))
            fail_msg("%a / %a is %a, not %a", (double)a, (double)b, (double)quotient, (double)(a / b));
        if (!same(root, sqrtf(a)))
            fail_msg("the root of %a is %a, not %a", (double)a, (double)root, (double)sqrtf(a));
    }
    trial->count = 0;
}

static struct trial begin(division_function judged)
{
    struct trial trial = {.judged = judged,
                          .in = tr_alloc((size_t)ROUNDING_CHUNK * 2, sizeof(float)),
                          .out = tr_alloc((size_t)ROUNDING_CHUNK * 2, sizeof(float))};
    assert_true(trial.in && trial.out);
    return trial;
}

static void end(struct trial *trial)
{
    judge(trial);
    tr_free(trial->in);
    tr_free(trial->out);
}

static inline void add(struct trial *trial, uint32_t a, uint32_t b)
{
    trial->in[2 * trial->count] = tr_mathf_float((int32_t)a);
    trial->in[2 * trial->count + 1] = tr_mathf_float((int32_t)b);
    if (++trial->count == ROUNDING_CHUNK) judge(trial);
}

/* ---- corners ---- */

/* Around each of them lie others: 0, the subnormal numbers, the least normal ones, 1, 2, the greatest, the
   infinities, NaN; powers of two, among them those whose quotients are at the ends of the range. */
static int list_corners(uint32_t *list)
{
    static const uint32_t middle[] = {0x00000000, 0x00000100, 0x00400000, 0x00800000, 0x01000000, 0x0c000000,
                                      0x1f800000, 0x20000000, 0x33800000, 0x34000000, 0x3f000000, 0x3f800000,
                                      0x40000000, 0x40400000, 0x4b000000, 0x5f000000, 0x5f800000, 0x7e800000,
                                      0x7f000000, 0x7f800000, 0x7fc00000};
    int count = 0;
    for (size_t i = 0; i < sizeof middle / sizeof middle[0]; i++)
        for (uint32_t near = 0; near < 9; near++)
            for (uint32_t sign = 0; sign < 2; sign++)
                list[count++] = ((middle[i] + near - 4) & 0x7fffffff) | sign << 31;
    return count;
}

/* The dividend whose quotient by `divisor` is (2 n + 1) / 2 units of a subnormal number, or just beside it.
 */
static void add_halves(struct trial *trial, uint32_t divisor)
{
    float b = tr_mathf_float((int32_t)divisor);
    for (uint32_t n = 1; n < 0x1000000; n = 2 * n + 1) {
        float half = (float)n * 0x1p-75f * (b * 0x1p-75f); /* n odd: n / 2 units of 2^-149 */
        uint32_t a = (uint32_t)tr_mathf_bits(half);
        for (uint32_t near = 0; near < 5 && a > 2 && a < 0x7f000000; near++)
            add(trial, a + near - 2, divisor);
    }
}

void division_corners(division_function judged)
{
    uint32_t list[512];
    int count = list_corners(list);
    struct trial trial = begin(judged);
    for (int i = 0; i < count; i++)
        for (int j = 0; j < count; j++) add(&trial, list[i], list[j]);
    for (uint32_t exponent = 100; exponent < 255; exponent++)
        for (uint32_t significand = 0; significand < 0x800000; significand += 0x800000 / 61)
            add_halves(&trial, exponent << 23 | significand);
    end(&trial);
}

/* ---- significands ---- */

void division_significands(division_function judged, uint32_t step)
{
    static const uint32_t exponents[] = {0, 1, 64, 126, 127, 191, 254}; /* 0: subnormal numbers */
    static const uint32_t others[] = {0x3f800000, 0x3fffffff, 0x3f800001, 0x3fb504f3, 0x00800001, 0x7f7fffff};
    struct trial trial = begin(judged);
    for (size_t e = 0; e < sizeof exponents / sizeof exponents[0]; e++)
        for (uint32_t significand = 0; significand < 0x800000; significand += step) {
            uint32_t bits = exponents[e] << 23 | significand;
            for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
                if (i == e % 6 || i < 2) add(&trial, bits, others[i]);
                if (i == e % 6 || i < 2) add(&trial, others[i], bits);
            }
        }
    end(&trial);
}

/* ---- quotients that are nearly half way between two floats ---- */

/* The number whose product with an odd one is 1, modulo 2^32. */
static uint32_t inverse(uint32_t odd)
{
    uint32_t found = odd; /* of the last three bits */
    for (int i = 0; i < 4; i++) found *= 2 - odd * found;
    return found;
}

/* Of an odd divisor b of 24 bits: the m of 25 bits, odd as the middle between two floats is, for which m b is
   `off` more than a multiple of 2^bits; that multiple, if it has 24 bits to tell, as the dividend. The
   quotient is then m - off / b. */
static void add_nearly_half(struct trial *trial, uint32_t b, int32_t off, uint32_t bits)
{
    uint32_t m = (inverse(b) * (uint32_t)off) & ((1u << bits) - 1);
    if (bits == 24) m |= 1u << 24;
    uint64_t a = ((uint64_t)m * b - (uint64_t)(int64_t)off) >> bits;
    if (m >> 24 == 1 && a >> 23 == 1)
        add(trial, 0x3f800000 | (uint32_t)(a & 0x7fffff), 0x3f800000 | (b & 0x7fffff));
}

void division_nearly_half(division_function judged, uint32_t step)
{
    struct trial trial = begin(judged);
    for (uint32_t b = 0x800001; b < 0x1000000; b += 2 * step)
        for (int32_t off = -3; off <= 3; off += 2)
            for (uint32_t bits = 24; bits <= 25; bits++) add_nearly_half(&trial, b, off, bits);
    end(&trial);
}

/* ---- random pairs ---- */

/* A permutation of the 64-bit numbers whose values look random: that of SplitMix64. */
static inline uint64_t scatter(uint64_t number)
{
    number *= 0x9e3779b97f4a7c15u;
    number = (number ^ number >> 30) * 0xbf58476d1ce4e5b9u;
    number = (number ^ number >> 27) * 0x94d049bb133111ebu;
    return number ^ number >> 31;
}

void division_random(division_function judged, int64_t pairs)
{
    struct trial trial = begin(judged);
    for (int64_t i = 0; i < pairs; i++) {
        uint64_t word = scatter((uint64_t)i + 1);
        uint32_t a = (uint32_t)word, b = (uint32_t)(word >> 32);
        if (i % 4 == 1 || i % 4 == 2) { /* exponents in the middle; the quotient is a normal number */
            a = (a & 0x807fffff) | (64 + (a >> 23) % 128) << 23;
            b = (b & 0x807fffff) | (64 + (b >> 23) % 128) << 23;
        } else if (i % 4 == 3) { /* a subnormal quotient, or nearly */
            uint32_t exponent = 1 + (a >> 23) % 120;
            a = (a & 0x807fffff) | exponent << 23;
            b = (b & 0x807fffff) | (exponent + 125 + (b >> 23) % 10) << 23;
        }
        add(&trial, a, b);
    }
    end(&trial);
}

/* ---- fused multiply-adds ---- */

struct fma_trial {
    fma_function judged;
    float *in, *out;
    int64_t count;
};

static void judge_fma(struct fma_trial *trial)
{
    trial->judged(trial->in, trial->out, trial->count);
    for (int64_t i = 0; i < trial->count; i++) {
        float a = trial->in[3 * i], b = trial->in[3 * i + 1], c = trial->in[3 * i + 2],
              expected = fmaf(a, b, c);
        if (!same(trial->out[i], expected))
            fail_msg("fma(%a, %a, %a) is %a, not %a", (double)a, (double)b, (double)c, (double)trial->out[i],
                     (double)expected);
    }
    trial->count = 0;
}

static struct fma_trial begin_fma(fma_function judged)
{
    struct fma_trial trial = {.judged = judged,
                              .in = tr_alloc((size_t)ROUNDING_CHUNK * 3, sizeof(float)),
                              .out = tr_alloc((size_t)ROUNDING_CHUNK, sizeof(float))};
    assert_true(trial.in && trial.out);
    return trial;
}

static void end_fma(struct fma_trial *trial)
{
    judge_fma(trial);
    tr_free(trial->in);
    tr_free(trial->out);
}

static inline void add_fma(struct fma_trial *trial, float a, float b, float c)
{
    float *at = trial->in + 3 * trial->count;
    at[0] = a;
    at[1] = b;
    at[2] = c;
    if (++trial->count == ROUNDING_CHUNK) judge_fma(trial);
}

static float float_of(uint32_t bits)
{
    return tr_mathf_float((int32_t)bits);
}

void fma_corners(fma_function judged)
{
    uint32_t list[512];
    int count = list_corners(list);
    struct fma_trial trial = begin_fma(judged);
    for (int i = 0; i < count; i += 3)
        for (int j = 0; j < count; j += 3)
            for (int k = i % 2; k < count; k += 2)
                add_fma(&trial, float_of(list[i]), float_of(list[j]), float_of(list[k]));
    end_fma(&trial);
}

void fma_random(fma_function judged, int64_t triples)
{
    struct fma_trial trial = begin_fma(judged);
    for (int64_t i = 0; i < triples; i++) {
        uint64_t word = scatter((uint64_t)i + 1), more = scatter(~(uint64_t)i);
        uint32_t a = (uint32_t)word, b = (uint32_t)(word >> 32), c = (uint32_t)more,
                 kind = (uint32_t)(more >> 32);
        if (kind % 8 > 1) a = (a & 0x807fffff) | (64 + (a >> 23) % 128) << 23;
        if (kind % 8 > 1) b = (b & 0x807fffff) | (64 + (b >> 23) % 128) << 23;
        float x = float_of(a), y = float_of(b), z = float_of(c);
        if (kind % 8 == 2) z = -(x * y);                                   /* the error of the product */
        if (kind % 8 == 3) z = -(x * y) * float_of(0x3f800000 | (c & 15)); /* a sum that nearly cancels */
        if (kind % 8 == 4)
            z = x * y * float_of((104 + c % 48) << 23); /* that decides a rounding, or is decided */
        if (kind % 8 == 5) z = float_of((c & 0x807fffff) | (uint32_t)(64 + c / 8 % 128) << 23);
        if (kind % 8 == 6)
            x = x * 0x1p-60f, y = float_of((b & 0x807fffff) | (60 + c % 8) << 23); /* subnormal, about */
        if (kind % 8 == 6) z = float_of(c & 0x80ffffff);
        if (kind % 8 == 7)
            x = float_of(0x3f800000 | (a & 0xfff)), y = float_of(0x3f800000 | (b & 0xfff000)),
            z = x * y * float_of((126 - 24 + c % 3) << 23); /* halves of the last place */
        add_fma(&trial, x, y, z);
    }
    end_fma(&trial);
}
