/* vec.h on the compiler's vector types, for any processor: 8 floats where it has registers of 32 bytes,
 * else 4. Masks are vectors of all-ones or all-zeros lanes. Where the processor has no fused multiply-add,
 * fma_exact.h computes its bits.
 */
#ifndef TR_DEVICE_CPU_VEC_COMPILER_H
#define TR_DEVICE_CPU_VEC_COMPILER_H

#include "device/cpu/vectors/fma_exact.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

#ifdef __AVX__
#define VW 8
#else
#define VW 4
#endif

#if defined(__FMA__) || defined(__ARM_FEATURE_FMA) || defined(__FP_FAST_FMAF)
#define V_FUSES 1
#else
#define V_FUSES 0
#endif

typedef float vf __attribute__((vector_size(4 * VW)));
typedef int32_t vi __attribute__((vector_size(4 * VW)));
typedef uint32_t vu __attribute__((vector_size(4 * VW)));
typedef vi vm;
typedef uint8_t vbytes __attribute__((vector_size(VW)));

#ifdef __clang__
#define V_SHUFFLE(a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#else
#define V_SHUFFLE(a, b, ...) __builtin_shuffle(a, b, (vi){__VA_ARGS__})
#endif

/* For every lane. */
#define V_LANES(i) for (int i = 0; i < VW; i++)

static inline vf v_load(const float *p)
{
    vf v;
    memcpy(&v, p, sizeof(v));
    return v;
}

static inline void v_store(float *p, vf v)
{
    memcpy(p, &v, sizeof(v));
}

static inline vf v_load_part(const float *p, int64_t n)
{
    float lane[VW] = {0};
    V_LANES(i) if (i < n) lane[i] = p[i];
    return v_load(lane);
}

static inline void v_store_part(float *p, vf v, int64_t n)
{
    V_LANES(i) if (i < n) p[i] = v[i];
}

static inline vf v_zero(void)
{
    return (vf){0};
}

static inline vf v_set1(float x)
{
    return x - (vf){0}; /* the bits of x, -0 included */
}

static inline vi vi_set1(int32_t x)
{
    return x + (vi){0};
}

static inline vi v_bits(vf v)
{
    return (vi)v;
}

static inline vf v_from_bits(vi v)
{
    return (vf)v;
}

static inline vf v_fma(vf a, vf b, vf c)
{
#if V_FUSES
    vf r;
    V_LANES(i) r[i] = __builtin_fmaf(a[i], b[i], c[i]);
    return r;
#elif VW == 4
    return fma_exact(a, b, c);
#else
    vf r;
    fma_floats x[VW / 4], y[VW / 4], z[VW / 4];
    memcpy(x, &a, sizeof(x));
    memcpy(y, &b, sizeof(y));
    memcpy(z, &c, sizeof(z));
    for (int i = 0; i < VW / 4; i++) z[i] = fma_exact(x[i], y[i], z[i]);
    memcpy(&r, z, sizeof(r));
    return r;
#endif
}

static inline vf v_fnma(vf a, vf b, vf c)
{
    return v_fma(-a, b, c);
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
    V_LANES(i) a[i] = sqrtf(a[i]);
    return a;
}

/* ---- comparisons and masks ---- */

static inline vm v_lt(vf a, vf b)
{
    return a < b;
}

static inline vm v_gt(vf a, vf b)
{
    return a > b;
}

static inline vm v_eq(vf a, vf b)
{
    return a == b;
}

static inline vm v_not_le(vf a, vf b)
{
    return ~(vm)(a <= b);
}

static inline vm v_ge(vf a, vf b)
{
    return a >= b;
}

static inline vm vm_and(vm a, vm b)
{
    return a & b;
}

static inline vi vi_select(vm m, vi a, vi b)
{
    return (m & a) | (~m & b);
}

static inline vf v_select(vm m, vf a, vf b)
{
    return (vf)vi_select(m, (vi)a, (vi)b);
}

static inline vf v_greater(vf a, vf b)
{
    return v_select(a > b, a, b);
}

static inline vf v_lesser(vf a, vf b)
{
    return v_select(a < b, a, b);
}

static inline vf v_keep_part(vf v, int64_t n)
{
    vm kept;
    V_LANES(i) kept[i] = i < n ? -1 : 0;
    return (vf)((vi)v & kept);
}

