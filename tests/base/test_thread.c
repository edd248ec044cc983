#include "base/thread.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

static void *look_at_signals(void *mask)
{
    pthread_sigmask(SIG_SETMASK, NULL, mask);
    return mask;
}

static void test_threads_get_no_signals(void **state)
{
    (void)state;
    pthread_t thread;
    sigset_t before, seen, after;
    void *result = NULL;
    pthread_sigmask(SIG_SETMASK, NULL, &before);
    assert_int_equal(tr_thread_start(&thread, look_at_signals, &seen), 0);
    assert_int_equal(pthread_join(thread, &result), 0);
    assert_ptr_equal(result, &seen);
    static const int some[] = {SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGALRM, SIGCHLD};
    for (size_t i = 0; i < sizeof some / sizeof some[0]; i++)
        assert_int_equal(sigismember(&seen, some[i]), 1);
    /* The caller's are as they were. */
    pthread_sigmask(SIG_SETMASK, NULL, &after);
    for (int number = 1; number < SIGRTMIN; number++)
        assert_int_equal(sigismember(&after, number), sigismember(&before, number));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_threads_get_no_signals)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
