/* For tests with processes as ranks, in addition to comm/transport.h. */
#ifndef TR_COMM_MPI_H
#define TR_COMM_MPI_H

#include "comm/transport.h"

/* Splits messages of all later calls into pieces of at most so many bytes (1 to INT_MAX). The same on all
   ranks, while nothing is under way. Local. */
void tr_comm_mpi_set_chunk(tr_comm *comm, size_t bytes);

#endif
