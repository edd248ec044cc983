#include "base/numbers/sort.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

static void test_numbers_ascend(void **state)
{
    (void)state;
    double value[] = {3, -1, INFINITY, 1e-300, -INFINITY, 3, 0};
    static const double sorted[] = {-INFINITY, -1, 0, 1e-300, 3, 3, INFINITY};
    tr_sort_doubles(value, sizeof value / sizeof value[0]);
    for (size_t i = 0; i < sizeof value / sizeof value[0]; i++) assert_true(value[i] == sorted[i]);
}

static void test_as_many_as_asked(void **state)
{
    (void)state;
    double value[] = {2, 1, 0};
    tr_sort_doubles(value, 2);
    assert_true(value[0] == 1 && value[1] == 2 && value[2] == 0);
    tr_sort_doubles(value, 0);
    assert_true(value[0] == 1);
    tr_sort_doubles(NULL, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_numbers_ascend),
        cmocka_unit_test(test_as_many_as_asked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
