/* vec.h for AVX2 with FMA: 8 floats, masks are vectors of all-ones or all-zeros lanes. */
#ifndef TR_DEVICE_CPU_VEC_AVX2_H
#define TR_DEVICE_CPU_VEC_AVX2_H

#include <immintrin.h>
#include <stdint.h>

#define VW 8

typedef __m256 vf;
typedef __m256 vm;

static inline vf v_load(const float *p)
{
    return _mm256_loadu_ps(p);
}

static inline void v_store(float *p, vf v)
{
    _mm256_storeu_ps(p, v);
}

static inline __m256i v_first(int64_t n)
{
    return _mm256_cmpgt_epi32(_mm256_set1_epi32((int)n), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}

static inline vf v_load_part(const float *p, int64_t n)
{
    return _mm256_maskload_ps(p, v_first(n));
}

static inline void v_store_part(float *p, vf v, int64_t n)
{
    _mm256_maskstore_ps(p, v_first(n), v);
}

static inline vf v_zero(void)
{
    return _mm256_setzero_ps();
}

static inline vf v_set1(float x)
{
    return _mm256_set1_ps(x);
}

static inline vf v_fma(vf a, vf b, vf c)
{
    return _mm256_fmadd_ps(a, b, c);
}

static inline vf v_add(vf a, vf b)
{
    return _mm256_add_ps(a, b);
}

static inline vf v_sub(vf a, vf b)
{
    return _mm256_sub_ps(a, b);
}

static inline vf v_mul(vf a, vf b)
{
    return _mm256_mul_ps(a, b);
}

static inline vf v_div(vf a, vf b)
{
    return _mm256_div_ps(a, b);
}

static inline vf v_sqrt(vf a)
{
    return _mm256_sqrt_ps(a);
}

static inline vm v_lt(vf a, vf b)
{
    return _mm256_cmp_ps(a, b, _CMP_LT_OQ);
}

static inline vm v_gt(vf a, vf b)
{
    return _mm256_cmp_ps(a, b, _CMP_GT_OQ);
}

static inline vf v_select(vm m, vf a, vf b)
{
    return _mm256_blendv_ps(b, a, m);
}

static inline void v_transpose(vf t[VW])
{
    vf u[VW];
    for (int i = 0; i < 8; i += 2) {
        u[i] = _mm256_unpacklo_ps(t[i], t[i + 1]);
        u[i + 1] = _mm256_unpackhi_ps(t[i], t[i + 1]);
    }
    for (int i = 0; i < 8; i += 4) {
        t[i] = _mm256_shuffle_ps(u[i], u[i + 2], 0x44);
        t[i + 1] = _mm256_shuffle_ps(u[i], u[i + 2], 0xee);
        t[i + 2] = _mm256_shuffle_ps(u[i + 1], u[i + 3], 0x44);
        t[i + 3] = _mm256_shuffle_ps(u[i + 1], u[i + 3], 0xee);
    }
    for (int j = 0; j < 4; j++) {
        u[j] = _mm256_permute2f128_ps(t[j], t[4 + j], 0x20);
        u[4 + j] = _mm256_permute2f128_ps(t[j], t[4 + j], 0x31);
    }
    for (int j = 0; j < 8; j++) t[j] = u[j];
}

#endif
