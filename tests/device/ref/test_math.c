/* exp, log, tanh, sigmoid and erf of the arithmetic contract: accuracy against the double functions of libm
 * over all exponents, special values, and the very bits, which must be the same wherever this runs.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/numbers/mathf.h"
#include "base/numbers/rng.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>

/* Samples per sign and exponent. */
#define MANTISSAS 2048

static double sigmoid(double x)
{
    double e = exp(-fabs(x));
    return x < 0 ? e / (1 + e) : 1 / (1 + e);
}

/* Over every third float32 number the largest errors are, in units in the last place: exp 1.045, log 0.886,
   tanh 2.52, sigmoid 2.41, erf 1.062. The bounds lie just above; `bits` is a hash of all results. */
static const struct function {
    const char *name;
    float (*ours)(float);
    double (*exact)(double);
    double bound;
    uint64_t bits;
} functions[] = {
    {"exp", tr_expf, exp, 1.05, 0xd27ea75caab27149u},
    {"log", tr_logf, log, 0.89, 0x93ca4ab2d5da5e98u},
    {"tanh", tr_tanhf, tanh, 2.55, 0x996969bd9613257fu},
    {"sigmoid", tr_sigmoidf, sigmoid, 2.45, 0x609a925f7bb263f3u},
    {"erf", tr_erff, erf, 1.07, 0x1b9f58ea9879a25cu},
};
#define FUNCTIONS ((int)(sizeof functions / sizeof functions[0]))

/* The spacing of floats around a value; below the normal numbers that of the subnormal ones. */
static double unit_in_last_place(double value)
{
    int exponent;
    frexp(value, &exponent);
    return ldexp(1, (exponent < -125 ? -125 : exponent) - 24);
}

/* |ours - exact| in units in the last place; infinities and NaN must be met exactly. */
static double error_of(const struct function *f, float x)
{
    double exact = f->exact((double)x);
    float ours = f->ours(x);
    if (isnan(exact)) return isnan(ours) ? 0 : INFINITY;
    if (isinf((float)exact)) return ours == (float)exact ? 0 : INFINITY;
    return fabs((double)ours - exact) / unit_in_last_place(exact);
}

/* Sample `index` of a sign and exponent: the ends of the interval, then numbers anywhere in it. */
static float sample(uint32_t sign_and_exponent, uint32_t index)
{
    uint32_t block[4], mantissa = index == 0 ? 0 : 0x7fffff;
    if (index > 1) {
        tr_rng_philox((tr_rng_key){sign_and_exponent, 5}, index, 0, 0, 0, block);
        mantissa = block[0] & 0x7fffff;
    }
    return tr_mathf_float((int32_t)(sign_and_exponent << 23 | mantissa));
}

static void test_accuracy_and_bits(void **state)
{
    const struct function *f = *state;
    double most = 0;
    uint64_t hash = 0xcbf29ce484222325u; /* FNV-1a over the words */
    for (uint32_t part = 0; part < 512; part++) {
        for (uint32_t i = 0; i < MANTISSAS; i++) {
            float x = sample(part, i), y = f->ours(x);
            double error = error_of(f, x);
            if (!(error <= f->bound))
                fail_msg("%s(%a) is %a: %.3f units off", f->name, (double)x, (double)y, error);
            most = error > most ? error : most;
            hash = (hash ^ (isnan(y) ? 0x7fc00000u : (uint32_t)tr_mathf_bits(y))) * 0x100000001b3u;
        }
    }
    printf("[  NOTE    ] %s: at most %.3f units in the last place, bits %016llx\n", f->name, most,
           (unsigned long long)hash);
    if (hash != f->bits)
        fail_msg("%s: the bits are %016llx, not %016llx; if the function was changed on purpose, so change "
                 "the test",
                 f->name, (unsigned long long)hash, (unsigned long long)f->bits);
}

/* The same bits, so that zeros have the right sign too. */
static void expect(float (*function)(float), float x, float y)
{
    if (tr_mathf_bits(function(x)) != tr_mathf_bits(y))
        fail_msg("at %a: %a, should be %a", (double)x, (double)function(x), (double)y);
}

