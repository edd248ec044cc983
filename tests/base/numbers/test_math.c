/* tr_exp, tr_log, tr_cos and powers: accuracy against the long double functions of libm, special values, and
 * the very bits, which must not differ between machines and compilers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/numbers/math.h"
#include "base/numbers/rng.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define SAMPLES 200000

/* Uniform in [least, most), from the position alone. */
static double sample(uint32_t stream, uint32_t position, double least, double most)
{
    uint32_t block[4];
    tr_rng_philox((tr_rng_key){stream, 77}, position, 0, 0, 0, block);
    double unit = (double)((uint64_t)block[0] << 21 ^ block[1] >> 11) * 0x1p-53;
    return least + unit * (most - least);
}

/* |value - exact| relative to exact, or to the smallest normal number where exact is below it. */
static double relative_error(double value, long double exact)
{
    long double unit = fabsl(exact) < (long double)DBL_MIN ? (long double)DBL_MIN : fabsl(exact);
    return (double)(fabsl((long double)value - exact) / unit);
}

static void assert_close(const char *what, double x, double value, long double exact, double bound)
{
    double error = relative_error(value, exact);
    if (!(error <= bound)) {
        fail_msg("%s(%a) is %a, should be %La: relative error %g above %g", what, x, value, exact, error,
                 bound);
    }
}

static void assert_bits(double value, double expected)
{
    if (memcmp(&value, &expected, sizeof value) != 0) fail_msg("got %a, expected %a", value, expected);
}

static void exp_is_accurate(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < SAMPLES; i++) {
        double x = sample(1, i, -708, 709.7), small = sample(2, i, -1, 1);
        assert_close("tr_exp", x, tr_exp(x), expl(x), 4e-16);
        assert_close("tr_exp", small, tr_exp(small), expl(small), 4e-16);
    }
    for (double x = -745; x < -708; x += 0.37) assert_close("tr_exp", x, tr_exp(x), expl(x), 5e-16);
}

static void exp_special_values(void **state)
{
    (void)state;
    assert_bits(tr_exp(0), 1);
    assert_bits(tr_exp(-0.0), 1);
    assert_bits(tr_exp(INFINITY), INFINITY);
    assert_bits(tr_exp(-INFINITY), 0);
    assert_bits(tr_exp(709.79), INFINITY);
    assert_bits(tr_exp(-745.2), 0);
    assert_bits(tr_exp(-745.13), 0x1p-1074);
    assert_bits(tr_exp(1e300), INFINITY);
    assert_bits(tr_exp(-1e300), 0);
    assert_true(isnan(tr_exp(NAN)));
}

static void log_is_accurate(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < SAMPLES; i++) {
        double near = sample(3, i, 0.5, 2), unit = sample(4, i, 0, 1) + 0x1p-54;
        double any = ldexp(sample(5, i, 1, 2), (int)sample(6, i, -1073, 1023));
        assert_close("tr_log", near, tr_log(near), logl(near), 5e-16);
        assert_close("tr_log", unit, tr_log(unit), logl(unit), 5e-16);
        assert_close("tr_log", any, tr_log(any), logl(any), 5e-16);
    }
}

static void log_special_values(void **state)
{
    (void)state;
    assert_bits(tr_log(1), 0);
    assert_bits(tr_log(0), -INFINITY);
    assert_bits(tr_log(-0.0), -INFINITY);
    assert_bits(tr_log(INFINITY), INFINITY);
    assert_true(isnan(tr_log(-1)));
    assert_true(isnan(tr_log(-INFINITY)));
    assert_true(isnan(tr_log(NAN)));
    assert_close("tr_log", 0x1p-1074, tr_log(0x1p-1074), logl(0x1p-1074L), 5e-16);
    assert_close("tr_log", DBL_MAX, tr_log(DBL_MAX), logl(DBL_MAX), 5e-16);
}

static void cos_is_accurate(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < SAMPLES; i++) {
        double turn = sample(7, i, -6.2831853071795862, 6.2831853071795862), far = sample(8, i, -1e6, 1e6);
        assert_true(fabsl(tr_cos(turn) - cosl(turn)) < 3e-16L);
        assert_true(fabsl(tr_cos(far) - cosl(far)) < 3e-16L);
    }
}

static void cos_special_values(void **state)
{
    (void)state;
    assert_bits(tr_cos(0), 1);
    assert_bits(tr_cos(-0.0), 1);
    assert_bits(tr_cos(0x1.921fb54442d18p1), -1);
    assert_true(isnan(tr_cos(1000001)));
    assert_true(isnan(tr_cos(INFINITY)));
    assert_true(isnan(tr_cos(NAN)));
}

