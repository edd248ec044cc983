/* Ranks as threads of one process, for tests: the transport, and faults on demand. Any thread. */
#ifndef TESTS_SUPPORT_COMM_THREAD_THREAD_H
#define TESTS_SUPPORT_COMM_THREAD_THREAD_H

#include "comm/comm.h"

#define TR_COMM_THREADS_MOST 256

/* Makes `size` communicators, one for each rank, each for one thread: out[size] is filled. `host`[size]
   gives ranks pretended hosts (any numbers; ranks with equal ones share memory); NULL puts all on one.
   Both borrowed for the call. Returned, each destroyed by its rank with tr_comm_destroy(). TR_EINVAL,
   TR_ENOMEM; then nothing was made. Waiting threads sleep; nothing spins, so that many ranks run on few
   cores. */
tr_status tr_comm_thread_create(int size, const int *host, const struct tr_comm_settings *settings,
                                tr_comm **out);
/* The same with collectives of the transport, instead of those that the engine makes of messages. */
tr_status tr_comm_thread_create_collective(int size, const int *host, const struct tr_comm_settings *settings,
                                           tr_comm **out);

/* The rank is dead: its calls fail, and the others find it gone. */
void tr_comm_thread_kill(tr_comm *comm);
/* The rank gives no more signs of life, as if its process were stopped. */
void tr_comm_thread_freeze(tr_comm *comm);
/* The rank's next message number `nth` (from 0) to rank `to` arrives `seconds` late; < 0: never. Only one
   such fault may wait or hold a message at a time. */
void tr_comm_thread_delay(tr_comm *comm, int to, int64_t nth, double seconds);

#endif
