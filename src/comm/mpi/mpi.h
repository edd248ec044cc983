/* What tests of ranks as processes want besides comm/transport.h. */
#ifndef TR_COMM_MPI_H
#define TR_COMM_MPI_H

#include "comm/transport.h"

/* Messages of all later calls go in pieces of at most so many bytes (1 to INT_MAX). The same on all ranks,
   while nothing is under way. Local. */
void tr_comm_mpi_set_chunk(tr_comm *comm, size_t bytes);

#endif
