/* Signs of life between processes: each rank sends a small message to its neighbours now and then, and
 * knows how long ago it heard of them. Neighbours are the ranks at distances of powers of two, so that
 * their number grows with the logarithm of the number of ranks, and news reaches all in as many messages:
 * which rank gave up and why, whose process has ended, and which rank its neighbours have not heard from.
 * A few ranks are all neighbours of each other.
 *
 * All functions are called with the communicator's lock held; none blocks.
 */
#ifndef TR_COMM_MPI_HEARTBEAT_H
#define TR_COMM_MPI_HEARTBEAT_H

#include "comm/class.h"
#include "comm/mpi/module.h"

typedef struct tr_heartbeat tr_heartbeat;

/* Starts listening. `comm` and `module` are borrowed for the life of the heartbeat. Returned, end with
 * tr_heartbeat_destroy(). */
tr_status tr_heartbeat_create(tr_comm *comm, const struct tr_mpi_module *module, tr_heartbeat **out);
/* Seconds between two beats. */
double tr_heartbeat_interval(const tr_heartbeat *heartbeat);
/* Whether it is time to beat; in between, threads that call the communicator anyway listen. */
bool tr_heartbeat_is_due(const tr_heartbeat *heartbeat, double now);
/* Listens, checks processes of this host, and sends when it is time or there is news; cheap otherwise.
   `now` is the present time (tr_clock_seconds()). */
void tr_heartbeat_beat(tr_heartbeat *heartbeat, double now);
/* MPI failed between this rank and another: checks now rather than at the next interval. */
void tr_heartbeat_look(tr_heartbeat *heartbeat);
/* As the slots `life`, `changes` and `first_to_give_up`. */
enum tr_comm_life tr_heartbeat_life(const tr_heartbeat *heartbeat, int rank, double *silence, char *why,
                                    size_t size);
uint64_t tr_heartbeat_changes(const tr_heartbeat *heartbeat);
int tr_heartbeat_first_to_give_up(const tr_heartbeat *heartbeat);
/* Notifies the neighbours that this rank gave up; it is silent from then on. */
void tr_heartbeat_give_up(tr_heartbeat *heartbeat, const char *why);
/* Stops listening and frees memory, except memory that a message may still reach. */
void tr_heartbeat_destroy(tr_heartbeat **heartbeat);

#endif
