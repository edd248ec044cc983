/* How a trainer comes together with the other processes of its job. */
#ifndef TR_TRAIN_JOIN_H
#define TR_TRAIN_JOIN_H

#include "comm/comm.h"
#include "trireme/train.h"

/* Joins the processes that a launcher started, by the transport and within the time limits of the settings;
 *out is NULL where this process works alone. Returned, destroy with tr_comm_destroy(). */
tr_status tr_train_join(const struct tr_train_settings *settings, tr_comm **out);

/* How many times slower `rank` of `ranks` is to compute by "1:5,3:2"; 1 where it is not named, and for NULL.
   TR_EINVAL for other texts, ranks that the job has not, and factors below 1. */
tr_status tr_train_slowness(const char *text, int rank, int ranks, double *factor);

/* The threads that this process takes where none are asked for: processors that several ranks of a host may
   use are shared out evenly. Collective. */
tr_status tr_train_threads(tr_comm *comm, int *threads);

#endif
