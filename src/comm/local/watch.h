/* Who is alive: a thread of each rank's that sleeps until the process of another one ends, and in between
 * shows that its own runs.
 *
 * A rank watches those that follow it, up to some number; a rank that notices an end informs all. The end of
 * a process is told by the system (pidfd); where that cannot be had, the thread looks now and then. A rank
 * hangs when it shows no more that it runs: it writes the time for all to see, and nobody looks before it
 * waits.
 */
#ifndef TR_COMM_LOCAL_WATCH_H
#define TR_COMM_LOCAL_WATCH_H

#include "comm/local/area.h"

struct local_watch;

/* Once all have joined. `interval`: seconds between beats. TR_ENOMEM. */
tr_status tr_local_watch_start(const struct local_area *area, int rank, double interval,
                               struct local_watch **out);
/* Accepts NULL, nulls the handle. */
void tr_local_watch_stop(struct local_watch **watch);

/* How long another rank had not been heard of when we listened last. */
double tr_local_watch_silence(const struct local_watch *watch, int rank);

#endif
