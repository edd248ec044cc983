/* Stands in for cmocka: the assertions that tests of the devices use. A test that fails ends the program with
 * exit code 1, one that is skipped goes back to where it was called. */
#ifndef STAND_IN_CMOCKA_H
#define STAND_IN_CMOCKA_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct CMUnitTest {
    const char *name;
    void (*test)(void **state);
    int (*set_up)(void **state), (*tear_down)(void **state);
    void *initial;
};
#define cmocka_unit_test(function)                                                                           \
    {                                                                                                        \
#function, function, NULL, NULL, NULL                                                                \
    }
#define cmocka_unit_test_prestate(function, state)                                                           \
    {                                                                                                        \
#function, function, NULL, NULL, state                                                               \
    }

__attribute__((format(printf, 1, 2))) static inline void print_message(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vprintf(format, arguments);
    va_end(arguments);
}
#define print_error print_message

__attribute__((noreturn, format(printf, 3, 4))) static inline void stand_in_fail(const char *file, int line,
                                                                                 const char *format, ...)
{
    va_list arguments;
    printf("%s:%d: ", file, line);
    va_start(arguments, format);
    vprintf(format, arguments);
    va_end(arguments);
    printf("\n");
    exit(1);
}

/* One for all files of a program. */
__attribute__((weak)) jmp_buf stand_in_skipped;

__attribute__((noreturn)) static inline void skip(void)
{
    longjmp(stand_in_skipped, 1);
}

#define fail()        stand_in_fail(__FILE__, __LINE__, "failed")
#define fail_msg(...) stand_in_fail(__FILE__, __LINE__, __VA_ARGS__)
#define assert_true(x)                                                                                       \
    do {                                                                                                     \
        if (!(x)) fail_msg("%s", #x);                                                                        \
    } while (0)
#define assert_false(x)    assert_true(!(x))
#define assert_null(x)     assert_true((x) == NULL)
#define assert_non_null(x) assert_true((x) != NULL)
#define assert_int_equal(a, b)                                                                               \
    do {                                                                                                     \
        long long stand_in_a_ = (long long)(a), stand_in_b_ = (long long)(b);                                \
        if (stand_in_a_ != stand_in_b_) fail_msg("%lld != %lld (%s, %s)", stand_in_a_, stand_in_b_, #a, #b); \
    } while (0)
#define assert_int_not_equal(a, b)       assert_true((a) != (b))
#define assert_in_range(x, least, most)  assert_true((x) >= (least) && (x) <= (most))
#define assert_string_equal(a, b)        assert_true(strcmp(a, b) == 0)
#define assert_memory_equal(a, b, n)     assert_true(memcmp(a, b, n) == 0)
#define assert_memory_not_equal(a, b, n) assert_true(memcmp(a, b, n) != 0)

/* By itself, so that nothing else is kept in registers. */
__attribute__((noinline)) static void stand_in_call(const struct CMUnitTest *test, void **state)
{
    if (setjmp(stand_in_skipped) == 0)
        test->test(state);
    else
        print_message("%s: skipped\n", test->name);
}

static inline int stand_in_run(const struct CMUnitTest *tests, size_t count, int (*set_up)(void **),
                               int (*tear_down)(void **))
{
    void *state = NULL;
    if (set_up && set_up(&state) != 0) stand_in_fail(__FILE__, __LINE__, "the set-up failed");
    for (size_t i = 0; i < count; i++) {
        print_message("%s\n", tests[i].name);
        fflush(stdout);
        void *own = tests[i].initial ? tests[i].initial : state;
        if (tests[i].set_up && tests[i].set_up(&own) != 0)
            stand_in_fail(__FILE__, __LINE__, "the set-up failed");
        stand_in_call(&tests[i], &own);
        if (tests[i].tear_down && tests[i].tear_down(&own) != 0)
            stand_in_fail(__FILE__, __LINE__, "the tear-down failed");
    }
    if (tear_down && tear_down(&state) != 0) stand_in_fail(__FILE__, __LINE__, "the tear-down failed");
    print_message("%zu tests passed\n", count);
    return 0;
}
#define cmocka_run_group_tests(tests, set_up, tear_down)                                                     \
    stand_in_run(tests, sizeof(tests) / sizeof((tests)[0]), set_up, tear_down)
#define cmocka_run_group_tests_name(name, tests, set_up, tear_down)                                          \
    cmocka_run_group_tests(tests, set_up, tear_down)

#endif
