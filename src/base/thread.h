/* Threads of the library's own. */
#ifndef TR_BASE_THREAD_H
#define TR_BASE_THREAD_H

#include <pthread.h>

/* Starts a thread that is handed no signal: these are for the threads of the program, which may rely on being
   interrupted by them. As pthread_create() otherwise: 0, or an error number. Any thread. */
int tr_thread_start(pthread_t *thread, void *(*main)(void *), void *argument);

#endif
