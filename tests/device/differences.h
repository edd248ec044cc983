/* Checks gradients against finite differences of a float32 forward computation.
 *
 * The derivative is taken by five points, (8 (f(h) - f(-h)) - (f(2h) - f(-2h))) / 12 h. For smooth functions
 * with values and derivatives of order 1, h = 2^-5 keeps the fourth-order remainder below 1e-6, and the
 * rounding of float32 outputs, 2^-24 / h each, contributes some 1e-6 times the root of the number of outputs
 * that one input moves. Linear functions have no remainder, so there h = 1 makes their rounding harmless
 * however many terms they sum. Gradients must agree within DIFFERENCES_TOLERANCE * (1 + |gradient|), which
 * leaves a factor of five, and is far from what a wrong factor, sign, index or missing term would give.
 */
#ifndef TESTS_DEVICE_DIFFERENCES_H
#define TESTS_DEVICE_DIFFERENCES_H

#include <stdint.h>

#define DIFFERENCES_TOLERANCE 1e-4
/* Values for `step`. */
#define DIFFERENCES_SMOOTH 0x1p-5f
#define DIFFERENCES_LINEAR 1.0f

/* The scalar that is differentiated: runs the forward operation and weighs its outputs. */
typedef double (*differences_scalar)(void *user);

/* Checks gradient[i] against the difference quotient in value[i] for i in [begin, end); value is restored.
   Fails the running cmocka test with `what`, the index and both derivatives. */
void differences_check(const char *what, differences_scalar scalar, void *user, float step, float *value,
                       const float *gradient, int64_t begin, int64_t end);

/* sum of weight[i] * y[i], in double. */
double differences_weigh(int64_t count, const float *y, const float *weight);

/* `count` numbers of magnitude 0.25 to 1, either sign, different for every stream. Returned, free with
 * tr_free(). */
float *differences_numbers(int64_t count, uint32_t stream);
/* `count` zeros. Returned, free with tr_free(). */
float *differences_zeros(int64_t count);
/* Frees `count` of them. */
void differences_release(int count, float **arrays);

#endif
