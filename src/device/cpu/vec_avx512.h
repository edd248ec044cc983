/* vec.h for AVX-512 (F, BW, DQ, VL): 16 floats, masks in their own registers. */
#ifndef TR_DEVICE_CPU_VEC_AVX512_H
#define TR_DEVICE_CPU_VEC_AVX512_H

#include <immintrin.h>
#include <stdint.h>

#define VW 16

typedef __m512 vf;
typedef __mmask16 vm;

static inline vf v_load(const float *p)
{
    return _mm512_loadu_ps(p);
}

static inline void v_store(float *p, vf v)
{
    _mm512_storeu_ps(p, v);
}

static inline __mmask16 v_first(int64_t n)
{
    return (__mmask16)((1u << n) - 1);
}

static inline vf v_load_part(const float *p, int64_t n)
{
    return _mm512_maskz_loadu_ps(v_first(n), p);
}

static inline void v_store_part(float *p, vf v, int64_t n)
{
    _mm512_mask_storeu_ps(p, v_first(n), v);
}

static inline vf v_zero(void)
{
    return _mm512_setzero_ps();
}

static inline vf v_set1(float x)
{
    return _mm512_set1_ps(x);
}

static inline vf v_fma(vf a, vf b, vf c)
{
    return _mm512_fmadd_ps(a, b, c);
}

static inline vf v_add(vf a, vf b)
{
    return _mm512_add_ps(a, b);
}

static inline vf v_sub(vf a, vf b)
{
    return _mm512_sub_ps(a, b);
}

static inline vf v_mul(vf a, vf b)
{
    return _mm512_mul_ps(a, b);
}

static inline vf v_div(vf a, vf b)
{
    return _mm512_div_ps(a, b);
}

static inline vf v_sqrt(vf a)
{
    return _mm512_sqrt_ps(a);
}

static inline vm v_lt(vf a, vf b)
{
    return _mm512_cmp_ps_mask(a, b, _CMP_LT_OQ);
}

static inline vm v_gt(vf a, vf b)
{
    return _mm512_cmp_ps_mask(a, b, _CMP_GT_OQ);
}

static inline vf v_select(vm m, vf a, vf b)
{
    return _mm512_mask_blend_ps(m, b, a);
}

static inline void v_transpose(vf t[VW])
{
    vf u[VW];
    for (int i = 0; i < 16; i += 2) {
        u[i] = _mm512_unpacklo_ps(t[i], t[i + 1]);
        u[i + 1] = _mm512_unpackhi_ps(t[i], t[i + 1]);
    }
    /* Within each 128-bit quarter q of row group g (4 rows): t[4g + j] holds column 4q + j of rows 4g..4g+3.
     */
    for (int i = 0; i < 16; i += 4) {
        t[i] = _mm512_shuffle_ps(u[i], u[i + 2], 0x44);
        t[i + 1] = _mm512_shuffle_ps(u[i], u[i + 2], 0xee);
        t[i + 2] = _mm512_shuffle_ps(u[i + 1], u[i + 3], 0x44);
        t[i + 3] = _mm512_shuffle_ps(u[i + 1], u[i + 3], 0xee);
    }
    for (int j = 0; j < 4; j++) {
        u[j] = _mm512_shuffle_f32x4(t[j], t[4 + j], 0x88);     /* quarters 0 and 2 of groups 0 and 1 */
        u[4 + j] = _mm512_shuffle_f32x4(t[j], t[4 + j], 0xdd); /* quarters 1 and 3 */
        u[8 + j] = _mm512_shuffle_f32x4(t[8 + j], t[12 + j], 0x88);
        u[12 + j] = _mm512_shuffle_f32x4(t[8 + j], t[12 + j], 0xdd);
    }
    for (int j = 0; j < 4; j++) {
        t[j] = _mm512_shuffle_f32x4(u[j], u[8 + j], 0x88);
        t[8 + j] = _mm512_shuffle_f32x4(u[j], u[8 + j], 0xdd);
        t[4 + j] = _mm512_shuffle_f32x4(u[4 + j], u[12 + j], 0x88);
        t[12 + j] = _mm512_shuffle_f32x4(u[4 + j], u[12 + j], 0xdd);
    }
}

#endif
