/* Threads that the library starts. */
#ifndef TR_BASE_THREAD_H
#define TR_BASE_THREAD_H

#include <pthread.h>
#include <sched.h>
#include <time.h>

/* Starts a thread that receives only the signals of its own faults (SIGSEGV, SIGABRT, ...). All others go
   to the program's threads, which may rely on being interrupted by them. As pthread_create() otherwise: 0,
   or an error number. Any thread. */
int tr_thread_start(pthread_t *thread, void *(*main)(void *), void *argument);

/* The processors that the calling thread may run on; the first one, where the system does not say. */
void tr_thread_processors(cpu_set_t *out);
/* Keeps the calling thread, and threads that it then starts, on the processors numbered [begin, end) among
   `own`. Where the system refuses, it is at most slower. */
void tr_thread_keep_to(const cpu_set_t *own, int begin, int end);
/* Keeps it on part `index` of `sharing` equal parts of `own`, if a part has at least `threads` processors;
   else does nothing. sharing, threads >= 1. */
void tr_thread_take_share(const cpu_set_t *own, int index, int sharing, int threads);

/* A condition with timeouts by the monotonic clock, which is never set; destroy it with
 * pthread_cond_destroy().
 */
void tr_condition_init(pthread_cond_t *condition);
/* The time so many seconds (not negative) from now, for pthread_cond_timedwait() on such a condition. */
struct timespec tr_moment_in(double seconds);

#endif
