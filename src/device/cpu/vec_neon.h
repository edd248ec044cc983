/* vec.h for NEON on aarch64: 4 floats, masks are vectors of all-ones or all-zeros lanes. */
#ifndef TR_DEVICE_CPU_VEC_NEON_H
#define TR_DEVICE_CPU_VEC_NEON_H

#include <arm_neon.h>
#include <stdint.h>

#define VW 4

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

static inline void v_transpose(vf t[VW])
{
    float32x4x2_t low = vzipq_f32(t[0], t[2]), high = vzipq_f32(t[1], t[3]);
    float32x4x2_t first = vzipq_f32(low.val[0], high.val[0]), second = vzipq_f32(low.val[1], high.val[1]);
    t[0] = first.val[0];
    t[1] = first.val[1];
    t[2] = second.val[0];
    t[3] = second.val[1];
}

#endif