/* ---- across lanes ---- */

static inline float v_fold(vf v)
{
    float lane[VW];
    v_store(lane, v);
    for (int half = VW / 2; half > 0; half /= 2)
        for (int i = 0; i < half; i++) lane[i] += lane[i + half];
    return lane[0];
}

/* Swaps the upper right and the lower left of squares of squares. */
static inline void v_transpose(vf t[VW])
{
    vf u[VW];
#if VW == 8
    for (int i = 0; i < 4; i++) {
        u[i] = V_SHUFFLE(t[i], t[i + 4], 0, 1, 2, 3, 8, 9, 10, 11);
        u[i + 4] = V_SHUFFLE(t[i], t[i + 4], 4, 5, 6, 7, 12, 13, 14, 15);
    }
    for (int i = 0; i < 8; i += i & 1 ? 3 : 1) {
        t[i] = V_SHUFFLE(u[i], u[i + 2], 0, 1, 8, 9, 4, 5, 12, 13);
        t[i + 2] = V_SHUFFLE(u[i], u[i + 2], 2, 3, 10, 11, 6, 7, 14, 15);
    }
    for (int i = 0; i < 8; i += 2) {
        u[i] = V_SHUFFLE(t[i], t[i + 1], 0, 8, 2, 10, 4, 12, 6, 14);
        u[i + 1] = V_SHUFFLE(t[i], t[i + 1], 1, 9, 3, 11, 5, 13, 7, 15);
    }
    memcpy(t, u, sizeof(u));
#else
    for (int i = 0; i < 2; i++) {
        u[i] = V_SHUFFLE(t[i], t[i + 2], 0, 1, 4, 5);
        u[i + 2] = V_SHUFFLE(t[i], t[i + 2], 2, 3, 6, 7);
    }
    for (int i = 0; i < 4; i += 2) {
        t[i] = V_SHUFFLE(u[i], u[i + 1], 0, 4, 2, 6);
        t[i + 1] = V_SHUFFLE(u[i], u[i + 1], 1, 5, 3, 7);
    }
#endif
}

/* ---- integers ---- */

static inline vf v_to_float(vi v)
{
    return __builtin_convertvector(v, vf);
}

static inline vi vi_add(vi a, vi b)
{
    return (vi)((vu)a + (vu)b);
}

static inline vi vi_sub(vi a, vi b)
{
    return (vi)((vu)a - (vu)b);
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

#define vi_shl(a, count) ((vi)((vu)(a) << (count)))
#define vi_sar(a, count) ((a) >> (count))
#define vi_shr(a, count) ((vi)((vu)(a) >> (count)))

static inline vi vi_mul_wide(vi a, uint32_t b, vi *high)
{
    vi low, upper;
    V_LANES(i)
    {
        uint64_t product = (uint64_t)(uint32_t)a[i] * b;
        low[i] = (int32_t)(uint32_t)product;
        upper[i] = (int32_t)(uint32_t)(product >> 32);
    }
    *high = upper;
    return low;
}

static inline vi vi_zip4_order(void)
{
    vi order;
    V_LANES(i) order[i] = i;
    return order;
}

static inline void vi_zip4(vi t[4])
{
    int32_t items[4 * VW];
    V_LANES(i) for (int w = 0; w < 4; w++) items[4 * i + w] = t[w][i];
    memcpy(t, items, sizeof(items));
}

static inline vi vi_load_bytes(const uint8_t *p)
{
    vbytes bytes;
    memcpy(&bytes, p, sizeof(bytes));
    return __builtin_convertvector(bytes, vi);
}

static inline vi vi_load_bytes_part(const uint8_t *p, int64_t n)
{
    uint8_t bytes[VW] = {0};
    V_LANES(i) if (i < n) bytes[i] = p[i];
    return vi_load_bytes(bytes);
}

static inline void vi_store_bytes(uint8_t *p, vi v)
{
    vbytes bytes = __builtin_convertvector(v, vbytes);
    memcpy(p, &bytes, sizeof(bytes));
}

static inline void vi_store_bytes_part(uint8_t *p, vi v, int64_t n)
{
    V_LANES(i) if (i < n) p[i] = (uint8_t)v[i];
}

#endif
