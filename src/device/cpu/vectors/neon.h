/* vec.h for NEON on aarch64: 4 floats, masks are vectors of all-ones or all-zeros lanes. */
#ifndef TR_DEVICE_CPU_VEC_NEON_H
#define TR_DEVICE_CPU_VEC_NEON_H

#include <arm_neon.h>
#include <stdint.h>
#include <string.h>

#define VW      4
#define V_FUSES 1

typedef float32x4_t vf;
typedef uint32x4_t vm;

static inline vf v_load(const float *p)
{
    return vld1q_f32(p);
}

static inline void v_store(float *p, vf v)
{
    vst1q_f32(p, v);
}

static inline vf v_load_part(const float *p, int64_t n)
{
    if (n >= 4) return vld1q_f32(p);
    vf v = vdupq_n_f32(0.0f);
    if (n > 0) v = vld1q_lane_f32(p, v, 0);
    if (n > 1) v = vld1q_lane_f32(p + 1, v, 1);
    if (n > 2) v = vld1q_lane_f32(p + 2, v, 2);
    return v;
}

static inline void v_store_part(float *p, vf v, int64_t n)
{
    if (n >= 4) {
        vst1q_f32(p, v);
        return;
    }
    if (n > 0) vst1q_lane_f32(p, v, 0);
    if (n > 1) vst1q_lane_f32(p + 1, v, 1);
    if (n > 2) vst1q_lane_f32(p + 2, v, 2);
}

static inline vf v_zero(void)
{
    return vdupq_n_f32(0.0f);
}

static inline vf v_set1(float x)
{
    return vdupq_n_f32(x);
}

static inline vf v_fma(vf a, vf b, vf c)
{
    return vfmaq_f32(c, a, b);
}

static inline vf v_fnma(vf a, vf b, vf c)
{
    return vfmsq_f32(c, a, b);
}

static inline vf v_add(vf a, vf b)
{
    return vaddq_f32(a, b);
}

static inline vf v_sub(vf a, vf b)
{
    return vsubq_f32(a, b);
}

static inline vf v_mul(vf a, vf b)
{
    return vmulq_f32(a, b);
}

static inline vf v_div(vf a, vf b)
{
    return vdivq_f32(a, b);
}

static inline vf v_sqrt(vf a)
{
    return vsqrtq_f32(a);
}

static inline vm v_lt(vf a, vf b)
{
    return vcltq_f32(a, b);
}

static inline vm v_gt(vf a, vf b)
{
    return vcgtq_f32(a, b);
}

static inline vf v_select(vm m, vf a, vf b)
{
    return vbslq_f32(m, a, b);
}

static inline vf v_greater(vf a, vf b)
{
    return v_select(v_gt(a, b), a, b);
}

static inline vf v_lesser(vf a, vf b)
{
    return v_select(v_lt(a, b), a, b);
}

static inline float v_fold(vf v)
{
    const float32x2_t two = vadd_f32(vget_low_f32(v), vget_high_f32(v));
    return vget_lane_f32(two, 0) + vget_lane_f32(two, 1);
}

static inline void v_transpose(vf t[VW])
{
    float32x4x2_t low = vzipq_f32(t[0], t[2]), high = vzipq_f32(t[1], t[3]);
    float32x4x2_t first = vzipq_f32(low.val[0], high.val[0]), second = vzipq_f32(low.val[1], high.val[1]);
    t[0] = first.val[0];
    t[1] = first.val[1];
    t[2] = second.val[0];
    t[3] = second.val[1];
}

/* ---- comparisons and masks ---- */

static inline vm v_eq(vf a, vf b)
{
    return vceqq_f32(a, b);
}

static inline vm v_not_le(vf a, vf b)
{
    return vmvnq_u32(vcleq_f32(a, b));
}

static inline vm v_ge(vf a, vf b)
{
    return vcgeq_f32(a, b);
}

static inline vm vm_and(vm a, vm b)
{
    return vandq_u32(a, b);
}

