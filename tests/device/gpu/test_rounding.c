/* What kernels compute by themselves where a device promises or has nothing exact, compiled for this
 * processor and against its own instructions: quotients and square roots (kernels/division.h), with what the
 * proof of Markstein's theorem asks of 1 / m, and roots, for all significands; fused multiply-adds of
 * integers (kernels/fma.h). test_opencl_rounding.c does so on an OpenCL device.
 */
#include "device/gpu/rounding.h"

#include "base/numbers/mathf.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

/* The words of the dialect. */
#define D_OWN_DIVISION
#define D_OWN_FMA
#define D_FMA(a, b, c) fmaf(a, b, c)
#define D_BITS(x)      tr_mathf_bits(x)
#define D_FLOAT(bits)  tr_mathf_float((int32_t)(bits))
#define D_ZEROS(x)     __builtin_clzll(x)
#define D_LEAST(a, b)  ((a) < (b) ? (a) : (b))
#define D_MOST(a, b)   ((a) > (b) ? (a) : (b))
#define D_NAN          NAN
#include "device/gpu/kernels/division.h"
#include "device/gpu/kernels/fma.h"

static void test_reciprocals(void **state)
{
    (void)state;
    for (int32_t bits = 0x3f800000; bits < 0x40000000; bits++) {
        float m = D_FLOAT(bits), y = d_reciprocal(m);
        if (y != 1.0f / m) fail_msg("1 / %a is %a, not %a", (double)m, (double)y, (double)(1.0f / m));
    }
}

static void test_roots(void **state)
{
    (void)state;
    for (int32_t bits = 0x3f800000; bits < 0x40800000; bits++) {
        float m = D_FLOAT(bits), root = d_root(m);
        if (root != sqrtf(m))
            fail_msg("the root of %a is %a, not %a", (double)m, (double)root, (double)sqrtf(m));
    }
}

static void judge(const float *in, float *out, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        out[2 * i] = d_divide(in[2 * i], in[2 * i + 1]);
        out[2 * i + 1] = d_square_root(in[2 * i]);
    }
}

static void test_corners(void **state)
{
    (void)state;
    division_corners(judge);
}

static void test_some_significands(void **state)
{
    (void)state;
    division_significands(judge, 64);
}

static void test_quotients_that_are_nearly_half_way(void **state)
{
    (void)state;
    division_nearly_half(judge, 1);
}

static void test_random_pairs(void **state)
{
    (void)state;
    division_random(judge, INT64_C(1) << 21);
}

static void judge_fma(const float *in, float *out, int64_t count)
{
    for (int64_t i = 0; i < count; i++) out[i] = d_fma(in[3 * i], in[3 * i + 1], in[3 * i + 2]);
}

static void test_fma_corners(void **state)
{
    (void)state;
    fma_corners(judge_fma);
}

static void test_random_fma(void **state)
{
    (void)state;
    fma_random(judge_fma, INT64_C(1) << 23);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reciprocals),
        cmocka_unit_test(test_roots),
        cmocka_unit_test(test_corners),
        cmocka_unit_test(test_some_significands),
        cmocka_unit_test(test_quotients_that_are_nearly_half_way),
        cmocka_unit_test(test_random_pairs),
        cmocka_unit_test(test_fma_corners),
        cmocka_unit_test(test_random_fma),
    };
    return cmocka_run_group_tests_name("rounding of kernels", tests, NULL, NULL);
}
