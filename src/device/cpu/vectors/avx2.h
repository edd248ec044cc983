/* vec.h for AVX2 with FMA: 8 floats, masks are vectors of all-ones or all-zeros lanes. */
#ifndef TR_DEVICE_CPU_VEC_AVX2_H
#define TR_DEVICE_CPU_VEC_AVX2_H

#include <immintrin.h>
#include <stdint.h>
#include <string.h>

#define VW      8
#define V_FUSES 1

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

static inline vf v_fnma(vf a, vf b, vf c)
{
    return _mm256_fnmadd_ps(a, b, c);
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

static inline vf v_greater(vf a, vf b)
{
    return _mm256_max_ps(a, b);
}

static inline vf v_lesser(vf a, vf b)
{
    return _mm256_min_ps(a, b);
}

static inline float v_fold(vf v)
{
    const __m128 four = _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
    const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
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

/* ---- comparisons and masks ---- */

static inline vm v_eq(vf a, vf b)
{
    return _mm256_cmp_ps(a, b, _CMP_EQ_OQ);
}

static inline vm v_not_le(vf a, vf b)
{
    return _mm256_cmp_ps(a, b, _CMP_NLE_UQ);
}

static inline vm v_ge(vf a, vf b)
{
    return _mm256_cmp_ps(a, b, _CMP_GE_OQ);
}

static inline vm vm_and(vm a, vm b)
{
    return _mm256_and_ps(a, b);
}

static inline vf v_keep_part(vf v, int64_t n)
{
    return _mm256_and_ps(v, _mm256_castsi256_ps(v_first(n)));
}

/* Whether all |v| < most; a NaN is not. */
#define V_HAS_ALL_WITHIN 1
static inline int v_all_within(vf v, float most)
{
    const vf size = _mm256_andnot_ps(_mm256_set1_ps(-0.0f), v);
    return _mm256_movemask_ps(_mm256_cmp_ps(size, _mm256_set1_ps(most), _CMP_LT_OQ)) == 0xff;
}

/* ---- integers ---- */

typedef __m256i vi;

static inline vi vi_set1(int32_t x)
{
    return _mm256_set1_epi32(x);
}

static inline vi v_bits(vf v)
{
    return _mm256_castps_si256(v);
}

static inline vf v_from_bits(vi v)
{
    return _mm256_castsi256_ps(v);
}

static inline vf v_to_float(vi v)
{
    return _mm256_cvtepi32_ps(v);
}

static inline vi vi_add(vi a, vi b)
{
    return _mm256_add_epi32(a, b);
}

static inline vi vi_sub(vi a, vi b)
{
    return _mm256_sub_epi32(a, b);
}

static inline vi vi_and(vi a, vi b)
{
    return _mm256_and_si256(a, b);
}

static inline vi vi_or(vi a, vi b)
{
    return _mm256_or_si256(a, b);
}

static inline vi vi_xor(vi a, vi b)
{
    return _mm256_xor_si256(a, b);
}

static inline vm vi_eq(vi a, vi b)
{
    return _mm256_castsi256_ps(_mm256_cmpeq_epi32(a, b));
}

static inline vi vi_select(vm m, vi a, vi b)
{
    return _mm256_castps_si256(_mm256_blendv_ps(_mm256_castsi256_ps(b), _mm256_castsi256_ps(a), m));
}

#define vi_shl(a, count) _mm256_slli_epi32(a, count)
#define vi_sar(a, count) _mm256_srai_epi32(a, count)
#define vi_shr(a, count) _mm256_srli_epi32(a, count)

static inline vi vi_mul_wide(vi a, uint32_t b, vi *high)
{
    vi factor = _mm256_set1_epi64x(b);
    vi even = _mm256_mul_epu32(a, factor), odd = _mm256_mul_epu32(_mm256_srli_epi64(a, 32), factor);
    *high = _mm256_blend_epi32(_mm256_srli_epi64(even, 32), odd, 0xaa);
    return _mm256_blend_epi32(even, _mm256_slli_epi64(odd, 32), 0xaa);
}

static inline vi vi_zip4_order(void)
{
    return _mm256_setr_epi32(0, 2, 4, 6, 1, 3, 5, 7);
}

static inline void vi_zip4(vi t[4])
{
    vi low01 = _mm256_unpacklo_epi32(t[0], t[1]), high01 = _mm256_unpackhi_epi32(t[0], t[1]);
    vi low23 = _mm256_unpacklo_epi32(t[2], t[3]), high23 = _mm256_unpackhi_epi32(t[2], t[3]);
    t[0] = _mm256_unpacklo_epi64(low01, low23);
    t[1] = _mm256_unpackhi_epi64(low01, low23);
    t[2] = _mm256_unpacklo_epi64(high01, high23);
    t[3] = _mm256_unpackhi_epi64(high01, high23);
}

static inline vi vi_load_bytes(const uint8_t *p)
{
    return _mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)p));
}

static inline vi vi_load_bytes_part(const uint8_t *p, int64_t n)
{
    uint64_t bytes = 0;
    memcpy(&bytes, p, (size_t)n);
    return _mm256_cvtepu8_epi32(_mm_cvtsi64_si128((long long)bytes));
}

/* The low byte of each lane. */
static inline uint64_t vi_low_bytes(vi v)
{
    __m256i in_quarters = _mm256_shuffle_epi8(v, _mm256_set1_epi32(0x0c080400));
    __m128i packed =
        _mm_unpacklo_epi32(_mm256_castsi256_si128(in_quarters), _mm256_extracti128_si256(in_quarters, 1));
    return (uint64_t)_mm_cvtsi128_si64(packed);
}

static inline void vi_store_bytes(uint8_t *p, vi v)
{
    uint64_t bytes = vi_low_bytes(v);
    memcpy(p, &bytes, sizeof(bytes));
}

static inline void vi_store_bytes_part(uint8_t *p, vi v, int64_t n)
{
    uint64_t bytes = vi_low_bytes(v);
    memcpy(p, &bytes, (size_t)n);
}

#endif
