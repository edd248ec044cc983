/* Numbers of 16 bits, in files of others: IEEE 754's binary16 (5 bits of exponent, 10 of fraction), and
 * bfloat16, which is the upper half of a float32. Any thread.
 */
#ifndef TR_BASE_HALF_H
#define TR_BASE_HALF_H

#include <stdint.h>

/* Exact; a NaN keeps its sign and bits. */
float tr_half_to_float(uint16_t half);
float tr_bfloat_to_float(uint16_t bfloat);
/* The nearest, of two that are equally near the even one; beyond 65504 infinity; a NaN stays one. */
uint16_t tr_half_from_float(float value);

#endif
