/* Ranks as processes on one or many hosts, started by mpirun or SLURM and joined by Open MPI.
 *
 * A thread of the communicator's own, the keeper, begins and ends MPI, so that neither can block the caller
 * for ever, and shows signs of life while the caller computes. All other MPI calls are made by whoever calls
 * the communicator.
 */
#ifndef TR_COMM_MPI_H
#define TR_COMM_MPI_H

#include "comm/comm.h"

/* Whether a launcher started this process as one of many, by what it left in `environment`, an array of
   "NAME=value" that ends with NULL: its rank and the number of ranks, known before anything is set up. Knows
   mpirun and srun. Any thread. */
bool tr_comm_mpi_world(const char *const *environment, int *rank, int *size);

/* Joins the other processes. Collective; waits for them, at most the time-out of the settings. Once per
   process. Returned, destroy with tr_comm_destroy(). TR_EUNSUPPORTED without the module or without MPI,
   saying what to install; TR_EPEER when not all came. Call it only in a process that a launcher started, see
   above: else MPI may end the process. */
tr_status tr_comm_mpi_create(const struct tr_comm_settings *settings, tr_comm **out);

/* For tests: messages of all later calls go in pieces of at most so many bytes (1 to INT_MAX). The same on
 * all ranks. */
void tr_comm_mpi_set_chunk(tr_comm *comm, size_t bytes);

#endif
