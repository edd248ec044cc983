/* Threads of the library's own. */
#ifndef TR_BASE_THREAD_H
#define TR_BASE_THREAD_H

#include <pthread.h>
#include <sched.h>
#include <time.h>

/* Starts a thread that is handed no signal but those of its own faults (SIGSEGV, SIGABRT, ...): these are for
   the threads of the program, which may rely on being interrupted by them. As pthread_create() otherwise: 0,
   or an error number. Any thread. */
int tr_thread_start(pthread_t *thread, void *(*main)(void *), void *argument);

/* The processors that the calling thread may run on; the first one, where the system does not say. */
void tr_thread_processors(cpu_set_t *out);
/* Keeps the calling thread, and those that it starts from then on, to the processors of `own` that are
   numbers [begin, end) among them. Where the system refuses that, it is slower at most. */
void tr_thread_keep_to(const cpu_set_t *own, int begin, int end);
/* Keeps it to part `index` of `sharing` equal ones of `own`, where a part has `threads` processors or more;
   else leaves it as it is. sharing, threads >= 1. */
void tr_thread_take_share(const cpu_set_t *own, int index, int sharing, int threads);

/* A condition that is waited for by the monotonic clock, which is never set; end it with
 * pthread_cond_destroy().
 */
void tr_condition_init(pthread_cond_t *condition);
/* The moment so many seconds (not negative) from now, for pthread_cond_timedwait() on such a condition. */
struct timespec tr_moment_in(double seconds);

#endif
