/* Making communicators: one function for each way in which ranks can be connected. */
#ifndef TR_COMM_TRANSPORT_H
#define TR_COMM_TRANSPORT_H

#include "comm/comm.h"

/* ---- a single rank, so that programs need no special case ---- */

/* Returned, destroy with tr_comm_destroy(). TR_EINVAL (settings), TR_ENOMEM. */
tr_status tr_comm_self_create(const struct tr_comm_settings *settings, tr_comm **out);

/* ---- threads of one process, for tests and for studying strategies without a cluster ---- */

#define TR_COMM_THREADS_MOST 256

/* Makes `size` communicators, one for each rank, to be handed to a thread each: out[size] is filled.
   `host`[size] tells ranks apart by pretended hosts (any numbers; ranks with equal ones share memory); NULL
   puts all on one. Both borrowed for the call. Returned, each destroyed by its rank with tr_comm_destroy().
   TR_EINVAL, TR_ENOMEM; then nothing was made. Waiting threads sleep; nothing spins, so that many ranks run
   on few cores. */
tr_status tr_comm_thread_create(int size, const int *host, const struct tr_comm_settings *settings,
                                tr_comm **out);

/* ---- processes on one or many hosts, started by mpirun or SLURM and joined by Open MPI ---- */

/* Whether a launcher started this process as one of many, by what it left in `environment`, an array of
   "NAME=value" that ends with NULL: its rank and the number of ranks, known before anything is set up. Knows
   mpirun and srun. Any thread. */
bool tr_comm_mpi_world(const char *const *environment, int *rank, int *size);

/* Joins the other processes. Collective; waits for them, at most the time-out of the settings or 10 s. Once
   per process. Returned, destroy with tr_comm_destroy(). TR_EUNSUPPORTED without the module or without MPI,
   saying what to install; TR_EPEER when not all came. Call it only in a process that a launcher started, see
   above: else MPI may end the process. While the communicator lives, SIGPIPE is ignored unless the program
   had decided about it: peers that die break connections. */
tr_status tr_comm_mpi_create(const struct tr_comm_settings *settings, tr_comm **out);

#endif
