/* exp, log, cos and powers in double precision for computations of the host: schedules and initial values.
 *
 * The results of libm differ between its versions; these do not: they are fixed sequences of IEEE operations.
 * Accurate to about 1e-15 relative (cos: 1e-15 absolute), which the tests check; not meant for inner loops
 * over tensors, which have base/numbers/mathf.h. All functions are pure. Any thread.
 */
#ifndef TR_BASE_MATH_H
#define TR_BASE_MATH_H

#include <stdint.h>

/* Infinite above 709.78; subnormal below -708.39; +0 below -745.13. */
double tr_exp(double x);

/* -inf at either zero, NaN below. */
double tr_log(double x);

/* |x| <= 1e6 (radians); NaN beyond, where the reduction by multiples of pi would lose its accuracy. */
double tr_cos(double x);

/* The constants of tr_cos(), for devices that compute it themselves. With w = x * quarters, rounded to an
   integer by adding and subtracting `shift`, r = x - w * part[0] - w * part[1] - w * part[2], each product
   and difference rounded, the value is the polynomial `even` of r * r for an even w, r times the
   polynomial `odd` for an odd one (Horner's rule without fma), negated where w % 4 is 1 or 2; NaN beyond
   `most`. */
extern const struct tr_cosine {
    double most, quarters, shift, part[3], even[9], odd[9];
} tr_cosine;

/* base to an integer power; 1 for n == 0, whatever the base. */
double tr_pow_int(double base, int64_t n);

/* base to any power, base >= 0 (NaN for a negative base unless x is an integer). Equals tr_pow_int() where
 * x is an integer below 2^53 in magnitude.
 */
double tr_pow(double base, double x);

#endif
