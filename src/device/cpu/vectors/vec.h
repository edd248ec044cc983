/* Vectors of floats: a small layer for each instruction set.
 *
 * A kernel source is written once on this layer and compiled once per instruction set; the build defines
 * TR_ISA_AVX512, TR_ISA_AVX2, TR_ISA_NEON or TR_ISA_PLAIN. Every header gives the type `vf` of VW floats
 * and the same functions. Each lane computes exactly the scalar operation of the same name, so that
 * results never depend on the width.
 *
 *   v_load, v_store             any alignment
 *   v_load_part(p, n)           the first n of VW floats, the others +0; never touches memory beyond n
 *   v_store_part(p, v, n)       likewise; 0 <= n <= VW
 *   v_zero, v_set1(x)
 *   v_fma(a, b, c)              a * b + c with one rounding
 *   v_fnma(a, b, c)             -a * b + c with one rounding
 *   v_add, v_sub, v_mul, v_div, v_sqrt
 *   v_lt, v_gt                  comparisons into a mask `vm`; false where a side is NaN
 *   v_select(m, a, b)           m ? a : b
 *   v_greater(a, b)             a > b ? a : b, so b where a side is NaN; v_lesser likewise
 *   v_fold(v)                   the sum of the lanes: a half is added to the lower one until one lane is left
 *   v_transpose(t)              rows become columns of VW vectors
 *   v_eq, v_ge; v_not_le        like v_lt; not (a <= b): true where a side is NaN
 *   vm_and                      of masks
 *   v_keep_part(v, n)           the first n of VW lanes, the others +0
 *
 * and of VW 32-bit integers, `vi`, whose arithmetic wraps:
 *   vi_set1, vi_add, vi_sub, vi_and, vi_or, vi_xor, vi_eq, vi_select
 *   vi_shl, vi_shr, vi_sar      shifts by a constant: left, right, right with the sign
 *   v_bits, v_from_bits         reinterpret
 *   v_to_float                  converts (rounds above 2^24)
 *   vi_mul_wide(a, b, &high)    the low words of the unsigned 64-bit products, and the high ones
 *   vi_load_bytes, vi_store_bytes (and _part): VW bytes, one to a lane, zero-extended and cut off
 *   vi_zip4(t)                  t[w] holds words w of VW four-word items; afterwards t[0..3] hold the items
 * one after the other, when lane i held item vi_zip4_order()[i]
 */
#ifndef TR_DEVICE_CPU_VEC_H
#define TR_DEVICE_CPU_VEC_H

#include <stdint.h>

/* For small functions with a function or constant as argument, which must be known where they are inlined. */
#define V_INLINE static inline __attribute__((always_inline))

/* Whether kernels are compiled for each shape of a tile by itself, so that its numbers stay in registers.
   Without vector instructions there is one copy for all shapes: separate ones gain little, and are rarely
   run. */
#ifdef TR_ISA_PLAIN
#define V_SHAPES 0
#else
#define V_SHAPES 1
#endif

/* For loops of a constant number of iterations whose variables should become registers. */
#if !V_SHAPES
#define V_UNROLL
#elif defined(__clang__)
#define V_UNROLL _Pragma("clang loop unroll(full)")
#else
#define V_UNROLL _Pragma("GCC unroll 16")
#endif

/* Keeps a vector that several operations use in a register; compilers load it again for each. */
#if defined(__x86_64__)
#define V_KEEP(x) __asm__("" : "+v"(x))
#else
#define V_KEEP(x) (void)(x)
#endif

#if defined(TR_ISA_AVX512)
#include "device/cpu/vectors/avx512.h"
#elif defined(TR_ISA_AVX2)
#include "device/cpu/vectors/avx2.h"
#elif defined(TR_ISA_NEON)
#include "device/cpu/vectors/neon.h"
#else
#include "device/cpu/vectors/compiler.h"
#endif

#endif
