/* Signs of life between processes: each rank sends a small message to all others now and then, and knows how
 * long ago it heard of each. A message also says that its sender gave up, and why.
 *
 * All functions are called with the communicator's lock held; none blocks.
 */
#ifndef TR_COMM_MPI_HEART_H
#define TR_COMM_MPI_HEART_H

#include "comm/class.h"
#include "comm/mpi/module.h"

typedef struct tr_heart tr_heart;

/* Starts listening. `comm` and `module` are borrowed for the life of the heart. Returned, end with
 * tr_heart_destroy(). */
tr_status tr_heart_create(tr_comm *comm, const struct tr_mpi_module *module, tr_heart **out);
/* Seconds between two beats. */
double tr_heart_interval(const tr_heart *heart);
/* Listens, and sends when it is time; cheap when it is not. */
void tr_heart_beat(tr_heart *heart);
/* As the slot `life`. */
enum tr_comm_life tr_heart_life(const tr_heart *heart, int rank, double *silence, char *why, size_t size);
/* Tells all others that this rank gave up, and is silent from then on. */
void tr_heart_give_up(tr_heart *heart, const char *why);
/* Stops listening, and frees what may be freed; memory that a message may still reach stays. */
void tr_heart_destroy(tr_heart **heart);

#endif
