/* Traces: the timelines of all ranks in one file, in the format that Chrome introduced and Perfetto opens
 * ("Trace Event Format": complete events, a process for each rank, a thread for each lane).
 */
#ifndef TR_TRAIN_TRACE_H
#define TR_TRAIN_TRACE_H

#include "base/timeline.h"
#include "comm/comm.h"

/* How this rank's clock relates to the chief's: measured at two moments, so that drift is seen as well. */
struct tr_trace_clock {
    int64_t at[2], ahead[2]; /* nanoseconds: own time of a measurement, and by how much it is ahead */
};

/* Compares the clocks of all ranks with the chief's, for the first (`moment` 0) or the last time (1). Ranks
   of one host share a clock. Collective; nothing to do for NULL. */
tr_status tr_trace_compare_clocks(tr_comm *comm, int moment, struct tr_trace_clock *clock);

/* Brings the frozen timelines of all ranks together, and the chief writes them to `path`. Collective when
   `comm` is not NULL, where `alone` is set: then the chief writes what it has itself, because the others are
   gone. TR_EIO, TR_ENOMEM. */
tr_status tr_trace_write(const tr_timeline *timeline, const struct tr_trace_clock *clock, tr_comm *comm,
                         bool alone, const char *path);

#endif
