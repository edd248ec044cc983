/* Signs of life between processes: each rank sends a small message to its neighbours now and then, and knows
 * how long ago it heard of them. Neighbours are the ranks at distances of powers of two, so that a rank has a
 * number of them that grows with the logarithm of all, and what one knows reaches all others in as many
 * messages: who gave up and why, whose process is gone, and who has not been heard of by its neighbours. Few
 * ranks are all neighbours of each other.
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
/* Whether it is time to beat; in between, those listen who call the communicator anyway. */
bool tr_heartbeat_is_due(const tr_heartbeat *heartbeat, double now);
/* Listens, looks at processes of this host, and sends when it is time or there is news; cheap when it is not.
   `now` is the present time (tr_clock_seconds()). */
void tr_heartbeat_beat(tr_heartbeat *heartbeat, double now);
/* MPI failed between this rank and another: looks now rather than at the next interval. */
void tr_heartbeat_look(tr_heartbeat *heartbeat);
/* As the slots `life`, `changes` and `first_to_give_up`. */
enum tr_comm_life tr_heartbeat_life(const tr_heartbeat *heartbeat, int rank, double *silence, char *why,
                                    size_t size);
uint64_t tr_heartbeat_changes(const tr_heartbeat *heartbeat);
int tr_heartbeat_first_to_give_up(const tr_heartbeat *heartbeat);
/* Tells the neighbours that this rank gave up, and is silent from then on. */
void tr_heartbeat_give_up(tr_heartbeat *heartbeat, const char *why);
/* Stops listening, and frees what may be freed; memory that a message may still reach stays. */
void tr_heartbeat_destroy(tr_heartbeat **heartbeat);

#endif
