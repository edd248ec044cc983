/* The functions of cmocka that the cases of tests/device use, for a program without it: a failed assertion
 * ends the current operation (check.c).
 */
#ifndef TRIREME_DEVICE_CHECK_CMOCKA_H
#define TRIREME_DEVICE_CHECK_CMOCKA_H

__attribute__((noreturn, format(printf, 1, 2))) void check_fail(const char *format, ...);
__attribute__((noreturn)) void check_skip(void);

#define fail_msg(...)          check_fail(__VA_ARGS__)
#define assert_true(what)      ((what) ? (void)0 : check_fail("%s is not so", #what))
#define assert_non_null(it)    assert_true((it) != NULL)
#define assert_int_equal(a, b) assert_true((a) == (b))
#define skip()                 check_skip()

#endif
