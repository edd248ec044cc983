/* Fails on purpose, in the way that its argument names: what tests/runner/reports.sh shows the runner. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void test_that_passes(void **state)
{
    (void)state;
    assert_int_equal(1, 1);
}

static void test_that_compares(void **state)
{
    (void)state;
    assert_int_equal(1, 2);
}

static void test_that_crashes(void **state)
{
    (void)state;
    abort();
}

static int fail_to_set_up(void **state)
{
    (void)state;
    return -1;
}

int main(int argc, char **argv)
{
    const struct CMUnitTest passing[] = {cmocka_unit_test(test_that_passes)};
    const struct CMUnitTest comparing[] = {cmocka_unit_test(test_that_passes),
                                           cmocka_unit_test(test_that_compares)};
    const struct CMUnitTest crashing[] = {cmocka_unit_test(test_that_crashes)};
    const char *how = argc > 1 ? argv[1] : "";
    if (strcmp(how, "pass") == 0) return cmocka_run_group_tests(passing, NULL, NULL);
    if (strcmp(how, "compare") == 0) return cmocka_run_group_tests(comparing, NULL, NULL);
    if (strcmp(how, "crash") == 0) return cmocka_run_group_tests(crashing, NULL, NULL);
    if (strcmp(how, "setup") == 0) return cmocka_run_group_tests(passing, fail_to_set_up, NULL);
    fprintf(stderr, "test_runner_failing pass|compare|crash|setup\n");
    return 2;
}
