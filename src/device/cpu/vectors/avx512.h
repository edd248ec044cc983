/* vec.h for AVX-512 (F, BW, DQ, VL): 16 floats, masks in their own registers. */
#ifndef TR_DEVICE_CPU_VEC_AVX512_H
#define TR_DEVICE_CPU_VEC_AVX512_H

#include <immintrin.h>
#include <stdint.h>
#include <string.h>

#define VW      16
#define V_FUSES 1

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

static inline vf v_fnma(vf a, vf b, vf c)
{
    return _mm512_fnmadd_ps(a, b, c);
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

/* Columns k to k + VW - 1 of VW rows, transposed. Loading quarters of rows into their places uses half of
   the arithmetic ports and not just one, which takes two thirds of the time. */
#define V_HAS_LOAD_TRANSPOSED 1
static inline void v_load_transposed(vf t[VW], const float *const row[VW], int64_t k)
{
    for (int q = 0; q < 4; q++) {
        vf part[4]; /* rows i, 4 + i, 8 + i, 12 + i, columns 4q to 4q + 3 */
        for (int i = 0; i < 4; i++) {
            part[i] = _mm512_castps128_ps512(_mm_loadu_ps(row[i] + k + 4 * q));
            part[i] = _mm512_insertf32x4(part[i], _mm_loadu_ps(row[4 + i] + k + 4 * q), 1);
            part[i] = _mm512_insertf32x4(part[i], _mm_loadu_ps(row[8 + i] + k + 4 * q), 2);
            part[i] = _mm512_insertf32x4(part[i], _mm_loadu_ps(row[12 + i] + k + 4 * q), 3);
        }
        const __m512d low01 = _mm512_castps_pd(_mm512_unpacklo_ps(part[0], part[1]));
        const __m512d high01 = _mm512_castps_pd(_mm512_unpackhi_ps(part[0], part[1]));
        const __m512d low23 = _mm512_castps_pd(_mm512_unpacklo_ps(part[2], part[3]));
        const __m512d high23 = _mm512_castps_pd(_mm512_unpackhi_ps(part[2], part[3]));
        t[4 * q] = _mm512_castpd_ps(_mm512_unpacklo_pd(low01, low23));
        t[4 * q + 1] = _mm512_castpd_ps(_mm512_unpackhi_pd(low01, low23));
        t[4 * q + 2] = _mm512_castpd_ps(_mm512_unpacklo_pd(high01, high23));
        t[4 * q + 3] = _mm512_castpd_ps(_mm512_unpackhi_pd(high01, high23));
    }
}

/* x * 2^n with one rounding, n integral; only this set has an instruction for it. */
#define V_HAS_SCALE 1
static inline vf v_scale_by(vf x, vf n)
{
    return _mm512_scalef_ps(x, n);
}

static inline vf v_greater(vf a, vf b)
{
    return _mm512_max_ps(a, b);
}

static inline vf v_lesser(vf a, vf b)
{
    return _mm512_min_ps(a, b);
}

static inline float v_fold(vf v)
{
    const __m256 eight = _mm256_add_ps(_mm512_castps512_ps256(v), _mm512_extractf32x8_ps(v, 1));
    const __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
}

/* ---- comparisons and masks ---- */

static inline vm v_eq(vf a, vf b)
{
    return _mm512_cmp_ps_mask(a, b, _CMP_EQ_OQ);
}

static inline vm v_not_le(vf a, vf b)
{
    return _mm512_cmp_ps_mask(a, b, _CMP_NLE_UQ);
}

static inline vm v_ge(vf a, vf b)
{
    return _mm512_cmp_ps_mask(a, b, _CMP_GE_OQ);
}

static inline vm vm_and(vm a, vm b)
{
    return a & b;
}

static inline vf v_keep_part(vf v, int64_t n)
{
    return _mm512_maskz_mov_ps(v_first(n), v);
}

/* ---- integers ---- */

typedef __m512i vi;

static inline vi vi_set1(int32_t x)
{
    return _mm512_set1_epi32(x);
}

static inline vi v_bits(vf v)
{
    return _mm512_castps_si512(v);
}

static inline vf v_from_bits(vi v)
{
    return _mm512_castsi512_ps(v);
}

static inline vf v_to_float(vi v)
{
    return _mm512_cvtepi32_ps(v);
}

static inline vi vi_add(vi a, vi b)
{
    return _mm512_add_epi32(a, b);
}

static inline vi vi_sub(vi a, vi b)
{
    return _mm512_sub_epi32(a, b);
}

static inline vi vi_and(vi a, vi b)
{
    return _mm512_and_si512(a, b);
}

static inline vi vi_or(vi a, vi b)
{
    return _mm512_or_si512(a, b);
}

static inline vi vi_xor(vi a, vi b)
{
    return _mm512_xor_si512(a, b);
}

static inline vm vi_eq(vi a, vi b)
{
    return _mm512_cmpeq_epi32_mask(a, b);
}

static inline vi vi_select(vm m, vi a, vi b)
{
    return _mm512_mask_blend_epi32(m, b, a);
}

#define vi_shl(a, count) _mm512_slli_epi32(a, count)
#define vi_sar(a, count) _mm512_srai_epi32(a, count)
#define vi_shr(a, count) _mm512_srli_epi32(a, count)

static inline vi vi_mul_wide(vi a, uint32_t b, vi *high)
{
    vi factor = _mm512_set1_epi64(b);
    vi even = _mm512_mul_epu32(a, factor), odd = _mm512_mul_epu32(_mm512_srli_epi64(a, 32), factor);
    *high = _mm512_mask_blend_epi32(0xaaaa, _mm512_srli_epi64(even, 32), odd);
    return _mm512_mask_blend_epi32(0xaaaa, even, _mm512_slli_epi64(odd, 32));
}

static inline vi vi_zip4_order(void)
{
    return _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
}

static inline void vi_zip4(vi t[4])
{
    vi low01 = _mm512_unpacklo_epi32(t[0], t[1]), high01 = _mm512_unpackhi_epi32(t[0], t[1]);
    vi low23 = _mm512_unpacklo_epi32(t[2], t[3]), high23 = _mm512_unpackhi_epi32(t[2], t[3]);
    t[0] = _mm512_unpacklo_epi64(low01, low23);
    t[1] = _mm512_unpackhi_epi64(low01, low23);
    t[2] = _mm512_unpacklo_epi64(high01, high23);
    t[3] = _mm512_unpackhi_epi64(high01, high23);
}

static inline vi vi_load_bytes(const uint8_t *p)
{
    return _mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)p));
}

static inline vi vi_load_bytes_part(const uint8_t *p, int64_t n)
{
    return _mm512_cvtepu8_epi32(_mm_maskz_loadu_epi8(v_first(n), p));
}

static inline void vi_store_bytes(uint8_t *p, vi v)
{
    _mm_storeu_si128((__m128i *)p, _mm512_cvtepi32_epi8(v));
}

static inline void vi_store_bytes_part(uint8_t *p, vi v, int64_t n)
{
    _mm512_mask_cvtepi32_storeu_epi8(p, v_first(n), v);
}

#endif
