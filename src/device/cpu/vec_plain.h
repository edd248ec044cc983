/* vec.h in plain C: one float. Slow where the machine has no fma instruction, but the same bytes. */
#ifndef TR_DEVICE_CPU_VEC_PLAIN_H
#define TR_DEVICE_CPU_VEC_PLAIN_H

#include <math.h>
#include <stdint.h>

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

static inline void v_transpose(vf t[VW])
{
    (void)t;
}

#endif
