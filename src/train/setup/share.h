/* The processes of a host share one unpacked copy of each data set: they get the slots of data/cache/store.h.
 */
#ifndef TR_TRAIN_SHARE_H
#define TR_TRAIN_SHARE_H

#include "comm/comm.h"
#include "data/cache/store.h"

/* Gives the store slots in memory that the ranks of this host share; where the system refuses, the store
   does not change and each rank has its own copy. `patience` as for tr_store_share(). Collective; waits. A
   NULL `comm` is a single process. TR_EPEER, TR_ENOMEM. */
tr_status tr_train_share_store(tr_comm *comm, double patience, tr_store *store);

#endif
