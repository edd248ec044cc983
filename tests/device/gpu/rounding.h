/* Quotients, square roots and fused multiply-adds of whoever computes them, against this processor's own, to
 * the bit. */
#ifndef TESTS_DEVICE_GPU_ROUNDING_H
#define TESTS_DEVICE_GPU_ROUNDING_H

#include <stdint.h>

enum { ROUNDING_CHUNK = 1 << 20 }; /* pairs or triples that are judged at once, at most */

/* out[2 i] = in[2 i] / in[2 i + 1], out[2 i + 1] = the square root of in[2 i], for `count` pairs. */
typedef void (*division_function)(const float *in, float *out, int64_t count);

/* All of these fail the test with both results where one differs; which NaN it is does not matter. */

/* Each special number and its neighbours by each: zeros, subnormal numbers, ends of the range, infinities,
   NaN; and quotients that lie half way between two subnormal numbers, or next to it. */
void division_corners(division_function judged);
/* Every `step`-th significand of several exponents as divisor and as dividend, beside several others; its
   root. 1: all of them. */
void division_significands(division_function judged, uint32_t step);
/* The hardest: quotients next to the middle between two floats, for every `step`-th odd divisor. */
void division_nearly_half(division_function judged, uint32_t step);
/* Random pairs: of any bits, with normal quotients, with subnormal ones. */
void division_random(division_function judged, int64_t pairs);

/* out[i] = fma(in[3 i], in[3 i + 1], in[3 i + 2]), for `count` triples. */
typedef void (*fma_function)(const float *in, float *out, int64_t count);
/* Special numbers and their neighbours, each with each. */
void fma_corners(fma_function judged);
/* Random triples: of any bits; with sums of about the same size as the product, of either sign, whose high
   bits cancel or which decide a rounding; with subnormal products and sums. */
void fma_random(fma_function judged, int64_t triples);

#endif
