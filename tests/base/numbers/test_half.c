/* Numbers of 16 bits: every one of them, and what lies between two neighbours, against arithmetic of doubles.
 */
#include "base/numbers/half.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* The value by the definition of the format. */
static double value_of(int half)
{
    const int exponent = half >> 10 & 31, fraction = half & 1023;
    const double size =
        exponent ? ldexp(1 + fraction / 1024.0, exponent - 15) : ldexp(fraction / 1024.0, -14);
    return half & 0x8000 ? -size : size;
}

static bool is_finite(int half)
{
    return (half >> 10 & 31) != 31;
}

static void test_each(void **unused)
{
    (void)unused;
    for (int half = 0; half < 0x10000; half++) {
        const float value = tr_half_to_float((uint16_t)half);
        if (!is_finite(half)) {
            assert_true((half & 1023) ? isnan(value) : isinf(value) && !!signbit(value) == (half >> 15));
            if (half & 1023)
                assert_true(isnan(tr_half_to_float(tr_half_from_float(value))));
            else
                assert_int_equal(tr_half_from_float(value), half);
            continue;
        }
        assert_true((double)value == value_of(half) && !!signbit(value) == (half >> 15));
        assert_int_equal(tr_half_from_float(value), half);
    }
}

/* In the middle between neighbours the even one; beside it the nearer. */
static void test_between(void **unused)
{
    (void)unused;
    for (int half = 0; half < 0x7bff; half++) {
        const float middle = (float)((value_of(half) + value_of(half + 1)) / 2);
        const int even = half + half % 2;
        assert_int_equal(tr_half_from_float(middle), even);
        assert_int_equal(tr_half_from_float(-middle), even | 0x8000);
        assert_int_equal(tr_half_from_float(nextafterf(middle, 0)), half);
        assert_int_equal(tr_half_from_float(nextafterf(middle, 1e6f)), half + 1);
    }
    assert_int_equal(tr_half_from_float(nextafterf(65520, 0)), 0x7bff);
    assert_int_equal(tr_half_from_float(65520), 0x7c00);
    assert_int_equal(tr_half_from_float(-3e38f), 0xfc00);
    assert_int_equal(tr_half_from_float(1e-45f), 0);
}

static void test_bfloat(void **unused)
{
    (void)unused;
    assert_true(tr_bfloat_to_float(0x3f80) == 1.0f && tr_bfloat_to_float(0xc040) == -3.0f);
    assert_true(isinf(tr_bfloat_to_float(0x7f80)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each),
        cmocka_unit_test(test_between),
        cmocka_unit_test(test_bfloat),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
