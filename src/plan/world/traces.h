/* Simulated ranks' actions as time-independent traces that other simulators can replay: one file for each
 * rank with a line for each action, in the form that SimGrid's `smpirun -replay` reads (Desprez et al.
 * 2011, "Single node on-line simulation of MPI applications with SMPI"; version 3.32):
 *
 *     RANK init | compute FLOPS | isend TO TAG BYTES | irecv FROM TAG BYTES | wait FROM TO TAG | finalize
 *
 * One flop stands for a nanosecond of a processor. After an `init` without more the units of messages are
 * bytes. The platform and the list of hosts that SimGrid needs are written beside them.
 */
#ifndef TR_PLAN_TRACES_H
#define TR_PLAN_TRACES_H

#include "plan/cluster.h"
#include "plan/world/transport.h"

struct tr_traces;

/* Makes `directory`/NAME-RANKS, where NAME is that of the strategy, and files in it. TR_EIO, TR_ENOMEM. */
tr_status tr_traces_create(const char *directory, const char *strategy, int ranks,
                           const struct tr_cluster *cluster, struct tr_traces **out);
/* Accepts NULL, nulls the handle. */
void tr_traces_destroy(struct tr_traces **traces);
/* For a rehearsal. Borrowed. */
const struct tr_sim_listener *tr_traces_listener(struct tr_traces *traces);
/* All ranks are done after so many seconds of their time, which are written to seconds.txt. TR_EIO if
 * anything could not be written.
 */
tr_status tr_traces_finish(struct tr_traces *traces, double seconds);

#endif
