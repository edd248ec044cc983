/* The processes of this host's ranks: which of them have ended. The system reports it (pidfd); where it
 * cannot, they are polled. A rank watches those that follow it on the host, up to some number, and
 * notifies the others.
 */
#ifndef TR_COMM_MPI_PROCESSES_H
#define TR_COMM_MPI_PROCESSES_H

#include "comm/class.h"

struct tr_processes;

/* NULL: no memory. Nothing is watched before the ranks know each other's locations. */
struct tr_processes *tr_processes_create(void);
/* Accepts NULL, nulls the handle. */
void tr_processes_destroy(struct tr_processes **processes);
/* A rank of this host whose process has ended and that was not returned before; -1: none. */
int tr_processes_next_gone(struct tr_processes *processes, const tr_comm *comm);

#endif