static void powers_are_accurate(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < SAMPLES / 4; i++) {
        double base = sample(9, i, 0.9, 1.1), x = sample(10, i, -6000, 6000);
        assert_close("tr_pow(0.9..1.1, .)", x, tr_pow(base, x), powl(base, x), 1e-15);
        base = ldexp(sample(11, i, 1, 2), (int)sample(12, i, -20, 20));
        x = sample(13, i, -30, 30);
        assert_close("tr_pow(2^-20..2^20, .)", x, tr_pow(base, x), powl(base, x), 1e-15);
        int64_t n = (int64_t)sample(14, i, -30, 30);
        assert_close("tr_pow_int", (double)n, tr_pow_int(base, n), powl(base, n), 4e-16);
    }
    /* What schedules and Adam ask for: a decay near 1 to the number of the step. */
    for (int64_t step = 1; step <= 1000000; step = step * 3 + 1) {
        assert_close("tr_pow_int(0.999, .)", (double)step, tr_pow_int(0.999, step), powl(0.999, step), 4e-16);
        assert_close("tr_pow(0.99, . / 600)", (double)step, tr_pow(0.99, (double)step / 600),
                     powl(0.99, (double)step / 600), 1e-15);
    }
}

static void powers_special_values(void **state)
{
    (void)state;
    assert_bits(tr_pow_int(0, 0), 1);
    assert_bits(tr_pow_int(NAN, 0), 1);
    assert_bits(tr_pow_int(0.1, 1), 0.1);
    assert_bits(tr_pow_int(2, 1023), 0x1p1023);
    assert_bits(tr_pow_int(2, 1024), INFINITY);
    assert_bits(tr_pow_int(2, -1074), 0x1p-1074);
    assert_bits(tr_pow_int(2, INT64_MIN), 0);
    assert_bits(tr_pow_int(-2, 3), -8);
    assert_bits(tr_pow_int(0, -1), INFINITY);
    assert_bits(tr_pow_int(INFINITY, -1), 0);
    assert_bits(tr_pow(0, 0.5), 0);
    assert_bits(tr_pow(0, -0.5), INFINITY);
    assert_bits(tr_pow(7, 0), 1);
    assert_bits(tr_pow(1, INFINITY), 1);
    assert_bits(tr_pow(1, 0.5), 1);
    assert_bits(tr_pow(4, 0.5), 2);
    assert_bits(tr_pow(INFINITY, 0.5), INFINITY);
    assert_bits(tr_pow(INFINITY, -0.5), 0);
    assert_bits(tr_pow(0.5, INFINITY), 0);
    assert_bits(tr_pow(0.5, -INFINITY), INFINITY);
    assert_bits(tr_pow(2, 1024.5), INFINITY);
    assert_bits(tr_pow(-2, 3), -8);
    assert_true(isnan(tr_pow(-2, 0.5)));
    assert_true(isnan(tr_pow(NAN, 0.5)));
    assert_true(isnan(tr_pow(2, NAN)));
    for (int n = -40; n <= 40; n++) assert_bits(tr_pow(1.1, n), tr_pow_int(1.1, n));
}

/* One number that changes with any bit of any result (FNV-1a over the words). */
static void bits_are_the_same_everywhere(void **state)
{
    (void)state;
    uint64_t digest = 0xcbf29ce484222325;
    for (uint32_t i = 0; i < 20000; i++) {
        double values[] = {
            tr_exp(sample(20, i, -745, 709)),
            tr_log(ldexp(sample(21, i, 1, 2), (int)sample(22, i, -1073, 1023))),
            tr_cos(sample(23, i, -1e6, 1e6)),
            tr_pow(sample(24, i, 0, 10), sample(25, i, -100, 100)),
            tr_pow_int(sample(26, i, 0.99, 1.01), (int64_t)sample(27, i, -10000, 10000)),
        };
        for (size_t k = 0; k < sizeof values / sizeof values[0]; k++) {
            uint64_t bits;
            memcpy(&bits, &values[k], sizeof bits);
            digest = (digest ^ bits) * 0x100000001b3;
        }
    }
    assert_true(digest == 0x13fa24cd985bb596);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(exp_is_accurate),
        cmocka_unit_test(exp_special_values),
        cmocka_unit_test(log_is_accurate),
        cmocka_unit_test(log_special_values),
        cmocka_unit_test(cos_is_accurate),
        cmocka_unit_test(cos_special_values),
        cmocka_unit_test(powers_are_accurate),
        cmocka_unit_test(powers_special_values),
        cmocka_unit_test(bits_are_the_same_everywhere),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
