/* Vectors of floats, one tiny layer per instruction set.
 *
 * A kernel source is written once on this layer and compiled once per instruction set; the build defines
 * TR_ISA_AVX512, TR_ISA_AVX2, TR_ISA_NEON or TR_ISA_PLAIN. Every header gives the type `vf` of VW floats and
 * the same functions. Each lane does exactly what the scalar operation of the same name does, so that results
 * never depend on the width.
 *
 *   v_load, v_store             any alignment
 *   v_load_part(p, n)           the first n of VW floats, the others +0; never touches memory beyond n
 *   v_store_part(p, v, n)       likewise; 0 <= n <= VW
 *   v_zero, v_set1(x)
 *   v_fma(a, b, c)              a * b + c with one rounding
 *   v_add, v_sub, v_mul, v_div, v_sqrt
 *   v_lt, v_gt                  comparisons into a mask `vm`; false where a side is NaN
 *   v_select(m, a, b)           m ? a : b
 *   v_transpose(t)              rows become columns of VW vectors
 */
#ifndef TR_DEVICE_CPU_VEC_H
#define TR_DEVICE_CPU_VEC_H

#include <stdint.h>

#if defined(TR_ISA_AVX512)
#include "device/cpu/vec_avx512.h"
#elif defined(TR_ISA_AVX2)
#include "device/cpu/vec_avx2.h"
#elif defined(TR_ISA_NEON)
#include "device/cpu/vec_neon.h"
#else
#include "device/cpu/vec_plain.h"
#endif

#endif
