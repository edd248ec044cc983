/* Making communicators: one function for each way in which ranks can be connected. */
#ifndef TR_COMM_TRANSPORT_H
#define TR_COMM_TRANSPORT_H

#include "base/options/registry.h"
#include "comm/comm.h"
#include "trireme/launch.h"

/* A way of connecting processes as ranks. To add one, add a line in comm/transport.c. */
struct tr_transport {
    TR_ENTRY;
    /* Joins the other processes; *out is NULL where there are none. `ticket` is the text after the name
       and a colon, NULL for none. Collective. */
    tr_status (*create)(const char *ticket, const struct tr_comm_settings *settings, tr_comm **out);
};

/* All of them, the default first; its entries are of struct tr_transport. */
extern const struct tr_registry tr_transports;

/* ---- processes of one host, started together by a launcher ---- */

#define TR_LOCAL_VARIABLE    "TRIREME_LOCAL" /* environment variable with a rank's ticket */
#define TR_LOCAL_TICKET_SIZE 48
/* A wait yields the processor for so many seconds after the last message before it sleeps, since answers
   usually come at once and waking takes time. Only where each rank has a processor; elsewhere another rank
   needs it more. */
#define TR_LOCAL_YIELD_SECONDS 300e-6

/* Writes the ticket of a rank, the value of TR_LOCAL_VARIABLE for its process: descriptor, rank and size.
   TR_EINVAL when there is no such rank or less room than TR_LOCAL_TICKET_SIZE. The rest of what a launcher
   needs is in trireme/launch.h. */
tr_status tr_local_group_ticket(const tr_local_group *group, int rank, char *text, size_t size);

/* The ticket in `environment`, an array of "NAME=value" that ends with NULL, or NULL if there is none.
   Borrowed from it. Any thread. */
const char *tr_comm_local_ticket(const char *const *environment);
/* Whether a launcher started this process as one of several on this host, and as which rank, as
   tr_comm_mpi_world(). An invalid ticket counts as none. */
bool tr_comm_local_world(const char *const *environment, int *rank, int *size);

/* Joins the other processes, with the ticket of this one, borrowed for the call. Collective; waits for
   them, at most the time-out of the settings or 10 s. Once per ticket. Takes the descriptor, which no
   process started later inherits. Waiting ranks sleep, so that there may be more of them than processors.
   Returned, destroy with tr_comm_destroy(). TR_EINVAL for a ticket, descriptor or memory that does not
   come from a launcher of this version; TR_EPEER, naming one rank, when not all joined; TR_ENOMEM. */
tr_status tr_comm_local_create(const char *ticket, const struct tr_comm_settings *settings, tr_comm **out);

/* ---- processes on one or many hosts, started by mpirun or SLURM and joined by Open MPI ---- */

/* A wait yields the processor for so many seconds, where each rank of the host has one, and then polls
   between growing naps: MPI has no call that would wake it. */
#define TR_MPI_YIELD_SECONDS 300e-6
/* Seconds of the next nap of a rank that has waited for so long; at most `longest`. */
double tr_mpi_nap(double waited, double longest);

/* Whether a launcher started this process as one of many, according to `environment`, an array of
   "NAME=value" that ends with NULL: its rank and the number of ranks, known before anything is set up.
   Knows mpirun and srun. Any thread. */
bool tr_comm_mpi_world(const char *const *environment, int *rank, int *size);

/* Whether processes can be joined by MPI here: TR_EUNSUPPORTED without the module or without MPI, saying what
   to install. Any thread. */
tr_status tr_comm_mpi_check(void);

/* Joins the other processes. Collective; waits for them, at most the time-out of the settings or 10 s.
   Once per process. Returned, destroy with tr_comm_destroy(). TR_EUNSUPPORTED without the module or
   without MPI, saying what to install; TR_EPEER when not all joined. Call it only in a process that a
   launcher started, see above: otherwise MPI may end the process. While the communicator exists, SIGPIPE
   is ignored unless the program has set its action, since dying peers break connections. */
tr_status tr_comm_mpi_create(const struct tr_comm_settings *settings, tr_comm **out);

#endif
