/* vec.h in plain C: one float. Slow where the machine has no fma instruction, but the same bytes. */
#ifndef TR_DEVICE_CPU_VEC_PLAIN_H
#define TR_DEVICE_CPU_VEC_PLAIN_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#define VW 1

typedef float vf;
typedef int vm;

static inline vf v_load(const float *p)
{
    return *p;
}

static inline void v_store(float *p, vf v)
{
    *p = v;
}

static inline vf v_load_part(const float *p, int64_t n)
{
    return n > 0 ? *p : 0.0f;
}

static inline void v_store_part(float *p, vf v, int64_t n)
{
    if (n > 0) *p = v;
}

static inline vf v_zero(void)
{
    return 0.0f;
}

static inline vf v_set1(float x)
{
    return x;
}

static inline vf v_fma(vf a, vf b, vf c)
{
    return fmaf(a, b, c);
}

static inline vf v_fnma(vf a, vf b, vf c)
{
    return fmaf(-a, b, c);
}

static inline vf v_add(vf a, vf b)
{
    return a + b;
}

static inline vf v_sub(vf a, vf b)
{
    return a - b;
}

static inline vf v_mul(vf a, vf b)
{
    return a * b;
}

static inline vf v_div(vf a, vf b)
{
    return a / b;
}

static inline vf v_sqrt(vf a)
{
    return sqrtf(a);
}

static inline vm v_lt(vf a, vf b)
{
    return a < b;
}

static inline vm v_gt(vf a, vf b)
{
    return a > b;
}

static inline vf v_select(vm m, vf a, vf b)
{
    return m ? a : b;
}

static inline vf v_greater(vf a, vf b)
{
    return a > b ? a : b;
}

static inline vf v_lesser(vf a, vf b)
{
    return a < b ? a : b;
}

static inline float v_fold(vf v)
{
    return v;
}

static inline void v_transpose(vf t[VW])
{
    (void)t;
}

/* ---- comparisons and masks ---- */

static inline vm v_eq(vf a, vf b)
{
    return a == b;
}

static inline vm v_not_le(vf a, vf b)
{
    return !(a <= b);
}

static inline vm v_ge(vf a, vf b)
{
    return a >= b;
}

static inline vm vm_and(vm a, vm b)
{
    return a && b;
}

static inline vf v_keep_part(vf v, int64_t n)
{
    return n > 0 ? v : 0.0f;
}

/* ---- integers ---- */

typedef int32_t vi;

static inline vi vi_set1(int32_t x)
{
    return x;
}

static inline vi v_bits(vf v)
{
    vi bits;
    memcpy(&bits, &v, sizeof(bits));
    return bits;
}

static inline vf v_from_bits(vi v)
{
    vf x;
    memcpy(&x, &v, sizeof(x));
    return x;
}

static inline vf v_to_float(vi v)
{
    return (float)v;
}

static inline vi vi_add(vi a, vi b)
{
    return (vi)((uint32_t)a + (uint32_t)b);
}

static inline vi vi_sub(vi a, vi b)
{
    return (vi)((uint32_t)a - (uint32_t)b);
}

static inline vi vi_and(vi a, vi b)
{
    return a & b;
}

static inline vi vi_or(vi a, vi b)
{
    return a | b;
}

static inline vi vi_xor(vi a, vi b)
{
    return a ^ b;
}

static inline vm vi_eq(vi a, vi b)
{
    return a == b;
}

static inline vi vi_select(vm m, vi a, vi b)
{
    return m ? a : b;
}

#define vi_shl(a, count) ((vi)((uint32_t)(a) << (count)))
#define vi_sar(a, count) ((a) >> (count))
#define vi_shr(a, count) ((vi)((uint32_t)(a) >> (count)))

static inline vi vi_mul_wide(vi a, uint32_t b, vi *high)
{
    uint64_t product = (uint64_t)(uint32_t)a * b;
    *high = (vi)(uint32_t)(product >> 32);
    return (vi)(uint32_t)product;
}

static inline vi vi_zip4_order(void)
{
    return 0;
}

static inline void vi_zip4(vi t[4])
{
    (void)t;
}

static inline vi vi_load_bytes(const uint8_t *p)
{
    return *p;
}

static inline vi vi_load_bytes_part(const uint8_t *p, int64_t n)
{
    return n > 0 ? *p : 0;
}

static inline void vi_store_bytes(uint8_t *p, vi v)
{
    *p = (uint8_t)v;
}

static inline void vi_store_bytes_part(uint8_t *p, vi v, int64_t n)
{
    if (n > 0) *p = (uint8_t)v;
}

#endif
