#include "base/threads/thread.h"

#include "base/threads/team.h"

#include <errno.h>
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
    static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGABRT};
    for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++)
        assert_int_equal(sigismember(&seen, faults[i]), sigismember(&before, faults[i]));
    /* The caller's are as they were. */
    pthread_sigmask(SIG_SETMASK, NULL, &after);
    for (int number = 1; number < SIGRTMIN; number++)
        assert_int_equal(sigismember(&after, number), sigismember(&before, number));
}

static double seconds_of(struct timespec moment)
{
    return (double)moment.tv_sec + 1e-9 * (double)moment.tv_nsec;
}

static void test_conditions_time_out(void **state)
{
    (void)state;
    pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    pthread_cond_t condition;
    tr_condition_init(&condition);
    double before = seconds_of(tr_moment_in(0));
    struct timespec end = tr_moment_in(0.02);
    pthread_mutex_lock(&lock);
    while (pthread_cond_timedwait(&condition, &lock, &end) != ETIMEDOUT) continue;
    pthread_mutex_unlock(&lock);
    double after = seconds_of(tr_moment_in(0));
    assert_true(after >= before + 0.02);
    assert_true(after < before + 20); /* by another clock it would be years, or nothing */
    pthread_cond_destroy(&condition);
    /* Longer than fits into nanoseconds. */
    double late = seconds_of(tr_moment_in(1e12));
    assert_true(late > before + 0.9e12 && late < before + 1.1e12);
}

/* Parts are equal, of different processors, and all of them there; one that would be too small is not taken.
 */
static void test_processors_are_shared(void **state)
{
    (void)state;
    cpu_set_t own, part, seen, both;
    tr_thread_processors(&own);
    const int count = CPU_COUNT(&own);
    assert_int_equal(tr_team_processors(), count);
    CPU_ZERO(&seen);
    for (int index = 0; count >= 2 && index < 2; index++) {
        tr_thread_take_share(&own, index, 2, 1);
        tr_thread_processors(&part);
        assert_int_equal(CPU_COUNT(&part), count / 2);
        assert_int_equal(tr_team_processors(), count / 2);
        CPU_AND(&both, &seen, &part);
        assert_int_equal(CPU_COUNT(&both), 0);
        CPU_AND(&both, &own, &part);
        assert_true(CPU_EQUAL(&both, &part));
        CPU_OR(&seen, &seen, &part);
    }
    /* Two processors of four, of which this machine has only the first two. */
    cpu_set_t four = part;
    CPU_ZERO(&four);
    for (int i = 0, found = 0; i < CPU_SETSIZE - 2 && found < 2; i++)
        if (CPU_ISSET(i, &own)) found++, CPU_SET(i, &four);
    CPU_SET(CPU_SETSIZE - 2, &four);
    CPU_SET(CPU_SETSIZE - 1, &four);
    for (int threads = 1; CPU_COUNT(&four) == 4 && threads <= 3; threads++) {
        tr_thread_keep_to(&own, 0, 1);
        tr_thread_take_share(&four, 0, 2, threads);
        tr_thread_processors(&part);
        assert_int_equal(CPU_COUNT(&part), threads <= 2 ? 2 : 1);
        CPU_AND(&both, &four, &part);
        assert_true(CPU_EQUAL(&both, &part));
    }
    tr_thread_keep_to(&own, 0, count);
    tr_thread_take_share(&own, 0, count + 1, 1);
    tr_thread_take_share(&own, 1, 2, count);
    tr_thread_take_share(&own, 0, 1, 1);
    tr_thread_processors(&part);
    assert_true(CPU_EQUAL(&own, &part));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_threads_get_no_signals),
        cmocka_unit_test(test_conditions_time_out),
        cmocka_unit_test(test_processors_are_shared),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
