#include "base/threads/thread.h"

#include <signal.h>
#include <stdint.h>

int tr_thread_start(pthread_t *thread, void *(*main)(void *), void *argument)
{
    /* Signals that a thread raises by its own faults. If they were blocked, no handler could report the
       fault. */
    static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGABRT};
    sigset_t blocked, before;
    sigfillset(&blocked);
    for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++) sigdelset(&blocked, faults[i]);
    pthread_sigmask(SIG_SETMASK, &blocked, &before);
    int error = pthread_create(thread, NULL, main, argument);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return error;
}

void tr_thread_processors(cpu_set_t *out)
{
    CPU_ZERO(out);
    if (sched_getaffinity(0, sizeof *out, out) != 0) CPU_SET(0, out);
}

void tr_thread_keep_to(const cpu_set_t *own, int begin, int end)
{
    cpu_set_t part;
    CPU_ZERO(&part);
    for (int processor = 0, number = 0; processor < CPU_SETSIZE; processor++) {
        if (!CPU_ISSET(processor, own)) continue;
        if (number >= begin && number < end) CPU_SET(processor, &part);
        number++;
    }
    sched_setaffinity(0, sizeof part, &part);
}

void tr_thread_take_share(const cpu_set_t *own, int index, int sharing, int threads)
{
    const int each = CPU_COUNT(own) / sharing;
    if (sharing > 1 && each >= threads) tr_thread_keep_to(own, index * each, (index + 1) * each);
}

void tr_condition_init(pthread_cond_t *condition)
{
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(condition, &monotonic);
    pthread_condattr_destroy(&monotonic);
}

struct timespec tr_moment_in(double seconds)
{
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    double whole = (double)(int64_t)seconds; /* separately: a long time in nanoseconds may overflow */
    int64_t nanoseconds = at.tv_nsec + (int64_t)((seconds - whole) * 1e9);
    at.tv_sec += (time_t)whole + nanoseconds / 1000000000;
    at.tv_nsec = nanoseconds % 1000000000;
    return at;
}
