/* The functions of base/numbers/mathf.h on whole ranges of float32: what vectors and devices are compared
 * with. */
#ifndef TESTS_DEVICE_FUNCTIONS_H
#define TESTS_DEVICE_FUNCTIONS_H

#include <stdint.h>

#define FUNCTIONS       5 /* exp, log, tanh, sigmoid, erf */
#define FUNCTIONS_BLOCK 1024

/* in[i] has the bits first + i * stride. */
void functions_inputs(uint64_t first, uint64_t stride, int count, float *in);
/* out [count][FUNCTIONS]; `count` is a multiple of FUNCTIONS_BLOCK. */
void functions_of(const float *in, int count, float *out);
/* Fails the test where `got` differs from `expected`, NaN being equal to NaN. */
void functions_compare(const char *who, const float *in, int count, const float *expected, const float *got);

#endif
