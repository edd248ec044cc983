/* Messages of failures: recorded per thread, with context in front, cut at their limit. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/fail.h"

#include <pthread.h>
#include <string.h>

static void test_message(void **state)
{
    (void)state;
    assert_int_equal(tr_fail(TR_EINVAL, "dense \"fc1\": units is %d, should be 1 or more", -3), TR_EINVAL);
    assert_string_equal(tr_error_message(), "dense \"fc1\": units is -3, should be 1 or more");
    assert_int_equal(tr_fail(TR_EIO, "another"), TR_EIO);
    assert_string_equal(tr_error_message(), "another");
}

static void test_context(void **state)
{
    (void)state;
    tr_fail(TR_EFORMAT, "line %d", 7);
    assert_int_equal(tr_fail_in(TR_EFORMAT, "file \"%s\"", "a.yaml"), TR_EFORMAT);
    assert_string_equal(tr_error_message(), "file \"a.yaml\": line 7");
    /* A message may be an argument of the next one. */
    tr_fail(TR_EFORMAT, "again: %s", tr_error_message());
    assert_string_equal(tr_error_message(), "again: file \"a.yaml\": line 7");
}

static void test_long_messages_are_cut(void **state)
{
    (void)state;
    char text[3000];
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = 0;
    tr_fail(TR_EINVAL, "%s", text);
    assert_int_equal(strlen(tr_error_message()), 1023);
    tr_fail_in(TR_EINVAL, "context");
    assert_int_equal(strlen(tr_error_message()), 1023);
    assert_memory_equal(tr_error_message(), "context: xxx", 12);
    /* A place that takes all the room leaves none for the reason. */
    memset(text, 'y', sizeof text - 1);
    tr_fail_in(TR_EINVAL, "%s", text);
    assert_int_equal(strlen(tr_error_message()), 1023);
    assert_int_equal(strspn(tr_error_message(), "y"), 1023);
}

static void test_kept_failures(void **state)
{
    (void)state;
    struct tr_failure failure, none;
    tr_failure_keep(&none, TR_OK);
    tr_failure_keep(&failure, tr_fail(TR_EIO, "file \"%s\"", "a"));
    tr_fail(TR_EINVAL, "another");
    assert_int_equal(tr_failure_restore(&failure), TR_EIO);
    assert_string_equal(tr_error_message(), "file \"a\"");
    assert_int_equal(tr_failure_restore(&none), TR_OK);
}

static void test_status_names(void **state)
{
    (void)state;
    for (int i = TR_OK; i <= TR_EPEER; i++) {
        const char *name = tr_status_name((tr_status)i);
        assert_non_null(name);
        assert_true(strlen(name) > 0);
        assert_string_not_equal(name, "unknown status");
        for (int j = TR_OK; j < i; j++) assert_string_not_equal(name, tr_status_name((tr_status)j));
    }
    assert_string_equal(tr_status_name((tr_status)(TR_EPEER + 1)), "unknown status");
    assert_string_equal(tr_status_name((tr_status)-1), "unknown status");
}

static void *fail_elsewhere(void *seen)
{
    *(size_t *)seen = strlen(tr_error_message());
    tr_fail(TR_EIO, "elsewhere");
    return NULL;
}

static void test_threads_have_their_own(void **state)
{
    (void)state;
    pthread_t thread;
    size_t seen = 99;
    tr_fail(TR_EINVAL, "here");
    assert_int_equal(pthread_create(&thread, NULL, fail_elsewhere, &seen), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(seen, 0); /* a new thread has no message */
    assert_string_equal(tr_error_message(), "here");
}

static tr_status give(tr_status status, int *calls)
{
    ++*calls;
    return status;
}

static tr_status try_two(tr_status first, tr_status second, int *calls)
{
    TR_TRY(give(first, calls));
    TR_TRY(give(second, calls));
    return TR_OK;
}

static tr_status try_and_release(tr_status first, int *calls, int *released)
{
    tr_status status;
    TR_TRY_GOTO(give(first, calls), out);
    TR_TRY_GOTO(give(TR_OK, calls), out);
out:
    ++*released;
    return status;
}

static void test_check_macros(void **state)
{
    (void)state;
    int calls = 0, released = 0;
    assert_int_equal(try_two(TR_OK, TR_OK, &calls), TR_OK);
    assert_int_equal(calls, 2);
    assert_int_equal(try_two(TR_EIO, TR_OK, &calls), TR_EIO);
    assert_int_equal(calls, 3);
    assert_int_equal(try_two(TR_OK, TR_ENOMEM, &calls), TR_ENOMEM);
    assert_int_equal(calls, 5);
    assert_int_equal(try_and_release(TR_OK, &calls, &released), TR_OK);
    assert_int_equal(try_and_release(TR_ECORRUPT, &calls, &released), TR_ECORRUPT);
    assert_int_equal(calls, 8);
    assert_int_equal(released, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_message),
        cmocka_unit_test(test_context),
        cmocka_unit_test(test_long_messages_are_cut),
        cmocka_unit_test(test_kept_failures),
        cmocka_unit_test(test_status_names),
        cmocka_unit_test(test_threads_have_their_own),
        cmocka_unit_test(test_check_macros),
    };
    return cmocka_run_group_tests_name("fail", tests, NULL, NULL);
}
