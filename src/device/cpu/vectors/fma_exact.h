/* a * b + c with one rounding on vectors, for processors without an instruction for it.
 *
 * The product of two floats is exact in double. Its sum s with c is not, and rounding it a second time, to
 * float, may go wrong where s lies half way between two floats. So s is rounded to odd where it is
 * inexact: truncated, with its last bit set (Boldo and Melquiond 2008, "Emulation of FMA and correctly
 * rounded sums: proved algorithms using rounding to odd"): 53 bits are enough for 24, subnormal results
 * included.
 *
 * It is called, not inlined: about 30 instructions at each place of an unrolled loop would fill the
 * instruction cache and slow compilation.
 *
 * Invariant: the bits are those of fmaf(), except for the payload of a NaN.
 */
#ifndef TR_DEVICE_CPU_FMA_EXACT_H
#define TR_DEVICE_CPU_FMA_EXACT_H

#include <stdint.h>

typedef float fma_floats __attribute__((vector_size(16)));
typedef double fma_doubles __attribute__((vector_size(32)));
typedef int64_t fma_words __attribute__((vector_size(32)));

/* In every case. */
static inline fma_floats fma_exact_odd(fma_floats a, fma_floats b, fma_floats c)
{
    fma_doubles p = __builtin_convertvector(a, fma_doubles) * __builtin_convertvector(b, fma_doubles);
    fma_doubles z = __builtin_convertvector(c, fma_doubles), s = p + z;
    /* The error of s, exactly; NaN where s is not finite. */
    fma_doubles of_z = s - p, rest = (p - (s - of_z)) + (z - of_z);
    fma_doubles outward = rest * s; /* its sign: whether the exact sum lies farther from 0 than s */
    fma_words bits = (fma_words)s, step = (outward < 0) - (outward > 0), even = (bits & 1) - 1;
    return __builtin_convertvector((fma_doubles)(bits + (step & even)), fma_floats);
}

#ifdef __SSE2__

#include <emmintrin.h>

/* Rarely called: where a lane may need its last bit. */
static __attribute__((noinline, cold, unused)) fma_floats fma_exact_rare(fma_floats a, fma_floats b,
                                                                         fma_floats c)
{
    return fma_exact_odd(a, b, c);
}

/* Which lanes of two pairs of sums may round wrongly: those half way between two floats, and those that
   become subnormal, which are half way elsewhere. */
static inline __m128i fma_exact_doubts(__m128d first, __m128d second)
{
    const __m128 a = _mm_castpd_ps(first), b = _mm_castpd_ps(second);
    const __m128i low = _mm_castps_si128(_mm_shuffle_ps(a, b, _MM_SHUFFLE(2, 0, 2, 0)));
    const __m128i high = _mm_castps_si128(_mm_shuffle_ps(a, b, _MM_SHUFFLE(3, 1, 3, 1)));
    const __m128i size = _mm_and_si128(high, _mm_set1_epi32(0x7fffffff));
    const __m128i half =
        _mm_cmpeq_epi32(_mm_and_si128(low, _mm_set1_epi32(0x1fffffff)), _mm_set1_epi32(0x10000000));
    const __m128i tiny = _mm_and_si128(_mm_cmpgt_epi32(size, _mm_setzero_si128()),
                                       _mm_cmplt_epi32(size, _mm_set1_epi32(0x38100000))); /* 2^-126 */
    return _mm_or_si128(half, tiny);
}

static __attribute__((noinline, unused)) fma_floats fma_exact(fma_floats a, fma_floats b, fma_floats c)
{
    const __m128 x = (__m128)a, y = (__m128)b, z = (__m128)c;
    const __m128d first = _mm_add_pd(_mm_mul_pd(_mm_cvtps_pd(x), _mm_cvtps_pd(y)), _mm_cvtps_pd(z));
    const __m128d second =
        _mm_add_pd(_mm_mul_pd(_mm_cvtps_pd(_mm_movehl_ps(x, x)), _mm_cvtps_pd(_mm_movehl_ps(y, y))),
                   _mm_cvtps_pd(_mm_movehl_ps(z, z)));
    if (__builtin_expect(_mm_movemask_epi8(fma_exact_doubts(first, second)) != 0, 0))
        return fma_exact_rare(a, b, c);
    return (fma_floats)_mm_movelh_ps(_mm_cvtpd_ps(first), _mm_cvtpd_ps(second));
}

#else

static __attribute__((noinline, unused)) fma_floats fma_exact(fma_floats a, fma_floats b, fma_floats c)
{
    return fma_exact_odd(a, b, c);
}

#endif

#endif
