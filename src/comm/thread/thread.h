/* What tests of ranks as threads want besides comm/transport.h: faults on demand. Any thread. */
#ifndef TR_COMM_THREAD_H
#define TR_COMM_THREAD_H

#include "comm/transport.h"

/* The rank is dead: its calls fail, and the others find it gone. */
void tr_comm_thread_kill(tr_comm *comm);
/* The rank gives no sign of life any more, as if its process were stopped. */
void tr_comm_thread_freeze(tr_comm *comm);
/* From now on the rank's message number `nth` (from 0) to rank `to` arrives `seconds` late; < 0: never. One
   such fault waits or holds at a time. */
void tr_comm_thread_delay(tr_comm *comm, int to, int64_t nth, double seconds);

#endif
