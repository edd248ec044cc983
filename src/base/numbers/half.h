/* 16-bit floating-point numbers in files of other programs: IEEE 754's binary16 (5 bits of exponent, 10 of
 * fraction), and bfloat16, which is the upper half of a float32. Any thread.
 */
#ifndef TR_BASE_HALF_H
#define TR_BASE_HALF_H

#include <stdint.h>

/* Exact; a NaN keeps its sign and bits. */
float tr_half_to_float(uint16_t half);
float tr_bfloat_to_float(uint16_t bfloat);
/* The nearest number, ties to even; infinity beyond 65504; a NaN stays a NaN. */
uint16_t tr_half_from_float(float value);

#endif