static void test_special_values(void **state)
{
    (void)state;
    for (int i = 0; i < FUNCTIONS; i++) {
        assert_true(isnan(functions[i].ours(NAN)));
        assert_true(isnan(functions[i].ours(-NAN)));
    }
    expect(tr_expf, 0.0f, 1);
    expect(tr_expf, -0.0f, 1);
    expect(tr_expf, INFINITY, INFINITY);
    expect(tr_expf, -INFINITY, 0);
    expect(tr_expf, 1e30f, INFINITY);
    expect(tr_expf, -1e30f, 0);
    expect(tr_expf, 0x1p-149f, 1);
    expect(tr_logf, 1, 0);
    expect(tr_logf, 0.0f, -INFINITY);
    expect(tr_logf, -0.0f, -INFINITY);
    expect(tr_logf, INFINITY, INFINITY);
    assert_true(isnan(tr_logf(-0x1p-149f)));
    assert_true(isnan(tr_logf(-INFINITY)));
    expect(tr_tanhf, 0.0f, 0.0f);
    expect(tr_tanhf, -0.0f, -0.0f);
    expect(tr_tanhf, INFINITY, 1);
    expect(tr_tanhf, -INFINITY, -1);
    expect(tr_tanhf, 0x1p-149f, 0x1p-149f);
    expect(tr_tanhf, -0x1.8p-130f, -0x1.8p-130f);
    expect(tr_sigmoidf, 0.0f, 0.5f);
    expect(tr_sigmoidf, -0.0f, 0.5f);
    expect(tr_sigmoidf, INFINITY, 1);
    expect(tr_sigmoidf, -INFINITY, 0);
    expect(tr_erff, 0.0f, 0.0f);
    expect(tr_erff, -0.0f, -0.0f);
    expect(tr_erff, INFINITY, 1);
    expect(tr_erff, -INFINITY, -1);
    expect(tr_flushf, 0x1p-100f, 0x1p-100f);
    expect(tr_flushf, -0x1p-100f, -0x1p-100f);
    expect(tr_flushf, 0x1.fffffep-101f, 0.0f);
    expect(tr_flushf, -0x1.fffffep-101f, 0.0f);
    expect(tr_flushf, -0.0f, 0.0f);
    expect(tr_flushf, 0x1p-149f, 0.0f);
    expect(tr_flushf, -INFINITY, -INFINITY);
    assert_true(isnan(tr_flushf(NAN)));
}

/* Results that are subnormal numbers keep their bits, and the ways out of the range are where they should be.
 */
static void test_edges_of_range(void **state)
{
    (void)state;
    expect(tr_expf, 0x1.62e42ep+6f, (float)exp(0x1.62e42ep+6)); /* the last finite one */
    expect(tr_expf, 0x1.62e430p+6f, INFINITY);
    expect(tr_expf, -0x1.9fe368p+6f, 0x1p-149f); /* the last that does not round to 0 */
    expect(tr_expf, -0x1.9fe36ap+6f, 0);
    for (float x = -103.5f; x < -87; x += 0.0625f) {
        double exact = exp((double)x);
        assert_true(tr_expf(x) > 0 && fabs((double)tr_expf(x) - exact) <= 0x1p-149 + 2e-7 * exact);
        assert_true(tr_sigmoidf(x) > 0);
    }
    expect(tr_logf, 0x1p-149f, (float)log(0x1p-149));
    expect(tr_logf, 0x1.fffffep+127f, (float)log(0x1.fffffep+127));
}

/* Odd functions are odd to the bit, and nothing leaves the range of its function. */
static void test_symmetry(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < 100000; i++) {
        float x = sample(100 + i % 32, i);
        assert_int_equal(tr_mathf_bits(tr_tanhf(-x)), tr_mathf_bits(-tr_tanhf(x)));
        assert_int_equal(tr_mathf_bits(tr_erff(-x)), tr_mathf_bits(-tr_erff(x)));
        assert_true(fabsf(tr_tanhf(x)) <= 1 && fabsf(tr_erff(x)) <= 1 && tr_sigmoidf(x) <= 1);
    }
}

int main(void)
{
    struct CMUnitTest tests[FUNCTIONS + 3] = {
        [FUNCTIONS] = cmocka_unit_test(test_special_values),
        [FUNCTIONS + 1] = cmocka_unit_test(test_edges_of_range),
        [FUNCTIONS + 2] = cmocka_unit_test(test_symmetry),
    };
    for (int i = 0; i < FUNCTIONS; i++)
        tests[i] =
            (struct CMUnitTest){functions[i].name, test_accuracy_and_bits, NULL, NULL, (void *)&functions[i]};
    return cmocka_run_group_tests_name("float32 functions", tests, NULL, NULL);
}
