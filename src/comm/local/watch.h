/* Liveness: each rank has a thread that sleeps until another rank's process ends, and at intervals shows that
 * its own process runs.
 *
 * A rank watches those that follow it, up to some number; a rank that notices an end notifies all. The
 * system reports the end of a process (pidfd); without that, the thread polls. A rank counts as hung when
 * its sign of life, a time in shared memory, grows too old; only waiting ranks look at it.
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

/* Seconds since the last sign of life of another rank, as of the last look. */
double tr_local_watch_silence(const struct local_watch *watch, int rank);

#endif
