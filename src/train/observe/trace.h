/* Traces: the timelines of all ranks in one file, in the format that Chrome introduced and Perfetto opens
 * ("Trace Event Format": complete events, a process for each rank, a thread for each lane).
 */
#ifndef TR_TRAIN_TRACE_H
#define TR_TRAIN_TRACE_H

#include "base/threads/timeline.h"
#include "comm/comm.h"

/* How this rank's clock relates to the root's: measured at two moments, to include drift. */
struct tr_trace_clock {
    int64_t at[2], ahead[2]; /* nanoseconds: own time of a measurement, and by how much it is ahead */
};

/* Compares the clocks of all ranks with the root's, for the first (`moment` 0) or the last time (1). Ranks
   of one host share a clock. Collective; nothing to do for NULL. */
tr_status tr_trace_compare_clocks(tr_comm *comm, int moment, struct tr_trace_clock *clock);

/* Gathers the closed timelines of all ranks, and the root writes them to `path`, all or nothing.
   Collective when `comm` is not NULL. Only the root fails where a file cannot be written or a rank has no
   memory (TR_EIO, TR_ENOMEM); *whole becomes, on all ranks, whether the file was written. TR_EPEER. */
tr_status tr_trace_write(tr_timeline *timeline, const struct tr_trace_clock *clock, tr_comm *comm,
                         const char *path, bool *whole);
/* Only the root writes its own part; `comm` only identifies it. Does nothing on other ranks. */
tr_status tr_trace_write_own(tr_timeline *timeline, const struct tr_trace_clock *clock, tr_comm *comm,
                             const char *path);

#endif
