/* The transport of a world: messages between its ranks, which take the time of a cluster's network and are
 * recorded.
 *
 * The strategies and the engine of src/comm run on it unchanged; so messages and their order are real. Two
 * things differ from other transports. Numbers need not be moved: from tr_sim_hollow() on, messages that
 * are marked as numbers arrive without their contents, and windows are addresses without memory, so that a
 * thousand ranks fit into one process. And operations make progress while a rank computes
 * (tr_sim_compute()), as with a progress thread.
 */
#ifndef TR_PLAN_TRANSPORT_H
#define TR_PLAN_TRANSPORT_H

#include "comm/comm.h"
#include "comm/program.h"
#include "plan/cluster.h"
#include "plan/world/listener.h"
#include "plan/world/world.h"

/* Makes a network and a communicator for each rank: comm[ranks], of which the first per_host are on the
   first host, and so on. All borrowed for its life, except the listener. Returned; each rank destroys its
   communicator, then all is released with tr_sim_destroy(). TR_ENOMEM. */
tr_status tr_sim_create(tr_world *world, const struct tr_cluster *cluster, int ranks,
                        const struct tr_sim_listener *listener, tr_comm **comm, tr_sim **out);
/* Accepts NULL, nulls the handle; destroys the communicators that are left. */
void tr_sim_destroy(tr_sim **sim);

/* Seconds that the busiest link was busy so far. */
double tr_sim_busiest(const tr_sim *sim);

/* ---- for the rank that runs ---- */

/* Declares that the contents of numbers (struct tr_transfer) of `least` bytes or more do not matter, on
   all ranks: smaller ones are moved as quickly. */
void tr_sim_hollow(tr_sim *sim, size_t least);
/* Number of messages of at least that size since then that are not marked as numbers. */
int64_t tr_sim_unmarked(const tr_sim *sim);
/* The rank computes for so many seconds, and its operations make progress meanwhile. Not from within a
 * function of its communicator.
 */
tr_status tr_sim_compute(tr_sim *sim, double seconds);
/* Its processor moves so many floats in memory, a tr_program_listener; also from within such a function. */
void tr_sim_touch(void *sim, enum tr_program_motion motion, int64_t floats);

/* Memory that takes none until it is written; NULL: there is no more room. */
void *tr_sim_reserve(size_t bytes);
void tr_sim_unreserve(void *memory, size_t bytes);

#endif
