/* exp, log, tanh, sigmoid and erf on vectors: v_exp(), v_log(), v_tanh(), v_sigmoid(), v_erf(). Each lane has
 * the bits of tr_expf() and so on, since both are made from base/numbers/mathf.inc. */
#ifndef TR_DEVICE_CPU_VEC_MATH_H
#define TR_DEVICE_CPU_VEC_MATH_H

#include "device/cpu/vectors/vec.h"

#define M_NAME(name)           v_##name
#define M_F                    vf
#define M_I                    vi
#define M_SET(c)               v_set1(c)
#define M_SET_INT(c)           vi_set1(c)
#define M_INFINITY             __builtin_inff()
#define M_NAN                  __builtin_nanf("")
#define M_FMA(a, b, c)         v_fma(a, b, c)
#define M_ADD(a, b)            v_add(a, b)
#define M_SUB(a, b)            v_sub(a, b)
#define M_MUL(a, b)            v_mul(a, b)
#define M_DIV(a, b)            v_div(a, b)
#define M_LESS(a, b, yes, no)  v_select(v_lt(a, b), yes, no)
#define M_GREATER(a, b)        v_greater(a, b)
#define M_LESSER(a, b)         v_lesser(a, b)
#define M_EQUAL(a, b, yes, no) v_select(v_eq(a, b), yes, no)
#define M_BITS(x)              v_bits(x)
#define M_FLOAT(bits)          v_from_bits(bits)
#define M_TO_FLOAT(n)          v_to_float(n)
#define M_IADD(a, b)           vi_add(a, b)
#define M_ISUB(a, b)           vi_sub(a, b)
#define M_AND(a, b)            vi_and(a, b)
#define M_OR(a, b)             vi_or(a, b)
#define M_SHL(a, count)        vi_shl(a, count)
#define M_SHR(a, count)        vi_sar(a, count)
#ifdef V_HAS_SCALE
#define M_SCALE(x, n) v_scale_by(x, v_sub(n, v_set1(M_SHIFT)))
#endif
#ifdef V_HAS_ALL_WITHIN
#define M_ALL_WITHIN(x, most) v_all_within(x, most)
#endif
#include "base/numbers/mathf.inc"

#endif