static inline vf v_keep_part(vf v, int64_t n)
{
    static const uint32_t lane[4] = {0, 1, 2, 3};
    uint32x4_t kept = vcltq_u32(vld1q_u32(lane), vdupq_n_u32((uint32_t)n));
    return vreinterpretq_f32_u32(vandq_u32(vreinterpretq_u32_f32(v), kept));
}

/* ---- integers ---- */

typedef int32x4_t vi;

static inline vi vi_set1(int32_t x)
{
    return vdupq_n_s32(x);
}

static inline vi v_bits(vf v)
{
    return vreinterpretq_s32_f32(v);
}

static inline vf v_from_bits(vi v)
{
    return vreinterpretq_f32_s32(v);
}

static inline vf v_to_float(vi v)
{
    return vcvtq_f32_s32(v);
}

static inline vi vi_add(vi a, vi b)
{
    return vaddq_s32(a, b);
}

static inline vi vi_sub(vi a, vi b)
{
    return vsubq_s32(a, b);
}

static inline vi vi_and(vi a, vi b)
{
    return vandq_s32(a, b);
}

static inline vi vi_or(vi a, vi b)
{
    return vorrq_s32(a, b);
}

static inline vi vi_xor(vi a, vi b)
{
    return veorq_s32(a, b);
}

static inline vm vi_eq(vi a, vi b)
{
    return vceqq_s32(a, b);
}

static inline vi vi_select(vm m, vi a, vi b)
{
    return vbslq_s32(m, a, b);
}

#define vi_shl(a, count) vshlq_n_s32(a, count)
#define vi_sar(a, count) vshrq_n_s32(a, count)
#define vi_shr(a, count) vreinterpretq_s32_u32(vshrq_n_u32(vreinterpretq_u32_s32(a), count))

static inline vi vi_mul_wide(vi a, uint32_t b, vi *high)
{
    uint32x4_t bits = vreinterpretq_u32_s32(a);
    uint64x2_t first = vmull_u32(vget_low_u32(bits), vdup_n_u32(b));
    uint64x2_t second = vmull_u32(vget_high_u32(bits), vdup_n_u32(b));
    int32x4_t first_words = vreinterpretq_s32_u64(first), second_words = vreinterpretq_s32_u64(second);
    *high = vuzp2q_s32(first_words, second_words);
    return vuzp1q_s32(first_words, second_words);
}

static inline vi vi_zip4_order(void)
{
    static const int32_t order[4] = {0, 1, 2, 3};
    return vld1q_s32(order);
}

static inline void vi_zip4(vi t[4])
{
    int32x4x2_t even = vzipq_s32(t[0], t[2]), odd = vzipq_s32(t[1], t[3]);
    int32x4x2_t first = vzipq_s32(even.val[0], odd.val[0]), second = vzipq_s32(even.val[1], odd.val[1]);
    t[0] = first.val[0];
    t[1] = first.val[1];
    t[2] = second.val[0];
    t[3] = second.val[1];
}

static inline vi vi_load_bytes_part(const uint8_t *p, int64_t n)
{
    uint32_t bytes = 0;
    memcpy(&bytes, p, (size_t)n);
    uint16x8_t wide = vmovl_u8(vreinterpret_u8_u32(vdup_n_u32(bytes)));
    return vreinterpretq_s32_u32(vmovl_u16(vget_low_u16(wide)));
}

static inline vi vi_load_bytes(const uint8_t *p)
{
    return vi_load_bytes_part(p, 4);
}

static inline void vi_store_bytes_part(uint8_t *p, vi v, int64_t n)
{
    uint16x4_t half = vmovn_u32(vreinterpretq_u32_s32(v));
    uint32_t bytes = vget_lane_u32(vreinterpret_u32_u8(vmovn_u16(vcombine_u16(half, half))), 0);
    memcpy(p, &bytes, (size_t)n);
}

static inline void vi_store_bytes(uint8_t *p, vi v)
{
    vi_store_bytes_part(p, v, 4);
}

#endif
